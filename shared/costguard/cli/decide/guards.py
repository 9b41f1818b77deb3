"""Which guard a command means, and what of it differs from guard to guard."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from costguard.cases import CaseStatus
from costguard.domain.errors import StalePlanError
from costguard.engine.guards.registry import GUARDS, runner_of
from costguard.guards import IDLE_GPU
from costguard.report.guard_views import view_of
from costguard.report.words.sentences import Language, clean, explain

if TYPE_CHECKING:
    from costguard.engine.guards.budgets.look import BudgetLook
    from costguard.engine.ledger.memory import Memory
    from costguard.engine.run.run_context import RunContext
    from costguard.planning import Plan


def guard_of(memory: Memory, guard: str, resource: str) -> str:
    """The guard named; without one that whose case of this resource is active, or else known.

    Raises:
        InvalidInputError: there is no such guard.
    """
    if guard:
        return runner_of(guard).name
    cases = memory.cases.named(resource, *GUARDS)
    known = next((case for case in cases if case.status is not CaseStatus.CLOSED), next(iter(cases), None))
    return IDLE_GPU if known is None else known.guard


def worth_showing(plan: Plan) -> Plan:
    """The plan without what nobody looks for in it: machines that no budget asks for, settings that are as asked."""
    return replace(plan, findings=tuple(filter(view_of(plan.guard).shown, plan.findings)))


def ready_to_carry_out(world: RunContext, agreed: Plan, looked: BudgetLook | None, language: Language) -> RunContext:
    """The surroundings to carry a plan out in: of budgets under the rules that they make as they were just `looked` at.

    Raises:
        StalePlanError: a budget no longer asks for it, or is no longer sure.
    """
    if looked is None:
        return world
    from costguard.engine.guards.budgets.run import under_budgets

    under = under_budgets(world, looked)
    for action in agreed.due:
        if under.policy.rule(action.rule) is None:
            message = f"this plan is not applied: no budget asks for it now ({clean(action.rule)}); plan again"
            raise StalePlanError(message)
        doubt = under.doubts.get(action.rule)
        if doubt is not None:
            message = f"this plan is not applied: {action.rule}: {explain(doubt, language)}"
            raise StalePlanError(message)
    return under
