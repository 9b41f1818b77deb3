"""Spent so far = billed + accrued since the bill's last hour + estimated for everything else, each part shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from costguard.domain.money import Money, hours
from costguard.domain.refs import ResourceRef
from costguard.estimates.billed import Charge, daily, is_usage, total_in
from costguard.estimates.burn import Known, Metered, accrued
from costguard.estimates.period import Day
from costguard.estimates.reconcile import is_metered

MOST_DAYS = 7  # one of each weekday: a mean over fewer or more days leans on some of them


@dataclass(frozen=True, slots=True)
class RunRate:
    """What goes on being used outside metered machines: the mean of the last `days` complete days, by the hour."""

    per_hour: Money
    days: int


@dataclass(frozen=True, slots=True)
class Spent:
    """What a period cost so far. `ahead` is what a bill that is not complete yet already shows beyond the estimate.

    `complete_until`: up to when the bill alone speaks. `unpriced`: ran since, at a cost nobody knows and in no part.
    `rest_is_known` is False where the bill is too young for a run rate, so that `estimated` lacks what is not metered.
    `unbilled_per_hour` is the mean of what no bill shows yet, None where there is nothing of it to take a mean of.
    """

    billed: Money
    accrued: Money
    estimated: Money
    ahead: Money
    complete_until: datetime
    unpriced: tuple[ResourceRef, ...] = ()
    rest_is_known: bool = True
    unbilled_per_hour: Money | None = None

    @property
    def total(self) -> Money:
        """All parts."""
        return self.billed + self.accrued + self.estimated + self.ahead

    @property
    def estimated_share(self) -> Decimal:
        """How much of the total no bill shows yet, 0 to 1; 1 where there is no positive total to take a share of."""
        unbilled = self.accrued.amount + self.estimated.amount
        total = self.total.amount
        if not unbilled:
            return Decimal(0)
        return min(max(unbilled / total, Decimal(0)), Decimal(1)) if total > 0 else Decimal(1)

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
        )


def _both(one: Money | None, other: Money | None) -> Money | None:
    return one + other if one is not None and other is not None else None


def rest_rate(given: Iterable[Charge], days: Sequence[Day], known: Known, currency: str) -> RunRate | None:
    """What is used outside metered machines, from the last complete days of a bill; None without a complete day.

    Only usage: credits, refunds, tax and purchases happen once. `days`: complete in the bill, in order; the last seven
    count.

    Raises:
        ValueError: a charge is in another currency.
    """
    last = tuple(day for day in days if day.start < day.end)[-MOST_DAYS:]
    if not last:
        return None
    others = [charge for charge in given if is_usage(charge.line) and not is_metered(charge.line, known)]
    total = sum((day.spent.amount for day in daily(others, last, currency)), Decimal(0))
    length = sum((day.hours for day in last), Decimal(0))
    return RunRate(Money(total / length, currency), len(last))


def spent(
    given: Sequence[Charge],
    metered: Sequence[Metered],
    rest: RunRate | None,
    known: Known,
    *,
    since: datetime,
    complete_until: datetime | None,
    now: datetime,
    currency: str,
    factor: Decimal = Decimal(1),
) -> Spent:
    """What one payer's bill and its machines cost from `since` to `now`.

    `given` are the bill's charges in scope, `metered` the machines in scope, all in `currency`; `factor` calibrates
    what machines cost by list (see `reconcile`). `complete_until` None: the bill says nothing yet, so all is reckoned.

    Raises:
        ValueError: something is in another currency.
    """
    gap = min(max(complete_until or since, since), now)
    of_machines = [charge for charge in given if is_metered(charge.line, known)]
    of_others = [charge for charge in given if not is_metered(charge.line, known)]
    ran = accrued(metered, gap, now)
    accrued_money = ran.of(currency).times(factor)
    nothing = Money(Decimal(0), currency)
    estimated = rest.per_hour.times(hours(now - gap)) if rest is not None else nothing
    ahead = _beyond(of_machines, accrued_money, gap, now) + _beyond(of_others, estimated, gap, now)
    length = hours(now - gap)
    unbilled = accrued_money + estimated
    return Spent(
        billed=total_in(given, since, gap, currency),
        accrued=accrued_money,
        estimated=estimated,
        ahead=ahead,
        complete_until=complete_until or since,
        unpriced=ran.unpriced,
        rest_is_known=rest is not None or gap >= now,
        unbilled_per_hour=unbilled.times(1 / length) if length else None,
    )


def _beyond(given: Iterable[Charge], reckoned: Money, gap: datetime, now: datetime) -> Money:
    """What an incomplete bill shows already, above what was reckoned: it can only grow."""
    shown = total_in(given, gap, now, reckoned.currency)
    return Money(max(shown.amount - reckoned.amount, Decimal(0)), reckoned.currency)
