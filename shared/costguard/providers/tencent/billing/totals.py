"""Holds the detail of a bill against its totals: what the detail leaves out is told, and never hidden."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from costguard.domain.errors import RefusedError
from costguard.domain.money import ChargeCategory, Money, PricingCategory, SpendLine, SpendScope
from costguard.domain.resources import Gap, GapKind
from costguard.providers.kit.core.redaction import without_secrets
from costguard.providers.tencent.billing.answers import Row
from costguard.providers.tencent.billing.lines import DAY, day_of
from costguard.providers.tencent.billing.requests import (
    DEPUTY_DETAIL,
    TAG_UNKNOWN,
    BillReader,
    Month,
    Payer,
    final_until,
)

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
        day = day_of(min(self._now, detailed.month.plus(1).begins - DAY))
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
