"""Rule 13: whether the data that a run went by may carry more than an alert, from what the clouds showed it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from tests.simulation.budgets import BudgetSpec, month_of
from tests.simulation.chronicle import Chronicle, Listing
from tests.simulation.hub import Process
from tests.simulation.oracle import money
from tests.simulation.oracle.judge import SKEW
from tests.simulation.rules import PolicyVersion

from cloudstand.world.cloud import World
from costguard.domain.resources import Billing, InstanceState

_BY_THE_HOUR = frozenset({Billing.ON_DEMAND, Billing.SPOT})
_PAID = frozenset({InstanceState.PENDING, InstanceState.RUNNING, InstanceState.STOPPING})


@dataclass(frozen=True, slots=True)
class Sight:
    """One run of the budget guard as the clouds saw it."""

    world: World
    chronicle: Chronicle
    process: Process
    version: PolicyVersion
    at: datetime
    number: int  # boundary calls made when it is judged


def why_not(sight: Sight, budget: BudgetSpec, margin: Decimal = Decimal("0.03")) -> str:
    """What forbids to stop anything for this budget; empty when nothing does.

    `margin` is by how much the estimated share must lie beyond what is allowed: below zero to be sure that it is not.
    """
    return next(_reasons(sight, budget, margin), "")


def read_whole(sight: Sight, budget: BudgetSpec) -> bool:
    """Whether nothing that it asked for was refused or came in part."""
    clouds = money.clouds_of(sight.world, budget)
    reads = (one for cloud in clouds for one in money.own_reads(sight.chronicle, budget, cloud, sight.process))
    seen = all(listing.complete for cloud in clouds for listing in listings_of(sight, cloud))
    blind = any(one.process is sight.process for one in sight.chronicle.blind)
    return seen and not blind and all(one.until is not None for one in reads)


def listings_of(sight: Sight, cloud: str) -> list[Listing]:
    """The last listing of each shard of a cloud by this run."""
    found = []
    for shard, listings in sight.chronicle.listings.items():
        mine = [one for one in listings if one.process is sight.process and shard.cloud == cloud]
        found.extend(mine[-1:])
    return found


def _reasons(sight: Sight, budget: BudgetSpec, margin: Decimal) -> Iterator[str]:
    allowed = timedelta(hours=budget.bill_hours) + SKEW
    scope = money.scope_of(budget)
    until: dict[str, datetime] = {}
    for cloud in money.clouds_of(sight.world, budget):
        own = money.own_reads(sight.chronicle, budget, cloud, sight.process)
        if any(one.until is None for one in own):
            yield f"the bill of {cloud} was not read"
        ever = [
            one.until
            for one in sight.chronicle.bills
            if one.cloud == cloud and scope in one.scopes and one.until is not None and one.number <= sight.number
        ]
        if not ever:
            yield f"the bill of {cloud} was never read for it"
            continue
        mine = [one.until for one in own if one.until is not None]
        until[cloud] = mine[-1] if mine else max(ever)
        if sight.at - until[cloud] > allowed:
            yield f"the bill of {cloud} ends {sight.at - until[cloud]} ago, {budget.bill_hours} h are trusted"
        yield from _blind(sight, budget, cloud)
    yield from _estimated(sight, budget, until, margin)


def _blind(sight: Sight, budget: BudgetSpec, cloud: str) -> Iterator[str]:
    if any(one.process is sight.process and one.cloud == cloud for one in sight.chronicle.blind):
        yield f"what runs in {cloud} was not seen"
    for listing in listings_of(sight, cloud):
        if not listing.complete:
            yield f"a shard of {cloud} was not listed to its end"
        for instance in listing.shown.values():
            runs = instance.billing in _BY_THE_HOUR and instance.state in _PAID
            spec = sight.world.machines[instance.ref.native_id].spec
            if not runs or not budget.holds(cloud, instance.tags):
                continue
            if spec.hourly is None:
                yield f"nobody knows what {instance.ref.native_id} costs"
            elif money.in_currency(spec.hourly, budget, rates=sight.version.rates) is None:
                yield f"there is no rate for {spec.hourly.currency}"


def _estimated(sight: Sight, budget: BudgetSpec, until: dict[str, datetime], margin: Decimal) -> Iterator[str]:
    if money.moved(sight.world):
        return
    _, since, _ = month_of(sight.at, budget.zone)
    span = (since, sight.at)
    posted = sight.at - money.KEEPS_FOR
    rates = sight.version.rates
    found = money.reckoned(sight.world, sight.chronicle, budget, span, until, rates=rates, posted_before=posted)
    allowed = Decimal(budget.estimated) / 100 + margin
    if not found.plain and margin > 0:
        return  # it may have reckoned less than the truth
    unbilled, total = (found.seen_unbilled, found.most_total) if margin > 0 else (found.unbilled, found.least_total)
    if unbilled > 0 and (total <= 0 or unbilled / total > allowed):
        yield f"{unbilled:.2f} of {total:.2f} is not billed yet, {budget.estimated} % may be"
