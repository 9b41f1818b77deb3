"""What a budget's scope has cost in truth, and between which bounds a program that read everything may reckon it.

A program knows the bill up to the moment it is shown for, and from there on multiplies what it saw running by its
price. Where nothing began, ended or was hidden, that is the truth, but for what its clock is off by and for what no
meter counts (disks, platforms, commitments: estimated by their recent rate). Where a machine was started or stopped, it
knows when only between two looks, and a day that it metered in part may make it think that prices are half or one and
a half times what is quoted. Where a listing left a machine out or came late, nothing is known of the unbilled time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from decimal import Decimal

from tests.simulation.budgets import YUAN_A_DOLLAR, BudgetSpec
from tests.simulation.chronicle import BillRead, Chronicle
from tests.simulation.hub import Process
from tests.world_ports.translate import to_product

from cloudstand.world.billing import Charge, charges, day_offset
from cloudstand.world.cloud import World
from cloudstand.world.kinds import Billing
from cloudstand.world.money import ChargeCategory, Money
from cloudstand.world.prices import DISK_GIB_MONTH, PREPAID_SHARE, currency_of
from cloudstand.world.records import Machine, OtherCharge, WorldVolume
from costguard.domain.money import HOURS_PER_MONTH, SpendScope, hours
from costguard.domain.refs import provider_of

SKEW_HOURS = Decimal(20) / 60
KEEPS_FOR = timedelta(hours=8, minutes=25)  # a bill read eight hours ago still serves, by two clocks ten minutes off
_WEEK_SHAPE = Decimal("1.5")  # by how much a day may be thought dearer than others, from a history that began midway
_LATE = timedelta(minutes=2)  # a machine takes up to a minute to stop, which some clouds bill and some do not
_SMEARED_HOURS = 16  # the longer part of a day of China on one side of a midnight of UTC
_FOREVER = timedelta(days=40_000)
_BY_THE_HOUR = frozenset({Billing.ON_DEMAND, Billing.SPOT})
_YOUNG = timedelta(days=3)  # what began within them is no rate
_RECENT = timedelta(days=10)  # a run rate looks back seven whole days, on a bill up to two days late
_COUNTED = frozenset({ChargeCategory.ADJUSTMENT, ChargeCategory.PURCHASE, ChargeCategory.USAGE})


@dataclass(frozen=True, slots=True)
class Reckoned:
    """What one may reckon, from `low` to `high`; and in truth how much no bill shows yet, of which totals.

    `seen_unbilled` is what of that a run must know: machines by the hour, and the rest where it is no news. `certain`
    is the most without what is taken from a recent rate. `plain`: nothing began, ended or was hidden, so that the
    bounds are narrow.
    """

    low: Decimal
    high: Decimal
    unbilled: Decimal
    seen_unbilled: Decimal
    least_total: Decimal
    most_total: Decimal
    plain: bool
    certain: Decimal = Decimal(0)


def scope_of(budget: BudgetSpec) -> SpendScope:
    """Its scope in the words that bills are asked by."""
    return SpendScope(tuple(sorted(budget.clouds)) or None, tags=(("team", budget.team),) if budget.team else ())


def in_currency(money: Money, budget: BudgetSpec, *, rates: bool) -> Decimal | None:
    """An amount in the budget's currency; None where no rate is given."""
    if money.currency == budget.currency:
        return money.amount
    if not rates or {money.currency, budget.currency} != {"USD", "CNY"}:
        return None
    return money.amount * YUAN_A_DOLLAR if money.currency == "USD" else money.amount / YUAN_A_DOLLAR


def clouds_of(world: World, budget: BudgetSpec) -> list[str]:
    """The clouds in its scope that anything ever stood in."""
    return sorted({spec.cloud for spec in world.fleet if not budget.clouds or spec.cloud in budget.clouds})


def machines_of(world: World, budget: BudgetSpec, cloud: str) -> list[Machine]:
    """The machines of one cloud that carry its tags now."""
    return [one for one in world.machines.values() if one.spec.cloud == cloud and budget.holds(cloud, one.tags)]


def moved(world: World) -> bool:
    """Whether a machine changed teams: its bill then shows its whole past under the new one, from some moment on."""
    return any(happening.what.startswith("tag team=") for happening in world.history)


def own_reads(chronicle: Chronicle, budget: BudgetSpec, cloud: str, process: Process) -> list[BillRead]:
    """What this process asked of one cloud's bill for this budget."""
    scope = scope_of(budget)
    return [one for one in chronicle.bills if one.process is process and one.cloud == cloud and scope in one.scopes]


def known_until(
    chronicle: Chronicle, budget: BudgetSpec, cloud: str, process: Process, at: datetime
) -> tuple[datetime, datetime] | None:
    """Up to when the bill that this process went by may have been shown, earliest and latest; None: nobody can say."""
    own = own_reads(chronicle, budget, cloud, process)
    if own:
        ends = [one.until for one in own]
        last = ends[-1]
        return (last, last) if last is not None else None
    scope = scope_of(budget)
    known = [
        one.until
        for one in chronicle.bills
        if one.cloud == cloud and scope in one.scopes and one.until is not None and at - KEEPS_FOR <= one.at <= at
    ]
    return (min(known), max(known)) if known else None


def reckoned(
    world: World,
    chronicle: Chronicle,
    budget: BudgetSpec,
    span: tuple[datetime, datetime],
    until: dict[str, datetime],
    *,
    rates: bool,
    posted_before: datetime | None = None,
) -> Reckoned:
    """The bounds from the first moment of `span` to the last, by bills shown up to `until` of each cloud.

    `posted_before`: what was put on the bill only later need not have been in what was read.
    """
    since, at = span
    low = high = unbilled = seen_unbilled = least_total = most_total = certainly = Decimal(0)
    plain = True
    for cloud in clouds_of(world, budget):
        gap = min(max(until.get(cloud, since), since), at)
        window = hours(at - gap)
        ran_before, rest_before = _usage(world, budget, cloud, since, gap, rates=rates)
        ran, rest = _usage(world, budget, cloud, gap, at, rates=rates)
        hourly = sum((_hourly(one, budget, rates=rates) for one in machines_of(world, budget, cloud)), Decimal(0))
        young = gap - _rest_began(world, budget, cloud, at) < _YOUNG
        unmetered = Decimal(0) if young else _rest_hourly(world, budget, cloud, at, rates=rates)
        others = list(_others(world, budget, cloud, since, at, rates=rates))
        billed_by = posted_before or at
        sure = [amount for amount, other, posted in others if other.end <= gap and posted <= billed_by]
        open_ = [amount for amount, other, posted in others if other.end > gap or posted > billed_by]
        certain = sum(sure, Decimal(0))
        gains = sum((amount for amount in open_ if amount > 0), Decimal(0))
        losses = sum((amount for amount in open_ if amount < 0), Decimal(0))
        billed = ran_before + rest_before + certain
        calm = _plain(world, chronicle, budget, cloud)
        unseen = _unseen(world, chronicle, budget, cloud, gap, rates=rates)
        if calm:
            least, most = ran, ran
        elif _faithful(chronicle, cloud):
            between = _between_looks(world, chronicle, budget, cloud, (gap, at), rates=rates)
            least, most = ran / 2 - between, ran * Decimal("1.5") + between
        else:
            least, most = Decimal(0), ran * Decimal("1.5") + hourly * window
        least -= hourly * SKEW_HOURS + unseen
        most += hourly * SKEW_HOURS
        smeared = _smeared(world, chronicle, budget, cloud, since, rates=rates)
        low += billed + max(least, Decimal(0)) + losses - smeared
        high += billed + most + max(rest, unmetered * _WEEK_SHAPE * (window + SKEW_HOURS)) + gains + smeared
        certainly += billed + most + rest + gains + smeared
        unbilled += ran + rest
        seen_unbilled += ran if _has_news(world, budget, cloud, gap) else ran + rest
        least_total += billed + ran + rest + losses
        most_total += billed + ran + rest + gains
        plain = plain and calm
    return Reckoned(low, high, unbilled, seen_unbilled, least_total, most_total, plain, certainly)


def burn_of(world: World, budget: BudgetSpec, cloud: str, at: datetime) -> Decimal:
    """The most an hour that everything in scope can cost, at any rate there may be."""
    metered = sum((_hourly(one, budget, rates=True) for one in machines_of(world, budget, cloud)), Decimal(0))
    return metered * Decimal("1.5") + _rest_hourly(world, budget, cloud, at, rates=True)


def _usage(
    world: World, budget: BudgetSpec, cloud: str, since: datetime, until: datetime, *, rates: bool
) -> tuple[Decimal, Decimal]:
    """What ran by the hour in this time, and what else of machines and disks was used."""
    ran = rest = Decimal(0)
    for charge in charges(world, cloud, since, until, _FOREVER):
        if charge.category is not ChargeCategory.USAGE or not _of_machines(charge):
            continue
        amount = in_currency(charge.effective, budget, rates=rates)
        if amount is None or not budget.holds(cloud, charge.tags or {}):
            continue
        if charge.machine is not None and charge.machine.spec.billing in _BY_THE_HOUR:
            ran += amount
        else:
            rest += amount
    return ran, rest


def _of_machines(charge: Charge) -> bool:
    return charge.machine is not None or charge.service == "volume"


def _hourly(machine: Machine, budget: BudgetSpec, *, rates: bool) -> Decimal:
    price = machine.spec.hourly
    if price is None or machine.spec.billing not in _BY_THE_HOUR:
        return Decimal(0)
    return in_currency(price, budget, rates=rates) or Decimal(0)


def _rest_hourly(world: World, budget: BudgetSpec, cloud: str, at: datetime, *, rates: bool) -> Decimal:
    """The most an hour that a run rate can make of what no meter counts."""
    found: list[Money] = []
    for machine in machines_of(world, budget, cloud):
        price = machine.spec.hourly
        if price is not None and machine.spec.billing not in _BY_THE_HOUR:
            found.append(price.times(PREPAID_SHARE))
    for volume in world.volumes.values():
        if volume.cloud == cloud and budget.holds(cloud, volume.tags):
            owner = world.machines.get(volume.machine)
            priced = owner.spec.hourly if owner is not None else None
            currency = priced.currency if priced is not None else currency_of(cloud)
            found.append(Money(volume.disk.size_gib * DISK_GIB_MONTH / HOURS_PER_MONTH, currency))
    for other in world.other_charges:
        used = other.cloud == cloud and other.category is ChargeCategory.USAGE and at - _RECENT <= other.end
        if used and budget.holds(cloud, other.tags):
            found.append(other.money.times(Decimal(1) / 24))
    amounts = (in_currency(money, budget, rates=rates) for money in found)
    return sum((amount for amount in amounts if amount is not None), Decimal(0))


def _rest_began(world: World, budget: BudgetSpec, cloud: str, at: datetime) -> datetime:
    """When anything that no meter counts was charged for the first time."""
    own = (one.runs[0][0] for one in machines_of(world, budget, cloud) if one.spec.billing not in _BY_THE_HOUR)
    disks = (one for one in world.volumes.values() if one.cloud == cloud and budget.holds(cloud, one.tags))
    others = (
        one.start
        for one in world.other_charges
        if one.cloud == cloud and one.category is ChargeCategory.USAGE and budget.holds(cloud, one.tags)
    )
    return min((*own, *(disk.created_at or at - _RECENT for disk in disks), *others), default=at - _RECENT)


def _has_news(world: World, budget: BudgetSpec, cloud: str, gap: datetime) -> bool:
    """Whether something that no meter counts began so late that the mean of its last days says too little of it."""
    since = gap - _RECENT
    own = (one.runs[0][0] for one in machines_of(world, budget, cloud) if one.spec.billing not in _BY_THE_HOUR)
    disks = (one for one in world.volumes.values() if one.cloud == cloud and budget.holds(cloud, one.tags))
    others = (one.end for one in world.other_charges if one.cloud == cloud and budget.holds(cloud, one.tags))
    return any(moment > since for moment in (*own, *(_made(world, disk) for disk in disks), *others))


def _made(world: World, disk: WorldVolume) -> datetime:
    """When a disk came to be; of one that is detached and does not tell, as late as can be."""
    owner = world.machines.get(disk.machine)
    return disk.created_at or (owner.runs[0][0] if owner is not None else world.now)


def _others(
    world: World, budget: BudgetSpec, cloud: str, since: datetime, at: datetime, *, rates: bool
) -> Iterator[tuple[Decimal, OtherCharge, datetime]]:
    """What counts of charges for no machine, and when each was put on the bill."""
    posted = [happening.at for happening in world.history if happening.what.startswith("charge ")]
    for other, moment in zip(world.other_charges, posted, strict=True):
        mine = other.cloud == cloud and budget.holds(cloud, other.tags) and other.category in _COUNTED
        if mine and since <= other.start and other.end <= at:
            amount = in_currency(other.money, budget, rates=rates)
            if amount is not None:
                yield amount, other, moment


def _plain(world: World, chronicle: Chronicle, budget: BudgetSpec, cloud: str) -> bool:
    """Nothing in scope began or ended, every listing told all there was, and no commitment blurs what was metered."""
    for machine in machines_of(world, budget, cloud):
        if len(machine.runs) > 1 or machine.runs[0][1] is not None or machine.runs[0][0] != machine.spec.launched_at:
            return False
        if _appeared(world, machine):
            return False
        if provider_of(cloud) == "aws" and machine.spec.billing not in _BY_THE_HOUR:
            return False
    return _faithful(chronicle, cloud)


def _faithful(chronicle: Chronicle, cloud: str) -> bool:
    listings = (each for shard, each in chronicle.listings.items() if shard.cloud == cloud)
    return all(listing.faithful for each in listings for listing in each)


def _between_looks(
    world: World, chronicle: Chronicle, budget: BudgetSpec, cloud: str, span: tuple[datetime, datetime], *, rates: bool
) -> Decimal:
    """What the machines that were started or stopped cost between the looks before and after."""
    total = Decimal(0)
    for machine in machines_of(world, budget, cloud):
        looks = [
            one.at
            for one in chronicle.listings.get(to_product(machine.shard), [])
            if one.complete and one.process.guard == "budget" and (one.process.finished or one.at >= span[1])
        ]
        open_for = Decimal(0)
        for moment in _turns(machine):
            before = max((look for look in looks if look < moment - _LATE), default=span[0])
            after = min((look for look in looks if look > moment + _LATE), default=span[1])
            begin, end = max(before, span[0]), min(after, span[1])
            open_for += max(hours(end - begin), Decimal(0)) if begin < end else Decimal(0)
        total += _hourly(machine, budget, rates=rates) * open_for
    return total


def _appeared(world: World, machine: Machine) -> bool:
    return any(one.what == "launch" and one.native_id == machine.native_id for one in world.history)


def _unseen(
    world: World, chronicle: Chronicle, budget: BudgetSpec, cloud: str, gap: datetime, *, rates: bool
) -> Decimal:
    """What ran after the bill and before the first look, where the cloud does not tell since when it runs."""
    if provider_of(cloud) != "tencent":
        return Decimal(0)
    found = Decimal(0)
    for machine in machines_of(world, budget, cloud):
        looks = chronicle.listings.get(to_product(machine.shard), [])
        first = _first(
            [one.at for one in looks if one.process.guard == "budget" and one.process.finished and one.complete]
        )
        if first is None:
            first = _first([one.at for one in reversed(looks) if one.process.guard == "budget"])
        began = max(gap, machine.runs[0][0])
        if first is not None and first > began:
            found += _hourly(machine, budget, rates=rates) * hours(first - began)
    return found


def _smeared(
    world: World, chronicle: Chronicle, budget: BudgetSpec, cloud: str, since: datetime, *, rates: bool
) -> Decimal:
    """What a day's charge is off by where the month begins within it: divided evenly, or by what looks saw running."""
    midnight = (since + day_offset(cloud)).time() == time(0)
    if midnight:
        return Decimal(0)
    near = (
        one
        for one in machines_of(world, budget, cloud)
        if any(_seen_turning(chronicle, one, moment, since) for moment in _turns(one))
    )
    return sum((_hourly(one, budget, rates=rates) * _SMEARED_HOURS for one in near), Decimal(0))


def _seen_turning(chronicle: Chronicle, machine: Machine, moment: datetime, since: datetime) -> bool:
    """Whether it was started or stopped, for all that the looks before can tell, within a day of a moment."""
    looks = [
        one.at
        for one in chronicle.listings.get(to_product(machine.shard), [])
        if one.complete and one.process.guard == "budget" and one.at < moment
    ]
    day = timedelta(days=1)
    return since - day < moment and min(moment, max(looks, default=since)) < since + day


def _turns(machine: Machine) -> list[datetime]:
    """When it was started and stopped."""
    return [moment for run in machine.runs for moment in run if moment is not None]


def _first(moments: Sequence[datetime]) -> datetime | None:
    return moments[0] if moments else None
