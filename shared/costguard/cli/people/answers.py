"""`snooze`, `approve`, `stop-now`, `disown`, `start`, `pause`, `resume`: what people say, heeded by the next run."""

from __future__ import annotations

import getpass
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from costguard.cli.decide.guards import guard_of
from costguard.cli.options import By, GuardOfCase, Json, Lang, LedgerUrl, PolicyPath, Resource, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import Program, ledger_in_use, workplace
from costguard.domain.errors import CostguardError, InvalidInputError, LedgerError
from costguard.report.words.sentences import Language, clean, phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta

    from costguard.engine.answers.answers import Granted

_LONGEST_TEXT = 200
_AS_DEPLOYED = 'settings = { COSTGUARD_PAUSED = "1" }'  # infra/*/variables.tf; it reaches every function


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
        from costguard.engine.answers import answers
        from costguard.report.json_values import moment
        from costguard.report.plan.evidence import utc_words

        with ledger_in_use(here) as memory:
            subject = answers.subject_of(memory, guard_of(memory, guard, resource), resource)
            set_ = answers.snooze(memory, subject, lasting, who_says(by), text_of(reason, "--reason"), here.clock.now())
        said = phrase("snoozed", here.language, resource=str(subject), until=utc_words(set_.until))
    emit(
        CommandResult({"schema": 1, "id": str(subject), "until": moment(set_.until), "by": set_.by}, lines=(said,)),
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
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Allow the one step that waits for its owner's word, once, within 24 hours.

    No rail is lifted but that one: everything else is checked again before the step. Where the policy asks for two
    people (notify.answers.two_approvers_above), two of different names have to say so.
    """
    from costguard.engine.answers import answers

    given = _Given(ctx, resource, by, guard, policy, ledger, sandbox, as_json, lang)
    _say(given, answers.approve)


STOP_NOW_EXAMPLES = examples(
    "costguard stop-now i-0123456789abcdef0",
)


def stop_now(
    ctx: typer.Context,
    resource: Resource,
    *,
    by: By = "",
    guard: GuardOfCase = "",
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Wait no longer for the stop that a machine's owner was told of: the next run stops it.

    No rail is lifted but the wait: it has to be idle still, and everything is checked again. Counts for 24 hours; a
    snooze beats it. Where the policy asks for two people, two of different names have to say so.
    """
    from costguard.engine.answers import answers

    given = _Given(ctx, resource, by, guard, policy, ledger, sandbox, as_json, lang)
    _say(given, answers.stop_now)


DISOWN_EXAMPLES = examples(
    "costguard disown i-0123456789abcdef0 --by vision",
)


def disown(
    ctx: typer.Context,
    resource: Resource,
    *,
    by: By = "",
    guard: GuardOfCase = "",
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Say that a machine is not its owner's: whoever is next in line is told, and the wait begins again."""
    from costguard.engine.answers import answers

    given = _Given(ctx, resource, by, guard, policy, ledger, sandbox, as_json, lang)
    _say(given, answers.disown)


START_EXAMPLES = examples(
    "costguard start i-0123456789abcdef0",
)


def start(
    ctx: typer.Context,
    resource: Resource,
    *,
    by: By = "",
    guard: GuardOfCase = "",
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Have a machine started again that Costguard stopped: the next run does it, and says what came of it.

    Only where it still is as Costguard stopped it, and the policy says start_again. Where the cloud has no capacity the
    runs of the next 48 hours try again; so long it is kept, too. `costguard undo` starts it at once, with your own
    credentials.
    """
    from costguard.engine.answers import answers

    given = _Given(ctx, resource, by, guard, policy, ledger, sandbox, as_json, lang)
    _say(given, answers.start)


@dataclass(frozen=True, slots=True)
class _Given:
    """What the answers about a case have in common."""

    ctx: typer.Context
    resource: str
    by: str
    guard: str
    policy: str
    ledger: str
    sandbox: bool
    as_json: bool
    lang: Language | None


def _say(given: _Given, answer: Callable[..., Granted]) -> None:
    with workplace(
        given.ctx, lang=given.lang, sandbox=given.sandbox, policy=given.policy, ledger=given.ledger, cloud=False
    ) as here:
        from costguard.bootstrap import read_policy
        from costguard.domain.answers import AnswerCode
        from costguard.report.json_values import moment
        from costguard.report.notices.answers import answer_words
        from costguard.report.plan.evidence import utc_words

        with ledger_in_use(here) as memory:
            which, who = guard_of(memory, given.guard, given.resource), who_says(given.by)
            granted = answer(memory, which, given.resource, who, here.clock.now(), read_policy(here.settings))
        subject, until = str(granted.case.subject), utc_words(granted.until)
        approved = granted.weighed.code is AnswerCode.APPROVED
        said = (
            phrase("approved", here.language, resource=subject, until=until)
            if approved
            else answer_words(granted.weighed, here.language)
        )
    data = {
        "schema": 1,
        "id": subject,
        "decision_id": granted.decision_id,
        "until": moment(granted.until),
        "code": granted.weighed.code.value,
    }
    emit(CommandResult(data, lines=(said,)), as_json=given.as_json)


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
    """Pull the kill switch: nothing that uses this ledger begins anything until `costguard resume`.

    Where the ledger cannot be written, the switch of each host, COSTGUARD_PAUSED, is named; exit status 3.
    """
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
    with (
        _or_by_the_host(ctx, lang, paused=paused),
        workplace(ctx, lang=lang, sandbox=sandbox, ledger=ledger, cloud=False) as here,
    ):
        with ledger_in_use(here) as memory:
            turn = memory.switch.pause if paused else memory.switch.resume
            turn(who, why, here.clock.now())
        lines = [phrase("paused" if paused else "resumed", here.language, by=who, reason=why)]
        if not paused and here.settings.paused:
            lines.append(phrase("still_paused", here.language))
    emit(CommandResult({"schema": 1, "paused": paused, "by": who, "reason": why}, lines=lines), as_json=as_json)


@contextmanager
def _or_by_the_host(ctx: typer.Context, lang: Language | None, *, paused: bool) -> Iterator[None]:
    """A pause that the ledger does not take: the switch that needs none is named with the error.

    Raises:
        LedgerError: it was not written, or nobody knows whether it was.
    """
    try:
        yield
    except InvalidInputError:
        raise
    except CostguardError as err:
        if not paused:
            raise
        program = ctx.obj if isinstance(ctx.obj, Program) else Program()
        language = lang or Language(program.settings().language)
        message = f"{err}\n{phrase('pause_not_written', language, setting=_AS_DEPLOYED)}"
        raise LedgerError(message) from err


def _duration(text: str) -> timedelta:
    from costguard.policy.syntax.problems import BadValueError
    from costguard.policy.syntax.units import parse_duration

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
