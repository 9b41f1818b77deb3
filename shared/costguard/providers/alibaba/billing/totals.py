"""The bill of a cycle as a whole, against its records by resource: what only the whole shows. Pure.

The overview is made from what is settled, the records from the overview, later and not for everything: tax, round-down
discounts and some products have no record. The difference, by account, product and kind, becomes charges of their own,
so that the sum is the overview's and nothing is counted twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from costguard.domain.money import ChargeCategory, Money, SpendLine, totals
from costguard.providers.alibaba.billing.answers import Row, Sum, entries
from costguard.providers.alibaba.billing.calendar import DAY, Cycle, begin_of, day_of, end_of
from costguard.providers.alibaba.billing.lines import Payer, of_a_day

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


def tax_lines(payer: Payer, cycle: Cycle, sums: Iterable[Sum], complete_until: datetime) -> Iterator[SpendLine]:
    """The tax of a cycle so far, by account and product, on its last complete day: no day of it is told."""
    taxes: defaultdict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
    for each in sums:
        taxes[each.owner or payer.account, each.product, each.tax.currency] += each.tax.amount
    day = min(cycle.last, max(cycle.first, day_of(complete_until) - DAY))
    for (owner, product, currency), tax in sorted(taxes.items()):
        if tax:
            yield of_a_day(payer, day, owner, product, ChargeCategory.TAX, Money(tax, currency))


def unrecorded_lines(payer: Payer, cycle: Cycle, found: Compared, complete_until: datetime) -> Iterator[SpendLine]:
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
    payer: Payer, cycle: Cycle, sums: Sequence[Sum], rows: Mapping[date, Sequence[Row]], complete_until: datetime
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
