"""What a run's observations settle: intents seen to have taken effect, and savings begun or ended."""

from __future__ import annotations

from collections.abc import Collection

from costguard.cases import Case, CaseStatus
from costguard.domain.actions import Action, Outcome, Verb
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import Subject
from costguard.engine.memory import Memory
from costguard.planning import Plan, Transition
from costguard.planning.savings import confirmed_saving


def settle_observed(memory: Memory, plan: Plan, billed_while_stopped: Collection[Subject] = ()) -> None:
    """Write down what was seen to have happened; safe to repeat.

    A stop just seen complete starts a saving, which is nothing for a subject in `billed_while_stopped`;
    a machine that runs again or is gone ends it.
    """
    for step in plan.transitions:
        if _seen_done(step):
            for intent in memory.intents.unsettled(step.after.case_id):
                memory.intents.settle(
                    intent.action, Outcome.TOOK_EFFECT, plan.planned_at, None, "seen complete", plan.run_id
                )
        if _newly_stopped(step):
            memory.savings.record(_stop_of(step.after, plan, memory, billed_while_stopped), step.after.climbed[-1].at)
        if step.after.status is CaseStatus.CLOSED and step.after.reason.code is not ReasonCode.TERMINATED:
            memory.savings.end(step.after.case_id, plan.planned_at)


def _seen_done(step: Transition) -> bool:
    if step.after.status is CaseStatus.CLOSED:
        return step.after.reason.code in {ReasonCode.TERMINATED, ReasonCode.MENDED}
    before = len(step.before.climbed) if step.before is not None else 0
    return any(rung.verb is not Verb.WARN for rung in step.after.climbed[before:])


def _newly_stopped(step: Transition) -> bool:
    before = len(step.before.climbed) if step.before is not None else 0
    return any(rung.verb is Verb.STOP for rung in step.after.climbed[before:])


def _stop_of(case: Case, plan: Plan, memory: Memory, billed_while_stopped: Collection[Subject]) -> Action:
    finding = next((f for f in plan.findings if f.subject == case.subject), None)
    stops = (i.action.saving for i in memory.intents.for_case(case.case_id) if i.action.verb is Verb.STOP)
    agreed = next((saving for saving in stops if saving is not None), None)
    # a machine seen stopped is not read closely again: what stays billed was told when its stop was decided
    kept = plan.kept.get(case.subject, agreed.kept if agreed is not None else ())
    return Action(
        action_id=case.case_id,
        decision_id=case.case_id,
        verb=Verb.STOP,
        subject=case.subject,
        resource=case.subject,
        run_epoch=case.run_epoch,
        case_id=case.case_id,
        rung=len(case.climbed) - 1,
        rule=case.rule,
        rule_digest=case.rule_digest,
        saving=confirmed_saving(finding, kept, billed_while_stopped=case.subject in billed_while_stopped),
    )
