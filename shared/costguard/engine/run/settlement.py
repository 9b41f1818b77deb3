"""What a run's observations settle: intents seen to have taken effect, what that saves, and what was never sent."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime

from costguard.cases import CaseStatus
from costguard.domain.actions import Outcome, Verb
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import Subject
from costguard.engine.ledger.caps import Reservation
from costguard.engine.ledger.memory import Memory
from costguard.engine.savings.savings import keep_ledger
from costguard.planning import Plan, Transition, cap_of

_LOG = logging.getLogger(__name__)
_FULL = frozenset({ReasonCode.CAP_ACTIONS, ReasonCode.CAP_SHARE, ReasonCode.CAP_MONEY})


def settle_observed(memory: Memory, plan: Plan, billed_while_stopped: Collection[Subject] = ()) -> None:
    """Write down what was seen to have happened; safe to repeat.

    A stop just seen complete starts a saving, which is nothing for a subject in `billed_while_stopped`;
    a machine that runs again, is gone or was replaced ends it.
    """
    for step in plan.transitions:
        if _seen_done(step):
            for intent in memory.intents.unsettled(step.after.case_id):
                memory.intents.settle(
                    intent.action, Outcome.TOOK_EFFECT, plan.planned_at, None, "seen complete", plan.run_id
                )
    keep_ledger(memory, plan, billed_while_stopped)


def release_unsent(memory: Memory, plan: Plan) -> None:
    """Give back what a process reserved that died before its intent, for the rules that a cap keeps from acting."""
    full = (held.action for held in plan.held if held.reason.code in _FULL)
    for cap in sorted({cap_of(action.rule, action.verb) for action in full}):
        give_back_unsent(memory, plan.guard, cap, plan.planned_at)


def give_back_unsent(memory: Memory, guard: str, cap: str, now: datetime) -> None:
    """Give back this cap's reservations for which no intent can be written any more; safe beside whoever reserves.

    The case is read before the intents: one that is past its claim gets no intent of it any more. An unknown outcome
    has an intent, and goes on counting.
    """
    reserved = memory.caps.reservations(guard, cap, now)
    unsent = [one for one in reserved if _is_unsent(memory, one)]
    if unsent:
        memory.caps.release_unsent(guard, cap, unsent)
        _LOG.info("reservations without an intent were given back", extra={"cap": cap, "count": len(unsent)})


def _is_unsent(memory: Memory, reserved: Reservation) -> bool:
    claim = reserved.claim
    case = memory.cases.get(claim.key) if claim is not None else None
    if claim is None or case is None or case.version <= claim.version:
        return False
    sent = {intent.action.decision_id for intent in memory.intents.for_case(claim.case_id)}
    return reserved.decision_id not in sent


def _seen_done(step: Transition) -> bool:
    if step.after.status is CaseStatus.CLOSED:
        return step.after.reason.code in {ReasonCode.TERMINATED, ReasonCode.MENDED}
    before = len(step.before.climbed) if step.before is not None else 0
    return any(rung.verb is not Verb.WARN for rung in step.after.climbed[before:])
