"""What ran, by the hour and its rate: the part of spend no bill shows yet; and a burn that leaves its own history."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from statistics import median

from costguard.domain.findings import InstanceFact, ShardFacts
from costguard.domain.money import ExchangeRate, Money, SpendScope, converted, totals
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Billing, Instance, InstanceState

_TICK = timedelta(microseconds=1)
_TICKS_AN_HOUR = timedelta(hours=1) // _TICK


@dataclass(frozen=True, slots=True)
class Metered:
    """One stretch of time in which one machine ran and was paid for, at one rate; `until` is outside it.

    `until` None: it runs still, as far as is known. `hourly` None: nobody knows what it costs, which is not zero.
    `own` is what `hourly` was before it was exchanged, None where it was not.
    """

    ref: ResourceRef
    since: datetime
    until: datetime | None
    hourly: Money | None
    instance_type: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    own: Money | None = None


@dataclass(frozen=True, slots=True)
class Accrued:
    """What machines cost in some time, exact, one sum per currency; `unpriced` ran too, at a cost nobody knows."""

    money: tuple[Money, ...]
    unpriced: tuple[ResourceRef, ...]

    def of(self, currency: str) -> Money:
        """The sum in this currency, zero where there is none.

        Raises:
            ValueError: there are sums in other currencies, which would be left out.
        """
        others = [money.currency for money in self.money if money.currency != currency]
        if others:
            message = f"accrued in {others}, asked for {currency}; convert by dated rates first"
            raise ValueError(message)
        return next(iter(self.money), Money(Decimal(0), currency))


def in_scope(metered: Iterable[Metered], scope: SpendScope) -> tuple[Metered, ...]:
    """What of this falls into the slice a budget watches."""
    return tuple(one for one in metered if scope.holds(one.ref.cloud, one.ref.account, one.ref.region, one.tags))


def accrued(metered: Iterable[Metered], since: datetime, until: datetime) -> Accrued:
    """What ran between two moments, by its rate and to the microsecond.

    Where stretches of one machine overlap, the time is counted once, at the rate of the one that began first.
    """
    ticks: dict[Money, int] = {}
    unpriced: set[ResourceRef] = set()
    counted_until: dict[ResourceRef, datetime] = {}
    meant = [one for one in metered if one.since < until and (one.until is None or since < one.until)]
    for one in sorted(meant, key=lambda stretch: stretch.since):
        start = max(one.since, since, counted_until.get(one.ref, since))
        end = until if one.until is None else min(one.until, until)
        if start >= end:
            continue
        counted_until[one.ref] = end
        if one.hourly is None:
            unpriced.add(one.ref)
        else:
            ticks[one.hourly] = ticks.get(one.hourly, 0) + (end - start) // _TICK
    sums = totals(Money(rate.amount * count / _TICKS_AN_HOUR, rate.currency) for rate, count in ticks.items())
    return Accrued(sums, tuple(sorted(unpriced)))


def burning(metered: Iterable[Metered], now: datetime) -> Accrued:
    """What runs at this moment, as money an hour; a stretch that ends now has ended."""
    rates: dict[ResourceRef, Money | None] = {}
    running = [one for one in metered if one.since <= now and (one.until is None or now < one.until)]
    for one in sorted(running, key=lambda stretch: stretch.since):
        rates.setdefault(one.ref, one.hourly)
    unpriced = tuple(sorted(ref for ref, hourly in rates.items() if hourly is None))
    return Accrued(totals(hourly for hourly in rates.values() if hourly is not None), unpriced)


def priced_in(
    metered: Iterable[Metered], currency: str, rates: Sequence[ExchangeRate], on: Callable[[str], date]
) -> tuple[tuple[Metered, ...], tuple[str, ...]]:
    """The same in `currency` by the rates of a day; and the currencies no rate was given for, left out.

    `on` is the date that it is on the bills of a cloud.
    """
    exchanged: list[Metered] = []
    without: set[str] = set()
    for one in metered:
        hourly = None if one.hourly is None else converted(one.hourly, currency, on(one.ref.cloud), rates)
        if one.hourly is not None and hourly is None:
            without.add(one.hourly.currency)
        else:
            exchanged.append(one if hourly is one.hourly else replace(one, hourly=hourly, own=one.hourly))
    return tuple(exchanged), tuple(sorted(without))


@dataclass(frozen=True, slots=True)
class MeteredFleet:
    """What has been metered: which machines by id, and which types ran in which account of which cloud."""

    ids: Collection[str]
    types: Collection[tuple[str, str, str]]


def known(metered: Iterable[Metered]) -> MeteredFleet:
    """What bill lines can be explained by. Give everything metered, whatever its tags: a bill has tags of its own."""
    all_of_it = tuple(metered)
    return MeteredFleet(
        frozenset(one.ref.native_id for one in all_of_it),
        frozenset((one.ref.cloud, one.ref.account, one.instance_type) for one in all_of_it if one.instance_type),
    )


WEEKS = 4
LEAST_WEEKS = 2
LEAST_HOURS = 24
_JUST_NOW = 6  # hours that are not compared with, so that a run that failed leaves others to see the surge
DEVIATIONS = Decimal(5)
FACTOR = Decimal("1.5")
FACTOR_WITH_LITTLE = Decimal(3)
FLOOR_SHARE = Decimal("0.05")
_NORMAL = Decimal("1.4826")  # makes a median absolute deviation comparable to a standard deviation
_HOUR, _DAY, _WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)
_HOURS_A_DAY = Decimal(24)
_PLACES = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Surge:
    """Evidence that the burn is out of the ordinary: money an hour now and usually, and how many times as much.

    `factor` None: usually nothing runs at all. `compared` says with what.
    """

    now: Money
    usual: Money
    factor: Decimal | None
    compared: str


def floor_of(budget: Money) -> Money:
    """The excess an hour below which nothing is a surge: what would take a day to use 5 % of the budget."""
    return budget.times(FLOOR_SHARE / _HOURS_A_DAY)


def surge(metered: Sequence[Metered], now: datetime, metered_since: datetime, floor: Money) -> Surge | None:
    """Whether what burns now leaves what burned at the same hours of the past weeks; None where it does not.

    `metered_since`: from when on metering is whole, so that nothing metered means nothing ran. With less than two
    weeks of it the burn must be three times the most of the past day, its last six hours left out.

    Raises:
        ValueError: something is in another currency than `floor`.
    """
    currency = floor.currency
    burn = burning(metered, now).of(currency).amount
    weeks = min((now - metered_since) // _WEEK, WEEKS)
    if weeks >= LEAST_WEEKS:
        moments = [now - week * _WEEK + hour * _HOUR for week in range(1, weeks + 1) for hour in (-1, 0, 1)]
        past = [burning(metered, moment).of(currency).amount for moment in moments]
        usual = median(past)
        spread = median(abs(amount - usual) for amount in past) * _NORMAL
        bound = max(usual + DEVIATIONS * spread, max(past) * FACTOR)
        compared = f"the same hours of the past {weeks} weeks"
    elif now - metered_since >= LEAST_HOURS * _HOUR:
        hours_known = range(LEAST_HOURS, _JUST_NOW, -1)
        usual = max(burning(metered, now - hour * _HOUR).of(currency).amount for hour in hours_known)
        bound = usual * FACTOR_WITH_LITTLE
        compared = f"the past {LEAST_HOURS} hours"
    else:
        return None
    if burn <= bound or burn - usual < floor.amount:
        return None
    factor = (burn / usual).quantize(_PLACES) if usual else None
    return Surge(Money(burn, currency), Money(usual, currency), factor, compared)


KEPT = timedelta(days=33)  # four weeks to compare a burn with, and the first midnight of the longest month
_BY_THE_HOUR = frozenset({Billing.ON_DEMAND, Billing.SPOT})
_PAID_STATES = frozenset({InstanceState.PENDING, InstanceState.RUNNING, InstanceState.STOPPING})


@dataclass(frozen=True, slots=True)
class MeteredRun:
    """One run of one machine; its `metered.until` is None while it is seen running."""

    metered: Metered
    run_epoch: str


@dataclass(frozen=True, slots=True)
class MeterSheet:
    """What was metered in one shard since `since`, as of its last complete look at `looked_at`."""

    since: datetime
    looked_at: datetime
    runs: tuple[MeteredRun, ...]


def metered_on(sheet: MeterSheet | None, facts: ShardFacts, now: datetime) -> MeterSheet | None:
    """The sheet after one more look; a look that was not complete changes nothing.

    A machine no longer seen running ran at least until the look before, or until its cloud says. What is paid for
    otherwise than by the hour is not metered: its cost comes with the bill.
    """
    if not facts.complete:
        return sheet
    paid = {(fact.instance.ref, fact.instance.run_epoch): fact for fact in facts.instances if _is_paid(fact.instance)}
    instances = {fact.instance.ref: fact.instance for fact in facts.instances}
    runs = [*_carried(sheet, paid, instances, now)] if sheet is not None else []
    going_on = {(run.metered.ref, run.run_epoch) for run in runs if run.metered.until is None}
    begun = (_begun(fact, sheet, now) for key, fact in paid.items() if key not in going_on)
    since = now - KEPT if sheet is None else max(sheet.since, now - KEPT)
    first = now if sheet is None else since
    return MeterSheet(first, now, tuple(sorted((*runs, *begun), key=lambda run: (run.metered.since, run.metered.ref))))


def by_the_hour(instance: Instance) -> bool:
    """Whether it is metered while it is paid for."""
    return instance.billing in _BY_THE_HOUR


def _is_paid(instance: Instance) -> bool:
    return by_the_hour(instance) and (instance.state in _PAID_STATES or instance.billed_while_stopped)


def _carried(
    sheet: MeterSheet,
    paid: Mapping[tuple[ResourceRef, str], InstanceFact],
    instances: Mapping[ResourceRef, Instance],
    now: datetime,
) -> Iterator[MeteredRun]:
    for run in sheet.runs:
        one = run.metered
        if one.until is not None:
            if one.until > now - KEPT:
                yield run
            continue
        fact = paid.get((one.ref, run.run_epoch))
        if fact is None:
            yield replace(run, metered=replace(one, until=_ended(sheet, instances.get(one.ref), now)))
            continue
        rate = _rate(fact)
        if rate is None or one.hourly in {None, rate}:
            # a price that came to be known was the price before as well
            yield replace(run, metered=replace(one, hourly=rate or one.hourly, tags=fact.instance.tags))
            continue
        yield replace(run, metered=replace(one, until=sheet.looked_at))
        yield MeteredRun(_metered(fact, sheet.looked_at), run.run_epoch)


def _ended(sheet: MeterSheet, instance: Instance | None, now: datetime) -> datetime:
    told = instance.stopped_at if instance is not None else None
    return told if told is not None and sheet.looked_at <= told <= now else sheet.looked_at


def _begun(fact: InstanceFact, sheet: MeterSheet | None, now: datetime) -> MeteredRun:
    """A run seen for the first time: since it began, but not before the look that did not see it yet."""
    launched = fact.instance.launched_at
    earliest = now - KEPT if sheet is None else sheet.looked_at
    since = max(earliest, launched) if launched is not None else (now if sheet is None else earliest)
    return MeteredRun(_metered(fact, min(since, now)), fact.instance.run_epoch)


def _metered(fact: InstanceFact, since: datetime) -> Metered:
    instance = fact.instance
    return Metered(instance.ref, since, None, _rate(fact), instance.instance_type, dict(instance.tags))


def _rate(fact: InstanceFact) -> Money | None:
    return fact.rate.money if fact.rate is not None else None
