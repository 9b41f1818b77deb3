"""What of a bill counts, and when: to the last digit."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import usd

from costguard.domain.money import ChargeCategory, ExchangeRate, Money, SpendLine
from costguard.estimates.billed import Charge, billed, charges, counted, daily, in_currency, is_usage, total_in
from costguard.estimates.period import days_between
from costguard.guards.budget.rules import CostBasis, Counted

START = datetime(2026, 11, 1, tzinfo=timezone.utc)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
CHINA = timedelta(hours=8)
AMOUNTS = st.decimals(-(10**6), 10**6, places=8)


def line(amount: str = "10", *, start: datetime = START, end: datetime | None = None, **more: Any) -> SpendLine:
    cost = usd(amount)
    ordinary: dict[str, Any] = {
        "cloud": "aws",
        "billing_account_id": "1",
        "sub_account_id": "1",
        "region_id": "",
        "service_name": "AmazonEC2",
        "charge_category": ChargeCategory.USAGE,
        "billed_cost": cost,
        "effective_cost": cost,
    }
    return SpendLine(**{**ordinary, "charge_period_start": start, "charge_period_end": end or start + DAY, **more})


def charge(amount: str = "10", **more: Any) -> Charge:
    one = line(amount, **more)
    return Charge(one.effective_cost, one)


@pytest.mark.parametrize(
    ("category", "counting", "counts"),
    [
        (ChargeCategory.USAGE, Counted(), True),
        (ChargeCategory.CREDIT, Counted(), False),
        (ChargeCategory.CREDIT, Counted(credits=True), True),
        (ChargeCategory.TAX, Counted(), False),
        (ChargeCategory.TAX, Counted(tax=True), True),
        (ChargeCategory.ADJUSTMENT, Counted(credits=False, tax=False), True),
        (ChargeCategory.PURCHASE, Counted(), True),
    ],
)
def test_refunds_always_count_and_credits_and_tax_as_the_rule_says(
    category: ChargeCategory, counting: Counted, *, counts: bool
) -> None:
    assert (counted(line(charge_category=category), counting) is not None) is counts


def test_a_purchase_counts_at_once_on_the_invoice_and_over_its_term_by_effective_cost() -> None:
    purchase = line(charge_category=ChargeCategory.PURCHASE, billed_cost=usd("600"), effective_cost=usd("0"))

    assert counted(purchase, Counted(CostBasis.BILLED)) == usd("600")
    assert counted(purchase, Counted(CostBasis.EFFECTIVE)) == usd("0")


def test_an_unknown_basis_is_an_error_and_no_zero() -> None:
    class Strange:
        basis = "amortized"
        credits = tax = False

    with pytest.raises(ValueError, match="amortized"):
        counted(line(), Strange())


def test_only_usage_can_be_expected_to_go_on() -> None:
    assert [category for category in ChargeCategory if is_usage(line(charge_category=category))] == [
        ChargeCategory.USAGE
    ]


def test_a_day_of_china_lies_in_two_days_of_utc_by_its_hours() -> None:
    """Eight hours of the day that begins at 16:00 UTC lie before midnight."""
    chinese = charge("24", start=START - CHINA)

    assert total_in([chinese], START - DAY, START, "USD") == usd("8")
    assert total_in([chinese], START, START + DAY, "USD") == usd("16")


def test_a_part_ends_at_the_tenth_place_and_the_last_part_has_what_is_left() -> None:
    third = charge("1", end=START + 3 * HOUR)

    parts = [third.part(START + HOUR * hour, START + HOUR * (hour + 1)) for hour in range(3)]

    assert parts == [Decimal("0.3333333333"), Decimal("0.3333333334"), Decimal("0.3333333333")]


def test_a_charge_of_one_moment_falls_into_one_period_alone() -> None:
    """A fee on the stroke of the new month belongs to the new month."""
    fee = charge("7", end=START)

    assert total_in([fee], START - DAY, START, "USD") == usd("0")
    assert total_in([fee], START, START + DAY, "USD") == usd("7")


def test_a_month_of_refunds_alone_is_below_zero() -> None:
    assert billed([charge("-12.5"), charge("2")], START, START + 30 * DAY) == (usd("-10.5"),)


def test_a_month_without_a_charge_is_no_sum_at_all() -> None:
    assert billed([], START, START + 30 * DAY) == ()
    assert total_in([], START, START + 30 * DAY, "USD") == usd("0")


def test_sums_of_two_currencies_are_refused_or_kept_apart() -> None:
    both = [charge("1"), Charge(Money(Decimal(2), "CNY"), line())]

    assert {money.currency for money in billed(both, START, START + DAY)} == {"USD", "CNY"}
    with pytest.raises(ValueError, match="one total per currency"):
        total_in(both, START, START + DAY, "USD")
    with pytest.raises(ValueError, match="one total per currency"):
        daily(both, days_between(START, START + DAY, "UTC"), "USD")


def test_a_charge_is_exchanged_by_the_rate_of_its_own_day_and_left_alone_without_one() -> None:
    rates = [
        ExchangeRate("USD", "CNY", Decimal(7), START.date()),
        ExchangeRate("USD", "CNY", Decimal(8), (START + DAY).date()),
    ]
    early, later, before = charge("1"), charge("1", start=START + DAY), charge("1", start=START - DAY)

    exchanged, left = in_currency([early, later, before], "CNY", rates, lambda one: one.charge_period_start.date())

    assert [one.money for one in exchanged] == [Money(Decimal(7), "CNY"), Money(Decimal(8), "CNY")]
    assert left == (before,)


def test_days_add_up_what_falls_into_them_and_a_day_without_a_charge_is_zero() -> None:
    given_charges = [charge("24", start=START + 12 * HOUR), charge("3", start=START + 3 * DAY, end=START + 3 * DAY)]

    found = daily(given_charges, days_between(START, START + 5 * DAY, "UTC"), "USD")

    assert [day.spent for day in found] == [usd("12"), usd("12"), usd("0"), usd("3"), usd("0")]


@given(
    amount=AMOUNTS,
    length=st.integers(0, 10**10),
    cuts=st.lists(st.integers(-(10**9), 2 * 10**10), min_size=1, max_size=6),
)
@settings(max_examples=80, deadline=None)
def test_parts_that_follow_each_other_add_up_to_the_whole_exactly(
    amount: Decimal, length: int, cuts: list[int]
) -> None:
    one = charge(str(amount), end=START + timedelta(microseconds=length))
    moments = sorted(START + timedelta(microseconds=cut) for cut in cuts)
    borders = [START - DAY, *moments, START + 10 * DAY]

    parts = [one.part(since, until) for since, until in pairwise(borders)]

    assert sum(parts) == amount


@given(
    given_charges=st.lists(st.tuples(AMOUNTS, st.integers(-100, 200), st.integers(0, 80)), max_size=12),
    offset=st.integers(-12, 12),
)
@settings(max_examples=60, deadline=None)
def test_days_are_what_each_day_would_be_alone(given_charges: list[tuple[Decimal, int, int]], offset: int) -> None:
    made = [
        charge(str(amount), start=START + HOUR * begin, end=START + HOUR * (begin + length))
        for amount, begin, length in given_charges
    ]
    days = list(days_between(START + HOUR * offset, START + 6 * DAY, "UTC"))

    found = daily(made, days, "USD")

    assert [day.spent for day in found] == [total_in(made, day.start, day.end, "USD") for day in days]


def test_lines_that_do_not_count_are_left_out() -> None:
    lines = [line("5"), line("2", charge_category=ChargeCategory.CREDIT)]

    assert [one.money for one in charges(lines, Counted())] == [usd("5")]
