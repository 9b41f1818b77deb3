"""Working time only ever lengthens a grace."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.builders import policy

from costguard.policy.model import holidays_cn
from costguard.policy.model.working_time import WorkingCalendar
from costguard.policy.remarks import remarks

H = timedelta(hours=1)
SHANGHAI = ZoneInfo("Asia/Shanghai")
WEEK = WorkingCalendar("Asia/Shanghai", frozenset(range(5)), time(10), time(18))
CN = WorkingCalendar(
    "Asia/Shanghai",
    frozenset(range(5)),
    time(10),
    time(18),
    holidays_cn.exceptions(),
    holidays_cn.known_until(),
    holidays_cn.is_doubtful,
)


def shanghai(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=SHANGHAI)  # type: ignore[arg-type,misc]


def test_a_wait_over_a_weekend_counts_working_hours_only() -> None:
    friday_evening = shanghai(2026, 11, 6, 17)

    assert WEEK.after(friday_evening, 3 * H) == shanghai(2026, 11, 9, 12)


def test_a_wait_that_ends_with_the_day_ends_then() -> None:
    assert WEEK.after(shanghai(2026, 11, 6, 10), 8 * H) == shanghai(2026, 11, 6, 18)


def test_without_a_wait_the_next_working_moment_counts() -> None:
    assert WEEK.after(shanghai(2026, 11, 7, 3), 0 * H) == shanghai(2026, 11, 9, 10)


def test_holidays_rest_and_moved_workdays_work() -> None:
    calendar = WorkingCalendar(
        "Asia/Shanghai", WEEK.weekdays, time(10), time(18), {date(2026, 10, 1): False, date(2026, 10, 3): True}
    )

    assert calendar.after(shanghai(2026, 9, 30, 17), 2 * H) == shanghai(2026, 10, 2, 11)
    assert calendar.after(shanghai(2026, 10, 2, 17), 2 * H) == shanghai(2026, 10, 3, 11)


def test_the_chinese_calendar_knows_national_day() -> None:
    assert CN.after(shanghai(2026, 9, 30, 17), 2 * H) == shanghai(2026, 10, 8, 11)
    assert CN.is_working_day(date(2026, 10, 10))


def test_a_year_not_announced_yet_rests_wherever_a_holiday_could_fall() -> None:
    year = holidays_cn.known_until().year + 1

    assert not CN.is_working_day(date(year, 10, 1))
    assert not CN.is_working_day(date(year, 5, 3))
    assert any(CN.is_working_day(date(year, 3, day)) for day in range(10, 20))


def test_a_spring_festival_that_is_not_announced_rests_around_its_lunar_day_and_not_for_seven_weeks() -> None:
    """It begins on 6 February 2027; a day of waiting from 15 January once ended in March."""
    unaware = replace(CN, exceptions={}, known_until=date(2026, 12, 28))
    resting = [day for day in range(1, 29) if not unaware.is_working_day(date(2027, 2, day))]
    assert resting == [*range(2, 19), 20, 21, 27, 28]
    assert unaware.after(shanghai(2027, 1, 15, 12), 24 * H) == shanghai(2027, 1, 20, 12)


def test_the_bridge_into_a_year_not_announced_yet_rests_too() -> None:
    assert not CN.is_working_day(date(holidays_cn.known_until().year, 12, 31))


def test_every_holiday_ever_announced_falls_where_holidays_are_expected() -> None:
    """The windows of doubt would have been wide enough for each year that is known."""
    outside = [
        day for day, worked in holidays_cn.exceptions().items() if not worked and not holidays_cn.is_doubtful(day)
    ]

    assert outside == []


@pytest.mark.parametrize("year", range(2007, 2027))
def test_not_knowing_a_year_never_shortens_a_grace(year: int) -> None:
    unaware = WorkingCalendar(
        "Asia/Shanghai", CN.weekdays, CN.opens, CN.closes, {}, date(year - 1, 12, 28), holidays_cn.is_doubtful
    )

    for month in range(1, 13):
        start = shanghai(year, month, 15, 12)
        assert unaware.after(start, 40 * H) >= CN.after(start, 40 * H)


def test_clocks_that_skip_the_opening_open_later() -> None:
    calendar = WorkingCalendar("America/New_York", frozenset(range(7)), time(2, 30), time(4))

    # 2026-03-08: 02:00 becomes 03:00, so of 02:30-04:00 half an hour is left after 03:30
    assert calendar.after(datetime(2026, 3, 8, 5, tzinfo=timezone.utc), 31 * H / 60) == datetime(
        2026, 3, 9, 6, 31, tzinfo=timezone.utc
    )


def test_clocks_that_repeat_the_closing_close_at_the_first() -> None:
    calendar = WorkingCalendar("America/New_York", frozenset(range(7)), time(0, 30), time(1, 30))

    # 2026-11-01: 01:30 comes twice, at 05:30 and at 06:30 UTC
    assert calendar.after(datetime(2026, 11, 1, 4, 30, tzinfo=timezone.utc), H) == datetime(
        2026, 11, 1, 5, 30, tzinfo=timezone.utc
    )


def test_a_day_may_end_at_midnight() -> None:
    always = WorkingCalendar("Europe/Berlin", frozenset(range(7)), time(0), time(0))
    start = datetime(2026, 3, 28, 12, tzinfo=timezone.utc)

    assert always.after(start, 100 * H) == start + 100 * H
    assert always.weekly() == 168 * H
    assert WEEK.weekly() == 40 * H


@pytest.mark.parametrize(
    ("start", "duration", "says"),
    [(datetime(2026, 1, 1), H, "offset"), (shanghai(2026, 1, 1), -H, "negative")],  # noqa: DTZ001 - the point
)
def test_what_cannot_be_counted_is_refused(start: datetime, duration: timedelta, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        WEEK.after(start, duration)


def test_a_calendar_without_working_days_is_refused_not_waited_for() -> None:
    with pytest.raises(ValueError, match="ten years"):
        WorkingCalendar("UTC", frozenset(), time(10), time(18)).after(shanghai(2026, 1, 1), H)


ZONES = st.sampled_from(["Asia/Shanghai", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "UTC"])
MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2028, 1, 1), timezones=st.just(timezone.utc))  # noqa: DTZ001 - bounds
DURATIONS = st.timedeltas(timedelta(0), 60 * H)


@st.composite
def calendars(draw: st.DrawFn) -> WorkingCalendar:
    opens = draw(st.integers(0, 1199))
    closes = opens + draw(st.integers(60, 239))
    return WorkingCalendar(
        draw(ZONES),
        draw(st.frozensets(st.integers(0, 6), min_size=1)),
        time(*divmod(opens, 60)),
        time(*divmod(closes, 60)),
        draw(st.dictionaries(st.dates(date(2026, 1, 1), date(2028, 1, 1)), st.booleans(), max_size=5)),
        draw(st.none() | st.just(date(2026, 6, 1))),
        holidays_cn.is_doubtful,
    )


@settings(max_examples=60, deadline=None)
@given(calendar=calendars(), start=MOMENTS, duration=DURATIONS)
def test_a_grace_is_never_shorter_than_written(calendar: WorkingCalendar, start: datetime, duration: timedelta) -> None:
    assert calendar.after(start, duration) >= start + duration


@settings(max_examples=60, deadline=None)
@given(
    calendar=calendars(),
    start=MOMENTS,
    later=st.timedeltas(timedelta(0), timedelta(days=30)),
    duration=DURATIONS,
    longer=DURATIONS,
)
def test_later_or_longer_never_ends_earlier(
    calendar: WorkingCalendar, start: datetime, later: timedelta, duration: timedelta, longer: timedelta
) -> None:
    first = calendar.after(start, duration)

    assert calendar.after(start + later, duration) >= first
    assert calendar.after(start, duration + longer) >= first


@settings(max_examples=60, deadline=None)
@given(calendar=calendars(), start=MOMENTS, one=DURATIONS, other=DURATIONS)
def test_two_waits_in_a_row_are_one_wait(
    calendar: WorkingCalendar, start: datetime, one: timedelta, other: timedelta
) -> None:
    assume(other)  # no wait at all, begun at closing time, is over when the next day opens
    assert calendar.after(calendar.after(start, one), other) == calendar.after(start, one + other)


@pytest.mark.parametrize(("day", "told"), [(date(2026, 10, 31), False), (date(2026, 11, 3), True)])
def test_a_year_without_holidays_is_remarked_sixty_days_ahead(day: date, told: bool) -> None:  # noqa: FBT001
    listed = replace(CN, exceptions={date(2026, 10, 1): False}, known_until=date(2026, 12, 28))
    now = datetime.combine(day, time(12), SHANGHAI)
    for calendar in (listed, replace(listed, known_until=None)):
        remarked = [each for each in remarks(policy(calendar=calendar), now) if each.where == "calendar.holidays"]
        assert ([] if not told else [True]) == ["2027" in str(each) for each in remarked]
