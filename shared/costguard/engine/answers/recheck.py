"""`costguard recheck`: look again at cases held because an answer was lost, and go on from what is seen. Calls nothing.

A run looks as well, but where looking shows no effect it leaves the case to people: they ask for this. What shows no
effect long after the call begins its wait anew, with a notice; the call itself is never repeated. What a second call
might double, or on Tencent Cloud end (TerminateInstances destroys what the first recycled), stays held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from costguard.cases import Case, CaseStatus, Phase
from costguard.cases.resolve import begun_anew, is_old
from costguard.domain.actions import Outcome, Verb
from costguard.domain.errors import VersionConflictError
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import provider_of
from costguard.domain.remediations import RemediationKind
from costguard.domain.resources import InstanceState
from costguard.engine.ledger.audit.audit import OPERATOR
from costguard.engine.ledger.intents import Intent
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.settlement import settle_observed
from costguard.planning import Plan, Transition

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
