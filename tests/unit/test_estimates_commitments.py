"""What falls due and stands in no daily history: renewals by the inventory, fees by the bill, each once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import usd

from costguard.domain.money import Bill, ChargeCategory, ExchangeRate, Money, PricingCategory, SpendLine
from costguard.domain.refs import ResourceRef
from costguard.estimates.billed import condensed
from costguard.estimates.commitments import Commitment, CommitmentEvidence, PrepaidTerm, known_commitments
from costguard.estimates.period import Period
from costguard.guards.budget.rules import CostBasis, Counted

START, END = datetime(2026, 11, 1, tzinfo=timezone.utc), datetime(2026, 12, 1, tzinfo=timezone.utc)
NOVEMBER = Period("2026-11", START, END)
DAY = timedelta(days=1)
NOW = START + timedelta(days=10, hours=9)
COMPLETE = START + 8 * DAY  # the bill holds the first eight days
BILLED, EFFECTIVE = Counted(CostBasis.BILLED), Counted()
GPU = "GN7.2XLARGE32"


def bought(day: str, cost: str = "600", **changes: Any) -> SpendLine:
    """A purchase whose cost is spread over its term."""
    start = datetime.fromisoformat(day).replace(tzinfo=timezone.utc)
    currency = changes.pop("currency", "USD")
    ordinary = SpendLine(
        "aws",
        "111122223333",
        "111122223333",
        "",
        "",
        ChargeCategory.PURCHASE,
        start,
        start + DAY,
        Money(Decimal(cost), currency),
        Money(Decimal(0), currency),
        PricingCategory.COMMITTED,
    )
    return replace(ordinary, **changes)


def bill(lines: Iterable[SpendLine], complete: datetime | None = COMPLETE) -> Bill:
    """As a ledger keeps it."""
    return Bill("aws", condensed(lines), START - 92 * DAY, complete, NOW, "test")


def term(ends: datetime, name: str = "ins-1", *, renew: bool | None = True, hourly: str | None = None) -> PrepaidTerm:
    ref = ResourceRef("tencent", "100012345678", "ap-singapore", "instance", name)
    return PrepaidTerm(ref, GPU, ends, renew, None if hourly is None else Money(Decimal(hourly), "USD"))


def of_term(day: str, cost: str = "600", **changes: Any) -> SpendLine:
    """What the bill of China had for a machine's term: its days begin at 16:00 by UTC."""
    start = datetime.fromisoformat(day).replace(tzinfo=timezone.utc) - timedelta(hours=8)
    alike = bought(day, cost, cloud="tencent", sub_account_id="100012345678", service_name="p_cvm", instance_type=GPU)
    return replace(alike, charge_period_start=start, charge_period_end=start + DAY, accelerated=True, **changes)


def due(
    *lines: SpendLine,
    terms: tuple[PrepaidTerm, ...] = (),
    counted: Counted = BILLED,
    complete: datetime | None = COMPLETE,
    period: Period = NOVEMBER,
    rates: tuple[ExchangeRate, ...] = (),
) -> tuple[Commitment, ...]:
    return known_commitments((bill(lines, complete),), terms, counted, period, NOW, "USD", rates, lambda _: NOW.date())


def when(found: Iterable[Commitment]) -> list[date]:
    return [one.due.date() for one in found]


# fees by the bill


def test_a_fee_of_two_months_falls_due_in_the_third() -> None:
    (found,) = due(bought("2026-09-20"), bought("2026-10-20"))

    assert (found.due, found.money, found.sure) == (START + 19 * DAY, usd("600"), True)
    assert (found.ground, found.seen) == (CommitmentEvidence.CHARGED_BEFORE, (date(2026, 9, 20), date(2026, 10, 20)))


def test_what_was_bought_once_is_not_expected_again() -> None:
    assert due(bought("2026-10-20")) == ()


def test_a_fee_the_bill_has_already_is_not_due_again() -> None:
    """The first of November is in the bill, and the fifth should be: that one has ended."""
    paid = (bought("2026-09-01"), bought("2026-10-01"), bought("2026-11-01"))

    assert due(*paid, bought("2026-09-05"), bought("2026-10-05")) == ()


def test_a_fee_of_the_days_that_no_bill_holds_yet_is_due() -> None:
    paid = (bought("2026-09-10"), bought("2026-10-10"))

    assert when(due(*paid)) == [date(2026, 11, 10)]
    assert due(*paid, bought("2026-11-10")) == ()  # shown ahead of time


@pytest.mark.parametrize("late", [-1, 1])
def test_a_fee_a_day_early_or_late_is_the_same_fee(late: int) -> None:
    shifted = f"2026-11-{15 + late}"
    paid = (bought("2026-09-15"), bought("2026-10-15"))

    assert due(*paid, bought(shifted)) == ()
    assert when(due(bought("2026-09-15"), bought(f"2026-10-{15 + late}"))) == [date(2026, 11, 15 + max(late, 0))]


def test_the_smaller_of_two_sums_is_what_is_known_to_come() -> None:
    grown = due(bought("2026-09-20", "600"), bought("2026-10-20", "5600"))
    shrunk = due(bought("2026-09-20", "5600"), bought("2026-10-20", "600"))

    assert [one.money for one in (*grown, *shrunk)] == [usd("600"), usd("600")]


def test_a_fee_on_every_day_of_the_week_goes_on_to_the_end() -> None:
    """Eight days of November are billed; 22 are left, and a lump between them changes nothing."""
    daily = [bought((START - 20 * DAY + n * DAY).date().isoformat(), "24") for n in range(28)]

    (found,) = due(*daily, bought("2026-11-05", "1000"))

    assert (found.due, found.times, found.money) == (COMPLETE, 22, usd("528"))


def test_a_day_without_the_fee_ends_it() -> None:
    daily = [bought((COMPLETE - n * DAY).date().isoformat(), "24") for n in range(1, 8) if n != 3]

    assert due(*daily) == ()


def test_a_monthly_fee_is_told_apart_from_a_daily_one_of_the_same_kind() -> None:
    daily = [bought((COMPLETE - n * DAY).date().isoformat(), "24") for n in range(1, 60)]

    found = due(*daily, bought("2026-09-20", "600"), bought("2026-10-20", "600"))

    assert [(one.due.day, one.money) for one in found] == [(9, usd("528")), (20, usd("600"))]


def test_in_a_longer_period_a_monthly_fee_falls_due_each_month() -> None:
    """Of the 31st, the last day of shorter months."""
    quarter = Period("2026-Q4", START - 31 * DAY, START + 61 * DAY)

    found = due(bought("2026-08-31"), bought("2026-09-30"), bought("2026-10-31"), period=quarter)

    assert when(found) == [date(2026, 11, 30), date(2026, 12, 31)]


def test_a_fee_of_every_three_months_and_of_every_year() -> None:
    quarterly = due(bought("2026-05-20"), bought("2026-08-20"))
    yearly = due(bought("2024-11-25"), bought("2025-11-25"))

    assert (when(quarterly), when(yearly)) == ([date(2026, 11, 20)], [date(2026, 11, 25)])
    assert all(one.sure for one in (*quarterly, *yearly))


def test_a_monthly_fee_is_no_quarterly_one_as_well() -> None:
    months = [bought(f"2026-{month:02}-20") for month in range(2, 11)]

    assert when(due(*months)) == [date(2026, 11, 20)]


def test_what_was_committed_to_a_year_ago_may_fall_due() -> None:
    (found,) = due(bought("2025-11-25"))

    assert (found.due.date(), found.sure) == (date(2026, 11, 25), False)
    assert due(bought("2025-11-25", pricing_category=PricingCategory.OTHER)) == ()


def test_on_the_effective_cost_a_spread_purchase_never_falls_due() -> None:
    paid = (bought("2026-09-20"), bought("2026-10-20"))
    whole = tuple(replace(line, effective_cost=usd("600")) for line in paid)

    assert due(*paid, counted=EFFECTIVE) == ()
    assert [one.money for one in due(*whole, counted=EFFECTIVE)] == [usd("600")]


def test_only_purchases_recur_and_refunded_ones_do_not() -> None:
    paid = (bought("2026-09-20"), bought("2026-10-20"))

    assert due(*(replace(line, charge_category=ChargeCategory.USAGE) for line in paid)) == ()
    assert due(*paid, bought("2026-10-20", "-600")) == ()


def test_fees_of_two_kinds_make_none_together() -> None:
    assert due(bought("2026-09-20"), bought("2026-10-20", pricing_category=PricingCategory.OTHER)) == ()


def test_with_a_silent_bill_the_whole_period_is_open() -> None:
    paid = (bought("2026-09-02"), bought("2026-10-02"))

    assert when(due(*paid, complete=None)) == [date(2026, 11, 2)]
    assert due(*paid) == ()


def test_another_currency_goes_by_the_rate_of_today_and_without_one_is_in_no_figure() -> None:
    paid = [bought(day, "700", currency="CNY") for day in ("2026-09-20", "2026-10-20")]
    rate = ExchangeRate("USD", "CNY", Decimal(7), date(2026, 1, 1))

    (with_rate,), (without,) = due(*paid, rates=(rate,)), due(*paid)

    assert (with_rate.money, with_rate.own) == (usd("100"), Money(Decimal(700), "CNY"))
    assert (without.money, without.unknown) == (None, True)


@pytest.mark.parametrize(
    "changes", [{"billing_account_id": "other"}, {"service_name": "AmazonSageMaker"}, {"sub_account_id": "other"}]
)
def test_fees_of_two_payers_services_or_accounts_make_none_together(changes: dict[str, Any]) -> None:
    first, second = (bought(day, accelerated=True) for day in ("2026-09-20", "2026-10-20"))

    assert due(first, replace(second, **changes)) == ()
    assert len(due(replace(first, **changes), replace(second, **changes))) == 1


def test_a_fee_is_told_by_its_service_type_cloud_and_account() -> None:
    (found,) = due(
        *(
            bought(day, accelerated=True, service_name="AmazonEC2", instance_type="p5.48xlarge")
            for day in ("2026-09-20", "2026-10-20")
        )
    )

    assert (found.name, found.cloud, found.account) == ("AmazonEC2 p5.48xlarge", "aws", "111122223333")


def test_the_first_day_that_no_bill_holds_is_open() -> None:
    assert when(due(bought("2026-09-09"), bought("2026-10-09"))) == [COMPLETE.date()]


def test_one_fee_that_ended_hides_none_that_goes_on() -> None:
    assert when(due(*(bought(f"2026-{month}-{day}") for month in ("09", "10") for day in ("05", "20")))) == [
        date(2026, 11, 20)
    ]


def test_parts_of_one_days_purchase_are_one_sum() -> None:
    parts = (bought("2026-09-20", "100"), bought("2026-09-20", "500", resource_id="other"))

    (found,) = due(*parts, bought("2026-10-20", "600"))

    assert found.money == usd("600")


def test_what_a_daily_fee_and_a_yearly_sighting_go_by_is_told() -> None:
    (daily,) = due(*(bought((COMPLETE - n * DAY).date().isoformat(), "24") for n in range(1, 8)))
    (yearly,) = due(bought("2025-11-25"))

    assert (daily.seen, yearly.seen) == ((date(2026, 11, 8),), (date(2025, 11, 25),))


# renewals by the inventory

ENDS = START + timedelta(days=19, hours=3)


def test_a_term_that_renews_itself_falls_due_at_what_the_last_one_cost() -> None:
    (found,) = due(of_term("2026-10-20"), terms=(term(ENDS),))

    assert (found.due, found.money, found.sure) == (ENDS, usd("600"), True)
    assert (found.ground, found.seen, found.by_list) == (CommitmentEvidence.TERM, (date(2026, 10, 20),), False)


def test_one_days_sum_is_for_all_machines_whose_terms_end_together() -> None:
    """The third, of another day, has a sum of its own."""
    terms = (term(ENDS), term(ENDS, "ins-2", renew=False), term(ENDS + 5 * DAY, "ins-3"))

    found = due(of_term("2026-10-20", "1200"), of_term("2026-10-25", "500"), terms=terms)

    assert [(one.name, one.money) for one in found] == [("ins-1", usd("600")), ("ins-3", usd("500"))]


def test_a_renewal_and_its_fee_of_the_bill_are_one() -> None:
    """By the bill it would be due on the 20th as well."""
    found = due(of_term("2026-09-20"), of_term("2026-10-20"), terms=(term(ENDS),))

    assert [one.ground for one in found] == [CommitmentEvidence.TERM]


def test_a_term_that_is_not_renewed_commits_to_nothing_whatever_the_bill_had() -> None:
    assert due(of_term("2026-09-20"), of_term("2026-10-20"), terms=(term(ENDS, renew=False),)) == ()


def test_a_renewal_just_made_is_due_by_the_bill_until_the_bill_has_it() -> None:
    """The inventory tells the end of the next term already."""
    renewed = term(ENDS + 20 * DAY)  # to the 10th of December

    found = due(of_term("2026-09-10"), of_term("2026-10-10"), terms=(renewed,))

    assert [(one.ground, one.due.date()) for one in found] == [(CommitmentEvidence.CHARGED_BEFORE, date(2026, 11, 9))]


def test_only_the_fee_of_the_term_that_ends_is_left_to_the_inventory() -> None:
    """Of the same type, one that no inventory lists is charged on the 12th; and one ten days before or two after."""
    fees = [of_term(f"2026-{month}-{day:02}", "500") for month in ("09", "10") for day in (12, 25)]
    listed = term(ENDS + 5 * DAY, renew=False)

    assert when(due(*fees, terms=(listed,))) == [date(2026, 11, 11)]
    for days, left in ((10, 0), (11, 1), (-2, 0), (-3, 1)):
        moved = replace(listed, ends=datetime(2026, 11, 12, tzinfo=timezone.utc) + days * DAY)
        assert len(due(*fees[::2], terms=(moved,))) == left


@pytest.mark.parametrize(("months", "cost"), [(1, "600"), (12, "7200")])
def test_a_term_of_one_month_to_twelve_is_found_in_the_bill(months: int, cost: str) -> None:
    year, month = divmod(2026 * 12 + 10 - months, 12)

    (found,) = due(of_term(f"{year}-{month + 1:02}-20", cost), terms=(term(ENDS, renew=None),))

    assert found.money == usd(cost)


def test_what_renews_itself_does_so_for_a_month_whatever_was_bought_first() -> None:
    (found,) = due(of_term("2025-11-20", "7200"), terms=(term(ENDS, hourly="1"),))

    assert (found.money, found.by_list) == (usd("730"), True)


def test_a_renewal_is_told_by_its_machine() -> None:
    (found,) = due(terms=(term(ENDS),))

    assert (found.name, found.cloud, found.account) == ("ins-1", "tencent", "100012345678")
    assert found.ref == term(ENDS).ref


def test_where_renewal_is_not_told_it_may_fall_due_for_as_long_as_before() -> None:
    """Paid for three months in August."""
    (found,) = due(of_term("2026-08-20", "1800"), terms=(term(ENDS, renew=None),))

    assert (found.money, found.sure) == (usd("1800"), False)


def test_without_a_bill_a_renewal_costs_its_list_price_for_a_month() -> None:
    (found,) = due(terms=(term(ENDS, hourly="2"),))

    assert (found.money, found.by_list) == (usd("1460"), True)


@pytest.mark.parametrize("unpriced", [term(ENDS), term(ENDS, renew=None), term(ENDS, renew=None, hourly="2")])
def test_a_price_nobody_knows_is_no_zero(unpriced: PrepaidTerm) -> None:
    """Where renewal is not told, nor is for how long it would be."""
    (found,) = due(terms=(unpriced,))

    assert (found.money, found.unknown) == (None, True)


def test_on_the_effective_cost_a_renewal_is_spread_as_its_term_was() -> None:
    for lines in ((), (of_term("2026-10-20"),)):
        (found,) = due(*lines, terms=(term(ENDS, hourly="2"),), counted=EFFECTIVE)
        assert (found.money, found.spread, found.unknown) == (None, True, False)


def test_a_term_that_is_over_or_ends_after_the_period_is_left_out() -> None:
    assert due(terms=(term(NOW, hourly="2"), term(END, hourly="2"))) == ()


def test_in_a_longer_period_a_term_renews_itself_each_month() -> None:
    year = Period("2026", datetime(2026, 1, 1, tzinfo=timezone.utc), datetime(2027, 1, 1, tzinfo=timezone.utc))

    found = due(terms=(term(ENDS, hourly="2"), term(ENDS, "ins-2", renew=None)), period=year)

    assert [(one.due.date(), one.name) for one in found] == [
        (date(2026, 11, 20), "ins-1"),
        (date(2026, 11, 20), "ins-2"),
        (date(2026, 12, 20), "ins-1"),
    ]


def test_a_purchase_of_another_account_or_type_is_no_price_of_it() -> None:
    others = (of_term("2026-10-20", sub_account_id="9"), replace(of_term("2026-10-20"), instance_type="GN10"))

    assert [one.money for one in due(*others, terms=(term(ENDS),))] == [None]
