"""`costguard policy init`: a commented policy repository to begin with."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from costguard.cli.options import Json, Lang, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import workplace
from costguard.domain.errors import InvalidInputError
from costguard.report.words.sentences import phrase

INIT_EXAMPLES = examples(
    "costguard policy init gpu-policy/ --zone Asia/Shanghai",
    "costguard policy init gpu-policy/ --zone Europe/Berlin --force",
    "costguard policy init gpu-policy/ --zone none --wheel gpu_costguard-0.1.0-py3-none-any.whl",
)
_TEMPLATE = Path(__file__).parents[2] / "policy" / "starter"
_DOT = "dot-"  # names that begin with a dot are left out by too many tools
_SCHEMAS = ".schemas"
_LOCK = "ci/requirements.txt"
_MAIN = "costguard.yaml"
_MAY_RUN = 0o755


def init(
    ctx: typer.Context,
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Where to write it; made where it is not there.")],
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files that are there and say something else.")
    ] = False,
    zone: Annotated[
        str,
        typer.Option(
            "--zone",
            metavar="ZONE",
            help="The time zone of those who get notices: Asia/Shanghai. none: every hour counts.",
            show_default="left to be chosen in costguard.yaml",
        ),
    ] = "",
    wheel: Annotated[
        str, typer.Option("--wheel", metavar="FILE", help="The wheel of this release, whose hash CI insists on.")
    ] = "",
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Write a commented policy repository: it observes, and every key that is likely to be wanted stands there.

    With it come CODEOWNERS, checks for GitHub, GitLab and any other CI, tests of the policy, and schemas for editors.
    Files that are there and say something else are named, and nothing is written, unless --force is given.

    A calendar is asked for: with --zone it stands there; without, `policy check` refuses costguard.yaml until a zone,
    or calendar: none, is written there.

    CI installs from ci/requirements.txt alone, where each package is pinned and hashed. Without --wheel the hash of
    this program itself is missing there, and CI installs nothing until it is added; the file says how.
    """
    root, files = Path(folder), starter_files(wheel, zone)
    there = [name for name, text in files.items() if _differs(root / name, text)]
    if there and not force:
        message = f"{folder}: nothing was written; --force overwrites: {', '.join(there)}"
        raise InvalidInputError(message)
    for name, text in files.items():
        _write(root / name, text)
    with workplace(ctx, lang=lang) as here:
        language = here.language
    emit(
        CommandResult(
            {"schema": 1, "folder": folder, "written": sorted(files), "overwritten": sorted(there)},
            lines=tuple(phrase("policy_init_overwrote", language, file=name) for name in there),
            closing=(
                phrase("policy_init_done", language, count=len(files), folder=folder),
                *(() if zone else (phrase("policy_init_zone", language, file=f"{root / _MAIN}"),)),
                *(() if wheel else (phrase("policy_init_unhashed", language, file=f"{root / _LOCK}"),)),
            ),
        ),
        as_json=as_json,
    )


def starter_files(wheel: str = "", zone: str = "") -> Mapping[str, str]:
    """Every file of the starter by its path, schemas and what CI installs included; `wheel` is this release's.

    Raises:
        InvalidInputError: as `ci_requirements`, or no such zone.
    """
    from costguard.cli.operate.bundling.recipes import find_material
    from costguard.cli.operate.distribution import ci_requirements
    from costguard.policy.schema.documents import FILES, schema_of

    paths = sorted(path for path in _TEMPLATE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    files = {_named(path): path.read_text(encoding="utf-8") for path in paths}
    schemas = {
        f"{_SCHEMAS}/{file}.schema.json": json.dumps(schema_of(file), indent=2, ensure_ascii=False) + "\n"
        for file in FILES
        if file != "machine"
    }
    if zone:
        files[_MAIN] = _chosen(files[_MAIN], zone)
    return {**files, **schemas, _LOCK: ci_requirements(find_material().requirements, wheel)}


def _chosen(main: str, zone: str) -> str:
    """The starter's `costguard.yaml` with this zone, or with `calendar: none`."""
    from costguard.policy.syntax.problems import BadValueError
    from costguard.policy.syntax.time_values import UNCHOSEN
    from costguard.policy.syntax.time_values import zone as zone_of

    if zone == "none":
        return re.sub(r"^calendar:\n(?:  .*\n)+", "calendar: none\n", main, flags=re.MULTILINE)
    try:
        return main.replace(f"zone: {UNCHOSEN.upper()}\n", f"zone: {zone_of(zone)}\n")
    except BadValueError as err:
        message = f"--zone: {err.message}; {err.fix}"
        raise InvalidInputError(message) from err


def _named(path: Path) -> str:
    parts = path.relative_to(_TEMPLATE).parts
    return "/".join(f".{part.removeprefix(_DOT)}" if part.startswith(_DOT) else part for part in parts)


def _differs(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() != text.encode()
    except FileNotFoundError:
        return False
    except OSError as err:
        message = f"{path}: cannot be read: {err.strerror}"
        raise InvalidInputError(message) from err


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        if path.suffix == ".sh":
            path.chmod(_MAY_RUN)
    except OSError as err:
        message = f"{path}: cannot be written: {err.strerror}"
        raise InvalidInputError(message) from err
