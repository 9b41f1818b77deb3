"""`costguard bundle`: functions as zips that a host runs, with their bills of materials and sums."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import Json, examples
from costguard.cli.output import CommandResult, complain, emit
from costguard.cli.progress import waiting
from costguard.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from costguard.cli.operate.bundling.build import Bundle, Order
    from costguard.report.tables import Table

BUNDLE_EXAMPLES = examples(
    "costguard bundle lambda --out bundles",
    "costguard bundle fc idle_gpu --out bundles --python 3.12",
    "costguard bundle lambda --out bundles --arch arm64 --ledger sql",
    "costguard bundle scf --out bundles --wheels wheels/",
)
_MEGABYTE = 1_000_000


def bundle(
    host: Annotated[str, typer.Argument(metavar="HOST", help="lambda, fc or scf.")],
    function: Annotated[
        str, typer.Argument(metavar="FUNCTION", help="One function, such as idle_gpu.", show_default="all of them")
    ] = "",
    *,
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Where DIR/HOST/FUNCTION.zip goes.")],
    python: Annotated[
        str, typer.Option("--python", metavar="VERSION", help="3.10 to 3.13.", show_default="3.13 on lambda, else 3.10")
    ] = "",
    arch: Annotated[str, typer.Option("--arch", metavar="ARCH", help="x86_64, or on lambda arm64.")] = "x86_64",
    ledger: Annotated[
        str,
        typer.Option(
            "--ledger",
            metavar="KIND",
            help="dynamodb, or sql for PostgreSQL and DynamoDB.",
            show_default="dynamodb on lambda, else sql",
        ),
    ] = "",
    wheels: Annotated[
        str, typer.Option("--wheels", metavar="DIR", help="Take packages from this folder: no network is used.")
    ] = "",
    interpreter: Annotated[
        str,
        typer.Option(
            "--interpreter",
            metavar="PATH",
            help="What compiles the files; of the version of --python.",
            show_default="one of that version, if found",
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Make functions into zips: what each needs and no more, pinned, hashed, compiled, and the same bytes every time.

    Writes DIR/HOST/FUNCTION.zip, its bill of materials FUNCTION.cdx.json (CycloneDX), and SHA256SUMS. Packages are
    those of infra/requirements, fetched by pip with --require-hashes. The zips' handler is `handler.handler`.

    Exit status: 0 written, 2 an option is wrong or a wheel is missing, 3 packages could not be fetched, 12 a hash is
    not the pinned one or a bundle is over its limit. Where it is not 0, nothing was written.
    """
    from costguard.cli.operate.bundling.build import build
    from costguard.cli.operate.bundling.locks import RefusedBundleError

    order = ordered(host, function, python=python, arch=arch, ledger=ledger, wheels=wheels, interpreter=interpreter)
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        message = f"--out {out}: not a folder"
        raise InvalidInputError(message)
    try:
        with waiting(f"Bundling {len(order.recipes)} for {host}"):
            bundles = build(order, folder)
    except RefusedBundleError as err:
        complain(err)
        raise typer.Exit(Exit.REFUSED) from err
    except OSError as err:
        message = f"{err.filename or out}: cannot be written: {err.strerror}"
        raise InvalidInputError(message) from err
    compiled = order.interpreter is not None
    data = {
        "schema": 1,
        "host": host,
        "python": order.recipes[0].python,
        "arch": arch,
        "ledger": order.recipes[0].ledger.value,
        "compiled_with": order.interpreter.version if order.interpreter is not None else None,
        "bundles": [
            {
                "function": one.recipe.function,
                "path": str(one.path),
                "sha256": one.sha256,
                "zipped_bytes": one.zipped,
                "zipped_limit_bytes": one.recipe.zipped_limit,
                "unzipped_bytes": one.unzipped,
                "packages": one.packages,
            }
            for one in bundles
        ],
    }
    emit(CommandResult(data, tables=[_table(bundles)], closing=_remarks(order, compiled=compiled)), as_json=as_json)


def ordered(
    host: str,
    function: str = "",
    *,
    python: str = "",
    arch: str = "x86_64",
    ledger: str = "",
    wheels: str = "",
    interpreter: str = "",
) -> Order:
    """What was asked for, understood.

    Raises:
        InvalidInputError: an option is wrong.
    """
    from costguard.cli.operate.bundling.build import Order
    from costguard.cli.operate.bundling.compiling import find_interpreter, named_interpreter
    from costguard.cli.operate.bundling.recipes import (
        Arch,
        LedgerKind,
        Recipe,
        check_python,
        find_material,
        host_recipe,
    )

    recipe = host_recipe(host)
    try:
        processor, kind = Arch(arch), LedgerKind(ledger) if ledger else recipe.ledger
    except ValueError as err:
        message = f"{err}: --arch is x86_64 or arm64, --ledger is dynamodb or sql"
        raise InvalidInputError(message) from err
    minor = check_python(recipe, python, processor)
    if wheels and not Path(wheels).is_dir():
        message = f"--wheels {wheels}: no such folder"
        raise InvalidInputError(message)
    material = find_material()
    if function:
        material.files_of(function)
    functions = (function,) if function else material.names()
    return Order(
        material,
        [Recipe(recipe, name, minor, processor, kind) for name in functions],
        named_interpreter(interpreter, minor) if interpreter else find_interpreter(minor),
        Path(wheels) if wheels else None,
    )


def _table(bundles: Sequence[Bundle]) -> Table:
    from costguard.report.tables import Column, Table

    columns = (
        Column("function", "Function"),
        Column("zipped", "Zip, MB", numeric=True),
        Column("limit", "of at most", numeric=True),
        Column("unzipped", "Unpacked, MB", numeric=True),
        Column("packages", "Packages", numeric=True),
        Column("path", "Written"),
    )
    rows = tuple(
        (
            one.recipe.function,
            f"{one.zipped / _MEGABYTE:.1f}",
            f"{one.recipe.zipped_limit / _MEGABYTE:.0f}",
            f"{one.unzipped / _MEGABYTE:.1f}",
            str(one.packages),
            str(one.path),
        )
        for one in bundles
    )
    about = bundles[0].recipe
    return Table(f"Bundles for {about.host.name}, Python {about.python}, {about.arch.value}", columns, rows)


def _remarks(order: Order, *, compiled: bool) -> list[str]:
    """What people should know of these bundles."""
    about = order.recipes[0]
    remarks = []
    if not compiled:
        remarks.append(
            f"Not compiled: no Python {about.python} is here. They run, and start slower, on SCF two to three times as "
            "slow: install one, or name it with --interpreter, and build again."
        )
    if about.python not in about.host.pythons:
        remarks.append(
            f"{about.host.name} has no runtime for Python {about.python}: these are for container images "
            "(docs/bundles.md)."
        )
    return remarks
