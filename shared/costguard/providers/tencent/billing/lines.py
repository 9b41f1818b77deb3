"""From records of a bill to charges by day: summed where alike, terms paid in advance spread over their days.

Days are those of UTC+8. What is paid once for a term is a PURCHASE with a billed cost and no effective one; its
effective cost comes with the days of the term as usage under a commitment, until a refund of the same resource ends
it. A refund of a term therefore has no effective cost of its own. What vouchers and free credit paid is a CREDIT
beside the charge that it paid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from decimal import Decimal

from costguard.domain.money import ChargeCategory, Money, PricingCategory, SpendLine
from costguard.providers.tencent.billing.answers import Row

DAY = timedelta(days=1)
_BEIJING = timedelta(hours=8)
_EXACT = Decimal("0.00000001")  # bills have eight places
_Key = tuple[str, str, str, str, ChargeCategory, PricingCategory, str, str, bool, tuple[tuple[str, str], ...], str]


def day_of(moment: datetime) -> datetime:
    """The beginning, in UTC, of the day in UTC+8 that `moment` falls into."""
    local = moment.astimezone(timezone.utc) + _BEIJING
    return local.replace(hour=0, minute=0, second=0, microsecond=0) - _BEIJING


@dataclass(slots=True)
class Charges:
    """The charges of the days from `since` to `until` (one payer's bill of `cloud`), as its records come in."""

    cloud: str
    payer: str
    since: datetime
    until: datetime
    _sums: dict[tuple[datetime, _Key], list[Decimal]] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _terms: list[Row] = field(default_factory=list)
    _returned: dict[str, datetime] = field(default_factory=dict)

    def take(self, rows: Iterable[Row]) -> None:
        """Count these records in."""
        for row in rows:
            self._names.setdefault(row.resource_id, row.resource_name)
            if row.category is ChargeCategory.PURCHASE:
                self._purchase(row)
            elif row.category is ChargeCategory.ADJUSTMENT:
                if row.returns and row.resource_id:
                    earlier = self._returned.get(row.resource_id, row.begins)
                    self._returned[row.resource_id] = max(earlier, row.begins)
                self._add(row.booked, row, row.category, row.cost, Decimal(0) if row.returns else row.cost)
            else:
                for day, share in _by_day(row.begins, row.ends, row.cost, row.ends):
                    self._add(day, row, row.category, share, share)
            self._add(row.booked, row, ChargeCategory.CREDIT, -row.given, -row.given)
            self._add(row.booked, row, ChargeCategory.TAX, row.tax, row.tax)

    def take_terms(self, rows: Iterable[Row]) -> None:
        """Of an earlier month: only the terms that reach into these days count, and refunds that end them."""
        for row in rows:
            if row.category is ChargeCategory.PURCHASE and row.ends > self.since:
                self._terms.append(row)
            elif row.returns and row.resource_id:
                self._returned[row.resource_id] = max(self._returned.get(row.resource_id, row.begins), row.begins)

    def lines(self) -> tuple[SpendLine, ...]:
        """Every charge so far, in order of days."""
        for row in self._terms:
            returned = self._returned.get(row.resource_id)
            stops = returned if returned is not None and returned >= row.begins else row.ends
            for day, share in _by_day(row.begins, row.ends, row.cost, stops):
                self._add(day, row, ChargeCategory.USAGE, Decimal(0), share, PricingCategory.COMMITTED)
        self._terms.clear()
        return tuple(self._line(day, key, *self._sums[day, key]) for day, key in sorted(self._sums, key=_order))

    def _purchase(self, row: Row) -> None:
        self._add(row.booked, row, row.category, row.cost, Decimal(0), PricingCategory.COMMITTED)
        self._terms.append(row)

    def _add(
        self,
        moment: datetime,
        row: Row,
        category: ChargeCategory,
        billed: Decimal,
        effective: Decimal,
        pricing: PricingCategory = PricingCategory.STANDARD,
    ) -> None:
        day = day_of(moment)
        if not (billed or effective) or day + DAY <= self.since or day >= self.until:
            return
        if row.spot and pricing is PricingCategory.STANDARD:
            pricing = PricingCategory.DYNAMIC
        key = (
            row.payer or self.payer,
            row.owner,
            row.region,
            row.service,
            category,
            pricing,
            row.instance_type,
            row.resource_id,
            row.accelerated,
            row.tags,
            row.currency,
        )
        sums = self._sums.setdefault((day, key), [Decimal(0), Decimal(0)])
        sums[0] += billed
        sums[1] += effective

    def _line(self, day: datetime, key: _Key, billed: Decimal, effective: Decimal) -> SpendLine:
        payer, owner, region, service, category, pricing, kind, resource, accelerated, tags, currency = key
        return SpendLine(
            cloud=self.cloud,
            billing_account_id=payer,
            sub_account_id=owner,
            region_id=region,
            service_name=service,
            charge_category=category,
            charge_period_start=day,
            charge_period_end=day + DAY,
            billed_cost=Money(billed, currency),
            effective_cost=Money(effective, currency),
            pricing_category=pricing,
            instance_type=kind,
            resource_id=resource,
            resource_name=self._names.get(resource, ""),
            accelerated=accelerated,
            tags=dict(tags),
        )


def _order(entry: tuple[datetime, _Key]) -> tuple[datetime, str, str, str, str]:
    day, key = entry
    return day, key[1], key[3], key[7], key[4].value


def _by_day(begins: datetime, ends: datetime, cost: Decimal, stops: datetime) -> Iterator[tuple[datetime, Decimal]]:
    """`cost` over the days from `begins` to `ends` by the seconds in each, as far as `stops`; the sum stays exact."""
    whole, spread, start = ends - begins, Decimal(0), begins
    if whole <= timedelta(0):
        yield day_of(begins), cost
        return
    while start < min(ends, stops):
        end = min(day_of(start) + DAY, ends, stops)
        share = cost - spread if end == ends else (cost * _seconds(end - start) / _seconds(whole)).quantize(_EXACT)
        spread += share
        yield day_of(start), share
        start = end


def _seconds(span: timedelta) -> int:
    return span.days * 86_400 + span.seconds
