"""The Tencent Cloud emulator's monitor and prices, through the vendor's own SDK."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.contract.test_sandbox_tencent import (
    AT,
    DAY,
    HOUR,
    LEADER,
    MEMBER,
    MINUTE,
    Cloud,
    cloud,
    cpu_machine,
    machine,
)

from cloudstand.fleets import tencent_machine
from cloudstand.tencent.compute.catalogue import TYPES
from cloudstand.tencent.core.settings import CardSeries
from cloudstand.world import workload as does
from cloudstand.world.fleet import MachineSpec
from cloudstand.world.kinds import Billing
from cloudstand.world.records import Operation


def of(*ids: str) -> list[dict[str, Any]]:
    return [{"Dimensions": [{"Name": "InstanceId", "Value": native_id}]} for native_id in ids]


def ask(
    here: Cloud,
    metric: str,
    *,
    period: int = 60,
    since: datetime = AT - HOUR,
    until: datetime = AT - MINUTE,
    ids: Sequence[str] = (),
    **more: Any,
) -> dict[str, Any]:
    """GetMonitorData of the first machine, or of `ids`."""
    return here.call(
        "monitor",
        "GetMonitorData",
        Namespace="QCE/CVM",
        MetricName=metric,
        Period=period,
        StartTime=since.isoformat(),
        EndTime=until.isoformat(),
        Instances=of(*(ids or [here.world.fleet[0].native_id])),
        **more,
    )


def values(answer: dict[str, Any]) -> list[float]:
    return list(answer["DataPoints"][0]["Values"])


def four_cards(**more: Any) -> MachineSpec:
    return machine("four", "GN7.20XLARGE320", **more)


def test_gpu_use_is_a_mean_over_the_cards() -> None:
    """One busy card of four looks like a quarter of the use."""
    with cloud(four_cards(does=does.partly_idle(1, 2, 3))) as here:
        one_of_four = values(ask(here, "GpuUtil"))
    with cloud(four_cards(does=does.partly_idle())) as here:
        all_four = values(ask(here, "GpuUtil"))
    assert 91 / 4 >= max(one_of_four) > 91 / 4 * 0.75
    assert 91 >= max(all_four) > 91 * 0.5
    assert len(one_of_four) == len(all_four) == 60


def card(
    native_id: str, number: int | str, *, names: Sequence[str] = ("unInstanceId", "minorNumber")
) -> dict[str, Any]:
    pairs = zip(names, (native_id, str(number)), strict=True)
    return {"Dimensions": [{"Name": name, "Value": value} for name, value in pairs]}


def ask_cards(here: Cloud, *instances: dict[str, Any], metric: str = "Gpuutil") -> list[list[float]]:
    answer = here.call(
        "monitor",
        "GetMonitorData",
        Namespace="QCE/CVM",
        MetricName=metric,
        Period=60,
        StartTime=(AT - HOUR).isoformat(),
        EndTime=(AT - MINUTE).isoformat(),
        Instances=list(instances),
    )
    assert [each["Dimensions"] for each in answer["DataPoints"]] == [
        [*reversed(each["Dimensions"])] for each in instances
    ]
    return [each["Values"] for each in answer["DataPoints"]]


def test_each_card_has_its_own_use_and_their_mean_is_the_machines() -> None:
    with cloud(four_cards(does=does.partly_idle(1, 2, 3))) as here:
        native_id = here.world.fleet[0].native_id
        cards = ask_cards(here, *(card(native_id, number) for number in range(4)))
        machine = values(ask(here, "Gpuutil"))
        watts = ask_cards(here, *(card(native_id, number) for number in range(4)), metric="Gpupowdraw")
    assert [max(each) > 50 for each in cards] == [True, False, False, False]
    assert [len(each) for each in cards] == [60] * 4
    assert machine == pytest.approx([sum(each) / 4 for each in zip(*cards, strict=True)], abs=1e-5)
    assert max(watts[0]) > max(watts[1])


def test_a_card_that_is_not_there_has_no_points() -> None:
    with cloud(four_cards(), cpu_machine("cpu")) as here:
        native_id, bare = (spec.native_id for spec in here.world.fleet)
        asked = [card(native_id, 4), card(native_id, "x"), card(bare, 0), card("ins-00000000", 0)]
        assert ask_cards(here, *asked) == [[]] * 4


def test_metrics_of_the_machine_have_no_cards() -> None:
    with cloud(four_cards()) as here:
        asked = {
            "Namespace": "QCE/CVM",
            "MetricName": "CpuUsage",
            "Instances": [card(here.world.fleet[0].native_id, 0)],
        }
        assert here.refused("monitor", "GetMonitorData", **asked) == "InvalidParameterValue"


@pytest.mark.parametrize(
    ("told", "names", "expected"),
    [
        (CardSeries.DECLARED, ("InstanceId", "minorNumber"), "InvalidParameterValue"),
        (CardSeries.DOCUMENTED, ("InstanceId", "minorNumber"), "cards"),
        (CardSeries.DOCUMENTED, ("unInstanceId", "minorNumber"), "InvalidParameterValue"),
        (CardSeries.EMPTY, ("unInstanceId", "minorNumber"), "nothing"),
        (CardSeries.REFUSED, ("unInstanceId", "minorNumber"), "InvalidParameterValue"),
        (CardSeries.OVERLOOKED, ("unInstanceId", "minorNumber"), "mean"),
        (CardSeries.UNDECLARED, ("unInstanceId", "minorNumber"), "InvalidParameterValue"),
    ],
)
def test_what_is_told_of_cards_can_be_set(told: CardSeries, names: Sequence[str], expected: str) -> None:
    """No answer for a card was ever published: each of these may be the real one."""
    with cloud(four_cards(does=does.partly_idle(1, 2, 3)), monitor_cards=told) as here:
        native_id = here.world.fleet[0].native_id
        asked = [card(native_id, number, names=names) for number in (0, 4)]
        question = {"Namespace": "QCE/CVM", "MetricName": "Gpuutil", "Instances": asked}
        if expected == "InvalidParameterValue":
            assert here.refused("monitor", "GetMonitorData", **question) == expected
            return
        first, beyond = ask_cards(here, *asked)
        mean = values(ask(here, "Gpuutil"))
        assert (first, beyond) == {"cards": (first, []), "nothing": ([], []), "mean": (mean, mean)}[expected]
        assert expected != "cards" or max(first) > 50


def test_means_hide_peaks_the_more_the_longer_the_period() -> None:
    busy_minute = machine(does=does.one_spike(AT - 30 * MINUTE))
    with cloud(busy_minute) as here:
        assert max(values(ask(here, "GpuUtil", period=60))) == 96
        assert max(values(ask(here, "GpuUtil", period=300))) == pytest.approx(96 / 5)
        assert max(values(ask(here, "GpuUtil", period=3_600, until=AT))) == pytest.approx(96 / 60)
        # what is kept by another statistic is told under the name that was asked for
        told = ask(here, "GpuUtil", period=300, SpecifyStatistics=3)["DataPoints"][0]
        assert told["MaxValues"] == told["AvgValues"] == told["Values"]
        assert max(values(ask(here, "BaseCpuUsage", period=3_600, until=AT))) == 55


def test_the_ends_of_a_question_are_moved_down_and_the_last_belongs_to_it_below_an_hour() -> None:
    with cloud(machine()) as here:
        day = AT - DAY
        assert len(values(ask(here, "GpuUtil", period=300, since=day - HOUR, until=AT - HOUR))) == 289
        three_days = ask(here, "GpuUtil", period=3_600, since=AT - 3 * DAY, until=AT)
        assert len(values(three_days)) == 72
        odd = ask(here, "GpuUtil", period=300, since=AT - 39 * MINUTE, until=AT - 29 * MINUTE)
        assert (odd["StartTime"], odd["EndTime"]) == ("2026-03-02T16:20:00+08:00", "2026-03-02T16:30:00+08:00")
        assert odd["DataPoints"][0]["Timestamps"] == [
            float((AT + timedelta(minutes=shift)).timestamp()) for shift in (-40, -35, -30)
        ]


def test_what_was_not_measured_is_missing_and_not_zero() -> None:
    with cloud(
        machine("no agent", does=does.no_data()), machine("dies", does=does.agent_dies(AT - 30 * MINUTE))
    ) as here:
        without, dies = (spec.native_id for spec in here.world.fleet)
        assert values(ask(here, "GpuUtil", ids=[without])) == []
        assert values(ask(here, "CpuUsage", period=300, ids=[without])) == []
        assert len(values(ask(here, "BaseCpuUsage", period=300, ids=[without]))) == 12
        assert len(values(ask(here, "GpuUtil", ids=[dies]))) == 30
        here.world.silence(dies, AT - 50 * MINUTE, AT - 40 * MINUTE)
        assert len(values(ask(here, "GpuUtil", ids=[dies]))) == 20
        assert len(values(ask(here, "BaseCpuUsage", period=60, ids=[dies]))) == 60


def test_a_machine_that_is_off_or_has_no_cards_has_no_points() -> None:
    with cloud(cpu_machine("cpu"), machine(public_ip="203.0.113.7")) as here:
        bare, native_id = (spec.native_id for spec in here.world.fleet)
        assert values(ask(here, "GpuUtil", ids=[bare])) == []
        assert values(ask(here, "GpuMemUsage", ids=[native_id])) == []  # known to the monitor, not to this world
        here.call("cvm", "StopInstances", InstanceIds=[native_id])
        here.pass_time(HOUR)
        assert values(ask(here, "GpuUtil", since=AT + 5 * MINUTE, until=AT + HOUR, ids=[native_id])) == []
        gone = ask(here, "GpuUtil", ids=["ins-00000000"])
        assert (gone["DataPoints"][0]["Values"], gone["Msg"]) == ([], "")


def test_over_the_limit_the_answer_is_a_success_that_says_nothing() -> None:
    with cloud(*(machine(f"m{place}") for place in range(11))) as here:
        ids = [spec.native_id for spec in here.world.fleet]
        short: dict[str, Any] = {"since": AT - 10 * MINUTE, "until": AT - MINUTE}
        too_many = ask(here, "GpuUtil", ids=ids, **short)
        assert "10 instances and 1440 data points" in too_many["Msg"]
        assert [series["Values"] for series in too_many["DataPoints"]] == [[]] * 11
        assert ask(here, "GpuUtil", ids=ids[:10], **short)["Msg"] == ""
        long: dict[str, Any] = {"since": AT - 144 * MINUTE, "until": AT - MINUTE}
        enough = ask(here, "GpuUtil", ids=ids[:10], **long)
        assert (enough["Msg"], len(values(enough))) == ("", 144)
        assert ask(here, "GpuUtil", ids=ids[:10], since=AT - 145 * MINUTE, until=AT - MINUTE)["Msg"]
        assert ask(here, "GpuUtil", since=AT - DAY, until=AT)["Msg"]  # 1,441 points


def test_the_larger_limits_of_newer_pages_can_be_set() -> None:
    fleet = [machine(f"m{place}") for place in range(11)]
    with cloud(*fleet, monitor_instances=50, monitor_points=7_200) as here:
        ids = [spec.native_id for spec in here.world.fleet]
        assert ask(here, "GpuUtil", ids=ids)["Msg"] == ""


def test_points_are_kept_the_shorter_the_finer_they_are() -> None:
    old = tencent_machine("old", does.idle(), AT - 200 * DAY)
    with cloud(old) as here:
        for period, days in ((10, 1), (60, 15), (300, 31), (3_600, 93)):
            kept, lost = AT - days * DAY, AT - (days + 1) * DAY
            assert values(ask(here, "GpuUtil", period=period, since=kept, until=kept + HOUR)) != []
            assert values(ask(here, "GpuUtil", period=period, since=lost, until=lost + HOUR)) == []
        whole = ask(here, "GpuUtil", period=86_400, since=AT - 10 * DAY, until=AT)
        assert len(values(whole)) == 10
        assert whole["StartTime"] == "2026-02-20T00:00:00+08:00"  # days begin at midnight in UTC+8


def test_finer_periods_than_a_sensor_has_repeat_its_sample() -> None:
    with cloud(machine(does=does.busy())) as here:
        fine = ask(here, "GpuUtil", period=10, since=AT - 10 * MINUTE, until=AT - MINUTE)
        assert len(values(fine)) == 55
        assert len(set(values(fine))) == 10


def test_traffic_is_in_megabits_and_divides_inside_and_outside() -> None:
    public = machine("public", public_ip="203.0.113.7", does=does.busy())
    with cloud(machine("inside", does=does.busy()), public) as here:
        for spec, outside in zip(here.world.fleet, (False, True), strict=True):
            total = [0.0] * 12
            for name in ("LanOuttraffic", "LanIntraffic", "WanOuttraffic", "WanIntraffic"):
                found = values(ask(here, name, period=300, ids=[spec.native_id]))
                assert any(found) is (outside or name.startswith("Lan"))
                total = [a + b for a, b in zip(total, found, strict=True)]
            assert 16 < max(total) <= 32  # 4 MB/s


def test_metrics_are_described_and_known_in_any_spelling() -> None:
    with cloud(machine()) as here:
        described = here.call("monitor", "DescribeBaseMetrics", Namespace="QCE/CVM")["MetricSet"]
        by_name = {each["MetricName"]: each for each in described}
        # one current page spells them so, the vendor's own plugin GpuPowDraw and CPUUsage
        assert {"Gpuutil", "Gpupowdraw", "CpuUsage", "BaseCpuUsage"} <= set(by_name)
        assert by_name["Gpuutil"]["Periods"][2] == {"Period": "300", "StatType": ["avg"]}
        assert by_name["CpuUsage"]["Periods"][1] == {"Period": "60", "StatType": ["avg"]}
        assert by_name["CpuUsage"]["Periods"][2] == {"Period": "300", "StatType": ["max"]}
        # of a published listing: names of its own, of which pages have InstanceId alone
        assert by_name["Gpuutil"]["Dimensions"] == [{"Dimensions": ["minorNumber", "unInstanceId"]}]
        assert by_name["CpuUsage"]["Dimensions"] == [{"Dimensions": ["vm_uuid"]}]
        assert by_name["WanOuttraffic"]["Dimensions"] == [{"Dimensions": ["InstanceId"]}]
        assert (by_name["Gpuutil"]["Unit"], by_name["Gpupowdraw"]["Unit"]) == ("%", "0")
        power = ask(here, "GpuPowDraw")
        assert power["MetricName"] == "GpuPowDraw"
        assert 15 < max(values(power)) <= 31
        assert here.call("monitor", "DescribeBaseMetrics", Namespace="QCE/CDB")["MetricSet"] == []


def test_an_account_may_have_no_dimension_for_cards() -> None:
    with cloud(four_cards(), monitor_cards=CardSeries.UNDECLARED) as here:
        described = here.call("monitor", "DescribeBaseMetrics", Namespace="QCE/CVM", MetricName="GpuUtil")["MetricSet"]
        assert described[0]["Dimensions"] == [{"Dimensions": ["InstanceId"]}]
        assert len(values(ask(here, "GpuUtil"))) == 60


def test_questions_to_the_monitor_are_checked() -> None:
    with cloud(machine(), machine("other", account=MEMBER)) as here:
        good: dict[str, Any] = {
            "Namespace": "QCE/CVM",
            "MetricName": "GpuUtil",
            "Instances": of(here.world.fleet[0].native_id),
            "Period": 60,
            "StartTime": "2026-03-02T16:00:00+08:00",
            "EndTime": "2026-03-02T17:00:00+08:00",
        }
        for wrong in (
            {"MetricName": "GpuBusy"},
            {"Namespace": "QCE/CDB"},
            {"Period": 90},
            {"StartTime": "yesterday"},
            {"EndTime": "2026-03-01T17:00:00+08:00"},
            {"SpecifyStatistics": 8},
            {"Instances": [{"Dimensions": [{"Name": "gpuId", "Value": "0"}]}]},
        ):
            assert here.refused("monitor", "GetMonitorData", **{**good, **wrong}) == "InvalidParameterValue", wrong
        for way in ("2026-03-02T08:00:00Z", "2026-03-02T08:00:00+00:00", "2026-03-02T16:00:00"):
            told = here.call("monitor", "GetMonitorData", **{**good, "StartTime": way})
            assert told["StartTime"] == "2026-03-02T16:00:00+08:00"
        foreign = of(here.world.fleet[1].native_id)
        assert values(here.call("monitor", "GetMonitorData", **{**good, "Instances": foreign})) == []
        here.world.deny("tencent", LEADER, Operation.SIGNALS)
        assert here.refused("monitor", "GetMonitorData", **good) == "AuthFailure.UnauthorizedOperation"


# --- prices


def offers(here: Cloud, **wanted: str) -> list[dict[str, Any]]:
    chosen = [{"Name": name.replace("_", "-"), "Values": [value]} for name, value in wanted.items()]
    return list(here.call("cvm", "DescribeZoneInstanceConfigInfos", Filters=chosen)["InstanceTypeQuotaSet"])


def price(here: Cloud, kind: str, charge: str = "POSTPAID_BY_HOUR") -> dict[str, Any]:
    found = offers(here, instance_type=kind, instance_charge_type=charge, zone="ap-guangzhou-6")
    assert len(found) == 1
    return dict(found[0]["Price"])


def test_hours_cost_less_the_longer_a_machine_runs_where_there_are_steps() -> None:
    with cloud(machine()) as here:
        tiered, flat = price(here, "PNV4.7XLARGE116"), price(here, "GN7.2XLARGE32")
        steps = [tiered[f"UnitPrice{step}"] for step in ("", "SecondStep", "ThirdStep")]
        assert steps == [15.4, 13.1, 11.6]
        assert [flat[f"UnitPrice{step}"] for step in ("", "SecondStep", "ThirdStep")] == [8.7, 0, 0]
        assert tiered["OriginalPrice"] == 0  # not used, and neither null nor absent
        prepaid = price(here, "GN7.2XLARGE32", "PREPAID")
        assert prepaid["OriginalPrice"] > 0
        assert prepaid["UnitPrice"] == 0
        assert price(here, "GN7.2XLARGE32", "SPOTPAID")["UnitPrice"] == pytest.approx(3.48)


def test_every_type_of_the_catalogue_can_be_launched_and_is_quoted_at_its_price() -> None:
    with cloud(*(machine(name, name) for name in TYPES)) as here:
        quoted = {
            each["InstanceType"]: each["Price"]["UnitPrice"]
            for each in offers(here, instance_charge_type="POSTPAID_BY_HOUR", zone="ap-guangzhou-6")
        }
        assert quoted == {name: float(kind.hourly) for name, kind in TYPES.items()}
        shown = here.call("cvm", "DescribeInstances", Limit=100)["InstanceSet"]
        assert {each["InstanceName"] for each in shown if "GPUInfo" in each} == {
            name for name, kind in TYPES.items() if kind.gpus > 0
        }


def test_a_machine_quoted_otherwise_or_not_at_all_decides_for_its_type() -> None:
    other = machine(hourly=replace_amount("5.00"))
    with cloud(other, machine("silent", "GT4.4XLARGE96", hourly=None)) as here:
        assert price(here, "GN7.2XLARGE32")["UnitPrice"] == 5
        assert price(here, "GT4.4XLARGE96")["UnitPrice"] == 0


def replace_amount(amount: str) -> Any:
    hourly = machine().hourly
    assert hourly is not None
    return replace(hourly, amount=Decimal(amount))


def test_the_two_lists_of_types_spell_their_cards_differently() -> None:
    with cloud(machine()) as here:
        offered = offers(here, instance_type="GN7.LARGE20", zone="ap-guangzhou-6")[0]
        assert (offered["Gpu"], offered["GpuCount"], offered["Status"]) == (1, 0.25, "SELL")
        kinds = [{"Name": "instance-family", "Values": ["GN8"]}, {"Name": "zone", "Values": ["ap-guangzhou-6"]}]
        configs = here.call("cvm", "DescribeInstanceTypeConfigs", Filters=kinds)["InstanceTypeConfigSet"]
        assert [(each["GPU"], each["GpuType"], each["GpuMemory"]) for each in configs] == [(1, "NVIDIA P40", 24)]
        assert offers(here, instance_family="GN8")[0]["Status"] == "SOLD_OUT"
        two = [{"Name": "instance-type", "Values": ["GN7.LARGE20", "GN7.2XLARGE32"]}]
        code = "InvalidFilterValue.LimitExceeded"
        assert here.refused("cvm", "DescribeInstanceTypeConfigs", Filters=two) == code
        assert len(here.call("cvm", "DescribeZoneInstanceConfigInfos", Filters=two)["InstanceTypeQuotaSet"]) > 2
        sorts = [{"Name": "sort-keys", "Values": ["cpu:desc"]}]
        biggest = here.call("cvm", "DescribeZoneInstanceConfigInfos", Filters=sorts)["InstanceTypeQuotaSet"][0]
        assert biggest["InstanceType"] == "GT4.41XLARGE948"


def test_small_prices_of_disks_are_whole_in_one_field_only() -> None:
    with cloud(machine()) as here:
        hourly = here.call(
            "cbs", "InquiryPriceCreateDisks", DiskChargeType="POSTPAID_BY_HOUR", DiskType="CLOUD_PREMIUM", DiskSize=100
        )["DiskPrice"]
        assert (hourly["UnitPrice"], hourly["UnitPriceHigh"], hourly["OriginalPrice"]) == (0.04, "0.042", None)
        monthly = {"DiskChargeType": "PREPAID", "DiskType": "CLOUD_SSD", "DiskSize": 500}
        assert here.refused("cbs", "InquiryPriceCreateDisks", **monthly) == "MissingParameter"
        told = here.call("cbs", "InquiryPriceCreateDisks", **monthly, DiskChargePrepaid={"Period": 1})["DiskPrice"]
        assert (told["UnitPrice"], told["ChargeUnit"]) == (None, None)
        assert told["OriginalPrice"] > 0


def test_a_price_asked_for_one_machine_holds_its_disks() -> None:
    with cloud(machine()) as here:
        wanted = {"Placement": {"Zone": "ap-guangzhou-6"}, "ImageId": "img-487zeit5", "InstanceType": "GN7.2XLARGE32"}
        bare = here.call("cvm", "InquiryPriceRunInstances", **wanted)["Price"]
        disk = {"DiskType": "CLOUD_PREMIUM", "DiskSize": 100}
        more = here.call("cvm", "InquiryPriceRunInstances", **wanted, SystemDisk=disk)["Price"]
        assert more["InstancePrice"]["UnitPrice"] == pytest.approx(bare["InstancePrice"]["UnitPrice"] + 0.042)
        assert bare["BandwidthPrice"]["ChargeUnit"] == "GB"
        ask_for = "cvm", "InquiryPriceRunInstances"
        assert here.refused(*ask_for, **{**wanted, "Placement": {}}) == "MissingParameter"
        unknown = {**wanted, "InstanceType": "GN1.X"}
        assert here.refused(*ask_for, **unknown) == "InvalidParameterValue.InstanceTypeNotFound"
        assert here.refused(*ask_for, **wanted, InstanceChargeType="PREPAID") == "MissingParameter"


def test_what_is_given_back_is_told_of_prepaid_machines_only() -> None:
    with cloud(machine(), machine("prepaid", billing=Billing.PREPAID, prepaid_until=AT + 10 * DAY)) as here:
        hourly, prepaid = (spec.native_id for spec in here.world.fleet)
        told = here.call("cvm", "InquiryPriceTerminateInstances", InstanceIds=[prepaid])["InstanceRefundsSet"]
        assert told[0]["Refunds"] == pytest.approx(240 * 8.70 * 0.55)
        code = "UnsupportedOperation.InstanceChargeType"
        assert here.refused("cvm", "InquiryPriceTerminateInstances", InstanceIds=[hourly]) == code
