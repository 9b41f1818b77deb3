"""CloudWatch answers become hourly histories, and nothing that failed becomes silence."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costguard.domain.errors import AccessDeniedError, ProviderError, ThrottledError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import (
    Accelerator,
    AcceleratorKind,
    Billing,
    GapKind,
    Instance,
    InstanceState,
    Keeper,
    ManagedBy,
)
from costguard.domain.signals import SignalHistory, SignalName
from costguard.ports import SignalReport
from costguard.providers.aws.compute.metric_answers import ec2_series
from costguard.providers.aws.compute.metrics import AwsSignals, batched
from costguard.providers.kit.compute.metrics import Cells, fold_values, seconds_per_sample

START = datetime(2026, 3, 2, 0, 0, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
SHARD = Shard("aws", "111122223333", "us-east-1")
GPU = frozenset({SignalName.GPU})
Dimensions = tuple[tuple[str, str], ...]


def an_instance(
    native_id: str = "i-1",
    *,
    kind: AcceleratorKind = AcceleratorKind.NVIDIA_GPU,
    kubernetes: bool = False,
    system: str = "linux",
) -> Instance:
    return Instance(
        ref=ResourceRef("aws", "111122223333", "us-east-1", "instance", native_id),
        instance_type="p4d.24xlarge",
        accelerator=Accelerator(kind, "A100", 8),
        state=InstanceState.RUNNING,
        billing=Billing.ON_DEMAND,
        run_epoch="1",
        launched_at=START,
        managed_by=ManagedBy(Keeper.KUBERNETES, "ml") if kubernetes else None,
        operating_system=system,
    )


def card(native_id: str = "i-1", index: str = "0", **more: str) -> Dimensions:
    """A set as the agent sends it: the device's own tags, then what its owner appended."""
    tags = {"name": "NVIDIA A100", "index": index, "arch": "Ampere", "InstanceId": native_id, "host": "ip-10", **more}
    return tuple(tags.items())


@dataclass
class FakeCloudWatch:
    """ListMetrics and GetMetricData over made-up points: (namespace, name, dimensions) → hour → (maximum, count)."""

    points: dict[tuple[str, str, Dimensions], dict[int, tuple[Any, Any]]] = field(default_factory=dict)
    listing_fails: ProviderError | None = None
    batch_fails: Mapping[int, ProviderError] = field(default_factory=dict)
    status: Mapping[str, str] = field(default_factory=dict)
    messages: Sequence[Mapping[str, str]] = ()
    unanswered: frozenset[str] = frozenset()
    tokens: Sequence[str] = ()
    listed: list[tuple[str, str]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)

    def has(
        self, name: str, dimensions: Dimensions, hours: Mapping[int, tuple[Any, Any]], namespace: str = "CWAgent"
    ) -> None:
        self.points[namespace, name, dimensions] = dict(hours)

    def pages(
        self, shard: Shard, service: str, operation: str, result_key: str, /, **params: Any
    ) -> Iterator[Sequence[Any]]:
        assert (shard, service, operation, result_key) == (SHARD, "cloudwatch", "ListMetrics", "Metrics")
        if self.listing_fails is not None:
            raise self.listing_fails
        asked = (params["Namespace"], params["MetricName"])
        self.listed.append(asked)
        for namespace, name, dimensions in self.points:
            if (namespace, name) == asked:
                yield [{"Dimensions": [{"Name": key, "Value": value} for key, value in dimensions]}]

    def call(self, shard: Shard, service: str, operation: str, /, **params: Any) -> Mapping[str, Any]:
        assert (shard, service, operation) == (SHARD, "cloudwatch", "GetMetricData")
        number = len(self.asked)
        self.asked.append({**params})
        if number in self.batch_fails:
            raise self.batch_fails[number]
        results = [self._answer(query, params["StartTime"]) for query in params["MetricDataQueries"]]
        token = self.tokens[number] if number < len(self.tokens) else ""
        return {
            "MetricDataResults": [result for result in results if result["Id"] not in self.unanswered],
            "Messages": self.messages,
            **({"NextToken": token} if token else {}),
        }

    def _answer(self, query: Mapping[str, Any], start: datetime) -> dict[str, Any]:
        stat, metric = query["MetricStat"]["Stat"], query["MetricStat"]["Metric"]
        assert query["MetricStat"]["Period"] == 3600
        dimensions = tuple((pair["Name"], pair["Value"]) for pair in metric["Dimensions"])
        hours = self.points.get((metric["Namespace"], metric["MetricName"], dimensions), {})
        picked = {hour: pair[0 if stat == "Maximum" else 1] for hour, pair in hours.items()}
        picked = {hour: value for hour, value in picked.items() if value is not None}
        return {
            "Id": query["Id"],
            "Timestamps": [start + hour * HOUR for hour in picked],
            "Values": list(picked.values()),
            "StatusCode": self.status.get(query["Id"], "Complete"),
        }


def read(
    cloud: FakeCloudWatch, *instances: Instance, signals: frozenset[SignalName] = GPU, hours: float = 3
) -> SignalReport:
    return AwsSignals(cloud, signals).read(instances or (an_instance(),), START, START + hours * HOUR)


def history(report: SignalReport, instance: Instance, name: SignalName, device: str = "") -> SignalHistory:
    found = {(one.name, one.device): one for one in report.readings[instance.ref].histories}
    return found[name, device]


def test_each_card_has_its_own_history_under_the_dimensions_it_was_listed_with() -> None:
    cloud = FakeCloudWatch()
    cloud.has("nvidia_smi_utilization_gpu", card(index="0"), {0: (3.0, 60), 2: (97.0, 58)})
    cloud.has("nvidia_smi_utilization_gpu", card(index="1"), {0: (0.0, 60), 1: (0.0, 60), 2: (0.0, 60)})

    report = read(cloud)

    first, second = report.readings[an_instance().ref].histories
    assert (first.device, list(first.samples), first.maxima[2]) == ("0", [60, 0, 58], 97.0)
    assert math.isnan(first.maxima[1])
    assert (second.device, list(second.maxima), list(second.samples)) == ("1", [0.0, 0.0, 0.0], [60, 60, 60])
    assert first.source == "cloudwatch:CWAgent"
    assert not report.gaps


def test_the_namespace_is_the_one_the_policy_names() -> None:
    cloud = FakeCloudWatch()
    cloud.has("nvidia_smi_utilization_gpu", card(), {0: (1.0, 60)}, namespace="Research/GPU")
    report = AwsSignals(cloud, GPU, "Research/GPU").read([an_instance()], START, START + HOUR)
    assert history(report, an_instance(), SignalName.GPU, "0").maxima[0] == 1.0


ALONE = (("InstanceId", "i-1"),)


def of_eight(report: SignalReport) -> tuple[SignalHistory, ...]:
    found = report.readings[an_instance().ref].histories
    assert [one.device for one in found] == [str(number) for number in range(8)]
    return found


def test_an_aggregate_over_the_instance_bounds_each_of_its_cards() -> None:
    """The agent's `drop_original_metrics` leaves nothing else; no card can have been busier than the busiest."""
    cloud = FakeCloudWatch()
    cloud.has("nvidia_smi_utilization_gpu", ALONE, {0: (3.0, 480), 1: (97.0, 478), 2: (0.0, 479)})
    for one in of_eight(read(cloud)):
        assert list(one.maxima) == [3.0, 97.0, 0.0]
        assert list(one.samples) == [60, 59, 59]
        assert one.over(START, START + 3 * HOUR).coverage > 0.95
        assert one.source == "cloudwatch:CWAgent, all cards together"


@pytest.mark.parametrize("count", [60, 240, 420])
def test_an_aggregate_that_lacks_a_card_covers_none(count: int) -> None:
    """One, four and seven cards of eight, a minute each: whose samples are there nobody can tell."""
    cloud = FakeCloudWatch()
    cloud.has("nvidia_smi_utilization_gpu", ALONE, dict.fromkeys(range(3), (0.0, count)))
    for one in of_eight(read(cloud)):
        assert one.over(START, START + 3 * HOUR).coverage < 0.95


@pytest.mark.parametrize("count", [960, 5760])
def test_an_aggregate_of_an_agent_faster_than_documented_covers_none_and_is_still_busy(count: int) -> None:
    """Eight cards each 30 s are four each 15 s: only the documented minute tells how many there were."""
    cloud = FakeCloudWatch()
    cloud.has("nvidia_smi_utilization_gpu", ALONE, dict.fromkeys(range(3), (88.0, count)))
    for one in of_eight(read(cloud)):
        assert (set(one.samples), max(one.maxima)) == ({0}, 88.0)


def test_where_cards_have_series_of_their_own_the_aggregate_says_nothing() -> None:
    cloud = FakeCloudWatch()
    cloud.has("nvidia_smi_utilization_gpu", ALONE, {0: (0.0, 480)})
    cloud.has("nvidia_smi_utilization_gpu", card(), {0: (7.0, 60)})
    (found,) = read(cloud).readings[an_instance().ref].histories
    assert (found.device, found.maxima[0]) == ("0", 7.0)


def test_an_aggregate_over_anything_else_is_nobodys() -> None:
    cloud = FakeCloudWatch()
    cloud.has("nvidia_smi_utilization_gpu", (*ALONE, ("name", "A100")), {0: (0.0, 480)})
    cloud.has("nvidia_smi_utilization_gpu", (("InstanceType", "p4d.24xlarge"), ("index", "0")), {0: (0.0, 60)})
    report = read(cloud)
    assert report.readings[an_instance().ref].histories == ()
    assert not cloud.asked


def test_two_sets_of_dimensions_of_one_card_merge_by_the_larger_and_never_add_up() -> None:
    """Counts that were added would hide missing minutes when both sets carry the same samples."""
    cloud = FakeCloudWatch()
    cloud.has("nvidia_smi_utilization_gpu", card(), {0: (3.0, 30), 1: (1.0, 60)})
    cloud.has("nvidia_smi_utilization_gpu", card(ImageId="ami-2"), {0: (80.0, 30), 2: (2.0, 60)})
    merged = history(read(cloud), an_instance(), SignalName.GPU, "0")
    assert list(merged.maxima) == [80.0, 1.0, 2.0]
    assert list(merged.samples) == [30, 60, 60]


def test_metrics_of_machines_that_were_not_asked_for_are_not_read() -> None:
    cloud = FakeCloudWatch()
    cloud.has("nvidia_smi_utilization_gpu", card("i-gone"), {0: (1.0, 60)})
    report = read(cloud)
    assert list(report.readings) == [an_instance().ref]
    assert not cloud.asked


def test_windows_agents_spell_the_metric_with_a_space() -> None:
    cloud = FakeCloudWatch()
    cloud.has("nvidia_smi utilization_gpu", card(), {0: (5.0, 60)})
    windows = an_instance(system="windows")
    assert history(read(cloud, windows), windows, SignalName.GPU, "0").maxima[0] == 5.0
    assert cloud.listed == [("CWAgent", "nvidia_smi utilization_gpu")]


def test_power_is_read_under_the_same_dimensions_without_a_second_listing() -> None:
    cloud = FakeCloudWatch()
    cloud.has("nvidia_smi_utilization_gpu", card(), {0: (0.0, 60)})
    cloud.points["CWAgent", "nvidia_smi_power_draw", card()] = {0: (52.5, 60)}
    report = read(cloud, signals=GPU | {SignalName.POWER})
    assert history(report, an_instance(), SignalName.POWER, "0").maxima[0] == 52.5
    assert len(cloud.listed) == 1


def test_only_the_signals_asked_for_are_read() -> None:
    cloud = FakeCloudWatch()
    cloud.has("CPUUtilization", (("InstanceId", "i-1"),), {0: (12.0, 60)}, namespace="AWS/EC2")
    report = read(cloud, signals=frozenset({SignalName.CPU}))
    assert history(report, an_instance(), SignalName.CPU).maxima[0] == 12.0
    assert not cloud.listed
    assert {query["MetricStat"]["Metric"]["MetricName"] for query in cloud.asked[0]["MetricDataQueries"]} == {
        "CPUUtilization"
    }


def test_basic_monitoring_is_documented_to_be_later_than_the_agent() -> None:
    agent = read(FakeCloudWatch()).readings[an_instance().ref]
    both = read(FakeCloudWatch(), signals=GPU | {SignalName.CPU}).readings[an_instance().ref]
    assert agent.documented_delay == timedelta(minutes=5)
    assert both.documented_delay == timedelta(minutes=10)


def test_network_is_both_directions_in_bytes_a_second() -> None:
    cloud = FakeCloudWatch()
    machine = (("InstanceId", "i-1"),)
    cloud.has("NetworkIn", machine, {0: (6000.0, 60), 1: (600.0, 60)}, namespace="AWS/EC2")
    cloud.has("NetworkOut", machine, {0: (1200.0, 59)}, namespace="AWS/EC2")
    found = history(read(cloud, signals=frozenset({SignalName.NETWORK})), an_instance(), SignalName.NETWORK)
    assert found.maxima[0] == pytest.approx(120.0)
    assert list(found.samples) == [59, 0, 0]
    assert math.isnan(found.maxima[1]), "half a measurement is none"


@pytest.mark.parametrize(
    ("samples", "seconds"),
    [
        ([60, 60, 60, 60], 60),
        ([0, 12, 12, 12, 12, 3], 300),
        ([12, 12, 11, 12, 12], 300),
        ([12], 60),  # twelve samples may be twelve minutes of one
        ([4, 12, 5], 60),
        ([12, 2, 3, 12], 60),  # gaps, not a slow cadence
        ([12, 12, 60, 12], 60),
        ([0, 0], 60),
        ([], 60),
    ],
)
def test_a_slow_cadence_is_believed_only_where_whole_hours_prove_it(samples: list[int], seconds: int) -> None:
    assert seconds_per_sample(samples) == seconds


@pytest.mark.parametrize("value", [math.nan, -1.0, 250.0, math.inf, -math.inf, "busy", None, [1.0]])
def test_a_value_its_unit_does_not_allow_stays_visible_as_infinity(value: object) -> None:
    cells = Cells.empty(2)
    fold_values(cells, SignalName.GPU, START, [START, START + HOUR], [value, 4.0])
    assert list(cells.maxima) == [math.inf, 4.0]
    fold_values(cells, SignalName.GPU, START, [START], [1.0])
    assert cells.maxima[0] == math.inf, "a later good value does not wash it out"


def test_rounding_above_one_hundred_percent_is_not_implausible() -> None:
    cells = Cells.empty(1)
    fold_values(cells, SignalName.CPU, START, [START], [100.0000001])
    assert cells.maxima[0] == pytest.approx(100.0)


@pytest.mark.parametrize("count", [math.nan, -3, "many", 10**12])
def test_a_sample_count_that_is_none_makes_its_hour_implausible(count: object) -> None:
    cloud = FakeCloudWatch()
    cloud.has("nvidia_smi_utilization_gpu", card(), {0: (1.0, count)})
    assert history(read(cloud), an_instance(), SignalName.GPU, "0").maxima[0] == math.inf


def test_counted_samples_without_a_maximum_are_implausible() -> None:
    """Sixty samples were seen and their height was lost; where 95 % is enough, a lost hour would pass as idle."""
    cloud = FakeCloudWatch()
    cloud.has("nvidia_smi_utilization_gpu", card(), {0: (None, 60), 1: (2.0, 60)})
    assert history(read(cloud), an_instance(), SignalName.GPU, "0").maxima[0] == math.inf


def test_the_window_is_widened_to_whole_hours_and_includes_the_hour_in_progress() -> None:
    cloud = FakeCloudWatch()
    cloud.has("nvidia_smi_utilization_gpu", card(), {0: (1.0, 60), 2: (9.0, 7)})
    since, until = START + timedelta(minutes=59), START + 2 * HOUR + timedelta(minutes=7)
    report = AwsSignals(cloud, GPU).read([an_instance()], since, until)
    found = history(report, an_instance(), SignalName.GPU, "0")
    assert (found.start, len(found.maxima), found.maxima[2], found.samples[2]) == (START, 3, 9.0, 7)
    assert (cloud.asked[0]["StartTime"], cloud.asked[0]["EndTime"]) == (START, START + 3 * HOUR)


@given(
    st.lists(st.tuples(st.integers(-200_000, 200_000), st.floats(allow_nan=True) | st.integers(-5, 200)), max_size=30)
)
def test_points_outside_the_window_are_refused_and_never_land_in_it(points: list[tuple[int, float]]) -> None:
    cells = Cells.empty(4)
    outside = any(not 0 <= seconds < 4 * 3600 for seconds, _ in points)
    with pytest.raises(ValueError, match="not one of the hours") if outside else nullcontext():
        for seconds, value in points:
            fold_values(cells, SignalName.GPU, START, [START + timedelta(seconds=seconds)], [value])
    first = next((at for at, (seconds, _) in enumerate(points) if not 0 <= seconds < 4 * 3600), len(points))
    points = points[:first]
    for hour, value in enumerate(cells.maxima):
        inside = [number for seconds, number in points if hour * 3600 <= seconds < (hour + 1) * 3600]
        assert math.isnan(value) == (not inside)
        assert not inside or value >= 0


@pytest.mark.parametrize(("hours", "series_a_call"), [(24, 250), (337, 149), (2000, 25), (60_000, 1)])
def test_a_call_holds_as_much_as_its_limits_on_queries_and_points_allow(hours: int, series_a_call: int) -> None:
    wanted = list(ec2_series([an_instance(f"i-{n}") for n in range(600)], frozenset({SignalName.CPU})))
    batches = list(batched(wanted, hours))
    assert [series for batch in batches for series in batch] == wanted
    assert max(len(batch) for batch in batches) == series_a_call
    assert all(len(batch) * 2 <= 500 for batch in batches)
    assert hours > 50_400 or all(len(batch) * 2 * hours <= 100_800 for batch in batches)


def test_many_batches_are_read_and_folded_alike() -> None:
    cloud = FakeCloudWatch()
    fleet = [an_instance(f"i-{number}") for number in range(700)]
    for number in range(700):
        cloud.has("CPUUtilization", (("InstanceId", f"i-{number}"),), {0: (number / 10, 60)}, namespace="AWS/EC2")
    report = read(cloud, *fleet, signals=frozenset({SignalName.CPU}))
    assert len(cloud.asked) == 3
    assert [history(report, one, SignalName.CPU).maxima[0] for one in fleet] == [n / 10 for n in range(700)]


def test_nothing_to_read_asks_nothing() -> None:
    cloud = FakeCloudWatch()
    assert AwsSignals(cloud, GPU).read([], START, START + HOUR).readings == {}
    empty = AwsSignals(cloud, GPU | {SignalName.CPU}).read([an_instance()], START, START)
    assert all(not one.maxima for one in empty.readings[an_instance().ref].histories)
    assert not cloud.asked


def test_neuron_devices_are_looked_for_in_container_insights_whoever_runs_the_machine() -> None:
    """That the cluster is known by a tag is not needed: what has its own dimensions was measured."""
    cloud = FakeCloudWatch()
    dimensions = (("InstanceId", "i-1"), ("NeuronDevice", "device0"), ("NeuronCore", "core0"))
    cloud.has("node_neuroncore_utilization", dimensions, {0: (4.0, 60)}, namespace="ContainerInsights")
    machine = an_instance(kind=AcceleratorKind.NEURON)
    (found,) = read(cloud, machine).readings[machine.ref].histories
    assert (found.device, found.maxima[0]) == ("0", 4.0)


def test_a_device_kind_the_agent_does_not_measure_has_no_history_and_costs_no_listing() -> None:
    cloud = FakeCloudWatch()
    radeon = an_instance(kind=AcceleratorKind.AMD_GPU)
    assert read(cloud, radeon).readings[radeon.ref].histories == ()
    assert not cloud.listed


def test_kubernetes_nodes_are_also_looked_for_in_container_insights() -> None:
    cloud = FakeCloudWatch()
    node = (("ClusterName", "ml"), ("NodeName", "n"), ("InstanceId", "i-1"), ("GpuDevice", "nvidia0"))
    cloud.has("node_gpu_utilization", node, {0: (41.0, 60)}, namespace="ContainerInsights")
    cloud.has("node_gpu_utilization", node[:3], {0: (0.0, 60)}, namespace="ContainerInsights")
    cloud.has("nvidia_smi_utilization_gpu", card(), {0: (7.0, 60)})
    machine = an_instance(kubernetes=True)
    (found,) = read(cloud, machine).readings[machine.ref].histories
    assert (found.device, found.maxima[0]) == ("0", 41.0)


def test_a_neuron_device_is_as_busy_as_its_busiest_core_and_as_seen_as_its_least_seen() -> None:
    cloud = FakeCloudWatch()
    for core, hours in (("core0", {0: (0.0, 60), 1: (0.0, 60)}), ("core1", {0: (55.0, 12)})):
        dimensions = (("InstanceId", "i-1"), ("NeuronDevice", "device0"), ("NeuronCore", core))
        cloud.has("node_neuroncore_utilization", dimensions, hours, namespace="ContainerInsights")
    machine = an_instance(kind=AcceleratorKind.NEURON, kubernetes=True)
    (found,) = read(cloud, machine, signals=GPU | {SignalName.POWER}).readings[machine.ref].histories
    assert (found.device, found.maxima[0], list(found.samples)) == ("0", 55.0, [12, 0, 0])
    assert math.isnan(found.maxima[1])


def test_a_denied_listing_leaves_every_instance_unread_and_names_the_permission() -> None:
    denied = AccessDeniedError("cloudwatch:ListMetrics: AccessDenied", operation="cloudwatch:ListMetrics")
    report = read(FakeCloudWatch(listing_fails=denied), an_instance("i-1"), an_instance("i-2"))
    assert report.readings == {}
    (found,) = report.gaps
    assert (found.shard, found.what, found.kind) == (SHARD, "signals", GapKind.DENIED)
    assert "cloudwatch:ListMetrics" in found.fix


def test_a_failed_batch_leaves_out_only_its_own_instances() -> None:
    cloud = FakeCloudWatch(batch_fails={0: ThrottledError("cloudwatch:GetMetricData: Throttling")})
    fleet = [an_instance(f"i-{number}") for number in range(300)]
    report = read(cloud, *fleet, signals=frozenset({SignalName.CPU}))
    assert len(report.readings) == 50
    (found,) = report.gaps
    assert found.kind is GapKind.THROTTLED
    assert "250 of 300 instances" in found.detail


@pytest.mark.parametrize(
    ("cloud", "kind"),
    [
        (FakeCloudWatch(status={"s0": "Forbidden"}), GapKind.DENIED),
        (FakeCloudWatch(status={"m0": "PartialData"}), GapKind.TRUNCATED),
        (FakeCloudWatch(status={"m0": "InternalError"}), GapKind.UNAVAILABLE),
        (FakeCloudWatch(status={"m0": "SomethingNew"}), GapKind.UNAVAILABLE),
        (FakeCloudWatch(unanswered=frozenset({"s0"})), GapKind.TRUNCATED),
    ],
)
def test_an_incomplete_answer_is_a_gap_for_its_instance_alone(cloud: FakeCloudWatch, kind: GapKind) -> None:
    first, second = an_instance("i-1"), an_instance("i-2")
    report = read(cloud, first, second, signals=frozenset({SignalName.CPU}))
    assert list(report.readings) == [second.ref]
    (found,) = report.gaps
    assert found.kind is kind
    assert "1 of 2 instances: i-1" in found.detail


def test_a_message_about_the_whole_call_is_a_gap() -> None:
    cloud = FakeCloudWatch(messages=[{"Code": "MaxMetricsExceeded", "Value": "Maximum number of allowed metrics"}])
    report = read(cloud, signals=frozenset({SignalName.CPU}))
    assert report.readings == {}
    assert "MaxMetricsExceeded" in report.gaps[0].detail


def test_pages_are_followed_and_the_last_status_counts() -> None:
    cloud = FakeCloudWatch(tokens=["next"])
    cloud.has("CPUUtilization", (("InstanceId", "i-1"),), {0: (5.0, 60)}, namespace="AWS/EC2")
    report = read(cloud, signals=frozenset({SignalName.CPU}))
    assert [request.get("NextToken") for request in cloud.asked] == [None, "next"]
    assert history(report, an_instance(), SignalName.CPU).samples[0] == 60


def test_a_repeated_page_token_is_a_gap_and_not_an_endless_loop() -> None:
    report = read(FakeCloudWatch(tokens=["again", "again", "again"]), signals=frozenset({SignalName.CPU}))
    assert report.readings == {}
    assert report.gaps[0].kind is GapKind.TRUNCATED


def test_histories_are_compact_arrays() -> None:
    """A fleet's hours must stay small: 12 bytes an hour and device."""
    cloud = FakeCloudWatch()
    cloud.has("nvidia_smi_utilization_gpu", card(), {0: (1.0, 60)})
    found = history(read(cloud), an_instance(), SignalName.GPU, "0")
    assert isinstance(found.maxima, array)
    assert (found.maxima.typecode, found.samples.typecode) == ("d", "I")


@dataclass
class Answering(FakeCloudWatch):
    """Answers GetMetricData with `answer`, whatever was asked."""

    answer: Any = None

    def call(self, shard: Shard, service: str, operation: str, /, **params: Any) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.answer(super().call(shard, service, operation, **params))
        return found


def a_busy_card(change: Any) -> SignalReport:
    cloud = Answering(answer=change)
    cloud.has("nvidia_smi_utilization_gpu", card(), {0: (99.0, 60), 1: (0.0, 60), 2: (0.0, 60)})
    return read(cloud)


def results(answer: Mapping[str, Any], **first: Any) -> dict[str, Any]:
    """The answer with its first result (the maxima) changed."""
    maxima, *others = answer["MetricDataResults"]
    return {**answer, "MetricDataResults": [{**maxima, **first}, *others]}


@pytest.mark.parametrize(
    "change",
    [
        lambda _: [],
        lambda _: {"MetricDataResults": {}},
        lambda answer: {**answer, "MetricDataResults": [None]},
        lambda answer: {**answer, "NextToken": 7},
        lambda answer: results(answer, Id="m" + "9" * 5000),
        lambda answer: results(answer, Id="x0"),
        lambda answer: results(answer, Timestamps=7),
        lambda answer: results(answer, Timestamps=[datetime(2026, 3, 2)] * 3),  # noqa: DTZ001
        lambda answer: results(answer, Timestamps=[START - HOUR, START + HOUR, START + 2 * HOUR]),
        lambda answer: results(answer, StatusCode=["Complete"]),
        lambda answer: results(answer, Messages=[{"Code": 10**5000}]),
    ],
)
def test_an_answer_of_another_form_leaves_its_instances_unread(change: Any) -> None:
    report = a_busy_card(change)
    assert report.readings == {}
    assert [gap.what for gap in report.gaps] == ["signals"]


@pytest.mark.parametrize("value", [True, False, None, "0", 10**400, []])
def test_a_value_that_is_no_number_is_implausible(value: object) -> None:
    for signal in (SignalName.GPU, SignalName.NETWORK):
        cells = Cells.empty(1)
        fold_values(cells, signal, START, [START], [value])
        assert cells.maxima[0] == math.inf


def test_a_failed_result_is_not_made_good_by_another_of_its_id() -> None:
    """Whichever comes first: one of them says that points are missing."""
    for order in (1, -1):

        def twice(answer: Mapping[str, Any], order: int = order) -> dict[str, Any]:
            maxima, *others = answer["MetricDataResults"]
            pair = [{**maxima, "StatusCode": "InternalError", "Timestamps": [], "Values": []}, maxima]
            return {**answer, "MetricDataResults": [*pair[::order], *others]}

        assert a_busy_card(twice).readings == {}


def test_a_listing_of_another_form_leaves_its_instances_unread() -> None:
    class Listing(FakeCloudWatch):
        def pages(self, *_: Any, **__: Any) -> Iterator[Sequence[Any]]:
            yield [{"Dimensions": [{"Name": "InstanceId"}]}]

    assert read(Listing()).readings == {}


SHOWN = frozenset({SignalName.CPU, SignalName.NETWORK, SignalName.DISK, SignalName.POWER})


def shown(cloud: FakeCloudWatch, *instances: Instance) -> SignalReport:
    return AwsSignals(cloud, GPU, shown=SHOWN).read(instances or (an_instance(),), START, START + 3 * HOUR)


def test_what_no_rule_names_is_read_beside_it_in_calls_of_its_own() -> None:
    cloud, machine = FakeCloudWatch(), (("InstanceId", "i-1"),)
    cloud.has("nvidia_smi_utilization_gpu", card(), {0: (0.0, 60)})
    cloud.has("nvidia_smi_power_draw", card(), {0: (270.0, 60)})
    cloud.has("CPUUtilization", machine, {0: (97.0, 60)}, namespace="AWS/EC2")
    cloud.has("EBSReadBytes", machine, {0: (6000.0, 60)}, namespace="AWS/EC2")
    cloud.has("EBSWriteBytes", machine, {0: (1200.0, 60)}, namespace="AWS/EC2")

    report = shown(cloud)

    found = {(one.name, one.device): one.maxima[0] for one in report.readings[an_instance().ref].histories}
    assert found == {
        (SignalName.GPU, "0"): 0.0,
        (SignalName.POWER, "0"): 270.0,
        (SignalName.CPU, ""): 97.0,
        (SignalName.DISK, ""): pytest.approx(120.0),
    }
    asked = [
        {query["MetricStat"]["Metric"]["MetricName"] for query in call["MetricDataQueries"]} for call in cloud.asked
    ]
    assert asked[0] == {"nvidia_smi_utilization_gpu"}
    assert "nvidia_smi_utilization_gpu" not in asked[1]
    assert report.readings[an_instance().ref].documented_delay == timedelta(minutes=5)


def test_a_signal_that_is_only_shown_leaves_nobody_unread() -> None:
    failing = FakeCloudWatch(batch_fails={1: ThrottledError("cloudwatch:GetMetricData: Throttling")})
    failing.has("nvidia_smi_utilization_gpu", card(), {0: (0.0, 60)})

    report = shown(failing)

    assert [one.name for one in report.readings[an_instance().ref].histories] == [SignalName.GPU]
    assert report.gaps == ()


def test_disks_that_a_machine_does_not_have_are_not_asked_about() -> None:
    without = {series.metric for series in ec2_series([replace(an_instance(), local_disk_gib=0.0)], SHOWN)}
    assert {"EBSReadBytes", "EBSWriteBytes"} <= without
    assert "DiskReadBytes" not in without
    assert "DiskReadBytes" in {series.metric for series in ec2_series([an_instance()], SHOWN)}
