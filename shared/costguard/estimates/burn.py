"""What ran, by the hour and its rate: the part of spend no bill shows yet; and a burn that leaves its own history."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from statistics import median

from costguard.domain.money import Money, SpendScope, totals
from costguard.domain.refs import ResourceRef
from costguard.estimates.exchange import ExchangeRate, converted

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
