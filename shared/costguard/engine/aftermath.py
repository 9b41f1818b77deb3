"""What a run's observations settle: intents seen to have taken effect, and what that saves."""

from __future__ import annotations

from collections.abc import Collection

from costguard.cases import CaseStatus
from costguard.domain.actions import Outcome, Verb
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import Subject
from costguard.engine.memory import Memory
from costguard.engine.savings import keep_ledger
from costguard.planning import Plan, Transition


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


def _seen_done(step: Transition) -> bool:
    if step.after.status is CaseStatus.CLOSED:
        return step.after.reason.code in {ReasonCode.TERMINATED, ReasonCode.MENDED}
    before = len(step.before.climbed) if step.before is not None else 0
    return any(rung.verb is not Verb.WARN for rung in step.after.climbed[before:])
