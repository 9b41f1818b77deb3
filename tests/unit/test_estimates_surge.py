"""A burn that leaves its own past is seen at once, and what is usual is not."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from tests.builders import ref, usd

from costguard.domain.money import Money
from costguard.estimates.burn import Metered, Surge, floor_of, surge

MIDNIGHT = datetime(2026, 11, 20, tzinfo=timezone.utc)
HOUR, DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)
FLOOR = usd("5")


def runs(name: str, since: datetime, until: datetime | None, hourly: str) -> Metered:
    return Metered(ref(name), since, until, usd(hourly), "p5.48xlarge")


def always(hourly: str = "10") -> Metered:
    return runs("i-always", MIDNIGHT - 60 * DAY, None, hourly)


def fleet(size: int = 8, hourly: str = "60") -> list[Metered]:
    """A new fleet, since midnight."""
    return [runs(f"i-new{number}", MIDNIGHT, None, hourly) for number in range(size)]


def test_a_new_fleet_at_midnight_is_a_surge_within_its_first_hour() -> None:
    found = surge([always(), *fleet()], MIDNIGHT + HOUR / 2, MIDNIGHT - 5 * WEEK, FLOOR)

    assert found == Surge(usd("490"), usd("10"), Decimal("49.00"), "the same hours of the past 4 weeks")


def test_what_runs_at_these_hours_every_week_is_usual() -> None:
    """Each Friday night a training of 480 an hour."""
    weekly = [
        runs(f"i-weekly{week}", MIDNIGHT - week * WEEK, MIDNIGHT - week * WEEK + 8 * HOUR, "480") for week in range(5)
    ]

    assert surge([always(), *weekly], MIDNIGHT + 2 * HOUR, MIDNIGHT - 5 * WEEK, FLOOR) is None


def test_one_week_that_burned_as_much_bounds_it_as_well() -> None:
    """Once in four weeks is no habit, but it is in the scope's own past."""
    once = runs("i-once", MIDNIGHT - 2 * WEEK - DAY, MIDNIGHT - 2 * WEEK + DAY, "480")

    assert surge([always(), once, *fleet()], MIDNIGHT + HOUR, MIDNIGHT - 5 * WEEK, FLOOR) is None


def test_where_nothing_ever_ran_there_is_no_factor() -> None:
    found = surge(fleet(), MIDNIGHT + HOUR, MIDNIGHT - 5 * WEEK, FLOOR)

    assert found is not None
    assert (found.usual, found.factor) == (usd("0"), None)


def test_a_small_scope_does_not_cry_wolf() -> None:
    """A hundred times as much, and still not worth a word."""
    small = [always("0.01"), runs("i-small", MIDNIGHT, None, "1")]

    assert surge(small, MIDNIGHT + HOUR, MIDNIGHT - 5 * WEEK, FLOOR) is None
    assert surge(small, MIDNIGHT + HOUR, MIDNIGHT - 5 * WEEK, usd("0.5")) is not None


def test_with_a_past_of_days_only_three_times_its_most_counts() -> None:
    young = MIDNIGHT - 3 * DAY

    assert surge([always(), runs("i-2", MIDNIGHT, None, "20")], MIDNIGHT + HOUR, young, FLOOR) is None
    found = surge([always(), runs("i-2", MIDNIGHT, None, "21")], MIDNIGHT + HOUR, young, FLOOR)
    assert found == Surge(usd("31"), usd("10"), Decimal("3.10"), "the past 24 hours")


def test_on_its_first_day_nothing_can_be_a_surge() -> None:
    assert surge(fleet(), MIDNIGHT + HOUR, MIDNIGHT - 20 * HOUR, FLOOR) is None


def test_the_floor_is_what_would_take_a_day_to_use_a_twentieth() -> None:
    assert floor_of(usd("4800")).rounded(6) == usd("10").rounded(6)


def test_a_machine_nobody_can_price_is_no_surge_and_no_error() -> None:
    unpriced = Metered(ref("i-x"), MIDNIGHT, None, None)

    assert surge([always(), unpriced], MIDNIGHT + HOUR, MIDNIGHT - 5 * WEEK, FLOOR) is None


def test_another_currency_than_the_floors_is_refused() -> None:
    with pytest.raises(ValueError, match="USD"):
        surge([always()], MIDNIGHT, MIDNIGHT - 5 * WEEK, Money(Decimal(1), "CNY"))


def test_a_run_that_failed_leaves_others_to_see_a_surge_with_little_past() -> None:
    seen = [surge([always(), *fleet()], MIDNIGHT + hour * HOUR, MIDNIGHT - 3 * DAY, FLOOR) for hour in range(9)]

    assert [found is not None for found in seen] == [True] * 7 + [False] * 2
