"""What people say back at the command line: keep this, go ahead, it is not ours, look again at what got no answer.

A run looks as well, but where looking shows no effect it leaves the case to people: they ask for this. What shows no
effect long after the call begins its wait anew, with a notice; the call itself is never repeated. What a second call
might double, or on Tencent Cloud end (TerminateInstances destroys what the first recycled), stays held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from costguard.cases import Case, CaseStatus, Phase, decision_id
from costguard.cases.answering import CLI, LONGEST_KEEP, VOTE_VALID_FOR, Refused, Weighed
from costguard.cases.resolve import begun_anew, is_old
from costguard.domain.actions import Outcome, Verb
from costguard.domain.answers import Answer, AnswerCode, AnswerKind, AnswerRef, Person
from costguard.domain.errors import InvalidInputError, VersionConflictError
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef, provider_of
from costguard.domain.remediations import RemediationKind
from costguard.domain.resources import InstanceState
from costguard.engine.answers.replies import reply
from costguard.engine.ledger.audit.audit import OPERATOR
from costguard.engine.ledger.intents import Intent
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.snoozes import Snooze
from costguard.engine.run.settlement import settle_observed
from costguard.planning import Plan, Transition
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
        AnswerCode.START_STANDS,
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
    matching = memory.cases.named(resource, guard)
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
    agreed, _ = memory.snoozes.of(str(subject), now)
    if agreed is not None and agreed.approver and agreed.until > now + length:
        message = f"{subject} is excepted until {agreed.until:%Y-%m-%d %H:%M} UTC; `costguard exception end` ends that"
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


def start(memory: Memory, guard: str, resource: str, by: str, now: datetime, policy: Policy | None = None) -> Granted:
    """Have a machine started again that Costguard stopped: by the next runs, for as long as the word counts.

    Raises:
        InvalidInputError: Costguard has not stopped it, its case is over, or the policy lets nothing be started.
    """
    case = find_case(memory, guard, resource)
    granted = _said(memory, case, notice_decision(case), AnswerKind.START, by, now, policy)
    request, _ = memory.starts.of(str(case.subject))
    return granted if request is None else replace(granted, until=request.until)


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


_ENDED_BY_A_SECOND_CALL = "tencent"  # CVM TerminateInstances: the first call recycles, the second destroys
_SAME_HOWEVER_OFTEN = frozenset(
    {
        RemediationKind.SET_ROTATION,
        RemediationKind.MOVE_ALIAS,
        RemediationKind.RELEASE_ADDRESS,
        RemediationKind.DETACH_ADDRESS,
        RemediationKind.REVOKE_RULE,
        RemediationKind.NARROW_RULE,
        RemediationKind.REQUIRE_IMDSV2,
    }
)
"""Mends that leave the same state when made once more; the others add a key, its material or a flow log each time."""


class RecheckResult(str, Enum):
    """What a look came to."""

    TOOK_EFFECT = "took_effect"
    NO_EFFECT = "no_effect"
    ENDED = "ended"
    UNDER_WAY = "under_way"
    UNKNOWN = "unknown"
    UNSEEN = "unseen"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Rechecked:
    """One case after the look. `state` is the machine's, empty for settings and for what was not seen."""

    case: Case
    found: RecheckResult
    state: str = ""


def in_doubt(memory: Memory, guard: str) -> tuple[Case, ...]:
    """The cases of a guard that are held because an answer was lost."""
    return tuple(
        case
        for case in memory.cases.active(guard)
        if case.status is CaseStatus.HELD and case.reason.code is ReasonCode.OUTCOME_UNKNOWN
    )


def recheck(memory: Memory, plan: Plan, cases: Sequence[Case], who: str, now: datetime) -> tuple[Rechecked, ...]:
    """Go on with these cases from what `plan` has seen of them. Nothing else of the plan is written.

    Raises:
        LedgerError: memory failed.
    """
    steps = {step.after.case_id: step for step in plan.transitions}
    states = {sighting.ref: sighting.state for sighting in plan.sightings}
    done: list[Rechecked] = []
    written: list[Transition] = []
    for case in cases:
        step, state = steps.get(case.case_id), states.get(case.subject)
        found = RecheckResult.UNSEEN if step is None else _found(memory, step, state, now)
        after = case if step is None or found in {RecheckResult.UNSEEN, RecheckResult.UNKNOWN} else step.after
        if found is RecheckResult.NO_EFFECT and after.phase is not Phase.WAITING:
            after = begun_anew(after, now)
        if after != case:
            try:
                after = memory.cases.commit(case, after, run_id=OPERATOR, now=now, by=who)
            except VersionConflictError:
                found, after = RecheckResult.MOVED, memory.cases.get(case.key) or case
            else:
                written.append(Transition(case, after))
                if found is RecheckResult.NO_EFFECT:
                    _settle_without_effect(memory, case, who, now)
        done.append(Rechecked(after, found, state.value if state is not None else ""))
    settle_observed(
        memory, replace(plan, run_id=OPERATOR, transitions=tuple(written), looked=()), plan.billed_while_stopped
    )
    return tuple(done)


def _found(memory: Memory, step: Transition, state: InstanceState | None, now: datetime) -> RecheckResult:
    after = step.after
    if after.status is CaseStatus.CLOSED:
        done = after.reason.code in {ReasonCode.TERMINATED, ReasonCode.MENDED}
        return RecheckResult.TOOK_EFFECT if done else RecheckResult.ENDED
    if after.phase is Phase.WAITING:
        climbed = len(after.climbed) > len(step.before.climbed if step.before is not None else ())
        return RecheckResult.TOOK_EFFECT if climbed else RecheckResult.NO_EFFECT
    if after.reason.code is ReasonCode.CONFIRMING:
        return RecheckResult.UNDER_WAY
    if after.reason.code is not ReasonCode.OUTCOME_UNKNOWN:
        return RecheckResult.UNSEEN
    return (
        RecheckResult.NO_EFFECT if is_old(after, now) and _shows_none(memory, after, state) else RecheckResult.UNKNOWN
    )


def _shows_none(memory: Memory, case: Case, state: InstanceState | None) -> bool:
    """Whether what is seen means that the call had no effect, and deciding anew cannot double it."""
    sent = tuple(_sent(memory, case))
    if not sent:
        return False
    return all(_is_untouched(intent, state) for intent in sent)


def _is_untouched(intent: Intent, state: InstanceState | None) -> bool:
    action = intent.action
    if action.verb is Verb.STOP:
        return state is InstanceState.RUNNING
    if action.verb is Verb.TERMINATE:
        again = provider_of(action.subject.cloud) != _ENDED_BY_A_SECOND_CALL
        return again and state in {InstanceState.STOPPED, InstanceState.RUNNING}
    if action.mend is not None:  # the look has judged it anew, and found the same violation
        return action.mend.kind in _SAME_HOWEVER_OFTEN
    return False


def _sent(memory: Memory, case: Case) -> Iterator[Intent]:
    return (one for one in memory.intents.for_case(case.case_id) if one.action.decision_id == case.decision_id)


def _settle_without_effect(memory: Memory, case: Case, who: str, now: datetime) -> None:
    for intent in _sent(memory, case):
        if not intent.settled:
            detail = "seen without effect"
            memory.intents.settle(intent.action, Outcome.HAD_NO_EFFECT, now, None, detail, OPERATOR, by=who)
