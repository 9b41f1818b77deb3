"""`costguard savings`: what was saved, as far as it was seen, and what each figure is made of. Asks no cloud."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from costguard.cli.files import STDOUT, write_csv
from costguard.cli.options import Json, Lang, LedgerUrl, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import CliContext, ledger_in_use, nothing_thrown_away, workplace
from costguard.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from costguard.domain.savings import SavingsReport
    from costguard.planning.realised import Realised
    from costguard.report.policy.provenance import DecidedBy
    from costguard.report.savings.views import Converted
    from costguard.report.words.sentences import Language

SAVINGS_EXAMPLES = examples(
    "costguard savings",
    "costguard savings --since 2026-10-01 --until 2026-11-01 --owner vision --json",
    "costguard savings --csv saved.csv --focus saved-focus.csv",
    "costguard savings --explain 3f9a1c5e7b2d4068a1b2c3d4",
)
_MONTHS_BACK = 12
_DATE = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d))?")


def savings(
    ctx: typer.Context,
    *,
    since: Annotated[
        str,
        typer.Option(
            "--since",
            metavar="DATE",
            help="From the begin of this day or month on, UTC: 2026-11-21 or 2026-11.",
            show_default="the last twelve months",
        ),
    ] = "",
    until: Annotated[
        str,
        typer.Option("--until", metavar="DATE", help="Up to the begin of this day or month, UTC.", show_default="now"),
    ] = "",
    owner: Annotated[
        str, typer.Option("--team", "--owner", metavar="NAME", help="Only what this owner's machines saved.")
    ] = "",
    guard: Annotated[
        str,
        typer.Option("--guard", metavar="NAME", help="Only what this guard did: idle_gpu, budget or network_audit."),
    ] = "",
    currency: Annotated[
        str,
        typer.Option(
            "--currency", metavar="CODE", help="One more total in this currency, by the policy's exchange rates."
        ),
    ] = "",
    explain: Annotated[
        str, typer.Option("--explain", metavar="ACTION", help="Show how the figures of one action come about.")
    ] = "",
    csv: Annotated[
        str, typer.Option("--csv", metavar="FILE", help="Write a row an action as CSV; `-` is standard output.")
    ] = "",
    focus: Annotated[
        str,
        typer.Option(
            "--focus",
            metavar="FILE",
            help="Write a row a machine and day in the columns of FOCUS as CSV; `-` is standard output.",
        ),
    ] = "",
    focus_version: Annotated[
        str, typer.Option("--focus-version", metavar="VERSION", help="The version of FOCUS to write: 1.2 or 1.3.")
    ] = "1.2",
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Show what stops, terminations and released addresses saved: predicted, realised, and what stays billed.

    Realised is what was seen: it ends where a machine was started again, replaced or not seen any more, and is less
    what stays billed. No hour of a machine is counted twice, and no currencies are added. Asks no cloud.
    """
    if [as_json, csv == STDOUT, focus == STDOUT].count(True) > 1:
        message = "only one of --json, --csv - and --focus - can have standard output; give the others a file"
        raise InvalidInputError(message)
    _check_version(focus_version)
    with (
        workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger, cloud=False) as here,
        nothing_thrown_away(),
    ):
        from costguard.engine.policy.in_force import decided_by
        from costguard.engine.savings import realised_now
        from costguard.report.savings.sums import report_of

        now = here.clock.now()
        begin, end = _begin(since, now), min(_moment(until, "--until") if until else now, now)
        if begin >= end:
            message = f"--since {since or begin.date()} is not before {until or 'now'}"
            raise InvalidInputError(message)
        with ledger_in_use(here) as memory:
            found, policies = realised_now(memory, now, owner=owner, guard=guard), decided_by(memory)
        if explain:
            answer = _explained(found, explain, here.language, now)
        else:
            report = report_of(found, begin, end, now)
            converted = _converted(here, report, currency) if currency else None
            answer = _answer(report, here.language, converted, policies)
            _write_tables(found, report, here.language, csv, (focus, focus_version))
    if STDOUT in {csv, focus} and not explain:
        raise typer.Exit(answer.exit)
    emit(answer, as_json=as_json)


def _answer(
    report: SavingsReport, language: Language, converted: Converted | None, policies: Sequence[DecidedBy]
) -> CommandResult:
    from costguard.report.policy.provenance import decided_lines
    from costguard.report.savings.to_json import savings_json
    from costguard.report.savings.views import savings_closing, savings_lines, savings_tables

    return CommandResult(
        savings_json(report, language, converted, policies),
        lines=tuple(savings_lines(report, language, converted)),
        tables=savings_tables(report, language),
        closing=(*savings_closing(report, language), *decided_lines(policies, language)),
    )


def _explained(found: Sequence[Realised], action_id: str, language: Language, now: datetime) -> CommandResult:
    from costguard.report.savings.sums import days_of, entry_of
    from costguard.report.savings.to_json import explained_json
    from costguard.report.savings.views import days_table, explained

    one = next((each for each in found if each.saving.action.action_id == action_id), None)
    if one is None:
        message = f"no action {action_id} saved anything that was seen; `costguard savings` names those that did"
        raise InvalidInputError(message)
    begin = one.saving.confirmed_at
    entry, days = entry_of(one, begin, now), tuple(days_of(one, begin, now))
    table = days_table(days, language)
    return CommandResult(
        explained_json(entry, days, language),
        lines=tuple(explained(entry, language)),
        tables=(table,) if table.rows else (),
    )


def _converted(here: CliContext, report: SavingsReport, currency: str) -> Converted:
    from costguard.bootstrap import read_policy
    from costguard.report.savings.views import converted_totals

    if not re.fullmatch(r"[A-Z]{3}", currency):
        message = f"--currency {currency}: expected a code such as USD or CNY"
        raise InvalidInputError(message)
    return converted_totals(report, currency, read_policy(here.settings).exchange_rates)


def _check_version(version: str) -> None:
    """Refuse a version of FOCUS that cannot be written, before anything is read.

    Raises:
        InvalidInputError: it is none of those.
    """
    from costguard.report.savings.focus import ADDED

    if version not in ADDED:
        message = f"--focus-version {version}: expected {' or '.join(ADDED)}"
        raise InvalidInputError(message)


def _write_tables(
    found: Sequence[Realised], report: SavingsReport, language: Language, csv: str, focus: tuple[str, str]
) -> None:
    from costguard.report.savings.focus import focus_rows
    from costguard.report.savings.to_json import savings_rows

    if csv:
        write_csv(csv, savings_rows(report, language))
    file, version = focus
    if file:
        write_csv(file, focus_rows(found, report.since, report.until, version))


def _begin(since: str, now: datetime) -> datetime:
    if since:
        return _moment(since, "--since")
    this_month = now.astimezone(timezone.utc).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    begin = this_month
    for _ in range(_MONTHS_BACK - 1):
        begin = (begin - timedelta(days=1)).replace(day=1)
    return begin


def _moment(text: str, option: str) -> datetime:
    """The begin of a day or month of UTC.

    Raises:
        InvalidInputError: it names none.
    """
    match = _DATE.fullmatch(text)
    try:
        if match is not None:
            year, month, day = (int(part) if part else 1 for part in match.groups())
            return datetime(year, month, day, tzinfo=timezone.utc)
    except ValueError:
        pass
    message = f"{option} {text}: expected a day or a month, such as 2026-11-21 or 2026-11"
    raise InvalidInputError(message)
