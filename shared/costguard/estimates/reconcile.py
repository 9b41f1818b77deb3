"""What was metered against what was billed for it, once the bill has caught up; and what nobody metered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from costguard.domain.money import Money
from costguard.domain.refs import provider_of
from costguard.domain.spend import PricingCategory, SpendLine
from costguard.estimates.billed import Charge, daily, is_usage
from costguard.estimates.burn import Known, Metered, accrued
from costguard.estimates.period import Day

LEAST_DAYS = 3
LOWEST_FACTOR, HIGHEST_FACTOR = Decimal("0.5"), Decimal("1.5")
_DISCOUNTS_ONLY = "aws"
_PLACES = Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class Reconciled:
    """Metered and billed spend of machines over the same complete days.

    `error` is (metered - billed) / billed: 0.25 means a quarter too much was reckoned. `factor` is what metered spend
    has to be multiplied by, within bounds; `bounded` says that they cut it.
    """

    days: int
    metered: Money
    billed: Money
    error: Decimal
    factor: Decimal
    bounded: bool


@dataclass(frozen=True, slots=True)
class Unexplained:
    """Billed for accelerators of one service in one account, for nothing that an inventory ever listed."""

    cloud: str
    account: str
    service_name: str
    money: Money
    resources: tuple[str, ...]


def explained(line: SpendLine, known: Known) -> bool:
    """Whether a charge for accelerators is for a machine that is metered.

    By its id where the bill tells one; else by the type, if one of that type was metered in that account.
    """
    if not line.accelerated:
        return False
    if line.resource_id:
        return line.resource_id in known.ids
    return (line.cloud, line.sub_account_id, line.instance_type) in known.types


def is_metered(line: SpendLine, known: Known) -> bool:
    """Whether a charge is for what the meter counts, so that it is not estimated a second time.

    On AWS a commitment is a discount on machines that are metered. Elsewhere it is the term of a machine that is not,
    though others of its type may be.
    """
    of_a_term = line.pricing_category is PricingCategory.COMMITTED and provider_of(line.cloud) != _DISCOUNTS_ONLY
    return explained(line, known) and (not of_a_term or bool(line.resource_id))


def reconciled(
    given: Iterable[Charge], metered: Sequence[Metered], days: Sequence[Day], known: Known, currency: str
) -> Reconciled | None:
    """How far metering is off, over days that the bill holds in full and that were metered in full.

    Days on which nothing was metered or nothing billed say nothing; None with fewer than three that do.

    Raises:
        ValueError: something is in another currency.
    """
    of_machines = [charge for charge in given if is_usage(charge.line) and is_metered(charge.line, known)]
    costs = daily(of_machines, days, currency)
    pairs = [
        (accrued(metered, day.start, day.end).of(currency).amount, cost.spent.amount)
        for day, cost in zip(days, costs, strict=True)
    ]
    telling = [(ran, cost) for ran, cost in pairs if ran > 0 and cost > 0]
    if len(telling) < LEAST_DAYS:
        return None
    ran = sum((ran for ran, _ in telling), Decimal(0))
    cost = sum((cost for _, cost in telling), Decimal(0))
    found = median(cost / ran for ran, cost in telling)  # one day that was billed late does not move it
    factor = min(max(found, LOWEST_FACTOR), HIGHEST_FACTOR)
    return Reconciled(
        days=len(telling),
        metered=Money(ran, currency),
        billed=Money(cost, currency),
        error=((ran - cost) / cost).quantize(_PLACES),
        factor=factor.quantize(_PLACES),
        bounded=factor != found,
    )


def unexplained(given: Iterable[Charge], days: Sequence[Day], known: Known) -> tuple[Unexplained, ...]:
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
