"""The runner of `budget`: thresholds are told, and what a spent budget asks for is done by the rules for machines."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from costguard.domain.findings import Finding
from costguard.engine.guards.budgets.bills import close_periods, see_periods
from costguard.engine.guards.budgets.freeze import FreezeResult, freeze
from costguard.engine.guards.budgets.look import BudgetLook, look
from costguard.engine.guards.budgets.notifying import budget_sights, keep_budgets, tell
from costguard.engine.guards.machines.run import known_sights, machine_handler, machine_messages
from costguard.engine.guards.runner import GuardRunner, Port
from costguard.engine.run.close_reads import fit_to_tell
from costguard.engine.run.run import GuardRun, RunReport, plan_from, plan_guard, run_guard, summary
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import Progress, Scan
from costguard.engine.run.snapshots import LOOKED_AT, Looked, look_of
from costguard.guards import BUDGET
from costguard.guards.budget.alerts import Crossing
from costguard.guards.budget.judge import judge
from costguard.guards.budget.rules import period_at
from costguard.guards.budget.steps import machine_rules
from costguard.planning import Plan
from costguard.policy.model.policy import Policy
from costguard.policy.model.terms import with_digest
from costguard.report.budget.notices import share_words
from costguard.report.json_values import money_json

LOOK_HOLDS = timedelta(hours=1)  # no function runs for longer; what stood still must look again


@dataclass(frozen=True, slots=True)
class BudgetRun:
    """What a run of the budget guard found, told and did. `look` None: this run had been completed before."""

    run: RunReport
    look: BudgetLook | None = None
    findings: tuple[Finding, ...] = ()
    alerts: tuple[Crossing, ...] = ()
    freezes: tuple[FreezeResult, ...] = ()


def run_budgets(
    world: RunContext, run_id: str, *, deadline: datetime | None = None, seen: Scan | None = None
) -> BudgetRun:
    """One whole run. Thresholds are told whatever the mode, for telling is all that observing budgets is for.

    `seen` as for `look`.
    """
    return _of(run_guard(world, run_id, deadline=deadline, seen=seen))


def _of(done: GuardRun) -> BudgetRun:
    if done.look is None:
        return BudgetRun(done.report)
    return BudgetRun(done.report, done.look, tuple(map(judge, done.look.statuses)), *done.ahead)


def _ahead(world: RunContext, run_id: str, looked: BudgetLook) -> tuple[tuple[Crossing, ...], tuple[FreezeResult, ...]]:
    """Where budgets stand is kept and told, and launch freezes are begun or ended."""
    keep_budgets(world.memory, looked)
    see_periods(world.memory.store, world.policy.budgets, looked.now)
    alerts = tuple(tell(world, looked))
    close_periods(world.memory.store, looked.before)
    return alerts, freeze(world, looked.statuses, run_id)


def _plan_of(under: RunContext, run_id: str, looked: BudgetLook, *, deadline: datetime | None, remember: bool) -> Plan:
    """What could not be read of a bill is a gap of the plan as well."""
    plan = plan_from(under, run_id, looked.seen, deadline=deadline, remember=remember)
    of_bills = (gap for status in looked.statuses for gap in status.gaps)
    return replace(plan, gaps=tuple(dict.fromkeys((*plan.gaps, *of_bills))))


def under_budgets(world: RunContext, looked: BudgetLook) -> RunContext:
    """The same surroundings under the rules for machines that the budgets make as they stand."""
    periods = {status.rule.name: status.period.key for status in looked.statuses if status.period is not None}
    standings = [status.standing for status in looked.statuses if status.standing is not None]
    doubts = machine_rules(standings, world.policy.priority_classes).doubts

    def ruled(policy: Policy, now: datetime) -> Policy:
        """A policy read again has its own budgets: a step that it no longer has asks for nothing.

        Nor does one whose period is over, or any by a look of long ago: a process may have stood still since.
        """
        current = [
            replace(standing, rule=rule)
            for standing in standings
            for rule in [policy.budget(standing.rule.name)]
            if rule is not None
            and (rule.covers, rule.amount) == (standing.rule.covers, standing.rule.amount)
            and now - looked.now <= LOOK_HOLDS
            and (period := period_at(rule.period, now)) is not None
            and period.key == periods[rule.name]
        ]
        made = machine_rules(current, policy.priority_classes, policy.protection.termination_protection_bars)
        in_shadow = replace(policy.shadows, idle_gpu=())  # those are followed by the guard that they are for
        return replace(policy, idle_gpu=tuple(map(with_digest, made.rules)), shadows=in_shadow)

    return replace(
        world,
        policy=ruled(world.policy, looked.now),
        policy_now=lambda: ruled(world.policy_now(), world.clock.now()),
        doubts=doubts,
    )


def budget_summary(done: BudgetRun) -> dict[str, Any]:
    """The figures of a run for logs, metrics and the caller of a function; its findings are budgets."""
    figures = summary(done.run)
    if done.look is not None:
        verdicts = Counter(finding.verdict.value for finding in done.findings)
        figures["findings"] = dict(sorted(verdicts.items()))
        figures["alerts"] = len(done.alerts)
        figures["budgets"] = {
            status.rule.name: {
                "period": status.period.key,
                "spent": money_json(status.spent.total),
                "amount": money_json(status.rule.amount),
                "share_percent": share_words(status),
                "lower_bound": bool(status.unread),
                "sure": not status.doubts,
            }
            for status in done.look.statuses
            if status.period is not None and status.spent is not None
        }
    return figures


def _machines(world: RunContext, progress: Progress) -> tuple[Policy, Scan]:
    looked = look(world, progress=progress, remember=False)
    return under_budgets(world, looked).policy, looked.seen


def _shown(world: RunContext, progress: Progress) -> Looked:
    """Where budgets stand, and the machines as their steps judge them."""
    planned = plan_guard(world, LOOKED_AT, progress=progress)
    return Looked(look_of(planned.plan, before=known_sights(world)), tuple(budget_sights(planned.look)))


RUNNER = GuardRunner(
    name=BUDGET,
    see=look,
    ahead=_ahead,
    under=under_budgets,
    plan_of=_plan_of,
    answer=lambda done: budget_summary(_of(done)),
    handler=machine_handler,
    messages=machine_messages,
    fit_to_tell=fit_to_tell,
    machines=_machines,
    shown=_shown,
    ports=frozenset({Port.TRAILS, Port.SPENDS, Port.EXECUTORS, Port.FREEZERS}),
    whole=True,
    of_budgets=True,
)
