"""What a run says of each budget, held against the world: its figures, and how sure it says it is of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from tests.simulation.budgets import BudgetSpec, month_of
from tests.simulation.faults import Port
from tests.simulation.hub import Process
from tests.simulation.oracle import money
from tests.simulation.oracle.judge import Violation
from tests.simulation.oracle.trust import Sight, why_not
from tests.simulation.rules import PolicyVersion

from cloudstand.world.vendors import vendor_of
from costguard.engine.guards.budgets.look import BudgetLook

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

INPUTS = frozenset({Port.LISTING, Port.PRICES, Port.BILLS, Port.LOAD, Port.STORE, Port.POLICY})
_CENT = Decimal("0.01")
_EDGE = timedelta(minutes=20)  # of a month, by two clocks ten minutes off
_SKEW, _INSTANT = timedelta(minutes=10), timedelta.resolution


def policy_of(simulation: Simulation, process: Process) -> PolicyVersion | None:
    """The policy a run went by; None where it could not read it at once."""
    first = next((read for read in simulation.chronicle.policies if read.process is process), None)
    return simulation.versions[first.version] if first is not None and first.version is not None else None


def wrong(simulation: Simulation, process: Process, look: BudgetLook) -> Iterator[Violation]:
    """Figures off by more than can be, and doubts that are missing."""
    version = policy_of(simulation, process)
    if version is None:
        return
    simulation.world.tick(simulation.hub.now)
    sight = Sight(simulation.world, simulation.chronicle, process, version, look.now, simulation.hub.calls)
    for status in look.statuses:
        budget = version.budget(status.rule.name)
        if budget is None or status.spent is None:
            continue
        total = status.spent.total.amount
        what = _off(simulation, sight, budget, total) if not process.struck & INPUTS else ""
        if not what and not status.doubts:
            unsure = why_not(sight, budget)
            what = f"it says it is sure, and {unsure}" if unsure else ""
        if what:
            yield Violation(13, simulation.hub.now, f"budget {budget.name}", what)


def _off(simulation: Simulation, sight: Sight, budget: BudgetSpec, total: Decimal) -> str:
    found = reckoned_by(simulation, sight, budget)
    if found is None or found.low - _CENT <= total <= found.high + _CENT:
        return ""
    return f"it reckons {total:.2f}, where {found.low:.2f} to {found.high:.2f} can be"


def budget_before(simulation: Simulation, budget: BudgetSpec, ended: datetime) -> BudgetSpec | None:
    """The budget with the amount that every run of its last month saw; None where none did, or they saw several.

    By the name it has now, or by one that no budget has any more.
    """
    scope, month = money.scope_of(budget), month_of(ended - _INSTANT, budget.zone)[1]
    names = {one.name for one in simulation.versions[simulation.version].budgets}
    seen = {
        (one.name, one.amount)
        for process in simulation.processes
        for version in [policy_of(simulation, process)]
        for read in [next((each for each in simulation.chronicle.policies if each.process is process), None)]
        if process.guard == "budget" and process.finished and version is not None and read is not None
        if month + _SKEW <= read.at < ended - _SKEW
        for one in version.budgets
        if money.scope_of(one) == scope and (one.zone, one.currency) == (budget.zone, budget.currency)
    }
    mine = {amount for name, amount in seen if name == budget.name or name not in names}
    return replace(budget, amount=mine.pop()) if len(mine) == 1 and len({name for name, _ in seen}) == 1 else None


def before_by(simulation: Simulation, sight: Sight, budget: BudgetSpec, ended: datetime) -> money.Reckoned | None:
    """What the month that ended then cost at least and at most, by bills that a run read; None where nobody can say.

    Once a cloud's month is final, what comes later need not be known: a run since has judged it for good.
    """
    since = month_of(ended - _INSTANT, budget.zone)[1]
    if money.moved(simulation.world) or sight.at - ended < _EDGE:
        return None
    until, posted = {}, sight.at - money.KEEPS_FOR
    for cloud in money.clouds_of(simulation.world, budget):
        known = money.known_until(simulation.chronicle, budget, cloud, sight.process, sight.at + _EDGE)
        if known is None:
            return None
        until[cloud] = known[0]
        posted = min(posted, ended + vendor_of(cloud).bill_final)
    return money.reckoned(
        simulation.world,
        simulation.chronicle,
        budget,
        (since, ended),
        until,
        rates=sight.version.rates,
        posted_before=posted,
    )


def reckoned_by(simulation: Simulation, sight: Sight, budget: BudgetSpec) -> money.Reckoned | None:
    """What a run that read everything may reckon; None where that cannot be said."""
    _, since, ends = month_of(sight.at, budget.zone)
    if min(sight.at - since, ends - sight.at) < _EDGE or money.moved(simulation.world):
        return None
    until = {}
    for cloud in money.clouds_of(simulation.world, budget):
        known = money.known_until(simulation.chronicle, budget, cloud, sight.process, sight.at + _EDGE)
        if known is None:
            return None
        until[cloud] = known[0]
    posted = sight.at - money.KEEPS_FOR
    return money.reckoned(
        simulation.world,
        simulation.chronicle,
        budget,
        (since, sight.at),
        until,
        rates=sight.version.rates,
        posted_before=posted,
    )
