"""Where a budget's figures are from: kinds of charges, machines by the hour, rates of exchange. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from costguard.domain.money import ChargeCategory, ExchangeRate, Money, SpendLine, hours, rate_on
from costguard.domain.refs import ResourceRef
from costguard.estimates.billed import Charge, Counting, counted
from costguard.estimates.burn import Metered


@dataclass(frozen=True, slots=True)
class CategorySum:
    """What one kind of charge came to, in the currency it was billed in; `counts`: it is in the budget's spend.

    `worth` is what of that spend it is, in the budget's currency; nothing where no rate was given.
    """

    category: ChargeCategory
    counts: bool
    money: Money
    worth: Money | None = None


@dataclass(frozen=True, slots=True)
class MachineHours:
    """How long one machine ran at one rate, and what that is reckoned to cost; `own`: the rate before an exchange."""

    ref: ResourceRef
    instance_type: str
    hourly: Money
    hours: Decimal
    money: Money
    own: Money | None = None


@dataclass(frozen=True, slots=True)
class _Everything:
    basis: str
    credits: bool = True
    tax: bool = True


def by_category(
    lines: Iterable[SpendLine],
    counting: Counting,
    since: datetime,
    until: datetime,
    spent: Iterable[tuple[SpendLine, Money]] = (),
) -> tuple[CategorySum, ...]:
    """What each kind of charge came to from `since` to `until`, what counts first; kinds without money left out.

    `spent` is what each line that counts is of the budget's spend, in its currency.
    """
    worth: dict[tuple[bool, ChargeCategory, str], Money] = {}
    for line, part in spent:
        own = counted(line, counting)
        if own is not None and part.amount:
            place = (True, line.charge_category, own.currency)
            worth[place] = worth[place] + part if place in worth else part
    sums: dict[tuple[bool, ChargeCategory, str], Decimal] = {}
    everything = _Everything(counting.basis)
    for line in lines:
        money = counted(line, everything)
        if money is None:
            continue
        key = (counted(line, counting) is not None, line.charge_category, money.currency)
        sums[key] = sums.get(key, Decimal(0)) + Charge(money, line).part(since, until)
    order = list(ChargeCategory)
    return tuple(
        CategorySum(category, counts, Money(amount, currency), worth.get((counts, category, currency)))
        for (counts, category, currency), amount in sorted(
            sums.items(), key=lambda pair: (not pair[0][0], order.index(pair[0][1]), pair[0][2])
        )
        if amount or (counts, category, currency) in worth
    )


def by_machine(
    metered: Iterable[Metered], since: datetime, until: datetime, factor: Decimal = Decimal(1)
) -> tuple[MachineHours, ...]:
    """What `burn.accrued` adds up, machine by machine, dearest first; machines without a price are not in it."""
    ran: dict[tuple[ResourceRef, str, Money, Money | None], Decimal] = {}
    counted_until: dict[ResourceRef, datetime] = {}
    for one in sorted(metered, key=lambda stretch: stretch.since):
        start = max(one.since, since, counted_until.get(one.ref, since))
        end = until if one.until is None else min(one.until, until)
        if start >= end:
            continue
        counted_until[one.ref] = end
        if one.hourly is not None:
            key = (one.ref, one.instance_type, one.hourly, one.own)
            ran[key] = ran.get(key, Decimal(0)) + hours(end - start)
    found = [
        MachineHours(ref, kind, hourly, length, hourly.times(length * factor), own)
        for (ref, kind, hourly, own), length in ran.items()
    ]
    return dearest_first(found)


def dearest_first(machines: Iterable[MachineHours]) -> tuple[MachineHours, ...]:
    """By what they cost, then by id."""
    return tuple(sorted(machines, key=lambda one: (-one.money.amount, one.ref)))


def rates_used(
    spent: Iterable[tuple[str, date]], currency: str, rates: Sequence[ExchangeRate]
) -> tuple[ExchangeRate, ...]:
    """The rates that turn money of these currencies and days into `currency`, oldest first."""
    found = {rate_on(base, currency, on, rates) for base, on in set(spent) if base != currency}
    return tuple(
        sorted((rate for rate in found if rate is not None), key=lambda rate: (rate.since, rate.base, rate.quote))
    )
