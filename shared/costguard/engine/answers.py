"""What people say back: keep this, go ahead, stop everything. Effects happen in the next run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from costguard.cases import Case, CaseStatus
from costguard.domain.errors import InvalidInputError
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.engine.memory import Memory
from costguard.engine.repositories.snoozes import Snooze

APPROVAL_VALID_FOR = timedelta(hours=24)  # long enough for the next scheduled run, short enough to be meant
MAX_SNOOZE = timedelta(days=90)  # longer needs an exception, which has an approver


@dataclass(frozen=True, slots=True)
class Granted:
    """An approval given: which decision, for what, until when."""

    case: Case
    decision_id: str
    until: datetime


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
    """Leave a resource alone for `length`; it beats every action not yet claimed.

    Raises:
        InvalidInputError: zero, negative, or longer than 90 days.
    """
    if not timedelta(0) < length <= MAX_SNOOZE:
        message = f"a snooze lasts more than nothing and at most {MAX_SNOOZE.days} days; an exception may last longer"
        raise InvalidInputError(message)
    kept = Snooze(str(subject), now + length, by, reason, now)
    memory.snoozes.set(kept)
    return kept


def approve(memory: Memory, guard: str, resource: str, by: str, now: datetime) -> Granted:
    """Allow the one decision that waits for approval on this resource; single use, for 24 hours.

    Raises:
        InvalidInputError: nothing is waiting for approval there.
    """
    case = find_case(memory, guard, resource)
    waiting = case.status is CaseStatus.HELD and case.reason.code is ReasonCode.APPROVAL_NEEDED
    if not waiting or not case.decision_id:
        state = f"{case.status.value} ({case.reason.code.value})"
        message = f"{case.subject} waits for nothing that can be approved: it is {state}"
        raise InvalidInputError(message)
    memory.approvals.grant(case.decision_id, by, now, APPROVAL_VALID_FOR)
    return Granted(case, case.decision_id, now + APPROVAL_VALID_FOR)
