"""Follows the rules in the shadow from run to run. Nothing here acts, tells anybody, or changes what is in force."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from costguard.cases import Case
from costguard.cases.advance import plain_time
from costguard.cases.case import closed
from costguard.domain.errors import VersionConflictError
from costguard.domain.reasons import Reason, ReasonCode
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.shadows import MOST_DIFFERENCES, ShadowRepository
from costguard.engine.run.run_context import RunContext
from costguard.guards import IDLE_GPU, OF_MACHINES
from costguard.guards.rules.common import RemediationRule
from costguard.planning import Plan, PlanInputs
from costguard.planning.plan import Shadow, ShadowDifference, Transition
from costguard.planning.remediation import Judged
from costguard.planning.shadows import (
    ShadowStanding,
    ShadowTally,
    shadow_guard,
    shadow_of,
    shadow_of_remediations,
    tallied,
)

_LOG = logging.getLogger(__name__)
_FORGOTTEN = timedelta(days=7)
"""Cases of a rule that no run followed for so long tell of waits that nobody watched: they are closed first."""


def with_shadows(world: RunContext, inputs: PlanInputs, plan: Plan) -> Plan:
    """The plan with what each rule for machines in the shadow would have made of the same sights."""
    if not world.policy.shadows.idle_gpu:
        return plan
    memory, now = world.memory, inputs.now
    found = []
    for rule in world.policy.shadows.idle_gpu:
        cases = memory.cases.active(shadow_guard(rule.name))
        if _followed(memory, rule.name, now):
            found.append(shadow_of(inputs, plan, rule, cases))
        else:
            fresh = shadow_of(inputs, plan, rule, ())
            found.append(replace(fresh, transitions=_forgotten(cases, now) if cases else fresh.transitions))
    return replace(plan, shadows=tuple(found))


def with_remediation_shadows(
    plan: Plan, in_force: Sequence[Judged], rules: Iterable[tuple[RemediationRule, Sequence[Judged]]]
) -> Plan:
    """The plan with what each rule for keys or networks in the shadow finds in the same inventory."""
    return replace(plan, shadows=tuple(shadow_of_remediations(in_force, judged, rule) for rule, judged in rules))


def keep_shadows(world: RunContext, plan: Plan) -> None:
    """Remember how the rules in the shadow stand.

    Raises:
        LedgerError: memory failed.
    """
    repository = ShadowRepository(world.memory.store)
    rules = {rule.name: rule for rule in world.policy.shadows.idle_gpu} if plan.guard in OF_MACHINES else {}
    grace = world.policy.calendar.after if world.policy.calendar is not None else plain_time
    for shadow in plan.shadows:
        moved = tuple(step for step in shadow.transitions if _moved(world.memory, step))
        before = repository.get(plan.guard, shadow.rule)
        same = before is not None and before.rule_digest == shadow.rule_digest
        tally = before.tally if before is not None and same else ShadowTally()
        if shadow.rule in rules:
            tally = tallied(tally, replace(shadow, transitions=moved), rules[shadow.rule], plan.planned_at, grace)
        shown = sorted(shadow.differences, key=_dearest_first)[:MOST_DIFFERENCES]
        repository.keep(
            ShadowStanding(
                guard=plan.guard,
                rule=shadow.rule,
                rule_digest=shadow.rule_digest,
                since=before.since if before is not None and same else plan.planned_at,
                at=plan.planned_at,
                compared=shadow.compared,
                differences=tuple(shown),
                left_out=len(shadow.differences) - len(shown),
                would_stop=shadow.would_stop,
                tally=tally,
            )
        )


def _followed(memory: Memory, rule: str, now: datetime) -> bool:
    before = ShadowRepository(memory.store).get(IDLE_GPU, rule)
    return before is not None and now - before.at <= _FORGOTTEN


def _forgotten(cases: Iterable[Case], now: datetime) -> tuple[Transition, ...]:
    ends = ((case, Reason(ReasonCode.RULE_GONE, {"rule": case.rule})) for case in cases)
    return tuple(Transition(case, closed(case, gone, now)) for case, gone in ends)


def _moved(memory: Memory, step: Transition) -> bool:
    """Whether the case stands as this run left it; a run beside this one may have moved it first."""
    if step.before == step.after:
        return True
    try:
        memory.cases.commit(step.before, step.after)
    except VersionConflictError:
        _LOG.info("another run moved this case of a shadow first", extra={"case": step.after.case_id})
        return False
    return True


def _dearest_first(difference: ShadowDifference) -> tuple[bool, float, str]:
    cost = difference.hourly
    return (cost is None, 0.0 if cost is None else -float(cost.amount), str(difference.subject))


def shadow_figures(shadows: Iterable[Shadow]) -> dict[str, int]:
    """For logs: by rule how many things it sees differently."""
    return {shadow.rule: len(shadow.differences) for shadow in shadows}
