"""From records of a bill to charges by day: summed where alike, terms paid in advance spread over their days.

Days are those of UTC+8. What is paid once for a term is a PURCHASE with a billed cost and no effective one; its
effective cost comes with the days of the term as usage under a commitment, until a refund of the same resource ends
it. A refund of a term therefore has no effective cost of its own. What vouchers and free credit paid is a CREDIT
beside the charge that it paid.

The detail of a bill is held against its totals: what the detail leaves out is told, and never hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from costguard.domain.errors import RefusedError
from costguard.domain.money import ChargeCategory, Money, PricingCategory, SpendLine, SpendScope
from costguard.domain.resources import Gap, GapKind
from costguard.providers.kit.billing.calendar import DAY, Month, begin_of
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.tencent.billing.answers import Row
from costguard.providers.tencent.billing.requests import (
    DEPUTY_DETAIL,
    TAG_UNKNOWN,
    BillReader,
    Payer,
    final_until,
)

_EXACT = Decimal("0.00000001")  # bills have eight places
_Key = tuple[str, str, str, str, ChargeCategory, PricingCategory, str, str, bool, tuple[tuple[str, str], ...], str]


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
    _listed: dict[tuple[datetime, _Key], Decimal | None] = field(default_factory=dict)

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
                    self._list(day, row, share)
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

    def _list(self, moment: datetime, row: Row, share: Decimal) -> None:
        """Beside each part of a charge the same part of its list price, unknown once one of a sum is."""
        key = begin_of(moment), _key(self.payer, row, row.category, _pricing(row, PricingCategory.STANDARD))
        if key not in self._sums:
            return
        before = self._listed.get(key, Decimal(0))
        part = None if row.listed is None or not row.cost else row.listed * share / row.cost
        self._listed[key] = None if before is None or part is None else before + part

    def _add(
        self,
        moment: datetime,
        row: Row,
        category: ChargeCategory,
        billed: Decimal,
        effective: Decimal,
        pricing: PricingCategory = PricingCategory.STANDARD,
    ) -> None:
        day = begin_of(moment)
        if not (billed or effective) or day + DAY <= self.since or day >= self.until:
            return
        key = _key(self.payer, row, category, _pricing(row, pricing))
        sums = self._sums.setdefault((day, key), [Decimal(0), Decimal(0)])
        sums[0] += billed
        sums[1] += effective

    def _line(self, day: datetime, key: _Key, billed: Decimal, effective: Decimal) -> SpendLine:
        payer, owner, region, service, category, pricing, kind, resource, accelerated, tags, currency = key
        listed = self._listed.get((day, key)) if pricing is PricingCategory.STANDARD else None
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
            list_cost=None if listed is None else Money(listed, currency),
        )


def _pricing(row: Row, pricing: PricingCategory) -> PricingCategory:
    return PricingCategory.DYNAMIC if row.spot and pricing is PricingCategory.STANDARD else pricing


def _key(payer: str, row: Row, category: ChargeCategory, pricing: PricingCategory) -> _Key:
    return (
        row.payer or payer,
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


def _order(entry: tuple[datetime, _Key]) -> tuple[datetime, str, str, str, str]:
    day, key = entry
    return day, key[1], key[3], key[7], key[4].value


def _by_day(begins: datetime, ends: datetime, cost: Decimal, stops: datetime) -> Iterator[tuple[datetime, Decimal]]:
    """`cost` over the days from `begins` to `ends` by the seconds in each, as far as `stops`; the sum stays exact."""
    whole, spread, start = ends - begins, Decimal(0), begins
    if whole <= timedelta(0):
        yield begin_of(begins), cost
        return
    while start < min(ends, stops):
        end = min(begin_of(start) + DAY, ends, stops)
        share = cost - spread if end == ends else (cost * _seconds(end - start) / _seconds(whole)).quantize(_EXACT)
        spread += share
        yield begin_of(start), share
        start = end


def _seconds(span: timedelta) -> int:
    return span.days * 86_400 + span.seconds


_ROUNDING = Decimal("0.01")  # some totals have two places

_Sums = dict[str, Decimal]


@dataclass(slots=True)
class Detailed:
    """What the detail of one month adds up to, by product, region, and value of a tag."""

    payer: Payer
    month: Month
    currency: str
    products: _Sums = field(default_factory=dict)
    regions: _Sums = field(default_factory=dict)
    tags: dict[str, _Sums] = field(default_factory=dict)

    def take(self, rows: Iterable[Row]) -> None:
        """Count these records in."""
        for row in rows:
            _add(self.products, row.service, row.cost)
            _add(self.regions, row.region, row.cost)
            for key, value in row.tags:
                _add(self.tags.setdefault(key, {}), value, row.cost)

    def add(self, product: str, cost: Decimal) -> None:
        """Count in what was read otherwise than by records."""
        _add(self.products, product, cost)


class Checks:
    """Asks for the totals that some scope needs, and keeps what was found missing."""

    def __init__(self, reader: BillReader, scopes: Sequence[SpendScope], now: datetime) -> None:
        self._reader = reader
        self._now = now
        self._regions = sorted({region for scope in scopes for region in scope.regions or ()})
        self._tags = sorted({key for scope in scopes for key, _ in scope.tags})
        self._everywhere: list[Gap] = []
        self._in_region: list[tuple[str, Gap]] = []
        self._with_tag: list[tuple[str, str | None, Gap]] = []

    def gaps_of(self, scope: SpendScope) -> Iterator[Gap]:
        """What was found missing and could belong to `scope`."""
        yield from self._everywhere
        yield from (gap for region, gap in self._in_region if region in (scope.regions or ()))
        for key, value, gap in self._with_tag:
            if any(name == key and value in {None, wanted} for name, wanted in scope.tags):
                yield gap

    def products(self, detailed: Detailed, products: Mapping[str, Decimal]) -> Iterator[SpendLine]:
        """A line for each product of which the totals have more than was read, so that sums are right; all is told."""
        for product, missing in _missing(products, detailed.products):
            self._everywhere.append(self._gap(detailed, missing, without_secrets(product)))
            yield self._line(detailed, product, missing)
        if final_until(self._now) > detailed.month.begins:
            for product, more in _missing(detailed.products, products):
                self._everywhere.append(self._gap(detailed, -more, without_secrets(product)))

    def regions_and_tags(self, detailed: Detailed) -> None:
        """The same by region and by tag, where a scope names one; gaps of those scopes.

        Raises:
            ProviderError: the totals could not be read.
        """
        if detailed.payer.detail == DEPUTY_DETAIL:
            return  # what others pay has no other totals
        if self._regions:
            for region, missing in _missing(self._reader.by_region(detailed.payer, detailed.month), detailed.regions):
                self._in_region.append((region, self._gap(detailed, missing, region or "no region")))
        for key in self._tags:
            self._compare_tag(detailed, key)

    def _compare_tag(self, detailed: Detailed, key: str) -> None:
        try:
            totals = self._reader.by_tag(detailed.payer, detailed.month, key)
        except RefusedError as err:
            if err.code != TAG_UNKNOWN:
                raise
            detail = f"{err}; charges do not carry the tag {without_secrets(key)!r}"
            fix = f"make {without_secrets(key)!r} a cost allocation tag in the billing console"
            gap = Gap(detailed.payer.shard, "billing", GapKind.UNREADABLE, detail, fix)
            if (key, None, gap) not in self._with_tag:
                self._with_tag.append((key, None, gap))
            return
        carried = {value: amount for value, amount in totals.items() if value}
        for value, missing in _missing(carried, detailed.tags.get(key, {})):
            name = f"{without_secrets(key)}={without_secrets(value)}"
            self._with_tag.append((key, value, self._gap(detailed, missing, name)))

    def _gap(self, detailed: Detailed, missing: Decimal, what: str) -> Gap:
        word = "lacks" if missing > 0 else "has beyond the totals"
        money = Money(abs(missing), detailed.currency)
        detail = f"billing:{detailed.payer.detail}: the detail of {detailed.month} {word} {money} of {what}"
        return Gap(detailed.payer.shard, "billing", GapKind.TRUNCATED, detail, "run again later")

    def _line(self, detailed: Detailed, product: str, missing: Decimal) -> SpendLine:
        """On the last day of the month so far: of which day it is nobody tells."""
        day = begin_of(min(self._now, detailed.month.plus(1).begins - DAY))
        money = Money(missing, detailed.currency)
        return SpendLine(
            cloud=detailed.payer.shard.cloud,
            billing_account_id=detailed.payer.account,
            sub_account_id="",
            region_id="",
            service_name=product,
            charge_category=ChargeCategory.ADJUSTMENT,
            charge_period_start=day,
            charge_period_end=day + DAY,
            billed_cost=money,
            effective_cost=money,
            pricing_category=PricingCategory.OTHER,
            resource_name="not in the bill's detail",
        )


def _missing(totals: Mapping[str, Decimal], detailed: Mapping[str, Decimal]) -> list[tuple[str, Decimal]]:
    found = ((name, amount - detailed.get(name, Decimal(0))) for name, amount in sorted(totals.items()))
    return [(name, missing) for name, missing in found if missing > _ROUNDING]


def _add(sums: _Sums, name: str, amount: Decimal) -> None:
    sums[name] = sums.get(name, Decimal(0)) + amount
