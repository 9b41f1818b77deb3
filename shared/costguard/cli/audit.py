"""`costguard audit verify`: does the audit still hold together."""

from __future__ import annotations

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import Json, Lang, LedgerUrl, Sandbox, examples
from costguard.cli.output import Answer, emit
from costguard.cli.program import ledger_in_use, workplace
from costguard.report.words import phrase

app = typer.Typer(help="Look at the audit.", no_args_is_help=True)


@app.callback()
def audit() -> None:
    """Look at the audit."""


VERIFY_EXAMPLES = examples(
    "costguard audit verify --ledger sqlite:///costguard.sqlite3",
)


@app.command(epilog=VERIFY_EXAMPLES)
def verify(
    ctx: typer.Context,
    *,
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Read the whole audit again: every chain against itself, its head and the run that anchored it.

    Exit status: 0 it is whole, 14 something was changed, removed or added; each place is named.
    """
    with workplace(ctx, lang=lang, sandbox=sandbox, ledger=ledger, cloud=False) as here:
        from costguard.engine.repositories.audit_verify import verify as verified

        with ledger_in_use(here) as memory:
            found = verified(memory.store)
        total = phrase("audit_whole", here.language, entries=found.entries, chains=found.chains)
        if found.problems:
            total = phrase("audit_broken", here.language, entries=found.entries, problems=len(found.problems))
    emit(
        Answer(
            {
                "schema": 1,
                "whole": not found.problems,
                "entries": found.entries,
                "chains": found.chains,
                "problems": list(found.problems),
            },
            lines=(*found.problems, total),
            exit=Exit.BROKEN if found.problems else Exit.OK,
        ),
        as_json=as_json,
    )
