"""`costguard deploy`: bundles, a Terraform plan, a look at it, and only then what it says."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import Json, examples
from costguard.cli.output import CommandResult, complain, emit, show
from costguard.cli.progress import waiting
from costguard.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from costguard.cli.operate.deploying.changes import Changed
    from costguard.report.tables import Table

DEPLOY_EXAMPLES = examples(
    "costguard deploy aws --var region=eu-central-1",
    "costguard deploy alibaba --var-file production.tfvars --plan-only",
    "costguard deploy tencent --var-file production.tfvars --yes --json",
)
_HOSTS = {"aws": "lambda", "alibaba": "fc", "tencent": "scf"}


def deploy(
    cloud: Annotated[str, typer.Argument(metavar="CLOUD", help="aws, alibaba or tencent.")],
    *,
    var: Annotated[
        list[str] | None,
        typer.Option("--var", metavar="NAME=VALUE", help="A variable of the module; may be given again."),
    ] = None,
    var_file: Annotated[
        list[str] | None,
        typer.Option("--var-file", metavar="FILE", help="Variables of the module; may be given again."),
    ] = None,
    infra: Annotated[
        str,
        typer.Option(
            "--infra", metavar="DIR", help="The folder of the modules.", show_default="infra of this checkout"
        ),
    ] = "",
    build: Annotated[str, typer.Option("--build", metavar="DIR", help="Where bundles are written.")] = "build",
    bundles: Annotated[
        str, typer.Option("--bundles", metavar="DIR", help="Take bundles that were built before: DIR/FUNCTION.zip.")
    ] = "",
    arch: Annotated[str, typer.Option("--arch", metavar="ARCH", help="x86_64, or on aws arm64.")] = "x86_64",
    terraform: Annotated[
        str, typer.Option("--terraform", metavar="PROGRAM", help="Terraform, or a program like it, such as tofu.")
    ] = "terraform",
    plan_only: Annotated[bool, typer.Option("--plan-only", help="Show what would change, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    lose_memory: Annotated[
        bool, typer.Option("--lose-memory", help="Even where the ledger or published policies would be destroyed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Deploy Costguard into one cloud: build the bundles, show what Terraform would change, ask, and do that.

    Terraform's own words go to standard error. A plan that would destroy the ledger or the bucket of published
    policies is refused, since every wait would begin anew. Nothing enforces before the policy says so.

    Exit status: 0 done or nothing to change, 2 an option is wrong or nobody was there to agree, 3 Terraform failed,
    10 with --plan-only: something would change, 12 refused or not agreed to, and nothing was changed.
    """
    from costguard.cli.operate.deploying.changes import changes_in
    from costguard.cli.operate.deploying.terraform import Terraform, TerraformError

    if cloud not in _HOSTS:
        message = f"there is no cloud {cloud!r} to deploy to; there is {', '.join(_HOSTS)}"
        raise InvalidInputError(message)
    if not (yes or plan_only or sys.stdin.isatty()):
        message = "nobody is at the keyboard to agree: add --yes, or --plan-only to change nothing"
        raise InvalidInputError(message)
    program = Terraform.found(terraform, _module(infra, cloud))
    zips = _existing(bundles) if bundles else _built(_HOSTS[cloud], Path(build), arch)
    variables = [f"-var=bundles={zips}"]
    if cloud == "aws":
        variables.append(f"-var=architecture={arch}")
    variables += [f"-var-file={_existing(file)}" for file in var_file or ()]
    variables += [f"-var={_assignment(each)}" for each in var or ()]
    try:
        with TemporaryDirectory(prefix="costguard-plan-") as private:  # a plan may hold what nobody else should read
            plan = Path(private) / "plan"
            program.make_ready()
            if not program.plan(plan, variables):
                emit(_nothing(cloud, program.outputs()), as_json=as_json)
            changed = changes_in(program.planned(plan))
            told = _told(cloud, changed)
            if plan_only:
                emit(
                    CommandResult(told, tables=[_table(cloud, changed)], closing=[_counted(changed)], exit=Exit.DUE),
                    as_json=as_json,
                )
            lost = [one.address for one in changed if one.loses_memory]
            if lost and not lose_memory:
                refusal = f"this would destroy what Costguard remembers: {', '.join(lost)}; nothing was changed"
                emit(_refused(told, _table(cloud, changed), refusal), as_json=as_json)
            if not yes:
                show(CommandResult(told, tables=[_table(cloud, changed)], closing=[_counted(changed)]))
                if not typer.confirm("Do exactly this?"):
                    emit(_refused(told, None, "Not agreed to; nothing was changed."), as_json=as_json)
            program.apply(plan)
            emit(_done(told, changed, program.outputs()), as_json=as_json)
    except TerraformError as err:
        complain(err)
        raise typer.Exit(Exit.UNAVAILABLE) from err


def _module(infra: str, cloud: str) -> Path:
    import costguard

    return (Path(infra) if infra else Path(costguard.__file__).parents[2] / "infra") / cloud


def _existing(path: str) -> Path:
    found = Path(path).resolve()
    if not found.exists():
        message = f"{path}: not there"
        raise InvalidInputError(message)
    return found


def _assignment(text: str) -> str:
    name, equals, _ = text.partition("=")
    if not equals or not name.isidentifier():
        message = f"--var {text}: expected NAME=VALUE, such as region=eu-central-1"
        raise InvalidInputError(message)
    return text


def _built(host: str, out: Path, arch: str) -> Path:
    """The folder that holds the bundles of every function, built anew."""
    from costguard.cli.operate.bundle import ordered
    from costguard.cli.operate.bundling.build import build

    order = ordered(host, arch=arch)
    with waiting(f"Bundling {len(order.recipes)} for {host}"):
        build(order, out)
    return (out / host).resolve()


def _told(cloud: str, changed: Iterable[Changed]) -> dict[str, Any]:
    return {
        "schema": 1,
        "cloud": cloud,
        "changes": [
            {"address": one.address, "change": one.change.value, "loses_memory": one.loses_memory} for one in changed
        ],
        "applied": False,
        "outputs": {},
    }


def _table(cloud: str, changed: Sequence[Changed]) -> Table:
    from costguard.report.tables import Column, Table

    columns = (Column("change", "Change"), Column("address", "Resource"), Column("memory", ""))
    rows = tuple((one.change.value, one.address, "holds memory" if one.loses_memory else "") for one in changed)
    return Table(f"What would change on {cloud}", columns, rows)


def _counted(changed: Sequence[Changed]) -> str:
    from collections import Counter

    counts = Counter(one.change.value for one in changed)
    return ", ".join(f"{count} to {what}" for what, count in sorted(counts.items())) + "."


def _nothing(cloud: str, outputs: Mapping[str, Any]) -> CommandResult:
    return CommandResult({**_told(cloud, ()), "outputs": outputs}, lines=["Nothing would change.", *_next(outputs)])


def _refused(told: Mapping[str, Any], table: Table | None, why: str) -> CommandResult:
    return CommandResult(told, tables=[table] if table is not None else [], closing=[why], exit=Exit.REFUSED)


def _done(told: Mapping[str, Any], changed: Sequence[Changed], outputs: Mapping[str, Any]) -> CommandResult:
    return CommandResult(
        {**told, "applied": True, "outputs": outputs}, lines=[f"Done: {_counted(changed)}"], closing=_next(outputs)
    )


def _next(outputs: Mapping[str, Any]) -> list[str]:
    """What is left to do, with the values to do it with."""
    lines = []
    source, ledger, answers = (outputs.get(name) for name in ("policy_source", "ledger", "answer_url"))
    if isinstance(source, str) and isinstance(ledger, str) and source and ledger:
        with_password = "ledger_from_desk" in outputs  # its address is the networks' own, and lacks the password
        there = "" if with_password else f" --ledger '{ledger}'"
        lines += ["Set COSTGUARD_LEDGER first, as the page on deploying says."] if with_password else []
        lines += [
            f"Publish a policy: costguard policy publish DIR --to '{source}'{there} --by NAME",
            f"Then ask whether all is well: costguard doctor --policy '{source}'{there}",
        ]
    if isinstance(answers, str) and answers:
        lines.append(f"Slack's requests go to: {answers.rstrip('/')}/slack")
    return lines
