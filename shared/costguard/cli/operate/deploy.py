"""`costguard deploy`: bundles, a Terraform plan, a look at it, and only then what it says."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import Json, Lang, examples
from costguard.cli.output import CommandResult, complain, emit, show
from costguard.cli.program import Program
from costguard.cli.progress import waiting
from costguard.domain.errors import InvalidInputError
from costguard.report.words.sentences import Language

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from costguard.cli.operate.deploying.changes import Changed
    from costguard.cli.operate.deploying.terraform import Terraform
    from costguard.estimates.upkeep import Assumed, Upkeep
    from costguard.report.tables import Table

DEPLOY_EXAMPLES = examples(
    "costguard deploy aws --cost --machines 40 --cards 8",
    "costguard deploy aws --var region=eu-central-1",
    "costguard deploy alibaba --var-file production.tfvars --plan-only",
    "costguard deploy tencent --var-file production.tfvars --yes --json",
)
_HOSTS = {"aws": "lambda", "alibaba": "fc", "tencent": "scf"}


def deploy(
    ctx: typer.Context,
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
    cost: Annotated[
        bool, typer.Option("--cost", help="Only say what Costguard itself costs a month; no cloud is asked.")
    ] = False,
    machines: Annotated[int, typer.Option("--machines", metavar="N", help="For the cost: GPU machines guarded.")] = 20,
    cards: Annotated[int, typer.Option("--cards", metavar="N", help="For the cost: cards of a machine.")] = 1,
    budgets: Annotated[int, typer.Option("--budgets", metavar="N", help="For the cost: budgets held.")] = 1,
    run_seconds: Annotated[
        int, typer.Option("--run-seconds", metavar="N", help="For the cost: how long a run takes, up to 900.")
    ] = 60,
    backend: Annotated[
        bool | None,
        typer.Option(
            "--backend/--no-backend",
            help="Keep Terraform's state in an encrypted, locked bucket of the account, made where it is missing.",
            show_default="asks",
        ),
    ] = None,
    lang: Lang = None,
    as_json: Json = False,
) -> None:
    """Deploy Costguard into one cloud: build the bundles, show what Terraform would change, ask, and do that.

    Terraform's own words go to standard error. A plan that would destroy the ledger or the bucket of published
    policies is refused, since every wait would begin anew. Nothing enforces before the policy says so. What it costs
    a month, at list price, is said before you agree; with --cost that is all. Before the first deployment it offers to
    keep Terraform's state in a bucket of the account; a state that is there already is moved.

    Exit status: 0 done or nothing to change, 2 an option is wrong or nobody was there to agree, 3 Terraform failed,
    10 with --plan-only: something would change, 12 refused or not agreed to, and nothing was changed.
    """
    from costguard.cli.operate.deploying.terraform import Terraform

    if cloud not in _HOSTS:
        message = f"there is no cloud {cloud!r} to deploy to; there is {', '.join(_HOSTS)}"
        raise InvalidInputError(message)
    given = [_assignment(each) for each in var or ()]
    files = [_existing(file) for file in var_file or ()]
    chosen = _Chosen(
        cloud,
        _assumed(machines, cards, budgets, run_seconds),
        _language(ctx, lang),
        plan_only,
        yes,
        lose_memory,
        as_json,
    )
    if cost:
        _say_cost(chosen, _module(infra, cloud), terraform, files, given)
    if not (yes or plan_only or sys.stdin.isatty()):
        message = "nobody is at the keyboard to agree: add --yes, or --plan-only to change nothing"
        raise InvalidInputError(message)
    program = Terraform.found(terraform, _module(infra, cloud))
    if backend and plan_only:
        message = "--backend makes a bucket, and --plan-only changes nothing: give one of them"
        raise InvalidInputError(message)
    if not plan_only and _wanted(program.module, backend=backend, yes=yes):
        with _failing_as_terraform():
            _keep_state(program, cloud, files, given)
    zips = _existing(bundles) if bundles else _built(_HOSTS[cloud], Path(build), arch)
    variables = [f"-var=bundles={zips}"]
    if cloud == "aws":
        variables.append(f"-var=architecture={arch}")
    variables += [f"-var-file={file}" for file in files]
    variables += [f"-var={each}" for each in given]
    with _failing_as_terraform():
        _carry_out(program, variables, chosen)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What the options say of how it is done and told."""

    cloud: str
    assumed: Assumed
    language: Language
    plan_only: bool
    yes: bool
    lose_memory: bool
    as_json: bool


@contextmanager
def _failing_as_terraform() -> Iterator[None]:
    """Where Terraform fails, which it tells by itself, the command ends with the status for that."""
    from costguard.cli.operate.deploying.terraform import TerraformError

    try:
        yield
    except TerraformError as err:
        complain(err)
        raise typer.Exit(Exit.UNAVAILABLE) from err


def _carry_out(program: Terraform, variables: Sequence[str], chosen: _Chosen) -> None:
    """Plan, show what it would change and cost, ask, and apply that very plan."""
    from costguard.cli.operate.deploying.changes import changes_in
    from costguard.cli.operate.deploying.upkeep import upkeep
    from costguard.cli.operate.deploying.variables import variables_of
    from costguard.report.savings.upkeep import upkeep_lines, upkeep_table

    cloud, language, as_json = chosen.cloud, chosen.language, chosen.as_json
    with TemporaryDirectory(prefix="costguard-plan-") as private:  # a plan may hold what nobody else should read
        plan = Path(private) / "plan"
        program.make_ready()
        if not program.plan(plan, variables):
            emit(_nothing(cloud, program.outputs()), as_json=as_json)
        planned = program.planned(plan)
        changed = changes_in(planned)
        costs = upkeep(cloud, _functions(program.module), variables_of(planned), chosen.assumed)
        told = _told(cloud, changed, costs, language)
        tables = [_table(cloud, changed), upkeep_table(costs, language)]
        closing = [*upkeep_lines(costs, language), _counted(changed)]
        if chosen.plan_only:
            emit(CommandResult(told, tables=tables, closing=closing, exit=Exit.DUE), as_json=as_json)
        lost = [one.address for one in changed if one.loses_memory]
        if lost and not chosen.lose_memory:
            refusal = f"this would destroy what Costguard remembers: {', '.join(lost)}; nothing was changed"
            emit(_refused(told, _table(cloud, changed), refusal), as_json=as_json)
        if not chosen.yes:
            show(CommandResult(told, tables=tables, closing=closing))
            if not typer.confirm("Do exactly this?"):
                emit(_refused(told, None, "Not agreed to; nothing was changed."), as_json=as_json)
        program.apply(plan)
        emit(_done(told, changed, program.outputs()), as_json=as_json)


def _wanted(module: Path, *, backend: bool | None, yes: bool) -> bool:
    """Whether its state is to be moved into a bucket: as the option says, else as somebody answers.

    Raises:
        InvalidInputError: the option says so, and the module has a place of its own.
    """
    from costguard.cli.operate.deploying.backend import FILE, declared_in

    where = declared_in(module)
    if where and backend and where != FILE:
        message = f"{module / where} says already where its state is kept: that stays; leave --backend out"
        raise InvalidInputError(message)
    if where or backend is not None:
        return bool(backend)
    if yes:
        told = "The state of this deployment is kept in a file beside its module; --backend keeps it in a bucket."
        typer.echo(told, err=True)
        return False
    return typer.confirm(
        "Keep Terraform's state in an encrypted, locked bucket of this account?", default=True, err=True
    )


def _keep_state(program: Terraform, cloud: str, files: Sequence[Path], given: Sequence[str]) -> None:
    from costguard.cli.operate.deploying.backend import keep_in_bucket
    from costguard.cli.operate.deploying.variables import variables_given

    backend = keep_in_bucket(program, cloud, variables_given(program.program, program.module, files, given))
    typer.echo(f"Terraform's state is kept in {backend.kind}://{backend.bucket}/{backend.arguments['key']}", err=True)


def _assumed(machines: int, cards: int, budgets: int, run_seconds: int) -> Assumed:
    from datetime import timedelta

    from costguard.estimates.upkeep import Assumed

    return Assumed(machines, cards, budgets, timedelta(seconds=run_seconds))


def _language(ctx: typer.Context, lang: Language | None) -> Language:
    program = ctx.obj if isinstance(ctx.obj, Program) else Program()
    return lang if lang is not None else Language(program.settings().language)


def _say_cost(chosen: _Chosen, module: Path, terraform: str, files: Sequence[Path], given: Sequence[str]) -> NoReturn:
    from costguard.cli.operate.deploying.terraform import check_module
    from costguard.cli.operate.deploying.upkeep import upkeep
    from costguard.cli.operate.deploying.variables import variables_given
    from costguard.report.savings.upkeep import upkeep_json, upkeep_lines, upkeep_table

    check_module(module)
    with _failing_as_terraform():
        variables = variables_given(terraform, module, files, given)
    costs = upkeep(chosen.cloud, _functions(module), variables, chosen.assumed)
    tables, closing = [upkeep_table(costs, chosen.language)], upkeep_lines(costs, chosen.language)
    told = upkeep_json(costs, chosen.language)
    emit(CommandResult(told, tables=tables, closing=closing), as_json=chosen.as_json)


def _functions(module: Path) -> Path:
    """The folder whose function.yaml files the module reads."""
    return module.parents[1] / "functions"


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


def _told(
    cloud: str, changed: Iterable[Changed], costs: Upkeep | None = None, language: Language = Language.EN
) -> dict[str, Any]:
    from costguard.report.savings.upkeep import upkeep_json

    return {
        "schema": 1,
        "cloud": cloud,
        "changes": [
            {"address": one.address, "change": one.change.value, "loses_memory": one.loses_memory} for one in changed
        ],
        "applied": False,
        "outputs": {},
        "cost": upkeep_json(costs, language) if costs is not None else None,
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
