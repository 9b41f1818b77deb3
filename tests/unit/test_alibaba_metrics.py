"""CloudMonitor's points, minute by minute, as hourly maxima with honest counts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest

from costguard.domain.errors import AccessDeniedError, ProviderError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Accelerator, AcceleratorKind, Billing, GapKind, Instance, InstanceState
from costguard.domain.signals import SignalHistory, SignalName
from costguard.ports import SignalReport
from costguard.providers.alibaba.compute.metric_answers import MOST_INSTANCES, MOST_POINTS, Metric, Span, batched, cut
from costguard.providers.alibaba.compute.metrics import AlibabaSignals

START = datetime(2026, 3, 2, 0, 0, tzinfo=timezone.utc)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
GPU, CPU, NETWORK = SignalName.GPU, SignalName.CPU, SignalName.NETWORK
UTILIZATION = "gpu_gpu_usedutilization"


def machine(native_id: str = "i-1", cards: float = 1, **changes: Any) -> Instance:
    ordinary = Instance(
        ref=ResourceRef("alibaba", "1234567890123456", "cn-hangzhou", "instance", native_id),
        instance_type="ecs.gn7i-c8g1.2xlarge",
        accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "A10", cards),
        state=InstanceState.RUNNING,
        billing=Billing.ON_DEMAND,
        run_epoch="2026-02-21T09:00Z",
        launched_at=START,
    )
    return replace(ordinary, **changes)


def point(
    minute: float, value: Any, native_id: str = "i-1", card: str | None = None, ip: str | None = None
) -> dict[str, Any]:
    stamp = int((START + minute * MINUTE).timestamp() * 1000)
    parts = {} if card is None else {"gpuId": card}
    parts |= {} if ip is None else {"ip": ip}
    return {"timestamp": stamp, "userId": "1", "instanceId": native_id, **parts, "Maximum": value}


@dataclass
class Monitor:
    """CloudMonitor by metric: pages of points, or an error."""

    pages: dict[str, list[Any]] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    error: ProviderError | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def call(self, shard: Shard, service: str, operation: str, /, **parameters: Any) -> Mapping[str, Any]:
        assert (shard.region, service, operation) == ("cn-hangzhou", "cms", "DescribeMetricList")
        self.asked.append(parameters)
        if self.error is not None:
            raise self.error
        pages = self.pages.get(parameters["MetricName"], [])
        place = int(parameters.get("NextToken", 0))
        answer: dict[str, Any] = {"RequestId": "R", "Code": "200", "Datapoints": ""}
        if pages:
            shown = pages[place]
            answer["Datapoints"] = shown if isinstance(shown, str) else json.dumps(shown)
        if place + 1 < len(pages):
            answer["NextToken"] = str(place + 1)
        return {**answer, **self.more}

    def read(self, *machines: Instance, hours: float = 2, signals: Sequence[SignalName] = (GPU,)) -> SignalReport:
        return AlibabaSignals(self, frozenset(signals)).read(machines, START, START + hours * HOUR)


def history(report: SignalReport, name: SignalName = GPU, device: str = "0") -> SignalHistory:
    (reading,) = report.readings.values()
    (found,) = [one for one in reading.histories if (one.name, one.device) == (name, device)]
    return found


def card_hour(hour: int, value: float, card: str = "0", count: int = 60) -> list[dict[str, Any]]:
    return [point(hour * 60 + minute, value, card=card) for minute in range(count)]


def test_each_card_has_its_own_hours() -> None:
    monitor = Monitor({UTILIZATION: [[*card_hour(0, 3.0), *card_hour(0, 98.0, "1"), *card_hour(1, 1.0, "1", 31)]]})

    report = monitor.read(machine(cards=2))

    assert list(history(report).maxima)[:1] == [3.0]
    assert list(history(report).samples) == [60, 0]
    assert list(history(report, device="1").maxima) == [98.0, 1.0]
    assert list(history(report, device="1").samples) == [60, 31]
    assert report.gaps == ()


def test_a_minute_counts_once_however_often_it_comes() -> None:
    """Else an agent that died early could make up for it by repeating itself."""
    monitor = Monitor(
        {UTILIZATION: [card_hour(0, 1.0, count=20), [*card_hour(0, 2.0, count=20), point(0.5, 9.0, card="0")]]}
    )

    found = history(monitor.read(machine(), hours=1))

    assert (list(found.maxima), list(found.samples)) == ([9.0], [20])


def test_pages_are_read_to_their_end() -> None:
    monitor = Monitor({UTILIZATION: [card_hour(0, 1.0), card_hour(1, 2.0), []]})

    assert list(history(monitor.read(machine())).samples) == [60, 60]
    assert [asked.get("NextToken") for asked in monitor.asked] == [None, "1", "2"]


@pytest.mark.parametrize("datapoints", ["", "[]"])
def test_no_points_are_no_data_and_no_gap(datapoints: str) -> None:
    monitor = Monitor({UTILIZATION: [datapoints]})
    asked = machine()

    report = monitor.read(asked)

    assert report.readings[asked.ref].histories == ()
    assert report.gaps == ()


@pytest.mark.parametrize(
    "page",
    [
        "{",
        "{}",
        "null",
        "[7]",
        "[{}]",
        [point(0, 1.0, "i-2", card="0")],
        [point(-1, 1.0, card="0")],
        [point(120, 1.0, card="0")],
        [{**point(0, 1.0, card="0"), "timestamp": "1"}],
        [{**point(0, 1.0, card="0"), "timestamp": True}],
        [{k: v for k, v in point(0, 1.0, card="0").items() if k != "Maximum"}],
        [{**point(0, 1.0), "gpuId": 0}],
        [{**point(0, 1.0, card="0"), "instanceId": None}],
        "[" * 100_000,
    ],
)
def test_points_of_another_form_leave_their_instances_out(page: Any) -> None:
    report = Monitor({UTILIZATION: [page]}).read(machine())

    assert report.readings == {}
    (gap,) = report.gaps
    assert (gap.what, gap.kind) == ("signals", GapKind.UNREADABLE)


def test_a_page_cut_short_is_a_gap_also_after_good_ones() -> None:
    monitor = Monitor({UTILIZATION: [card_hour(0, 1.0), '[{"timestamp": 1']})

    assert monitor.read(machine()).readings == {}


@pytest.mark.parametrize("value", ["1.0", None, math.nan, -1.0, 250.0, True, 10**400])
def test_a_value_its_unit_does_not_allow_is_kept_as_infinity(value: Any) -> None:
    monitor = Monitor({UTILIZATION: [[point(0, value, card="0"), point(1, 2.0, card="0")]]})

    assert list(history(monitor.read(machine(), hours=1)).maxima) == [math.inf]


@pytest.mark.parametrize("more", [{"NextToken": "0"}, {"NextToken": 7}, {"Datapoints": None}, {"Datapoints": []}])
def test_pages_without_end_or_of_another_type_are_a_gap(more: dict[str, Any]) -> None:
    monitor = Monitor({UTILIZATION: [card_hour(0, 1.0)]}, more=more)

    assert monitor.read(machine()).readings == {}
    assert len(monitor.asked) <= 2


def test_a_point_of_no_card_in_particular_says_nothing_about_any() -> None:
    asked = machine()

    assert Monitor({UTILIZATION: [[point(0, 1.0)]]}).read(asked).readings[asked.ref].histories == ()


def test_only_nvidia_cards_are_asked_about() -> None:
    monitor = Monitor()
    fpga = machine(accelerator=Accelerator(AcceleratorKind.FPGA, "VU9P", 1))

    assert monitor.read(fpga).readings[fpga.ref].histories == ()
    assert monitor.asked == []


def test_a_denied_read_names_both_permissions() -> None:
    denied = AccessDeniedError("no", operation="cms:DescribeMetricList", code="AccessForbidden")

    (gap,) = Monitor(error=denied).read(machine("i-1"), machine("i-2")).gaps

    assert gap.kind is GapKind.DENIED
    assert "cms:DescribeMetricList" in gap.fix
    assert "cms:QueryMetricList" in gap.fix


def test_the_window_is_asked_for_whole_hours_up_to_now() -> None:
    """After StartTime up to EndTime: the first minute is in, and the one that begins at the end is not."""
    monitor = Monitor()
    AlibabaSignals(monitor, frozenset({GPU})).read([machine()], START + 0.5 * HOUR, START + 1.75 * HOUR)

    (asked,) = monitor.asked
    begin, end = int(START.timestamp()) * 1000, int((START + 1.75 * HOUR).timestamp()) * 1000
    assert (asked["StartTime"], asked["EndTime"]) == (str(begin - 1), str(end - 1))
    assert (asked["Period"], asked["Length"]) == ("60", "1440")
    assert json.loads(asked["Dimensions"]) == [{"instanceId": "i-1"}]


def test_no_question_reaches_further_back_than_points_are_kept() -> None:
    monitor = Monitor()
    AlibabaSignals(monitor, frozenset({GPU})).read([machine()], START - 40 * 24 * HOUR, START)

    begin = min(int(asked["StartTime"]) for asked in monitor.asked)
    assert max(int(asked["EndTime"]) for asked in monitor.asked) - begin == 31 * 24 * 3_600_000


def test_fifty_instances_are_one_question_and_fifty_one_are_two() -> None:
    monitor = Monitor()
    monitor.read(*(machine(f"i-{number}") for number in range(51)), hours=24)

    assert {asked["Dimensions"].count("instanceId") for asked in monitor.asked} == {50, 1}


DAY = 24 * 60
PER_CARD = Metric(UTILIZATION, GPU, per_card=True)


def test_questions_hold_some_dozens_of_full_pages() -> None:
    many = [machine(f"i-{number}", cards=8) for number in range(100)]

    sizes = [len(batch) for batch in batched(many, PER_CARD, DAY)]

    assert sum(sizes) == 100
    assert max(sizes) == 64 * MOST_POINTS // (8 * DAY) == 8
    assert [len(batch) for batch in batched(many, PER_CARD, 365 * DAY)] == [1] * 100


def test_a_question_ends_where_its_last_page_is_full() -> None:
    """Fifty series of 24.5 hours are 51 pages and a bit; 48 are 49 pages and nothing."""
    many = [machine(f"i-{number}") for number in range(2 * MOST_INSTANCES)]

    assert [len(batch) for batch in batched(many, PER_CARD, DAY + 30)] == [48, 48, 4]


@pytest.mark.parametrize("series", [1, 4, 48, 50, 400])
@pytest.mark.parametrize("minutes", [60, DAY, DAY + 30, 31 * DAY])
@pytest.mark.parametrize("parts", [1, 3, 8])
def test_a_question_in_parts_has_as_many_pages_as_whole(series: int, minutes: int, parts: int) -> None:
    spans = cut(Span(10, 10 + minutes), series, parts)

    assert (spans[0].first, spans[-1].last) == (10, 10 + minutes)
    assert all(before.last == after.first for before, after in pairwise(spans))
    pages = sum(math.ceil(series * (span.last - span.first) / MOST_POINTS) for span in spans)
    assert pages <= math.ceil(series * minutes / MOST_POINTS) + 1
    assert len(spans) <= parts


def test_a_short_question_is_not_cut() -> None:
    """Where nothing reports, each part costs a request."""
    assert cut(Span(0, DAY), 7, parts=8) == [Span(0, DAY)]


def test_parts_of_a_question_are_read_side_by_side_and_folded_together() -> None:
    monitor = Monitor({UTILIZATION: [[point(minute, minute % 100, card="0") for minute in range(60)]]})
    report = monitor.read(*(machine(f"i-{number}") for number in range(50)), hours=24)

    assert len(monitor.asked) > 1
    assert {asked["Dimensions"] for asked in monitor.asked} == {monitor.asked[0]["Dimensions"]}
    ends = sorted((int(asked["StartTime"]), int(asked["EndTime"])) for asked in monitor.asked)
    assert all(before[1] == after[0] for before, after in pairwise(ends))
    (reading,) = [one for one in report.readings.values() if one.histories]
    assert [history.samples[0] for history in reading.histories] == [60]  # the same minutes in every part count once


def test_one_failed_part_leaves_its_instances_out() -> None:
    monitor = Monitor(error=AccessDeniedError("no", operation="cms:DescribeMetricList", code="NoPermission"))
    report = monitor.read(*(machine(f"i-{number}") for number in range(50)), hours=24)

    assert not report.readings
    assert len(report.gaps) == 1


def rates(**bits: float) -> dict[str, list[Any]]:
    return {name: [[point(minute, value) for minute in range(60)]] for name, value in bits.items()}


def test_network_is_the_sum_of_both_ways_in_bytes() -> None:
    monitor = Monitor(rates(IntranetInRate=800.0, IntranetOutRate=80.0, InternetInRate=8.0, InternetOutRate=8.0))

    found = history(monitor.read(machine(), hours=1, signals=[NETWORK]), NETWORK, "")

    assert (list(found.maxima), list(found.samples)) == ([112.0], [60])


def test_network_without_one_of_its_ways_is_not_measured() -> None:
    monitor = Monitor(rates(IntranetInRate=800.0, InternetInRate=8.0))

    found = history(monitor.read(machine(), hours=1, signals=[NETWORK]), NETWORK, "")

    assert list(found.samples) == [0]
    assert math.isnan(found.maxima[0])


OWN, FURTHER = "203.0.113.7", "203.0.113.8"
INSIDE = {"IntranetInRate": 8.0, "IntranetOutRate": 8.0}
IN, OUT = "VPC_PublicIP_InternetInRate", "VPC_PublicIP_InternetOutRate"


def by_address(*told: tuple[str, float], minutes: range = range(60)) -> list[Any]:
    """One page of a metric of addresses: each series alone, one after the other."""
    return [[point(minute, bits, ip=ip) for ip, bits in told for minute in minutes]]


def network(pages: dict[str, list[Any]], asked: Instance, hours: float = 1) -> SignalHistory:
    return history(Monitor(pages).read(asked, hours=hours, signals=[NETWORK]), NETWORK, "")


def test_a_public_address_must_be_measured_by_one_of_its_metrics() -> None:
    public = machine(public_ip=OWN)

    def samples(addresses: Mapping[str, list[Any]] | None = None, **more: float) -> list[int]:
        return list(network({**rates(**INSIDE, **more), **(addresses or {})}, public).samples)

    assert samples() == [0]
    assert samples(InternetInRate=8.0) == [0]
    assert samples(InternetInRate=8.0, InternetOutRate=8.0) == [60]
    assert samples({IN: by_address((OWN, 8.0))}) == [0]
    assert samples({IN: by_address((OWN, 8.0)), OUT: by_address((OWN, 8.0))}) == [60]


def test_two_busy_addresses_are_added_up() -> None:
    """40 KiB/s each way of each of two addresses are 160 KiB/s of traffic, not 80."""
    busy = by_address((OWN, 40 * 1024 * 8.0), (FURTHER, 40 * 1024 * 8.0))
    quiet = {"IntranetInRate": 0.0, "IntranetOutRate": 0.0}

    found = network({**rates(**quiet), IN: busy, OUT: busy}, machine(public_ip=OWN))

    assert (list(found.maxima), list(found.samples)) == ([160 * 1024.0], [60])


def test_addresses_are_added_up_by_the_minute_and_not_by_their_peaks() -> None:
    """Peaks of different minutes never were there at once."""
    one = [point(minute, 800.0 if minute == 5 else 0.0, ip=OWN) for minute in range(60)]
    other = [point(minute, 80.0 if minute < 30 else 400.0, ip=FURTHER) for minute in range(60)]

    out = by_address((OWN, 0.0), (FURTHER, 0.0))
    found = network({**rates(**INSIDE), IN: [[*one, *other]], OUT: out}, machine(public_ip=OWN))

    assert list(found.maxima) == [1.0 + 1.0 + (800.0 + 80.0) / 8]


@pytest.mark.parametrize(
    ("coming_in", "going_out"),
    [
        (by_address((OWN, 8.0)), by_address((OWN, 8.0), (FURTHER, 8.0))),  # known from the other way
        (by_address((FURTHER, 8.0)), by_address((FURTHER, 8.0))),  # known from the listing
        ([], by_address((OWN, 8.0), (FURTHER, 8.0))),
    ],
)
def test_a_missing_series_of_one_address_is_not_measured(coming_in: list[Any], going_out: list[Any]) -> None:
    """Neither do the rates of the classic network stand in for it."""
    pages = rates(**INSIDE, InternetInRate=0.0, InternetOutRate=0.0)

    found = network({**pages, IN: coming_in, OUT: going_out}, machine(public_ip=OWN))

    assert list(found.samples) == [0]


def test_minutes_in_which_one_address_is_missing_do_not_count() -> None:
    part = [*by_address((OWN, 8.0))[0], *by_address((FURTHER, 8.0), minutes=range(45))[0]]

    found = network({**rates(**INSIDE), IN: [part], OUT: [part]}, machine(public_ip=OWN))

    assert list(found.samples) == [45]


def test_a_busy_minute_shows_also_where_another_address_is_missing() -> None:
    """Else one lost point in sixty could hide the one that tells of work."""
    own = [point(minute, 8_000.0 if minute == 7 else 8.0, ip=OWN) for minute in range(60)]
    other = [point(minute, 8.0, ip=FURTHER) for minute in range(60) if minute != 7]

    found = network({**rates(**INSIDE), IN: [[*own, *other]], OUT: [[*own, *other]]}, machine(public_ip=OWN))

    assert (list(found.maxima), list(found.samples)) == ([2_002.0], [59])


def test_an_address_that_reported_in_another_hour_is_missed_in_this() -> None:
    """Whether it was taken off, or whoever measures it is silent, is not told."""
    pages: dict[str, list[Any]] = {
        name: [[point(minute, 8.0) for minute in range(120)]] for name in ("IntranetInRate", "IntranetOutRate")
    }
    both = [*by_address((OWN, 8.0), minutes=range(120))[0], *by_address((FURTHER, 8.0), minutes=range(60))[0]]

    found = network({**pages, IN: [both], OUT: [both]}, machine(public_ip=OWN), hours=2)

    assert list(found.samples) == [60, 0]


@pytest.mark.parametrize("further", [(FURTHER,), None])
def test_further_addresses_must_be_measured_too(further: tuple[str, ...] | None) -> None:
    """None: it was not read which there are."""
    pages = rates(**INSIDE, InternetInRate=8.0, InternetOutRate=8.0)
    own, both = by_address((OWN, 8.0)), by_address((OWN, 8.0), (FURTHER, 8.0))
    asked = machine(public_ip=OWN, further_public_ips=further)

    assert list(network(pages, asked).samples) == [0]
    assert list(network({**pages, IN: own, OUT: own}, asked).samples) == [0]
    assert list(network({**pages, IN: both, OUT: both}, asked).samples) == ([60] if further else [0])


def test_an_address_of_a_further_card_alone_is_asked_about() -> None:
    on_card = by_address((FURTHER, 800.0))

    found = network({**rates(**INSIDE), IN: on_card, OUT: on_card}, machine(further_public_ips=(FURTHER,)))

    assert (list(found.maxima), list(found.samples)) == ([202.0], [60])


def test_a_minute_of_an_address_that_comes_twice_counts_once() -> None:
    twice = [*by_address((OWN, 8.0))[0], *by_address((OWN, 80.0))[0]]

    found = network({**rates(**INSIDE), IN: [twice], OUT: by_address((OWN, 8.0))}, machine(public_ip=OWN))

    assert (list(found.maxima), list(found.samples)) == ([1.0 + 1.0 + 10.0 + 1.0], [60])


@pytest.mark.parametrize("value", ["1.0", None, math.nan, -1.0, True, 10**400])
def test_an_implausible_rate_of_an_address_is_kept_as_infinity(value: Any) -> None:
    odd = [*by_address((OWN, 8.0))[0], point(3, value, ip=OWN)]

    found = network({**rates(**INSIDE), IN: [odd], OUT: by_address((OWN, 8.0))}, machine(public_ip=OWN))

    assert list(found.maxima) == [math.inf]


def test_a_rate_of_no_address_in_particular_is_not_as_documented() -> None:
    """Of which series it is a part cannot be told, so nothing can be added up."""
    pages = {**rates(**INSIDE), IN: [[point(0, 8.0)]], OUT: [[point(0, 8.0)]]}

    report = Monitor(pages).read(machine(public_ip=OWN), hours=1, signals=[NETWORK])

    assert report.readings == {}
    assert [gap.kind for gap in report.gaps] == [GapKind.UNREADABLE]


def test_cpu_is_of_the_whole_machine() -> None:
    monitor = Monitor(rates(CPUUtilization=12.5))

    assert list(history(monitor.read(machine(), hours=1, signals=[CPU]), CPU, "").maxima) == [12.5]


def test_nothing_to_ask_asks_nothing() -> None:
    monitor = Monitor()

    assert monitor.read() == SignalReport({})
    assert monitor.read(machine(), hours=0).gaps == ()
    assert monitor.asked == []


SHOWN = frozenset({CPU, NETWORK, SignalName.DISK, SignalName.POWER})


def test_what_no_rule_names_is_read_beside_it_by_the_hour() -> None:
    monitor = Monitor(
        {
            UTILIZATION: [card_hour(0, 0.0)],
            "CPUUtilization": [[point(0, 97.0), point(60, 5.0)]],
            "IntranetInRate": [[point(0, 8_000.0)]],
            "IntranetOutRate": [[point(0, 800.0)]],
            "DiskReadBPS": [[point(0, 5_000.0)]],
            "DiskWriteBPS": [[point(0, 1_000.0)]],
        }
    )

    report = AlibabaSignals(monitor, frozenset({GPU}), SHOWN).read([machine()], START, START + 2 * HOUR)

    (reading,) = report.readings.values()
    assert {one.name: one.maxima[0] for one in reading.histories} == {
        GPU: 0.0,
        CPU: 97.0,
        NETWORK: 1_100.0,
        SignalName.DISK: 6_000.0,
    }
    assert {asked["MetricName"]: asked["Period"] for asked in monitor.asked if asked["MetricName"] == UTILIZATION} == {
        UTILIZATION: "60"
    }
    assert {asked["Period"] for asked in monitor.asked if asked["MetricName"] != UTILIZATION} == {"3600"}


def test_fifty_machines_and_a_day_of_what_is_only_shown_are_one_page_a_metric() -> None:
    monitor = Monitor()
    fleet = [machine(f"i-{number}") for number in range(50)]

    AlibabaSignals(monitor, frozenset(), frozenset({CPU})).read(fleet, START, START + 24 * HOUR)

    assert len(monitor.asked) == 1


class Failing(Monitor):
    """Host metrics cannot be read."""

    def call(self, shard: Shard, service: str, operation: str, /, **parameters: Any) -> Mapping[str, Any]:
        if parameters["MetricName"] != UTILIZATION:
            raise AccessDeniedError("no", operation="cms:DescribeMetricList", code="AccessForbidden")
        return super().call(shard, service, operation, **parameters)


def test_a_signal_that_is_only_shown_leaves_nobody_unread() -> None:
    monitor = Failing({UTILIZATION: [card_hour(0, 0.0)]})

    report = AlibabaSignals(monitor, frozenset({GPU}), SHOWN).read([machine()], START, START + HOUR)

    assert [one.name for one in report.readings[machine().ref].histories] == [GPU]
    assert report.gaps == ()
