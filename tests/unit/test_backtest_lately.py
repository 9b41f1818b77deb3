"""What a policy would have reclaimed in the last day, week and month: of what was read, and of nothing else."""

from __future__ import annotations

from array import array
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal

from tests.builders import history, instance, usd

from costguard.backtest import Machine, Run, lately
from costguard.domain.money import HourlyRate, NetRate, NetSource
from costguard.domain.signals import SignalName
from costguard.policy.model.policy import default_policy

END = datetime(2026, 3, 31, tzinfo=timezone.utc)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
RATE = HourlyRate(usd("2"), "aws-pricing", "2026-03-30")
NET = replace(RATE, net=NetRate(usd("1.5"), NetSource.BILL, "2026-03-29", Decimal("0.25")))
SHIPPED = default_policy()


def machine(days: int, rate: HourlyRate | None = RATE, busy_at: int | None = None) -> Machine:
    """Idle for all of its record, but for one hour (counted from the record's begin)."""
    hours = days * 24
    begin = END - days * DAY
    one = instance(launched_at=begin - 5 * DAY)
    maxima = array("d", [90.0 if place == busy_at else 0.0 for place in range(hours)])
    samples = array("I", [60] * hours)
    found = tuple(
        replace(history(name, device=device), start=begin, maxima=maxima, samples=samples)
        for name, device in ((SignalName.GPU, "0"), (SignalName.CPU, ""), (SignalName.NETWORK, ""))
    )
    return Machine(one, rate, found, (Run(one.launched_at or begin),), "nlp")


def test_each_window_has_what_is_its_own() -> None:
    """Switched on at the begin of the record: told after 24 h of idleness, stopped 24 h later."""
    day, week, month = lately(SHIPPED, [machine(40)], END)

    assert (day.hours, week.hours, month.hours) == (24, 168, 720)
    assert (day.money, week.money, month.money) == ((usd("48"),), (usd("336"),), (usd("1440"),))
    assert [one.until - one.since for one in (day, week, month)] == [DAY, 7 * DAY, 30 * DAY]
    assert (day.stops, week.stops, month.stops) == (0, 0, 0), "it was stopped before any of them"
    assert not any(one.whole for one in (day, week, month))


def test_less_than_a_month_shows_only_what_it_covers() -> None:
    day, week, whole = lately(SHIPPED, [machine(10)], END)

    assert (day.hours, week.hours) == (24, 168)
    assert whole.whole
    assert whole.until - whole.since == 10 * DAY
    assert 168 < whole.hours < 240, "no more than was read, less what it takes to stop"


def test_of_less_than_a_day_there_is_one_figure_for_all_of_it() -> None:
    (whole,) = lately(SHIPPED, [machine(1)], END - 3 * HOUR)

    assert whole.whole
    assert (whole.hours, whole.money) == (0, ())


def test_a_stop_that_was_regretted_is_counted_in_the_window_it_fell_into() -> None:
    busy = 30 * 24 - 6 * 24  # six days before the end
    day, week, month = lately(SHIPPED, [machine(30, busy_at=busy)], END)

    assert week.stops == 1, "stopped anew after its use came back"
    assert month.stops == 2
    assert month.regretted == 0, "the first stop was weeks before"
    assert day.stops == 0


def test_net_and_unknown_prices_are_counted_apart() -> None:
    (found, *_) = lately(SHIPPED, [machine(10, NET), machine(10, RATE), machine(10, None)], END)

    assert found.hours == 72
    assert found.money == (usd("96"),)
    assert found.net == (usd("36.00"),)
    assert (found.without_net, found.unpriced) == (24, 24)


def test_what_was_not_measured_gives_no_figure() -> None:
    bare = replace(machine(10), histories=())

    assert lately(SHIPPED, [bare], END) == ()
    assert lately(SHIPPED, [], END) == ()


def test_a_first_hour_that_is_read_in_part_costs_no_window() -> None:
    assert [one.whole for one in lately(SHIPPED, [machine(30)], END - HOUR / 60)] == [False, False, False]
    assert [one.whole for one in lately(SHIPPED, [machine(28)], END)] == [False, False, True]
