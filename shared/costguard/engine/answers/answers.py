"""What people say back at the command line: keep this, go ahead, it is not ours. Effects happen in the next run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.cases import Case, CaseStatus, Phase, decision_id
from costguard.cases.answering import CLI, LONGEST_KEEP, VOTE_VALID_FOR, AnswerCode, Refused, Weighed
from costguard.domain.answers import Answer, AnswerKind, AnswerRef, Person
from costguard.domain.errors import InvalidInputError
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.engine.answers.replies import reply
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.people.snoozes import Snooze
from costguard.policy.model.policy import Policy
from costguard.report.notices.answers import answer_words
from costguard.report.words.sentences import Language

APPROVAL_VALID_FOR = VOTE_VALID_FOR
MAX_SNOOZE = LONGEST_KEEP
_STANDS = frozenset(
    {
        AnswerCode.STOP_STANDS,
        AnswerCode.STOP_WAITS,
        AnswerCode.APPROVAL_STANDS,
        AnswerCode.APPROVAL_WAITS,
        AnswerCode.DISOWNED_BEFORE,
    }
)
"""Refused because it was said before: no mistake of whoever says it again."""


@dataclass(frozen=True, slots=True)
class Granted:
    """Somebody's word taken: for which decision, until when it counts, and what it came to."""

    case: Case
    decision_id: str
    until: datetime
    weighed: Weighed


def find_case(memory: Memory, guard: str, resource: str) -> Case:
    """The latest case of a resource, by full id or by the vendor's own id.

    Raises:
        InvalidInputError: no case, or the native id is ambiguous.
    """
    matching = [
        case
        for case in memory.cases.all(guard)
        if resource in {str(case.subject), case.subject.native_id, case.case_id}
    ]
    subjects = sorted({str(case.subject) for case in matching})
    if not matching:
        message = f"no case is known for {resource!r}; `costguard cases` lists them"
        raise InvalidInputError(message)
    if len(subjects) > 1:
        message = f"{resource!r} is ambiguous: {', '.join(subjects)}; give the full id"
        raise InvalidInputError(message)
    return max(matching, key=lambda case: case.opened_at)


def subject_of(memory: Memory, guard: str, resource: str) -> ResourceRef:
    """The resource meant: a full id is taken as it is, a native id must belong to a known case."""
    if resource.count(":") >= 4:  # noqa: PLR2004 - the parts of a full id
        return ResourceRef.parse(resource)
    return find_case(memory, guard, resource).subject


def snooze(memory: Memory, subject: ResourceRef, length: timedelta, by: str, reason: str, now: datetime) -> Snooze:
    """Leave a resource alone for `length`, even if that is shorter than before; it beats every action not yet claimed.

    Raises:
        InvalidInputError: zero, negative, or longer than 90 days.
    """
    if not timedelta(0) < length <= MAX_SNOOZE:
        message = f"a snooze lasts more than nothing and at most {MAX_SNOOZE.days} days; an exception may last longer"
        raise InvalidInputError(message)
    kept = Snooze(str(subject), now + length, by, reason, now)
    memory.snoozes.set(kept)
    return kept


def approve(memory: Memory, guard: str, resource: str, by: str, now: datetime, policy: Policy | None = None) -> Granted:
    """Allow the one decision that waits for approval on this resource; single use, for 24 hours.

    Where `policy` asks for two people, one word alone does nothing yet.

    Raises:
        InvalidInputError: nothing is waiting for approval there, or this person's word does not count.
    """
    case = find_case(memory, guard, resource)
    waiting = case.status is CaseStatus.HELD and case.reason.code is ReasonCode.APPROVAL_NEEDED
    if not waiting or not case.decision_id:
        state = f"{case.status.value} ({case.reason.code.value})"
        message = f"{case.subject} waits for nothing that can be approved: it is {state}"
        raise InvalidInputError(message)
    granted = _said(memory, case, case.decision_id, AnswerKind.APPROVE, by, now, policy)
    votes = memory.approvals.votes(case.decision_id, now)
    return replace(granted, until=min((vote.expires_at for vote in votes), default=granted.until))


def stop_now(
    memory: Memory, guard: str, resource: str, by: str, now: datetime, policy: Policy | None = None
) -> Granted:
    """Wait no longer for the stop that this resource's owner was told of; no rail but the wait is lifted.

    Raises:
        InvalidInputError: no stop waits there.
    """
    case = find_case(memory, guard, resource)
    return _said(memory, case, notice_decision(case), AnswerKind.STOP_NOW, by, now, policy)


def disown(memory: Memory, guard: str, resource: str, by: str, now: datetime, policy: Policy | None = None) -> Granted:
    """Say that a resource is not its owner's: the next run tells the next in line, and the wait begins anew.

    Raises:
        InvalidInputError: nobody is named as its owner, or a step has begun.
    """
    case = find_case(memory, guard, resource)
    return _said(memory, case, notice_decision(case), AnswerKind.NOT_MINE, by, now, policy)


def notice_decision(case: Case) -> str:
    """The decision that the latest notice of a case was about: that of the rung before, once it was delivered."""
    if case.phase is Phase.WAITING and case.rung > 0:
        return decision_id(replace(case, rung=case.rung - 1, attempt=case.attempt - 1))
    return case.decision_id or decision_id(case)


def _said(
    memory: Memory,
    case: Case,
    decision: str,
    kind: AnswerKind,
    by: str,
    now: datetime,
    policy: Policy | None,
) -> Granted:
    of = AnswerRef(case.case_id, decision)
    weighed = reply(memory, policy, Answer(kind, of, Person(CLI, by), now), now, case=case)
    if isinstance(weighed, Refused) and weighed.code not in _STANDS:
        raise InvalidInputError(answer_words(weighed, Language.EN))
    return Granted(case, decision, now + VOTE_VALID_FOR, weighed)
