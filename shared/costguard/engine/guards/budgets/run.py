"""One run of the budget guard: look → alert → plan what a spent budget asks for → act → report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from costguard.domain.findings import Finding
from costguard.engine.guards.budgets.bills import close_periods, see_periods
from costguard.engine.guards.budgets.freeze import FreezeResult, freeze
from costguard.engine.guards.budgets.look import BudgetLook, look
from costguard.engine.guards.budgets.notifying import keep_budgets, tell
from costguard.engine.run.run import RunReport, carry_out, log_gaps, plan_from, summary
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import Progress, Scan, no_progress
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
    world: RunContext,
    run_id: str,
    *,
    deadline: datetime | None = None,
    progress: Progress = no_progress,
    seen: Scan | None = None,
) -> BudgetRun:
    """One whole run. Thresholds are told whatever the mode, for telling is all that observing budgets is for.

    `seen` as for `look`.
    """
    if not world.memory.runs.begin(run_id, world.guard, world.clock.now()):
        return BudgetRun(RunReport(run_id, None, duplicate=True))
    looked = look(world, deadline=deadline, progress=progress, seen=seen)
    keep_budgets(world.memory, looked)
    see_periods(world.memory.store, world.policy.budgets, looked.now)
    alerts = tuple(tell(world, looked))
    close_periods(world.memory.store, looked.before)
    freezes = freeze(world, looked.statuses, run_id)
    under = under_budgets(world, looked)
    plan = _plan(under, run_id, looked, deadline=deadline, remember=True)
    log_gaps(plan)
    report = carry_out(under, plan, deadline=deadline)
    return BudgetRun(report, looked, tuple(map(judge, looked.statuses)), alerts, freezes)


def plan_budgets(
    world: RunContext,
    run_id: str,
    *,
    deadline: datetime | None = None,
    progress: Progress = no_progress,
) -> tuple[BudgetLook, Plan]:
    """Look and plan; nothing is written anywhere."""
    looked = look(world, deadline=deadline, progress=progress, remember=False)
    return looked, _plan(under_budgets(world, looked), run_id, looked, deadline=deadline)


def _plan(
    under: RunContext, run_id: str, looked: BudgetLook, *, deadline: datetime | None = None, remember: bool = False
) -> Plan:
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
