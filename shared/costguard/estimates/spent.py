"""Spent so far = billed + accrued since the bill's last hour + estimated for everything else, each part shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from statistics import median_low

from costguard.domain.money import Money, SpendLine, hours
from costguard.domain.refs import ResourceRef
from costguard.estimates.billed import Charge, daily, is_usage, total_in
from costguard.estimates.burn import Metered, MeteredFleet, accrued
from costguard.estimates.period import Day
from costguard.estimates.reconcile import is_metered
from costguard.estimates.seasonal import LEAST_FOR_SHAPE, back_test, begun, steady, week_shape

_ONE_DAY, _ONE_HOUR = timedelta(days=1), timedelta(hours=1)
_MOST_DAYS_AHEAD = 4  # more than the slowest bill is behind
_PLACES = 4
_CENTS = Decimal("0.0001")
_UNTRIED = Decimal("0.5")
MOST_DAYS = 7  # one of each weekday: a mean over fewer or more days leans on some of them
LEAST_DAYS = 3  # of fewer nobody can tell what goes on from what happened once


@dataclass(frozen=True, slots=True)
class RunRate:
    """What goes on being used outside metered machines: the mean of the last `days` complete days, by the hour.

    `after` is when the last of them ended, and `shape` how the days of a week compare with the mean one, beginning with
    the day after it. `misses` are by how many days ahead: how far four of five such estimates were off at most,
    as a share; where the past is too short to know, half is taken.

    `known` is how many complete days there are since it began. Of fewer than three weeks it is the middle one of the
    last `days` where that is less than their mean, and of fewer than three days nothing: what happened once is no rate.
    """

    per_hour: Money
    days: int
    after: datetime
    shape: tuple[Decimal, ...] = (Decimal(1),) * 7
    misses: tuple[Decimal, ...] = ()
    known: int = LEAST_FOR_SHAPE

    @property
    def is_young(self) -> bool:
        """Whether there are too few days to tell what a day costs."""
        return self.known < LEAST_DAYS

    @property
    def is_new(self) -> bool:
        """Whether it began less than a week before."""
        return self.known < MOST_DAYS

    @property
    def is_cautious(self) -> bool:
        """Whether what happened once is told from what goes on by the middle day."""
        return self.known < LEAST_FOR_SHAPE

    def over(self, since: datetime, until: datetime) -> Money:
        """What it comes to from `since` to `until`."""
        start = since
        total = Money(Decimal(0), self.per_hour.currency)
        while start < until:
            day = (start - self.after) // _ONE_DAY
            end = min(self.after + _ONE_DAY * (day + 1), until)
            total += self.per_hour.times(hours(end - start) * self.shape[day % len(self.shape)])
            start = end
        return total

    def doubt(self, since: datetime, until: datetime) -> Money:
        """By how much that may be too little, four of five times at most."""
        estimate = self.over(since, until)
        if since >= until or not self.misses:
            return estimate.times(_UNTRIED)
        days = -((since - until) // _ONE_DAY)
        return estimate.times(self.misses[min(days, len(self.misses)) - 1])


@dataclass(frozen=True, slots=True)
class Spent:
    """What a period cost so far. `ahead` is what a bill that is not complete yet already shows beyond the estimate.

    `complete_until`: up to when the bill alone speaks. `unpriced`: ran since, at a cost nobody knows and in no part.
    `rest_is_known` is False where the bill, or what is not metered in it, is too young for a run rate, so that
    `estimated` lacks it.
    `unbilled_per_hour` is the mean of what no bill shows yet, None where there is nothing of it to take a mean of.
    `doubt` is by how much the unbilled parts may be too little, going by how such estimates did before; None is none.
    """

    billed: Money
    accrued: Money
    estimated: Money
    ahead: Money
    complete_until: datetime
    unpriced: tuple[ResourceRef, ...] = ()
    rest_is_known: bool = True
    unbilled_per_hour: Money | None = None
    doubt: Money | None = None

    @property
    def total(self) -> Money:
        """All parts."""
        return self.billed + self.accrued + self.estimated + self.ahead

    @property
    def certain(self) -> Money:
        """What is billed, and what machines cost that were seen to run: all but what is taken from a recent rate."""
        return self.billed + self.accrued + self.ahead

    @property
    def estimated_share(self) -> Decimal:
        """How much of the total no bill shows yet, 0 to 1; 1 where there is no positive total to take a share of."""
        unbilled = self.accrued.amount + self.estimated.amount
        total = self.total.amount
        if not unbilled:
            return Decimal(0)
        return min(max(unbilled / total, Decimal(0)), Decimal(1)) if total > 0 else Decimal(1)

    def soon(self, burn_per_hour: Money, until_next_look: timedelta = _ONE_HOUR) -> Money:
        """What thresholds are to be held against, so that an alert is not late: never for stopping anything.

        The total, and what may be missing from it, and what burns until somebody looks again. Of made-up months 98 in
        100 are told in time by it and 77 in 100 by the total alone, see the benchmarks.
        """
        total = self.total + burn_per_hour.times(max(hours(until_next_look), Decimal(0)))
        return total + self.doubt if self.doubt is not None else total

    def __add__(self, other: Spent) -> Spent:
        """Two payers' parts together; the bill that is further behind says how fresh the sum is.

        Raises:
            ValueError: they are in different currencies.
        """
        return Spent(
            self.billed + other.billed,
            self.accrued + other.accrued,
            self.estimated + other.estimated,
            self.ahead + other.ahead,
            min(self.complete_until, other.complete_until),
            (*self.unpriced, *other.unpriced),
            self.rest_is_known and other.rest_is_known,
            _both(self.unbilled_per_hour, other.unbilled_per_hour),
            _doubts(self.doubt, other.doubt),
        )


def _both(one: Money | None, other: Money | None) -> Money | None:
    return one + other if one is not None and other is not None else None


def _doubts(one: Money | None, other: Money | None) -> Money | None:
    """What two estimates may be off together: the root of the squares, as neither knows of the other."""
    if one is None or other is None:
        return other if one is None else one
    total = one + other  # refuses different currencies
    return Money((one.amount**2 + other.amount**2).sqrt().quantize(_CENTS), total.currency)


def rest_rate(given: Iterable[Charge], days: Sequence[Day], known: MeteredFleet, currency: str) -> RunRate | None:
    """What is used outside metered machines, from the last complete days of a bill; None without a complete day.

    Only usage: credits, refunds, tax and purchases happen once. `days`: complete in the bill, in order; the last seven
    count, and fewer where it all began since.

    Raises:
        ValueError: a charge is in another currency.
    """
    whole = tuple(day for day in days if day.start < day.end)
    if not whole:
        return None
    others = [charge for charge in given if is_usage(charge.line) and not is_metered(charge.line, known)]
    amounts = [day.spent.amount for day in daily(others, whole, currency)]
    past = [float(amount) for amount in amounts]
    past = past[begun(past) :]
    last = whole[-min(len(past), MOST_DAYS) :]
    length = sum((day.hours for day in last), Decimal(0))
    mean = sum(amounts[-len(last) :], Decimal(0)) / length
    if len(past) < LEAST_DAYS:
        mean = Decimal(0)
    elif len(past) < LEAST_FOR_SHAPE:
        mean = min(mean, median_low(amounts[-len(last) :]) * len(last) / length)
    tried = [back_test(past, ahead, steady) for ahead in range(1, _MOST_DAYS_AHEAD + 1)]
    return RunRate(
        Money(mean, currency),
        len(last),
        last[-1].end,
        tuple(Decimal(str(round(part, _PLACES))) for part in week_shape(past)),
        tuple(Decimal(str(round(test.width, _PLACES))) for test in tried if test is not None),
        len(past),
    )


def spent(
    given: Sequence[Charge],
    metered: Sequence[Metered],
    rest: RunRate | None,
    known: MeteredFleet,
    *,
    since: datetime,
    complete_until: datetime | None,
    now: datetime,
    currency: str,
    factor: Decimal = Decimal(1),
    spread: Decimal = Decimal(0),
    metered_since: datetime | None = None,
) -> Spent:
    """What one payer's bill and its machines cost from `since` to `now`.

    `given` are the bill's charges in scope, `metered` the machines in scope, all in `currency`. `factor` calibrates
    what machines cost by list, and `spread` is how far that is off (see `Reconciled`). `complete_until` None: the bill
    says nothing yet, so all is reckoned. Where a charge for machines reaches over `since`, as a bill by the days of
    China does into a month of another zone, it is divided as they ran, if `metered_since` is before it.

    Raises:
        ValueError: something is in another currency.
    """
    gap = min(max(complete_until or since, since), now)
    nothing = Money(Decimal(0), currency)
    of_machines = [charge for charge in given if is_metered(charge.line, known)]
    of_others = [charge for charge in given if not is_metered(charge.line, known)]
    ran = accrued(metered, gap, now)
    accrued_money = ran.of(currency).times(factor)
    estimated = rest.over(gap, now) if rest is not None else nothing
    ahead = _beyond(of_machines, accrued_money, gap, now) + _beyond(of_others, estimated, gap, now)
    length = hours(now - gap)
    unbilled = accrued_money + estimated
    return Spent(
        billed=sum((money for _, money in billed_parts(given, metered, known, since, gap, metered_since)), nothing),
        accrued=accrued_money,
        estimated=estimated,
        ahead=ahead,
        complete_until=complete_until or since,
        unpriced=ran.unpriced,
        rest_is_known=(rest is not None and not rest.is_young) or gap >= now,
        unbilled_per_hour=unbilled.times(1 / length) if length else None,
        doubt=_doubts(accrued_money.times(spread), rest.doubt(gap, now) if rest is not None else None),
    )


def billed_parts(
    given: Iterable[Charge],
    metered: Sequence[Metered],
    known: MeteredFleet,
    since: datetime,
    until: datetime,
    metered_since: datetime | None = None,
) -> Iterator[tuple[SpendLine, Money]]:
    """What each charge is of the billed part of a spend (see `spent`)."""
    for charge in given:
        if is_metered(charge.line, known):
            part = _as_it_ran(charge, metered, metered_since, since, until)
        else:
            part = charge.part(since, until)
        yield charge.line, Money(part, charge.money.currency)


def _as_it_ran(
    charge: Charge, metered: Sequence[Metered], metered_since: datetime | None, since: datetime, until: datetime
) -> Decimal:
    """What of a charge falls from `since` to `until`: divided by time, or as its machines ran where that is known."""
    line = charge.line
    start, end = line.charge_period_start, line.charge_period_end
    if metered_since is not None and metered_since <= start < since < end <= until:
        kind = (line.cloud, line.sub_account_id, line.instance_type)
        alike = [one for one in metered if (one.ref.cloud, one.ref.account, one.instance_type) == kind]
        whole, after = (accrued(alike, begin, end).of(charge.money.currency).amount for begin in (start, since))
        if whole > 0:
            return (charge.money.amount * after / whole).quantize(_CENTS)
    return charge.part(since, until)


def _beyond(given: Iterable[Charge], reckoned: Money, gap: datetime, now: datetime) -> Money:
    """What an incomplete bill shows already, above what was reckoned: it can only grow."""
    shown = total_in(given, gap, now, reckoned.currency)
    return Money(max(shown.amount - reckoned.amount, Decimal(0)), reckoned.currency)
