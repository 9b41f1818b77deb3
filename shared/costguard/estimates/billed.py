"""What of a bill counts, how much of it falls into a stretch of time, and what a ledger keeps of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Protocol

from typing_extensions import assert_never

from costguard.domain.money import ChargeCategory, ExchangeRate, Money, SpendLine, converted, totals
from costguard.estimates.period import Day

_PLACES = Decimal("1E-10")  # parts of a charge end at this place, so that they add up to the charge exactly
_TICK = timedelta(microseconds=1)


class Counting(Protocol):
    """What of a bill counts: `basis` is `effective` or `billed`. A budget's rule says it (`Counted`)."""

    @property
    def basis(self) -> str:
        """Which FOCUS cost."""

    @property
    def credits(self) -> bool:
        """Whether vouchers and promotions lower the spend."""

    @property
    def tax(self) -> bool:
        """Whether tax adds to it."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What one line of a bill counts for, after choice of cost and currency."""

    money: Money
    line: SpendLine

    def part(self, since: datetime, until: datetime) -> Decimal:
        """How much of it falls from `since` to `until`, evenly by time; a charge of one moment falls there whole.

        Parts that follow each other add up to the whole exactly.
        """
        if since <= self.line.charge_period_start < until and self.line.charge_period_end <= until:
            return self.money.amount  # the whole of it, as most parts are
        return self._until(until) - self._until(since) if since < until else Decimal(0)

    def _until(self, moment: datetime) -> Decimal:
        start, end = self.line.charge_period_start, self.line.charge_period_end
        if moment <= start:
            return Decimal(0)
        if moment >= end:
            return self.money.amount
        return (self.money.amount * ((moment - start) // _TICK) / ((end - start) // _TICK)).quantize(_PLACES)


@dataclass(frozen=True, slots=True)
class DailySpend:
    """What was spent on one calendar day of the budget's zone."""

    day: date
    spent: Money


def counted(line: SpendLine, counting: Counting) -> Money | None:
    """What this line counts for; None where it does not count. Refunds and corrections always do.

    Raises:
        ValueError: a basis that is neither `effective` nor `billed`.
    """
    if line.charge_category is ChargeCategory.CREDIT and not counting.credits:
        return None
    if line.charge_category is ChargeCategory.TAX and not counting.tax:
        return None
    if counting.basis == "effective":
        return line.effective_cost
    if counting.basis == "billed":
        return line.billed_cost
    message = f"unknown cost basis {counting.basis!r}"
    raise ValueError(message)


def charges(lines: Iterable[SpendLine], counting: Counting) -> tuple[Charge, ...]:
    """The lines that count, with what they count for."""
    found = ((line, counted(line, counting)) for line in lines)
    return tuple(Charge(money, line) for line, money in found if money is not None)


def in_currency(
    given: Iterable[Charge], currency: str, rates: Sequence[ExchangeRate], on: Callable[[SpendLine], date]
) -> tuple[tuple[Charge, ...], tuple[Charge, ...]]:
    """The charges in `currency` by the rate of the day each is `on`; and as they are those no rate was given for."""
    exchanged: list[Charge] = []
    left: list[Charge] = []
    for charge in given:
        money = converted(charge.money, currency, on(charge.line), rates)
        if money is None:
            left.append(charge)
        else:
            exchanged.append(charge if money is charge.money else Charge(money, charge.line))
    return tuple(exchanged), tuple(left)


def billed(given: Iterable[Charge], since: datetime, until: datetime) -> tuple[Money, ...]:
    """What of the charges falls from `since` to `until`, one sum per currency."""
    return totals(Money(charge.part(since, until), charge.money.currency) for charge in given)


def total_in(given: Iterable[Charge], since: datetime, until: datetime, currency: str) -> Money:
    """As `billed`, where everything is in one currency; nothing is zero.

    Raises:
        ValueError: a charge is in another currency.
    """
    total = Decimal(0)
    for charge in given:
        total += _in(currency, charge).part(since, until)
    return Money(total, currency)


def daily(given: Iterable[Charge], days: Iterable[Day], currency: str) -> tuple[DailySpend, ...]:
    """What was spent each day; a day without a charge is zero, so give only days the bill holds in full.

    `days` are in order and do not overlap.

    Raises:
        ValueError: a charge is in another currency.
    """
    in_order = tuple(days)
    starts = [day.start for day in in_order]
    sums = [Decimal(0)] * len(in_order)
    for charge in given:
        start = charge.line.charge_period_start
        last = max(start, charge.line.charge_period_end - _TICK)
        place = max(bisect_right(starts, start) - 1, 0)
        while place < len(in_order) and starts[place] <= last:
            day = in_order[place]
            sums[place] += _in(currency, charge).part(day.start, day.end)
            place += 1
    return tuple(DailySpend(day.day, Money(total, currency)) for day, total in zip(in_order, sums, strict=True))


def _in(currency: str, charge: Charge) -> Charge:
    """The same charge, which has to be in this currency."""
    if charge.money.currency != currency:
        message = f"cannot add {charge.money.currency} to {currency}; keep one total per currency"
        raise ValueError(message)
    return charge


def is_usage(line: SpendLine) -> bool:
    """Whether the charge is for something used, and so can be expected to go on; the others happen once."""
    category = line.charge_category
    if category is ChargeCategory.USAGE:
        return True
    if (
        category is ChargeCategory.PURCHASE
        or category is ChargeCategory.TAX
        or category is ChargeCategory.CREDIT
        or category is ChargeCategory.ADJUSTMENT
    ):
        return False
    assert_never(category)


def condensed(lines: Iterable[SpendLine]) -> tuple[SpendLine, ...]:
    """Charges alike in time, kind and currency as one line, in order of time; their sums stay exact.

    What tells resources apart is dropped; account, service and type stay where accelerators were charged for.
    """
    found: dict[tuple[object, ...], SpendLine] = {}
    for line in lines:
        kind = replace(
            line,
            sub_account_id=line.sub_account_id if line.accelerated else "",
            region_id="",
            service_name=line.service_name if line.accelerated else "",
            instance_type=line.instance_type if line.accelerated else "",
            resource_id="",
            resource_name="",
            tags={},
            list_cost=line.list_cost if line.accelerated else None,
        )
        key = (*_order(kind), line.cloud, line.billing_account_id)
        known = found.get(key)
        found[key] = kind if known is None else _together(known, kind)
    return tuple(found[key] for key in sorted(found, key=str))


def _together(one: SpendLine, other: SpendLine) -> SpendLine:
    listed = None if one.list_cost is None or other.list_cost is None else one.list_cost + other.list_cost
    return replace(
        one,
        billed_cost=one.billed_cost + other.billed_cost,
        effective_cost=one.effective_cost + other.effective_cost,
        list_cost=listed,
    )


def _order(line: SpendLine) -> tuple[object, ...]:
    money: tuple[Money, Money] = (line.billed_cost, line.effective_cost)
    return (
        line.charge_period_start.isoformat(),
        line.charge_period_end.isoformat(),
        line.charge_category.value,
        line.pricing_category.value,
        line.sub_account_id,
        line.service_name,
        line.instance_type,
        line.accelerated,
        *(each.currency for each in money),
    )
