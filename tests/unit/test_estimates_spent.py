"""Spent so far: billed, accrued and estimated, each its own part and none of it twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import ref, usd

from costguard.domain.money import ChargeCategory, Money, PricingCategory, SpendLine
from costguard.estimates.billed import Charge
from costguard.estimates.burn import Metered, MeteredFleet, known
from costguard.estimates.period import days_between
from costguard.estimates.reconcile import HIGHEST_FACTOR, LOWEST_FACTOR, reconciled, unexplained
from costguard.estimates.spent import RunRate, Spent, rest_rate, spent

START = datetime(2026, 11, 1, tzinfo=timezone.utc)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NOTHING_KNOWN = MeteredFleet(frozenset(), frozenset())
ACCOUNT = "111122223333"


def charge(amount: str, day: float, length: float = 1, **more: Any) -> Charge:
    """A charge of the day counted from the start of the month."""
    cost = usd(amount)
    ordinary: dict[str, Any] = {
        "cloud": "aws",
        "billing_account_id": ACCOUNT,
        "sub_account_id": ACCOUNT,
        "region_id": "",
        "service_name": "AmazonEC2",
        "charge_category": ChargeCategory.USAGE,
        "charge_period_start": START + DAY * day,
        "charge_period_end": START + DAY * (day + length),
        "billed_cost": cost,
        "effective_cost": cost,
    }
    line = SpendLine(**{**ordinary, **more})
    return Charge(line.effective_cost, line)


def gpu(amount: str, day: float, length: float = 1, kind: str = "p4d.24xlarge", **more: Any) -> Charge:
    return charge(amount, day, length, accelerated=True, instance_type=kind, **more)


def machine(day_from: float, day_to: float | None, hourly: str = "1", name: str = "i-1") -> Metered:
    until = None if day_to is None else START + DAY * day_to
    return Metered(ref(name), START + DAY * day_from, until, usd(hourly), "p4d.24xlarge")


def rate_of(per_hour: str, days: int = 7) -> RunRate:
    return RunRate(usd(per_hour), days, START)


def so_far(
    given: list[Charge],
    metered: list[Metered],
    rest: RunRate | None,
    complete: datetime | None,
    now: datetime,
    **more: Any,
) -> Spent:
    of_metered = known(metered)
    return spent(
        given, metered, rest, of_metered, since=START, complete_until=complete, now=now, currency="USD", **more
    )


def test_month_to_date_is_billed_and_accrued_and_estimated_each_part_shown() -> None:
    """Two days billed at 24 + 10; since then half a day: a machine at 1 an hour, everything else at 0.5."""
    billed = [gpu("24", 0), gpu("24", 1), charge("10", 0), charge("10", 1)]

    found = so_far(billed, [machine(0, None)], rate_of("0.5"), START + 2 * DAY, START + 2.5 * DAY)

    assert (found.billed, found.accrued, found.estimated, found.ahead) == (usd("68"), usd("12"), usd("6"), usd("0"))
    assert found.total == usd("86")
    assert found.estimated_share == Decimal(18) / 86


def test_what_the_bill_shows_of_the_gap_already_is_not_counted_beside_the_estimate() -> None:
    """Six hours of the incomplete day are in the bill: they are in the twelve that were metered."""
    found = so_far([gpu("24", 0), gpu("6", 1, 0.25)], [machine(0, None)], rate_of("0"), START + DAY, START + 1.5 * DAY)

    assert (found.billed, found.accrued, found.ahead) == (usd("24"), usd("12"), usd("0"))


def test_an_incomplete_bill_that_shows_more_than_was_reckoned_is_believed() -> None:
    found = so_far([charge("100", 1, 0.25)], [], rate_of("1"), START + DAY, START + 1.5 * DAY)

    assert (found.estimated, found.ahead) == (usd("12"), usd("88"))
    assert found.total == usd("100")


def test_a_refund_in_the_unbilled_gap_lowers_nothing_before_the_bill_is_complete() -> None:
    refund = charge("-500", 1, 0.25, charge_category=ChargeCategory.ADJUSTMENT)

    before = so_far([charge("24", 0), refund], [], rate_of("1"), START + DAY, START + 1.5 * DAY)
    after = so_far([charge("24", 0), refund], [], rate_of("1"), START + 2 * DAY, START + 2 * DAY)

    assert before.total == usd("36")
    assert after.total == usd("-476")
    assert after.estimated_share == 0


def test_of_a_negative_total_all_that_is_unbilled_counts_as_estimated() -> None:
    found = so_far([charge("-50", 0)], [], rate_of("1"), START + DAY, START + 1.5 * DAY)

    assert found.total == usd("-38")
    assert found.estimated_share == 1


def test_a_bill_that_says_nothing_yet_is_not_zero_spend() -> None:
    found = so_far([], [machine(0, None)], rate_of("0.5"), None, START + DAY)

    assert (found.billed, found.accrued, found.estimated) == (usd("0"), usd("24"), usd("12"))
    assert found.estimated_share == 1
    assert found.complete_until == START


def test_a_new_month_owes_nothing_of_the_old_one_that_is_not_billed_yet() -> None:
    """At six in the morning of the first the bill ends two days before: only six hours are of this month."""
    found = so_far([gpu("24", -3)], [machine(-3, None)], rate_of("0"), START - 2 * DAY, START + 6 * HOUR)

    assert found.total == usd("6")


def test_a_day_of_china_is_divided_at_the_months_first_midnight_as_machines_ran() -> None:
    """Its 24 hours begin at 16:00; the machine began at midnight, so all of it is of the new month."""
    chinas = [gpu("24", -1 / 3), charge("24", -1 / 3)]
    ran = [machine(0, 0.5, "2")]

    known_to = so_far(chinas, ran, rate_of("0"), START + DAY, START + DAY, metered_since=START - DAY)
    unknown_to = so_far(chinas, ran, rate_of("0"), START + DAY, START + DAY, metered_since=START - HOUR)

    assert known_to.billed == usd("24") + usd("16")
    assert unknown_to.billed == usd("16") + usd("16")


def test_without_a_run_rate_it_is_said_that_something_is_missing() -> None:
    found = so_far([], [machine(0, None)], None, START, START + DAY)

    assert found.estimated == usd("0")
    assert not found.rest_is_known


def test_what_is_spent_is_four_fifths_of_the_budget_exactly() -> None:
    """48 billed, 12 accrued at a third of an hour each, 20 estimated: 80 of 100, not 79.99."""
    thirds = [
        Metered(ref(), START + 2 * DAY + n * HOUR, START + 2 * DAY + n * HOUR + HOUR / 3, usd("3")) for n in range(12)
    ]

    found = so_far([charge("48", 0)], thirds, rate_of("1"), START + 2 * DAY, START + 2 * DAY + 20 * HOUR)

    assert found.total == usd("80")


def test_other_currencies_are_refused() -> None:
    yuan = Charge(Money(Decimal(1), "CNY"), charge("1", 0).line)

    with pytest.raises(ValueError, match="one total per currency"):
        so_far([yuan], [], None, START + DAY, START + DAY)
    with pytest.raises(ValueError, match="one total per currency"):
        _ = so_far([], [], None, START, START) + replace(
            so_far([], [], None, START, START), billed=Money(Decimal(0), "CNY")
        )


def test_two_payers_add_up_and_the_older_bill_says_how_fresh_they_are() -> None:
    one = so_far([charge("10", 0)], [], rate_of("1"), START + DAY, START + 2 * DAY)
    other = so_far([charge("20", 0)], [], None, START + 0.5 * DAY, START + 2 * DAY)

    both = one + other

    assert both.total == usd("10") + usd("24") + usd(
        "20"
    )  # of the last, half is billed and half ahead of what is complete
    assert both.complete_until == START + 0.5 * DAY
    assert not both.rest_is_known


def test_the_rest_is_the_mean_of_seven_days_of_usage_that_is_not_metered() -> None:
    """Credits, refunds, tax, purchases and metered machines are not in it; accelerators nobody lists are."""
    metered = [machine(-29, None)]
    usage = [charge("24", day) for day in range(-29, 0)] + [gpu("500", day) for day in range(-29, 0)]
    usage += [charge("2400", -10), gpu("48", -1, kind="ml.p4d.24xlarge")]
    once = [
        charge("999", -2, charge_category=category)
        for category in ChargeCategory
        if category is not ChargeCategory.USAGE
    ]

    rest = rest_rate([*usage, *once], list(days_between(START - 29 * DAY, START, "UTC")), known(metered), "USD")

    assert rest is not None
    assert rest.days == 7
    assert rest.per_hour.rounded(4) == usd(str((24 * 7 + 48) / 168)).rounded(4)


@pytest.mark.parametrize(
    ("costs", "a_day", "count"),
    [
        (("0", "0", "0", "0", "9", "24", "24", "24"), "24", 3),  # the day it began on is a part of one
        (("0", "0", "9", "24", "24", "30", "24", "0"), "20.4", 5),  # days without any are days, once it began
        (("0", "0", "0", "0", "0", "0", "0", "0"), "0", 7),
        (("24", "24", "24"), "24", 3),  # what was there on the first known day may have been there before
    ],
)
def test_what_began_lately_is_not_cheaper_for_the_days_before_it(
    costs: tuple[str, ...], a_day: str, count: int
) -> None:
    usage = [charge(cost, place - len(costs)) for place, cost in enumerate(costs)]

    rest = rest_rate(usage, list(days_between(START - len(costs) * DAY, START, "UTC")), NOTHING_KNOWN, "USD")

    assert rest is not None
    assert (rest.per_hour.times(24).rounded(), rest.days) == (usd(a_day).rounded(), count)


@pytest.mark.parametrize(
    "costs",
    [
        ("0",) * 7 + ("600",),  # one day
        ("0",) * 6 + ("24", "24"),
        ("0",) * 6 + ("5", "600", "0"),
        ("600", "0", "0"),
        ("0",) * 7 + ("9", "0", "600", "0", "0"),
        ("0",) * 3 + ("9", *("0",) * 9, "600", *("0",) * 5),  # two weeks and a half
    ],
)
def test_what_happened_once_in_a_new_scope_is_no_rate(costs: tuple[str, ...]) -> None:
    usage = [charge(cost, place - len(costs)) for place, cost in enumerate(costs)]

    rest = rest_rate(usage, list(days_between(START - len(costs) * DAY, START, "UTC")), NOTHING_KNOWN, "USD")

    assert rest is not None
    assert (rest.per_hour, rest.is_cautious) == (usd("0"), True)


def test_after_three_weeks_the_mean_counts_whatever_happened_once() -> None:
    usage = [charge("7", day) for day in range(-22, 0)] + [charge("70", -3)]

    rest = rest_rate(usage, list(days_between(START - 22 * DAY, START, "UTC")), NOTHING_KNOWN, "USD")

    assert rest is not None
    assert (rest.per_hour.times(24).rounded(), rest.is_cautious) == (usd("17").rounded(), False)


def test_what_is_too_young_for_a_rate_is_not_known_rather_than_nothing() -> None:
    young, week = (RunRate(usd("0"), known, START + DAY, known=known) for known in (2, 7))
    assert not so_far([charge("600", 0)], [], young, START + DAY, START + 2 * DAY).rest_is_known
    assert so_far([charge("600", 0)], [], week, START + DAY, START + 2 * DAY).rest_is_known


def test_what_is_certain_leaves_out_what_is_only_estimated() -> None:
    found = so_far([charge("10", 0)], [machine(1, None)], rate_of("2"), START + DAY, START + 2 * DAY)
    assert (found.certain, found.total) == (usd("34"), usd("82"))


def test_a_bill_without_a_complete_day_knows_no_run_rate() -> None:
    assert rest_rate([charge("5", -1)], [], NOTHING_KNOWN, "USD") is None


def test_a_weekend_is_estimated_as_weekends_were() -> None:
    """Five days at 24, two at 4.80, for five weeks: on a Saturday little goes on."""
    usage = [charge("24" if (START + DAY * day).weekday() < 5 else "4.8", day) for day in range(-35, 14)]
    days = list(days_between(START - 35 * DAY, START + 6 * DAY, "UTC"))  # the first is a Sunday, the seventh a Saturday

    rest = rest_rate(usage, days, NOTHING_KNOWN, "USD")

    assert rest is not None
    assert rest.over(START + 6 * DAY, START + 7 * DAY).rounded(1) == usd("4.8")
    assert rest.over(START + 7 * DAY + 12 * HOUR, START + 8 * DAY + 12 * HOUR).rounded(1) == usd("14.4")


def test_a_rest_that_could_not_be_tried_is_doubted_by_half() -> None:
    assert rate_of("1").doubt(START, START + DAY) == usd("12")


def test_thresholds_are_held_against_what_may_be_missing_and_burns_until_the_next_look() -> None:
    found = so_far([charge("10", 0)], [machine(1, None)], None, START + DAY, START + 2 * DAY, spread=Decimal("0.25"))

    assert found.total == usd("34")
    assert found.doubt == usd("6")
    assert found.soon(usd("2")) == usd("42")
    assert found.soon(usd("2"), timedelta(0)) == usd("40")


def test_a_prepaid_machine_goes_on_costing_beside_metered_ones_of_its_type() -> None:
    """On Alibaba Cloud and Tencent Cloud a term is a machine's own; on AWS it discounts machines that are metered."""
    metered = [Metered(replace(ref(), cloud="alibaba"), START - 9 * DAY, None, usd("1"), "ecs.gn7i")]
    days = list(days_between(START - 7 * DAY, START, "UTC"))
    prepaid = [
        gpu("24", day, kind="ecs.gn7i", cloud="alibaba", pricing_category=PricingCategory.COMMITTED)
        for day in range(-7, 0)
    ]
    discounted = [gpu("24", day, pricing_category=PricingCategory.COMMITTED) for day in range(-7, 0)]

    found, none = (
        rest_rate(prepaid, days, known(metered), "USD"),
        rest_rate(discounted, days, known([machine(0, 1)]), "USD"),
    )

    assert found is not None
    assert found.per_hour == usd("1")
    assert none is not None
    assert none.per_hour == usd("0")


def test_a_bill_at_a_discount_calibrates_what_is_metered() -> None:
    metered = [machine(-10, None)]
    days = list(days_between(START - 4 * DAY, START, "UTC"))

    found = reconciled([gpu("18", day) for day in range(-10, 0)], metered, days, known(metered), "USD")

    assert found is not None
    assert (found.days, found.metered, found.billed) == (4, usd("96"), usd("72"))
    assert (found.error, found.factor, found.bounded, found.spread) == (
        Decimal("0.3333"),
        Decimal("0.75"),
        False,
        Decimal(0),
    )
    now = so_far([], metered, rate_of("0"), START, START + DAY, factor=found.factor)
    assert now.accrued == usd("18")


def test_two_days_are_too_few_to_calibrate_by() -> None:
    metered = [machine(-10, None)]
    days = list(days_between(START - 2 * DAY, START, "UTC"))

    assert reconciled([gpu("18", day) for day in range(-10, 0)], metered, days, known(metered), "USD") is None
    assert reconciled([], metered, list(days_between(START - 9 * DAY, START, "UTC")), known(metered), "USD") is None


@pytest.mark.parametrize(("billed", "factor"), [("1", LOWEST_FACTOR), ("240", HIGHEST_FACTOR)])
def test_a_calibration_has_bounds_and_says_when_it_met_them(billed: str, factor: Decimal) -> None:
    metered = [machine(-10, None)]
    days = list(days_between(START - 5 * DAY, START, "UTC"))

    found = reconciled([gpu(billed, day) for day in range(-5, 0)], metered, days, known(metered), "USD")

    assert found is not None
    assert (found.factor, found.bounded) == (factor, True)


def test_one_day_that_was_billed_late_does_not_move_the_calibration() -> None:
    metered = [machine(-10, None)]
    days = list(days_between(START - 5 * DAY, START, "UTC"))
    late = [gpu("24", day) for day in (-5, -4, -2, -1)] + [gpu("2", -3)]

    found = reconciled(late, metered, days, known(metered), "USD")

    assert found is not None
    assert found.factor == 1


def test_a_bill_by_chinas_days_is_compared_over_its_own_days() -> None:
    """A machine of eight hours each morning of China: by days of UTC a third of it would lie elsewhere."""
    shift = timedelta(hours=8)
    metered = [
        Metered(ref(), START + DAY * day - shift, START + DAY * day - shift + 8 * HOUR, usd("1"), "p4d.24xlarge")
        for day in range(-9, 0)
    ]
    billed = [gpu("8", day - 1 / 3) for day in range(-9, 0)]

    found = reconciled(billed, metered, list(days_between(START - 8 * DAY, START, "UTC")), known(metered), "USD")

    assert found is not None
    assert (found.factor, found.spread) == (Decimal(1), Decimal(0))


def test_accelerators_no_inventory_explains_are_named_with_their_amount() -> None:
    metered = [machine(-10, None)]
    given = [
        gpu("100", 0),
        gpu("40", 0, kind="ml.p4d.24xlarge", service_name="AmazonSageMaker", resource_id="endpoint-1"),
        gpu("2", 1, kind="ml.p4d.24xlarge", service_name="AmazonSageMaker", resource_id="endpoint-2"),
        gpu("7", 0, sub_account_id="999988887777"),
        gpu("3", 9, service_name="late"),
        charge("50", 0),
    ]

    found = unexplained(given, list(days_between(START, START + 2 * DAY, "UTC")), known(metered))

    assert [(one.service_name, one.account, one.money, one.resources) for one in found] == [
        ("AmazonSageMaker", ACCOUNT, usd("42"), ("endpoint-1", "endpoint-2")),
        ("AmazonEC2", "999988887777", usd("7"), ()),
    ]


def test_a_charge_that_names_its_machine_is_explained_by_that_machine_alone() -> None:
    metered = [machine(0, None, name="i-1")]
    given = [gpu("1", 0, resource_id="i-1"), gpu("2", 0, resource_id="i-other")]

    found = unexplained(given, list(days_between(START, START + DAY, "UTC")), known(metered))

    assert [one.money for one in found] == [usd("2")]
