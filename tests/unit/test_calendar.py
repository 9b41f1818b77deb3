"""Working time only ever lengthens a grace."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, time, timedelta, timezone
from itertools import product
from zoneinfo import ZoneInfo

import holidays
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.builders import policy, rule

from costguard.guards.rules.common import Mode
from costguard.policy.documents.policy import HolidaysDocument
from costguard.policy.model.holidays import HolidayDates, dates_of, dates_out_of, exceptions, file_text
from costguard.policy.model.working_time import WorkingCalendar
from costguard.policy.remarks import remarks
from costguard.policy.syntax.yaml12 import read_yaml
from costguard.policy.syntax.yaml_nodes import plain

H = timedelta(hours=1)


def known(name: str) -> HolidayDates:
    found = dates_of(name)
    assert found is not None, "the package holidays is a dependency of the command line"
    return found


SHANGHAI = ZoneInfo("Asia/Shanghai")
WEEK = WorkingCalendar("Asia/Shanghai", frozenset(range(5)), time(10), time(18))
CHINA = known("cn")
ANNOUNCED = min(CHINA.computed) - 1
CN = replace(WEEK, exceptions=exceptions([CHINA]), known_until=CHINA.known_until, computed=CHINA.computed)


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


def test_moved_workdays_are_exact_where_they_are_announced() -> None:
    """The notice of the State Council's General Office for 2026: six days are worked, all of them on weekends."""
    assert [day for day in sorted(CHINA.worked) if day.year == 2026] == [
        *(date(2026, 1, 4), date(2026, 2, 14), date(2026, 2, 28)),
        *(date(2026, 5, 9), date(2026, 9, 20), date(2026, 10, 10)),
    ]
    assert not any(CN.is_working_day(date(2026, 10, day)) for day in range(1, 8))


def test_a_year_not_announced_yet_moves_no_workday_and_rests_around_what_the_law_says() -> None:
    year = ANNOUNCED + 1

    assert {day.year for day in CHINA.worked}.isdisjoint(CHINA.computed)
    assert not CN.is_working_day(date(year, 10, 1))
    assert not CN.is_working_day(date(year, 5, 3))
    assert any(CN.is_working_day(date(year, 3, day)) for day in range(10, 20))


def test_a_spring_festival_that_is_not_announced_rests_around_its_lunar_day_and_not_for_seven_weeks() -> None:
    """It begins on 6 February 2027; a day of waiting from 15 January once ended in March."""
    resting = [day for day in range(1, 29) if not CN.is_working_day(date(2027, 2, day))]
    assert resting == [*range(1, 16), 20, 21, 27, 28]
    assert CN.after(shanghai(2027, 1, 15, 12), 24 * H) == shanghai(2027, 1, 20, 12)


def test_the_bridge_into_a_year_not_announced_yet_rests_too() -> None:
    assert not CN.is_working_day(date(ANNOUNCED, 12, 31))


@pytest.mark.parametrize("year", range(2008, ANNOUNCED + 1))
def test_not_knowing_a_year_never_shortens_a_grace(year: int) -> None:
    """As far back as moved days of rest are announced in the way of today."""
    told, computed = _moved(year, until=year + 1), _moved(year, until=year - 1)

    for month in range(1, 13):
        for day in (1, 8, 15, 22, 28):
            start = shanghai(year, month, day, 12)
            assert computed.after(start, 40 * H) >= told.after(start, 40 * H), (start, told.after(start, 40 * H))


def _moved(year: int, *, until: int) -> WorkingCalendar:
    """China's days of two years, where those after `until` are not announced."""
    found = holidays.country_holidays("CN", years=range(year, year + 2), expand=False, language="en_US")
    law = Law({day: said for day, said in found.items() if "substituted" not in said and "Extended" not in said})
    said = found if until >= year else law
    return replace(WEEK, exceptions=exceptions([dates_out_of(said, until, year, year + 1)]))


class Law(dict[date, str]):
    """Holidays as the law has them, before anybody announced which workdays are moved."""

    weekend_workdays = frozenset[date]()


def test_of_several_countries_a_day_is_worked_only_where_all_of_them_work() -> None:
    both = exceptions([CHINA, known("us")])

    assert both[date(2026, 2, 16)] is False
    assert both[date(2026, 11, 26)] is False
    assert date(2026, 10, 10) not in both  # worked in China alone


def test_parts_of_countries_have_holidays_of_their_own() -> None:
    bavaria, berlin = known("de-BY"), known("de-BE")

    assert date(2026, 1, 6) in bavaria.closed - berlin.closed
    assert not bavaria.computed


def test_what_is_written_into_a_bundle_is_read_back_as_it_was() -> None:
    named = [known(name) for name in ("cn", "de-BY", "tr")]
    text = file_text(named)

    read = read_yaml("holidays.yaml", text).root
    assert read is not None
    found = HolidaysDocument.model_validate(plain(read), strict=True)

    assert [each.dates() for each in found.calendars] == named


def test_a_year_without_dates_makes_a_grace_longer_than_any_holidays_would() -> None:
    """Twice what is left, and two weeks of working hours; a notice is not kept back."""
    unknown = replace(WEEK, known_until=date(2025, 12, 31))

    assert unknown.after(shanghai(2026, 3, 2, 10), 8 * H) == WEEK.after(shanghai(2026, 3, 2, 10), (16 + 80) * H)
    assert unknown.after(shanghai(2026, 3, 2, 10), 0 * H) == shanghai(2026, 3, 2, 10)
    for month, wait in product(range(1, 13), (24, 120, 240)):
        start = shanghai(2026, month, 1, 12)
        assert unknown.after(start, wait * H) >= CN.after(start, wait * H)


@pytest.mark.parametrize(
    ("moment", "comes"),
    [
        ((2026, 11, 5, 9), (2026, 11, 5, 10)),  # before opening
        ((2026, 11, 5, 15), (2026, 11, 5, 15)),  # a Thursday afternoon
        ((2026, 11, 5, 18), (2026, 11, 6, 10)),  # at closing time
        ((2026, 11, 6, 11, 59), (2026, 11, 6, 11, 59)),  # Friday morning
        ((2026, 11, 6, 12), (2026, 11, 9, 10)),  # Friday noon
        ((2026, 11, 7, 11), (2026, 11, 9, 10)),  # Saturday
        ((2026, 9, 24, 10), (2026, 9, 28, 10)),  # the day before Mid-Autumn, a Friday
        ((2026, 9, 30, 10), (2026, 10, 8, 10)),  # the day before National Day
        ((2026, 10, 9, 15), (2026, 10, 9, 15)),  # a Friday before a Saturday that is worked
        ((2026, 10, 10, 11), (2026, 10, 10, 11)),  # that Saturday
        ((2026, 10, 10, 12), (2026, 10, 12, 10)),  # its noon: Sunday is free
        ((2026, 4, 3, 10), (2026, 4, 7, 10)),  # the Friday before a Monday that is a holiday
    ],
)
def test_a_first_stop_waits_for_a_time_that_leaves_people_time(moment: tuple[int, ...], comes: tuple[int, ...]) -> None:
    assert CN.after(shanghai(*moment), 0 * H, first_stop=True) == shanghai(*comes)


def test_where_every_day_is_worked_only_the_night_is_kept_free() -> None:
    daily = replace(WEEK, weekdays=frozenset(range(7)))

    assert daily.after(shanghai(2026, 11, 6, 17), 0 * H, first_stop=True) == shanghai(2026, 11, 6, 17)
    assert daily.after(shanghai(2026, 11, 6, 20), 0 * H, first_stop=True) == shanghai(2026, 11, 7, 10)


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
        draw(st.none() | st.just(date(2026, 12, 31))),
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
    assume(calendar.known_until is None)  # in a year that nobody knows each wait is longer by itself
    assume(other)  # no wait at all, begun at closing time, is over when the next day opens
    assert calendar.after(calendar.after(start, one), other) == calendar.after(start, one + other)


@pytest.mark.parametrize(("day", "told"), [(date(2029, 10, 31), False), (date(2029, 11, 3), True)])
def test_a_year_without_holidays_is_remarked_sixty_days_ahead(day: date, told: bool) -> None:  # noqa: FBT001
    listed = replace(CN, exceptions={date(2029, 10, 1): False}, computed=frozenset())
    now = datetime.combine(day, time(12), SHANGHAI)
    for calendar in (listed, replace(listed, known_until=None)):
        assert ([] if not told else [True]) == ["2030" in each for each in _holiday_remarks(calendar, now)]


def test_a_year_that_is_computed_is_remarked() -> None:
    found = _holiday_remarks(CN, shanghai(ANNOUNCED, 11, 23))

    assert len(found) == 1
    assert f"the holidays of {ANNOUNCED + 1} are not announced yet" in found[0]
    assert _holiday_remarks(CN, shanghai(ANNOUNCED, 6, 1)) == []


def test_dates_that_are_all_past_are_remarked() -> None:
    found = _holiday_remarks(replace(WEEK, exceptions={date(2025, 10, 1): False}), shanghai(2026, 6, 1))

    assert ["dates that are past change nothing" in each for each in found] == [True]


def _holiday_remarks(calendar: WorkingCalendar, now: datetime) -> list[str]:
    return [str(each) for each in remarks(policy(calendar=calendar), now) if each.where == "calendar.holidays"]


@pytest.mark.parametrize(
    ("mode", "said", "remarked"),
    [(Mode.ENFORCE, False, True), (Mode.ENFORCE, True, False), (Mode.WARN, False, False)],
)
def test_enforcing_without_a_calendar_is_remarked_unless_it_is_said(
    mode: Mode,
    said: bool,  # noqa: FBT001
    remarked: bool,  # noqa: FBT001
) -> None:
    at_will = policy(rule(mode=mode), every_hour_counts=said)

    assert ("calendar" in {each.where for each in remarks(at_will, shanghai(2026, 6, 1))}) is remarked
