"""How busy instances were, from CloudWatch: hourly maxima with sample counts.

Permissions: `cloudwatch:ListMetrics`, `cloudwatch:GetMetricData`. Where the numbers come from:

* GPU (percent) and power (watts) of NVIDIA cards: the CloudWatch agent's `nvidia_smi_utilization_gpu` and
  `nvidia_smi_power_draw` (on Windows the agent joins with a space), in a namespace the agent's owner chose.
  The dimensions are whatever that agent was told to append, so they are learnt from ListMetrics and asked
  for exactly as listed. A set with InstanceId and index is one card. InstanceId alone is what
  `aggregation_dimensions: [["InstanceId"]]` makes of all cards, and `drop_original_metrics` leaves nothing else (agent
  configuration reference, "metrics"): its maximum is that of the busiest card, an upper bound of each, and its
  SampleCount counts cards times samples. It is read where no card has a series, and covers them only at the agent's
  documented sample a minute (`metrics_collection_interval`, 60 by default): eight cards each 30 s cannot be told from
  four each 15 s, so a faster agent must send its cards one by one. Any other set is left out: one without InstanceId
  belongs to nobody we can name.
* Container Insights: `node_gpu_utilization` (GpuDevice) of Kubernetes nodes, and of Inferentia and Trainium
  `node_neuroncore_utilization` (NeuronDevice, NeuronCore), which the agent publishes there and nowhere else (CloudWatch
  user guide, "Container Insights metrics"); on an idle node it writes zeros for every core (its processor
  `awsneuron`). The agent measures no AMD, Gaudi or other device: those instances have no GPU history.
* CPU (percent) and network (bytes a second) of the machine: AWS/EC2 by InstanceId.
* Disk (bytes a second), only ever shown: `EBSReadBytes` and `EBSWriteBytes` of Nitro instances, `DiskReadBytes` and
  `DiskWriteBytes` of local disks (EC2 user guide, "CloudWatch metrics that are available for your instances"). All are
  part of basic monitoring.

What no rule names is `shown`: asked for in calls of its own, and where those fail only it is missing.

ListMetrics tells no unit and the agent sends none, so a value's unit is taken from the metric's
documentation; `hourly` keeps whatever cannot be in that unit as infinity.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from costguard.domain.errors import ProviderError, TruncatedReadError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Instance
from costguard.domain.signals import HOUR, SignalHistory, SignalName
from costguard.ports import SignalReport
from costguard.providers.aws.compute.metric_answers import (
    OF_CARDS,
    OPERATION,
    Answered,
    Series,
    device_metrics,
    device_series,
    each_card,
    ec2_series,
    next_token,
    results_in,
    worse,
)
from costguard.providers.aws.core.errors import gap
from costguard.providers.kit.compute.metrics import Cells, Window, combine, fold_counts, fold_values, report_of
from costguard.providers.kit.core.calls import Reads
from costguard.providers.kit.core.fields import as_documented

READ = frozenset({SignalName.GPU, SignalName.POWER, SignalName.CPU, SignalName.NETWORK, SignalName.DISK})
"""Signals this source can read."""

MAX_QUERIES = 500  # a GetMetricData call: API reference, GetMetricData
MAX_POINTS = 100_800  # the same page; more would be paged, not refused
_STATISTICS = (("m", "Maximum"), ("s", "SampleCount"))
_ANSWERS_IN_FLIGHT = 4  # over all shards: 100,800 points cost about 12 MB while they are parsed and folded

AGENT_DELAY = timedelta(minutes=5)
"""The agent collects every 60 s and sends every 60 s (its documented defaults); the rest is CloudWatch's own."""

EC2_DELAY = timedelta(minutes=10)
"""Basic monitoring publishes a 5-minute point at the end of its interval, stamped with the beginning
(EC2 user guide, "CloudWatch metrics for your instances"): the newest is up to two intervals old."""

_OF_MACHINES = frozenset({SignalName.CPU, SignalName.NETWORK})
_MOST_PAGES = 100  # of one call: its points fit one page


@dataclass(slots=True)
class _Reading:
    """What one `read` has gathered so far; filled by several threads under `lock`."""

    window: Window
    cells: dict[tuple[ResourceRef, SignalName, str, str], Cells] = field(default_factory=dict)
    sources: dict[tuple[ResourceRef, SignalName, str], str] = field(default_factory=dict)
    failures: dict[ResourceRef, ProviderError] = field(default_factory=dict)
    shown: frozenset[SignalName] = frozenset()
    lost: set[tuple[ResourceRef, SignalName]] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def expect(self, series: Series) -> None:
        if series.key not in self.cells:
            self.cells[series.key] = Cells.empty(self.window.hours)
        self.sources.setdefault(series.key[:3], f"cloudwatch:{series.namespace}")

    def fail(self, refs: Iterable[ResourceRef], error: ProviderError) -> None:
        with self.lock:
            for ref in refs:
                self.failures.setdefault(ref, error)

    def fail_series(self, several: Iterable[Series], error: ProviderError) -> None:
        """Whoever lacks a signal that is judged was not read; one that is only shown is left out."""
        for series in several:
            if series.signal in self.shown:
                with self.lock:
                    self.lost.add((series.ref, series.signal))
            else:
                self.fail([series.ref], error)


class AwsSignals:
    """`SignalSource` over CloudWatch. Reads the `signals` asked for, and `shown` beside them; may be shared by threads.

    `shown` are signals that decide nothing: what cannot be read of them is no gap.
    """

    def __init__(
        self,
        session: Reads,
        signals: frozenset[SignalName],
        namespace: str = "CWAgent",
        shown: frozenset[SignalName] = frozenset(),
    ) -> None:
        self._session = session
        self._signals = signals & READ
        self._shown = (shown & READ) - self._signals
        self._namespace = namespace
        self._answers = threading.BoundedSemaphore(_ANSWERS_IN_FLIGHT)

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        """Hourly histories of every signal found from `since` to `until`, for instances of one shard.

        One ListMetrics a page of 500 for each device metric that some instance may have, then
        GetMetricData in full batches. What failed for an instance leaves it out, and is named in a gap.
        """
        if not instances:
            return SignalReport({})
        shard = instances[0].ref.shard
        reading = _Reading(Window.spanning(since, until), shown=self._shown)
        every = self._signals | self._shown
        wanted = [*self._device_series(shard, instances, reading), *ec2_series(instances, every)]
        wanted = [series for series in wanted if series.ref not in reading.failures]
        for series in wanted:
            reading.expect(series)
        judged = [series for series in wanted if series.signal not in self._shown]
        shown = [series for series in wanted if series.signal in self._shown]
        batches = [batch for part in (judged, shown) for batch in batched(part, reading.window.hours)]
        if len(batches) == 1:
            self._read_batch(shard, batches[0], reading)
        elif batches:
            with ThreadPoolExecutor(min(_ANSWERS_IN_FLIGHT, len(batches))) as pool:
                list(pool.map(lambda batch: self._read_batch(shard, batch, reading), batches))
        return self._report(instances, reading)

    def _device_series(self, shard: Shard, instances: Sequence[Instance], reading: _Reading) -> list[Series]:
        if not self._signals & {SignalName.GPU, SignalName.POWER}:
            return []
        found: list[Series] = []
        for metric, having in device_metrics(instances, self._namespace).items():
            by_id = {instance.ref.native_id: instance.ref for instance in having}
            try:
                for page in self._session.pages(
                    shard,
                    "cloudwatch",
                    "ListMetrics",
                    "Metrics",
                    Namespace=metric.namespace,
                    MetricName=metric.utilization,
                ):
                    with as_documented("cloudwatch:ListMetrics"):
                        found += device_series(page, metric, by_id, self._signals | self._shown)
            except ProviderError as err:
                reading.fail(by_id.values(), err)
        single = {series.ref for series in found if series.device}
        # moto, unlike CloudWatch, lists a metric once for each point it was sent
        return list(dict.fromkeys(series for series in found if series.device or series.ref not in single))

    def _read_batch(self, shard: Shard, batch: Sequence[Series], reading: _Reading) -> None:
        window = reading.window
        request: dict[str, Any] = {
            "MetricDataQueries": list(queries(batch)),
            "StartTime": window.start,
            "EndTime": window.start + window.hours * HOUR,
            "ScanBy": "TimestampAscending",
        }
        statuses: dict[str, ProviderError | None] = {}
        tokens: set[str] = set()
        try:
            while token := self._read_page(shard, request, batch, reading, statuses):
                if token in tokens or len(tokens) >= _MOST_PAGES:
                    message = f"{OPERATION}: the same page token came twice, or pages without end"
                    raise TruncatedReadError(message, operation=OPERATION)
                tokens.add(token)
                request["NextToken"] = token
        except ProviderError as err:
            reading.fail_series(batch, err)
            return
        unanswered = TruncatedReadError(f"{OPERATION}: a metric asked for was not answered", operation=OPERATION)
        for number, series in enumerate(batch):
            for letter, _ in _STATISTICS:
                error = statuses.get(f"{letter}{number}", unanswered)
                if error is not None:
                    reading.fail_series([series], error)

    def _read_page(
        self,
        shard: Shard,
        request: Mapping[str, Any],
        batch: Sequence[Series],
        reading: _Reading,
        statuses: dict[str, ProviderError | None],
    ) -> str:
        """Fold one answer and let it go; the token of the next, or nothing."""
        with self._answers:
            page = self._session.call(shard, "cloudwatch", "GetMetricData", **request)
            answered = results_in(page)
            with reading.lock:
                for name, error in _fold(answered, batch, reading).items():
                    statuses[name] = worse(statuses.get(name), error, later_page=True)
        return next_token(page)

    def _report(self, instances: Sequence[Instance], reading: _Reading) -> SignalReport:
        delay = EC2_DELAY if self._signals & _OF_MACHINES else AGENT_DELAY
        histories: dict[ResourceRef, list[SignalHistory]] = {}
        parts: dict[tuple[ResourceRef, SignalName, str], list[Cells]] = {}
        for (ref, signal, device, _), cells in reading.cells.items():
            if (ref, signal) not in reading.lost and (signal not in self._shown or any(cells.samples)):
                parts.setdefault((ref, signal, device), []).append(cells)
        cards = {instance.ref: max(1, math.ceil(instance.accelerator.count)) for instance in instances}
        for (ref, signal, device), pieces in parts.items():
            whole = combine(signal, pieces)
            history = SignalHistory(
                name=signal,
                device=device,
                start=reading.window.start,
                maxima=whole.maxima,
                samples=whole.samples,
                source=reading.sources[ref, signal, device],
                delay=EC2_DELAY if signal in _OF_MACHINES else AGENT_DELAY,
            )
            of_all = not device and signal in OF_CARDS
            histories.setdefault(ref, []).extend(each_card(history, cards[ref]) if of_all else [history])
        return report_of(instances, histories, reading.failures, delay, gap)


def batched(wanted: Sequence[Series], hours: int) -> Iterator[Sequence[Series]]:
    """As many series a call as its limits on queries and points allow, two statistics each."""
    if not hours:
        return
    size = max(1, min(MAX_QUERIES, MAX_POINTS // hours) // len(_STATISTICS))
    for first in range(0, len(wanted), size):
        yield wanted[first : first + size]


def queries(batch: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """Two queries for each series: `m<n>` its hourly maximum, `s<n>` how many samples that rests on."""
    for number, series in enumerate(batch):
        metric = {
            "Namespace": series.namespace,
            "MetricName": series.metric,
            "Dimensions": [{"Name": name, "Value": value} for name, value in series.dimensions],
        }
        for letter, statistic in _STATISTICS:
            yield {"Id": f"{letter}{number}", "MetricStat": {"Metric": metric, "Period": 3600, "Stat": statistic}}


def _fold(answered: Sequence[Answered], batch: Sequence[Series], reading: _Reading) -> dict[str, ProviderError | None]:
    """Fold one page into the cells; per query its failure, or None where its points are complete."""
    statuses: dict[str, ProviderError | None] = {}
    for one in answered:
        if one.number >= len(batch):
            continue
        series = batch[one.number]
        cells, start, error = reading.cells[series.key], reading.window.start, one.error
        try:
            with as_documented(OPERATION):
                if one.letter == "m":
                    fold_values(cells, series.signal, start, one.timestamps, one.values)
                else:
                    fold_counts(cells, start, one.timestamps, one.values)
        except ProviderError as err:
            error = err
        statuses[one.name] = worse(statuses.get(one.name), error, later_page=False)
    return statuses
