"""How busy instances were, from Tencent's Monitor: hourly maxima with sample counts.

Permissions: `monitor:DescribeBaseMetrics`, `monitor:GetMonitorData`. Where the numbers come from, all of `QCE/CVM`
by InstanceId:

* GPU (percent) and power (watts): `GpuUtil` and `GpuPowDraw`, which an agent in the machine sends. There is one
  series a machine: a mean over its cards, by any statistic a mean over the period as well. So it is read at one
  minute, the finest period kept for long, and says of itself that it is a mean over cards.
* CPU (percent): `CPUUsage`, from the same agent. From five minutes on it is the maximum of its minutes.
* Network (bytes a second): what goes in and out on the inner side, and on the outer side of machines with a public
  address. In the unit that Monitor names; one that is not known leaves the signal out.
* Disk: not read. Its traffic is kept by disk (`QCE/BLOCK_STORAGE`, dimension `diskId`), not by machine, so that every
  scan would have to list the disks first.

What no rule names is `shown`, by the hour: one call for ten machines and two months. Traffic and power are means over
the hour then, never more than what their highest minutes were. Where that fails, only it is missing.

Names are spelled in several ways over Tencent's pages, so Monitor is asked once how it spells them.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import inf
from typing import Any, Protocol

from costguard.domain.errors import ProviderError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import AcceleratorKind, Instance
from costguard.domain.signals import HOUR, SignalHistory, SignalName, SignalReading, Statistic
from costguard.ports import SignalReport
from costguard.providers.documented import as_documented
from costguard.providers.gaps import signal_gaps
from costguard.providers.hourly import Cells, Window, fold_counts, fold_values
from costguard.providers.tencent.errors import UNSUPPORTED, gap
from costguard.providers.tencent.metric_answers import FINEST, OPERATION, metric_names, period_for, pieces, points_in

READ = frozenset({SignalName.GPU, SignalName.POWER, SignalName.CPU, SignalName.NETWORK})
"""Signals this source can read."""

NAMESPACE = "QCE/CVM"
_DIMENSION = "InstanceId"
_NAMES = "monitor:DescribeBaseMetrics"
_CALLS_IN_FLIGHT = 8
_FIVE_MINUTES, _HOUR_SECONDS = 300, 3600

AGENT_DELAY = timedelta(minutes=5)
"""No page says how late a point may come; the console shows minutes after two or three."""

SLOW_DELAY = timedelta(minutes=10)
"""A point of five minutes is stamped with the beginning of its interval: the newest is up to two intervals old."""

_BYTES = {"bps": 0.125, "kbps": 125.0, "mbps": 125_000.0, "gbps": 125_000_000.0}
_UNITS = {**_BYTES, "b/s": 1.0, "bytes/s": 1.0, "kb/s": 1_000.0, "mb/s": 1_000_000.0}
"""Bytes a second in each unit of network metrics, by its name in lower case; `Mbps` is what the pages say."""


class Calls(Protocol):
    """The part of `TencentSession` that reading needs."""

    def call(self, shard: Shard, service: str, action: str, /, **parameters: Any) -> dict[str, Any]:
        """One request, retried within the deadline; raises ProviderError."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One series of a machine: what it tells of, the name to ask for, and what one of its units is of ours."""

    signal: SignalName
    name: str
    finest: int
    scale: float = 1.0
    outer: bool = False
    shown: bool = False


METRICS = (
    Metric(SignalName.GPU, "GpuUtil", FINEST),
    Metric(SignalName.POWER, "GpuPowDraw", FINEST),
    Metric(SignalName.CPU, "CPUUsage", _FIVE_MINUTES),
    Metric(SignalName.NETWORK, "LanIntraffic", _FIVE_MINUTES),
    Metric(SignalName.NETWORK, "LanOuttraffic", _FIVE_MINUTES),
    Metric(SignalName.NETWORK, "WanIntraffic", _FIVE_MINUTES, outer=True),
    Metric(SignalName.NETWORK, "WanOuttraffic", _FIVE_MINUTES, outer=True),
)
_OF_CARDS = frozenset({SignalName.GPU, SignalName.POWER})


@dataclass(frozen=True, slots=True)
class _Job:
    """One call: a metric of some machines over an interval."""

    metric: Metric
    refs: tuple[ResourceRef, ...]
    begin: datetime
    end: datetime
    period: int


@dataclass(slots=True)
class _Reading:
    """What one `read` has gathered so far; filled by several threads under `lock`."""

    window: Window
    cells: dict[tuple[ResourceRef, Metric], Cells] = field(default_factory=dict)
    periods: dict[Metric, int] = field(default_factory=dict)
    failures: dict[ResourceRef, ProviderError] = field(default_factory=dict)
    lost: set[tuple[ResourceRef, SignalName]] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fail_job(self, job: _Job, error: ProviderError) -> None:
        """Whoever lacks a signal that is judged was not read; one that is only shown is left out."""
        if job.metric.shown:
            with self.lock:
                self.lost.update((ref, job.metric.signal) for ref in job.refs)
        else:
            self.fail(job.refs, error)

    def fail(self, refs: Iterable[ResourceRef], error: ProviderError) -> None:
        with self.lock:
            for ref in refs:
                self.failures.setdefault(ref, error)


class TencentSignals:
    """`SignalSource` over Monitor. Reads the `signals` asked for, and `shown` beside them; may be shared by threads.

    `shown` are signals that decide nothing: what cannot be read of them is no gap.
    """

    def __init__(
        self, session: Calls, signals: frozenset[SignalName], shown: frozenset[SignalName] = frozenset()
    ) -> None:
        self._session = session
        self._signals = signals & READ
        self._shown = (shown & READ) - self._signals
        self._spelled: tuple[Metric, ...] | None = None
        self._spelling = threading.Lock()

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        """Hourly histories of every signal found from `since` to `until`, for instances of one shard.

        What failed for an instance leaves it out, and is named in a gap.

        API: Monitor DescribeBaseMetrics once; GetMonitorData, one metric of at most 10 machines and 1,440 points a
        call, which makes one call for each machine and day of a metric at one minute.
        """
        if not instances:
            return SignalReport({})
        shard = instances[0].ref.shard
        reading = _Reading(Window.spanning(since, until))
        try:
            metrics = self._metrics(shard)
        except ProviderError as err:
            reading.fail((instance.ref for instance in instances), err)
            metrics = ()
        jobs = list(jobs_for(metrics, instances, reading.window, until))
        for job in jobs:
            for ref in job.refs:
                reading.cells.setdefault((ref, job.metric), Cells.empty(reading.window.hours))
                reading.periods[job.metric] = job.period
        if jobs:
            with ThreadPoolExecutor(min(_CALLS_IN_FLIGHT, len(jobs))) as pool:
                list(pool.map(lambda job: self._do(shard, job, reading), jobs))
        return self._report(shard, instances, reading)

    def _metrics(self, shard: Shard) -> tuple[Metric, ...]:
        """The metrics wanted, as Monitor spells them; asked once, as they are the same everywhere."""
        with self._spelling:
            if self._spelled is None:
                wanted = [metric for metric in METRICS if metric.signal in self._signals]
                wanted += [
                    replace(metric, finest=_HOUR_SECONDS, shown=True)
                    for metric in METRICS
                    if metric.signal in self._shown
                ]
                try:
                    known = metric_names(
                        self._session.call(shard, "monitor", "DescribeBaseMetrics", Namespace=NAMESPACE)
                    )
                except ProviderError as err:
                    if err.code != UNSUPPORTED:
                        raise
                    known = {metric.name.lower(): (metric.name, "Mbps") for metric in wanted}
                self._spelled = tuple(spelled(wanted, known))
            return self._spelled

    def _do(self, shard: Shard, job: _Job, reading: _Reading) -> None:
        if all(ref in reading.failures for ref in job.refs):
            return
        by_id = {ref.native_id: ref for ref in job.refs}
        try:
            answer = self._session.call(
                shard,
                "monitor",
                "GetMonitorData",
                Namespace=NAMESPACE,
                MetricName=job.metric.name,
                Period=job.period,
                StartTime=job.begin.isoformat(),
                EndTime=job.end.isoformat(),
                Instances=[{"Dimensions": [{"Name": _DIMENSION, "Value": native_id}]} for native_id in by_id],
            )
            found = points_in(answer, frozenset(by_id), job.begin, job.end, job.period)
            with reading.lock, as_documented(OPERATION):
                for points in found:
                    cells = reading.cells[by_id[points.native_id], job.metric]
                    fold(cells, job.metric.signal, reading.window.start, points.timestamps, points.values)
        except ProviderError as err:
            reading.fail_job(job, err)

    def _report(self, shard: Shard, instances: Sequence[Instance], reading: _Reading) -> SignalReport:
        delay = AGENT_DELAY if self._signals <= _OF_CARDS else SLOW_DELAY
        of_instance: dict[ResourceRef, dict[SignalName, list[tuple[Metric, Cells]]]] = {}
        for (ref, metric), cells in reading.cells.items():
            if (ref, metric.signal) in reading.lost:
                continue
            of_instance.setdefault(ref, {}).setdefault(metric.signal, []).append((metric, cells))
        readings = {}
        for instance in instances:
            if instance.ref in reading.failures:
                continue
            signals = of_instance.get(instance.ref, {})
            histories = (_history(reading, name, found) for name, found in sorted(signals.items()))
            readings[instance.ref] = SignalReading(tuple(one for one in histories if any(one.samples)), delay)
        return SignalReport(readings, tuple(signal_gaps(shard, reading.failures, len(instances), gap)))


def spelled(wanted: Iterable[Metric], known: Mapping[str, tuple[str, str]]) -> Iterator[Metric]:
    """Each metric by the name and in the unit that Monitor has for it; what it has no name or unit for is left out."""
    for metric in wanted:
        name, unit = known.get(metric.name.lower(), ("", ""))
        scale = _UNITS.get(unit.lower()) if metric.signal is SignalName.NETWORK else 1.0
        if name and scale is not None:
            yield replace(metric, name=name, scale=scale)


def jobs_for(
    metrics: Iterable[Metric], instances: Sequence[Instance], window: Window, until: datetime
) -> Iterator[_Job]:
    """The calls that read these metrics over the window, up to `until`: full ones, and few.

    Devices are asked for where there are NVIDIA cards: no agent reports any other. The outer side is asked for
    where there is a public address; elsewhere its series may be empty, which would look like a lost one.
    """
    for metric in metrics:
        refs = [
            instance.ref
            for instance in instances
            if (metric.signal not in _OF_CARDS or instance.accelerator.kind is AcceleratorKind.NVIDIA_GPU)
            and (not metric.outer or instance.public_ip)
        ]
        period = period_for(window.start, until, metric.finest)
        last = min(until, window.start + window.hours * HOUR)
        begin = window.start
        for piece in pieces((last - begin) // timedelta(seconds=period), len(refs)):
            end = begin + piece.points * timedelta(seconds=period)
            for first in range(0, len(refs), piece.instances):
                yield _Job(metric, tuple(refs[first : first + piece.instances]), begin, end, period)
            begin = end


def fold(
    cells: Cells, signal: SignalName, start: datetime, timestamps: Sequence[datetime], values: Sequence[Any]
) -> None:
    """Merge the points of one call in: hourly maxima, and how many points each hour has in all calls together.

    Raises:
        ValueError, TypeError: as `hourly.fold_values`.
    """
    fold_values(cells, signal, start, timestamps, values)
    counts: dict[int, int] = {}
    for moment in timestamps:
        hour = (moment - start) // HOUR
        counts[hour] = counts.get(hour, 0) + 1
    whole = [cells.samples[hour] + count for hour, count in counts.items()]
    fold_counts(cells, start, [start + hour * HOUR for hour in counts], whole)


def _history(reading: _Reading, name: SignalName, found: Sequence[tuple[Metric, Cells]]) -> SignalHistory:
    """One series. A point stands for each period that was asked for: whatever comes less often was lost."""
    whole = found[0][1] if name is not SignalName.NETWORK else _added(found)
    return SignalHistory(
        name=name,
        device="",
        start=reading.window.start,
        maxima=whole.maxima,
        samples=whole.samples,
        source=f"monitor:{NAMESPACE}",
        statistic=Statistic.MEAN_OF_CARDS if name in _OF_CARDS else Statistic.DEVICE,
        documented_per_hour=_HOUR_SECONDS // max(reading.periods[metric] for metric, _ in found),
        delay=AGENT_DELAY if name in _OF_CARDS else SLOW_DELAY,
    )


def _added(found: Sequence[tuple[Metric, Cells]]) -> Cells:
    """All directions and sides together, in bytes a second: as busy as they can have been, as seen as the least."""
    hours = range(len(found[0][1].maxima))
    maxima = array("d")
    for hour in hours:
        values = [cells.maxima[hour] * metric.scale for metric, cells in found]
        maxima.append(inf if inf in values else sum(values))
    return Cells(maxima, array("I", [min(cells.samples[hour] for _, cells in found) for hour in hours]))
