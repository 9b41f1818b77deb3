"""Liveness of budgets: what a spent and trusted budget asks for is stopped within its grace and a few runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from tests.simulation.budgets import Demand, month_of
from tests.simulation.oracle import money, truth
from tests.simulation.oracle.judge import Violation
from tests.simulation.oracle.trust import Sight, why_not
from tests.world_ports.translate import to_product

from cloudstand.world.kinds import InstanceState
from cloudstand.world.records import Machine
from costguard.cases import CaseStatus
from costguard.domain.actions import Verb
from costguard.domain.reasons import ReasonCode

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

GRACE = timedelta(hours=80)  # three daily runs, and the longest wait of a step within them
_SURELY = Decimal("-0.05")
_NO_EXCUSES = frozenset({ReasonCode.MERGED, ReasonCode.UNMEASURED})


def unheeded(simulation: Simulation) -> Iterator[Violation]:
    """Machines that run on though a budget has asked for them for long enough, and no report says who keeps them."""
    reports = simulation.reports.get("budget", [])
    report = reports[-1] if reports else None
    if not reports:
        return
    now = simulation.hub.now
    simulation.world.tick(now)
    if report is None or report.plan is None:
        yield Violation(0, now, "-", "the last quiet run of the budget guard made no plan")
        return
    version = simulation.versions[simulation.version]
    if version.working_hours or money.moved(simulation.world):
        return
    waits = {
        step.after.subject.native_id
        for step in report.plan.transitions
        if step.after.status is CaseStatus.SNOOZED
        or (step.after.status is CaseStatus.HELD and step.after.reason.code not in _NO_EXCUSES)
    }
    waits |= {  # what is kept has no case at all, where it was kept before one was opened
        word.machine
        for word in simulation.chronicle.words
        if word.what == "snooze" and word.until is not None and word.until > now - GRACE
    }
    for machine in simulation.world.machines.values():
        if machine.state is InstanceState.RUNNING and machine.native_id not in waits:
            for demand in _asked(simulation, machine, now):
                what = f"{demand.rule.name} has asked for it for {GRACE}, and it runs, neither stopped nor held"
                yield Violation(0, now, machine.native_id, what)


def _asked(simulation: Simulation, machine: Machine, now: datetime) -> Iterator[Demand]:
    """The steps that have surely asked for this machine for long enough, where no gentler one may have."""
    world, version = simulation.world, simulation.versions[simulation.version]
    shown = simulation.clouds.whole([to_product(machine.ref)]).get(to_product(machine.ref))
    if shown is None or truth.why_untouchable(shown, version, now, Verb.STOP) or machine.spec.one_time_spot:
        return
    started = machine.runs[-1][0]
    process = simulation.last_process("budget")
    if process is None or now - started < GRACE:
        return
    demands = [one for budget in version.budgets for one in budget.demands(machine.spec.cloud, machine.tags)]
    if any(one.rule.mode != "enforce" for one in demands):
        return
    sight = Sight(world, simulation.chronicle, process, version, now, simulation.hub.calls)
    classes = [one for one in demands if one.of_class]
    if any(why_not(sight, one.budget, _SURELY) for one in demands):
        return  # a gentler step that nobody trusts keeps the machine, as one that is trusted would
    for demand in demands:
        if classes and not demand.of_class:
            continue  # left to the class, where that is in force
        lasting = timedelta(hours=demand.rule.lasting)
        was_idle = demand.of_class or not (
            truth.was_busy(machine, now - started, now) or truth.why_not_idle(machine, lasting, now)
        )
        if was_idle and _long_spent(simulation, demand, now):
            yield demand


def _long_spent(simulation: Simulation, demand: Demand, now: datetime) -> bool:
    budget, version = demand.budget, simulation.versions[simulation.version]
    threshold = budget.amount * demand.step.at / 100
    begun = month_of(now, budget.zone)[1]
    then = now - GRACE
    if then <= begun or simulation.changed_at > then:
        return False
    for moment in (then, now):
        until = {}
        for cloud in money.clouds_of(simulation.world, budget):
            reads = [
                one.until
                for one in simulation.chronicle.bills
                if one.cloud == cloud and one.at <= moment and one.until is not None
            ]
            until[cloud] = max(reads, default=begun)
        found = money.reckoned(
            simulation.world,
            simulation.chronicle,
            budget,
            (begun, moment),
            until,
            rates=version.rates,
            posted_before=moment - money.KEEPS_FOR,
        )
        if found.low < threshold:
            return False
    return True
