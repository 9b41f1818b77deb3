"""A forecast says how sure it is, by how it would have done before."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.builders import usd

from costguard.domain.money import Money
from costguard.estimates.billed import DailySpend
from costguard.estimates.commitments import Commitment
from costguard.estimates.forecast import LAST_MONTH, LAST_WEEK, LEVELS, RUN_RATE, SEASONAL, forecast
from costguard.estimates.period import Period
from costguard.estimates.seasonal import FLOOR, ahead, back_test, half_width, held, level, week_shape
from costguard.estimates.spent import Spent

START, END = datetime(2026, 11, 1, tzinfo=timezone.utc), datetime(2026, 12, 1, tzinfo=timezone.utc)
NOVEMBER = Period("2026-11", START, END)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NOW = START + 10 * DAY


def days(count: int, amount: Callable[[date], float] = lambda _: 100.0, until: datetime = NOW) -> list[DailySpend]:
    """The last `count` days before a moment."""
    dates = [(until - DAY * back).date() for back in range(count, 0, -1)]
    return [DailySpend(day, usd(str(round(amount(day), 2)))) for day in dates]


def spent_so_far(amount: str = "1000", complete: datetime = NOW) -> Spent:
    return Spent(usd(amount), usd("0"), usd("0"), usd("0"), complete)


def test_a_steady_scope_ends_where_its_days_add_up_to() -> None:
    found = forecast(days(63), spent_so_far(), usd("4"), (), NOVEMBER, NOW)

    assert found is not None
    assert found.expected == usd("3000")
    assert (found.method, found.backtest_error) == (LAST_WEEK, Decimal("0.0"))
    assert found.tested > 20
    assert found.held == found.tested
    assert found.at_this_burn == usd("1000") + usd("4").times(480)


def test_steady_spend_is_not_called_sure_to_a_cent_as_it_takes_steps() -> None:
    """What is to come, not what is spent, may be other than before: 2,000 in 20 days."""
    found = forecast(days(63), spent_so_far(), usd("4"), (), NOVEMBER, NOW)

    assert found is not None
    least = usd(str(round(2000 * FLOOR * 20**0.5, 4)))
    assert (found.low, found.high) == (usd("3000") + least.times(-1), usd("3000") + least)


def test_a_total_is_not_narrower_than_a_shock_that_moves_all_of_its_parts() -> None:
    """Two teams whose spend cancels out: the total never moved, and each of them did."""
    one_team = days(63, lambda day: 140.0 if day.toordinal() % 2 else 60.0)
    other_team = days(63, lambda day: 60.0 if day.toordinal() % 2 else 140.0)
    total = [DailySpend(one.day, one.spent + other.spent) for one, other in zip(one_team, other_team, strict=True)]

    found = forecast(total, spent_so_far("0"), usd("8"), (), NOVEMBER, NOW)

    assert found is not None
    assert float(found.high.amount - found.expected.amount) == pytest.approx(FLOOR * 20**0.5 * 200 * 20, rel=1e-6)


def test_a_step_is_followed_within_a_week() -> None:
    doubled = days(63, lambda day: 100.0 if day < (NOW - 7 * DAY).date() else 200.0)

    found = forecast(doubled, spent_so_far(), usd("8"), (), NOVEMBER, NOW)

    assert found is not None
    assert (found.method, found.expected) == (LAST_WEEK, usd("5000"))


def test_the_level_that_missed_clearly_less_on_the_own_past_is_taken_and_named() -> None:
    """One day of ten costs five times as much: a week holds one or none of them, four weeks most of the time three."""
    bursts = days(63, lambda day: 500.0 if day.toordinal() % 10 == 0 else 100.0)

    found = forecast(bursts, spent_so_far(), usd("4"), (), NOVEMBER, NOW)

    assert found is not None
    assert found.method == LAST_MONTH
    assert set(LEVELS) == {LAST_WEEK, SEASONAL, LAST_MONTH}


def test_a_level_that_missed_a_little_less_by_chance_is_not_taken() -> None:
    chance = random.Random(13)  # noqa: S311 - not for secrets; the best of the three missed 15 % less
    wandering, cost = {}, 100.0
    for day in days(63):
        cost *= 1 + chance.gauss(0, 0.05)
        wandering[day.day] = cost

    found = forecast(days(63, wandering.__getitem__), spent_so_far(), usd("4"), (), NOVEMBER, NOW)

    assert found is not None
    assert found.method == LAST_WEEK


def test_held_counts_tries_by_what_was_known_before_each() -> None:
    """Of two days each: the third miss is judged by the first alone, the later ones by more of them."""
    assert held([0.0, 0.0, 0.5, 0.5, 0.5, 0.5], 2) == 3
    assert held([0.5, 0.5, 0.0], 2) == 1
    assert held([], 1) == 0


@given(
    misses=st.lists(st.floats(0, 5), min_size=1, max_size=40),
    tried=st.integers(1, 20),
    ahead_days=st.integers(1, 40),
)
def test_the_interval_grows_with_the_days_ahead_and_has_a_floor(
    misses: list[float], tried: int, ahead_days: int
) -> None:
    width = half_width(misses, tried, ahead_days)

    assert width >= FLOOR * ahead_days**0.5
    assert half_width(misses, tried, ahead_days + 1) > width
    assert half_width([*misses, max(misses)], tried, ahead_days) >= width
    assert 0 <= held(misses, tried) <= len(misses)


def test_weekdays_that_cost_more_are_counted_as_they_come() -> None:
    """From Friday the 27th three days are left to the 30th: a Friday, a Saturday, a Sunday and a Monday."""
    working = days(63, lambda day: 100.0 if day.weekday() < 5 else 10.0, START + 26 * DAY)

    found = forecast(working, spent_so_far("0", START + 26 * DAY), usd("4"), (), NOVEMBER, START + 26 * DAY)

    assert found is not None
    assert abs(found.expected.amount - 220) < 15


@pytest.mark.parametrize(("began", "method"), [(date(2026, 10, 20), LAST_WEEK), (date(2026, 10, 22), RUN_RATE)])
def test_days_before_a_scope_began_are_no_past_of_it(began: date, method: str) -> None:
    """Begun at noon of a day; what is left is enough to learn from, or not."""
    lately = days(63, lambda day: 0.0 if day < began else 50.0 if day == began else 100.0)

    found = forecast(lately, spent_so_far(), usd("4"), (), NOVEMBER, NOW)

    assert found is not None
    assert found.method == method
    assert method == RUN_RATE or found.expected == usd("3000")


@pytest.mark.parametrize("weekend", [0.0, 0.01, 3.0])
def test_days_on_which_next_to_nothing_runs_do_not_lower_the_level(weekend: float) -> None:
    working = [100.0 if day % 7 < 5 else weekend for day in range(63)]

    assert ahead(working, 7) == pytest.approx([*[100.0] * 5, weekend, weekend])


@pytest.mark.parametrize("weekend", [0.0, 0.01, 3.0])
def test_one_night_of_work_on_such_a_day_is_no_fleet(weekend: float) -> None:
    working = [100.0 if day % 7 < 5 else weekend for day in range(63)]
    odd = [*working[:-1], 50.0]

    assert ahead(odd, 7) == pytest.approx(ahead(working, 7))
    assert ahead(working[:-2], 9, (0, 1), 25.0)[2:] == pytest.approx(ahead(working[:-2], 9)[2:])


@pytest.mark.parametrize("count", [0, 1, 20])
def test_a_short_past_leaves_the_run_rate_and_says_so(count: int) -> None:
    found = forecast(days(count), spent_so_far(), usd("4"), (), NOVEMBER, NOW)

    assert found is not None
    assert (found.method, found.backtest_error, found.tested) == (RUN_RATE, None, 0)
    assert (found.low, found.expected, found.high) == (usd("1960"), usd("2920"), usd("4840"))


def test_a_past_that_ended_long_ago_or_has_a_hole_is_not_learnt_from() -> None:
    old = days(63, until=NOW - 20 * DAY)
    holed = [*days(30, until=NOW - 11 * DAY), *days(10)]

    for history in (old, holed):
        found = forecast(history, spent_so_far(), usd("4"), (), NOVEMBER, NOW)
        assert found is not None
        assert found.method == RUN_RATE


def test_a_month_that_cost_nothing_is_forecast_to_go_on_so() -> None:
    found = forecast(days(63, lambda _: 0.0), spent_so_far("0"), usd("0"), (), NOVEMBER, NOW)

    assert found is not None
    assert (found.low, found.expected, found.high) == (usd("0"), usd("0"), usd("0"))


def test_the_same_misses_tried_less_often_make_a_wider_interval() -> None:
    """A twentieth more each day is missed by the same share each day."""
    growing = [1.05**day for day in range(20)]

    once, often = back_test(growing[:15], 1), back_test(growing, 1)

    assert once is not None
    assert often is not None
    assert (once.tries, often.tries) == (1, 6)
    assert once.mean_error == pytest.approx(often.mean_error, rel=0.01)
    assert once.width > 1.3 * often.width


def test_what_falls_due_in_the_period_is_added_once() -> None:
    """What fell due and is not on the bill yet as well."""
    dues = (
        Commitment("renewal", START + 20 * DAY, usd("500")),
        Commitment("not billed yet", NOW - DAY, usd("70")),
        Commitment("next month", END, usd("900")),
    )

    found = forecast(days(63), spent_so_far(), usd("4"), dues, NOVEMBER, NOW)

    assert found is not None
    without = forecast(days(63), spent_so_far(), usd("4"), (), NOVEMBER, NOW)
    assert without is not None
    assert [one.amount for one in (found.low, found.expected, found.high)] == [
        one.amount + 570 for one in (without.low, without.expected, without.high)
    ]
    assert found.at_this_burn == usd("1570") + usd("4").times(480)
    assert found.commitments == dues[:2]


def test_what_may_fall_due_lifts_the_upper_bound_alone() -> None:
    perhaps = Commitment("renewal", START + 20 * DAY, usd("500"), sure=False)

    found = forecast(days(63), spent_so_far(), usd("4"), (perhaps,), NOVEMBER, NOW)

    assert found is not None
    without = forecast(days(63), spent_so_far(), usd("4"), (), NOVEMBER, NOW)
    assert without is not None
    assert (found.low, found.expected, found.high) == (without.low, usd("3000"), without.high + usd("500"))


def test_what_costs_nobody_knows_what_is_named_and_in_no_figure() -> None:
    unknown = Commitment("renewal", START + 20 * DAY, None)
    spread = Commitment("spread", START + 20 * DAY, None, spread=True)

    found = forecast(days(63), spent_so_far(), usd("4"), (unknown, spread), NOVEMBER, NOW)

    assert found is not None
    assert found.expected == usd("3000")
    assert found.unknown == (unknown,)


def test_a_burn_beyond_the_past_lifts_the_upper_bound_to_where_it_leads() -> None:
    calm = forecast(days(63), spent_so_far(), usd("100"), (), NOVEMBER, NOW)
    surging = forecast(days(63), spent_so_far(), usd("100"), (), NOVEMBER, NOW, surging=True)

    assert calm is not None
    assert surging is not None
    assert calm.expected == usd("3000")
    assert surging.high == surging.at_this_burn == usd("49000")
    assert usd("3000").amount < surging.expected.amount < usd("49000").amount


def test_days_no_bill_shows_yet_move_the_level() -> None:
    """The bill ends three days ago; since then twice as much is spent."""
    history = days(63, until=NOW - 3 * DAY)
    late = replace(spent_so_far(complete=NOW - 3 * DAY), unbilled_per_hour=usd(str(round(200 / 24, 6))))

    found = forecast(history, late, usd("8"), (), NOVEMBER, NOW)
    unaware = forecast(history, replace(late, unbilled_per_hour=None), usd("8"), (), NOVEMBER, NOW)

    assert found is not None
    assert unaware is not None
    assert unaware.expected == usd("3000")
    assert usd("3300").amount < found.expected.amount < usd("5000").amount
    assert found.method == LAST_WEEK


def test_there_is_no_forecast_outside_of_the_period() -> None:
    assert forecast(days(63), spent_so_far(), usd("4"), (), NOVEMBER, END) is None
    assert forecast(days(63), spent_so_far(), usd("4"), (), NOVEMBER, START - HOUR) is None


def test_another_currency_is_refused_wherever_it_comes_from() -> None:
    yuan = Money(Decimal(1), "CNY")

    with pytest.raises(ValueError, match="CNY"):
        forecast([DailySpend(NOW.date(), yuan)], spent_so_far(), usd("4"), (), NOVEMBER, NOW)
    with pytest.raises(ValueError, match="CNY"):
        forecast(days(63), spent_so_far(), yuan, (), NOVEMBER, NOW)
    with pytest.raises(ValueError, match="CNY"):
        forecast(days(63), spent_so_far(), usd("4"), (Commitment("x", END - HOUR, yuan),), NOVEMBER, NOW)


def test_a_day_of_25_hours_costs_an_hour_more() -> None:
    zone = "America/New_York"
    month = Period(
        "2026-11", datetime(2026, 11, 1, 4, tzinfo=timezone.utc), datetime(2026, 12, 1, 5, tzinfo=timezone.utc), zone
    )
    history = days(63, lambda _: 24.0, month.start)

    found = forecast(history, spent_so_far("0", month.start), usd("1"), (), month, month.start)

    assert found is not None
    assert found.expected == usd("721")


def test_the_shape_of_a_week_needs_three_of_them_and_one_odd_day_makes_none() -> None:
    flat = [10.0] * 28

    assert week_shape(flat[:20]) == (1.0,) * 7
    assert week_shape([*flat[:8], 90.0, *flat[9:]]) == pytest.approx((1.0,) * 7, rel=0.2)
    assert week_shape([0.0] * 28) == (1.0,) * 7
    assert week_shape([5.0, 1, 1, 1, 1, 1, 1] * 4)[0] == pytest.approx(5 * 7 / 11)


@given(
    history=st.lists(st.floats(-1000, 10**6), min_size=21, max_size=70),
    burn=st.floats(-5, 10**4),
    hours=st.integers(0, 719),
    surging=st.booleans(),
)
@example(history=[1.0, *[0.0] * 20], burn=-1.0, hours=0, surging=True)
@settings(max_examples=30, deadline=None)
def test_no_forecast_is_below_what_is_spent_and_the_bounds_hold_it(
    history: list[float], burn: float, hours: int, *, surging: bool
) -> None:
    now = START + HOUR * hours
    so_far = spent_so_far("123.45", now)
    told = [
        DailySpend((now - DAY * (len(history) - at)).date(), usd(str(round(value, 4))))
        for at, value in enumerate(history)
    ]

    found = forecast(told, so_far, usd(str(round(burn, 4))), (), NOVEMBER, now, surging=surging)

    assert found is not None
    assert so_far.total.amount <= found.low.amount <= found.expected.amount <= found.high.amount


@given(st.lists(st.floats(-1000, 1000), min_size=14, max_size=60), st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_what_is_ahead_is_never_less_than_nothing_and_a_level_never_leaves_its_past(
    history: list[float], count: int
) -> None:
    assert all(value >= 0 for value in ahead(history, count))
    assert min(history) - 1e-6 <= level(history) <= max(history) + 1e-6
