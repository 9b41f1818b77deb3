"""`costguard audit`: does it still hold together, whom does it know, and what is it to forget."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import Json, Lang, LedgerUrl, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import ledger_in_use, nothing_thrown_away, workplace
from costguard.domain.errors import InvalidInputError
from costguard.report.words.sentences import phrase

app = typer.Typer(help="Look at the audit, and let it forget.", no_args_is_help=True)
Yes = Annotated[bool, typer.Option("--yes", help="Do it; without this it only shows what would be done.")]


@app.callback()
def audit() -> None:
    """Look at the audit, and let it forget."""


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

    And against what was done: every intent and outcome in the ledger has its entry, and every entry its intent.

    Exit status: 0 it is whole, 14 something was changed, removed or added; each place is named.
    """
    with workplace(ctx, lang=lang, sandbox=sandbox, ledger=ledger, cloud=False) as here:
        from costguard.engine.ledger.audit.verify import verify as verified

        with ledger_in_use(here) as memory, nothing_thrown_away():
            found = verified(memory.store)
        total = phrase("audit_whole", here.language, entries=found.entries, chains=found.chains, intents=found.intents)
        if found.problems:
            total = phrase("audit_broken", here.language, entries=found.entries, problems=len(found.problems))
    emit(
        CommandResult(
            {
                "schema": 1,
                "whole": not found.problems,
                "entries": found.entries,
                "chains": found.chains,
                "intents": found.intents,
                "problems": list(found.problems),
            },
            lines=(*found.problems, total),
            exit=Exit.BROKEN if found.problems else Exit.OK,
        ),
        as_json=as_json,
    )


PEOPLE_EXAMPLES = examples(
    "costguard audit people --ledger sqlite:///costguard.sqlite3",
)


@app.command(epilog=PEOPLE_EXAMPLES)
def people(
    ctx: typer.Context,
    *,
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Show whose key is whose: entries name people by keys, and this is the only place that tells who they are."""
    with workplace(ctx, lang=lang, sandbox=sandbox, ledger=ledger, cloud=False) as here:
        from costguard.engine.ledger.audit.forget import known_people

        with ledger_in_use(here) as memory:
            known = list(known_people(memory.store))
        language = here.language
    lines = [
        f"{key}  {' '.join((person.id, *person.names)) or phrase('audit_forgotten_person', language)}"
        for key, person in known
    ]
    rows = [
        {
            "key": key,
            "id": person.id,
            "names": list(person.names),
            "forgotten_at": person.forgotten_at.isoformat() if person.forgotten_at is not None else None,
        }
        for key, person in known
    ]
    emit(
        CommandResult({"schema": 1, "people": rows}, lines=lines or [phrase("audit_nobody", language)]), as_json=as_json
    )


FORGET_EXAMPLES = examples(
    "costguard audit forget U0123ABCD",
    "costguard audit forget person:7 --yes",
)


@app.command(epilog=FORGET_EXAMPLES)
def forget(
    ctx: typer.Context,
    person: Annotated[str, typer.Argument(metavar="PERSON", help="By key, Slack id, name or mail address.")],
    *,
    yes: Yes = False,
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Erase who somebody is: ids, names, and what they gave as reasons. The audit keeps their key and stays whole.

    What they said and others still wait for is withdrawn. Notices sent already, logs, backups and the policy are
    elsewhere and stay as they are.

    Exit status: 0 forgotten, 10 they would be (without --yes).
    """
    with workplace(ctx, lang=lang, sandbox=sandbox, ledger=ledger, cloud=False) as here:
        from costguard.engine.ledger.audit.forget import find_person
        from costguard.engine.ledger.audit.forget import forget as forgotten

        with ledger_in_use(here) as memory:
            key, who = find_person(memory.store, person)
            records = forgotten(memory.store, key, here.clock.now()).records if yes else None
        said = phrase("audit_would_forget", here.language, person=key, who=" ".join((who.id, *who.names)))
        if records is not None:
            said = phrase("audit_forgot", here.language, person=key, records=records)
    data = {"schema": 1, "key": key, "forgotten": yes, "records": records}
    emit(CommandResult(data, lines=(said,), exit=Exit.OK if yes else Exit.DUE), as_json=as_json)


PRUNE_EXAMPLES = examples(
    "costguard audit prune --older-than 400d",
    "costguard audit prune --older-than 400d --yes",
)


@app.command(epilog=PRUNE_EXAMPLES)
def prune(
    ctx: typer.Context,
    *,
    older_than: Annotated[str, typer.Option("--older-than", metavar="LENGTH", help="Such as 400d; at least 90d.")],
    yes: Yes = False,
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Erase what happened in runs that finished long ago; their hashes stay, so that the audit can still be verified.

    Whole chains only, whose heads their run anchored. That they were pruned is an entry of the audit itself. With
    COSTGUARD_AUDIT_DAYS set, the weekly digest does this.

    Exit status: 0 done, or nothing to do, 10 something would be erased (without --yes).
    """
    age = _length(older_than)
    with workplace(ctx, lang=lang, sandbox=sandbox, ledger=ledger, cloud=False) as here:
        from costguard.engine.ledger.audit import forget as audit_prune

        with ledger_in_use(here) as memory:
            erase = audit_prune.prune if yes else audit_prune.prunable
            found = erase(memory.store, age, here.clock.now())
        told = "audit_pruned" if yes else "audit_would_prune"
        said = phrase(told, here.language, entries=found.entries, chains=found.chains)
    data = {"schema": 1, "pruned": yes, "entries": found.entries, "chains": found.chains}
    emit(CommandResult(data, lines=(said,), exit=Exit.OK if yes or not found.chains else Exit.DUE), as_json=as_json)


def _length(text: str) -> timedelta:
    from costguard.policy.syntax.problems import BadValueError
    from costguard.policy.syntax.units import parse_duration

    try:
        return parse_duration(text)
    except BadValueError as err:
        message = f"--older-than: {err.message}{f'; {err.fix}' if err.fix else ''}"
        raise InvalidInputError(message) from err
