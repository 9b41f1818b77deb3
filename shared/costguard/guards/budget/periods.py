"""Which period of a budget a moment falls into."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from typing_extensions import assert_never

from costguard.domain.errors import InvalidInputError
from costguard.estimates.period import Period, start_of
from costguard.guards.budget.rules import BudgetPeriod, PeriodKind

_MONTHS = 12
_MONTHS_A_QUARTER = 3


def period_at(period: BudgetPeriod, now: datetime) -> Period | None:
    """The period that holds `now`; None before and after a dated one.

    Raises:
        InvalidInputError: a dated period without its two days, or with the last before the first.
    """
    today = now.astimezone(ZoneInfo(period.zone)).date()
    if period.kind is PeriodKind.MONTHLY:
        return _months(f"{today:%Y-%m}", today.year, today.month, 1, period.zone)
    if period.kind is PeriodKind.QUARTERLY:
        quarter = (today.month - 1) // _MONTHS_A_QUARTER
        first_month = quarter * _MONTHS_A_QUARTER + 1
        return _months(f"{today:%Y}-Q{quarter + 1}", today.year, first_month, _MONTHS_A_QUARTER, period.zone)
    if period.kind is PeriodKind.YEARLY:
        return _months(f"{today:%Y}", today.year, 1, _MONTHS, period.zone)
    if period.kind is PeriodKind.DATED:
        dated = _dated(period)
        return dated if dated.holds(now) else None
    assert_never(period.kind)


def period_before(period: BudgetPeriod, now: datetime) -> Period | None:
    """The one that ended last; None where none has: of a dated one, before its end.

    Raises:
        InvalidInputError: as `period_at`.
    """
    if period.kind is PeriodKind.DATED:
        dated = _dated(period)
        return dated if dated.end <= now else None
    current = period_at(period, now)
    return None if current is None else period_at(period, current.start - timedelta.resolution)


def _months(key: str, year: int, month: int, count: int, zone: str) -> Period:
    ahead = month - 1 + count
    after = date(year + ahead // _MONTHS, ahead % _MONTHS + 1, 1)
    return Period(key, start_of(date(year, month, 1), zone), start_of(after, zone), zone)


def _dated(period: BudgetPeriod) -> Period:
    if period.first is None or period.last is None or period.last < period.first:
        message = f"a dated budget needs its first and last day, in order: {period.first}, {period.last}"
        raise InvalidInputError(message)
    end = start_of(period.last + timedelta(days=1), period.zone)
    return Period(f"{period.first}..{period.last}", start_of(period.first, period.zone), end, period.zone)
