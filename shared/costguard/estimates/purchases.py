"""What a bill says was bought, by kind and day, and which of it is bound to come again."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal

from costguard.domain.money import ChargeCategory, PricingCategory, SpendLine
from costguard.estimates.billed import Counting, counted
from costguard.estimates.period import Period

YEAR = 12
_ONE_DAY, _HALF_A_DAY = timedelta(days=1), timedelta(hours=12)
_DAILY = 7  # days in a row with a fee make it a daily one
_STEPS = (1, 3, YEAR)  # months from fee to fee


@dataclass(frozen=True, slots=True)
class Kind:
    """Charges that look alike in a bill as a ledger keeps it."""

    cloud: str
    payer: str
    account: str
    service: str
    instance_type: str
    committed: bool
    currency: str


@dataclass(frozen=True, slots=True)
class Paid:
    """What one kind of purchase came to on one day of the bill: on the invoice, and as it counts."""

    begins: datetime
    billed: Decimal
    counts: Decimal


@dataclass(frozen=True, slots=True)
class RecurringFee:
    """What is to come: `amount` on each of `times` days from `due` on; `seen` are days on which it came before.

    `sure` False: it came once, so it may come again.
    """

    due: datetime
    amount: Decimal
    seen: tuple[date, ...]
    times: int = 1
    sure: bool = True


Days = Mapping[date, Paid]


def purchases(lines: Iterable[SpendLine], counting: Counting) -> dict[Kind, Days]:
    """What was bought on which day; a day without a sum above zero is left out."""
    sums: dict[Kind, dict[date, Paid]] = {}
    for line in lines:
        money = counted(line, counting)
        if line.charge_category is not ChargeCategory.PURCHASE or money is None:
            continue
        kind = Kind(
            line.cloud,
            line.billing_account_id,
            line.sub_account_id,
            line.service_name,
            line.instance_type,
            line.pricing_category is PricingCategory.COMMITTED,
            money.currency,
        )
        days, day = sums.setdefault(kind, {}), bill_day(line.charge_period_start)
        known = days.get(day, Paid(line.charge_period_start, Decimal(0), Decimal(0)))
        billed = known.billed + line.billed_cost.amount
        days[day] = replace(known, billed=billed, counts=known.counts + money.amount)
    return {kind: {day: paid for day, paid in days.items() if paid.billed > 0} for kind, days in sums.items()}


def coming_again(
    days: Days, complete_until: datetime | None, period: Period, *, committed: bool
) -> Iterator[RecurringFee]:
    """Fees of one kind that come again in the period, after what the bill holds in full.

    What was charged on each of seven days goes on. What came twice, a month, three months or a year apart, comes again
    at the smaller of both sums; what is `committed` and came a year ago once may.
    """
    since = max(complete_until or period.start, period.start)
    paid = {day: one for day, one in days.items() if one.counts > 0}
    a_day, last = _a_day(paid, complete_until)
    if last is not None:
        coming = [when for when in _days_after(last, period.end) if when >= since and bill_day(when) not in paid]
        if coming:
            yield RecurringFee(coming[0], a_day, (bill_day(last),), len(coming))
        paid = {day: replace(one, counts=one.counts - a_day) for day, one in paid.items() if one.counts > a_day}
    for months in _STEPS:
        chained = {day: before for day in paid if (before := _near(paid, months_on(day, -months))) is not None}
        for day, one in paid.items():
            before = chained.get(day)
            once = before is None and months == YEAR and committed
            if _near(paid, months_on(day, months)) is not None or not (before or once):
                continue  # it came again already, or never did
            anchor = day.day if before is None else max(day.day, before.day)
            first = moved(one.begins, months_on(day, months, anchor))
            if first < since:
                continue  # it has ended: the bill would have it
            smaller = one.counts if before is None else min(one.counts, paid[before].counts)
            seen = (day,) if before is None else (before, day)
            for due in repeated(first, months, period.end, anchor):
                yield RecurringFee(due, smaller, seen, sure=not once)
        paid = {day: one for day, one in paid.items() if day not in chained and day not in chained.values()}


def repeated(first: datetime, months: int, until: datetime, anchor: int = 0) -> Iterator[datetime]:
    """`first`, and every so many months after it (0: never) before `until`; by the bill's days."""
    due, count = first, 0
    while due < until:
        yield due
        if not months:
            return
        count += months
        due = moved(first, months_on(bill_day(first), count, anchor))


def bill_day(moment: datetime) -> date:
    """The bill's own day that begins about then: bills of China begin theirs at 16:00 by UTC."""
    return (moment + _HALF_A_DAY).date()


def moved(moment: datetime, day: date) -> datetime:
    """The same time on the day that is `day` for the bill."""
    return moment + (day - bill_day(moment))


def months_on(day: date, months: int, anchor: int = 0) -> date:
    """So many months later or earlier, on the same day of the month (or on `anchor`), or on its last."""
    year, month = divmod(day.year * YEAR + day.month - 1 + months, YEAR)
    return date(year, month + 1, min(anchor or day.day, monthrange(year, month + 1)[1]))


def _a_day(paid: Days, complete_until: datetime | None) -> tuple[Decimal, datetime | None]:
    """What is charged every day, and when the last such day begins; None where a day of the last week lacks it."""
    if complete_until is None:
        return Decimal(0), None
    last = bill_day(complete_until) - _ONE_DAY
    week = [paid.get(last - _ONE_DAY * number) for number in range(_DAILY)]
    fees = [one for one in week if one is not None]
    return (min(one.counts for one in fees), fees[0].begins) if len(fees) == _DAILY else (Decimal(0), None)


def _days_after(begins: datetime, until: datetime) -> Iterator[datetime]:
    while (begins := begins + _ONE_DAY) < until:
        yield begins


def _near(paid: Days, day: date) -> date | None:
    """The day itself, else one beside it, on which something was paid."""
    return next((one for one in (day, day - _ONE_DAY, day + _ONE_DAY) if one in paid), None)
