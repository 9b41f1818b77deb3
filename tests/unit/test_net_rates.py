"""What an hour costs after discounts: what the bill measures, what the policy declares, and which of both counts."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from tests.builders import fact as fact_of
from tests.builders import instance, shard_facts

from costguard.domain.money import (
    Bill,
    ChargeCategory,
    Discount,
    HourlyRate,
    Money,
    NetRate,
    NetSource,
    PricingCategory,
    SpendLine,
)
from costguard.domain.resources import Billing, Instance
from costguard.estimates.net_rates import discount_on, with_net_rates

NOW = datetime(2026, 11, 23, 12, tzinfo=timezone.utc)
DAY = timedelta(days=1)
COMPLETE = datetime(2026, 11, 22, tzinfo=timezone.utc)
MACHINE = instance()
LIST = HourlyRate(Money(Decimal(10), "USD"), "aws-pricing", "2026-11-23")
DECLARED = Discount("aws", Decimal("0.3"))


def line(day: datetime, listed: str | None = "240", paid: str = "180", **more: object) -> SpendLine:
    known = SpendLine(
        cloud="aws",
        billing_account_id="111122223333",
        sub_account_id=MACHINE.ref.account,
        region_id="",
        service_name="AmazonEC2",
        charge_category=ChargeCategory.USAGE,
        charge_period_start=day,
        charge_period_end=day + DAY,
        billed_cost=Money(Decimal(paid), "USD"),
        effective_cost=Money(Decimal(paid), "USD"),
        instance_type=MACHINE.instance_type,
        accelerated=True,
        list_cost=None if listed is None else Money(Decimal(listed), "USD"),
    )
    return replace(known, **more)  # type: ignore[arg-type]


def bill(*lines: SpendLine, complete: datetime | None = COMPLETE, since: datetime = COMPLETE - 20 * DAY) -> Bill:
    return Bill("aws", lines or tuple(line(COMPLETE - n * DAY) for n in range(1, 9)), since, complete, NOW, "aws-ce")


def net(
    *bills: Bill,
    discounts: tuple[Discount, ...] = (),
    machine: Instance = MACHINE,
    rate: HourlyRate | None = LIST,
) -> NetRate | None:
    shard = shard_facts(replace(fact_of(machine), rate=rate))
    ((found,),) = (each.instances for each in with_net_rates((shard,), discounts, {"aws": bills}, NOW))
    assert (found.rate is None) == (rate is None)
    if found.rate is None or rate is None:
        return None
    assert found.rate.money == rate.money, "limits count the list price"
    return found.rate.net


def test_without_discount_and_bill_only_the_list_price_is_known() -> None:
    assert net() is None
    assert net(discounts=(DECLARED,), rate=None) is None


def test_a_declared_discount_is_taken_off_the_list_price() -> None:
    found = net(discounts=(replace(DECLARED, since=date(2026, 1, 1)),))

    assert found == NetRate(Money(Decimal("7.0"), "USD"), NetSource.DISCOUNT, "2026-01-01", Decimal("0.3"))


def test_a_fresh_and_complete_bill_is_believed_before_the_policy() -> None:
    found = net(bill(), discounts=(DECLARED,))

    assert found is not None
    assert (found.source, found.money.amount, found.as_of) == (NetSource.BILL, Decimal("7.5"), "2026-11-22")
    assert found.declared == Decimal("0.3"), "that both differ is said"


def test_a_bill_that_agrees_with_the_policy_is_no_contradiction() -> None:
    found = net(bill(), discounts=(Discount("aws", Decimal("0.26")),))

    assert found is not None
    assert found.source is NetSource.BILL
    assert found.declared is None


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (bill(complete=None), "nothing is complete"),
        (bill(complete=NOW - 6 * DAY), "it is stale"),
        (bill(since=COMPLETE - 2 * DAY), "it holds too few days"),
        (bill(line(COMPLETE - 2 * DAY), line(COMPLETE - DAY, None, "10")), "a charge without list price"),
        (bill(line(COMPLETE - DAY, "240", "300")), "more was paid than the list price"),
        (bill(line(COMPLETE - DAY, "240", "0")), "nothing was paid at all"),
        (bill(line(COMPLETE - DAY, sub_account_id="444455556666")), "another account"),
        (bill(line(COMPLETE - DAY, instance_type="g5.xlarge")), "another type"),
        (bill(line(COMPLETE - DAY, pricing_category=PricingCategory.COMMITTED)), "under a commitment"),
        (bill(line(COMPLETE - DAY, pricing_category=PricingCategory.DYNAMIC)), "spot"),
        (bill(line(COMPLETE - 12 * DAY)), "too long ago"),
        (bill(line(COMPLETE)), "a day that is not complete"),
        (bill(line(COMPLETE - DAY, list_cost=Money(Decimal(240), "CNY"))), "another currency"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_a_bill_does_not_tell_in_full_is_no_measured_price(told: Bill, why: str) -> None:
    assert net(told) is None, why
    declared = net(told, discounts=(DECLARED,))
    assert declared is not None
    assert declared.source is NetSource.DISCOUNT


def test_days_before_a_discount_began_do_not_measure_it() -> None:
    """The bill of last week is at list price, the contract is of yesterday."""
    at_list = bill(*(line(COMPLETE - n * DAY, "240", "240") for n in range(1, 9)))
    found = net(at_list, discounts=(replace(DECLARED, since=date(2026, 11, 21)),))

    assert found is not None
    assert (found.source, found.discount) == (NetSource.DISCOUNT, Decimal("0.3"))


def test_a_discount_that_has_not_begun_is_not_taken_off() -> None:
    assert net(discounts=(replace(DECLARED, since=date(2026, 11, 24)),)) is None


@pytest.mark.parametrize("billing", [Billing.SPOT, Billing.PREPAID, Billing.RESERVED, Billing.UNKNOWN])
def test_only_on_demand_hours_have_a_discount(billing: Billing) -> None:
    assert net(bill(), discounts=(DECLARED,), machine=replace(MACHINE, billing=billing)) is None


def test_a_price_of_the_policy_is_the_net_price_itself() -> None:
    own = HourlyRate(Money(Decimal(6), "USD"), "policy", "2026-11-23")

    assert net(bill(), discounts=(DECLARED,), rate=own) == NetRate(own.money, NetSource.PRICE, "2026-11-23")


def test_of_several_bills_the_newest_counts_and_then_the_dearest() -> None:
    cheap, dear = bill(line(COMPLETE - DAY, "240", "120")), bill(line(COMPLETE - DAY, "240", "216"))
    older = bill(line(COMPLETE - 3 * DAY, "240", "24"), complete=COMPLETE - DAY)

    for found in (net(cheap, dear, older), net(older, dear, cheap)):
        assert found is not None
        assert found.discount == Decimal("0.1")


def test_entries_of_the_same_machines_renew_each_other_and_else_the_first_counts() -> None:
    general = Discount("aws", Decimal("0.1"), since=date(2026, 6, 1))
    old = Discount("aws", Decimal("0.2"), "111122223333", ("p4d.*",), date(2025, 1, 1))
    new, next_year = replace(old, share=Decimal("0.4"), since=date(2026, 1, 1)), replace(old, since=date(2027, 1, 1))
    every = (old, general, new, next_year)

    assert discount_on(every, "aws", "111122223333", "p4d.24xlarge", NOW.date()) == new
    assert discount_on(every, "aws", "111122223333", "g5.xlarge", NOW.date()) == general
    assert discount_on(every, "aws", "111122223333", "g5.xlarge", date(2026, 1, 1)) is None
    assert discount_on(every, "aws-cn", "111122223333", "p4d.24xlarge", NOW.date()) is None
