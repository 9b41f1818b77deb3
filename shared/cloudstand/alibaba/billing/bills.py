"""The world's charges as records of a bill: by day, account, product, kind and resource, as late as the vendor's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from cloudstand.alibaba.billing.console_budgets import ConsoleBudget
from cloudstand.world.billing import CHINA, DAY, Charge, bill
from cloudstand.world.cloud import World
from cloudstand.world.money import ChargeCategory, PricingCategory
from cloudstand.world.prices import PREPAID_TERM

PLACES = Decimal("0.000001")  # of an amount in a record
PRODUCTS: Mapping[str, str] = {"compute": "ecs", "volume": "yundisk", "ai_platform": "learn", "credit": "voucher"}
"""The vendor's codes for our words; others stand for themselves."""

_DETAILS_LAG = timedelta(hours=48)
_ORDER, _USAGE, _REFUND, _ADJUSTMENT = "SubscriptionOrder", "PayAsYouGoBill", "Refund", "Adjustment"


@dataclass(slots=True)
class BillDesk:
    """What a test may set up: budgets of the console, products without records, and how long a page can be.

    `beta`: the accounts that may read budgets; None is all of them.
    """

    budgets: list[ConsoleBudget] = field(default_factory=list)
    beta: set[str] | None = None
    unrecorded: set[str] = field(default_factory=set)
    page: int = 300


@dataclass(frozen=True, slots=True)
class Record:
    """One record. `details`: types, names and zones, which follow a day after the amounts, are there.

    `listed` is what was due at list price, before discounts.
    """

    day: date
    owner: str
    region: str
    product: str
    item: str
    resource: str
    currency: str
    due: Decimal
    vouchers: Decimal
    seconds: int
    instance_type: str
    name: str
    tags: tuple[tuple[str, str], ...]
    details: bool
    listed: Decimal = Decimal(0)

    @property
    def kind(self) -> tuple[str, ...]:
        """What records of one cycle have in common that are one for it."""
        return (self.owner, self.product, self.item, self.resource, self.currency, self.region)

    @property
    def prepaid(self) -> bool:
        """Whether it belongs to a subscription."""
        return self.item == _ORDER


def records(world: World, cloud: str, first: date, last: date) -> list[Record]:
    """The records of these days, the last included, in order of days."""
    found: dict[tuple[object, ...], Record] = {}
    for charge in bill(world, cloud, begin_of(first), begin_of(last) + DAY):
        if charge.category is ChargeCategory.TAX or (charge.pricing is _COMMITTED and not charge.billed.amount):
            continue  # tax has no records, and neither has what was paid for in advance
        record = _record(charge, world.now)
        key = (record.day, *record.kind)
        found[key] = together(found[key], record) if key in found else record
    return [found[key] for key in sorted(found, key=str)]


def of_cycle(found: Sequence[Record]) -> list[Record]:
    """Records of days as records of their cycle: one for each resource and kind."""
    merged: dict[tuple[str, ...], Record] = {}
    for record in found:
        merged[record.kind] = together(merged[record.kind], record) if record.kind in merged else record
    return list(merged.values())


def taxes(world: World, cloud: str, first: date, last: date) -> Iterator[tuple[str, str, Decimal]]:
    """Account, currency and amount of each tax."""
    for charge in bill(world, cloud, begin_of(first), begin_of(last) + DAY):
        if charge.category is ChargeCategory.TAX:
            yield charge.account, charge.billed.currency, charge.billed.amount


def together(one: Record, other: Record) -> Record:
    """Two records alike as one."""
    return replace(
        one,
        due=one.due + other.due,
        listed=one.listed + other.listed,
        vouchers=one.vouchers + other.vouchers,
        seconds=one.seconds + other.seconds,
        details=one.details or other.details,
    )


def begin_of(day: date) -> datetime:
    """When a day of the bill begins."""
    return datetime(day.year, day.month, day.day, tzinfo=timezone.utc) - CHINA


def _record(charge: Charge, now: datetime) -> Record:
    credit = charge.category is ChargeCategory.CREDIT
    amount = charge.billed.amount.quantize(PLACES)
    machine = charge.machine
    return Record(
        day=(charge.start + CHINA).date(),
        owner=charge.account,
        region=charge.region,
        product=PRODUCTS.get(charge.service, charge.service),
        item=_item(charge),
        resource=charge.native_id,
        currency=charge.billed.currency,
        due=Decimal(0) if credit else amount,
        listed=Decimal(0) if credit else charge.list_cost.amount.quantize(PLACES),
        vouchers=-amount if credit else Decimal(0),
        seconds=_seconds(charge),
        instance_type=charge.instance_type,
        name=machine.spec.name if machine is not None else "",
        tags=tuple((charge.tags or {}).items()),
        details=charge.end <= now - _DETAILS_LAG,
    )


def _item(charge: Charge) -> str:
    if charge.category is ChargeCategory.PURCHASE:
        return _ORDER
    if charge.category is ChargeCategory.ADJUSTMENT:
        return _REFUND if charge.billed.amount < 0 else _ADJUSTMENT
    return _USAGE


def _seconds(charge: Charge) -> int:
    """How long it was used, or what an order paid for: a term, or what was left of one when the machine began."""
    if charge.category is not ChargeCategory.PURCHASE:
        return int(charge.hours * 3600) or (charge.end - charge.start) // timedelta(seconds=1)
    machine = charge.machine
    until = None if machine is None else machine.spec.prepaid_until
    if machine is None or until is None:
        return (charge.end - charge.start) // timedelta(seconds=1)
    launched = machine.runs[0][0]
    left = (until - launched) % PREPAID_TERM if charge.start <= launched < charge.end else PREPAID_TERM
    return (left or PREPAID_TERM) // timedelta(seconds=1)


_COMMITTED = PricingCategory.COMMITTED
