"""What an hour costs after discounts: measured by the bill, else by the discount that the policy declares. Pure.

Limits in money count list prices; this is for what people read. A price that nobody knows stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

from costguard.domain.findings import InstanceFact, ShardFacts
from costguard.domain.money import (
    Bill,
    ChargeCategory,
    Discount,
    HourlyRate,
    NetRate,
    NetSource,
    PricingCategory,
    SpendLine,
)
from costguard.domain.resources import Billing, Instance
from costguard.estimates.coverage import LOOKED_BACK

FRESH = timedelta(days=5)  # more than any bill is late
LEAST = timedelta(days=3)
"""What is complete of the bill has to be newer than `FRESH`, and to hold `LEAST` since the discount began."""
AGREES = Decimal("0.02")  # a measured discount this near to the declared one is the declared one
_PLACES = Decimal("0.0001")
_NONE_OFF = Decimal("1.0005")  # list and effective cost are rounded apart


@dataclass(frozen=True, slots=True)
class _Measured:
    """What share of the list price was paid by a bill up to `until`."""

    paid: Decimal
    until: datetime


def with_net_rates(
    shards: Sequence[ShardFacts], discounts: Sequence[Discount], bills: Mapping[str, Sequence[Bill]], now: datetime
) -> tuple[ShardFacts, ...]:
    """The same facts, each price with what it is after discounts where that is known; `bills` are by cloud."""
    known: dict[tuple[str, str, str, str], NetRate | None] = {}

    def priced(fact: InstanceFact) -> InstanceFact:
        ref, rate = fact.instance.ref, fact.rate
        if rate is None:
            return fact
        if rate.net is None and rate.is_list and fact.instance.billing is Billing.ON_DEMAND:
            key = (ref.cloud, ref.account, fact.instance.instance_type, rate.money.currency)
            if key not in known:
                known[key] = _net(fact.instance, rate, discounts, bills.get(ref.cloud, ()), now)
            net = known[key]
            if net is not None and net.discount is not None:
                net = replace(net, money=rate.money.times(1 - net.discount))
            return fact if net is None else replace(fact, rate=replace(rate, net=net))
        if rate.net is None and not rate.is_list:
            return replace(fact, rate=replace(rate, net=NetRate(rate.money, NetSource.PRICE, rate.as_of)))
        return fact

    return tuple(
        replace(shard, instances=tuple(map(priced, shard.instances))) if shard.instances else shard for shard in shards
    )


def discount_on(
    discounts: Iterable[Discount], cloud: str, account: str, instance_type: str, day: date
) -> Discount | None:
    """The declared discount that holds on a day: of the first entry's machines that match, the latest that began."""
    begun = [
        each
        for each in discounts
        if each.holds(cloud, account, instance_type) and (each.since is None or each.since <= day)
    ]
    return max(
        (each for each in begun if each.scope == begun[0].scope), key=lambda each: each.since or date.min, default=None
    )


def _net(
    instance: Instance, rate: HourlyRate, discounts: Sequence[Discount], bills: Sequence[Bill], now: datetime
) -> NetRate | None:
    ref = instance.ref
    declared = discount_on(discounts, ref.cloud, ref.account, instance.instance_type, now.date())
    since = None if declared is None else declared.since
    found = [
        one
        for bill in bills
        for one in [_in_bill(bill, ref.account, instance.instance_type, rate.money.currency, since, now)]
        if one is not None
    ]
    if found:  # the newest; of one time the dearest, for several scopes may hold the same charges
        newest = max(found, key=lambda one: (one.until, one.paid))
        off = max(1 - newest.paid, Decimal(0)).quantize(_PLACES)
        differs = declared is not None and abs(declared.share - off) > AGREES
        return NetRate(
            rate.money.times(1 - off),
            NetSource.BILL,
            newest.until.date().isoformat(),
            off,
            declared.share if declared is not None and differs else None,
        )
    if declared is None:
        return None
    as_of = "" if declared.since is None else declared.since.isoformat()
    return NetRate(rate.money.times(1 - declared.share), NetSource.DISCOUNT, as_of, declared.share)


def _in_bill(
    bill: Bill, account: str, instance_type: str, currency: str, begins: date | None, now: datetime
) -> _Measured | None:
    """What was paid of the list price in the last days that the bill holds in full; None where it does not tell all.

    Days before a declared discount begins say nothing of it.
    """
    until = bill.complete_until
    if until is None or now - until > FRESH:
        return None
    agreed = bill.since if begins is None else datetime.combine(begins, time(), timezone.utc)
    since = max(bill.since, until - LOOKED_BACK, agreed)
    if until - since < LEAST:
        return None
    lines = [
        line
        for line in bill.lines
        if _is_use(line)
        and (line.sub_account_id, line.instance_type) == (account, instance_type)
        and since <= line.charge_period_start
        and line.charge_period_end <= until
    ]
    listed = [line.list_cost for line in lines if line.list_cost is not None and line.list_cost.currency == currency]
    if not lines or len(listed) < len(lines):
        return None
    whole = sum((money.amount for money in listed), Decimal(0))
    paid = sum((line.effective_cost.amount for line in lines), Decimal(0))
    if whole <= 0 or not 0 < paid <= whole * _NONE_OFF:
        return None
    return _Measured(paid / whole, until)


def _is_use(line: SpendLine) -> bool:
    """Outside commitments, and not bought at a market's price."""
    return (
        line.accelerated
        and line.charge_category is ChargeCategory.USAGE
        and line.pricing_category is PricingCategory.STANDARD
    )
