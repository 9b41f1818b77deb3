"""What a Keep link does: opened, it shows and asks; only its own form, sent back, keeps, and only once.

Previews and virus scanners open links, so that opening one changes nothing, whatever it says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import parse_qs

from costguard.cases import Case
from costguard.cases.answering import LINK, AnswerCode, Refused
from costguard.domain.answers import (
    Answer,
    AnswerKind,
    ExpiredTokenError,
    ForgedTokenError,
    KeepToken,
    Person,
    read_keep_token,
)
from costguard.domain.errors import LedgerError
from costguard.engine.answers.replies import HELD, look, reply
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.outbox.notice import OutboxNotice
from costguard.engine.ledger.people.keep_links import KeepLinkRepository
from costguard.policy.model.policy import Policy
from costguard.report.notices.keep_page import STATUS, KeepPage, KeepScreen, keep_page
from costguard.report.notices.machines import local_time
from costguard.report.words.sentences import Language

_LONGEST_FORM = 4096
_MOST_FIELDS = 20
_REASON = "Keep link"
_LOOKS = frozenset({"GET", "HEAD"})
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
    text = _token_in(fields)
    try:
        token = read_keep_token(text, secret, now)
    except ExpiredTokenError:
        return _answered(KeepPage(KeepScreen.EXPIRED), language)
    except ForgedTokenError:
        return _answered(KeepPage(KeepScreen.FORGED), language)
    visit = _Visit(text, token, memory, policy, now, language)
    try:
        return _answered(visit.looked() if method in _LOOKS else visit.confirmed(), language)
    except LedgerError:
        return _answered(KeepPage(KeepScreen.FAILED), language)


def _answered(page: KeepPage, language: Language) -> tuple[int, str]:
    return STATUS[page.screen], keep_page(page, language)


def _token_in(fields: str) -> str:
    """The one `t`; with none, or several that could each be meant, nothing."""
    try:
        given = parse_qs(fields.removeprefix("?"), max_num_fields=_MOST_FIELDS).get("t", [])
    except ValueError:
        return ""
    return given[0] if len(given) == 1 else ""


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
        return replace(self._shown(KeepScreen.ASK, notice, case), token=self.text)

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
        late = weighed.code is AnswerCode.KEPT_LATE
        return self._shown(KeepScreen.KEPT_LATE if late else KeepScreen.KEPT, notice, case)

    def _answer(self) -> Answer:
        token = self.token
        return Answer(AnswerKind.KEEP, token.of, Person(LINK, token.sent_to), self.now, token.length, _REASON)

    def _subject(self) -> tuple[OutboxNotice | None, Case | None]:
        """What was told with this link, and the case it was about, or what has come in its place."""
        of, outbox = self.token.of, self.memory.outbox
        found = (outbox.get(of.decision_id), outbox.get(of.decision_id + HELD), outbox.said_of(of.case_id))
        notice = next((each for each in found if each is not None), None)
        return notice, self.memory.cases.get(notice.case_key) if notice is not None and notice.case_key else None

    def _kept_until(self, case: Case | None) -> datetime | None:
        snooze, _ = self.memory.snoozes.of(str(case.subject), self.now) if case is not None else (None, None)
        return snooze.until if snooze is not None else None

    def _refused(self, code: AnswerCode, notice: OutboxNotice | None, case: Case | None) -> KeepPage:
        if code is AnswerCode.KEPT_LONGER:
            return self._shown(KeepScreen.LONGER, notice, case)
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
            what=notice.title if screen is KeepScreen.ASK else "",
            hours=self.token.hours,
            until=local_time(until, zone, self.language) if until is not None else "",
        )
