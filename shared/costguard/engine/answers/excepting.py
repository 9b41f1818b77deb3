"""Asking for an exception that the ledger keeps, agreeing to it, and ending it.

Approvers are told at once, each by a message of their own where that is in Slack; a question that is said again tells
whom a broken-off try did not. Nothing is held before one of them agreed who did not ask.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from costguard.cases import Case
from costguard.cases.answering import Accepted, Refused, Vote, Weighed, person_id
from costguard.cases.excepting import AgreementContext, AskPhase, ExceptionAsk, weigh_agreement
from costguard.domain.answers import Answer, AnswerCode, AnswerKind, AnswerRef, Person
from costguard.domain.errors import InvalidInputError, ProviderError
from costguard.engine.answers.replies import reply, spoken
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import OutboxNotice, news
from costguard.engine.ledger.snoozes import Snooze
from costguard.engine.notify.choices import is_clickable
from costguard.policy.exceptions import ExceptionRequest, check_request
from costguard.policy.model.ownership import channel_of
from costguard.policy.model.policy import Policy
from costguard.ports import Choice
from costguard.report.notices.messages import answer_label
from costguard.report.notices.policy import exception_asked, exception_asks, exception_opened
from costguard.report.words.sentences import Language, phrase

_LOG = logging.getLogger(__name__)


def ask(
    memory: Memory,
    policy: Policy,
    answer: Answer,
    now: datetime,
    *,
    came_through: str = "",
    case: Case | None = None,
    policy_usable: bool = True,
    language: Language = Language.EN,
) -> Weighed:
    """Take a question for an exception, as `reply` takes an answer, and have approvers told. Safe to repeat.

    Raises:
        LedgerError: it is not known whether it was written.
    """
    weighed = reply(memory, policy, answer, now, came_through=came_through, case=case, policy_usable=policy_usable)
    if weighed.code in {AnswerCode.EXCEPTION_ASKED, AnswerCode.EXCEPTION_WAITS}:
        asked = memory.exceptions.of(answer.of.case_id)
        if asked is not None and asked.is_open(now):
            memory.outbox.enqueue(*_asking(asked, policy, now, language))
    return weighed


def _asking(asked: ExceptionAsk, policy: Policy, now: datetime, language: Language) -> Iterator[OutboxNotice]:
    """The ids are the same each time, so that the outbox takes each of them once."""
    zone = policy.calendar.zone if policy.calendar else "UTC"
    approve = Choice(
        AnswerKind.APPROVE,
        answer_label(AnswerKind.APPROVE, None, language),
        asked.of,
        asks=exception_asks(asked, zone, language),
    )
    people = [one for one in policy.answers.approvers if one != person_id(asked.by)]
    channels = {_id_of(asked): policy.default_channel} if policy.default_channel else {}
    channels |= {_id_of(asked, person): f"slack:{person}" for person in people if policy.answers.slack_team}
    for notice_id, channel in channels.items():
        clickable = is_clickable(policy, channel)
        worded = exception_asked(asked, zone, language, clickable=clickable)
        choices = (approve,) if clickable else ()
        yield news(notice_id, channel, worded, now, holds_until=asked.ends_at, choices=choices)


def agree(
    memory: Memory,
    policy: Policy,
    of: AnswerRef,
    by: Person,
    now: datetime,
    *,
    came_through: str = "",
    policy_usable: bool = True,
    language: Language = Language.EN,
) -> Weighed:
    """Take an approver's word for a question: what it came to, written already where it counts. Safe to repeat.

    Raises:
        LedgerError: it is not known whether the word was written.
    """
    asked = memory.exceptions.of(of.case_id)
    ground = AgreementContext(None, policy.answers, policy.longest_exception, now, came_through)
    if asked is not None:
        kept, _ = memory.snoozes.of(asked.ref_text, now)
        ground = replace(
            ground,
            case=memory.cases.get(asked.case_key),
            offered=_offered(memory, asked, of, by),
            kept_until=kept.until if kept is not None else None,
            policy_usable=policy_usable,
        )
    weighed = weigh_agreement(asked, of, by, ground)
    if isinstance(weighed, Refused) or asked is None:
        return weighed
    after = memory.exceptions.agree(asked, Vote(str(by), now, asked.ends_at), spoken(by), now)
    if after is None or after.phase is AskPhase.CLOSED:
        return Refused(AnswerCode.EXCEPTION_OVER, weighed.facts)
    if after.phase is AskPhase.WAITING:
        return Accepted(AnswerCode.EXCEPTION_NEEDS_ANOTHER, weighed.facts)
    _close(memory, asked, policy, phrase("exception_status_agreed", language, by=spoken(by)))
    return Accepted(AnswerCode.EXCEPTION_AGREED, weighed.facts)


def _offered(memory: Memory, asked: ExceptionAsk, of: AnswerRef, by: Person) -> frozenset[str]:
    """The channels, in Slack's own words, in which this person was offered a button for just this question."""
    found = memory.outbox.get_many([_id_of(asked), _id_of(asked, by.id)]).values()
    return frozenset(
        one.receipt.rpartition(":")[0]
        for one in found
        if one.receipt and any(choice.of == of for choice in one.choices)
    )


def end(
    memory: Memory, policy: Policy, resource: str, by: str, now: datetime, language: Language
) -> ExceptionAsk | Snooze:
    """End what the ledger excepts of a resource, or take back what was asked for it.

    Raises:
        InvalidInputError: there is neither.
    """
    ended: ExceptionAsk | Snooze | None = None
    for asked in open_asks(memory, resource, now):
        if memory.exceptions.close(asked, by, now):
            _close(memory, asked, policy, phrase("exception_status_ended", language, by=by))
            ended = asked
    for kept in memory.snoozes.active(now).values():
        names = {kept.ref_text, kept.ref_text.rpartition(":")[2]}
        if kept.approver and resource in names and memory.snoozes.clear(kept.ref_text, by, now):
            ended = kept
    if ended is None:
        message = f"{resource!r} has no exception in the ledger; what exceptions.yaml says is ended there"
        raise InvalidInputError(message)
    return ended


def open_asks(memory: Memory, resource: str, now: datetime) -> list[ExceptionAsk]:
    """What was asked for a resource, by its whole or its own id, and waits; of all where none is named."""
    found = [asked for asked in memory.exceptions.all() if asked.is_open(now)]
    return [one for one in found if not resource or resource in {one.ref_text, one.ref_text.rpartition(":")[2]}]


_MOST_OPENED = 5  # a run, a dozen requests each


def open_changes(
    memory: Memory,
    policy: Policy,
    opens: Callable[[ExceptionRequest], str],
    now: datetime,
    language: Language = Language.EN,
) -> int:
    """Have a change of the policy's repository opened for each open question, and tell where it is; how many were.

    `opens` may be called again for the same question: after a crash the change is found. What fails is tried by the
    next run, as long as the question is open.
    """
    waiting = [asked for asked in open_asks(memory, "", now) if not asked.request]
    done = 0
    for asked in sorted(waiting, key=lambda one: one.asked_at)[:_MOST_OPENED]:
        others = [one for one in policy.answers.approvers if one != person_id(asked.by)]
        wanted = ExceptionRequest(
            asked.ref_text, asked.owner or "-", asked.reason, ", ".join(others), asked.until, asked.by
        )
        try:
            check_request(wanted, now, policy.longest_exception)
            request = opens(wanted)
        except (InvalidInputError, ProviderError) as err:
            _LOG.warning("no change was opened for an exception", extra={"of": str(asked.of), "cause": str(err)})
            continue
        memory.outbox.enqueue(_opened(asked, request, policy, now, language))
        memory.exceptions.opened(asked, request, now)
        done += 1
    return done


def _opened(asked: ExceptionAsk, request: str, policy: Policy, now: datetime, language: Language) -> OutboxNotice:
    worded = exception_opened(asked, request, policy.calendar.zone if policy.calendar else "UTC", language)
    channel = channel_of(asked.owner, policy)
    return news(f"exception-change-{asked.of.decision_id}", channel, worded, now, holds_until=asked.ends_at)


def _close(memory: Memory, asked: ExceptionAsk, policy: Policy, status: str) -> None:
    """Let the messages that asked say what became of it, and offer nothing any more."""
    told = (_id_of(asked), *(_id_of(asked, person) for person in policy.answers.approvers))
    memory.outbox.mark(dict.fromkeys(told, status))


def _id_of(asked: ExceptionAsk, person: str = "") -> str:
    return "-".join(filter(None, ("exception-asked", asked.of.decision_id, person)))
