"""One run of the budget guard: look → alert → plan what a spent budget asks for → act → report."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from costguard.cases.resolve import TELL_AGAIN
from costguard.domain.findings import Finding
from costguard.engine.budget_look import BudgetLook, look
from costguard.engine.budget_sights import keep_budgets
from costguard.engine.freeze import FreezeResult, freeze
from costguard.engine.repositories.outbox import OutboxRepository
from costguard.engine.repositories.outbox_notice import Notice, NoticeState
from costguard.engine.run import RunReport, carry_out, log_gaps, plan_from, summary
from costguard.engine.scan import Progress, Scan, no_progress
from costguard.engine.surroundings import Surroundings
from costguard.guards.budget import judge
from costguard.guards.budget_alerts import Crossing, crossings, untold
from costguard.guards.budget_periods import period_at
from costguard.guards.budget_steps import machine_rules
from costguard.planning import Plan
from costguard.policy.changes import with_digest
from costguard.policy.model import Policy
from costguard.report.budget_notices import AlertFacts, alert_notice, share_words
from costguard.report.json_values import money_json
from costguard.report.words import Language

_LOG = logging.getLogger(__name__)

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
    world: Surroundings,
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
    alerts = tuple(_told(world, looked))
    freezes = freeze(world, looked.statuses, run_id)
    under = under_budgets(world, looked)
    plan = _plan(under, run_id, looked, deadline=deadline, remember=True)
    log_gaps(plan)
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
    return looked, _plan(under_budgets(world, looked), run_id, looked, deadline=deadline)


def _plan(
    under: Surroundings, run_id: str, looked: BudgetLook, *, deadline: datetime | None = None, remember: bool = False
) -> Plan:
    """What could not be read of a bill is a gap of the plan as well."""
    plan = plan_from(under, run_id, looked.seen, deadline=deadline, remember=remember)
    of_bills = (gap for status in looked.statuses for gap in status.gaps)
    return replace(plan, gaps=tuple(dict.fromkeys((*plan.gaps, *of_bills))))


def under_budgets(world: Surroundings, looked: BudgetLook) -> Surroundings:
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
        return replace(policy, idle_gpu=tuple(map(with_digest, made.rules)))

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
            None if status.burn_per_hour is None else status.spent.soon(status.burn_per_hour),
        )
        addresses = status.rule.tell or tuple(filter(None, (world.policy.default_channel,)))
        if not addresses:
            _LOG.warning("a budget has nobody to tell", extra={"budget": status.rule.name})
            continue
        told = partial(_is_told, outbox, addresses, now)
        for crossing in untold(status.rule, status.period.key, crossed, told):
            facts = AlertFacts(
                status, crossing, looked.spenders[status.rule.name], looked.now, idle_is_known=looked.idle_is_known
            )
            worded = alert_notice(facts, Language(world.language))
            for address in addresses:
                notice_id = _to_tell(outbox, crossing.alert_id, address, now)
                if notice_id is None:
                    continue
                outbox.enqueue(
                    Notice(
                        notice_id=notice_id,
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


def _is_told(outbox: OutboxRepository, addresses: Sequence[str], now: datetime, alert_id: str) -> bool:
    """Whether every address has it: a run that ended between two of them, or a new address, is made up for."""
    return all(_to_tell(outbox, alert_id, address, now) is None for address in addresses)


def _to_tell(outbox: OutboxRepository, alert_id: str, address: str, now: datetime) -> str | None:
    """The id of the notice that this address is still to get, None where it has it or will.

    What a channel refused for good is told anew a day later, as warnings are: people repair tokens and channels.
    """
    number, notice_id = 1, f"{alert_id}/{address}"
    known = outbox.get(notice_id)
    while known is not None and known.state is NoticeState.DEAD and now - known.created_at >= TELL_AGAIN:
        number += 1
        notice_id = f"{alert_id}/{address}/{number}"
        known = outbox.get(notice_id)
    return notice_id if known is None else None
