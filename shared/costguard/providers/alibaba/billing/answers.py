"""Records of bills as BssOpenApi writes them, taken at their documented types. Pure, apart from any request.

`PretaxAmount` is what is due: the list price (`PretaxGrossAmount`) less discounts and coupons, before tax. Vouchers
(`DeductedByCashCoupons`) pay some of it, as cash and prepaid cards do: they are told as credits. Texts may end in
spaces and tabs, amounts be numbers or texts with commas between thousands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from types import MappingProxyType

from costguard.domain.money import ChargeCategory, Money, PricingCategory
from costguard.estimates.purchases import months_on
from costguard.providers.alibaba.compute.instance_types import named_for_accelerator
from costguard.providers.kit.billing.calendar import Month, begin_of
from costguard.providers.kit.core.fields import Fields, part, text


@dataclass(frozen=True, slots=True)
class Term:
    """How long something was paid for in advance."""

    months: int
    rest: timedelta = timedelta(0)

    def end(self, day: date) -> datetime:
        """When it is over if it begins with `day`."""
        return begin_of(months_on(day, self.months)) + self.rest


_AMOUNT = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,20})?", re.ASCII)
_MOST = Decimal("1e15")
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_TAG = re.compile(r"key:(.+?) value:(.*)", re.DOTALL)
_NEXT_TAG = re.compile(r";\s*(?=key:)")
_PLATFORMS = frozenset({"learn", "eais"})  # PAI as a whole, in the vendor's documents, and cards by the network
_PLATFORM = "pai"  # what products of PAI that are billed apart begin with
_UNITS: Mapping[str, Term] = MappingProxyType(
    {
        **dict.fromkeys(("秒", "second"), Term(0, timedelta(seconds=1))),
        **dict.fromkeys(("分", "分钟", "minute"), Term(0, timedelta(minutes=1))),
        **dict.fromkeys(("时", "小时", "hour"), Term(0, timedelta(hours=1))),
        **dict.fromkeys(("天", "日", "day"), Term(0, timedelta(days=1))),
        **dict.fromkeys(("周", "week"), Term(0, timedelta(weeks=1))),
        **dict.fromkeys(("月", "个月", "month"), Term(1)),
        **dict.fromkeys(("年", "year"), Term(12)),
    }
)
_LONGEST_MONTHS, _LONGEST_SECONDS = 120, 3660 * 86_400  # nothing is sold for longer than ten years


class Item(str, Enum):
    """What kind of bill a record belongs to."""

    ORDER = "SubscriptionOrder"
    USAGE = "PayAsYouGoBill"
    REFUND = "Refund"
    ADJUSTMENT = "Adjustment"


CATEGORIES: Mapping[Item, ChargeCategory] = MappingProxyType(
    {
        Item.ORDER: ChargeCategory.PURCHASE,
        Item.USAGE: ChargeCategory.USAGE,
        Item.REFUND: ChargeCategory.ADJUSTMENT,
        Item.ADJUSTMENT: ChargeCategory.ADJUSTMENT,
    }
)


@dataclass(frozen=True, slots=True)
class Row:
    """One record. `day` None: of a whole cycle. `tags` None: they cannot be told apart. `term` None: not understood.

    `listed` is `PretaxGrossAmount`, what it comes to before discounts; None where it is not told.
    """

    day: date | None
    item: Item
    owner: str
    product: str
    due: Money
    vouchers: Money
    resource_id: str
    resource_name: str
    instance_type: str
    region: str
    tags: Mapping[str, str] | None
    term: Term | None
    listed: Money | None = None

    @property
    def category(self) -> ChargeCategory:
        """What FOCUS calls it."""
        return CATEGORIES[self.item]

    @property
    def pricing(self) -> PricingCategory:
        """At a price by use, or under a commitment. Spot is not told apart by any field that is documented."""
        return PricingCategory.COMMITTED if self.item is Item.ORDER else PricingCategory.STANDARD

    @property
    def accelerated(self) -> bool:
        """Whether it is for a machine or a platform with accelerators, as far as names tell."""
        product = self.product.lower()
        platform = product in _PLATFORMS or product.startswith(_PLATFORM)
        return platform or named_for_accelerator(self.instance_type)


@dataclass(frozen=True, slots=True)
class Sum:
    """One record of the overview: what a product costs an account in a cycle, without days or resources.

    `owner` is empty where none is told; `rounded` is what was taken off `due` by rounding down.
    """

    item: Item
    owner: str
    product: str
    due: Money
    vouchers: Money
    tax: Money
    rounded: Money


def row_of(record: Fields, payer: str, day: date | None) -> Row:
    """One element of `Data.Items` of DescribeInstanceBill.

    Raises:
        ValueError, TypeError: not as documented, or of another day than was asked for.
    """
    told = _told(record, "BillingDate")
    if day is not None and told and _day_in(told) != day:
        message = f"a record of {told} where {day} was asked for"
        raise ValueError(message)
    due, vouchers = _due_and_vouchers(record)
    return Row(
        day=day,
        item=Item(_told(record, "Item")),
        owner=_owner(record, payer),
        product=_needed(record, "ProductCode"),
        due=due,
        vouchers=vouchers,
        resource_id=_told(record, "InstanceID"),
        resource_name=_told(record, "NickName"),
        instance_type=_told(record, "InstanceSpec"),
        region=_told(record, "Region"),
        tags=tags_in(_told(record, "Tag")),
        term=_term(record),
        listed=_listed(record, due.currency),
    )


def sum_of(record: Fields) -> Sum:
    """One element of `Data.Items.Item` of QueryBillOverview."""
    due, vouchers = _due_and_vouchers(record)
    return Sum(
        item=Item(_told(record, "Item")),
        owner=_owner(record, "") if _told(record, "OwnerID") else "",
        product=_needed(record, "ProductCode"),
        due=due,
        vouchers=vouchers,
        tax=Money(amount_in(record, "Tax"), due.currency),
        rounded=Money(abs(amount_in(record, "RoundDownDiscount")), due.currency),
    )


def payer_in(answer: Fields, cycle: Month) -> str:
    """Whose bill an answer is, once it is known to be of the cycle that was asked for.

    Raises:
        ValueError, TypeError: it is not, or says not whose it is.
    """
    data = part(answer, "Data")
    told = _needed(data, "BillingCycle")
    if told != str(cycle):
        message = f"the bill of {told} where {cycle} was asked for"
        raise ValueError(message)
    return _number(_needed(data, "AccountID"))


def amount_in(record: Fields, key: str) -> Decimal:
    """An amount, to the last digit; zero where absent or empty."""
    found = record.get(key, "")
    if found == "" and not isinstance(found, bool):
        return Decimal(0)
    if isinstance(found, str) and _AMOUNT.fullmatch(found.strip()):
        found = Decimal(found.strip().replace(",", ""))
    if isinstance(found, bool) or not isinstance(found, (int, Decimal)):
        message = f"{key} is no amount"
        raise TypeError(message)
    amount = Decimal(found)
    if not (amount.is_finite() and abs(amount) < _MOST):
        message = f"{key} is no amount of money"
        raise ValueError(message)
    return amount


def tags_in(told: str) -> Mapping[str, str] | None:
    """`key:team value:research; key:env value:test` as names and values; None where they cannot be told apart."""
    if not told:
        return {}
    found: dict[str, str] = {}
    for entry in _NEXT_TAG.split(told.removesuffix(";")):
        match = _TAG.fullmatch(entry)
        if match is None or match[1] in found or " value:" in match[2]:
            return None
        found[match[1]] = match[2]
    return found


def _due_and_vouchers(record: Fields) -> tuple[Money, Money]:
    currency = _needed(record, "Currency")
    if not _CURRENCY.fullmatch(currency):
        message = "Currency is no code of one"
        raise ValueError(message)
    if "PretaxAmount" not in record:
        message = "PretaxAmount is missing"
        raise ValueError(message)
    vouchers = amount_in(record, "DeductedByCashCoupons")
    return Money(amount_in(record, "PretaxAmount"), currency), Money(vouchers, currency)


def _listed(record: Fields, currency: str) -> Money | None:
    """The list price of what was used; a record without it says nothing of discounts."""
    told = record.get("PretaxGrossAmount", "")
    return None if told == "" else Money(amount_in(record, "PretaxGrossAmount"), currency)


def _owner(record: Fields, payer: str) -> str:
    """Who used it; who pays, where only one account is told."""
    return _number(_told(record, "OwnerID") or payer)


def _term(record: Fields) -> Term | None:
    length, unit = _told(record, "ServicePeriod"), _told(record, "ServicePeriodUnit").lower().removesuffix("s")
    if not (length.isascii() and length.isdigit()) or unit not in _UNITS:
        return None
    count, one = int(length[:12]), _UNITS[unit]
    if one.months:
        return Term(count * one.months) if 0 < count * one.months <= _LONGEST_MONTHS else None
    seconds = count * one.rest // timedelta(seconds=1) if count <= _LONGEST_SECONDS else 0
    return Term(0, timedelta(seconds=seconds)) if 0 < seconds <= _LONGEST_SECONDS else None


def _day_in(told: str) -> date | None:
    match = _DAY.fullmatch(told)
    return None if match is None else date(int(match[1]), int(match[2]), int(match[3]))


def _told(fields: Fields, key: str) -> str:
    return text(fields, key).strip()


def _needed(fields: Fields, key: str) -> str:
    found = _told(fields, key)
    if not found:
        message = f"{key} is missing"
        raise ValueError(message)
    return found


def _number(account: str) -> str:
    if not (account.isascii() and account.isdigit()):
        message = "an account has no number"
        raise ValueError(message)
    return account


def entries(record: Row | Sum) -> Iterator[tuple[ChargeCategory, Money]]:
    """What a record adds to a bill, by kind."""
    yield CATEGORIES[record.item], record.due
    if record.vouchers.amount:
        yield ChargeCategory.CREDIT, record.vouchers.times(-1)
