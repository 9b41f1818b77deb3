"""How busy instances were, from CloudMonitor: hourly maxima with sample counts.

Permissions: `cms:DescribeMetricList` and `cms:QueryMetricList`. Where the numbers come from (`acs_ecs_dashboard`):

* GPU (percent) and power (watts) of single NVIDIA cards, by `gpuId`: CloudMonitor's agent and the GPU driver within
  the machine. Without both there is no point at all, and the instance is unmeasured. The metrics of whole instances
  are not read: a mean over cards hides one that is busy.
* CPU (percent) and network (bits a second, told here in bytes) of the machine, from the host. What goes over a public
  address is a series of its own (`VPC_PublicIP_…` has the dimensions userId, instanceId, ip: ECS documents, "View the
  monitoring information of an ECS instance"); they are added up minute by minute, and measured where all of them are.
* Disk (bytes a second, `DiskReadBPS` and `DiskWriteBPS`, all disks together), which is only ever shown.

What a rule names is read by the minute: the hour's maximum would come 60 times cheaper, but says nothing about how much
of the hour was measured, and an agent that died five minutes into it would pass for one that lives. `Period` 60
(DescribeMetricList) has a point for every minute in which its sender lived: whatever comes less often was lost. What no
rule names is only `shown`, so the hour's maximum is enough: one page for 50 machines and a day. Where that fails, only
it is missing.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from costguard.domain.errors import ProviderError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import AcceleratorKind, Instance
from costguard.domain.signals import SignalHistory, SignalName
from costguard.ports import SignalReport
from costguard.providers.alibaba.compute.metric_answers import (
    MINUTES,
    MOST_POINTS,
    OPERATION,
    Folding,
    Metric,
    Rates,
    Span,
    added,
    batched,
    cut,
    series_of,
    summed,
)
from costguard.providers.alibaba.core.errors import gap
from costguard.providers.kit.compute.metrics import Cells, Window, combine, report_of
from costguard.providers.kit.core.calls import Calls
from costguard.providers.kit.core.fields import as_documented, cut_short, text

READ = frozenset({SignalName.GPU, SignalName.POWER, SignalName.CPU, SignalName.NETWORK, SignalName.DISK})
"""Signals this source can read."""

NAMESPACE = "acs_ecs_dashboard"
DELAY = timedelta(minutes=5)
"""Host and agent report every minute or oftener; the documents name no bound for the way through CloudMonitor."""

LONGEST_SPAN = timedelta(days=31)  # of one question; points of a minute are kept no longer either
_MOST_PAGES = 10_000
_ANSWERS_IN_FLIGHT = 8  # over all shards: a page is about 0.2 MB, and several times that once parsed
_MS = 1000
_SECONDS = 60  # of a minute
_MINUTE = timedelta(minutes=1)

_DEVICE_METRICS = (
    Metric("gpu_gpu_usedutilization", SignalName.GPU, per_card=True),
    Metric("gpu_power_readings_power_draw", SignalName.POWER, per_card=True),
)
_HOST_METRICS = (
    Metric("CPUUtilization", SignalName.CPU),
    Metric("IntranetInRate", SignalName.NETWORK, part="intranet in"),
    Metric("IntranetOutRate", SignalName.NETWORK, part="intranet out"),
    Metric("InternetInRate", SignalName.NETWORK, part="internet in", needed=False),
    Metric("InternetOutRate", SignalName.NETWORK, part="internet out", needed=False),
    Metric("DiskReadBPS", SignalName.DISK, part="read"),
    Metric("DiskWriteBPS", SignalName.DISK, part="write"),
)
_ADDRESS_METRICS = (  # each public address in a VPC has series of its own; `Internet…Rate` are the classic network's
    Metric("VPC_PublicIP_InternetInRate", SignalName.NETWORK, per_address=True, part="in"),
    Metric("VPC_PublicIP_InternetOutRate", SignalName.NETWORK, per_address=True, part="out"),
)
_WAYS = ("in", "out")


@dataclass(slots=True)
class _Question:
    """A metric of some instances, asked in one or several spans; its answers are folded together.

    `minutes` are what one point stands for: 1, or 60 where it is only shown.
    """

    metric: Metric
    refs: Mapping[str, ResourceRef]
    spans: Sequence[Span]
    folding: Folding
    open: int
    minutes: int = 1
    error: ProviderError | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(slots=True)
class _Reading:
    """What one `read` has gathered so far; filled by several threads under `lock`."""

    window: Window
    until: datetime
    cells: dict[tuple[ResourceRef, SignalName, str], dict[Metric, Cells]] = field(default_factory=dict)
    rates: dict[ResourceRef, dict[str, dict[str, Rates]]] = field(default_factory=dict)  # by way and address
    failures: dict[ResourceRef, ProviderError] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class AlibabaSignals:
    """`SignalSource` over CloudMonitor. Reads the `signals` asked for, and `shown` beside them; for many threads.

    `shown` are signals that decide nothing: what cannot be read of them is no gap.
    """

    def __init__(
        self, session: Calls, signals: frozenset[SignalName], shown: frozenset[SignalName] = frozenset()
    ) -> None:
        self._session = session
        self._signals = signals & READ
        self._shown = (shown & READ) - self._signals
        self._answers = threading.BoundedSemaphore(_ANSWERS_IN_FLIGHT)

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        """Hourly histories of every signal found from `since` to `until`, for instances of one shard.

        What failed for an instance leaves it out, and is named in a gap. Hours further back than 31 days have no
        samples, because CloudMonitor keeps none by the minute.

        API: CMS DescribeMetricList, one metric of at most 50 instances a request, 1,440 points a page.
        """
        if not instances:
            return SignalReport({})
        shard = instances[0].ref.shard
        reading = _Reading(Window.spanning(since, until), until)
        questions = [
            *_questions(instances, self._signals, reading),
            *_questions(instances, self._shown, reading, minutes=MINUTES),
        ]
        asked = [(question, span) for question in questions for span in question.spans]
        if len(asked) == 1:
            question, span = asked[0]
            self._ask(shard, question, span, reading)
        elif asked:
            with ThreadPoolExecutor(min(_ANSWERS_IN_FLIGHT, len(asked))) as pool:
                list(pool.map(lambda each: self._ask(shard, each[0], each[1], reading), asked))
        return _report(instances, reading, self._shown)

    def _ask(self, shard: Shard, question: _Question, span: Span, reading: _Reading) -> None:
        """One span of a question; whoever ends the last of them hands the whole in."""
        try:
            if question.error is None:
                self._take_pages(shard, question, span, reading)
        except ProviderError as err:
            question.error = err
        with question.lock:
            question.open -= 1
            if question.open == 0:
                _hand_in(question, reading)

    def _take_pages(self, shard: Shard, question: _Question, span: Span, reading: _Reading) -> None:
        begin = reading.window.start + timedelta(minutes=span.first)
        end = min(reading.window.start + timedelta(minutes=span.last), reading.until)
        dimensions = [{"instanceId": native_id} for native_id in question.refs]
        request: dict[str, Any] = {
            "Namespace": NAMESPACE,
            "MetricName": question.metric.name,
            "Dimensions": json.dumps(dimensions, separators=(",", ":")),
            # points after StartTime up to EndTime: a millisecond earlier, the first is in and that of the end is not
            "StartTime": str(int(begin.timestamp()) * _MS - 1),
            "EndTime": str(int(end.timestamp()) * _MS - 1),
            "Period": str(question.minutes * _SECONDS),
            "Length": str(MOST_POINTS),
        }
        tokens: set[str] = set()
        while token := self._take_page(shard, request, question):
            if token in tokens or len(tokens) >= _MOST_PAGES:
                raise cut_short(OPERATION, "the same page token came twice, or pages without end", "RepeatedToken")
            tokens.add(token)
            request["NextToken"] = token

    def _take_page(self, shard: Shard, request: Mapping[str, Any], question: _Question) -> str:
        """Fold one answer and let it go; the token of the next, or nothing."""
        with self._answers:
            answer = self._session.call(shard, "cms", "DescribeMetricList", **request)
            with question.lock:
                question.folding.take(answer)
        with as_documented(OPERATION):
            return "" if answer.get("NextToken") is None else text(answer, "NextToken")


def _hand_in(question: _Question, reading: _Reading) -> None:
    found: list[tuple[str, str, Cells]] = []
    rates: list[tuple[str, str, Rates]] = []
    if question.error is None:
        try:
            with as_documented(OPERATION):
                found, rates = list(question.folding.finished()), list(question.folding.rates())
        except ProviderError as err:
            question.error = err
    with reading.lock:
        if question.error is not None and question.minutes == 1:
            for ref in question.refs.values():
                reading.failures.setdefault(ref, question.error)
        for native_id, card, cells in found:
            key = (question.refs[native_id], question.metric.signal, card)
            reading.cells.setdefault(key, {})[question.metric] = cells
        for native_id, ip, minutes in rates:
            ways = reading.rates.setdefault(question.refs[native_id], {})
            ways.setdefault(question.metric.part, {})[ip] = minutes


def _questions(
    instances: Sequence[Instance], signals: frozenset[SignalName], reading: _Reading, minutes: int = 1
) -> Iterator[_Question]:
    """One for each metric and batch: no question about what an instance cannot have.

    They are asked side by side, as many as may be under way; the last ones, which would not fill all places, in spans.
    """
    window = reading.window
    last = min(window.hours * MINUTES, ceil((reading.until - window.start) / _MINUTE))
    whole = Span(max(0, last - LONGEST_SPAN // _MINUTE), last)
    with_cards = [one for one in instances if one.accelerator.kind is AcceleratorKind.NVIDIA_GPU]
    with_address = [one for one in instances if one.public_ip or one.further_public_ips != ()]
    takers = ((_DEVICE_METRICS, with_cards), (_HOST_METRICS, instances), (_ADDRESS_METRICS, with_address))
    asked = [
        (metric, batch)
        for metrics, having in takers
        for metric in metrics
        if metric.signal in signals and window.hours
        for batch in batched(having, metric, -(-(whole.last - whole.first) // minutes))
    ]
    left_over = len(asked) % _ANSWERS_IN_FLIGHT if minutes == 1 else 0
    for place, (metric, batch) in enumerate(asked):
        parts = ceil(_ANSWERS_IN_FLIGHT / left_over) if place >= len(asked) - left_over else 1
        refs = {instance.ref.native_id: instance.ref for instance in batch}
        spans = cut(whole, sum(series_of(instance, metric) for instance in batch), parts)
        yield _Question(metric, refs, spans, Folding(metric, window, frozenset(refs)), len(spans), minutes)


def _report(instances: Sequence[Instance], reading: _Reading, shown: frozenset[SignalName]) -> SignalReport:
    told = {instance.ref: instance for instance in instances}
    histories: dict[ResourceRef, list[SignalHistory]] = {}
    for (ref, signal, device), pieces in reading.cells.items():
        if signal is SignalName.NETWORK:
            whole = _network(told[ref], pieces, reading.rates.get(ref, {}), reading.window.hours)
        elif signal is SignalName.DISK:
            whole = added(list(pieces.values()), ())
        else:
            whole = combine(signal, list(pieces.values()))
        if signal in shown and not any(whole.samples):
            continue
        histories.setdefault(ref, []).append(
            SignalHistory(
                name=signal,
                device=device,
                start=reading.window.start,
                maxima=whole.maxima,
                samples=whole.samples,
                source=f"cms:{NAMESPACE}",
                documented_per_hour=MINUTES,
            )
        )
    return report_of(instances, histories, reading.failures, DELAY, gap)


def _network(
    instance: Instance, pieces: Mapping[Metric, Cells], ways: Mapping[str, Mapping[str, Rates]], hours: int
) -> Cells:
    """All traffic of a machine. Within the VPC it is always measured; that of its public addresses must be, too.

    Of a single address either of two pairs of metrics may tell; where both do, both are added: too much, not too
    little. Once one is told by address, each must be that the listing names or that reported at all: one whose points
    cease was taken off, or is not measured any more, and nothing says which.
    """
    by_part = {metric.part: cells for metric, cells in pieces.items()}
    host = [metric for metric in _HOST_METRICS if metric.signal is SignalName.NETWORK and metric.needed]
    needed = [by_part.get(metric.part) or Cells.empty(hours) for metric in host]
    outside = {way: by_part[f"internet {way}"] for way in _WAYS if f"internet {way}" in by_part}
    if instance.further_public_ips is None:
        needed.append(Cells.empty(hours))
    listed = {instance.public_ip, *(instance.further_public_ips or ())} - {""}
    reported = {ip for series in ways.values() for ip in series}
    if reported or len(listed) > 1:
        needed += [summed(ways.get(way, {}), listed | reported, hours) for way in _WAYS]
    elif listed:
        needed += [outside.pop(way, Cells.empty(hours)) for way in _WAYS]
    return added(needed, list(outside.values()))
