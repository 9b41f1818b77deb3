"""CloudMonitor as the emulator shows it: what is measured, when and of whom, in pages, and its quiet errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.contract.alibaba_asking import AT, CPU_ONLY, DAY, HOUR, MINUTE, Cloud, cloud_of
from tests.network_places import card, place
from tests.world_ports.translate import to_product, to_world

from cloudstand.alibaba.compute.metrics import METRICS
from cloudstand.fleets import ALIBABA_ACCOUNT, alibaba_machine
from cloudstand.world import workload as does
from cloudstand.world.fleet import MachineSpec
from cloudstand.world.kinds import Accelerator, AcceleratorKind
from cloudstand.world.sensors import Sensor
from cloudstand.world.workload import SignalName, Workload

MEMBER = "1098765432109876"
NAMESPACE = "acs_ecs_dashboard"
MACHINE_GPU, CARD_GPU, CPU = "instance_gpu_gpu_usedutilization", "gpu_gpu_usedutilization", "CPUUtilization"
INSIDE = ("IntranetInRate", "IntranetOutRate")
OUTSIDE = ("VPC_PublicIP_InternetInRate", "VPC_PublicIP_InternetOutRate")
OF_THE_CLASSIC_NETWORK = ("InternetInRate", "InternetOutRate")
CHINA = timedelta(hours=8)


def machine(name: str, workload: Workload, cards: float = 1, **more: Any) -> MachineSpec:
    made = alibaba_machine(name, workload, AT - 20 * DAY, **more)
    return replace(made, accelerator=replace(made.accelerator, count=cards))


BUSY = machine("busy", does.busy())
HALF = machine("half", does.partly_idle(1), cards=2)
SLICE = machine("slice", does.busy(), cards=0.25)
UNSEEN = machine("unseen", does.no_data())
DIED = machine("died", does.agent_dies(AT - 5 * HOUR))
SPIKE = machine("spike", does.one_spike(AT - 90 * MINUTE))
FPGA = replace(machine("fpga", does.busy()), accelerator=Accelerator(AcceleratorKind.FPGA, "VU9P", 1))
WEB = replace(machine("web", does.busy()), accelerator=to_world(CPU_ONLY))
NEXT_DOOR = machine("next-door", does.busy(), account=MEMBER)
NEW = replace(machine("new", does.busy()), launched_at=AT - 90 * MINUTE)
PUBLIC = machine("public", does.busy(), public_ip="203.0.113.7")
FURTHER = "203.0.113.8"


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with cloud_of(BUSY, HALF, SLICE, UNSEEN, DIED, SPIKE, FPGA, WEB, NEXT_DOOR, NEW, PUBLIC) as opened:
        shard = PUBLIC.ref.shard
        further = card("eni-2", PUBLIC.native_id, to_product(shard), primary=False, public_ips=(("10.0.0.7", FURTHER),))
        opened.world.networks.place(to_world(place(cards=[further], shard=to_product(shard))))
        yield opened


def ms(moment: datetime) -> str:
    return str(int(moment.timestamp() * 1000))


def query(metric: str, *specs: MachineSpec, hours: float = 24, period: int = 3600, **more: str) -> dict[str, str]:
    return {
        "Namespace": NAMESPACE,
        "MetricName": metric,
        "Period": str(period),
        "StartTime": ms(AT - hours * HOUR),
        "EndTime": ms(AT),
        "Dimensions": json.dumps([{"instanceId": spec.native_id} for spec in specs]),
        **more,
    }


def points(cloud: Cloud, metric: str, *specs: MachineSpec, **more: Any) -> list[dict[str, Any]]:
    answer = cloud.ask("DescribeMetricList", query(metric, *specs, **more))
    assert (answer["Code"], answer["Success"]) == ("200", True)
    assert isinstance(answer["Datapoints"], str)  # a text of JSON within the JSON
    return list(json.loads(answer["Datapoints"] or "[]"))


def test_points_are_the_worlds_samples_summed_up(cloud: Cloud) -> None:
    """The closed form that makes an hour cheap says what its sixty samples say."""
    for name, signal in ((CARD_GPU, SignalName.GPU), (CPU, SignalName.CPU)):
        sensor = Sensor(cloud.world.machines[BUSY.native_id], signal, 0 if signal is SignalName.GPU else None)
        for period in (900, 3600):
            for point in points(cloud, name, BUSY, period=period, hours=6):
                begin = point["timestamp"] // 1000
                samples = list(sensor.samples(begin, begin + period, AT))
                assert point["Maximum"] == pytest.approx(max(samples), abs=1e-4)
                assert point["Minimum"] == pytest.approx(min(samples), abs=1e-4)
                assert point["Average"] == pytest.approx(sum(samples) / len(samples), abs=1e-4)


def test_a_window_is_open_on_the_left_and_only_whole_periods_are_told(cloud: Cloud) -> None:
    stamps = [point["timestamp"] for point in points(cloud, CPU, BUSY, hours=3)]
    hour = 3_600_000
    assert stamps == [int(ms(AT)) - 2 * hour, int(ms(AT)) - hour]  # not the one at its beginning, nor the running one
    just_before = query(CPU, BUSY, StartTime=str(int(ms(AT)) - 3 * hour - 1000))
    assert len(json.loads(cloud.ask("DescribeMetricList", just_before)["Datapoints"])) == 3


@pytest.mark.parametrize(
    ("metric", "period", "an_hour"),
    [(CARD_GPU, 15, 240), (CARD_GPU, 60, 60), (CARD_GPU, 900, 4), (CPU, 60, 60), (CPU, 900, 4), (CPU, 3600, 1)],
)
def test_every_published_period_is_there(cloud: Cloud, metric: str, period: int, an_hour: int) -> None:
    found = points(cloud, metric, BUSY, period=period, hours=2, Length="1440")
    assert len(found) == 2 * an_hour - 1
    assert {point["userId"] for point in found} == {ALIBABA_ACCOUNT}
    if period <= 60:
        assert all(point["Minimum"] == point["Maximum"] for point in found)


def test_each_card_has_a_series_and_the_machine_has_one_over_them(cloud: Cloud) -> None:
    """The mean over the cards of a half idle machine hides the busy one; its maximum does not."""
    cards = points(cloud, CARD_GPU, HALF, hours=2)
    assert [card["gpuId"] for card in cards] == ["0", "1"]
    assert (cards[0]["Maximum"] > 70, cards[1]["Maximum"]) == (True, 0)
    (whole,) = points(cloud, MACHINE_GPU, HALF, hours=2)
    assert "gpuId" not in whole
    assert whole["Maximum"] == cards[0]["Maximum"]
    assert whole["Average"] == pytest.approx(cards[0]["Average"] / 2, abs=1e-3)
    one_card = query(CARD_GPU, Dimensions=json.dumps([{"instanceId": HALF.native_id, "gpuId": "1"}]), hours=2)
    (second,) = json.loads(cloud.ask("DescribeMetricList", one_card)["Datapoints"])
    assert second["gpuId"] == "1"
    assert len(points(cloud, CARD_GPU, SLICE, hours=2)) == 1  # a slice of a card has a series of its own


def test_cards_are_only_seen_where_driver_and_agent_run(cloud: Cloud) -> None:
    for spec in (UNSEEN, FPGA, WEB):
        answer = cloud.ask("DescribeMetricList", query(CARD_GPU, spec))
        assert answer["Datapoints"] == ""  # there never was a series
        assert len(points(cloud, CPU, spec, hours=2)) == 1
    assert points(cloud, CARD_GPU, DIED, hours=4) == []
    assert cloud.ask("DescribeMetricList", query(CARD_GPU, DIED, hours=4))["Datapoints"] == "[]"
    assert len(points(cloud, CARD_GPU, DIED, hours=8)) == 2
    assert len(points(cloud, CPU, DIED, hours=8)) == 7
    ids = ",".join(spec.native_id for spec in (BUSY, UNSEEN, DIED, NEXT_DOOR))
    told = cloud.ask("DescribeMonitoringAgentStatuses", InstanceIds=ids)["NodeStatusList"]["NodeStatus"]
    assert [one["Status"] for one in told] == ["running", "not_installed", "stopped"]


def test_what_did_not_run_has_no_points(cloud: Cloud) -> None:
    """Launched in the middle of an hour: that hour has a point from the samples there are."""
    stamps = [point["timestamp"] for point in points(cloud, CPU, NEW, hours=5)]
    assert stamps == [int(ms(AT - 2 * HOUR)), int(ms(AT - HOUR))]
    assert len(points(cloud, CPU, NEW, hours=5, period=900)) == 6


def test_one_busy_minute_shows_in_the_maximum_and_hides_in_the_mean(cloud: Cloud) -> None:
    highest = max(points(cloud, CARD_GPU, SPIKE, hours=4), key=lambda point: float(point["Maximum"]))
    assert (highest["Maximum"], highest["Minimum"]) == (96.0, 0.0)
    assert highest["Average"] == pytest.approx(1.6)


def test_all_rates_are_the_worlds_network_in_bits(cloud: Cloud) -> None:
    """What has no public address sends everything within the VPC; the classic network's metrics are empty there."""
    for spec, names in ((BUSY, INSIDE), (PUBLIC, (*INSIDE, *OUTSIDE))):
        sensor = Sensor(cloud.world.machines[spec.native_id], SignalName.NETWORK)
        total = sum(point["Maximum"] for name in names for point in points(cloud, name, spec, hours=2))
        begin = int((AT - HOUR).timestamp())
        assert total / 8 == pytest.approx(sensor.peak(begin, begin + 3600, AT)[0])
        assert [points(cloud, name, spec) for name in OF_THE_CLASSIC_NETWORK] == [[], []]
    assert [points(cloud, name, BUSY) for name in OUTSIDE] == [[], []]


def test_each_public_address_has_a_series_of_its_own(cloud: Cloud) -> None:
    for name in OUTSIDE:
        found = points(cloud, name, PUBLIC, hours=2)
        assert [point["ip"] for point in found] == ["203.0.113.7", FURTHER]
        assert found[0]["Maximum"] == found[1]["Maximum"] > 0
        wanted = json.dumps([{"instanceId": PUBLIC.native_id, "ip": FURTHER}])
        assert [point["ip"] for point in points(cloud, name, PUBLIC, hours=2, Dimensions=wanted)] == [FURTHER]
    (told,) = cloud.ask("DescribeMetricMetaList", Namespace=NAMESPACE, MetricName=OUTSIDE[0])["Resources"]["Resource"]
    assert told["Dimensions"] == "userId,instanceId,ip"


def test_an_address_may_be_without_points(cloud: Cloud) -> None:
    cloud.emulator.networks.unmeasured.add(FURTHER)
    try:
        assert {point["ip"] for point in points(cloud, OUTSIDE[0], PUBLIC)} == {"203.0.113.7"}
    finally:
        cloud.emulator.networks.unmeasured.clear()


def test_pages_hold_what_is_asked_for_and_nothing_twice(cloud: Cloud) -> None:
    asked = query(CARD_GPU, BUSY, HALF, DIED, UNSEEN, hours=25, Length="7")
    found: list[tuple[str, str, int]] = []
    sizes, token = [], ""
    while True:
        answer = cloud.ask("DescribeMetricList", {**asked, **({"NextToken": token} if token else {})})
        page = json.loads(answer["Datapoints"])
        sizes.append(len(page))
        found += [(point["instanceId"], point["gpuId"], point["timestamp"]) for point in page]
        token = answer.get("NextToken", "")
        if not token:
            break
    assert len(found) == len(set(found)) == 24 * 3 + 19
    assert sizes == [7] * 13  # the last page is full, and yet the last
    whole = points(cloud, CARD_GPU, BUSY, HALF, DIED, UNSEEN, hours=25)
    assert [(point["instanceId"], point["gpuId"], point["timestamp"]) for point in whole] == found


def test_a_thousand_points_a_page_unless_asked_for_more(cloud: Cloud) -> None:
    asked = query(CPU, BUSY, hours=30, period=60)
    assert len(json.loads(cloud.ask("DescribeMetricList", asked)["Datapoints"])) == 1000
    assert len(json.loads(cloud.ask("DescribeMetricList", asked, Length="1440")["Datapoints"])) == 1440


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"MetricName": "gpu_memory_userdutilization"}, "404"),  # as an appendix of the documents spells it
        ({"Namespace": "acs_ecs"}, "404"),
        ({"Period": "300"}, "400"),
        ({"Period": "15"}, "400"),
        ({"Length": "1441"}, "400"),
        ({"Length": "0"}, "400"),
        ({"Dimensions": json.dumps([{"instanceId": f"i-{n}"} for n in range(51)])}, "400"),
        ({"Dimensions": json.dumps([{"instanceId": f"i-{n}"} for n in range(50)])}, "200"),
        ({"Dimensions": json.dumps({"instanceId": BUSY.native_id})}, "200"),
        ({"Dimensions": "i-1"}, "400"),
        ({"Dimensions": "[1]"}, "400"),
        ({"Dimensions": '[{"instance": "i-1"}]'}, "400"),
        ({"Dimensions": '[{"instanceId": "i-1", "gpuId": "0"}]'}, "400"),  # the CPU has no cards
        ({"StartTime": ms(AT)}, "400"),
        ({"StartTime": ms(AT - 32 * DAY)}, "400"),
        ({"StartTime": "yesterday"}, "400"),
    ],
)
def test_errors_look_like_success_to_who_reads_the_status_alone(
    cloud: Cloud, changed: dict[str, str], code: str
) -> None:
    answer = cloud.ask("DescribeMetricList", {**query(CPU, BUSY), **changed})  # the SDK raises nothing
    assert (answer["Code"], answer["Success"]) == (code, code == "200")
    assert ("Datapoints" in answer) is (code == "200")


def test_times_may_be_written_out(cloud: Cloud) -> None:
    in_china = query(CPU, BUSY, hours=3, StartTime=(AT - 3 * HOUR + CHINA).strftime("%Y-%m-%d %H:%M:%S"))
    in_utc = query(CPU, BUSY, hours=3, StartTime=(AT - 3 * HOUR).strftime("%Y-%m-%dT%H:%M:%SZ"))
    both = [cloud.ask("DescribeMetricList", asked)["Datapoints"] for asked in (in_china, in_utc)]
    assert both[0] == both[1]
    assert len(json.loads(both[0])) == 2


def test_points_are_kept_for_a_week_a_month_or_a_quarter(cloud: Cloud) -> None:
    week = query(CARD_GPU, BUSY, period=15, StartTime=ms(AT - 8 * DAY), EndTime=ms(AT - 7 * DAY))
    assert json.loads(cloud.ask("DescribeMetricList", week)["Datapoints"]) == []
    month = query(CARD_GPU, BUSY, period=60, StartTime=ms(AT - 8 * DAY), EndTime=ms(AT - 7 * DAY))
    assert len(json.loads(cloud.ask("DescribeMetricList", month)["Datapoints"])) == 1000


def test_a_neighbour_is_not_seen_and_a_denied_caller_is_told(cloud: Cloud) -> None:
    assert points(cloud, CPU, NEXT_DOOR) == []
    elsewhere = cloud.ask("DescribeMetricList", query(CPU, BUSY), region="cn-beijing")
    assert json.loads(elsewhere["Datapoints"] or "[]") == []
    for name in ("cms:DescribeMetricList", "cms:QueryMetricList"):  # documents name both
        cloud.emulator.allowed[ALIBABA_ACCOUNT] = {name}
        assert len(points(cloud, CPU, BUSY, hours=2)) == 1
    cloud.emulator.allowed[ALIBABA_ACCOUNT] = set()
    assert cloud.refusal("DescribeMetricList", query(CPU, BUSY)) == "AccessForbidden"
    del cloud.emulator.allowed[ALIBABA_ACCOUNT]
    cloud.world.deny("alibaba", ALIBABA_ACCOUNT, "DescribeMetricList")
    assert cloud.refusal("DescribeMetricList", query(CPU, BUSY)) == "AccessForbidden"
    cloud.world.allow("alibaba", ALIBABA_ACCOUNT, "DescribeMetricList")


def test_metrics_are_described_and_the_newest_point_is_told(cloud: Cloud) -> None:
    (told,) = cloud.ask("DescribeMetricMetaList", Namespace=NAMESPACE, MetricName=CARD_GPU)["Resources"]["Resource"]
    assert told["Dimensions"] == "userId,instanceId,gpuId"
    assert "15" in told["Periods"].split(",")
    every = cloud.ask("DescribeMetricMetaList", Namespace=NAMESPACE, PageSize="1000")
    assert {one["MetricName"] for one in every["Resources"]["Resource"]} == set(METRICS)
    last = cloud.ask("DescribeMetricLast", query(CPU, BUSY, DIED, period=60))
    assert [point["timestamp"] for point in json.loads(last["Datapoints"])] == [int(ms(AT)) - 60_000] * 2


def test_what_the_world_does_not_measure_is_known_and_empty(cloud: Cloud) -> None:
    for name in ("gpu_memory_usedutilization", "instance_gpu_memory_usedutilization", "DiskReadBPS"):
        assert points(cloud, name, BUSY) == []
    asked = query(CPU, BUSY)
    del asked["StartTime"]
    assert cloud.refusal("DescribeMetricList", asked) == "Emulator.NotModelled"
