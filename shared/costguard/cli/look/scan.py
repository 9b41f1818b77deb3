"""`costguard scan`: what idle accelerators cost, on read-only credentials and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costguard.cli.exits import Exit
from costguard.cli.files import STDOUT, write_csv, write_file
from costguard.cli.options import Json, Lang, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import CliContext, workplace
from costguard.cli.progress import shard_progress
from costguard.domain.errors import InvalidInputError, UnavailableError
from costguard.report.words.sentences import Language, phrase
from costguard.report.words.sentences import gap as gap_words

if TYPE_CHECKING:
    from costguard.domain.backtests import Reclaimed
    from costguard.domain.refs import ResourceRef
    from costguard.domain.resources import Gap, Instance
    from costguard.domain.signals import SignalReading
    from costguard.policy.model.policy import Policy
    from costguard.ports import CallCount, SignalReport, SignalSource, Target
    from costguard.report.waste.day_one import WasteReport


@dataclass(frozen=True, slots=True)
class _Where:
    """What the options say is to be scanned."""

    accounts: tuple[str, ...]
    regions: tuple[str, ...]
    role: str
    external_id: str
    organisation: bool

    @property
    def said(self) -> bool:
        """Whether they say anything at all."""
        return bool(self.accounts or self.regions or self.role or self.external_id or self.organisation)


SCAN_EXAMPLES = examples(
    "costguard scan",
    "costguard scan --organisation --role costguard-read --region us-east-1 --days 30",
    "costguard scan --csv idle.csv",
    "costguard scan --days 30 --html waste.html",
    "costguard scan --sandbox",
)


def scan(
    ctx: typer.Context,
    *,
    account: Annotated[
        list[str] | None,
        typer.Option("--account", metavar="ID", help="Scan this account; may be repeated.", show_default="own account"),
    ] = None,
    region: Annotated[
        list[str] | None,
        typer.Option("--region", metavar="NAME", help="Scan this region; may be repeated.", show_default="all"),
    ] = None,
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help="Assume this role (an ARN or a name) in other accounts.")
    ] = "",
    external_id: Annotated[
        str, typer.Option("--external-id", metavar="ID", help="ExternalId to send when assuming the role.")
    ] = "",
    organisation: Annotated[
        bool, typer.Option("--organisation", help="Also scan every account the organisation lists.")
    ] = False,
    days: Annotated[int, typer.Option("--days", min=1, max=63, help="How many days to look back.")] = 14,
    csv: Annotated[
        str, typer.Option("--csv", metavar="FILE", help="Write every instance as CSV; `-` is standard output.")
    ] = "",
    html: Annotated[
        str, typer.Option("--html", metavar="FILE", help="Write one page of print for who pays: see docs/report.md.")
    ] = "",
    policy: PolicyPath = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Show what idle accelerators cost, whose they are, and what could not be measured.

    Needs read-only credentials; no policy, no ledger, nothing deployed. Prepaid, reserved, autoscaled and
    Kubernetes machines are shown like any other. Ends with every operation that was called, as proof that
    none of them can change anything.
    """
    if csv == STDOUT and as_json:
        message = "--json and --csv - both want standard output; give --csv a file"
        raise InvalidInputError(message)
    for file in (csv, html):  # said before minutes of reading, not after
        if file not in ("", STDOUT) and not Path(file).parent.is_dir():
            message = f"{file}: cannot be written: No such file or directory"
            raise InvalidInputError(message)
    if html == STDOUT:
        raise InvalidInputError("--html: a page goes into a file")
    where = _Where(tuple(account or ()), tuple(region or ()), role, external_id, organisation)
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy) as here:
        report, use = _report(
            here, where, timedelta(days=days), own_policy=bool(policy) or not sandbox, keep_use=bool(html)
        )
    from costguard.report.waste.to_json import waste_json
    from costguard.report.waste.views import waste_summary, waste_tables

    closing = []
    if html:
        write_file(html, DayOne.of(report, use).page(here.language))
        closing.append(phrase("first_written", here.language, file=html))
    if csv:
        from costguard.report.waste.to_json import waste_rows

        write_csv(csv, waste_rows(report, here.language))
    if csv == STDOUT:
        raise typer.Exit(_status(report))
    emit(
        CommandResult(
            waste_json(report, here.language),
            lines=waste_summary(report, here.language),
            tables=waste_tables(report, here.language),
            closing=tuple(closing),
            exit=_status(report),
        ),
        as_json=as_json,
    )


@dataclass(frozen=True, slots=True)
class _Use:
    """What the page is made of beside the report: the policy's own terms, and what was measured of each machine."""

    policy: Policy
    histories: Mapping[ResourceRef, SignalReading]


@dataclass(slots=True)
class _Keeping:
    """Signals as they are read, and kept."""

    inner: SignalSource
    kept: dict[ResourceRef, SignalReading]

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        """As the source reads them."""
        report = self.inner.read(instances, since, until)
        self.kept.update(report.readings)
        return report


@dataclass(frozen=True, slots=True)
class DayOne:
    """What was read, and what the shipped rule would have reclaimed, by the use of so many machines."""

    report: WasteReport
    reclaimed: tuple[Reclaimed, ...]
    of_machines: int

    @classmethod
    def of(cls, report: WasteReport, use: _Use) -> DayOne:
        """By the shipped rule, under what the policy says of owners, protection and exceptions."""
        return _day_one(report, use)

    def page(self, language: Language) -> str:
        """The page of print."""
        from costguard.connections.people import drawing
        from costguard.report.waste.page import first_page

        return first_page(self.report, self.reclaimed, language, drawing(), of_machines=self.of_machines)


def day_one(here: CliContext, back: timedelta) -> DayOne:
    """All that the policy names, read now.

    Raises:
        UnavailableError: nothing could be read.
    """
    return DayOne.of(*_report(here, _Where((), (), "", "", organisation=False), back, own_policy=True, keep_use=True))


def _day_one(report: WasteReport, use: _Use) -> DayOne:
    from costguard.backtest import Machine, Run, lately
    from costguard.policy.model.policy import default_policy

    machines = [
        Machine(
            waste.fact.instance,
            waste.fact.rate,
            reading.histories,
            () if waste.fact.instance.launched_at is None else (Run(waste.fact.instance.launched_at),),
            waste.owner,
        )
        for waste in report.instances
        for reading in [use.histories.get(waste.ref)]
        if reading is not None and reading.histories
    ]
    shipped = replace(use.policy, idle_gpu=default_policy().idle_gpu)
    return DayOne(report, tuple(lately(shipped, machines, report.until)), len(machines))


def _report(
    here: CliContext, where: _Where, back: timedelta, *, own_policy: bool, keep_use: bool
) -> tuple[WasteReport, _Use]:
    from costguard.bootstrap import read_policy
    from costguard.connections import Connections
    from costguard.engine.run import scan as scanning
    from costguard.estimates.net_rates import with_net_rates
    from costguard.guards.rules.idle import shipped_bounds
    from costguard.planning import judge_all
    from costguard.report.waste.day_one import waste_report

    settings = here.settings if own_policy else replace(here.settings, policy="")
    policy = read_policy(settings)
    until = here.clock.now()
    with Connections(settings, policy, here.clock) as connections, shard_progress("Reading") as step:
        targets = _targets(here, policy, where)
        connections.open(targets)
        kept: dict[ResourceRef, SignalReading] = {}
        readings = {
            cloud: replace(readers, signals=_Keeping(readers.signals, kept)) if keep_use else readers
            for cloud, readers in connections.readings.items()
        }
        seen = scanning.scan(
            readings,
            targets,
            policy.idle_gpu,
            here.clock,
            lookback=scanning.Lookback(back, shipped_bounds(connections.signals_named)),
            progress=step,
        )
        calls = _added_up(call for ports in connections.clouds.values() for call in ports.calls.calls_made())
    if not seen.facts and seen.gaps:
        raise _no_answer(seen.gaps, here)
    facts = with_net_rates(seen.facts, policy.discounts, {}, until)
    report = waste_report(
        facts,
        judge_all(policy, facts, until),
        since=until - back,
        until=until,
        gaps=seen.gaps,
        calls=calls,
        policy_digest=policy.digest,
    )
    return report, _Use(policy, kept)


def _targets(here: CliContext, policy: Policy, where: _Where) -> Sequence[Target]:
    """What the options name, with what the policy knows of it; without options what the policy names."""
    from costguard.bootstrap import targets_of

    fresh = here.sandbox is not None and not policy.accounts
    known = here.sandbox.targets if here.sandbox is not None and fresh else targets_of(policy, here.settings)
    if not where.said:
        return known
    first = known[0]
    chosen: list[Target] = []
    for account in where.accounts or ("",):
        target = next((one for one in known if one.account == account), replace(first, account=account, owner=""))
        chosen.append(
            replace(
                target,
                regions=where.regions or target.regions,
                role=where.role or target.role,
                external_id=where.external_id or target.external_id,
                organisation=where.organisation or (target.organisation and not where.accounts),
            )
        )
    return chosen


def _added_up(calls: Iterable[CallCount]) -> list[CallCount]:
    """Clouds have some operations by the same name, such as `sts:AssumeRole`: one row each."""
    found: dict[tuple[str, str], CallCount] = {}
    for call in calls:
        row = (call.operation, call.permission)
        found[row] = replace(call, calls=call.calls + found[row].calls) if row in found else call
    return list(found.values())


def _no_answer(gaps: Sequence[Gap], here: CliContext) -> UnavailableError:
    return UnavailableError("nothing could be read\n" + "\n".join(gap_words(gap, here.language) for gap in gaps))


def _status(report: WasteReport) -> Exit:
    return Exit.GAPS if report.gaps else Exit.OK
