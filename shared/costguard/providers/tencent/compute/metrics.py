"""How busy instances were, from Tencent's Monitor: hourly maxima with sample counts.

Permissions: `monitor:DescribeBaseMetrics`, `monitor:GetMonitorData`. Where the numbers come from, all of `QCE/CVM`
by InstanceId:

* GPU (percent) and power (watts): `GpuUtil` and `GpuPowDraw`, which an agent in the machine sends. By any statistic
  they are means over the period, so they are read at one minute, the finest that is kept for long. Of a machine there
  is one series, a mean over its cards, which says so of itself; each card has one of its own where Monitor tells of
  cards (`Cards`).
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

from costguard.domain.errors import ProviderError, RefusedError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import AcceleratorKind, Instance
from costguard.domain.signals import HOUR, SignalHistory, SignalName, Statistic
from costguard.ports import SignalReport
from costguard.providers.kit.compute.metrics import Cells, Window, report_of
from costguard.providers.kit.core.calls import Calls
from costguard.providers.tencent.compute.metric_answers import FINEST, Known, metric_names, period_for
from costguard.providers.tencent.compute.metric_calls import (
    BY_MACHINE,
    NAMESPACE,
    Asking,
    Job,
    Metric,
    Pages,
    Reading,
    Target,
)
from costguard.providers.tencent.core.errors import UNSUPPORTED, gap

_TRIED = 3  # machines asked one after another whether any card answers: some may lack an agent
_FEWEST = 2  # periods: the newest of an hour may still be on its way
_WHOLE = 0.95  # the coverage below which no rule calls a machine idle


class Cards:
    """What is known of Monitor's answers by card, for as long as this lives; may be shared by threads.

    Tencent's page of metrics (248/6843) has one dimension for all of `QCE/CVM`, `InstanceId`. A published listing of
    what DescribeBaseMetrics answers has `minorNumber` and `unInstanceId` for every GPU metric, and `vm_uuid` for others
    that are asked for by `InstanceId` all the same: the declared names may not be those that GetMonitorData takes. No
    answer of it for a card was at hand. So what is declared is tried, under either name of the machine, for the last
    hour first. A machine is read by its cards where each of them answers, and a number beyond the last does not: who
    answers to that one overlooks the card, and tells the mean. In every other case the mean is read, as it is where
    nothing is declared.

    `late`: how late a point may come.
    """

    def __init__(self, asking: Asking, late: timedelta) -> None:
        self._asking = asking
        self._late = late
        self._refused: set[tuple[str, str, tuple[str, ...]]] = set()
        self._answered: dict[tuple[str, str], tuple[str, ...]] = {}

    def read(self, shard: Shard, job: Job, instances: Iterable[Instance], reading: Reading) -> set[ResourceRef]:
        """Read those machines of a job by their cards that Monitor tells the cards of; whose cards are whole.

        The others need the mean, which nothing is lost of here.
        """
        wanted = {target.ref for target in job.targets}
        counts = {one.ref: cards for one in instances if one.ref in wanted and (cards := _cards_of(one)) > 1}
        if job.metric.of_card is None or not counts:
            return set()
        machine, card = job.metric.of_card
        for names in dict.fromkeys(((machine, card), (*BY_MACHINE, card))):
            told = self._told(shard, replace(job, names=names), counts)
            if told:
                whole = replace(job, names=names, targets=_targets(told))
                self._asking.run(shard, [whole], reading)
                expected = _WHOLE * (whole.points - self._late // timedelta(seconds=whole.period))
                return {ref for ref, cards in told.items() if _least(reading, whole, ref, cards) >= expected}
        return set()

    def _told(self, shard: Shard, job: Job, counts: Mapping[ResourceRef, int]) -> dict[ResourceRef, int]:
        """The machines whose every card answered in the last hour, and no card that cannot be there."""
        metric = shard.account, job.metric.name
        known = self._answered.get(metric)
        if (*metric, job.names) in self._refused or known not in {None, job.names}:
            return {}
        step = timedelta(seconds=job.period)
        newest = replace(job, begin=job.begin + max(0, job.points - max(HOUR // step, _FEWEST)) * step)
        if known is None and not self._try(shard, newest, counts):
            return {}
        self._answered[metric] = job.names
        answering, _ = self._answers(shard, newest, _targets(counts))
        told = {ref: cards for ref, cards in counts.items() if set(_targets({ref: cards})) <= answering}
        beyond, failed = self._answers(shard, newest, tuple(Target(ref, str(cards)) for ref, cards in told.items()))
        unsure = {ref for ref, error in failed.items() if not isinstance(error, RefusedError)}
        return {
            ref: cards for ref, cards in told.items() if Target(ref, str(cards)) not in beyond and ref not in unsure
        }

    def _try(self, shard: Shard, job: Job, counts: Mapping[ResourceRef, int]) -> bool:
        """Whether any card of a few machines answers. A refusal is remembered, a fault that passes is not."""
        for ref in [*counts][:_TRIED]:
            answering, failed = self._answers(shard, job, _targets({ref: counts[ref]}))
            if answering:
                return True
            if isinstance(failed.get(ref), RefusedError):
                self._refused.add((shard.account, job.metric.name, job.names))
                return False
        return False

    def _answers(
        self, shard: Shard, job: Job, targets: tuple[Target, ...]
    ) -> tuple[set[Target], Mapping[ResourceRef, ProviderError]]:
        """Which of the targets have a point in the job's time, and which machines could not be asked."""
        asked = Reading(Window.spanning(job.begin, job.end))
        self._asking.run(shard, [replace(job, targets=targets)], asked)
        found = {target for (target, _), cells in asked.cells.items() if any(cells.samples)}
        return found, {ref: error for (ref, _), error in asked.cards_lost.items()}


def standing(cards: Mapping[str, Cells], mean: Cells | None, *, lost: bool) -> Mapping[str, Cells]:
    """The series that speak for a machine, by card: its cards, or the mean over them under the empty name.

    `mean` is None where it was not needed, `lost` says that some of the cards' points were not read. The cards stand
    where they are as whole as the mean. Should that be no mean after all, it is at least what the busiest card of each
    hour makes of it.
    """
    if mean is None or not cards:
        return cards if mean is None else {"": mean}
    if not lost and min(sum(cells.samples) for cells in cards.values()) >= _WHOLE * sum(mean.samples):
        return cards
    for cells in cards.values():
        for hour, value in enumerate(cells.maxima):
            if cells.samples[hour] and not value / len(cards) <= mean.maxima[hour]:  # true of NaN, which is no point
                mean.maxima[hour] = value / len(cards)
    return {"": mean}


def _cards_of(instance: Instance) -> int:
    """How many cards may have series of their own; 0 for shares of one, and for what is no NVIDIA card."""
    count = instance.accelerator.count
    whole = instance.accelerator.kind is AcceleratorKind.NVIDIA_GPU and count == int(count)
    return int(count) if whole else 0


def _targets(counts: Mapping[ResourceRef, int]) -> tuple[Target, ...]:
    """Cards are numbered from 0, as the driver numbers them (`/dev/nvidia0`)."""
    return tuple(Target(ref, str(card)) for ref, cards in counts.items() for card in range(cards))


def _least(reading: Reading, job: Job, ref: ResourceRef, cards: int) -> int:
    """How many points the card with the fewest has; none where some were lost on the way."""
    if (ref, job.metric) in reading.cards_lost:
        return 0
    return min(sum(reading.cells[target, job.metric].samples) for target in _targets({ref: cards}))


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
        return self._report(instances, reading)

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

    def _report(self, instances: Sequence[Instance], reading: Reading) -> SignalReport:
        delay = AGENT_DELAY if self._signals <= _OF_CARDS else SLOW_DELAY
        of_instance: dict[ResourceRef, dict[SignalName, list[tuple[Metric, str, Cells]]]] = {}
        for ((ref, card), metric), cells in reading.cells.items():
            if (ref, metric.signal) in reading.lost:
                continue
            of_instance.setdefault(ref, {}).setdefault(metric.signal, []).append((metric, card, cells))
        histories = {
            ref: [
                one
                for name, series in found.items()
                for one in _histories(reading, ref, name, series)
                if any(one.samples)
            ]
            for ref, found in of_instance.items()
            if ref not in reading.failures
        }
        return report_of(instances, histories, reading.failures, delay, gap)


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
