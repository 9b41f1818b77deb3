"""What ran is counted to the microsecond, once, and what nobody can price is named."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import ref, usd

from costguard.domain.money import ExchangeRate, Money, SpendScope
from costguard.estimates.burn import Accrued, Metered, accrued, burning, in_scope, priced_in

START = datetime(2026, 11, 1, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


def ran(
    hours_from: float, hours_to: float | None, hourly: Money | None, name: str = "i-1", team: str = "research"
) -> Metered:
    until = None if hours_to is None else START + hours_to * HOUR
    return Metered(ref(name), START + hours_from * HOUR, until, hourly, "p4d.24xlarge", {"team": team})


def test_thirds_of_an_hour_add_up_to_the_exact_amount() -> None:
    """Twenty minutes at 3.00 an hour, three times: 3.00, and not 2.9999."""
    thirds = [Metered(ref(), START + n * HOUR, START + n * HOUR + HOUR / 3, usd("3")) for n in range(3)]

    assert accrued(thirds, START, START + 9 * HOUR).money == (usd("3"),)


def test_only_the_time_between_the_two_moments_counts() -> None:
    assert accrued([ran(-5, 5, usd("2"))], START, START + HOUR).money == (usd("2"),)
    assert accrued([ran(-5, None, usd("2"))], START, START + HOUR).money == (usd("2"),)
    assert accrued([ran(1, 5, usd("2")), ran(-3, 0, usd("2"))], START, START + HOUR).money == ()


def test_a_machine_seen_twice_at_once_is_paid_for_once() -> None:
    twice = [ran(0, 10, usd("2")), ran(0, 10, usd("2")), ran(8, 12, usd("5"))]

    assert accrued(twice, START, START + 24 * HOUR).money == (usd("30"),)
    assert burning(twice, START + 9 * HOUR).money == (usd("2"),)


def test_a_rate_nobody_knows_is_named_and_never_zero() -> None:
    unknown = [ran(0, 10, None, "i-dear"), ran(0, 10, usd("1"))]

    found = accrued(unknown, START, START + 10 * HOUR)

    assert found == Accrued((usd("10"),), (ref("i-dear"),))
    assert burning(unknown, START).unpriced == (ref("i-dear"),)


def test_what_did_not_run_in_that_time_is_not_named() -> None:
    assert accrued([ran(0, 10, None)], START + 10 * HOUR, START + 20 * HOUR) == Accrued((), ())


def test_a_stretch_that_ends_now_burns_no_more_and_one_that_begins_does() -> None:
    assert burning([ran(0, 5, usd("1"))], START + 5 * HOUR).money == ()
    assert burning([ran(5, None, usd("1"))], START + 5 * HOUR).money == (usd("1"),)
    assert burning([ran(6, None, usd("1"))], START + 5 * HOUR).money == ()


def test_two_currencies_are_never_one_sum() -> None:
    both = [ran(0, 1, usd("1")), ran(0, 1, Money(Decimal(9), "CNY"), "i-2")]

    found = accrued(both, START, START + HOUR)

    assert set(found.money) == {usd("1"), Money(Decimal(9), "CNY")}
    with pytest.raises(ValueError, match="CNY"):
        found.of("USD")
    assert accrued([], START, START + HOUR).of("USD") == usd("0")


def test_machines_are_exchanged_by_the_rate_of_the_day_and_left_out_by_name_without_one() -> None:
    given_rates = [ExchangeRate("USD", "CNY", Decimal(7), START.date())]
    machines = [ran(0, 1, usd("1")), ran(0, 1, Money(Decimal(1), "EUR")), ran(0, 1, None)]

    priced, without = priced_in(machines, "CNY", given_rates, lambda _: START.date())

    assert [one.hourly for one in priced] == [Money(Decimal(7), "CNY"), None]
    assert without == ("EUR",)


def test_a_scope_holds_what_its_tags_say() -> None:
    machines = [ran(0, 1, usd("1")), ran(0, 1, usd("1"), "i-2", team="vision")]

    assert in_scope(machines, SpendScope(tags=(("team", "vision"),))) == (machines[1],)
    assert in_scope(machines, SpendScope(accounts=())) == ()


@given(
    stretches=st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 9), st.sampled_from("abc")), max_size=10
    ),
    cut=st.integers(0, 100),
)
@settings(max_examples=60, deadline=None)
def test_two_times_that_follow_each_other_cost_what_both_cost_together(
    stretches: list[tuple[int, int, int, str]], cut: int
) -> None:
    machines = [ran(begin, begin + length, usd(str(rate)), name) for begin, length, rate, name in stretches]
    first, second = (
        accrued(machines, START, START + cut * HOUR),
        accrued(machines, START + cut * HOUR, START + 100 * HOUR),
    )

    together = accrued(machines, START, START + 100 * HOUR)

    assert first.of("USD") + second.of("USD") == together.of("USD")
    assert together.of("USD").amount <= sum(length * rate for _, length, rate, _ in stretches)
