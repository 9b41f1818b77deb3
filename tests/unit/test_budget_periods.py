"""A budget's periods: whole days of its own zone, without a hole, whatever the clocks do."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costguard.domain.errors import InvalidInputError
from costguard.estimates.period import Period, day_of, days_between
from costguard.guards.budget.rules import BudgetPeriod, PeriodKind, period_at, period_before

ZONES = ("UTC", "Asia/Shanghai", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Cairo")
CALENDAR = (PeriodKind.MONTHLY, PeriodKind.QUARTERLY, PeriodKind.YEARLY)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[arg-type,misc]


def at(kind: PeriodKind, now: datetime, zone: str = "UTC") -> Period:
    found = period_at(BudgetPeriod(kind, zone), now)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("kind", "key", "start", "end"),
    [
        (PeriodKind.MONTHLY, "2026-12", utc(2026, 12, 1), utc(2027, 1, 1)),
        (PeriodKind.QUARTERLY, "2026-Q4", utc(2026, 10, 1), utc(2027, 1, 1)),
        (PeriodKind.YEARLY, "2026", utc(2026, 1, 1), utc(2027, 1, 1)),
    ],
)
def test_the_last_moment_of_a_year_is_still_in_it(kind: PeriodKind, key: str, start: datetime, end: datetime) -> None:
    assert at(kind, end - timedelta(microseconds=1)) == Period(key, start, end)
    assert at(kind, end).start == end


def test_a_month_is_one_of_the_budgets_own_zone() -> None:
    in_shanghai = at(PeriodKind.MONTHLY, utc(2026, 10, 31, 16), "Asia/Shanghai")

    assert (in_shanghai.key, in_shanghai.start) == ("2026-11", utc(2026, 10, 31, 16))
    assert at(PeriodKind.MONTHLY, utc(2026, 10, 31, 15, 59), "Asia/Shanghai").key == "2026-10"


@pytest.mark.parametrize(("year", "days"), [(2026, 28), (2028, 29), (2100, 28), (2000, 29)])
def test_february_is_as_long_as_its_year_says(year: int, days: int) -> None:
    february = at(PeriodKind.MONTHLY, utc(year, 2, 28, 23, 59))

    assert february.hours == days * 24
    assert february.days[-1].day == date(year, 2, days)


def test_clocks_that_change_make_a_day_of_23_and_one_of_25_hours() -> None:
    march = at(PeriodKind.MONTHLY, utc(2026, 3, 15), "America/New_York")
    november = at(PeriodKind.MONTHLY, utc(2026, 11, 15), "America/New_York")

    assert march.hours == 31 * 24 - 1
    assert november.hours == 30 * 24 + 1
    assert [day.hours for day in march.days if day.day == date(2026, 3, 8)] == [23]
    assert [day.hours for day in november.days if day.day == date(2026, 11, 1)] == [25]


def test_a_midnight_that_clocks_leave_out_is_the_moment_of_the_change() -> None:
    """Cairo goes from 00:00 to 01:00 on the last Friday of April."""
    changed = day_of(utc(2026, 4, 24, 12), "Africa/Cairo")

    assert changed.start == utc(2026, 4, 23, 22)
    assert changed.hours == 23


def test_a_dated_budget_holds_its_two_days_and_nothing_else() -> None:
    dated = BudgetPeriod(PeriodKind.DATED, "UTC", date(2026, 11, 1), date(2026, 12, 15))

    assert period_at(dated, utc(2026, 10, 31, 23, 59)) is None
    assert period_at(dated, utc(2026, 12, 16)) is None
    assert period_at(dated, utc(2026, 11, 1)) == period_at(dated, utc(2026, 12, 15, 23, 59))
    assert period_at(dated, utc(2026, 11, 1)) == Period("2026-11-01..2026-12-15", utc(2026, 11, 1), utc(2026, 12, 16))


@pytest.mark.parametrize(
    ("first", "last"), [(None, None), (date(2026, 1, 1), None), (date(2026, 2, 1), date(2026, 1, 1))]
)
def test_a_dated_budget_without_its_days_is_refused(first: date | None, last: date | None) -> None:
    with pytest.raises(InvalidInputError):
        period_at(BudgetPeriod(PeriodKind.DATED, "UTC", first, last), utc(2026, 1, 1))


def test_what_is_left_is_by_time_and_stays_between_nothing_and_all() -> None:
    november = at(PeriodKind.MONTHLY, utc(2026, 11, 15))

    assert november.hours_left(utc(2026, 11, 30)) == 24
    assert november.hours_left(utc(2027, 1, 1)) == 0


def test_only_whole_days_lie_between_two_moments() -> None:
    days = list(days_between(utc(2026, 11, 1, 1), utc(2026, 11, 3, 23), "UTC"))

    assert [day.day for day in days] == [date(2026, 11, 2)]
    assert list(days_between(utc(2026, 11, 2), utc(2026, 11, 1), "UTC")) == []


@given(
    hour=st.integers(0, 90 * 8760),
    zone=st.sampled_from(ZONES),
    kind=st.sampled_from(CALENDAR),
)
@settings(max_examples=60, deadline=None)
def test_periods_follow_each_other_without_a_hole_and_are_made_of_their_days(
    hour: int, zone: str, kind: PeriodKind
) -> None:
    now = utc(2000, 1, 1) + timedelta(hours=hour)
    period = at(kind, now, zone)
    after = at(kind, period.end, zone)

    assert period.holds(now)
    assert not period.holds(period.end)
    assert after.start == period.end
    assert after.key != period.key
    assert [period.start, *(day.end for day in period.days)] == [*(day.start for day in period.days), period.end]
    assert sum(day.hours for day in period.days) == period.hours


@pytest.mark.parametrize("kind", CALENDAR)
@pytest.mark.parametrize("zone", ZONES)
def test_the_period_before_ends_where_the_present_one_begins(kind: PeriodKind, zone: str) -> None:
    rule, now = BudgetPeriod(kind, zone), utc(2026, 1, 1, 12)
    before = period_before(rule, now)
    assert before is not None
    assert before.end == at(kind, now, zone).start
    assert before == period_at(rule, before.start)


def test_a_dated_budget_has_itself_before_once_it_is_over() -> None:
    rule = BudgetPeriod(PeriodKind.DATED, "UTC", date(2026, 11, 1), date(2026, 11, 20))
    assert period_before(rule, utc(2026, 11, 20, 23)) is None
    before = period_before(rule, utc(2026, 11, 21))
    assert before is not None
    assert before.key == "2026-11-01..2026-11-20"
