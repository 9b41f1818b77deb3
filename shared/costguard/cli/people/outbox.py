"""`costguard outbox`: what people were not told yet, and what they never will be unless somebody helps."""

from __future__ import annotations

from typing import Annotated

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import Json, Lang, LedgerUrl, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import ledger_in_use, workplace

OUTBOX_EXAMPLES = examples(
    "costguard outbox",
    "costguard outbox --retry 4b1c0d9a5e2f",
)


def outbox(
    ctx: typer.Context,
    *,
    retry: Annotated[
        str, typer.Option("--retry", metavar="NOTICE", help="Send this dead notice again in the next run.")
    ] = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """List the notices that wait to be sent and those a channel refused for good, with the channel's own words.

    Nothing is stopped whose notice did not arrive. Exit status 13 where one was refused for good.
    """
    with workplace(ctx, lang=lang, sandbox=sandbox, ledger=ledger, cloud=False) as here:
        from costguard.report.notices.outbox import NoticeLine, outbox_json, outbox_tables
        from costguard.report.words.sentences import phrase

        with ledger_in_use(here) as memory:
            revived = memory.outbox.revive(retry, here.clock.now()) if retry else None
            pending, dead = memory.outbox.pending(), memory.outbox.dead()
        lines = [
            NoticeLine(
                notice_id=each.notice_id,
                channel=each.channel,
                title=each.title,
                created_at=each.created_at,
                attempts=each.attempts,
                next_attempt_at=each.next_attempt_at,
                error=each.last_error,
                dead=is_dead,
            )
            for is_dead, notices in ((False, pending), (True, dead))
            for each in notices
        ]
        said = [phrase("outbox_revived", here.language, notice=revived.notice_id)] if revived is not None else []
        if not lines:
            said.append(phrase("outbox_empty", here.language))
        answer = CommandResult(
            outbox_json(lines),
            lines=tuple(said),
            tables=outbox_tables(lines, here.language) if lines else (),
            exit=Exit.HELD if any(line.dead for line in lines) else Exit.OK,
        )
    emit(answer, as_json=as_json)
