"""From records of bills to charges in the words of FOCUS. Pure.

What is paid once for a term is a PURCHASE with a billed cost and no effective one; its effective cost comes as usage
under a commitment with the days of the term, which begins with the day of the order: bills tell no hour of it. Where a
term is not understood, the whole is its effective cost at once: never less than was spent.

The bill of a cycle as a whole shows what its records by resource do not. The overview is made from what is settled, the
records from the overview, later and not for everything: tax, round-down discounts and some products have no record. The
difference, by account, product and kind, becomes charges of their own, so that the sum is the overview's and nothing is
counted twice.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType

from costguard.domain.money import ChargeCategory, Money, PricingCategory, SpendLine, totals
from costguard.providers.alibaba.billing.answers import Row, Sum, entries
from costguard.providers.kit.billing.calendar import DAY, Month, begin_of, day_of, end_of
from costguard.providers.kit.core.credentials import without_secrets

# Regions as bills name them: in words (`华东1（杭州）`, `China (Hangzhou)`), in the language of the site. Pure.

_CITIES = MappingProxyType(
    {
        "cn-hangzhou": ("杭州", "hangzhou"),
        "cn-shanghai": ("上海", "shanghai"),
        "cn-nanjing": ("南京", "nanjing"),
        "cn-fuzhou": ("福州", "fuzhou"),
        "cn-qingdao": ("青岛", "qingdao"),
        "cn-beijing": ("北京", "beijing"),
        "cn-zhangjiakou": ("张家口", "zhangjiakou"),
        "cn-huhehaote": ("呼和浩特", "hohhot"),
        "cn-wulanchabu": ("乌兰察布", "ulanqab"),
        "cn-shenzhen": ("深圳", "shenzhen"),
        "cn-heyuan": ("河源", "heyuan"),
        "cn-guangzhou": ("广州", "guangzhou"),
        "cn-chengdu": ("成都", "chengdu"),
        "cn-wuhan-lr": ("武汉", "wuhan"),
        "cn-hongkong": ("香港", "hong kong"),
        "ap-southeast-1": ("新加坡", "singapore"),
        "ap-southeast-3": ("吉隆坡", "kuala lumpur"),
        "ap-southeast-5": ("雅加达", "jakarta"),
        "ap-southeast-6": ("马尼拉", "manila"),
        "ap-southeast-7": ("曼谷", "bangkok"),
        "ap-northeast-1": ("东京", "tokyo"),
        "ap-northeast-2": ("首尔", "seoul"),
        "us-west-1": ("硅谷", "silicon valley"),
        "us-east-1": ("弗吉尼亚", "virginia"),
        "na-south-1": ("墨西哥", "mexico"),
        "eu-central-1": ("法兰克福", "frankfurt"),
        "eu-west-1": ("伦敦", "london"),
        "me-east-1": ("迪拜", "dubai"),
        "me-central-1": ("利雅得", "riyadh"),
    }
)
_BY_CITY = {name: region for region, names in _CITIES.items() for name in names}
_EVERYWHERE = frozenset(
    {
        *("-", "全球", "通用", "公共", "其他", "其它", "海外", "中国内地", "中国大陆", "非中国内地", "global", "other"),
        *("others", "none", "public", "overseas", "chinese mainland", "mainland china", "outside chinese mainland"),
    }
)
_APART = ("金融", "政务", "finance", "gov")  # clouds of their own in the same cities
_ID = re.compile(r"[a-z]{2}-[a-z]+(?:-[a-z0-9]+)*", re.ASCII)
_WITHIN = re.compile(r"^(.*?)[（(](.*)[)）]$")
_LOCAL = re.compile(r"\s*[-–]\s*(?:本地地域|local region|partner region|合作伙伴地域).*$")
_COUNTRY = "中国"


def region_of(name: str) -> str | None:
    """The id of a region that a bill names; None where it is not known, empty where it is no region's."""
    told = " ".join(name.split()).lower()
    if not told or told in _EVERYWHERE:
        return ""
    if any(word in told for word in _APART):
        return None
    if _ID.fullmatch(told) and told not in _BY_CITY:
        return told
    within = _WITHIN.match(told)
    candidates = (within[2], within[1]) if within else (told,)
    for candidate in candidates:
        city = _LOCAL.sub("", candidate).strip().removeprefix(_COUNTRY)
        if city in _BY_CITY:
            return _BY_CITY[city]
    return None


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
        list_cost=row.listed if category is ChargeCategory.USAGE and row.category is category else None,
    )


CENT = Decimal("0.01")  # the overview rounds its amounts, records have more places
_Key = tuple[str, str, str, ChargeCategory]


@dataclass(frozen=True, slots=True)
class Compared:
    """The overview of a whole cycle less its records, by account, product, currency and kind.

    `excess`: by how much the records are more than the overview, beyond its rounding. That is late, or a
    contradiction; neither makes spend less.
    """

    missing: Mapping[_Key, Decimal]
    excess: tuple[Money, ...]


def compared(payer: Payer, sums: Sequence[Sum], rows: Sequence[Row]) -> Compared:
    """Both sides of a cycle. Where the overview does not tell accounts, all of it is held against all records."""
    apart = all(each.owner for each in sums)
    whole, recorded = _totals(payer, sums, apart=apart), _totals(payer, rows, apart=apart)
    missing = {key: whole.get(key, Decimal(0)) - recorded.get(key, Decimal(0)) for key in {*whole, *recorded}}
    leeway: defaultdict[str, Decimal] = defaultdict(lambda: CENT)
    for each in sums:
        leeway[each.rounded.currency] += each.rounded.amount
    nets = totals(Money(amount, key[2]) for key, amount in missing.items() if key[3] is not ChargeCategory.CREDIT)
    excess = tuple(net.times(-1) for net in nets if -net.amount > leeway[net.currency])
    return Compared(missing, excess)


def tax_lines(payer: Payer, cycle: Month, sums: Iterable[Sum], complete_until: datetime) -> Iterator[SpendLine]:
    """The tax of a cycle so far, by account and product, on its last complete day: no day of it is told."""
    taxes: defaultdict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
    for each in sums:
        taxes[each.owner or payer.account, each.product, each.tax.currency] += each.tax.amount
    day = min(cycle.last, max(cycle.first, day_of(complete_until) - DAY))
    for (owner, product, currency), tax in sorted(taxes.items()):
        if tax:
            yield of_a_day(payer, day, owner, product, ChargeCategory.TAX, Money(tax, currency))


def unrecorded_lines(payer: Payer, cycle: Month, found: Compared, complete_until: datetime) -> Iterator[SpendLine]:
    """What the overview has beyond all the records of a cycle, less where it has less; nothing in an excess's currency.

    On the first day that is not complete: until then more records may come. Once the cycle is over, on its last day.
    """
    day = min(cycle.last, max(cycle.first, day_of(complete_until)))
    untold = {money.currency for money in found.excess}
    for (owner, product, currency, category), missing in sorted(found.missing.items()):
        if abs(missing) < CENT or currency in untold:
            continue
        if category is not ChargeCategory.CREDIT:
            kind = category if missing > 0 else ChargeCategory.ADJUSTMENT
            yield of_a_day(payer, day, owner, product, kind, Money(missing, currency))
        elif missing < 0:  # vouchers that only records tell of were used all the same
            yield of_a_day(payer, day, owner, product, category, Money(missing, currency))


def last_filled(
    payer: Payer, cycle: Month, sums: Sequence[Sum], rows: Mapping[date, Sequence[Row]], complete_until: datetime
) -> datetime:
    """`complete_until`, or the end of the last day with a record, where the overview knows of more than all records.

    `rows` are the days of `cycle` before `complete_until`. A day without anything is zero only if nothing is missing.
    """
    missing = compared(payer, sums, [row for found in rows.values() for row in found]).missing.values()
    if not rows or all(amount < CENT for amount in missing):
        return complete_until
    filled = [day for day, found in rows.items() if found]
    return min(complete_until, end_of(max(filled)) if filled else begin_of(cycle.first))


def _totals(payer: Payer, records: Iterable[Row] | Iterable[Sum], *, apart: bool) -> Mapping[_Key, Decimal]:
    found: defaultdict[_Key, Decimal] = defaultdict(Decimal)
    for record in records:
        owner = record.owner if apart else payer.account
        for category, money in entries(record):
            found[owner, record.product, money.currency, category] += money.amount
    return found
