"""What becomes of a bill on Alibaba Cloud when its answers are not whole, or not to be understood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, cast

import pytest

from costguard.domain.errors import ProviderError, RefusedError, ThrottledError
from costguard.domain.money import ChargeCategory, SpendReport, SpendScope
from costguard.domain.refs import Shard
from costguard.domain.resources import GapKind
from costguard.ports import Target
from costguard.providers.alibaba.billing.source import AlibabaSpend
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.billing.calendar import begin_of
from costguard.providers.kit.core.session import Identity

PAYER = "1234567890123456"
NOW = datetime(2026, 3, 4, 3, 0, tzinfo=timezone.utc)
EVERYTHING, SHANGHAI = SpendScope(), SpendScope(regions=("cn-shanghai",))
MONTH = begin_of(date(2026, 3, 1))


class Cloud:
    """Answers as told: records by day (`2026-03-01`) or cycle (`2026-03`), and sums by cycle."""

    cloud = "alibaba"

    def __init__(self) -> None:
        self.records: dict[str, list[dict[str, Any]]] = {}
        self.sums: dict[str, list[dict[str, Any]]] = {}
        self.data: dict[str, Any] = {}
        self.failing: dict[str, ProviderError] = {}
        self.asked: list[str] = []

    def identity(self) -> Identity:
        return Identity(PAYER, "acs:ram::1234567890123456:user/costguard", "RAMUser")

    def call(self, shard: Shard, service: str, operation: str, /, **parameters: Any) -> Mapping[str, Any]:
        assert (shard.region, service) == ("cn-hangzhou", "bss")
        cycle = parameters["BillingCycle"]
        asked = parameters.get("BillingDate", cycle)
        self.asked.append(f"{operation} {asked}")
        if asked in self.failing:
            raise self.failing[asked]
        if operation == "QueryBillOverview":
            items: Any = {"Item": self.sums.get(cycle, [])}
        else:
            kind = parameters.get("SubscriptionType")
            items = [each for each in self.records.get(asked, []) if kind in (None, each["SubscriptionType"])]
        return {"Data": {"BillingCycle": cycle, "AccountID": PAYER, "Items": items, **self.data}}


@pytest.fixture
def cloud() -> Cloud:
    made = Cloud()
    for day in (1, 2, 3):
        made.records[f"2026-03-0{day}"] = [record("10.5", BillingDate=f"2026-03-0{day}")]
    made.sums["2026-03"] = [record("31.5")]
    return made


def record(amount: str, **more: Any) -> dict[str, Any]:
    told = {"Item": "PayAsYouGoBill", "SubscriptionType": "PayAsYouGo", "ProductCode": "ecs", "Currency": "CNY"}
    return {**told, "InstanceID": "i-1", "Region": "华东2（上海）", "PretaxAmount": Decimal(amount), **more}


def read(cloud: Cloud, *scopes: SpendScope, since: datetime = MONTH) -> list[SpendReport]:
    spend = AlibabaSpend(cast("AlibabaSession", cloud), now=lambda: NOW)
    wanted: Sequence[SpendScope] = scopes or (EVERYTHING,)
    found = spend.read(Target("alibaba", organisation=True), wanted, since, NOW)
    return [found[scope] for scope in wanted]


def assert_gap(report: SpendReport, kind: GapKind, *words: str) -> None:
    (gap,) = report.gaps
    assert (report.lines, report.complete_until, gap.kind, gap.what) == ((), None, kind, "billing")
    assert all(word in gap.detail for word in words)


def test_a_whole_bill_is_complete_up_to_a_day_before_yesterday_ends(cloud: Cloud) -> None:
    (report,) = read(cloud)

    assert (report.gaps, report.complete_until, report.read_at) == ((), begin_of(date(2026, 3, 3)), NOW)
    assert [line.billed_cost.amount for line in report.lines] == [Decimal("10.5")] * 3
    assert {line.sub_account_id for line in report.lines} == {PAYER}


def test_fewer_records_than_promised_are_no_bill(cloud: Cloud) -> None:
    cloud.data = {"TotalCount": 2}
    assert_gap(read(cloud)[0], GapKind.TRUNCATED, "1 of 2 records")


def test_pages_without_end_are_no_bill(cloud: Cloud) -> None:
    cloud.data = {"NextToken": "again"}
    assert_gap(read(cloud)[0], GapKind.TRUNCATED, "token came twice")


@pytest.mark.parametrize(
    "wrong",
    [{"BillingCycle": "2026-02"}, {"AccountID": ""}, {"Items": {"Item": 1}}, {"Items": [1]}, {"TotalCount": "1"}],
)
def test_an_answer_of_another_form_is_no_bill(cloud: Cloud, wrong: dict[str, Any]) -> None:
    cloud.data = wrong
    (report,) = read(cloud)
    assert (report.lines, report.complete_until, len(report.gaps)) == ((), None, 1)


@pytest.mark.parametrize("asked", ["2026-03-02", "2026-03", "2025-11"])
def test_whatever_fails_leaves_no_charges_and_one_gap(cloud: Cloud, asked: str) -> None:
    cloud.failing[asked] = ThrottledError(
        "bss: slow down", operation="bss:DescribeInstanceBill", code="Throttling.User"
    )
    assert_gap(read(cloud)[0], GapKind.THROTTLED, "slow down")


def test_where_the_first_day_is_refused_nothing_else_is_asked(cloud: Cloud) -> None:
    cloud.failing["2026-03-01"] = RefusedError("no", operation="bss:DescribeInstanceBill", code="NotApplicable")
    (report,) = read(cloud)

    assert cloud.asked == ["DescribeInstanceBill 2026-03-01"]
    assert "alibaba-intl" in report.gaps[0].fix


def test_a_region_that_is_not_understood_is_a_gap_where_regions_are_asked_for(cloud: Cloud) -> None:
    cloud.records["2026-03-02"].append(record("3", InstanceID="i-2", Region="火星"))
    cloud.sums["2026-03"].append(record("3"))
    everything, shanghai = read(cloud, EVERYTHING, SHANGHAI)

    assert everything.gaps == ()
    assert sum(line.billed_cost.amount for line in everything.lines) == Decimal("34.5")
    (gap,) = shanghai.gaps
    assert (gap.kind, "火星" in gap.detail, len(shanghai.lines)) == (GapKind.UNREADABLE, True, 3)


def test_orders_of_earlier_cycles_go_on_and_are_asked_for_once(cloud: Cloud) -> None:
    """A year bought on 3 January: its cycle's days are asked only as far as the order."""
    order = {"Item": "SubscriptionOrder", "SubscriptionType": "Subscription", "InstanceSpec": "ecs.gn7i-c8g1.2xlarge"}
    bought = record("3650", **order, ServicePeriod="1", ServicePeriodUnit="年", InstanceID="i-9")
    cloud.records |= {"2026-01": [bought], "2026-01-03": [bought], "2026-02": [record("5", **order)]}
    spend = AlibabaSpend(cast("AlibabaSession", cloud), now=lambda: NOW)
    target = Target("alibaba", organisation=True)
    spend.read(target, [EVERYTHING], MONTH, NOW)
    (report,) = spend.read(target, [EVERYTHING], MONTH, NOW).values()

    used = [line for line in report.lines if line.resource_id == "i-9"]
    assert [line.effective_cost.amount for line in used] == [Decimal(10)] * 2
    assert {(line.billed_cost.amount, line.charge_category, line.accelerated) for line in used} == {
        (Decimal(0), ChargeCategory.USAGE, True)
    }
    assert [asked for asked in cloud.asked if " 2026-01" in asked] == [
        f"DescribeInstanceBill 2026-01{day}" for day in ("", "-01", "-02", "-03")
    ]
    assert len([asked for asked in cloud.asked if asked.endswith(" 2024-10")]) == 1, "the last of eighteen cycles"
    assert not [asked for asked in cloud.asked if asked.endswith(" 2024-09")]


def test_time_that_has_not_come_is_not_asked_about(cloud: Cloud) -> None:
    (report,) = read(cloud, since=NOW + timedelta(days=1))
    assert (report.lines, report.complete_until, cloud.asked) == ((), None, [])


def test_a_cycle_that_is_over_takes_back_nothing(cloud: Cloud) -> None:
    """What its last days lack is on its last day instead."""
    cloud.records["2026-02-01"] = [record("40", BillingDate="2026-02-01")]
    cloud.sums["2026-02"] = [record("100")]
    (report,) = read(cloud, since=begin_of(date(2026, 2, 1)))

    assert report.complete_until == begin_of(date(2026, 3, 3))
    (missing,) = (line for line in report.lines if not line.resource_id)
    assert (missing.billed_cost.amount, missing.charge_period_start) == (Decimal(60), begin_of(date(2026, 2, 28)))


def test_what_begins_within_a_cycle_is_not_held_against_the_whole(cloud: Cloud) -> None:
    (report,) = read(cloud, since=begin_of(date(2026, 3, 2)))
    assert sum(line.billed_cost.amount for line in report.lines) == 21


def test_the_present_days_missing_records_come_after_what_is_complete(cloud: Cloud) -> None:
    cloud.sums["2026-03"] = [record("50")]
    (report,) = read(cloud)

    (missing,) = (line for line in report.lines if not line.resource_id)
    assert missing.billed_cost.amount == Decimal("18.5")
    assert missing.charge_period_start == report.complete_until == begin_of(date(2026, 3, 3))


def test_records_beyond_a_final_overview_are_a_contradiction(cloud: Cloud) -> None:
    """And beyond one that is not final they are only ahead of it; in neither case is less spent."""
    cloud.records["2026-01-05"] = [record("40", BillingDate="2026-01-05")]
    cloud.sums |= {"2026-01": [record("39.5")], "2026-03": [record("20")]}
    (report,) = read(cloud, since=begin_of(date(2026, 1, 1)))
    (present,) = read(cloud)

    (gap,) = report.gaps
    assert (gap.kind, "0.50 CNY of 2026-01" in gap.detail) == (GapKind.UNREADABLE, True)
    assert sum(line.billed_cost.amount for line in report.lines) == Decimal("71.5")
    assert (present.gaps, len(present.lines)) == ((), 3)
