"""How busy instances were, from Tencent's Monitor: hourly maxima with sample counts.

Permissions: `monitor:DescribeBaseMetrics`, `monitor:GetMonitorData`. Where the numbers come from, all of `QCE/CVM`
by InstanceId:

* GPU (percent) and power (watts): `GpuUtil` and `GpuPowDraw`, which an agent in the machine sends. By any statistic
  they are means over the period, so they are read at one minute, the finest that is kept for long. Of a machine there
  is one series, a mean over its cards, which says so of itself; each card has one of its own where Monitor tells of
  cards (`metric_cards.py`).
* CPU (percent): `CPUUsage`, from the same agent. From five minutes on it is the maximum of its minutes.
* Network (bytes a second): what goes in and out on the inner side, and on the outer side of machines with a public
  address. In the unit that Monitor names; one that is not known leaves the signal out.
* Disk: not read. Its traffic is kept by disk (`QCE/BLOCK_STORAGE`, dimension `diskId`), not by machine, so that every
  scan would have to list the disks first.

What no rule names is `shown`, by the hour: one call for fifty machines and five days. Traffic and power are means over
the hour then, never more than what their highest minutes were. Where that fails, only it is missing.

Names are spelled in several ways over Tencent's pages, so Monitor is asked once how it spells them, and what dimensions
it declares.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import inf

from costguard.domain.errors import ProviderError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import AcceleratorKind, Instance
from costguard.domain.signals import HOUR, SignalHistory, SignalName, SignalReading, Statistic
from costguard.ports import SignalReport
from costguard.providers.gaps import signal_gaps
from costguard.providers.hourly import Cells, Window
from costguard.providers.tencent.errors import UNSUPPORTED, gap
from costguard.providers.tencent.metric_answers import FINEST, Known, metric_names, period_for
from costguard.providers.tencent.metric_calls import NAMESPACE, Asking, Calls, Job, Metric, Reading, Target
from costguard.providers.tencent.metric_cards import Cards, standing
from costguard.providers.tencent.metric_pages import Pages

READ = frozenset({SignalName.GPU, SignalName.POWER, SignalName.CPU, SignalName.NETWORK})
"""Signals this source can read."""

_NAMES = "monitor:DescribeBaseMetrics"
_FIVE_MINUTES, _HOUR_SECONDS = 300, 3600

AGENT_DELAY = timedelta(minutes=5)
"""No page says how late a point may come; the console shows minutes after two or three."""

SLOW_DELAY = timedelta(minutes=10)
"""A point of five minutes is stamped with the beginning of its interval: the newest is up to two intervals old."""

_BYTES = {"bps": 0.125, "kbps": 125.0, "mbps": 125_000.0, "gbps": 125_000_000.0}
_UNITS = {**_BYTES, "b/s": 1.0, "bytes/s": 1.0, "kb/s": 1_000.0, "mb/s": 1_000_000.0}
"""Bytes a second in each unit of network metrics, by its name in lower case; `Mbps` is what the pages say."""


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


class TencentSignals:
    """`SignalSource` over Monitor. Reads the `signals` asked for, and `shown` beside them; may be shared by threads.

    `shown` are signals that decide nothing: what cannot be read of them is no gap.
    """

    def __init__(
        self,
        session: Calls,
        signals: frozenset[SignalName],
        shown: frozenset[SignalName] = frozenset(),
        *,
        pages: Pages | None = None,
    ) -> None:
        self._session = session
        self._asking = Asking(session, Pages() if pages is None else pages)
        self._signals = signals & READ
        self._shown = (shown & READ) - self._signals
        self._cards = Cards(self._asking, AGENT_DELAY)
        self._spelled: dict[str, tuple[Metric, ...]] = {}
        self._spelling = threading.Lock()

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        """Hourly histories of every signal found from `since` to `until`, for instances of one shard.

        What failed for an instance leaves it out, and is named in a gap.

        API: Monitor DescribeBaseMetrics once; GetMonitorData, one metric of at most 50 machines and 7,200 points a
        call, or 10 and 1,440: five days of a metric at one minute make one call for each machine, or five.
        """
        if not instances:
            return SignalReport({})
        shard = instances[0].ref.shard
        reading = Reading(Window.spanning(since, until))
        try:
            metrics = self._metrics(shard)
        except ProviderError as err:
            reading.fail((instance.ref for instance in instances), err)
            metrics = ()
        jobs = []
        for job in jobs_for(metrics, instances, reading.window, until):
            by_card = self._cards.read(shard, job, instances, reading)
            jobs.append(replace(job, targets=tuple(target for target in job.targets if target.ref not in by_card)))
        self._asking.run(shard, jobs, reading)
        return self._report(shard, instances, reading)

    def _metrics(self, shard: Shard) -> tuple[Metric, ...]:
        """The metrics wanted, as Monitor describes them; asked once an account, as no page says that regions differ."""
        with self._spelling:
            if shard.account not in self._spelled:
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
                    known = {metric.name.lower(): Known(metric.name, "Mbps") for metric in wanted}
                self._spelled[shard.account] = tuple(spelled(wanted, known))
            return self._spelled[shard.account]

    def _report(self, shard: Shard, instances: Sequence[Instance], reading: Reading) -> SignalReport:
        delay = AGENT_DELAY if self._signals <= _OF_CARDS else SLOW_DELAY
        of_instance: dict[ResourceRef, dict[SignalName, list[tuple[Metric, str, Cells]]]] = {}
        for ((ref, card), metric), cells in reading.cells.items():
            if (ref, metric.signal) in reading.lost:
                continue
            of_instance.setdefault(ref, {}).setdefault(metric.signal, []).append((metric, card, cells))
        readings = {}
        for instance in instances:
            if instance.ref in reading.failures:
                continue
            signals = sorted(of_instance.get(instance.ref, {}).items())
            histories = (one for name, found in signals for one in _histories(reading, instance.ref, name, found))
            readings[instance.ref] = SignalReading(tuple(one for one in histories if any(one.samples)), delay)
        return SignalReport(readings, tuple(signal_gaps(shard, reading.failures, len(instances), gap)))


def spelled(wanted: Iterable[Metric], known: Mapping[str, Known]) -> Iterator[Metric]:
    """Each metric as Monitor describes it; what it has no name for, or no unit that is known, is left out."""
    for metric in wanted:
        here = known.get(metric.name.lower())
        if here is None:
            continue
        scale = _UNITS.get(here.unit.lower()) if metric.signal is SignalName.NETWORK else 1.0
        of_card = here.of_card if metric.signal in _OF_CARDS and not metric.shown else None
        if scale is not None:
            yield replace(metric, name=here.name, scale=scale, of_card=of_card)


def jobs_for(
    metrics: Iterable[Metric], instances: Sequence[Instance], window: Window, until: datetime
) -> Iterator[Job]:
    """What reads these metrics of the machines over the window, up to `until`.

    Devices are asked for where there are NVIDIA cards: no agent reports any other. The outer side is asked for
    where there is a public address; elsewhere its series may be empty, which would look like a lost one.
    """
    for metric in metrics:
        targets = tuple(
            Target(instance.ref)
            for instance in instances
            if (metric.signal not in _OF_CARDS or instance.accelerator.kind is AcceleratorKind.NVIDIA_GPU)
            and (not metric.outer or instance.public_ip)
        )
        period = period_for(window.start, until, metric.finest)
        yield Job(metric, targets, window.start, min(until, window.start + window.hours * HOUR), period)


def _histories(
    reading: Reading, ref: ResourceRef, name: SignalName, found: Sequence[tuple[Metric, str, Cells]]
) -> Iterator[SignalHistory]:
    """The series of one signal. A point stands for each period that was asked for: what comes less often was lost."""
    if name in _OF_CARDS:
        cards = {card: cells for _, card, cells in found if card}
        mean = next((cells for _, card, cells in found if not card), None)
        series = standing(cards, mean, lost=(ref, found[0][0]) in reading.cards_lost)
    else:
        series = {"": found[0][2] if name is not SignalName.NETWORK else _added([(one[0], one[2]) for one in found])}
    for device, cells in series.items():
        yield SignalHistory(
            name=name,
            device=device,
            start=reading.window.start,
            maxima=cells.maxima,
            samples=cells.samples,
            source=f"monitor:{NAMESPACE}",
            statistic=Statistic.MEAN_OF_CARDS if name in _OF_CARDS and not device else Statistic.DEVICE,
            documented_per_hour=_HOUR_SECONDS // max(reading.periods[metric] for metric, _, _ in found),
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
