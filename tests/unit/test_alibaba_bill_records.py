"""Records of Alibaba Cloud's bills are taken to the last digit, at their documented types, or not at all."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from costguard.domain.money import ChargeCategory, Money, PricingCategory, SpendLine
from costguard.estimates.purchases import months_on
from costguard.providers.alibaba.billing.answers import (
    Item,
    Row,
    Sum,
    Term,
    amount_in,
    payer_in,
    row_of,
    sum_of,
    tags_in,
)
from costguard.providers.alibaba.billing.lines import (
    Payer,
    amortised,
    compared,
    last_filled,
    lines_of,
    region_of,
    tax_lines,
    unrecorded_lines,
    with_known_types,
)
from costguard.providers.alibaba.billing.vendor_budgets import UNTOLD, budget_of
from costguard.providers.alibaba.core.errors import fields_of
from costguard.providers.alibaba.core.transport import Answer
from costguard.providers.kit.billing.calendar import Month, begin_of, day_of, days_between

PAYER = Payer("alibaba", "1234567890123456")
DAY = date(2026, 3, 5)
CNY = "CNY"
MARCH = Month(2026, 3)
COMPLETE = begin_of(date(2026, 3, 9))


def record(**more: Any) -> dict[str, Any]:
    """One that the vendor might write."""
    return {
        "BillingDate": "2026-03-05",
        "Item": "PayAsYouGoBill",
        "OwnerID": "1098765432109876",
        "ProductCode": "ecs\t",
        "InstanceID": "i-bp1",
        "InstanceSpec": "ecs.gn7i-c8g1.2xlarge\t",
        "NickName": "trainer",
        "Region": "华东1（杭州）\n",
        "Tag": "key:team value:research; key:env value:",
        "Currency": "CNY",
        "PretaxAmount": Decimal("12.345678901234567"),
        "DeductedByCashCoupons": 0,
        "ServicePeriod": "3600",
        "ServicePeriodUnit": "秒",
        **more,
    }


def row(**more: Any) -> Row:
    return row_of(record(**more), PAYER.account, DAY)


def test_a_record_is_told_in_the_words_of_focus() -> None:
    (line,) = lines_of(PAYER, row())

    assert (line.billing_account_id, line.sub_account_id) == (PAYER.account, "1098765432109876")
    assert (line.service_name, line.region_id, line.instance_type) == ("ecs", "cn-hangzhou", "ecs.gn7i-c8g1.2xlarge")
    assert (line.resource_id, line.resource_name) == ("i-bp1", "trainer")
    assert (line.charge_category, line.pricing_category) == (ChargeCategory.USAGE, PricingCategory.STANDARD)
    assert line.billed_cost == line.effective_cost == Money(Decimal("12.345678901234567"), CNY)
    assert line.tags == {"team": "research", "env": ""}
    assert line.charge_period_start == datetime(2026, 3, 4, 16, tzinfo=timezone.utc)
    assert line.charge_period_end - line.charge_period_start == timedelta(days=1)
    assert line.accelerated


def test_amounts_keep_every_digit_that_was_sent() -> None:
    body = b'{"RequestId":"R","Code":"Success","Success":true,"Data":{"PretaxAmount":1234567890.123456789,"Usage":2}}'
    data = fields_of(Answer(200, body, None), "bss:DescribeInstanceBill", changes=False)["Data"]

    assert amount_in(data, "PretaxAmount") == Decimal("1234567890.123456789")
    assert amount_in(data, "Usage") == 2
    assert isinstance(
        fields_of(Answer(200, body, None), "ecs:DescribePrice", changes=False)["Data"]["PretaxAmount"], float
    )


@pytest.mark.parametrize(
    ("sent", "amount"),
    [("1,234.56", "1234.56"), ("-1,234,567.8", "-1234567.8"), ("0.1 ", "0.1"), ("", "0"), (7, "7")],
)
def test_amounts_may_be_texts_with_commas(sent: Any, amount: str) -> None:
    assert amount_in({"PretaxAmount": sent}, "PretaxAmount") == Decimal(amount)


@pytest.mark.parametrize(
    "sent", ["12,34", "1.2.3", "NaN", "1e5", True, None, 0.1, Decimal("NaN"), Decimal("1e20"), [1]]
)
def test_what_is_no_amount_is_never_zero(sent: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        amount_in({"PretaxAmount": sent}, "PretaxAmount")


@pytest.mark.parametrize(
    "wrong",
    [
        {"PretaxAmount": None},
        {"Currency": ""},
        {"Currency": "元"},
        {"Item": "SomethingNew"},
        {"ProductCode": " "},
        {"OwnerID": "somebody"},
        {"OwnerID": 1098765432109876},
        {"Tag": ["key:team value:research"]},
        {"BillingDate": "2026-03-06"},
        {"BillingDate": "tomorrow"},
    ],
)
def test_a_record_of_another_form_is_no_record(wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        row(**wrong)
    with pytest.raises(ValueError, match="PretaxAmount"):
        row_of({key: value for key, value in record().items() if key != "PretaxAmount"}, PAYER.account, DAY)


def test_where_one_account_is_told_it_is_the_payers() -> None:
    assert row(OwnerID="").owner == PAYER.account


def test_vouchers_pay_for_what_is_due_and_are_credits() -> None:
    charge, credit = lines_of(PAYER, row(PretaxAmount=Decimal(40), DeductedByCashCoupons=Decimal("25.5")))

    assert (charge.charge_category, charge.billed_cost.amount) == (ChargeCategory.USAGE, Decimal(40))
    assert (credit.charge_category, credit.billed_cost.amount) == (ChargeCategory.CREDIT, Decimal("-25.5"))
    assert (credit.effective_cost, credit.tags) == (credit.billed_cost, charge.tags)


@pytest.mark.parametrize(("item", "amount"), [("Refund", Decimal("-7.31")), ("Adjustment", Decimal("3.5"))])
def test_refunds_and_corrections_are_adjustments_as_told(item: str, amount: Decimal) -> None:
    (line,) = lines_of(PAYER, row(Item=item, PretaxAmount=amount))

    assert (line.charge_category, line.billed_cost.amount) == (ChargeCategory.ADJUSTMENT, amount)
    assert line.effective_cost == line.billed_cost


def order(**more: Any) -> Row:
    term = {"ServicePeriod": "1", "ServicePeriodUnit": "Month", **more}
    return row(Item="SubscriptionOrder", PretaxAmount=Decimal(3100), **term)


def test_an_order_is_billed_at_once_and_used_up_by_the_day() -> None:
    (bought,) = lines_of(PAYER, order())
    used = list(amortised(PAYER, order(), begin_of(date(2026, 2, 1)), begin_of(date(2026, 6, 1))))

    assert bought.charge_category is ChargeCategory.PURCHASE
    assert [bought.billed_cost.amount, bought.effective_cost.amount] == [3100, 0]
    assert len(used) == 31
    assert {line.effective_cost.amount for line in used} == {Decimal(100)}
    assert {line.billed_cost.amount for line in used} == {Decimal(0)}
    assert {(line.charge_category, line.pricing_category) for line in used} == {
        (ChargeCategory.USAGE, PricingCategory.COMMITTED)
    }
    assert used[0].charge_period_start == begin_of(DAY)
    assert used[-1].charge_period_end == begin_of(date(2026, 4, 5))


def test_a_term_that_ends_within_a_day_is_used_up_by_then() -> None:
    hours = order(ServicePeriod="36", ServicePeriodUnit="hours")
    shares = [line.effective_cost.amount for line in amortised(PAYER, hours, COMPLETE - timedelta(days=30), COMPLETE)]

    assert [share.quantize(Decimal(1)) for share in shares] == [Decimal(2067), Decimal(1033)]
    assert sum(shares, Decimal(0)).quantize(Decimal("1e-20")) == 3100


@pytest.mark.parametrize(
    ("length", "unit", "term"),
    [
        ("2592000", "秒", Term(0, timedelta(days=30))),
        ("2592000", "Second", Term(0, timedelta(days=30))),
        ("3", "个月", Term(3)),
        ("2", "Years", Term(24)),
        ("7", "天", Term(0, timedelta(days=7))),
        ("0", "月", None),
        ("11", "年", None),
        ("99999999999999", "Second", None),
        ("-1", "Month", None),
        ("1", "lunar month", None),
        ("", "", None),
    ],
)
def test_terms_are_read_in_both_languages(length: str, unit: str, term: Term | None) -> None:
    assert order(ServicePeriod=length, ServicePeriodUnit=unit).term == term


def test_an_order_without_a_term_is_spent_on_the_day_it_was_made() -> None:
    strange = order(ServicePeriodUnit="?")
    (bought,) = lines_of(PAYER, strange)

    assert bought.effective_cost == bought.billed_cost
    assert list(amortised(PAYER, strange, begin_of(DAY), COMPLETE)) == []


@pytest.mark.parametrize(
    ("told", "tags"),
    [
        ("", {}),
        ("key:a value:b", {"a": "b"}),
        ("key:a value:b; key:c value:d;", {"a": "b", "c": "d"}),
        ("key:a:b value:c;d", {"a:b": "c;d"}),
        ("key:acs:pai:dlc:payType value:spot", {"acs:pai:dlc:payType": "spot"}),
        ("key:a value:b; key:a value:c", None),
        ("key:a value:b value:c", None),
        ("a=b", None),
        ("key:a", None),
        ("key:a value:b; c", {"a": "b; c"}),
    ],
)
def test_tags_are_told_apart_or_not_at_all(told: str, tags: dict[str, str] | None) -> None:
    assert tags_in(told) == tags


@pytest.mark.parametrize(
    ("name", "region"),
    [
        ("华东1（杭州）", "cn-hangzhou"),
        ("杭州", "cn-hangzhou"),
        ("China (Hangzhou)", "cn-hangzhou"),
        ("中国香港", "cn-hongkong"),
        ("China (Hong Kong)", "cn-hongkong"),
        ("Singapore", "ap-southeast-1"),
        ("US (Silicon Valley)", "us-west-1"),
        ("阿联酋（迪拜）", "me-east-1"),
        ("华东5 （南京-本地地域）", "cn-nanjing"),
        ("SAU (Riyadh - Partner Region)", "me-central-1"),
        ("cn-wulanchabu", "cn-wulanchabu"),
        ("ap-southeast-9", "ap-southeast-9"),
        ("", ""),
        ("全球", ""),
        ("Global", ""),
        ("华东1 金融云（杭州）", None),
        ("China East 1 Finance", None),
        ("火星", None),
    ],
)
def test_regions_are_known_by_the_names_of_both_sites(name: str, region: str | None) -> None:
    assert region_of(name) == region


@pytest.mark.parametrize(
    ("product", "kind", "accelerated"),
    [
        ("ecs", "ecs.gn7i-c8g1.2xlarge", True),
        ("ecs", "ecs.ebmgn7ex.32xlarge", True),
        ("ecs", "ecs.vgn6i-m4.xlarge", True),
        ("ecs", "ecs.g7.xlarge", False),
        ("ecs", "", False),
        ("learn", "", True),
        ("paidlc", "", True),
        ("eais", "", True),
        ("oss", "", False),
    ],
)
def test_machines_and_platforms_with_accelerators_are_known_by_name(product: str, kind: str, accelerated: bool) -> None:  # noqa: FBT001 - from a table
    assert row(ProductCode=product, InstanceSpec=kind).accelerated is accelerated


def test_a_type_that_is_not_there_yet_is_that_of_the_same_resource() -> None:
    fresh, other = row(InstanceSpec=""), row(InstanceID="i-bp2", InstanceSpec="")

    assert [each.instance_type for each in with_known_types([fresh, row(), other])] == [
        "ecs.gn7i-c8g1.2xlarge",
        "ecs.gn7i-c8g1.2xlarge",
        "",
    ]


def test_days_are_those_of_china() -> None:
    late = datetime(2026, 2, 28, 16, 0, tzinfo=timezone.utc)

    assert day_of(late) == date(2026, 3, 1)
    assert day_of(late - timedelta(seconds=1)) == date(2026, 2, 28)
    assert days_between(late, late + timedelta(days=1)) == [date(2026, 3, 1)]
    assert days_between(late - timedelta(seconds=1), late + timedelta(seconds=1)) == [
        date(2026, 2, 28),
        date(2026, 3, 1),
    ]
    assert days_between(late, late) == []


def test_months_end_with_their_last_day() -> None:
    assert months_on(date(2024, 1, 31), 1) == date(2024, 2, 29)
    assert months_on(date(2026, 12, 31), 2) == date(2027, 2, 28)
    assert Month(2026, 1).plus(-2) == Month(2025, 11)
    assert (str(Month(2026, 2)), len(list(Month(2024, 2).days()))) == ("2026-02", 29)


def test_an_answer_of_another_cycle_is_no_answer() -> None:
    answer = {"Data": {"BillingCycle": "2026-03", "AccountID": "123"}}

    assert payer_in(answer, MARCH) == "123"
    with pytest.raises(ValueError, match="2026-04"):
        payer_in(answer, Month(2026, 4))
    with pytest.raises(ValueError, match="missing"):
        payer_in({}, MARCH)


def overview(**more: Any) -> Sum:
    return sum_of(record(**{"Tax": 0, "PretaxAmount": Decimal(100), **more}))


def unrecorded(sums: list[Sum], rows: list[Row], complete_until: datetime = COMPLETE) -> list[SpendLine]:
    return list(unrecorded_lines(PAYER, MARCH, compared(PAYER, sums, rows), complete_until))


def test_tax_is_on_the_last_complete_day_of_its_cycle() -> None:
    (tax,) = tax_lines(PAYER, MARCH, [overview(Tax=Decimal("4.5")), overview(Tax=Decimal("1.5"))], COMPLETE)
    (closed,) = tax_lines(PAYER, Month(2026, 2), [overview(Tax=Decimal(6))], COMPLETE)

    assert (tax.charge_category, tax.billed_cost, tax.sub_account_id) == (
        ChargeCategory.TAX,
        Money(Decimal(6), CNY),
        "1098765432109876",
    )
    assert tax.charge_period_start == begin_of(date(2026, 3, 8))
    assert closed.charge_period_start == begin_of(date(2026, 2, 28))
    assert list(tax_lines(PAYER, MARCH, [overview()], COMPLETE)) == []


def test_what_no_record_has_is_a_charge_of_its_own() -> None:
    records = [row(PretaxAmount=Decimal("59.5")), row(PretaxAmount=Decimal("40.499"))]

    assert unrecorded([overview()], records) == []
    (missing,) = unrecorded([overview()], records[:1])
    assert (missing.charge_category, missing.billed_cost.amount) == (ChargeCategory.USAGE, Decimal("40.5"))
    assert missing.charge_period_start == COMPLETE, "until it is complete, records may yet come"
    (closed,) = unrecorded([overview()], records[:1], begin_of(date(2026, 4, 9)))
    assert closed.charge_period_start == begin_of(date(2026, 3, 31))


def test_what_the_overview_rounds_off_is_a_correction() -> None:
    (less,) = unrecorded([overview(RoundDownDiscount="0.42")], [row(PretaxAmount=Decimal("100.42"))])
    assert (less.charge_category, less.billed_cost.amount) == (ChargeCategory.ADJUSTMENT, Decimal("-0.42"))


def test_an_overview_that_has_less_than_the_records_makes_nothing_less() -> None:
    for sums in ([overview()], []):
        found = compared(PAYER, sums, [row(PretaxAmount=Decimal("100.42"))])
        assert [money.currency for money in found.excess] == ["CNY"]
        assert list(unrecorded_lines(PAYER, MARCH, found, COMPLETE)) == []


def test_a_product_by_two_names_is_counted_once() -> None:
    lines = unrecorded([overview(ProductCode="disk")], [row(PretaxAmount=Decimal(100), ProductCode="yundisk")])
    assert [(line.service_name, line.billed_cost.amount) for line in lines] == [
        ("disk", Decimal(100)),
        ("yundisk", Decimal(-100)),
    ]


def test_an_overview_without_accounts_is_held_against_all_of_them() -> None:
    rows = [row(PretaxAmount=Decimal(60)), row(PretaxAmount=Decimal(30), OwnerID="123")]
    (missing,) = unrecorded([overview(OwnerID="")], rows)
    assert (missing.sub_account_id, missing.billed_cost.amount) == (PAYER.account, Decimal(10))


def test_vouchers_that_only_the_overview_knows_are_credits() -> None:
    with_vouchers, without = Decimal(30), Decimal(0)
    paid = {"PretaxAmount": Decimal(100), "DeductedByCashCoupons": with_vouchers}
    (credit,) = unrecorded([overview(**paid)], [row(**{**paid, "DeductedByCashCoupons": without})])

    assert (credit.charge_category, credit.billed_cost.amount) == (ChargeCategory.CREDIT, Decimal(-30))
    assert unrecorded([overview(**{**paid, "DeductedByCashCoupons": without})], [row(**paid)]) == []


def test_days_without_records_are_zero_only_where_nothing_is_missing() -> None:
    first = MARCH.first
    empty: dict[date, list[Row]] = {date(2026, 3, 7): [], date(2026, 3, 8): []}
    rows = {first: [row(PretaxAmount=Decimal(60))], **empty}

    assert last_filled(PAYER, MARCH, [overview()], rows, COMPLETE) == begin_of(date(2026, 3, 2))
    assert last_filled(PAYER, MARCH, [overview(PretaxAmount=Decimal(60))], rows, COMPLETE) == COMPLETE
    assert last_filled(PAYER, MARCH, [overview()], empty, COMPLETE) == begin_of(first)
    assert last_filled(PAYER, MARCH, [], empty, COMPLETE) == COMPLETE


@pytest.mark.parametrize("capital", [True, False])
def test_a_budget_is_what_little_the_api_tells(capital: bool) -> None:  # noqa: FBT001 - two spellings
    inner: dict[str, Any] = {"budgetCycleType": "quarterly", "totalBudgetAmount": Decimal("220.5"), "budgetMemo": ""}
    spent: dict[str, Any] = {"actualConsumeSum": "1,088.6", "actualAndBudgetComparison": "20.73%"}
    if capital:
        inner = {key[0].upper() + key[1:]: value for key, value in inner.items()}
        spent = {key[0].upper() + key[1:]: value for key, value in spent.items()}
    found = budget_of({"BudgetName": "gpus", "Budget": inner, "CalculatedValues": spent}, "alibaba-intl", "123")

    assert (found.name, found.account, found.period) == ("gpus", "123", "quarterly")
    assert (found.amount, found.spent) == (Money(Decimal("220.5"), "USD"), Money(Decimal("1088.6"), "USD"))
    assert (found.actual_thresholds, found.unsupported) == ((), UNTOLD)


@pytest.mark.parametrize(
    "inner", [{}, {"totalBudgetAmount": 1, "budgetCycleType": "weekly"}, {"budgetCycleType": "daily"}]
)
def test_a_budget_of_another_form_is_none(inner: dict[str, Any]) -> None:
    with pytest.raises((ValueError, LookupError)):
        budget_of({"BudgetName": "gpus", "Budget": json.loads(json.dumps(inner))}, "alibaba", "123")


def test_an_item_has_its_documented_name() -> None:
    assert [item.value for item in Item] == ["SubscriptionOrder", "PayAsYouGoBill", "Refund", "Adjustment"]
