"""How answers of Cost Explorer and Budgets are read: amounts exactly, charges once, and nothing by guessing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from costguard.domain.errors import ProviderError, ThrottledError, TruncatedReadError
from costguard.domain.money import ChargeCategory, Money, PricingCategory, SpendLine, SpendScope, VendorBudget
from costguard.providers.aws.billing.answers import Costs, Grouped, costs_by_day, money_of
from costguard.providers.aws.billing.lines import Groupings, Slice, kind_of, lines_of, machine_uses
from costguard.providers.aws.billing.vendor_budgets import budgets_of
from costguard.providers.aws.core.errors import translate
from costguard.providers.kit.core.fields import as_documented

DAY = datetime(2026, 3, 1, tzinfo=timezone.utc)
NEXT = DAY + timedelta(days=1)
METRICS = ("UnblendedCost", "NetAmortizedCost")
EC2, SAGEMAKER, TAX = "Amazon Elastic Compute Cloud - Compute", "Amazon SageMaker", "Tax"
ME, OTHER = "111122223333", "444455556666"
EVERYBODY = Slice("aws", ME, None, "", ())
USAGE, PURCHASE, ADJUSTMENT = ChargeCategory.USAGE, ChargeCategory.PURCHASE, ChargeCategory.ADJUSTMENT
STANDARD, COMMITTED, UNKNOWN = PricingCategory.STANDARD, PricingCategory.COMMITTED, PricingCategory.OTHER


def costs(billed: str, effective: str | None = None) -> Costs:
    return Costs(Money(Decimal(billed), "USD"), Money(Decimal(billed if effective is None else effective), "USD"))


def grouped(rows: Mapping[tuple[str, str], Costs]) -> Grouped:
    return {(DAY, first, second): each for (first, second), each in rows.items()}


def lines(
    by_service: Mapping[tuple[str, str], Costs],
    *by_machine: Mapping[tuple[str, str], Costs],
    by_account: Mapping[tuple[str, str], Costs] | None = None,
    of: Slice = EVERYBODY,
) -> list[SpendLine]:
    whole = grouped(by_service)
    uses = machine_uses(whole)
    assert len(uses) == len(by_machine)
    machines = {use: grouped(rows) for use, rows in zip(uses, by_machine, strict=True)}
    accounts = None if by_account is None else grouped(by_account)
    return list(lines_of(Groupings(whole, machines, accounts), of))


def told(line: SpendLine) -> tuple[str, str, str, bool]:
    return line.sub_account_id, line.service_name, line.instance_type, line.accelerated


def summed(found: list[SpendLine]) -> Decimal:
    return sum((line.billed_cost.amount for line in found), Decimal(0))


@pytest.mark.parametrize(
    ("record_type", "billed", "kind"),
    [
        ("Usage", "1", (USAGE, STANDARD)),
        ("DiscountedUsage", "0", (USAGE, COMMITTED)),
        ("SavingsPlanCoveredUsage", "1", (USAGE, COMMITTED)),
        ("Savings Plan Negation", "-1", (USAGE, COMMITTED)),
        ("SavingsPlanRecurringFee", "1", (PURCHASE, COMMITTED)),
        ("SavingsPlanUpfrontFee", "1", (PURCHASE, COMMITTED)),
        ("RIFee", "1", (PURCHASE, COMMITTED)),
        ("Fee", "1", (PURCHASE, UNKNOWN)),
        ("Tax", "1", (ChargeCategory.TAX, UNKNOWN)),
        ("Credit", "-1", (ChargeCategory.CREDIT, UNKNOWN)),
        ("Refund", "-1", (ADJUSTMENT, UNKNOWN)),
        ("Enterprise Discount Program Discount", "-1", (ADJUSTMENT, UNKNOWN)),
        ("SomethingNew", "-1", (ADJUSTMENT, UNKNOWN)),
        ("SomethingNew", "1", (USAGE, UNKNOWN)),
    ],
)
def test_every_charge_type_has_a_category_that_counts_as_it_should(
    record_type: str, billed: str, kind: tuple[ChargeCategory, PricingCategory]
) -> None:
    """What nobody knows is never a credit or a tax, which a budget may leave out."""
    assert kind_of(record_type, Decimal(billed)) == kind


def test_a_savings_plan_is_billed_as_a_purchase_and_used_up_by_machines() -> None:
    """Covered usage is billed at list price and taken off again; the fee is what is paid."""
    found = lines(
        {
            (EC2, "SavingsPlanCoveredUsage"): costs("100", "60"),
            (EC2, "SavingsPlanNegation"): costs("-100", "0"),
            ("Savings Plans for AWS Compute usage", "SavingsPlanRecurringFee"): costs("65", "5"),
        },
        {(ME, "p4d.24xlarge"): costs("0", "60")},
    )
    used, bought = found
    assert (used.charge_category, used.pricing_category, told(used)) == (
        USAGE,
        COMMITTED,
        (ME, EC2, "p4d.24xlarge", True),
    )
    assert Costs(used.billed_cost, used.effective_cost) == costs("0", "60")
    assert bought.charge_category is PURCHASE
    assert Costs(bought.billed_cost, bought.effective_cost) == costs("65", "5")


def test_machines_with_accelerators_are_told_by_account_and_the_others_summed() -> None:
    found = lines(
        {(EC2, "Usage"): costs("31"), (TAX, "Tax"): costs("3"), ("EC2 - Other", "Usage"): costs("7")},
        {
            (ME, "g5.xlarge"): costs("10"),
            (OTHER, "g5.xlarge"): costs("15"),
            (ME, "m5.large"): costs("2"),
            (OTHER, "c5.large"): costs("1"),
            (ME, "NoInstanceType"): costs("3"),
        },
    )
    assert [(told(line), int(line.billed_cost.amount)) for line in found] == [
        ((ME, EC2, "g5.xlarge", True), 10),
        ((OTHER, EC2, "g5.xlarge", True), 15),
        (("", EC2, "", False), 6),
        (("", TAX, "", False), 3),
        (("", "EC2 - Other", "", False), 7),
    ]


def test_all_of_sagemaker_is_accelerated_but_machines_known_to_be_plain() -> None:
    found = lines(
        {(SAGEMAKER, "Usage"): costs("16")},
        {(ME, "ml.g5.xlarge"): costs("10"), (ME, "ml.m5.large"): costs("1"), (OTHER, "NoInstanceType"): costs("5")},
    )
    assert [(told(line), int(line.billed_cost.amount)) for line in found] == [
        ((ME, SAGEMAKER, "ml.g5.xlarge", True), 10),
        ((OTHER, SAGEMAKER, "", True), 5),
        (("", SAGEMAKER, "", False), 1),
    ]


def test_a_day_adds_up_to_what_the_first_question_said() -> None:
    """The bill was renewed before the second, which says more."""
    found = lines({(EC2, "Usage"): costs("10")}, {(ME, "g5.xlarge"): costs("12")})
    assert summed(found) == 10
    assert [told(line) for line in found] == [(ME, EC2, "g5.xlarge", True), ("", EC2, "", False)]


def test_a_renewed_bill_does_not_lose_what_only_the_first_question_knew() -> None:
    found = lines({(EC2, "Usage"): costs("10")}, {})
    assert [(told(line), int(line.billed_cost.amount)) for line in found] == [(("", EC2, "", False), 10)]


def test_rounding_makes_no_line_of_its_own() -> None:
    found = lines(
        {(EC2, "Usage"): costs("10.0000000001")}, {(ME, "g5.xlarge"): costs("10"), (OTHER, "g6.xlarge"): costs("0")}
    )
    assert [(told(line), line.billed_cost.amount) for line in found] == [
        ((ME, EC2, "g5.xlarge", True), Decimal("10.0000000001"))
    ]


def test_accounts_named_together_each_have_all_of_theirs() -> None:
    found = lines(
        {(EC2, "Usage"): costs("25"), (TAX, "Tax"): costs("5")},
        {(ME, "g5.xlarge"): costs("10"), (OTHER, "m5.large"): costs("15")},
        by_account={(ME, "Usage"): costs("10"), (OTHER, "Usage"): costs("15"), (OTHER, "Tax"): costs("5")},
        of=Slice("aws", ME, (ME, OTHER), "", ()),
    )
    assert [
        (line.sub_account_id, line.charge_category.value, line.instance_type, int(line.billed_cost.amount))
        for line in found
    ] == [
        (ME, "usage", "g5.xlarge", 10),
        (OTHER, "usage", "", 15),
        (OTHER, "tax", "", 5),
    ]


def test_an_account_without_a_sum_of_its_own_gains_nothing() -> None:
    """The second question knew a machine that the third did not: the sum is the third's."""
    found = lines(
        {(EC2, "Usage"): costs("10")},
        {(ME, "g5.xlarge"): costs("10")},
        by_account={(OTHER, "Usage"): costs("4")},
        of=Slice("aws", ME, (ME, OTHER), "", ()),
    )
    assert summed(found) == 4


def test_what_a_scope_names_is_on_every_line() -> None:
    of = Slice("aws", ME, (OTHER,), "eu-west-1", (("team", "research"),))
    (line,) = lines({("Amazon S3", "Usage"): costs("1")}, of=of)
    assert (line.sub_account_id, line.region_id, line.tags) == (OTHER, "eu-west-1", {"team": "research"})
    assert (line.cloud, line.billing_account_id) == ("aws", ME)
    assert (line.charge_period_start, line.charge_period_end) == (DAY, NEXT)


def result(*groups: dict[str, Any], start: datetime = DAY, days: int = 1) -> dict[str, Any]:
    end = start + timedelta(days=days)
    period = {"Start": f"{start:%Y-%m-%d}", "End": f"{end:%Y-%m-%d}"}
    return {"TimePeriod": period, "Total": {}, "Groups": list(groups), "Estimated": True}


def group(amount: Any = "1.5", unit: Any = "USD", keys: Any = ("Tax", "Tax")) -> dict[str, Any]:
    return {"Keys": list(keys), "Metrics": {name: {"Amount": amount, "Unit": unit} for name in METRICS}}


def taken(*results: dict[str, Any], until: datetime = NEXT) -> Grouped:
    with as_documented("ce:GetCostAndUsage"):
        return costs_by_day(results, DAY, until, METRICS, "USD")


@pytest.mark.parametrize("amount", ["12.3456789012", "0.0000000001", "-7", "1E-7", "0"])
def test_amounts_are_exact(amount: str) -> None:
    assert taken(result(group(amount)))[DAY, "Tax", "Tax"].billed == Money(Decimal(amount), "USD")


def test_pages_may_cut_a_day() -> None:
    found = taken(result(group(keys=("Tax", "Tax"))), result(group(keys=("Tax", "Refund"))))
    assert set(found) == {(DAY, "Tax", "Tax"), (DAY, "Tax", "Refund")}


@pytest.mark.parametrize(
    "damaged",
    [
        group("1,5"),
        group("NaN"),
        group("1e999"),
        group(1.5),
        group(None),
        group(""),
        group("1", "N/A"),
        group("1", ""),
        group(keys=("Tax",)),
        group(keys=("Tax", None)),
        {"Keys": ["Tax", "Tax"], "Metrics": {"UnblendedCost": {"Amount": "1", "Unit": "USD"}}},
        {"Metrics": {}},
    ],
)
def test_a_damaged_figure_is_no_figure(damaged: dict[str, Any]) -> None:
    with pytest.raises(ProviderError, match="not as documented"):
        taken(result(damaged))


def test_two_currencies_in_one_group_are_not_read() -> None:
    mixed = group()
    mixed["Metrics"]["NetAmortizedCost"]["Unit"] = "CNY"
    with pytest.raises(ProviderError, match="two currencies"):
        taken(result(mixed))


@pytest.mark.parametrize("wrong", [result(days=2), result(start=NEXT), {"TimePeriod": {"Start": "x", "End": "y"}}])
def test_a_day_that_was_not_asked_for_is_not_read(wrong: dict[str, Any]) -> None:
    with pytest.raises(ProviderError, match="not as documented"):
        taken(wrong)


def test_a_missing_day_is_no_day_without_charges() -> None:
    with pytest.raises(TruncatedReadError, match="1 of the days"):
        taken(result(group()), until=NEXT + timedelta(days=1))


def test_a_group_that_comes_twice_is_not_counted_twice() -> None:
    with pytest.raises(TruncatedReadError, match="twice"):
        taken(result(group()), result(group()))


def test_a_zero_without_a_unit_is_zero() -> None:
    assert money_of({"Amount": "0", "Unit": "N/A"}, "CNY") == Money(Decimal(0), "CNY")


def test_too_many_calls_are_throttling_here_and_a_quota_elsewhere() -> None:
    from botocore.exceptions import ClientError

    answer: Any = {
        "Error": {"Code": "LimitExceededException", "Message": "many"},
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }
    error = ClientError(answer, "any")
    assert isinstance(translate(error, "ce:GetCostAndUsage", changes=False, sent=True), ThrottledError)
    assert not isinstance(translate(error, "iam:ListRoles", changes=False, sent=True), ThrottledError)


def console(**more: Any) -> dict[str, Any]:
    budget = {"BudgetName": "team", "BudgetType": "COST", "TimeUnit": "MONTHLY"}
    return {**budget, "BudgetLimit": {"Amount": "200", "Unit": "USD"}, **more}


def notification(threshold: float, **more: Any) -> dict[str, Any]:
    return {"NotificationType": "ACTUAL", "ComparisonOperator": "GREATER_THAN", "Threshold": threshold, **more}


def adopted(budget: dict[str, Any], *notifications: dict[str, Any]) -> VendorBudget:
    notified = [{"BudgetName": "team", "Notifications": list(notifications)}]
    with as_documented("budgets:DescribeBudgets"):
        (found,) = budgets_of([budget], notified, "aws", ME, everybody=True, now=DAY)
    return found


def test_thresholds_are_percentages_however_they_were_told() -> None:
    found = adopted(
        console(),
        notification(100.0),
        notification(12.5, ThresholdType="PERCENTAGE"),
        notification(160.0, ThresholdType="ABSOLUTE_VALUE"),
        notification(110.0, NotificationType="FORECASTED"),
    )
    assert (found.actual_thresholds, found.forecast_thresholds) == (("12.5", "80", "100"), ("110",))
    assert found.unsupported == ""


def test_an_older_budget_has_its_filter_in_the_old_form() -> None:
    filters = {"LinkedAccount": [OTHER], "Region": ["us-east-1", "eu-west-1"], "TagKeyValue": ["user:team$research"]}
    found = adopted(console(CostFilters=filters))
    assert found.scope == SpendScope(("aws",), (OTHER,), ("us-east-1", "eu-west-1"), (("team", "research"),))
    assert found.unsupported == ""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"CostFilters": {"Service": ["Amazon SageMaker"]}}, "filter Service"),
        ({"CostFilters": {"TagKeyValue": ["user:team$a", "user:team$b"]}}, "tag team"),
        ({"FilterExpression": {"Not": {"Dimensions": {"Key": "REGION", "Values": ["a"]}}}}, "filter Not"),
        ({"FilterExpression": {"Dimensions": {"Key": "SERVICE", "Values": ["a"]}}}, "filter SERVICE"),
        ({"FilterExpression": {"Tags": {"Key": "team", "Values": ["a"], "MatchOptions": ["CONTAINS"]}}}, "pattern"),
        ({"FilterExpression": {"Tags": {"Key": "team", "MatchOptions": ["ABSENT"]}}}, "pattern"),
        ({"CostTypes": {"UseBlended": True}}, "blended"),
        ({"Metrics": ["BlendedCost"]}, "blended"),
        ({"CostTypes": {"IncludeRefund": False, "IncludeSupport": False}}, "without refund, support"),
        ({"AutoAdjustData": {"AutoAdjustType": "HISTORICAL"}}, "by itself"),
        ({"BillingViewArn": "arn:aws:billing::111122223333:billingview/custom-1"}, "billing view"),
        ({"TimePeriod": {"End": datetime(2026, 6, 1, tzinfo=timezone.utc)}}, "2026-06-01"),
    ],
)
def test_what_is_not_ours_is_said(more: dict[str, Any], said: str) -> None:
    assert said in adopted(console(**more)).unsupported


@pytest.mark.parametrize("more", [{"ComparisonOperator": "LESS_THAN"}, {"NotificationType": "ANOMALY"}])
def test_a_notification_that_is_not_ours_is_said(more: dict[str, Any]) -> None:
    found = adopted(console(), {**notification(80.0), **more})
    assert found.actual_thresholds == ()
    assert "notification" in found.unsupported


def test_a_planned_budget_has_the_amount_of_the_period_that_runs() -> None:
    planned = {
        str(int((DAY + timedelta(days=shift)).timestamp())): {"Amount": str(amount), "Unit": "USD"}
        for shift, amount in ((-28, 100), (0, 150), (31, 175))
    }
    budget = console(PlannedBudgetLimits=planned)
    del budget["BudgetLimit"]
    found = adopted(budget)
    assert found.amount == Money(Decimal(150), "USD")
    assert "planned" in found.unsupported


def test_budgets_that_are_no_money_are_left_out() -> None:
    assert budgets_of([console(BudgetType="USAGE")], [], "aws", ME, everybody=True, now=DAY) == []


@pytest.mark.parametrize(
    "more", [{"TimeUnit": "WEEKLY"}, {"BudgetLimit": {"Amount": "many", "Unit": "USD"}}, {"BudgetName": ""}]
)
def test_a_damaged_budget_is_an_error_and_not_left_out(more: dict[str, Any]) -> None:
    with pytest.raises(ProviderError, match="not as documented"):
        adopted(console(**more))


def test_conditions_on_the_same_thing_must_all_hold() -> None:
    both = [{"Dimensions": {"Key": "REGION", "Values": list(values)}} for values in (("a", "b"), ("b", "c"))]
    assert adopted(console(FilterExpression={"And": both})).scope.regions == ("b",)
