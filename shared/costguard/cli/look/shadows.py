"""`costguard shadows`: rules that decide nothing, and where they would differ from those that do."""

from __future__ import annotations

from typing import Annotated

import typer

from costguard.cli.options import Json, Lang, LedgerUrl, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import ledger_read_only, workplace

SHADOWS_EXAMPLES = examples(
    "costguard shadows",
    "costguard shadows --rule research-shorter --json",
)


def shadows(
    ctx: typer.Context,
    *,
    rule: Annotated[
        str, typer.Option("--rule", metavar="NAME", help="Only this rule.", show_default="every rule in the shadow")
    ] = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Show where the rules marked `shadow: true` differ from what is in force, as the last run saw it.

    For machines also what became of those that such a rule would have stopped: how many were in use again
    within 24 hours. Asks no cloud.
    """
    with workplace(ctx, lang=lang, sandbox=sandbox, ledger=ledger, cloud=False) as here:
        from costguard.engine.ledger.learned import ShadowRepository
        from costguard.report.plan.shadows import shadow_lines, shadow_tables, shadows_json
        from costguard.report.words.sentences import phrase

        with ledger_read_only(here) as memory:
            known = ShadowRepository(memory.store).all()
        found = [one for one in known if rule in {"", one.rule}]
        answer = CommandResult(
            shadows_json(found, here.language),
            lines=shadow_lines(found, here.language) or (phrase("shadow_none", here.language),),
            tables=shadow_tables(found, language=here.language),
        )
    emit(answer, as_json=as_json)
