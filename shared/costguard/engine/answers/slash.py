"""`/costguard` in Slack: what is open, what is mine, why, and leave it alone. Reads the ledger, and no cloud."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from costguard.cases import Case, CaseStatus
from costguard.cases.answering import AnswerCode
from costguard.domain.answers import Answer, AnswerKind, AnswerRef, Person
from costguard.engine.answers.answers import notice_decision
from costguard.engine.answers.replies import reply
from costguard.engine.guards.registry import GUARDS
from costguard.engine.ledger.memory import Memory
from costguard.policy.model.policy import Policy
from costguard.policy.syntax.problems import BadValueError
from costguard.policy.syntax.units import parse_duration
from costguard.report.notices.answers import answer_words, code_words
from costguard.report.plan.case_history import History, Snoozed, history_lines
from costguard.report.words.sentences import Language, choice, phrase, sentence

_MOST_LINES = 15
_LONGEST_REASON = 200
_BECAUSE = ("because", "因为")


@dataclass(frozen=True, slots=True)
class SlashReply:
    """An answer only the person who asked can see."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """Who wrote what behind `/costguard`, and in which channel."""

    by: Person
    channel: str
    text: str


class _AmbiguousError(Exception):
    """Several resources are called so."""

    def __init__(self, ids: list[str]) -> None:
        super().__init__(*ids)
        self.ids = ids


def told(memory: Memory, policy: Policy, asked: SlashCommand, language: Language, now: datetime) -> SlashReply:
    """The answer to one command; a snooze is in the ledger before this returns.

    Raises:
        LedgerError: it could not be read or written.
    """
    foreign = _foreign(asked.by, policy)
    if foreign is not None:
        return SlashReply("Costguard", (code_words(foreign, language),))
    verb, *words = asked.text.split() or ["help"]
    if verb == "status" and not words:
        return _status(memory, language)
    if verb == "mine" and not words:
        return _mine(memory, policy, asked.by, language)
    try:
        if verb == "why" and len(words) == 1:
            return _why(memory, words[0], language, now)
        if verb in {"snooze", "keep"} and words[1:]:
            return _snoozed(memory, policy, asked, words, language, now)
    except _AmbiguousError as err:
        return _failed("slash_ambiguous", language, resource=words[0], ids=", ".join(err.ids[:_MOST_LINES]))
    return SlashReply("Costguard", (phrase("slash_help", language),))


def _foreign(by: Person, policy: Policy) -> AnswerCode | None:
    if not policy.answers.slack_team:
        return AnswerCode.NOT_SET_UP
    return None if by.team == policy.answers.slack_team else AnswerCode.FOREIGN_TEAM


def _status(memory: Memory, language: Language) -> SlashReply:
    cases = list(_active(memory))
    switch = memory.switch.state()
    paused = (phrase("is_paused", language, by=switch.by, reason=switch.reason),) if switch.paused else ()
    counts = {status: sum(case.status is status for case in cases) for status in CaseStatus}
    summary = phrase(
        "slash_status", language, open=len(cases), held=counts[CaseStatus.HELD], kept=counts[CaseStatus.SNOOZED]
    )
    return SlashReply(phrase("slash_status_title", language), (*paused, summary, *_lines(cases, language)))


def _mine(memory: Memory, policy: Policy, by: Person, language: Language) -> SlashReply:
    title = phrase("slash_mine_title", language)
    names = {owner.name for owner in policy.owners if by.id in owner.people}
    if not names:
        return SlashReply(title, (phrase("slash_mine_nobody", language),))
    cases = [case for case in _active(memory) if case.owner in names]
    return SlashReply(title, tuple(_lines(cases, language)) or (phrase("slash_mine_none", language),))


def _why(memory: Memory, resource: str, language: Language, now: datetime) -> SlashReply:
    case = _named(memory, resource)
    if case is None:
        return _failed("slash_unknown", language, resource=resource)
    snooze, _ = memory.snoozes.of(str(case.subject), now)
    snoozed = Snoozed(snooze.until, snooze.by, snooze.reason) if snooze is not None else None
    lines = history_lines(History(case.subject, case, snoozed=snoozed), language)
    return SlashReply(phrase("slash_why_title", language), lines)


def _snoozed(
    memory: Memory, policy: Policy, asked: SlashCommand, words: list[str], language: Language, now: datetime
) -> SlashReply:
    resource, text, *rest = words
    length = _duration(text)
    if length is None:
        return _failed("slash_bad_length", language, length=text)
    case = _named(memory, resource)
    if case is None:
        return _failed("slash_unknown", language, resource=resource)
    because = rest[1:] if rest and rest[0].casefold() in _BECAUSE else rest
    of = AnswerRef(case.case_id, notice_decision(case))
    answer = Answer(AnswerKind.KEEP, of, asked.by, now, length, " ".join(because)[:_LONGEST_REASON])
    weighed = reply(memory, policy, answer, now, came_through=asked.channel, case=case)
    return SlashReply(phrase("slash_snooze_title", language), (answer_words(weighed, language),))


def _duration(text: str) -> timedelta | None:
    try:
        return parse_duration(text)
    except BadValueError:
        return None


def _failed(key: str, language: Language, **facts: str) -> SlashReply:
    return SlashReply("Costguard", (phrase(key, language, **facts),))


def _active(memory: Memory) -> Iterator[Case]:
    for guard in GUARDS:
        yield from memory.cases.active(guard)


def _named(memory: Memory, resource: str) -> Case | None:
    """The case meant by an id or a name: an open one before one that is over.

    Raises:
        _AmbiguousError: several resources are called so.
    """
    found = [
        case
        for guard in GUARDS
        for case in memory.cases.all(guard)
        if resource in {str(case.subject), case.subject.native_id, case.case_id, case.name}
    ]
    subjects = sorted({str(case.subject) for case in found})
    if len(subjects) > 1:
        raise _AmbiguousError(subjects)
    return max(found, key=lambda case: (case.status is not CaseStatus.CLOSED, case.opened_at), default=None)


def _lines(cases: list[Case], language: Language) -> Iterator[str]:
    for case in sorted(cases, key=lambda one: (one.opened_at, str(one.subject)))[:_MOST_LINES]:
        what = case.name or case.subject.native_id
        state = choice(case.status.value, language)
        yield phrase("slash_line", language, what=what, state=state, why=sentence(case.reason, language))
    if len(cases) > _MOST_LINES:
        yield phrase("slash_more", language, count=len(cases) - _MOST_LINES)
