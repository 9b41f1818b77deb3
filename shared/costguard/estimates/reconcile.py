"""What was metered against what was billed for it, once the bill has caught up; and what nobody metered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from statistics import median

from costguard.domain.money import Money, PricingCategory, SpendLine
from costguard.domain.refs import provider_of
from costguard.estimates.billed import Charge, is_usage
from costguard.estimates.burn import Metered, MeteredFleet, accrued
from costguard.estimates.period import Day

LEAST = timedelta(days=3)
LOWEST_FACTOR, HIGHEST_FACTOR = Decimal("0.5"), Decimal("1.5")
_DISCOUNTS_ONLY = "aws"
_PLACES = Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Metered and billed spend of machines over the same complete days.

    `error` is (metered - billed) / billed: 0.25 means a quarter too much was reckoned. `factor` is what metered spend
    has to be multiplied by, within bounds; `bounded` says that they cut it. `spread` is the mean distance of a
    day's bill from what was metered times `factor`, as a share of it.
    """

    days: int
    metered: Money
    billed: Money
    error: Decimal
    factor: Decimal
    bounded: bool
    spread: Decimal


@dataclass(frozen=True, slots=True)
class Unexplained:
    """Billed for accelerators of one service in one account, for nothing that an inventory ever listed."""

    cloud: str
    account: str
    service_name: str
    money: Money
    resources: tuple[str, ...]


def explained(line: SpendLine, known: MeteredFleet) -> bool:
    """Whether a charge for accelerators is for a machine that is metered.

    By its id where the bill tells one; else by the type, if one of that type was metered in that account.
    """
    if not line.accelerated:
        return False
    if line.resource_id:
        return line.resource_id in known.ids
    return (line.cloud, line.sub_account_id, line.instance_type) in known.types


def is_metered(line: SpendLine, known: MeteredFleet) -> bool:
    """Whether a charge is for what the meter counts, so that it is not estimated a second time.

    On AWS a commitment is a discount on machines that are metered. Elsewhere it is the term of a machine that is not,
    though others of its type may be.
    """
    of_a_term = line.pricing_category is PricingCategory.COMMITTED and provider_of(line.cloud) != _DISCOUNTS_ONLY
    return explained(line, known) and (not of_a_term or bool(line.resource_id))


def reconciled(
    given: Iterable[Charge], metered: Sequence[Metered], days: Sequence[Day], known: MeteredFleet, currency: str
) -> Reconciled | None:
    """How far metering is off, over days that the bill holds in full and that were metered in full.

    Compared are the bill's own charge periods that lie within these days: a bill by the day of China says nothing of
    the days of another zone. Periods in which nothing was metered or nothing billed say nothing; None with less than
    three days that do.

    Raises:
        ValueError: something is in another currency.
    """
    costs: dict[tuple[datetime, datetime], Money] = {}
    for charge in given:
        when = charge.line.charge_period_start, charge.line.charge_period_end
        inside = days and days[0].start <= when[0] and when[1] <= days[-1].end
        if inside and is_usage(charge.line) and is_metered(charge.line, known):
            costs[when] = costs.get(when, Money(Decimal(0), currency)) + charge.money
    telling: list[tuple[Decimal, Decimal]] = []
    length = timedelta(0)
    for (start, end), cost in costs.items():
        ran = accrued(metered, start, end).of(currency).amount
        if ran > 0 and cost.amount > 0:
            telling.append((ran, cost.amount))
            length += end - start
    if length < LEAST:
        return None
    all_ran = sum((ran for ran, _ in telling), Decimal(0))
    all_cost = sum((cost for _, cost in telling), Decimal(0))
    found = median(cost / ran for ran, cost in telling)  # one day that was billed late does not move it
    factor = min(max(found, LOWEST_FACTOR), HIGHEST_FACTOR)
    off = sum((abs(cost - ran * factor) for ran, cost in telling), Decimal(0))
    return Reconciled(
        days=length // timedelta(days=1),
        metered=Money(all_ran, currency),
        billed=Money(all_cost, currency),
        error=((all_ran - all_cost) / all_cost).quantize(_PLACES),
        factor=factor.quantize(_PLACES),
        bounded=factor != found,
        spread=(off / (all_ran * factor)).quantize(_PLACES),
    )


def unexplained(given: Iterable[Charge], days: Sequence[Day], known: MeteredFleet) -> tuple[Unexplained, ...]:
    """Spend on accelerators that no listed machine explains, over these days, dearest first in each currency."""
    sums: dict[tuple[str, str, str, str], Decimal] = {}
    resources: dict[tuple[str, str, str, str], set[str]] = {}
    for charge in given:
        line = charge.line
        if not line.accelerated or explained(line, known):
            continue
        amount = sum((charge.part(day.start, day.end) for day in days), Decimal(0))
        key = (line.cloud, line.sub_account_id, line.service_name, charge.money.currency)
        sums[key] = sums.get(key, Decimal(0)) + amount
        if line.resource_id:
            resources.setdefault(key, set()).add(line.resource_id)
    found = [
        Unexplained(cloud, account, service, Money(amount, currency), tuple(sorted(resources.get(key, ()))))
        for key, amount in sums.items()
        for cloud, account, service, currency in [key]
        if amount > 0
    ]
    return tuple(sorted(found, key=lambda one: (one.money.currency, -one.money.amount, one.service_name)))
