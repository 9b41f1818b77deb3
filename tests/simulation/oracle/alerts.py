"""Rule 14: every threshold that is known to be crossed is told once per address, and none that never was."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from tests.simulation.budgets import BudgetSpec, month_named, month_of
from tests.simulation.chronicle import Told
from tests.simulation.hub import Process
from tests.simulation.oracle import money
from tests.simulation.oracle.figures import before_by, budget_before, policy_of, reckoned_by
from tests.simulation.oracle.judge import Violation
from tests.simulation.oracle.trust import Sight, listings_of, read_whole
from tests.simulation.rules import CHANNEL, PolicyVersion

from costguard.domain.money import SpendScope

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

_ACTUAL = re.compile(r"Budget (\S+): ([\d.]+) % of ([\d,.]+) ([A-Z]{3}) (?:(was spent in)|is (about to be )?spent)")
_FORECAST = re.compile(r"Budget (\S+): ([\d.]+) % of ([\d,.]+) ([A-Z]{3}) will be (passed)()")
_SETTLED = timedelta(
    minutes=75
)  # after a send that failed: the longest wait before the next, and a claim's five minutes
_UNTIL_NEXT_LOOK = 2  # hours that an alert may be early by, with room for two clocks
_TOLD_AGAIN = timedelta(hours=25)  # what was refused for good is tried anew a day later
_LOOKS_BACK = timedelta(days=4)
_CENT = Decimal("0.01")
_INSTANT = timedelta.resolution


@dataclass(frozen=True, slots=True)
class Reckoning:
    """What a run may have reckoned to be spent in the month of its look, at least; and at most until the next look.

    `soon` None: it may not have read everything, so that it may say of nothing that it did not come true.
    """

    process: Process
    at: datetime
    budget: BudgetSpec
    period: str
    low: Decimal
    soon: Decimal | None

    def is_of(self, alert: Alert, scopes: set[SpendScope]) -> bool:
        """Whether it is about what an alert told of."""
        same = (self.period, self.budget.currency) == (alert.told.period, alert.currency)
        return same and money.scope_of(self.budget) in scopes


@dataclass(frozen=True, slots=True)
class Alert:
    """What a message says was crossed."""

    told: Told
    budget: str
    forecast: bool
    percent: Decimal
    amount: Decimal
    currency: str
    early: bool = False
    over: bool = False  # of a month that had ended

    @property
    def crossed(self) -> Decimal:
        """The threshold as money."""
        return self.amount * self.percent / 100

    @property
    def where(self) -> tuple[object, ...]:
        """In which month, to whom, of which kind and in which currency it was told."""
        return self.told.period, self.told.address, self.forecast, self.currency


def alert_of(told: Told) -> Alert | None:
    """The alert that a message is, if it is one."""
    for pattern in (_ACTUAL, _FORECAST):
        match = pattern.match(told.title)
        if match is not None:
            name, percent, amount, currency, over, soon = match.groups()
            forecast = pattern is _FORECAST
            money_ = Decimal(amount.replace(",", ""))
            actual = not forecast
            return Alert(
                *(told, name, forecast, Decimal(percent), money_, currency),
                early=actual and bool(soon),
                over=actual and bool(over),
            )
    return None


def alerts(told: Sequence[Told]) -> list[Alert]:
    """Those among messages."""
    found = (alert_of(one) for one in told)
    return [alert for alert in found if alert is not None]


def never_crossed(simulation: Simulation, told: Told) -> Iterator[Violation]:
    """A threshold told of that even the most generous reckoning had not reached."""
    alert = alert_of(told)
    if alert is None or alert.forecast or money.moved(simulation.world):
        return
    meant = _meant(alert, simulation.versions[: simulation.version + 1])
    if not meant:
        yield Violation(14, told.at, f"budget {alert.budget}", f"no policy has such a budget: {told.title}")
        return
    simulation.world.tick(simulation.hub.now)
    highest = max(_most(simulation, budget, alert) for budget in meant)
    if highest + _CENT < alert.crossed:
        what = f"told {alert.crossed:.2f} is spent, where {highest:.2f} can be: {told.title}"
        yield Violation(14, told.at, f"budget {alert.budget}", what)


def _most(simulation: Simulation, budget: BudgetSpec, alert: Alert) -> Decimal:
    """What can be spent; or what can be before the next look, by figures that may be half of what is not billed off."""
    world, chronicle = simulation.world, simulation.chronicle
    since, ends = month_named(alert.told.period, budget.zone)
    at = min(simulation.hub.now, ends)
    until = {}
    for cloud in money.clouds_of(world, budget):
        reads = [one.until for one in chronicle.bills if one.cloud == cloud and one.at >= at - _LOOKS_BACK]
        shown = [end for end in reads if end is not None]
        until[cloud] = min(shown, default=since)
    found = money.reckoned(world, chronicle, budget, (since, at), until, rates=True, posted_before=since)
    if not alert.early:
        return found.certain
    burn = sum((money.burn_of(world, budget, cloud, at) for cloud in until), Decimal(0))
    return found.high + found.unbilled / 2 + burn * _UNTIL_NEXT_LOOK


def lost(simulation: Simulation, process: Process) -> Iterator[Violation]:
    """Thresholds that a run which read everything must have seen crossed, and that nobody was told of by its end."""
    version = policy_of(simulation, process)
    unlucky = process.struck or not process.alone or not _can_tell(simulation)
    if version is None or unlucky or money.moved(simulation.world):
        return
    looks = [one.at for one in simulation.chronicle.bills if one.process is process]
    listings = [one.at for cloud in simulation.cloud_names for one in listings_of(_sight(simulation, process), cloud)]
    moments = [*looks, *listings]
    if not moments:
        return
    at = max(moments)
    simulation.world.tick(simulation.hub.now)
    sight = Sight(simulation.world, simulation.chronicle, process, version, at, simulation.hub.calls)
    read = alerts([*simulation.chronicle.told, *simulation.chronicle.shown])
    for budget in version.budgets:
        found = reckoned_by(simulation, sight, budget)
        period, since, _ = month_of(at, budget.zone)
        if found is not None:
            soon = found.high + found.unbilled / 2 + _burn(simulation, budget, at) * _UNTIL_NEXT_LOOK
            high = soon if read_whole(sight, budget) else None
            simulation.reckonings.append(Reckoning(process, at, budget, period, found.low, high))
            yield from _unheard(simulation, read, budget, period, found.low)
        then = budget_before(simulation, budget, since)
        before = before_by(simulation, sight, budget, since) if then is not None else None
        if before is not None and then is not None:
            yield from _unheard(simulation, read, then, month_of(since - _INSTANT, budget.zone)[0], before.low)


def _burn(simulation: Simulation, budget: BudgetSpec, at: datetime) -> Decimal:
    clouds = money.clouds_of(simulation.world, budget)
    return sum((money.burn_of(simulation.world, budget, cloud, at) for cloud in clouds), Decimal(0))


def _unheard(
    simulation: Simulation, read: list[Alert], budget: BudgetSpec, period: str, spent: Decimal
) -> Iterator[Violation]:
    for address in budget.tell or (CHANNEL,):
        for percent in budget.told_at:
            crossed = spent >= budget.amount * percent / 100
            if crossed and not _heard(simulation, read, budget, (period, address), percent):
                what = f"{percent} % of {budget.amount} {budget.currency} is spent, and {address} does not know"
                yield Violation(14, simulation.hub.now, f"budget {budget.name}, {period}", what)


def _sight(simulation: Simulation, process: Process) -> Sight:
    version = simulation.versions[simulation.version]
    return Sight(simulation.world, simulation.chronicle, process, version, simulation.hub.now, simulation.hub.calls)


def _can_tell(simulation: Simulation) -> bool:
    """Whether the channel works, has for a while, and nobody has said that nothing may be done."""
    channel, now = simulation.channel, simulation.hub.now
    switch = [word.what for word in simulation.chronicle.words if word.what in {"pause", "resume"}]
    settled = channel.troubled_at is None or now - channel.troubled_at > _SETTLED
    settled &= channel.refused_at is None or now - channel.refused_at > _TOLD_AGAIN
    return settled and not channel.down and channel.proves and switch[-1:] != ["pause"]


def _heard(
    simulation: Simulation, read: list[Alert], budget: BudgetSpec, told_in: tuple[str, str], percent: int
) -> bool:
    """Told of this share of this amount or of a higher one, whatever its name was; or of the same money before a raise.

    `told_in` is the month, and the address.
    """
    where = (*told_in, False, budget.currency)
    mine = [one for one in read if one.where == where and money.scope_of(budget) in _scopes(simulation, one)]
    mine = [one for one in mine if not _fell_back(simulation, one)]
    shares = [share for share in budget.told_at if share >= percent]
    return any(
        (one.amount == budget.amount and one.percent >= percent)
        or any(_raised(one, budget.name, share, budget.amount * share / 100) for share in shares)
        for one in mine
    )


def _fell_back(simulation: Simulation, alert: Alert) -> bool:
    """Whether a run since has surely seen that what it said was about to be was not: it stands for nothing then."""
    scopes = _scopes(simulation, alert)
    return alert.early and any(
        one.soon is not None and one.soon < alert.crossed
        for one in simulation.reckonings
        if one.at > alert.told.at and one.is_of(alert, scopes)
    )


def _may_have_fallen_back(simulation: Simulation, alert: Alert, until: Process) -> bool:
    """Whether a run since, up to this one, can have seen that."""
    if not alert.early:
        return False
    scopes = _scopes(simulation, alert)
    runs = [
        one
        for one in simulation.processes
        if one.guard == "budget" and (not one.alone or one.began is None or one.began >= alert.told.asked)
    ]
    upto = runs[: runs.index(until) + 1] if until in runs else runs
    known = {
        id(one.process): one.low
        for one in simulation.reckonings
        if one.at > alert.told.asked and one.is_of(alert, scopes)
    }
    return any(id(one) not in known or known[id(one)] < alert.crossed for one in upto)


def _raised(told: Alert, name: str, percent: Decimal | int, crossed: Decimal) -> bool:
    """Whether it told of the same money, as a greater share of what the budget was before it was raised."""
    return told.budget == name and told.crossed == crossed and told.percent > percent


def _scopes(simulation: Simulation, alert: Alert) -> set[SpendScope]:
    """What the budget that it names has watched, by any version of the policy."""
    return {money.scope_of(one) for one in _meant(alert, simulation.versions)}


def _meant(alert: Alert, versions: Sequence[PolicyVersion]) -> list[BudgetSpec]:
    """The budgets that it may tell of, by name and amount; of a month that is over, by the amount that held then."""
    named = [budget for version in versions if (budget := version.budget(alert.budget)) is not None]
    if alert.over:
        scopes = {money.scope_of(budget) for budget in named}
        named = [budget for version in versions for budget in version.budgets if money.scope_of(budget) in scopes]
    return [budget for budget in named if budget.amount == alert.amount]


def told_again(simulation: Simulation) -> Iterator[Violation]:
    """The same threshold told twice though the first was known to be delivered, or a lower one after it.

    The same is the same share of the same amount for the same scope, whatever its name; and of money that was told of
    as all of a budget, the half of what it was raised to.
    """
    noticed = simulation.shelf.noticed
    read = alerts(simulation.chronicle.told)
    for place, one in enumerate(read):
        for other in read[:place]:
            if one.where != other.where or not _scopes(simulation, one) & _scopes(simulation, other):
                continue
            raised = _raised(other, one.budget, one.percent, one.crossed)
            if not raised and (one.amount != other.amount or one.percent > other.percent):
                continue
            before = noticed[other.told.notice_id].delivered
            if before is None:
                continue
            first = noticed[one.told.notice_id]
            if first.writer is not None and _may_have_fallen_back(simulation, other, first.writer):
                continue
            same = one.told.notice_id == other.told.notice_id
            stands = raised or (first.writer is not None and _stands(simulation, first.writer, one.budget, other))
            alone = first.writer is not None and first.writer.alone and stands
            if one.told.asked_number > before if same else (alone and first.first > before):
                what = f"told of {one.crossed:.2f}, though {other.crossed:.2f} had been told: {one.told.title}"
                yield Violation(14, one.told.at, f"budget {one.budget}", what)


def _stands(simulation: Simulation, process: Process, name: str, alert: Alert) -> bool:
    """Whether the policy that a run went by still has the threshold that was told, by this name."""
    version = policy_of(simulation, process)
    budget = version.budget(name) if version is not None else None
    if budget is None:
        return False
    return alert.percent in map(Decimal, budget.forecasts if alert.forecast else budget.told_at)
