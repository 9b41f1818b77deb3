"""Which guard a command means, and what of it differs from guard to guard."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from costguard.domain.errors import InvalidInputError, StalePlanError
from costguard.domain.findings import Verdict
from costguard.report.words.sentences import Language, clean, explain

if TYPE_CHECKING:
    from costguard.cli.progress import Step
    from costguard.engine.budget_look import BudgetLook
    from costguard.engine.memory import Memory
    from costguard.engine.run import RunReport
    from costguard.engine.surroundings import Surroundings
    from costguard.planning import Plan

IDLE_GPU, BUDGET, KEYS, NETWORKS = "idle_gpu", "budget", "kms_rotation", "network_audit"
GUARDS = (IDLE_GPU, BUDGET, KEYS, NETWORKS)
"""The guards by name; the first is meant where nothing says another."""

OF_SETTINGS = frozenset({KEYS, NETWORKS})
"""Those that mend settings and stop no machine."""

_WORTH = frozenset({Verdict.VIOLATION, Verdict.UNMEASURED})


def check_guard(guard: str) -> None:
    """Raise InvalidInputError for a guard that there is not."""
    if guard not in GUARDS:
        message = f"there is no guard {guard!r}; there is {', '.join(GUARDS)}"
        raise InvalidInputError(message)


def guard_of(memory: Memory, guard: str, resource: str) -> str:
    """The guard named; without one that whose case of this resource is active, or else known.

    Raises:
        InvalidInputError: there is no such guard.
    """
    if guard:
        check_guard(guard)
        return guard
    for cases_of in (memory.cases.active, memory.cases.all):
        for name in GUARDS:
            if any(resource in {str(c.subject), c.subject.native_id, c.case_id} for c in cases_of(name)):
                return name
    return IDLE_GPU


def planned(world: Surroundings, run_id: str, step: Step) -> tuple[Plan, BudgetLook | None]:
    """What is due now, and for budgets where they stand; writes nothing."""
    if world.guard == BUDGET:
        from costguard.engine.budget import plan_budgets

        looked, plan = plan_budgets(world, run_id, progress=step)
        return plan, looked
    if world.guard == KEYS:
        from costguard.engine.key_audit import plan_keys

        return plan_keys(world, run_id, progress=step)[1], None
    if world.guard == NETWORKS:
        from costguard.engine.network_audit import plan_networks

        return plan_networks(world, run_id, progress=step)[1], None
    from costguard.engine.run import make_plan

    return make_plan(world, run_id, progress=step), None


def carried_out(world: Surroundings, agreed: Plan) -> RunReport:
    """What came of a plan, done by what acts on the subjects of its guard."""
    if agreed.guard == KEYS:
        from costguard.engine.key_audit import carry_out_keys

        return carry_out_keys(world, agreed)
    if agreed.guard == NETWORKS:
        from costguard.engine.network_audit import carry_out_networks

        return carry_out_networks(world, agreed)
    from costguard.engine.run import carry_out

    return carry_out(world, agreed)


def worth_showing(plan: Plan) -> Plan:
    """The plan without what nobody looks for in it: machines that no budget asks for, settings that are as asked."""
    if plan.guard == BUDGET:
        return replace(plan, findings=tuple(finding for finding in plan.findings if finding.rule))
    if plan.guard in OF_SETTINGS:
        return replace(plan, findings=tuple(finding for finding in plan.findings if finding.verdict in _WORTH))
    return plan


def ready_to_carry_out(
    world: Surroundings, agreed: Plan, looked: BudgetLook | None, language: Language
) -> Surroundings:
    """The surroundings to carry a plan out in: of budgets under the rules that they make as they were just `looked` at.

    Raises:
        StalePlanError: a budget no longer asks for it, or is no longer sure.
    """
    if looked is None:
        return world
    from costguard.engine.budget import under_budgets

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
