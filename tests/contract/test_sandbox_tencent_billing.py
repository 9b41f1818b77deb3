"""The billing product of the Tencent Cloud emulator through the vendor's own SDK."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from tests.contract.test_sandbox_tencent import DAY, HOUR, LEADER, MEMBER, Cloud, cloud, machine

from cloudstand.world.billing import billed_until, charges
from cloudstand.world.kinds import Billing
from cloudstand.world.money import ChargeCategory, Money
from cloudstand.world.prices import currency_of
from cloudstand.world.records import Operation, OtherCharge

MARCH = datetime(2026, 2, 28, 16, tzinfo=timezone.utc)
DETAIL, BY_PRODUCT = "DescribeBillDetail", "DescribeBillSummaryByProduct"


def ask(here: Cloud, action: str, keys: Any = None, /, **parameters: Any) -> dict[str, Any]:
    return here.call("billing", action, keys, "", **parameters)


def detail(here: Cloud, keys: Any = None, /, **more: Any) -> list[dict[str, Any]]:
    found = ask(here, DETAIL, keys, **{"Offset": 0, "Limit": 300, "Month": "2026-03", **more})["DetailSet"]
    return list(found)


def cost(records: list[dict[str, Any]]) -> Decimal:
    return sum((Decimal(part["RealCost"]) for record in records for part in record["ComponentSet"]), Decimal(0))


@contextmanager
def spending(*more: Any) -> Iterator[Cloud]:
    """A machine in each of two accounts, five days into March."""
    with cloud(machine(), machine("other", account=MEMBER, tags={"team": "nlp"}), *more) as here:
        here.pass_time(4 * DAY)
        yield here


def test_the_detail_is_a_record_a_day_with_its_components() -> None:
    with spending() as here:
        records = detail(here, ResourceId=next(iter(here.world.machines)))
        assert {record["BusinessCode"] for record in records} == {"p_cvm"}
        first = records[-1]
        assert (first["ProductCode"], first["RegionId"], first["OwnerUin"]) == ("sp_cvm_gn7", "1", LEADER)
        assert (first["PayModeName"], first["ActionType"]) == ("按量计费", "postpay_deduct_d")
        assert first["BillDay"] == "2026-03-01 00:00:00"
        assert (first["FeeBeginTime"], first["FeeEndTime"]) == ("2026-03-01 00:00:00", "2026-03-01 23:59:59")
        assert first["ComponentSet"][0]["RealCost"] == "208.80000000"


def test_the_bill_is_as_late_as_the_worlds() -> None:
    with spending() as here:
        until = billed_until("tencent", here.world.now)
        real = sum(charge.billed.amount for charge in charges(here.world, "tencent", MARCH, until))
        assert abs(cost(detail(here)) - real) < Decimal("1e-6")
        assert max(record["FeeEndTime"] for record in detail(here)) < "2026-03-06 06:00:00"


def test_records_by_the_hour_add_up_to_the_same() -> None:
    with spending() as here:
        by_day = cost(detail(here))
        here.emulator.desk.settled = HOUR
        records = detail(here) + detail(here, Offset=300)
        assert len(records) > 300
        assert records[0]["ActionType"] == "postpay_deduct_h"
        assert abs(cost(records) - by_day) < Decimal("1e-5")


def test_pages_end_with_a_short_one_and_a_total_that_may_be_low() -> None:
    with spending() as here:
        whole = detail(here)
        answer = ask(here, DETAIL, Offset=0, Limit=3, Month="2026-03", NeedRecordNum=1)
        assert answer["Total"] == len(whole)
        assert answer["Context"]
        here.emulator.desk.total_short_by = 5
        pages = [detail(here, Offset=first, Limit=3) for first in range(0, len(whole) + 3, 3)]
        assert [record for page in pages for record in page] == whole
        assert ask(here, DETAIL, Offset=0, Limit=3, Month="2026-03", NeedRecordNum=1)["Total"] == len(whole) - 5
        assert ask(here, DETAIL, Offset=0, Limit=3, Month="2026-03")["Total"] == 0


def test_two_ends_choose_a_month_and_never_days() -> None:
    with spending() as here:
        ends = {"Month": "2020-01", "BeginTime": "2026-03-02 00:00:00", "EndTime": "2026-03-02 23:59:59"}
        assert detail(here, **ends) == detail(here)
        across = {"BeginTime": "2026-02-28 00:00:00", "EndTime": "2026-03-01 00:00:00"}
        assert here.refused("billing", DETAIL, Offset=0, Limit=1, **across) == "InvalidParameter"


@pytest.mark.parametrize(
    ("action", "parameters", "code"),
    [
        (DETAIL, {"Offset": 0, "Limit": 301, "Month": "2026-03"}, "InvalidParameterValue"),
        (DETAIL, {"Offset": 0, "Limit": 300}, "MissingParameter"),
        (DETAIL, {"Offset": 0, "Limit": 300, "Month": "2024-08"}, "InvalidParameterValue"),
        (DETAIL, {"Offset": 0, "Limit": 300, "Month": "2026-13"}, "InvalidParameterValue"),
        (DETAIL, {"Offset": 0, "Limit": 300, "Month": "2026-03", "PeriodType": "byPayTime"}, "Emulator.NotModelled"),
        (BY_PRODUCT, {"BeginTime": "2026-03", "EndTime": "2026-02"}, "InvalidParameter"),
        ("DescribeBillSummaryByTag", {"BeginTime": "2026-03", "EndTime": "2026-03"}, "MissingParameter"),
        ("DescribeBudget", {"PageNo": 1}, "MissingParameter"),
    ],
)
def test_what_is_asked_wrongly_is_refused(action: str, parameters: dict[str, Any], code: str) -> None:
    with cloud(machine()) as here:
        assert here.refused("billing", action, **parameters) == code


def test_totals_by_product_region_and_tag_agree_with_the_detail() -> None:
    with spending() as here:
        whole, month = cost(detail(here)), {"BeginTime": "2026-03", "EndTime": "2026-03"}
        for action, more in (
            (BY_PRODUCT, {}),
            ("DescribeBillSummaryByRegion", {}),
            ("DescribeBillSummaryByTag", {"TagKey": "team"}),
        ):
            answer = ask(here, action, **month, **more)
            assert answer["Ready"] == 1
            assert sum(Decimal(each["RealTotalCost"]) for each in answer["SummaryOverview"]) == whole
        tagged = ask(here, "DescribeBillSummaryByTag", **month, TagKey="team")["SummaryOverview"]
        assert {each["TagValue"] for each in tagged} == {"", "nlp"}
        (only,) = ask(here, "DescribeBillSummaryByTag", **month, TagKey="team", TagValue="nlp")["SummaryOverview"]
        assert only["TagValue"] == "nlp"


def test_groups_of_one_action_agree_as_well() -> None:
    with spending() as here:
        whole = cost(detail(here))
        for kind in ("business", "project", "region", "payMode", "tag"):
            more = {"TagKey": ["team"]} if kind == "tag" else {}
            groups = ask(here, "DescribeBillSummary", Month="2026-03", GroupType=kind, **more)["SummaryDetail"]
            assert sum(Decimal(each["RealTotalCost"]) for each in groups) == whole


def test_a_bill_that_is_prepared_says_so_and_has_nothing() -> None:
    with spending() as here:
        here.emulator.desk.ready = False
        answer = ask(here, BY_PRODUCT, BeginTime="2026-03", EndTime="2026-03")
        assert (answer["Ready"], answer["SummaryOverview"]) == (0, None)
        assert detail(here) == []


def test_a_tag_that_is_none_of_cost_allocation_is_unknown() -> None:
    with spending() as here:
        here.emulator.desk.tag_keys = frozenset({"project"})
        asked = {"BeginTime": "2026-03", "EndTime": "2026-03", "TagKey": "team"}
        assert here.refused("billing", "DescribeBillSummaryByTag", **asked) == "FailedOperation.TagKeyNotExist"
        assert all(record["Tags"] == [] for record in detail(here))


def test_who_leads_pays_for_members_unless_they_pay_themselves() -> None:
    with spending() as here:
        member = here.emulator.keys_of(MEMBER)
        assert {record["OwnerUin"] for record in detail(here)} == {LEADER, MEMBER}
        assert detail(here, member) == []
        others = ask(here, "DescribeBillDetailForOrganization", member, Offset=0, Limit=100, Month="2026-03")
        assert {record["OwnerUin"] for record in others["DetailSet"]} == {MEMBER}
        assert all("PayerUin" not in record for record in others["DetailSet"])
        here.emulator.desk.pay_themselves = frozenset({MEMBER})
        assert {record["OwnerUin"] for record in detail(here)} == {LEADER}
        assert {record["OwnerUin"] for record in detail(here, PayerUin=MEMBER)} == {MEMBER}
        assert {record["PayerUin"] for record in detail(here, member)} == {MEMBER}


def test_a_bill_of_somebody_else_is_not_shown() -> None:
    with spending() as here:
        asked = {"Offset": 0, "Limit": 1, "Month": "2026-03", "PayerUin": LEADER}
        member = here.emulator.keys_of(MEMBER)
        assert here.refused("billing", DETAIL, member, **asked) == "UnauthorizedOperation.CamNoAuth"
        nobody = {**asked, "PayerUin": "100099999999"}
        assert here.refused("billing", DETAIL, **nobody) == "UnauthorizedOperation.CamNoAuth"


def test_a_term_is_charged_once_on_the_day_it_begins() -> None:
    term_ends = MARCH + 31 * DAY
    prepaid = machine("paid", billing=Billing.PREPAID, prepaid_until=term_ends)
    with spending(prepaid) as here:
        (record,) = detail(here, PayMode="prePay")
        assert (record["ActionType"], record["BillDay"]) == ("prepay_renew", "2026-03-02 00:00:00")
        assert (record["FeeBeginTime"], record["FeeEndTime"]) == ("2026-03-02 00:00:00", "2026-03-31 23:59:59")


def test_what_is_no_machine_has_its_own_kind_of_record() -> None:
    with spending() as here:

        def charge(service: str, category: ChargeCategory, amount: str) -> None:
            money = Money(Decimal(amount), "CNY")
            here.world.charge(
                OtherCharge("tencent", LEADER, "", service, category, MARCH, MARCH + DAY, money, f"{service}-1")
            )

        charge("credit", ChargeCategory.CREDIT, "-5")
        charge("refund", ChargeCategory.ADJUSTMENT, "-2")
        charge("ai_platform", ChargeCategory.USAGE, "7")
        by_id = {record["ResourceId"]: record for record in detail(here)}
        assert by_id["credit-1"]["ComponentSet"][0]["VoucherPayAmount"] == "5.00000000"
        assert by_id["refund-1"]["ActionType"] == "recon_increase"
        assert by_id["ai_platform-1"]["BusinessCode"] == "p_tione"
        assert (by_id["refund-1"]["RegionId"], by_id["refund-1"]["RegionName"]) == ("0", "其他")


def _taxed(cloud: str) -> OtherCharge:
    money = Money(Decimal(3), currency_of(cloud))
    return OtherCharge(cloud, LEADER, "", "tax", ChargeCategory.TAX, MARCH, MARCH + DAY, money, "tax-1")


def test_the_international_site_tells_a_tax_with_each_component() -> None:
    with cloud(machine(cloud="tencent-intl"), cloud="tencent-intl") as here:
        here.pass_time(4 * DAY)
        here.world.charge(_taxed("tencent-intl"))
        parts = {record["ResourceId"]: record["ComponentSet"][0] for record in detail(here)}
        told = {name: (part["RealCost"], part["TaxAmount"]) for name, part in parts.items()}
        assert told["tax-1"] == ("0.00000000", "3.00000000")
        assert {part["Currency"] for part in parts.values()} == {"USD"}
        assert {tax for name, (_, tax) in told.items() if name != "tax-1"} == {"0.00000000"}


def test_a_bill_of_the_china_site_has_no_field_for_a_tax() -> None:
    """Its prices contain the tax: a world that charges one is told so, instead of a field that no bill has."""
    with spending() as here:
        assert all("TaxAmount" not in part for record in detail(here) for part in record["ComponentSet"])
        here.world.charge(_taxed("tencent"))
        asked = {"Offset": 0, "Limit": 1, "Month": "2026-03"}
        assert here.refused("billing", DETAIL, **asked) == "Emulator.NotModelled"


def test_daily_series_add_up_to_the_detail() -> None:
    with spending() as here:
        asked = {
            "BeginTime": "2026-03-01 00:00:00",
            "EndTime": "2026-03-06 23:59:59",
            "BillType": "1",
            "PeriodType": "day",
            "FeeType": "cost",
            "PageNo": 1,
            "PageSize": 100,
        }
        for dimension, names in (
            ("business", {"云服务器CVM", "云硬盘CBS"}),
            ("ownerUin", {LEADER, MEMBER}),
            ("tags", {"", "nlp"}),
        ):
            answer = ask(here, "DescribeCostExplorerSummary", **asked, Dimensions=dimension, TagKeyStr="team")
            assert {each["Name"] for each in answer["Detail"]} == names
            assert Decimal(answer["TotalDetail"]["Total"]) == cost(detail(here))
            assert answer["Detail"][0]["TimeDetail"][0]["Time"] == "2026-03-01 00:00:00"
        only = ask(
            here, "DescribeCostExplorerSummary", **asked, Dimensions="business", Conditions={"OwnerUins": MEMBER}
        )
        mine = [record for record in detail(here) if record["OwnerUin"] == MEMBER]
        assert Decimal(only["TotalDetail"]["Total"]) == cost(mine)
        consumed = {**asked, "BillType": "2", "Dimensions": "business"}
        assert here.refused("billing", "DescribeCostExplorerSummary", **consumed) == "UnsupportedOperation"


def test_budgets_have_a_second_layer_of_errors() -> None:
    with cloud(machine()) as here:
        desk = here.emulator.desk
        for name in ("a", "b", "c"):
            desk.set_up_budget(name, "100", account=LEADER, actual=["80"])
        desk.set_up_budget("theirs", "100", account=MEMBER)
        answer = ask(here, "DescribeBudget", PageNo=2, PageSize=2)
        assert (answer["Code"], answer["Data"]["Total"], answer["Data"]["Pages"]) == (0, 3, 2)
        assert [record["BudgetName"] for record in answer["Data"]["Records"]] == ["c"]
        assert ask(here, "DescribeBudget", PageNo=1, PageSize=9, CycleTypes=["DAY"])["Data"]["Total"] == 0
        desk.budget_code = 4001
        answer = ask(here, "DescribeBudget", PageNo=1, PageSize=2)
        assert (answer["Code"], "Data" in answer) == (4001, False)


def test_denials_are_the_vendors_and_cam_calls_the_product_finance() -> None:
    with spending() as here:
        here.emulator.allowed[LEADER] = {"finance:DescribeBillDetail"}
        assert detail(here)
        asked = {"BeginTime": "2026-03", "EndTime": "2026-03"}
        assert here.refused("billing", BY_PRODUCT, **asked) == "UnauthorizedOperation.CamNoAuth"
        here.emulator.allowed.clear()
        here.world.deny("tencent", LEADER, Operation.BILL)
        assert here.refused("billing", BY_PRODUCT, **asked) == "UnauthorizedOperation.CamNoAuth"


def test_what_is_settled_by_the_month_is_told_with_its_span() -> None:
    with spending() as here:
        here.pass_time(30 * DAY)
        money = Money(Decimal(62), "CNY")
        span = MARCH, MARCH + timedelta(days=31)
        here.world.charge(OtherCharge("tencent", LEADER, "", "line", ChargeCategory.USAGE, *span, money, "line-1"))
        (record,) = detail(here, ResourceId="line-1")
        assert record["ActionType"] == "postpay_deduct_m"
        assert (record["FeeBeginTime"], record["FeeEndTime"]) == ("2026-03-01 00:00:00", "2026-03-31 23:59:59")
        assert detail(here, ResourceId="line-1", Month="2026-04") == []
