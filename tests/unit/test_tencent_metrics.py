"""Reading Monitor: how much fits one call, and what an answer may and may not say."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.tencent_monitor import (
    DAY,
    HOUR,
    KNOWN,
    MINE,
    MINUTE,
    NOW,
    SINCE,
    Monitor,
    beyond,
    box,
    empty,
    only,
    read,
)

from costguard.domain.errors import AccessDeniedError, RefusedError, TruncatedReadError
from costguard.domain.refs import Shard
from costguard.domain.resources import Accelerator, AcceleratorKind, GapKind
from costguard.domain.signals import SignalName, Statistic
from costguard.ports import SignalReport
from costguard.providers.kit.compute.metrics import Cells, Window
from costguard.providers.tencent.compute.metric_answers import Known, period_for, points_in
from costguard.providers.tencent.compute.metric_calls import LARGER, LESSER, Page, Pages, fold
from costguard.providers.tencent.compute.metrics import METRICS, TencentSignals, jobs_for, spelled
from costguard.providers.tencent.core.errors import UNSUPPORTED


def test_utilisation_is_a_mean_over_the_cards_at_one_minute() -> None:
    history = only(read(Monitor(), box(cards=8)))
    assert history.name is SignalName.GPU
    assert history.statistic is Statistic.MEAN_OF_CARDS
    assert history.device == ""
    assert list(history.maxima) == [3.0, 3.0, 3.0]
    assert list(history.samples) == [60, 60, 20]


def test_points_at_the_end_of_an_interval_are_counted_once() -> None:
    """Below an hour the end is included, so two calls in a row tell of the same minute."""
    monitor = Monitor()
    report = TencentSignals(monitor, frozenset({SignalName.GPU}), pages=Pages(LESSER)).read([box()], NOW - 2 * DAY, NOW)
    assert len(monitor.asked) == 3
    assert set(only(report).samples) == {60, 20}


@pytest.mark.parametrize(
    ("age", "finest", "period"),
    [
        (HOUR, 60, 60),
        (15 * DAY, 60, 60),
        (15 * DAY + HOUR, 60, 300),
        (31 * DAY + HOUR, 60, 3600),
        (400 * DAY, 60, 3600),
        (HOUR, 300, 300),
    ],
)
def test_the_finest_period_still_kept_is_read(age: timedelta, finest: int, period: int) -> None:
    assert period_for(NOW - age, NOW, finest) == period


@pytest.mark.parametrize(("page", "machines"), [(LESSER, [10, 10, 5]), (LARGER, [25])])
def test_full_calls_of_one_metric(page: Page, machines: list[int]) -> None:
    boxes = [box(f"ins-{number}") for number in range(25)]
    metrics = [metric for metric in METRICS if metric.signal is SignalName.CPU]
    (job,) = jobs_for(metrics, boxes, Window.spanning(SINCE, NOW), NOW)
    jobs = list(job.parts(page))
    assert [len(job.targets) for job in jobs] == machines
    assert {(job.begin, job.end) for job in jobs} == {(NOW - 2 * HOUR - 20 * MINUTE, NOW)}


def test_over_the_limit_is_a_gap_and_never_idle() -> None:
    """The call succeeds: `Msg` tells, and the series are empty."""
    report = read(Monitor(change=beyond))
    assert report.readings == {}
    assert [(gap.what, gap.kind) for gap in report.gaps] == [("signals", GapKind.TRUNCATED)]


def no_series(answer: dict[str, Any]) -> None:
    answer["DataPoints"] = []


@pytest.mark.parametrize("change", [empty, no_series])
def test_no_points_are_no_measurement_and_not_idle(change: Callable[[dict[str, Any]], None]) -> None:
    report = read(Monitor(change=change))
    (reading,) = report.readings.values()
    assert reading.histories == ()


def test_missing_points_stay_visible() -> None:
    def half(answer: dict[str, Any]) -> None:
        for series in answer["DataPoints"]:
            series["Timestamps"], series["Values"] = series["Timestamps"][::2], series["Values"][::2]

    assert list(only(read(Monitor(change=half))).samples) == [30, 30, 10]


def test_an_impossible_value_is_kept_as_infinite() -> None:
    assert set(only(read(Monitor(value=-1.0))).maxima) == {math.inf}
    assert set(only(read(Monitor(value=101.0))).maxima) == {math.inf}


@pytest.mark.parametrize(
    "change",
    [
        {"DataPoints": None},
        {"DataPoints": [{"Dimensions": MINE, "Timestamps": [1.0], "Values": []}]},
        {"DataPoints": [{"Dimensions": MINE, "Timestamps": [1.0], "Values": [1.0]}]},
        {"DataPoints": [{"Dimensions": MINE, "Timestamps": ["x"], "Values": [1.0]}]},
        {"DataPoints": [{"Dimensions": MINE}] * 2},
        {"DataPoints": [{"Dimensions": "ins-1"}]},
        {"Msg": 7},
        {"Period": 300},
        {"Period": None},
    ],
    ids=[
        "null",
        "uneven",
        "not asked for",
        "no time",
        "two series",
        "no dimensions",
        "Msg",
        "other period",
        "no period",
    ],
)
def test_an_answer_of_another_form_is_a_gap(change: dict[str, Any]) -> None:
    report = read(Monitor(change=lambda answer: answer.update(change)))
    assert report.readings == {}
    assert len(report.gaps) == 1


def test_machines_nobody_asked_about_are_left_alone() -> None:
    def stranger(answer: dict[str, Any]) -> None:
        theirs = [{"Name": "InstanceId", "Value": "ins-9"}]
        answer["DataPoints"].append({**answer["DataPoints"][0], "Dimensions": theirs})

    assert set(only(read(Monitor(change=stranger))).samples) == {60, 20}


def test_dimensions_are_matched_by_name() -> None:
    def mixed(answer: dict[str, Any]) -> None:
        for series in answer["DataPoints"]:
            (pair,) = series["Dimensions"]
            series["Dimensions"] = [{"Name": "Other", "Value": "x"}, {"Name": "instanceid", "Value": pair["Value"]}]

    assert set(only(read(Monitor(change=mixed))).samples) == {60, 20}


def test_metrics_are_asked_for_as_the_monitor_spells_them() -> None:
    monitor = Monitor()
    read(monitor, signals=frozenset({SignalName.POWER, SignalName.CPU}))
    assert {asked["MetricName"] for asked in monitor.asked} == {"Gpupowdraw", "CpuUsage"}
    assert {asked["Period"] for asked in monitor.asked} == {60, 300}


def test_spelling_is_asked_once_and_its_refusal_is_a_gap() -> None:
    monitor = Monitor()
    monitor.known = AccessDeniedError("no", operation="monitor:DescribeBaseMetrics", code="UnauthorizedOperation")
    signals = TencentSignals(monitor, frozenset({SignalName.GPU}))
    report = signals.read([box()], SINCE, NOW)
    assert (report.readings, [gap.kind for gap in report.gaps]) == ({}, [GapKind.DENIED])
    monitor.known = KNOWN
    assert signals.read([box()], SINCE, NOW).gaps == ()
    monitor.known = AccessDeniedError("no more", operation="monitor:DescribeBaseMetrics")
    assert signals.read([box()], SINCE, NOW).gaps == ()


def test_a_stand_in_without_names_is_asked_by_the_documented_ones() -> None:
    monitor = Monitor()
    monitor.known = RefusedError("unknown", code=UNSUPPORTED)
    assert only(read(monitor)).name is SignalName.GPU
    assert monitor.asked[0]["MetricName"] == "GpuUtil"


def test_a_unit_nobody_knows_leaves_the_signal_out() -> None:
    known = {metric.name.lower(): Known(metric.name, "parsec") for metric in METRICS}
    assert {metric.signal for metric in spelled(METRICS, known)} == {SignalName.GPU, SignalName.POWER, SignalName.CPU}
    assert list(spelled(METRICS, {})) == []


def test_network_is_bytes_a_second_of_all_ways_together() -> None:
    """1 Mbps in and 1 Mbps out on the inner side: 250,000 bytes a second; the outer side only where there is one."""
    monitor = Monitor(value=1.0)
    inner = only(read(monitor, signals=frozenset({SignalName.NETWORK})))
    assert set(inner.maxima) == {250_000.0}
    assert {asked["MetricName"] for asked in monitor.asked} == {"LanIntraffic", "LanOuttraffic"}
    both = only(read(Monitor(value=1.0), box(public_ip="203.0.113.7"), signals=frozenset({SignalName.NETWORK})))
    assert set(both.maxima) == {500_000.0}


def test_network_is_seen_as_little_as_its_worst_series() -> None:
    def silent_way(answer: dict[str, Any]) -> None:
        if answer["MetricName"] == "LanOuttraffic":
            empty(answer)

    report = read(Monitor(change=silent_way), signals=frozenset({SignalName.NETWORK}))
    (reading,) = report.readings.values()
    assert reading.histories == ()


def test_devices_are_asked_for_where_there_are_nvidia_cards_only() -> None:
    monitor = Monitor()
    report = read(monitor, box(accelerator=Accelerator(AcceleratorKind.FPGA, "", 1)))
    assert monitor.asked == []
    (reading,) = report.readings.values()
    assert reading.histories == ()


def test_one_failed_call_leaves_the_others() -> None:
    class Failing(Monitor):
        def call(self, shard: Shard, service: str, action: str, /, **parameters: Any) -> dict[str, Any]:
            if any(each["Dimensions"][0]["Value"] == "ins-0" for each in parameters.get("Instances", ())):
                raise TruncatedReadError("cut short", operation="monitor:GetMonitorData")
            return super().call(shard, service, action, **parameters)

    boxes = [box(f"ins-{number}") for number in range(20)]
    report = read(Failing(), *boxes)
    assert {gap.kind for gap in report.gaps} == {GapKind.TRUNCATED}
    assert "ins-0" in report.gaps[0].detail
    assert 0 < len(report.readings) < 20
    assert boxes[0].ref not in report.readings


def test_nothing_asked_is_nothing_read() -> None:
    monitor = Monitor()
    assert TencentSignals(monitor, frozenset({SignalName.GPU})).read([], SINCE, NOW) == SignalReport({})
    assert monitor.asked == []


def test_counts_of_several_calls_add_up() -> None:
    start = NOW.replace(minute=0)
    cells = Cells.empty(1)
    fold(cells, SignalName.GPU, start, [start, start + MINUTE], [1.0, 5.0])
    fold(cells, SignalName.GPU, start, [start + 2 * MINUTE], [2.0])
    assert (list(cells.maxima), list(cells.samples)) == ([5.0], [3])


def test_a_null_among_the_values_is_a_missing_point() -> None:
    answer = {
        "Period": 60,
        "Msg": None,
        "DataPoints": [
            {
                "Dimensions": [{"Name": "InstanceId", "Value": "ins-1"}],
                "Timestamps": [SINCE.timestamp(), SINCE.timestamp() + 60],
                "Values": [None, 2.5],
            }
        ],
    }
    (found,) = points_in(answer, frozenset({("ins-1", "")}), SINCE, NOW, 60)
    assert (found.timestamps, found.values) == ([SINCE + MINUTE], [2.5])


SHOWN = frozenset({SignalName.CPU, SignalName.NETWORK, SignalName.DISK, SignalName.POWER})


def test_what_no_rule_names_is_read_beside_it_by_the_hour() -> None:
    monitor = Monitor()

    report = TencentSignals(monitor, frozenset({SignalName.GPU}), SHOWN).read([box()], SINCE, NOW)

    (reading,) = report.readings.values()
    names = {one.name for one in reading.histories}
    assert names == {SignalName.GPU, SignalName.POWER, SignalName.CPU, SignalName.NETWORK}, "and no disk"
    periods = {asked["MetricName"]: asked["Period"] for asked in monitor.asked}
    assert periods.pop("GpuUtil") == 60
    assert set(periods.values()) == {3600}
    assert reading.documented_delay == 5 * MINUTE


def test_a_signal_that_is_only_shown_leaves_nobody_unread() -> None:
    def no_network(answer: dict[str, Any]) -> None:
        if answer["MetricName"] != "GpuUtil":
            answer["Msg"] = "too much was asked for"

    report = TencentSignals(Monitor(change=no_network), frozenset({SignalName.GPU}), SHOWN).read([box()], SINCE, NOW)

    assert only(report).name is SignalName.GPU
    assert report.gaps == ()
