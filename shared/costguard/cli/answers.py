"""`snooze`, `approve`, `pause` and `resume`: what people say to Costguard. Effects come with the next run."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from costguard.cli.guards import guard_of
from costguard.cli.options import By, GuardOfCase, Json, Lang, LedgerUrl, Resource, Sandbox, examples
from costguard.cli.output import Answer, emit
from costguard.cli.program import ledger_in_use, workplace
from costguard.domain.errors import InvalidInputError
from costguard.report.words import Language, clean, phrase

if TYPE_CHECKING:
    from datetime import timedelta

_LONGEST_TEXT = 200


SNOOZE_EXAMPLES = examples(
    'costguard snooze i-0123456789abcdef0 --for 48h --reason "demo on Thursday"',
)


def snooze(
    ctx: typer.Context,
    resource: Resource,
    *,
    length: Annotated[str, typer.Option("--for", metavar="DURATION", help="How long: 48h, 7d; at most 90d.")],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the audit and for others.")] = "",
    by: By = "",
    guard: GuardOfCase = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Leave a machine alone for a while: it beats everything that has not begun yet.

    When it ends, the steps begin again with a notice and the full wait.
    """
    lasting = _duration(length)
    with workplace(ctx, lang=lang, sandbox=sandbox, ledger=ledger, cloud=False) as here:
        from costguard.engine import answers
        from costguard.report.evidence import utc_words
        from costguard.report.json_values import moment

        with ledger_in_use(here) as memory:
            subject = answers.subject_of(memory, guard_of(memory, guard, resource), resource)
            set_ = answers.snooze(memory, subject, lasting, who_says(by), text_of(reason, "--reason"), here.clock.now())
        said = phrase("snoozed", here.language, resource=str(subject), until=utc_words(set_.until))
    emit(
        Answer({"schema": 1, "id": str(subject), "until": moment(set_.until), "by": set_.by}, lines=(said,)),
        as_json=as_json,
    )


APPROVE_EXAMPLES = examples(
    "costguard approve i-0123456789abcdef0",
)


def approve(
    ctx: typer.Context,
    resource: Resource,
    *,
    by: By = "",
    guard: GuardOfCase = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Allow the one step that waits for its owner's word, once, within 24 hours.

    No rail is lifted but that one: everything else is checked again before the step.
    """
    with workplace(ctx, lang=lang, sandbox=sandbox, ledger=ledger, cloud=False) as here:
        from costguard.engine import answers
        from costguard.report.evidence import utc_words
        from costguard.report.json_values import moment

        with ledger_in_use(here) as memory:
            which = guard_of(memory, guard, resource)
            granted = answers.approve(memory, which, resource, who_says(by), here.clock.now())
        subject = str(granted.case.subject)
        said = phrase("approved", here.language, resource=subject, until=utc_words(granted.until))
    data = {"schema": 1, "id": subject, "decision_id": granted.decision_id, "until": moment(granted.until)}
    emit(Answer(data, lines=(said,)), as_json=as_json)


PAUSE_EXAMPLES = examples(
    'costguard pause --reason "incident 42: looking into the metrics"',
)


def pause(
    ctx: typer.Context,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; everybody who looks is shown it.")],
    by: By = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Pull the kill switch: nothing that uses this ledger begins anything until `costguard resume`."""
    _switch(ctx, paused=True, by=by, reason=reason, ledger=ledger, sandbox=sandbox, as_json=as_json, lang=lang)


RESUME_EXAMPLES = examples(
    'costguard resume --reason "metrics are back"',
)


def resume(
    ctx: typer.Context,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it is safe again.")] = "",
    by: By = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Release the kill switch of this ledger. A host's own switch, COSTGUARD_PAUSED, is not touched."""
    _switch(ctx, paused=False, by=by, reason=reason, ledger=ledger, sandbox=sandbox, as_json=as_json, lang=lang)


def _switch(
    ctx: typer.Context,
    *,
    paused: bool,
    by: str,
    reason: str,
    ledger: str,
    sandbox: bool,
    as_json: bool,
    lang: Language | None,
) -> None:
    who, why = who_says(by), text_of(reason, "--reason")
    with workplace(ctx, lang=lang, sandbox=sandbox, ledger=ledger, cloud=False) as here:
        with ledger_in_use(here) as memory:
            turn = memory.switch.pause if paused else memory.switch.resume
            turn(who, why, here.clock.now())
        lines = [phrase("paused" if paused else "resumed", here.language, by=who, reason=why)]
        if not paused and here.settings.paused:
            lines.append(phrase("still_paused", here.language))
    emit(Answer({"schema": 1, "paused": paused, "by": who, "reason": why}, lines=lines), as_json=as_json)


def _duration(text: str) -> timedelta:
    from costguard.policy.problems import BadValueError
    from costguard.policy.units import parse_duration

    try:
        return parse_duration(text)
    except BadValueError as err:
        fix = f"; {err.fix}" if err.fix else ""
        message = f"--for: {err.message}{fix}"
        raise InvalidInputError(message) from err


def who_says(by: str) -> str:
    """Who speaks: as given, else the user of this process."""
    if by:
        return text_of(by, "--by")
    try:
        return clean(getpass.getuser()) or "unknown"
    except (KeyError, OSError, ImportError):  # no such user: a container's made-up uid; ImportError: no pwd module
        return "unknown"


def text_of(text: str, option: str) -> str:
    """A person's own words, cleaned.

    Raises:
        InvalidInputError: too long.
    """
    if len(text) > _LONGEST_TEXT:
        message = f"{option}: longer than {_LONGEST_TEXT} characters"
        raise InvalidInputError(message)
    return clean(text)
