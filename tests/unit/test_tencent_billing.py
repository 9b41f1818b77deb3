"""Records, charges and budgets of Tencent Cloud's bill, apart from any request."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from costguard.domain.errors import ProviderError, TruncatedReadError
from costguard.domain.money import ChargeCategory, Money, PricingCategory, SpendScope
from costguard.domain.refs import Shard
from costguard.providers.kit.billing.calendar import Month, begin_of
from costguard.providers.tencent.billing.answers import Row, amount_in, region_number, region_word, to_row
from costguard.providers.tencent.billing.lines import Charges
from costguard.providers.tencent.billing.requests import BillReader, CostExplorer, Payer
from costguard.providers.tencent.billing.source import Bill, Span
from costguard.providers.tencent.billing.vendor_budgets import read_budgets

UTC = timezone.utc
DAY = timedelta(days=1)
MARCH = datetime(2026, 2, 28, 16, tzinfo=UTC)
SHARD = Shard("tencent", "100012345678")


def record(**changed: Any) -> dict[str, Any]:
    """One hour of a machine, as the API's own example has it."""
    return {
        "BusinessCode": "p_cvm",
        "BusinessCodeName": "云服务器CVM",
        "ProductCode": "sp_cvm_gn7",
        "ProductCodeName": "云服务器CVM-GPU计算型GN7",
        "PayModeName": "按量计费",
        "ActionType": "postpay_deduct_h",
        "ActionTypeName": "按量计费小时结",
        "RegionId": "1",
        "RegionName": "华南地区（广州）",
        "ResourceId": "ins-1",
        "ResourceName": "trainer",
        "PayerUin": "100012345678",
        "OwnerUin": "100087654321",
        "PayTime": "2026-03-05 21:15:38",
        "FeeBeginTime": "2026-03-05 20:00:00",
        "FeeEndTime": "2026-03-05 20:59:59",
        "BillDay": "2026-03-05 00:00:00",
        "Id": "1",
        "Tags": [{"TagKey": "team", "TagValue": "nlp"}],
        "ComponentSet": [{"RealCost": "8.70000000", "VoucherPayAmount": "0", "IncentivePayAmount": "-"}],
        **changed,
    }


def row(**changed: Any) -> Row:
    return to_row(record(**changed), "CNY")


def term(cost: str, begins: str, ends: str, **changed: Any) -> Row:
    times = {"FeeBeginTime": begins, "FeeEndTime": ends, "BillDay": f"{begins[:10]} 00:00:00"}
    components = {"ComponentSet": [{"RealCost": cost}]}
    return row(ActionType="prepay_purchase", PayModeName="包年包月", **times, **components, **changed)


def charges_of(*rows: Row, since: datetime = MARCH, until: datetime = MARCH + 31 * DAY) -> Charges:
    found = Charges("tencent", SHARD.account, since, until)
    found.take(rows)
    return found


# --- records


def test_a_record_is_taken_as_it_is_written() -> None:
    found = row()
    assert (found.begins, found.ends) == (datetime(2026, 3, 5, 12, tzinfo=UTC), datetime(2026, 3, 5, 13, tzinfo=UTC))
    assert (found.cost, found.given) == (Decimal("8.7"), Decimal(0))
    assert (found.region, found.service) == ("ap-guangzhou", "p_cvm")
    assert (found.payer, found.owner, found.tags) == ("100012345678", "100087654321", (("team", "nlp"),))
    assert found.accelerated


@pytest.mark.parametrize("written", ["8.70", "-", "", "-0.00000001"])
def test_amounts_are_exact_and_a_dash_is_none(written: str) -> None:
    assert amount_in({"RealCost": written}, "RealCost") == Decimal(written if written not in {"", "-"} else 0)


@pytest.mark.parametrize("written", [8.7, 8, True, None, "8,70", "1e3", "NaN", "\uff18", "8.7 "])
def test_what_is_no_amount_in_quotes_is_not_believed(written: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        amount_in({"RealCost": written}, "RealCost")


@pytest.mark.parametrize(
    ("number", "name", "word"),
    [
        ("1", "", "ap-guangzhou"),
        (4, "", "ap-shanghai"),
        ("ap-beijing", "", "ap-beijing"),
        ("999", "South China (Guangzhou)", "ap-guangzhou"),
        ("", "华东地区（上海）", "ap-shanghai"),
        ("", "港澳台地区(中国香港)", "ap-hongkong"),
        ("0", "其他", ""),
        (True, "", None),
        ("999", "Nowhere (Atlantis)", ""),
    ],
)
def test_regions_are_known_by_number_or_name(number: object, name: str, word: str | None) -> None:
    if word is None:
        with pytest.raises(TypeError):
            row(RegionId=number, RegionName=name)
    else:
        assert row(RegionId=number, RegionName=name).region == word


def test_every_known_region_has_a_number_of_its_own() -> None:
    assert region_word(region_number("ap-jakarta")) == "ap-jakarta"
    assert region_number("ap-atlantis") == ""


@pytest.mark.parametrize(
    ("changed", "category"),
    [
        ({"ActionType": "postpay_deduct_d"}, ChargeCategory.USAGE),
        ({"ActionType": "ri_hour_pay"}, ChargeCategory.USAGE),
        ({"ActionType": "prepay_renew"}, ChargeCategory.PURCHASE),
        ({"ActionType": "", "ActionTypeName": "包年包月新购"}, ChargeCategory.PURCHASE),
        ({"ActionType": "new_code", "ActionTypeName": "调账补偿"}, ChargeCategory.ADJUSTMENT),
        ({"ActionType": "prepay_return"}, ChargeCategory.ADJUSTMENT),
        ({"ActionType": "?", "ActionTypeName": "?"}, ChargeCategory.USAGE),
        ({"ActionType": "?", "ActionTypeName": "?", "PayModeName": "包年包月"}, ChargeCategory.PURCHASE),
        ({"ActionType": "?", "ActionTypeName": "?", "ComponentSet": [{"RealCost": "-1"}]}, ChargeCategory.ADJUSTMENT),
    ],
)
def test_the_kind_of_a_charge_is_told_by_its_transaction(changed: dict[str, Any], category: ChargeCategory) -> None:
    assert row(**changed).category is category


_TYPED = [{"RealCost": "1", "ComponentConfig": [{"Name": "规格", "Value": "GN10Xp.2XLARGE40"}]}]


@pytest.mark.parametrize(
    ("changed", "accelerated"),
    [
        ({}, True),
        ({"ProductCode": "sp_cvm_gn10xp", "ProductCodeName": ""}, True),
        ({"ProductCode": "sp_cvm_pnv4", "ProductCodeName": ""}, True),
        ({"ProductCode": "", "ProductCodeName": ""}, False),
        ({"ProductCode": "sp_cvm_s5", "ProductCodeName": "云服务器CVM-标准型S5"}, False),
        ({"ProductCode": "sp_cvm_s5", "ProductCodeName": "", "ComponentSet": _TYPED}, True),
        ({"BusinessCode": "p_tione", "ProductCode": "sp_tione", "ProductCodeName": ""}, True),
        ({"BusinessCode": "p_hai", "ProductCode": "", "ProductCodeName": ""}, True),
        ({"BusinessCode": "p_x", "BusinessCodeName": "TI-ONE 训练平台", "ProductCode": ""}, True),
        ({"BusinessCode": "p_tike", "BusinessCodeName": "容器", "ProductCode": "sp_tike"}, False),
        ({"BusinessCode": "p_cbs", "ProductCode": "sp_cbs", "ProductCodeName": "云硬盘CBS"}, False),
    ],
)
def test_what_runs_on_cards_is_known(changed: dict[str, Any], *, accelerated: bool) -> None:
    assert row(**changed).accelerated is accelerated


def test_documented_nulls_are_absent_and_a_day_may_lack_its_midnight() -> None:
    found = row(Tags=None, ResourceName=None, RegionId=None, RegionName=None, BillDay="2026-03-05", Id=None)
    assert (found.tags, found.resource_name, found.region, found.row_id) == ((), "", "", "")
    assert found.booked == datetime(2026, 3, 4, 16, tzinfo=UTC)


@pytest.mark.parametrize(
    "changed",
    [
        {"ComponentSet": "none"},
        {"Tags": [{"TagKey": "", "TagValue": "x"}]},
        {"Tags": [{"TagKey": "a", "TagValue": "x"}, {"TagKey": "a", "TagValue": "y"}]},
        {"FeeBeginTime": "yesterday"},
        {"FeeBeginTime": None, "BillDay": None, "PayTime": None},
        {"OwnerUin": 100087654321},
        {"BusinessCode": ""},
    ],
)
def test_a_record_of_another_form_is_not_believed(changed: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        row(**changed)


# --- charges by day


def test_hours_of_a_day_are_one_line_and_the_day_ends_at_midnight_in_china() -> None:
    last, first = (
        {"FeeBeginTime": "2026-03-05 23:00:00", "FeeEndTime": "2026-03-05 23:59:59"},
        {
            "FeeBeginTime": "2026-03-06 00:00:00",
            "FeeEndTime": "2026-03-06 00:59:59",
        },
    )
    lines = charges_of(row(), row(**last), row(**first)).lines()
    assert [line.billed_cost.amount for line in lines] == [Decimal("17.4"), Decimal("8.7")]
    assert [line.charge_period_start for line in lines] == [MARCH + 4 * DAY, MARCH + 5 * DAY]
    assert all(line.charge_period_end - line.charge_period_start == DAY for line in lines)


def test_vouchers_and_free_credit_are_credits_beside_the_charge_they_paid() -> None:
    paid = [{"RealCost": "10.00", "VoucherPayAmount": "4.00", "IncentivePayAmount": "1.50", "CashPayAmount": "4.50"}]
    used, credit = charges_of(row(ComponentSet=paid)).lines()[::-1]
    assert (used.charge_category, used.billed_cost.amount) == (ChargeCategory.USAGE, Decimal(10))
    assert (credit.charge_category, credit.billed_cost.amount) == (ChargeCategory.CREDIT, Decimal("-5.5"))


def test_a_term_is_billed_once_and_costs_its_share_each_day() -> None:
    lines = charges_of(term("310.00", "2026-03-01 00:00:00", "2026-03-31 23:59:59")).lines()
    (bought,) = [line for line in lines if line.charge_category is ChargeCategory.PURCHASE]
    assert (bought.billed_cost.amount, bought.effective_cost.amount) == (Decimal(310), Decimal(0))
    used = [line for line in lines if line.charge_category is ChargeCategory.USAGE]
    assert len(used) == 31
    assert {line.effective_cost.amount for line in used} == {Decimal(10)}
    assert {line.billed_cost.amount for line in used} == {Decimal(0)}
    assert {line.pricing_category for line in used} == {PricingCategory.COMMITTED}


def test_a_term_bought_before_costs_its_share_and_is_billed_no_more() -> None:
    found = charges_of()
    found.take_terms([term("310.00", "2026-02-15 00:00:00", "2026-03-17 23:59:59"), row()])
    lines = found.lines()
    assert len(lines) == 17
    assert sum(line.effective_cost.amount for line in lines) == 170
    assert not any(line.billed_cost.amount for line in lines)


def test_a_refund_ends_what_is_left_of_the_term() -> None:
    bought = term("310.00", "2026-03-01 00:00:00", "2026-03-31 23:59:59")
    times = {"FeeBeginTime": "2026-03-11 12:00:00", "FeeEndTime": "2026-03-11 12:00:00"}
    back = row(ActionType="prepay_return", ComponentSet=[{"RealCost": "-200.00"}], BillDay="2026-03-11", **times)
    other = term("31.00", "2026-03-01 00:00:00", "2026-03-31 23:59:59", ResourceId="ins-2")
    lines = charges_of(bought, back, other).lines()
    mine = [line for line in lines if line.resource_id == "ins-1"]
    assert sum(line.billed_cost.amount for line in mine) == 110
    assert sum(line.effective_cost.amount for line in mine) == 105
    others = [line for line in lines if line.resource_id == "ins-2"]
    assert sum(line.effective_cost.amount for line in others) == 31


def test_what_is_bought_again_after_a_refund_counts() -> None:
    back = row(ActionType="prepay_return", ComponentSet=[{"RealCost": "-1"}], FeeBeginTime="2026-03-02 00:00:00")
    again = term("10.00", "2026-03-11 00:00:00", "2026-03-20 23:59:59")
    assert sum(line.effective_cost.amount for line in charges_of(back, again).lines()) == 10


def test_what_is_paid_once_without_a_term_costs_on_its_day() -> None:
    lines = charges_of(term("99.00", "2026-03-03 10:00:00", "2026-03-03 10:00:00")).lines()
    assert sum(line.billed_cost.amount for line in lines) == 99
    assert sum(line.effective_cost.amount for line in lines) == 99


def test_spot_is_at_a_market_price() -> None:
    (line,) = charges_of(row(ActionType="postpay_deduct_s")).lines()
    assert line.pricing_category is PricingCategory.DYNAMIC


def test_days_outside_what_was_asked_for_are_left_out() -> None:
    assert charges_of(row(), since=MARCH + 5 * DAY).lines() == ()
    assert charges_of(row(), until=MARCH + 4 * DAY).lines() == ()
    assert len(charges_of(row(), since=MARCH + 4 * DAY + DAY / 2).lines()) == 1


@given(
    cost=some.decimals(Decimal("-1e6"), Decimal("1e6"), places=8),
    start=some.integers(0, 86_400 * 20),
    seconds=some.integers(1, 86_400 * 40),
)
def test_however_long_a_charge_is_its_days_add_up(cost: Decimal, start: int, seconds: int) -> None:
    begins = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=start)
    ends = begins + timedelta(seconds=seconds - 1)
    local = timedelta(hours=8)
    times = {
        "FeeBeginTime": f"{begins + local:%Y-%m-%d %H:%M:%S}",
        "FeeEndTime": f"{ends + local:%Y-%m-%d %H:%M:%S}",
    }
    found = row(ComponentSet=[{"RealCost": f"{cost:.8f}"}], ActionType="postpay_deduct_m", **times)
    lines = charges_of(found, until=MARCH + 90 * DAY).lines()
    assert sum(line.billed_cost.amount for line in lines) == cost
    assert all(begin_of(line.charge_period_start) == line.charge_period_start for line in lines)


# --- months


def test_months_are_those_of_china() -> None:
    assert str(Month.of(datetime(2026, 2, 28, 15, 59, tzinfo=UTC))) == "2026-02"
    assert str(Month.of(datetime(2026, 2, 28, 16, tzinfo=UTC))) == "2026-03"
    assert Month(2026, 1).plus(-1) == Month(2025, 12)
    assert Month(2024, 2).begins == datetime(2024, 1, 31, 16, tzinfo=UTC)


class Answers:
    """Answers from a table of months, and keeps what it was asked."""

    cloud = "tencent"

    def __init__(self, details: Mapping[str, list[dict[str, Any]]], **others: dict[str, Any]) -> None:
        self._details = details
        self._others = others
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def call(self, shard: Shard, service: str, action: str, /, **parameters: Any) -> dict[str, Any]:
        del shard, service
        self.asked.append((action, parameters))
        if action in self._others:
            return self._others[action]
        if action == "DescribeBillSummaryByProduct":
            records = self._details.get(parameters["BeginTime"], [])
            cost = sum(Decimal(part["RealCost"]) for each in records for part in each["ComponentSet"])
            overview = [{"BusinessCode": "p_cvm", "RealTotalCost": f"{cost:.8f}"}] if records else None
            return {"Ready": 1, "SummaryOverview": overview}
        records = [] if "PayMode" in parameters else self._details.get(parameters["Month"], [])
        return {"DetailSet": records[parameters["Offset"] :][: parameters["Limit"]], "Total": len(records)}


def bill_of(answers: Answers, since: datetime, until: datetime, now: datetime) -> Bill:
    reader = BillReader(answers, most_rows=1_000, page_rows=300)
    span = Span(since, until, now, 1)
    found = Bill(reader, CostExplorer(answers), SHARD, [SpendScope()], span, account="")
    found.read(Payer(SHARD))
    return found


def test_what_is_settled_in_the_next_month_belongs_to_the_month_of_its_use() -> None:
    """The last hour of February is paid for, and stands in the bill, on the first of March."""
    last = record(
        FeeBeginTime="2026-02-28 23:00:00", FeeEndTime="2026-02-28 23:59:59", BillDay="2026-03-01 00:00:00", Id="2"
    )
    first = record(FeeBeginTime="2026-02-28 22:00:00", FeeEndTime="2026-02-28 22:59:59")
    answers = Answers({"2026-02": [first], "2026-03": [last]})
    february = MARCH - 28 * DAY
    lines = list(bill_of(answers, february, MARCH, MARCH + 9 * DAY).lines_of(SpendScope()))
    assert [line.billed_cost.amount for line in lines] == [Decimal("17.4")]
    assert [line.charge_period_start for line in lines] == [MARCH - DAY]
    later = Answers({"2026-02": [first], "2026-03": [last]})
    bill_of(later, february, MARCH, MARCH + 99 * DAY)
    asked = [parameters["Month"] for action, parameters in later.asked if action == "DescribeBillDetail"]
    assert asked == ["2026-02", "2026-03", "2026-01"], "and no month after that one"


def test_no_month_to_come_is_asked_about() -> None:
    answers = Answers({"2026-03": [record()]})
    bill_of(answers, MARCH, MARCH + 31 * DAY, MARCH + 9 * DAY)
    months = [asked["Month"] for action, asked in answers.asked if action == "DescribeBillDetail"]
    assert months == ["2026-03", "2026-02"]


def test_the_next_page_is_asked_for_with_the_context_of_the_last() -> None:
    answers = Answers({"2026-03": [record(Id=str(number)) for number in range(7)]})
    reader = BillReader(answers, most_rows=1_000, page_rows=3)
    assert sum(len(rows) for rows in reader.detail(Payer(SHARD), Month(2026, 3))) == 7
    assert [asked["Offset"] for _, asked in answers.asked] == [0, 3, 6]
    assert [asked["NeedRecordNum"] for _, asked in answers.asked] == [1, 0, 0]


@pytest.mark.parametrize(
    "answer",
    [
        {"Ready": "1", "SummaryOverview": []},
        {"SummaryOverview": []},
        {"Ready": 1, "SummaryOverview": {}},
        {"Ready": 1, "SummaryOverview": [{"BusinessCode": "p_cvm", "RealTotalCost": 1.5}]},
    ],
)
def test_totals_of_another_form_are_not_believed(answer: dict[str, Any]) -> None:
    answers = Answers({}, DescribeBillSummaryByProduct=answer)
    with pytest.raises(ProviderError, match="not as documented"):
        bill_of(answers, MARCH, MARCH + DAY, MARCH + 9 * DAY)


# --- budgets of the console


def budget(**changed: Any) -> dict[str, Any]:
    return {
        "BudgetId": "1963509727611473921",
        "BudgetName": "gpus",
        "BudgetQuota": "5000.50",
        "BudgetQuotaJson": None,
        "CycleType": "MONTH",
        "PlanType": "FIX",
        "FeeType": "REAL_COST",
        "Dimensions": "COST",
        "DimensionsRange": None,
        "WarnJson": [{"WarnType": "ACTUAL", "CalType": "PERCENTAGE", "ThresholdValue": "80.00"}],
        "WaveThresholdJson": None,
        "BudgetStatus": "ACTIVE",
        "RealCost": "12.30",
        "CurDateDesc": "2026-03",
        "PayerUin": 100012345678,
        **changed,
    }


def budgets_of(*records: dict[str, Any], **changed: Any) -> Any:
    data = {"Total": len(records), "Records": list(records)}
    answers = Answers({}, DescribeBudget={"Code": 0, "Message": "ok", "Data": data, **changed})
    return read_budgets(answers, SHARD)


def test_a_budget_of_the_console_is_told_in_our_words() -> None:
    limits = {
        "OwnerUins": ["100087654321"],
        "RegionIds": ["1"],
        "Tags": [{"TagKey": "team", "TagValue": ["nlp"]}],
        "Business": None,
    }
    (found,) = budgets_of(budget(DimensionsRange=limits))
    assert found.scope == SpendScope(("tencent",), ("100087654321",), ("ap-guangzhou",), (("team", "nlp"),))
    assert (found.amount, found.period) == (Money(Decimal("5000.50"), "CNY"), "monthly")
    assert (found.actual_thresholds, found.spent) == (("80",), Money(Decimal("12.30"), "CNY"))
    assert found.unsupported == ""


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"DimensionsRange": {"Business": ["p_cvm"]}}, "limited by Business"),
        ({"DimensionsRange": {"RegionIds": ["47"]}}, "region of unknown number"),
        ({"DimensionsRange": {"Tags": [{"TagKey": "team", "TagValue": ["a", "b"]}]}}, "any of 2 values"),
        ({"FeeType": "CASH"}, "counts CASH"),
        ({"WaveThresholdJson": [{"Threshold": "100"}]}, "changes from day to day"),
        ({"WarnJson": [{"WarnType": "ACTUAL", "CalType": "ABS", "ThresholdValue": "10"}]}, "threshold is an amount"),
        ({"Dimensions": "RI"}, "counts RI"),
    ],
)
def test_what_we_cannot_express_of_a_budget_is_said(changed: dict[str, Any], words: str) -> None:
    (found,) = budgets_of(budget(**changed))
    assert words in found.unsupported


def test_a_budget_with_a_plan_has_the_amount_of_the_present_period() -> None:
    plan = [{"DateDesc": "2026-02", "Quota": "1"}, {"DateDesc": "2026-03", "Quota": "2"}]
    (found,) = budgets_of(budget(PlanType="CYCLE", BudgetQuota="", BudgetQuotaJson=plan))
    assert found.amount.amount == 2
    assert "differs from period to period" in found.unsupported


def test_budgets_that_are_over_are_left_out() -> None:
    assert budgets_of(budget(BudgetStatus="EXPIRED")) == []


@pytest.mark.parametrize("code", [1, -1, "0", None, True])
def test_success_without_a_code_of_zero_is_none(code: object) -> None:
    with pytest.raises(ProviderError):
        budgets_of(budget(), Code=code)


def test_fewer_budgets_than_announced_are_an_error() -> None:
    with pytest.raises(TruncatedReadError):
        budgets_of(Data={"Total": 3, "Records": []})
