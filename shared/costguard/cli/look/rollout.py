"""`costguard rollout`: how far each team and account has come, and what the next step waits for."""

from __future__ import annotations

from typing import Annotated

import typer

from costguard.cli.options import Json, Lang, LedgerUrl, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import ledger_read_only, workplace

ROLLOUT_EXAMPLES = examples(
    "costguard rollout --policy policies/",
    "costguard rollout --team nlp --json",
)


def rollout(
    ctx: typer.Context,
    *,
    team: Annotated[
        str, typer.Option("--team", metavar="NAME", help="Only entries of this team.", show_default="every entry")
    ] = "",
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Show for each entry of `rollout` the mode now, the next step with its day, its condition, and what holds it back.

    Asks no cloud.
    """
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger, cloud=False) as here:
        from costguard.bootstrap import read_policy
        from costguard.engine.run.run_context import rollout_now
        from costguard.report.plan.rollout import rollout_json, rollout_lines, rollout_table

        written = read_policy(here.settings, here.clock)
        with ledger_read_only(here) as memory:
            found = rollout_now(memory, written, here.clock.now()).standings
        found = tuple(one for one in found if team in {"", one.entry.team})
        zone = written.calendar.zone if written.calendar is not None else "UTC"
        answer = CommandResult(
            rollout_json(found, written.mode, here.language),
            lines=rollout_lines(found, here.language),
            tables=(rollout_table(found, written.mode, zone, here.language),) if found else (),
        )
    emit(answer, as_json=as_json)
