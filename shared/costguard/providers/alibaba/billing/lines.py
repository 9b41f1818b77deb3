"""From records of bills to charges in the words of FOCUS. Pure.

What is paid once for a term is a PURCHASE with a billed cost and no effective one; its effective cost comes as usage
under a commitment with the days of the term, which begins with the day of the order: bills tell no hour of it. Where a
term is not understood, the whole is its effective cost at once: never less than was spent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal

from costguard.domain.money import Money
from costguard.domain.spend import ChargeCategory, PricingCategory, SpendLine
from costguard.providers.alibaba.billing.answers import Row
from costguard.providers.alibaba.billing.calendar import DAY, begin_of, day_of, end_of
from costguard.providers.alibaba.billing.regions import region_of
from costguard.providers.kit.core.redaction import without_secrets

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Payer:
    """Whose bill it is."""

    cloud: str
    account: str


def lines_of(payer: Payer, row: Row) -> Iterator[SpendLine]:
    """The charges of one record of a day."""
    nothing = row.due.times(0)
    spread = row.category is ChargeCategory.PURCHASE and row.term is not None
    yield _line(payer, row, row.category, row.due, nothing if spread else row.due)
    if row.vouchers.amount:
        paid = row.vouchers.times(-1)
        yield replace(_line(payer, row, ChargeCategory.CREDIT, paid, paid), pricing_category=PricingCategory.STANDARD)


def amortised(payer: Payer, row: Row, since: datetime, until: datetime) -> Iterator[SpendLine]:
    """What of an order's cost the days from `since` to `until` use up."""
    if row.day is None or row.term is None:
        return
    begins, ends = begin_of(row.day), row.term.end(row.day)
    start = max(begins, begin_of(day_of(since)))
    while start < min(ends, until):
        share = Decimal((min(start + DAY, ends) - start) // _SECOND) / Decimal((ends - begins) // _SECOND)
        usage = _line(payer, row, ChargeCategory.USAGE, row.due.times(0), row.due.times(share))
        yield replace(usage, charge_period_start=start, charge_period_end=start + DAY)
        start += DAY


def of_a_day(payer: Payer, day: date, owner: str, product: str, category: ChargeCategory, money: Money) -> SpendLine:
    """A charge that no record of a resource stands for."""
    return SpendLine(
        cloud=payer.cloud,
        billing_account_id=payer.account,
        sub_account_id=owner,
        region_id="",
        service_name=product,
        charge_category=category,
        charge_period_start=begin_of(day),
        charge_period_end=end_of(day),
        billed_cost=money,
        effective_cost=money,
    )


def with_known_types(rows: Sequence[Row]) -> list[Row]:
    """Records without a type take it from another of the same resource: a bill tells types a day after amounts."""
    types = {row.resource_id: row.instance_type for row in rows if row.instance_type}
    return [
        row if row.instance_type or row.resource_id not in types else replace(row, instance_type=types[row.resource_id])
        for row in rows
    ]


def _line(payer: Payer, row: Row, category: ChargeCategory, billed: Money, effective: Money) -> SpendLine:
    if row.day is None:
        message = "a record of a whole cycle has no day"
        raise ValueError(message)
    return SpendLine(
        cloud=payer.cloud,
        billing_account_id=payer.account,
        sub_account_id=row.owner,
        region_id=region_of(row.region) or "",
        service_name=without_secrets(row.product),
        charge_category=category,
        charge_period_start=begin_of(row.day),
        charge_period_end=end_of(row.day),
        billed_cost=billed,
        effective_cost=effective,
        pricing_category=row.pricing,
        instance_type=row.instance_type,
        resource_id=row.resource_id,
        resource_name=row.resource_name,
        accelerated=row.accelerated,
        tags=row.tags or {},
    )
