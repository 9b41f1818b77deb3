"""`costguard report`: the whole state on one page that needs no network, or as JSON, from what the runs left behind."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costguard.cli.exits import Exit
from costguard.cli.files import write_file
from costguard.cli.options import Json, Lang, LedgerUrl, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import CliContext, ledger_in_use, ledger_read_only, workplace
from costguard.cli.progress import shard_progress
from costguard.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from costguard.engine.ledger.memory import Memory
    from costguard.engine.run.snapshots import Looked
    from costguard.report.facts import ReportFacts

REPORT_EXAMPLES = examples(
    "costguard report --html report.html",
    "costguard report --html report.html --look --policy policies/ --lang zh",
    "costguard report --json --owner research",
)


def report(
    ctx: typer.Context,
    *,
    html: Annotated[
        str, typer.Option("--html", metavar="FILE", help="Write the whole report as one page without any links.")
    ] = "",
    days: Annotated[
        int, typer.Option("--days", min=1, max=366, help="How many days back savings and refusals are told.")
    ] = 30,
    owner: Annotated[str, typer.Option("--owner", metavar="NAME", help="Only what is this owner's.")] = "",
    look: Annotated[
        bool, typer.Option("--look", help="Look at the clouds now instead of telling what the last runs saw.")
    ] = False,
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Tell what was saved, what is still wasted, where budgets stand, what was held, and what nobody saw.

    From the ledger alone: what the last runs kept of what they saw. No cloud is asked, and nothing is written but the
    file. With `--look`, and in a sandbox without a ledger, the clouds are looked at now, as `costguard plan` does.

    Exit status: 0 done, 11 something could not be read.
    """
    if html and not Path(html).parent.is_dir():  # said before minutes of reading, not after
        message = f"{html}: cannot be written: No such file or directory"
        raise InvalidInputError(message)
    looks = look or (sandbox and not ledger)
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger, cloud=looks) as here:
        facts = _facts(here, timedelta(days=days), owner, look=looks)
        answer = _answer(here, facts, html)
    emit(answer, as_json=as_json)


def _facts(here: CliContext, back: timedelta, owner: str, *, look: bool) -> ReportFacts:
    from costguard.engine.digest import of_owner, report_facts

    now = here.clock.now()
    with ledger_read_only(here) if look else ledger_in_use(here) as memory:
        taken = tuple(_taken(here, memory)) if look else ()
        facts = report_facts(memory, now - back, now, taken=taken)
    if owner and owner not in facts.owners:
        there = f"; there is {', '.join(facts.owners)}" if facts.owners else ""
        message = f"--owner: nothing is known of {owner!r}{there}"
        raise InvalidInputError(message)
    return of_owner(facts, owner) if owner else facts


def _taken(here: CliContext, memory: Memory) -> Iterator[Looked]:
    from costguard.bootstrap import open_run_context, read_policy
    from costguard.engine.digest import look_now
    from costguard.policy.sections import guards_in

    policy = read_policy(here.settings)
    for guard in guards_in(policy):
        with (
            open_run_context(
                here.settings, guard, policy=policy, memory=memory, clock=here.clock, may_act=False
            ) as world,
            shard_progress("Reading") as step,
        ):
            yield look_now(world, progress=step)


def _answer(here: CliContext, facts: ReportFacts, html: str) -> CommandResult:
    from costguard.connections.people import drawing
    from costguard.report.page.headline import cards, changes
    from costguard.report.page.page import report_page
    from costguard.report.page.to_json import report_json
    from costguard.report.policy.provenance import decided_lines
    from costguard.report.words.sentences import in_digest as say

    language = here.language
    lines = []
    for card in cards(facts, language):
        lines.append(f"{card.title}: {' + '.join(card.figures)}")
        lines.extend(f"  {line}" for line in card.lines)
    lines += changes(facts, language) if facts.before is not None else ()
    closing = list(decided_lines(facts.policies, language))
    if html:
        page = report_page(facts, language, drawing())
        write_file(html, page)
        closing.append(say("report_written", language, file=html, kib=len(page.encode()) // 1024 + 1))
    status = Exit.GAPS if facts.gaps else Exit.OK
    return CommandResult(report_json(facts, language), lines=tuple(lines), closing=tuple(closing), exit=status)
