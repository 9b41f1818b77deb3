"""An exception that somebody asks for, and whose agreement to it counts. Pure.

It holds nothing before an approver agreed who did not ask. Whom a link was sent to is a group, of which nobody knows
who asked: then two approvers have to agree, of whom one at most did.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from costguard.cases.answering import (
    CLI,
    LINK,
    SLACK,
    Accepted,
    Refused,
    Vote,
    Weighed,
    live_votes,
    person_id,
    with_vote,
)
from costguard.cases.case import Case, CaseStatus
from costguard.domain.answers import ASKED, AnswerCode, AnswerRef, Person
from costguard.domain.reasons import FactValue
from costguard.policy.model.policy import AnswerTerms

ASK_VALID_FOR = timedelta(days=7)  # who still wants it asks again, with reasons of then
_FORGOTTEN = "person:"  # who asked and was erased since: nobody could say any more who may not agree


class AskPhase(str, Enum):
    """`AGREED` and `CLOSED` are final: one question comes to one exception at most."""

    WAITING = "waiting"
    AGREED = "agreed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class ExceptionAsk:
    """Leave the resource `ref_text` (a whole id) alone until `until`, which its case and the rule of that led to.

    `by` asked, as people read it. `votes` are those of approvers, `request` is where
    the change of the policy is that a run opened.
    """

    ref_text: str
    case_key: str
    case_id: str
    rule: str
    owner: str
    by: str
    reason: str
    until: datetime
    asked_at: datetime
    phase: AskPhase = AskPhase.WAITING
    votes: tuple[Vote, ...] = ()
    request: str = ""

    @property
    def of(self) -> AnswerRef:
        """What an answer to it is bound to."""
        text = f"{self.ref_text}\n{self.by}\n{self.reason}\n{self.until.isoformat()}\n{self.asked_at.isoformat()}"
        return AnswerRef(self.case_id, f"{ASKED}{hashlib.sha256(text.encode()).hexdigest()[:24]}")

    @property
    def ends_at(self) -> datetime:
        """Until when it may be agreed to."""
        return min(self.until, self.asked_at + ASK_VALID_FOR)

    @property
    def needed(self) -> int:
        """How many approvers have to agree."""
        return 2 if self.by.startswith(f"{LINK}:") else 1

    def is_open(self, now: datetime) -> bool:
        """Whether anything may still come of it."""
        return self.phase is AskPhase.WAITING and now < self.ends_at and not self.by.startswith(_FORGOTTEN)

    def agreed_by(self, vote: Vote, now: datetime) -> ExceptionAsk:
        """With one more approver's word, whoever that is; who asked has none."""
        if person_id(vote.by) == person_id(self.by):
            return self
        votes = with_vote(self.votes, vote, now)
        people = {person_id(each.by) for each in votes}
        return replace(self, votes=votes, phase=AskPhase.AGREED if len(people) >= self.needed else self.phase)


@dataclass(frozen=True, slots=True)
class AgreementContext:
    """What is known where an approver's word is weighed; `offered` are the channels in which they were asked."""

    case: Case | None
    terms: AnswerTerms
    longest: timedelta
    now: datetime
    came_through: str = ""
    offered: frozenset[str] = frozenset()
    kept_until: datetime | None = None
    policy_usable: bool = True


def weigh_agreement(ask: ExceptionAsk | None, of: AnswerRef, by: Person, ground: AgreementContext) -> Weighed:
    """What an approver's word for the question `of` comes to. Who may say it is asked before anything is told of it."""
    foreign = _foreign(by, ground)
    if foreign is not None or ask is None:
        return Refused(foreign or AnswerCode.UNKNOWN)
    facts: dict[str, FactValue] = {"resource": ask.ref_text, "by": ask.by, "until": _moment(ask.until)}
    bar = _bar(ask, of, by, ground, facts)
    if bar is not None:
        return bar
    after = ask.agreed_by(Vote(str(by), ground.now, ask.ends_at), ground.now)
    done = after.phase is AskPhase.AGREED
    return Accepted(AnswerCode.EXCEPTION_AGREED if done else AnswerCode.EXCEPTION_NEEDS_ANOTHER, facts)


def _foreign(by: Person, ground: AgreementContext) -> AnswerCode | None:
    if by.via == SLACK:
        if not ground.terms.slack_team:
            return AnswerCode.NOT_SET_UP
        if by.team != ground.terms.slack_team:
            return AnswerCode.FOREIGN_TEAM
        if ground.came_through not in ground.offered:
            return AnswerCode.FOREIGN_CHANNEL if ground.offered else AnswerCode.UNKNOWN
    elif by.via != CLI:
        return AnswerCode.NOT_AMONG_APPROVERS  # a link proves where it was sent, and nobody
    return None if by.id in ground.terms.approvers else AnswerCode.NOT_AMONG_APPROVERS


def _bar(
    ask: ExceptionAsk, of: AnswerRef, by: Person, ground: AgreementContext, facts: Mapping[str, FactValue]
) -> Refused | None:
    if of != ask.of:
        return Refused(AnswerCode.OUTDATED, facts)
    if ask.phase is AskPhase.AGREED:
        return Refused(AnswerCode.EXCEPTION_STANDS, facts)
    case = ground.case
    if not ask.is_open(ground.now) or case is None or case.status is CaseStatus.CLOSED:
        return Refused(AnswerCode.EXCEPTION_OVER, facts)
    if (case.case_id, str(case.subject), case.rule) != (ask.case_id, ask.ref_text, ask.rule):
        return Refused(AnswerCode.EXCEPTION_OVER, facts)
    if not ground.policy_usable:
        return Refused(AnswerCode.POLICY_BROKEN, facts)
    if person_id(str(by)) == person_id(ask.by):
        return Refused(AnswerCode.EXCEPTION_OWN, facts)
    if ask.until > ground.now + ground.longest:
        return Refused(AnswerCode.EXCEPTION_TOO_LONG, {**facts, "days": ground.longest.days})
    if ground.kept_until is not None and ground.kept_until >= ask.until:
        return Refused(AnswerCode.KEPT_LONGER, {**facts, "until": _moment(ground.kept_until)})
    if any(vote.by == str(by) for vote in live_votes(ask.votes, ground.now)):
        return Refused(AnswerCode.APPROVAL_WAITS, facts)
    return None


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="minutes")
