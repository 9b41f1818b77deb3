"""The Prometheus adapter against a real server (Debian's package `prometheus`) holding history made for the purpose."""

from __future__ import annotations

import math
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from costguard.adapters.signal_sources.http import http_post
from costguard.adapters.signal_sources.prometheus import PrometheusSignals
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import (
    Accelerator,
    AcceleratorKind,
    Billing,
    GapKind,
    Instance,
    InstanceState,
)
from costguard.domain.signals import SignalHistory, SignalName
from costguard.policy.model.policy import Prometheus
from costguard.ports import SignalReport

_SERVER = shutil.which("prometheus")
_TOOL = shutil.which("promtool")
pytestmark = pytest.mark.skipif(
    _SERVER is None or _TOOL is None,
    reason="NOT PROVEN HERE: the prometheus and promtool binaries are missing; apt-get install prometheus",
)

UNTIL = datetime(2026, 3, 3, 10, 20, tzinfo=timezone.utc)  # twenty minutes into an hour
SINCE = UNTIL - timedelta(hours=24)
START = datetime(2026, 3, 2, 10, tzinfo=timezone.utc)
HOURS = 25
FULL = [60] * 24 + [20]
Value = Callable[[datetime], float | None]


def test_every_card_has_its_own_hourly_maxima(prometheus: str) -> None:
    report = read(prometheus, "i-0idle")
    first, second = cards(report, "i-0idle")
    assert (first.device, second.device) == ("0", "1")
    assert list(first.maxima) == [0.0] * HOURS
    assert list(second.maxima) == [3.0] * HOURS
    assert samples_of(first) == samples_of(second) == FULL
    assert first.start == START
    assert report.gaps == ()


def test_one_sample_on_the_hour_is_busy_in_the_hour_it_begins_only(prometheus: str) -> None:
    (card,) = cards(read(prometheus, "i-0spike"), "i-0spike")
    assert [hour for hour, value in enumerate(card.maxima) if value > 1] == [5]
    assert card.maxima[5] == 97.0


def test_the_hour_in_progress_is_read_up_to_the_moment_asked_for(prometheus: str) -> None:
    (card,) = cards(read(prometheus, "i-0late"), "i-0late")
    assert card.maxima[24] == 88.0
    summary = card.over(SINCE, UNTIL)
    assert summary.newest_at is not None
    assert UNTIL - summary.newest_at <= timedelta(minutes=2)
    (earlier,) = cards(read(prometheus, "i-0late", until=UNTIL - timedelta(minutes=5)), "i-0late")
    assert earlier.maxima[24] == 0.0


def test_a_window_that_ends_on_the_hour_has_no_hour_in_progress(prometheus: str) -> None:
    on_the_hour = UNTIL.replace(minute=0)
    (card,) = cards(read(prometheus, "i-0late", until=on_the_hour), "i-0late")
    assert samples_of(card) == [60] * 24


def test_a_window_within_one_hour_is_read(prometheus: str) -> None:
    report = read(prometheus, "i-0late", since=UNTIL - timedelta(minutes=15))
    (card,) = cards(report, "i-0late")
    assert list(card.maxima) == [88.0]


def test_a_dead_exporter_leaves_hours_without_samples(prometheus: str) -> None:
    (card,) = cards(read(prometheus, "i-0dead"), "i-0dead")
    assert samples_of(card) == [60] * 18 + [30] + [0] * 6
    assert all(math.isnan(value) for value in card.maxima[19:])
    summary = card.over(SINCE, UNTIL)
    assert summary.coverage < 0.8
    assert summary.newest_at is not None
    assert summary.newest_at < UNTIL - timedelta(hours=5)


def test_missing_minutes_stay_visible(prometheus: str) -> None:
    (card,) = cards(read(prometheus, "i-0gap"), "i-0gap")
    assert samples_of(card)[3] == 40


def test_an_exporter_that_loses_half_of_every_hour_is_half_covered(prometheus: str) -> None:
    """The scrape interval is read from the densest five minutes, so steady loss does not pass for a slower scrape."""
    (card,) = cards(read(prometheus, "i-0half"), "i-0half")
    assert card.over(SINCE, UNTIL).coverage == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("seconds", [15, 45, 120])
def test_any_scrape_interval_can_be_full_coverage(prometheus: str, seconds: int) -> None:
    (card,) = cards(read(prometheus, f"i-0every{seconds}"), f"i-0every{seconds}")
    summary = card.over(SINCE, UNTIL)
    assert summary.coverage >= 0.98
    assert summary.newest_at is not None
    assert UNTIL - timedelta(minutes=5) <= summary.newest_at <= UNTIL


def test_a_series_that_changes_its_pod_label_is_one_card(prometheus: str) -> None:
    (card,) = cards(read(prometheus, "i-0pods"), "i-0pods")
    assert samples_of(card) == FULL
    assert card.maxima[2] == 41.0


def test_two_jobs_that_scrape_one_exporter_do_not_double_its_samples(prometheus: str) -> None:
    (card,) = cards(read(prometheus, "i-0twice"), "i-0twice")
    assert samples_of(card) == FULL


def test_a_nan_sample_makes_its_hour_implausible(prometheus: str) -> None:
    (card,) = cards(read(prometheus, "i-0nan"), "i-0nan")
    assert [hour for hour, value in enumerate(card.maxima) if math.isinf(value)] == [7]


def test_an_infinite_sample_makes_its_hour_implausible(prometheus: str) -> None:
    (card,) = cards(read(prometheus, "i-0inf"), "i-0inf")
    assert [hour for hour, value in enumerate(card.maxima) if math.isinf(value)] == [9]


def test_a_card_in_slices_is_one_device_as_busy_as_its_busiest_slice(prometheus: str) -> None:
    (card,) = cards(read(prometheus, "i-0mig"), "i-0mig")
    assert card.device == "0"
    assert card.maxima[4] == pytest.approx(42.0)
    assert samples_of(card) == FULL


def test_a_card_in_slices_is_covered_only_where_every_slice_is(prometheus: str) -> None:
    (card,) = cards(read(prometheus, "i-0migpart"), "i-0migpart")
    assert samples_of(card)[10:12] == [0, 0]
    assert samples_of(card)[12] == 60


def test_gpu_util_alone_does_not_measure_slices(prometheus: str) -> None:
    (card,) = cards(read(prometheus, "i-0migutil"), "i-0migutil")
    assert samples_of(card) == [0] * HOURS


def test_engine_activity_and_utilisation_are_merged_by_the_larger(prometheus: str) -> None:
    (card,) = cards(read(prometheus, "i-0engine"), "i-0engine")
    assert card.maxima[0] == pytest.approx(63.0)
    assert card.maxima[1] == 2.0


def test_power_and_memory_are_read_per_card(prometheus: str) -> None:
    report = read(prometheus, "i-0idle")
    assert [h.maxima[0] for h in found(report, "i-0idle", SignalName.POWER)] == [58.0, 61.0]
    memory = found(report, "i-0idle", SignalName.GPU_MEMORY)
    assert [round(history.maxima[0], 6) for history in memory] == [25.0, 0.0]


def test_cards_of_the_nvidia_smi_exporter_are_known_by_their_index(prometheus: str) -> None:
    report = read(prometheus, "i-0smi")
    first, second = cards(report, "i-0smi")
    assert (first.device, second.device) == ("0", "1")
    assert [first.maxima[3], second.maxima[3]] == pytest.approx([77.0, 0.0])
    assert samples_of(first) == samples_of(second) == FULL
    assert [h.maxima[0] for h in found(report, "i-0smi", SignalName.POWER)] == [58.0, 61.0]


def test_a_card_of_that_exporter_without_an_index_is_nobodys(prometheus: str) -> None:
    assert cards(read(prometheus, "i-0smibare"), "i-0smibare") == ()


def test_a_card_that_two_exporters_measure_is_one_card_as_busy_as_either_says(prometheus: str) -> None:
    """Else four cards of eight that are measured twice would pass for eight."""
    (card,) = cards(read(prometheus, "i-0both"), "i-0both")
    assert card.device == "0"
    assert [card.maxima[0], card.maxima[6]] == pytest.approx([2.0, 64.0])
    assert samples_of(card) == FULL


def test_two_jobs_that_scrape_one_nvidia_smi_exporter_do_not_double_its_samples(prometheus: str) -> None:
    (card,) = cards(read(prometheus, "i-0smitwice"), "i-0smitwice")
    assert samples_of(card) == FULL


def test_cards_of_telegraf_are_read_in_percent_by_their_index(prometheus: str) -> None:
    report = read(prometheus, "i-0telegraf")
    first, second = cards(report, "i-0telegraf")
    assert (first.device, first.maxima[0], second.device, second.maxima[0]) == ("0", 5.0, "1", 9.0)
    assert [h.maxima[0] for h in found(report, "i-0telegraf", SignalName.POWER)] == [70.0]


def test_cpu_and_network_come_from_the_node_exporter(prometheus: str) -> None:
    report = read(prometheus, "i-0node")
    (cpu,) = found(report, "i-0node", SignalName.CPU)
    (network,) = found(report, "i-0node", SignalName.NETWORK)
    assert cpu.maxima[6] == pytest.approx(80.0, abs=1)  # one of two cores idle 40 %, the other not at all
    assert cpu.maxima[8] == pytest.approx(10.0, abs=1)
    assert network.maxima[8] == pytest.approx(3000.0, rel=0.02)  # in and out together, loopback left out
    assert samples_of(cpu) == samples_of(network) == FULL
    assert cpu.device == network.device == ""


def test_a_node_without_gpu_metrics_has_no_gpu_history(prometheus: str) -> None:
    assert cards(read(prometheus, "i-0node"), "i-0node") == ()


def test_a_host_name_that_begins_with_the_id_is_found(prometheus: str) -> None:
    (card,) = cards(read(prometheus, "i-0host"), "i-0host")
    assert samples_of(card) == FULL


def test_an_id_that_only_begins_like_another_is_another(prometheus: str) -> None:
    report = read(prometheus, "i-0hos")
    assert report.readings[ref("i-0hos")].histories == ()


def test_an_instance_nobody_scraped_has_an_empty_reading(prometheus: str) -> None:
    report = read(prometheus, "i-0idle", "i-0none")
    assert report.readings[ref("i-0none")].histories == ()
    assert report.gaps == ()


def test_extra_matchers_narrow_what_is_read(prometheus: str) -> None:
    kept = read(prometheus, "i-0twice", settings=Prometheus(prometheus, extra_matchers='{job="a"}'))
    lost = read(prometheus, "i-0twice", settings=Prometheus(prometheus, extra_matchers='job="c",'))
    assert len(cards(kept, "i-0twice")) == 1
    assert lost.readings[ref("i-0twice")].histories == ()


def test_matchers_the_server_refuses_leave_the_instance_absent_with_a_gap(prometheus: str) -> None:
    report = read(prometheus, "i-0idle", settings=Prometheus(prometheus, extra_matchers="cluster~a"))
    assert report.readings == {}
    assert [gap.kind for gap in report.gaps] == [GapKind.UNREADABLE]
    assert "parse error" in report.gaps[0].detail


def test_more_instances_than_one_batch_are_all_read(prometheus: str) -> None:
    ids = [f"i-0absent{number}" for number in range(60)] + ["i-0idle"]
    report = read(prometheus, *ids)
    assert len(report.readings) == 61
    assert len(cards(report, "i-0idle")) == 2


def test_a_fortnight_is_read(prometheus: str) -> None:
    (card,) = cards(read(prometheus, "i-0spike", since=UNTIL - timedelta(days=14)), "i-0spike")
    assert len(card.maxima) == 14 * 24 + 1
    assert samples_of(card)[-HOURS:] == FULL
    assert sum(samples_of(card)[:-HOURS]) == 0


LATE = {GapKind.UNAVAILABLE: "503", GapKind.UNREADABLE: "422"}  # as where the server was when its time was up


@pytest.mark.parametrize(
    ("flag", "said"),
    [("--query.max-samples=20", {GapKind.UNREADABLE: "422"}), ("--query.timeout=1ms", LATE)],
)
def test_a_server_at_its_limits_is_a_gap(history: Path, tmp_path: Path, flag: str, said: dict[GapKind, str]) -> None:
    copy = tmp_path / "data"
    shutil.copytree(history, copy)
    with server(copy, flag) as url:
        report = read(url, "i-0idle", "i-0spike", since=UNTIL - timedelta(days=400))  # far longer than a millisecond
    assert report.readings == {}
    assert [gap.what for gap in report.gaps] == ["signals"]
    assert said[report.gaps[0].kind] in report.gaps[0].detail


def test_a_server_that_is_gone_is_a_gap(history: Path, tmp_path: Path) -> None:
    copy = tmp_path / "data"
    shutil.copytree(history, copy)
    with server(copy) as url:
        pass
    report = read(url, "i-0idle")
    assert report.readings == {}
    assert [gap.kind for gap in report.gaps] == [GapKind.UNAVAILABLE]


# the world these tests look at


def constant(value: float) -> Value:
    return lambda _: value


def during(hour: int, inside: float, outside: float) -> Value:
    return lambda at: inside if hour_of(at) == hour else outside


def except_in(hours: set[int], value: float) -> Value:
    return lambda at: None if hour_of(at) in hours else value


def hour_of(at: datetime) -> int:
    return (at - START) // timedelta(hours=1)


def series(
    lines: list[str], labels: str, value: Value, *, seconds: int = 60, first: datetime = START, last: datetime = UNTIL
) -> None:
    """Samples on the grid of `seconds`; None leaves one out."""
    at = first
    while at < last:
        sample = value(at)
        if sample is not None:
            lines.append(f"{labels} {sample} {at.timestamp():.3f}")
        at += timedelta(seconds=seconds)


def gpu(name: str, labels: str = 'gpu="0"', *, job: str = "dcgm") -> str:
    host = name.split(":", maxsplit=1)[0]
    return f'{{instance_id="{name}",job="{job}",instance="{host}:9400",{labels}}}'


def utilisation() -> list[str]:
    lines: list[str] = []
    metric = "DCGM_FI_DEV_GPU_UTIL"
    offset = START + timedelta(seconds=30)
    spike = START + timedelta(hours=5)
    late = UNTIL - timedelta(minutes=1)
    death = START + timedelta(hours=18, minutes=30)
    switch = START + timedelta(hours=2, minutes=20)
    series(lines, metric + gpu("i-0idle"), constant(0), first=offset)
    series(lines, metric + gpu("i-0idle", 'gpu="1"'), constant(3), first=offset)
    series(lines, metric + gpu("i-0spike"), lambda at: 97 if at == spike else 0)
    series(lines, metric + gpu("i-0late"), lambda at: 88 if at == late else 0)
    series(lines, metric + gpu("i-0dead"), lambda at: 0 if at < death else None)
    series(lines, metric + gpu("i-0gap"), lambda at: None if hour_of(at) == 3 and 20 <= at.minute < 40 else 0)
    series(lines, metric + gpu("i-0half"), lambda at: 0 if at.minute < 30 else None)
    for seconds in (15, 45, 120):
        series(lines, metric + gpu(f"i-0every{seconds}"), constant(0), seconds=seconds)
    series(lines, metric + gpu("i-0pods", 'gpu="0",pod="first"'), lambda at: 0 if at < switch else None)
    series(
        lines, metric + gpu("i-0pods", 'gpu="0",pod="next"'), lambda at: during(2, 41, 0)(at) if at >= switch else None
    )
    for job in ("a", "b"):
        series(lines, metric + gpu("i-0twice", job=job), constant(0))
    bad = START + timedelta(hours=7, minutes=31)
    series(lines, metric + gpu("i-0nan"), lambda at: math.nan if at == bad else 0)
    worse = START + timedelta(hours=9, minutes=31)
    series(lines, metric + gpu("i-0inf"), lambda at: math.inf if at == worse else 0)
    series(lines, metric + gpu("i-0migutil", 'gpu="0",GPU_I_ID="1",GPU_I_PROFILE="1g.5gb"'), constant(0))
    series(lines, metric + gpu("i-0engine"), constant(2))
    series(lines, metric + gpu("i-0both"), constant(2))
    series(lines, metric + gpu("i-0host.us-east-1.compute.internal:9400"), constant(0))
    return lines


def engine() -> list[str]:
    lines: list[str] = []
    metric = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    for number, busy in (("7", 0.0), ("8", 0.42), ("9", 0.0)):
        labels = f'gpu="0",GPU_I_ID="{number}",GPU_I_PROFILE="1g.5gb"'
        series(lines, metric + gpu("i-0mig", labels), during(4, busy, 0.0))
        series(lines, metric + gpu("i-0migpart", labels), except_in({10, 11} if number == "9" else set(), 0.0))
    series(lines, metric + gpu("i-0engine"), during(0, 0.63, 0.01))
    return lines


def nvidia_smi() -> dict[str, list[str]]:
    """What the exporter of nvidia-smi and telegraf's input of it write."""
    share, index, watts, percent, draw = [], [], [], [], []  # type: list[str], list[str], list[str], list[str], list[str]
    for number, uuid in enumerate(("b6-first", "a1-second")):
        labels = gpu("i-0smi", f'uuid="{uuid}"', job="smi")
        series(share, f"nvidia_smi_utilization_gpu_ratio{labels}", during(3, 0.77 if number == 0 else 0.0, 0.0))
        series(index, f"nvidia_smi_index{labels}", constant(number))
        series(watts, f"nvidia_smi_power_draw_watts{labels}", constant(58.0 + 3 * number))
    for job in ("a", "b"):
        labels = gpu("i-0smitwice", 'uuid="c"', job=job)
        series(share, f"nvidia_smi_utilization_gpu_ratio{labels}", constant(0.0))
        series(index, f"nvidia_smi_index{labels}", constant(0))
    series(share, "nvidia_smi_utilization_gpu_ratio" + gpu("i-0smibare", 'uuid="d"', job="smi"), constant(0.0))
    both = gpu("i-0both", 'uuid="e"', job="smi")
    series(share, f"nvidia_smi_utilization_gpu_ratio{both}", during(6, 0.64, 0.0))
    series(index, f"nvidia_smi_index{both}", constant(0))
    for number in range(2):
        labels = gpu("i-0telegraf", f'index="{number}",name="A10G",uuid="f{number}"', job="telegraf")
        series(percent, f"nvidia_smi_utilization_gpu{labels}", constant(5.0 + 4 * number))
    series(draw, "nvidia_smi_power_draw" + gpu("i-0telegraf", 'index="0"', job="telegraf"), constant(70.0))
    return {
        "nvidia_smi_utilization_gpu_ratio": share,
        "nvidia_smi_index": index,
        "nvidia_smi_power_draw_watts": watts,
        "nvidia_smi_utilization_gpu": percent,
        "nvidia_smi_power_draw": draw,
    }


def counter(rates: Mapping[int, float], usual: float) -> Value:
    """A counter that grows by `usual` a second, and by `rates[h]` in hour h."""

    def value(at: datetime) -> float:
        total, hour = 0.0, 0
        while START + timedelta(hours=hour + 1) <= at:
            total += 3600 * rates.get(hour, usual)
            hour += 1
        return total + (at - (START + timedelta(hours=hour))).total_seconds() * rates.get(hour, usual)

    return value


def node(extra: str) -> str:
    return f'{{instance_id="i-0node",job="node",instance="i-0node:9100",{extra}}}'


def open_metrics() -> str:
    blocks: dict[tuple[str, str], list[str]] = {
        ("DCGM_FI_DEV_GPU_UTIL", "gauge"): utilisation(),
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge"): engine(),
        **{(metric, "gauge"): lines for metric, lines in nvidia_smi().items()},
    }
    for metric, values in (
        ("DCGM_FI_DEV_POWER_USAGE", (58.0, 61.0)),
        ("DCGM_FI_DEV_FB_USED", (10_000.0, 0.0)),
        ("DCGM_FI_DEV_FB_FREE", (30_000.0, 40_000.0)),
    ):
        lines: list[str] = []
        for index, value in enumerate(values):
            series(lines, metric + gpu("i-0idle", f'gpu="{index}"'), constant(value))
        blocks[metric, "gauge"] = lines
    cpu: list[str] = []
    series(cpu, "node_cpu_seconds_total" + node('mode="idle",cpu="0"'), counter({6: 0.4}, 0.9))
    series(cpu, "node_cpu_seconds_total" + node('mode="idle",cpu="1"'), counter({6: 0.0}, 0.9))
    series(cpu, "node_cpu_seconds_total" + node('mode="user",cpu="0"'), counter({}, 0.1))
    blocks["node_cpu_seconds", "counter"] = cpu
    for direction, rate in (("receive", 1000.0), ("transmit", 2000.0)):
        lines = []
        metric = f"node_network_{direction}_bytes"
        series(lines, f"{metric}_total" + node('device="eth0"'), counter({}, rate))
        series(lines, f"{metric}_total" + node('device="lo"'), counter({}, 1e6))
        blocks[metric, "counter"] = lines
    text = [f"# TYPE {name} {kind}\n" + "\n".join(lines) for (name, kind), lines in blocks.items()]
    return "\n".join([*text, "# EOF\n"]).replace(" inf ", " +Inf ").replace(" nan ", " NaN ")


# the server


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prometheus")
    text = folder / "history.txt"
    text.write_text(open_metrics())
    assert _TOOL is not None
    subprocess.run(  # noqa: S603 - a fixed command
        [_TOOL, "tsdb", "create-blocks-from", "openmetrics", str(text), str(folder / "data")],
        check=True,
        capture_output=True,
    )
    return folder / "data"


@pytest.fixture(scope="module")
def prometheus(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    copy = tmp_path_factory.mktemp("served") / "data"
    shutil.copytree(history, copy)
    with server(copy) as url:
        yield url


@contextmanager
def server(storage: Path, *flags: str) -> Iterator[str]:
    """A Prometheus that scrapes nothing and serves `storage` on loopback until the block ends."""
    assert _SERVER is not None
    config = storage.parent / "prometheus.yml"
    config.write_text("global: {}\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(  # noqa: S603 - a fixed command
        [
            _SERVER,
            f"--config.file={config}",
            f"--storage.tsdb.path={storage}",
            "--storage.tsdb.retention.time=50y",
            f"--web.listen-address=127.0.0.1:{port}",
            *flags,
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    giving_up = threading.Timer(60, process.kill)
    giving_up.start()
    try:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if "Server is ready" in line:
                break
        else:
            pytest.fail("Prometheus did not start:\n" + "".join(said))
        yield f"http://127.0.0.1:{port}"
    finally:
        giving_up.cancel()
        process.terminate()
        process.communicate()
        giving_up.join()


# reading it


def ref(native_id: str) -> ResourceRef:
    return ResourceRef("aws", "111122223333", "us-east-1", "instance", native_id)


def instance(native_id: str) -> Instance:
    return Instance(
        ref=ref(native_id),
        instance_type="g5.xlarge",
        accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "A10G", 1),
        state=InstanceState.RUNNING,
        billing=Billing.ON_DEMAND,
        run_epoch="1",
        launched_at=START,
    )


def read(
    url: str,
    *ids: str,
    since: datetime = SINCE,
    until: datetime = UNTIL,
    settings: Prometheus | None = None,
) -> SignalReport:
    source = PrometheusSignals(settings or Prometheus(url), http_post(url))
    return source.read([instance(native_id) for native_id in ids], since, until)


def found(report: SignalReport, native_id: str, name: SignalName) -> tuple[SignalHistory, ...]:
    return tuple(history for history in report.readings[ref(native_id)].histories if history.name is name)


def cards(report: SignalReport, native_id: str) -> tuple[SignalHistory, ...]:
    return found(report, native_id, SignalName.GPU)


def samples_of(history: SignalHistory) -> list[int]:
    return list(history.samples)
