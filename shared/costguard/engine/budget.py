"""One run of the budget guard: look → alert → plan what a spent budget asks for → act → report."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from costguard.domain.findings import Finding
from costguard.engine.budget_look import BudgetLook, look
from costguard.engine.freeze import FreezeResult, freeze
from costguard.engine.repositories.outbox import Notice, OutboxRepository
from costguard.engine.run import RunReport, carry_out, plan_from, summary
from costguard.engine.scan import Progress, no_progress
from costguard.engine.surroundings import Surroundings
from costguard.guards.budget import judge
from costguard.guards.budget_alerts import Crossing, crossings, untold
from costguard.guards.budget_steps import machine_rules
from costguard.planning import Plan
from costguard.policy.changes import with_digest
from costguard.policy.model import Policy
from costguard.report.budget_notices import AlertFacts, alert_notice
from costguard.report.words import Language

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BudgetRun:
    """What a run of the budget guard found, told and did. `look` None: this run had been completed before."""

    run: RunReport
    look: BudgetLook | None = None
    findings: tuple[Finding, ...] = ()
    alerts: tuple[Crossing, ...] = ()
    freezes: tuple[FreezeResult, ...] = ()


def run_budgets(
    world: Surroundings, run_id: str, *, deadline: datetime | None = None, progress: Progress = no_progress
) -> BudgetRun:
    """One whole run. Thresholds are told whatever the mode, for telling is all that observing budgets is for."""
    if not world.memory.runs.begin(run_id, world.guard, world.clock.now()):
        return BudgetRun(RunReport(run_id, None, duplicate=True))
    looked = look(world, deadline=deadline, progress=progress)
    alerts = tuple(_told(world, looked))
    freezes = freeze(world, looked.statuses, run_id)
    under = under_budgets(world, looked)
    plan = plan_from(under, run_id, looked.seen)
    report = carry_out(under, plan, deadline=deadline)
    return BudgetRun(report, looked, tuple(map(judge, looked.statuses)), alerts, freezes)


def plan_budgets(
    world: Surroundings,
    run_id: str,
    *,
    deadline: datetime | None = None,
    progress: Progress = no_progress,
) -> tuple[BudgetLook, Plan]:
    """Look and plan; nothing is written anywhere."""
    looked = look(world, deadline=deadline, progress=progress, remember=False)
    return looked, plan_from(under_budgets(world, looked), run_id, looked.seen)


def under_budgets(world: Surroundings, looked: BudgetLook) -> Surroundings:
    """The same surroundings under the rules for machines that the budgets make as they stand."""
    standings = [status.standing for status in looked.statuses if status.standing is not None]
    doubts = machine_rules(standings, world.policy.priority_classes).doubts

    def ruled(policy: Policy) -> Policy:
        """A policy read again has its own budgets: a step that it no longer has asks for nothing."""
        current = [
            replace(standing, rule=rule)
            for standing in standings
            for rule in [policy.budget(standing.rule.name)]
            if rule is not None and (rule.covers, rule.amount) == (standing.rule.covers, standing.rule.amount)
        ]
        made = machine_rules(current, policy.priority_classes)
        return replace(policy, idle_gpu=tuple(map(with_digest, made.rules)))

    return replace(world, policy=ruled(world.policy), policy_now=lambda: ruled(world.policy_now()), doubts=doubts)


def budget_summary(done: BudgetRun) -> dict[str, Any]:
    """The figures of a run for logs, metrics and the caller of a function."""
    figures = summary(done.run)
    if done.look is not None:
        figures["alerts"] = len(done.alerts)
        figures["budgets"] = {
            status.rule.name: {
                "share_percent": float(round(status.share * 100, 2)),
                "sure": not status.doubts,
            }
            for status in done.look.statuses
            if status.period is not None
        }
    return figures


def _told(world: Surroundings, looked: BudgetLook) -> Iterator[Crossing]:
    """Put what is still to be told into the outbox, once per threshold and address."""
    outbox, now = world.memory.outbox, world.clock.now()
    for status in looked.statuses:
        if status.period is None or status.spent is None:
            continue
        crossed = crossings(
            status.rule,
            status.period.key,
            status.spent.total,
            status.forecast.expected if status.forecast is not None else None,
            looked.now if status.surge is not None else None,
        )
        addresses = status.rule.tell or tuple(filter(None, (world.policy.default_channel,)))
        if not addresses:
            _LOG.warning("a budget has nobody to tell", extra={"budget": status.rule.name})
            continue
        told = partial(_is_told, outbox, addresses)
        for crossing in untold(status.rule, status.period.key, crossed, told):
            facts = AlertFacts(
                status, crossing, looked.spenders[status.rule.name], looked.now, idle_is_known=looked.idle_is_known
            )
            worded = alert_notice(facts, Language(world.language))
            for address in addresses:
                outbox.enqueue(
                    Notice(
                        notice_id=f"{crossing.alert_id}/{address}",
                        decision_id="",
                        case_key=f"budget/spent/scope:{status.rule.name}",
                        channel=address,
                        title=worded.title,
                        text=worded.text,
                        fields=worded.fields,
                        lines=worded.lines,
                        created_at=now,
                        next_attempt_at=now,
                    )
                )
            yield crossing


def _is_told(outbox: OutboxRepository, addresses: Sequence[str], alert_id: str) -> bool:
    """Whether every address has it: a run that ended between two of them, or a new address, is made up for."""
    return all(outbox.get(f"{alert_id}/{address}") is not None for address in addresses)
