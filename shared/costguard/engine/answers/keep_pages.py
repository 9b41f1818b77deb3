"""What people do without a notice's buttons: the page behind a Keep link, and `/costguard` in Slack.

Previews and virus scanners open links, so that opening one changes nothing, whatever it says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Any
from urllib.parse import parse_qs
from zoneinfo import ZoneInfo

from costguard.cases import Case, CaseStatus
from costguard.cases.answering import LINK, Refused
from costguard.domain.answers import (
    Answer,
    AnswerCode,
    AnswerKind,
    AnswerRef,
    ExpiredTokenError,
    ForgedTokenError,
    KeepToken,
    Person,
    read_keep_token,
)
from costguard.domain.errors import LedgerError
from costguard.engine.answers.answers import notice_decision
from costguard.engine.answers.replies import HELD, look, reply, stop_notice
from costguard.engine.guards.registry import GUARDS
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.ledger.snoozes import KeepLinkRepository
from costguard.policy.model.policy import Policy
from costguard.policy.syntax.moments import parse_date
from costguard.policy.syntax.problems import BadValueError
from costguard.policy.syntax.units import parse_duration
from costguard.report.notices.answers import answer_words, code_words
from costguard.report.notices.keep_page import STATUS, KeepPage, KeepScreen, keep_page
from costguard.report.notices.machines import local_time
from costguard.report.plan.case_history import History, Snoozed, history_lines
from costguard.report.words.sentences import Language, choice, phrase, sentence

_LONGEST_FORM = 4096
_MOST_FIELDS = 20
_REASON, _EXCEPTION = "Keep link", "exception"
_LOOKS = frozenset({"GET", "HEAD"})
_DONE = {AnswerCode.KEPT_LATE: KeepScreen.KEPT_LATE, AnswerCode.START_ASKED: KeepScreen.START_ASKED}
_STANDS = {AnswerCode.KEPT_LONGER: KeepScreen.LONGER, AnswerCode.START_STANDS: KeepScreen.START_STANDS}
_STANDS[AnswerCode.EXCEPTION_WAITS] = KeepScreen.EXCEPTION_WAITS
_OUTDATED = frozenset({AnswerCode.UNKNOWN, AnswerCode.OVER, AnswerCode.OUTDATED})


def answer_keep(
    method: str,
    query: str,
    body: bytes,
    *,
    memory: Memory,
    policy: Policy,
    secret: str,
    now: datetime,
    language: Language,
) -> tuple[int, str]:
    """The status and page for one request to `/keep`: `query` is of its address, `body` what was sent with it.

    `GET` and `HEAD` change nothing. What a `POST` keeps is in the ledger before this returns.
    """
    fields = query if method in _LOOKS else body.decode("ascii", "ignore") if len(body) <= _LONGEST_FORM else ""
    if method not in {*_LOOKS, "POST"}:
        return _answered(KeepPage(KeepScreen.METHOD), language)
    given = _single(fields)
    text = given.get("t", "")
    try:
        token = read_keep_token(text, secret, now)
    except ExpiredTokenError:
        return _answered(KeepPage(KeepScreen.EXPIRED), language)
    except ForgedTokenError:
        return _answered(KeepPage(KeepScreen.FORGED), language)
    visit = _Visit(text, token, memory, policy, now, language)
    try:
        if method in _LOOKS:
            return _answered(visit.looked(), language)
        asked = given.get("ask") == _EXCEPTION
        page = visit.asked(given.get("until", ""), given.get("because", "")) if asked else visit.confirmed()
        return _answered(page, language)
    except LedgerError:
        return _answered(KeepPage(KeepScreen.FAILED), language)


def _answered(page: KeepPage, language: Language) -> tuple[int, str]:
    return STATUS[page.screen], keep_page(page, language)


def _single(fields: str) -> dict[str, str]:
    """What is there once, by its name; of several of one name, each could be meant, so none is."""
    try:
        given = parse_qs(fields.removeprefix("?"), max_num_fields=_MOST_FIELDS)
    except ValueError:
        return {}
    return {name: values[0] for name, values in given.items() if len(values) == 1}


@dataclass(frozen=True, slots=True)
class _Visit:
    """Somebody with a link that was made here and still counts. `text` is its token as it came."""

    text: str
    token: KeepToken
    memory: Memory
    policy: Policy
    now: datetime
    language: Language

    def looked(self) -> KeepPage:
        """What would come of it now. Nothing is written."""
        notice, case = self._subject()
        _, weighed = look(self.memory, self.policy, self._answer(), self.now, came_through=self.token.sent_to)
        if isinstance(weighed, Refused):
            return self._refused(weighed.code, notice, case)
        if KeepLinkRepository(self.memory.store).used(self.text):
            return self._shown(KeepScreen.USED, notice, case)
        asks = KeepScreen.START if self.token.kind is AnswerKind.START else KeepScreen.ASK
        return replace(self._shown(asks, notice, case), token=self.text, **self._days(case))

    def _days(self, case: Case | None) -> dict[str, Any]:
        """Until which days an exception may be asked for here: where somebody could agree to it."""
        longest, today = self.policy.longest_exception, self.now.astimezone(self._zone).date()
        said = replace(self._answer(), kind=AnswerKind.EXCEPT, length=longest, reason="")
        if case is None or self.token.kind is not AnswerKind.KEEP:
            return {}
        _, weighed = look(self.memory, self.policy, said, self.now, came_through=self.token.sent_to)
        if isinstance(weighed, Refused):
            return {}
        last = today + longest - timedelta(days=1)
        return {"first": (today + timedelta(days=1)).isoformat(), "last": last.isoformat(), "days": longest.days}

    def asked(self, until: str, because: str) -> KeepPage:
        """Ask for an exception; the link keeps what it kept, and approvers are told. Safe to repeat."""
        from costguard.engine.answers import excepting  # here: most visits need none of it

        notice, case = self._subject()
        day, reason, longest = parse_date(until), because.strip(), self.policy.longest_exception
        wrong = replace(self._shown(KeepScreen.EXCEPTION_WRONG, notice, case), days=longest.days)
        latest = self.now.astimezone(self._zone).date() + longest
        if day is None or day > latest or not 0 < len(reason) <= _LONGEST_REASON or not reason.isprintable():
            return wrong
        ends = datetime.combine(day + timedelta(days=1), time(), self._zone)
        said = replace(self._answer(), kind=AnswerKind.EXCEPT, length=ends - self.now, reason=reason)
        weighed = excepting.ask(
            self.memory, self.policy, said, self.now, came_through=self.token.sent_to, language=self.language
        )
        if weighed.code is AnswerCode.EXCEPTION_TOO_LONG:
            return wrong
        if isinstance(weighed, Refused):
            return self._refused(weighed.code, notice, case)
        return self._shown(KeepScreen.EXCEPTION_ASKED, notice, case)

    @property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.policy.calendar.zone if self.policy.calendar else "UTC")

    def confirmed(self) -> KeepPage:
        """Keep it, once. Written before the link is used up: a crash between leaves one that keeps what is kept."""
        notice, case = self._subject()
        links = KeepLinkRepository(self.memory.store)
        if links.used(self.text):
            return self._shown(KeepScreen.USED, notice, case)
        came_through = self.token.sent_to
        weighed = reply(self.memory, self.policy, self._answer(), self.now, came_through=came_through)
        if isinstance(weighed, Refused):
            return self._refused(weighed.code, notice, case)
        links.use(self.text, self.token.of.decision_id, self.now)
        return self._shown(_DONE.get(weighed.code, KeepScreen.KEPT), notice, case)

    def _answer(self) -> Answer:
        token, by = self.token, Person(LINK, self.token.sent_to)
        if token.kind is AnswerKind.START:
            return Answer(AnswerKind.START, token.of, by, self.now)
        return Answer(AnswerKind.KEEP, token.of, by, self.now, token.length, _REASON)

    def _subject(self) -> tuple[OutboxNotice | None, Case | None]:
        """What was told with this link, and the case it was about, or what has come in its place."""
        of, outbox = self.token.of, self.memory.outbox
        offered = (outbox.get(of.decision_id), outbox.get(of.decision_id + HELD), outbox.get(stop_notice(of)))
        found = (*offered, outbox.said_of(of.case_id))
        notice = next((each for each in found if each is not None), None)
        return notice, self.memory.cases.get(notice.case_key) if notice is not None and notice.case_key else None

    def _kept_until(self, case: Case | None) -> datetime | None:
        snooze, _ = self.memory.snoozes.of(str(case.subject), self.now) if case is not None else (None, None)
        return snooze.until if snooze is not None else None

    def _refused(self, code: AnswerCode, notice: OutboxNotice | None, case: Case | None) -> KeepPage:
        if code in _STANDS:
            return self._shown(_STANDS[code], notice, case)
        return KeepPage(KeepScreen.LATE if code in _OUTDATED else KeepScreen.REFUSED)

    def _shown(self, screen: KeepScreen, notice: OutboxNotice | None, case: Case | None) -> KeepPage:
        """The machine's name, id and cost, and what was announced: no more of it than the message said."""
        if case is None or notice is None or case.case_id != self.token.of.case_id:
            return KeepPage(screen)
        until = self._kept_until(case)
        zone = self.policy.calendar.zone if self.policy.calendar else "UTC"
        return KeepPage(
            screen=screen,
            name=case.name,
            native_id=case.subject.native_id,
            cost=str(notice.hourly) if notice.hourly is not None else "",
            what=notice.title if screen in {KeepScreen.ASK, KeepScreen.START} else "",
            hours=self.token.hours,
            until=local_time(until, zone, self.language) if until is not None else "",
        )


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
    yield from memory.cases.active(*GUARDS)


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
