"""`costguard undo`: take one action back, from what was kept of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import By, Json, Lang, LedgerUrl, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.people.answers import text_of, who_says
from costguard.cli.program import ledger_in_use, workplace
from costguard.domain.actions import Verb
from costguard.report.words.sentences import Language, explain, phrase

if TYPE_CHECKING:
    from costguard.domain.actions import Action
    from costguard.engine.answers.undo import Undoing, Undone

UNDO_EXAMPLES = examples(
    "costguard undo 3f1c9a5d2b7e4c60a1b2c3d4",
    'costguard undo 3f1c9a5d2b7e4c60a1b2c3d4 --yes --reason "the VPN needs it"',
)


def undo(
    ctx: typer.Context,
    action_id: Annotated[str, typer.Argument(metavar="ACTION_ID", help="As its notice and `costguard why` name it.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this it only shows what would be done.")] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the audit and for others.")] = "",
    by: By = "",
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Take one action back: start what was stopped, put a rule back as it was, an address where it was.

    It rests on what was read and kept just before the action. The cloud refuses where that no longer fits. Afterwards
    the resource is left alone for 30 days, so that no run does it again. There is no way back from an address
    released, a machine terminated or a key rotated. A stop whose answer was lost is taken back after a look, unless
    the cloud shows that somebody else stopped it; what stays unknown is said first.

    Exit status: 0 taken back, 10 it would be (without --yes), 12 refused and nothing changed, 13 the cloud refused.
    """
    who, why = who_says(by), text_of(reason, "--reason")
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger) as here:
        from costguard.bootstrap import open_undoers
        from costguard.engine.answers import undo as undoing

        with ledger_in_use(here) as memory:
            back = undoing.undoing_of(memory, action_id)
            unknown = _uncertain(back, here.language)
            if not yes:
                said = phrase("mend_undo_plan", here.language, mend=step_said(back.action, here.language))
                data = _data(back, None)
                emit(CommandResult(data, lines=(*unknown, said), exit=Exit.DUE), as_json=as_json)
            for line in unknown:  # before the call, and not in the way of --json
                typer.echo(line, err=True)
            with open_undoers(here.settings, back.action.subject, here.clock) as by_cloud:
                paused = here.settings.paused
                done = undoing.undo(memory, back, by_cloud, who, why, here.clock.now(), paused=paused)
        language = here.language
    emit(
        CommandResult(
            _data(back, done),
            lines=(_said(done, language),),
            exit=Exit.OK if done.reason is None else Exit.HELD,
        ),
        as_json=as_json,
    )


def step_said(action: Action, language: Language) -> str:
    """What would be done, as part of a sentence."""
    from costguard.report.notices.remediations import mend_words

    if action.verb is Verb.START:
        return phrase("mend_undo_start", language, subject=str(action.subject))
    return f"{action.subject}: {mend_words(action.mend, language)}"


def _said(done: Undone, language: Language) -> str:
    from costguard.report.plan.evidence import utc_words

    if done.reason is not None:
        return explain(done.reason, language)
    until = utc_words(done.left_alone_until) if done.left_alone_until is not None else ""
    return phrase("mend_undo_done", language, mend=step_said(done.action, language), until=until)


def _uncertain(back: Undoing, language: Language) -> tuple[str, ...]:
    """What nobody knows of the action to be taken back, said before anything is done."""
    from costguard.report.plan.evidence import utc_words

    if not back.is_uncertain:
        return ()
    asked, subject = utc_words(back.intent.claimed_at), str(back.action.subject)
    return (phrase("mend_undo_uncertain", language, asked=asked, subject=subject),)


def _data(back: Undoing, done: Undone | None) -> dict[str, Any]:
    from costguard.report.json_values import moment

    action = back.action if done is None else done.action
    until = done.left_alone_until if done is not None else None
    return {
        "schema": 1,
        "action_id": action.action_id,
        "undoes": action.parameters["undoes"],
        "id": str(action.subject),
        "verb": action.verb.value,
        "uncertain": back.is_uncertain,
        "mend": action.mend.kind.value if action.mend is not None else None,
        "outcome": done.outcome.value if done is not None else None,
        "reason": done.reason.code.value if done is not None and done.reason is not None else None,
        "left_alone_until": moment(until) if until is not None else None,
    }
