"""The metrics of QCE/CVM, as the monitor's own table has them, and their points from the world's sensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from types import MappingProxyType

from cloudstand.world.kinds import AcceleratorKind
from cloudstand.world.records import Machine
from cloudstand.world.sensors import PERIOD_SECONDS, windows_of
from cloudstand.world.workload import HOUR_SECONDS, SignalName

PERIODS = (10, 60, 300, 3_600, 86_400)
DAY = 86_400
_EAST = 8 * 3_600  # days begin at midnight in UTC+8
KEPT_FOR: Mapping[int, timedelta] = MappingProxyType(
    {
        10: timedelta(days=1),
        60: timedelta(days=15),
        300: timedelta(days=31),
        3_600: timedelta(days=93),
        DAY: timedelta(days=186),
    }
)
_AVERAGES = dict.fromkeys(PERIODS, "avg")
_PEAKS = {10: "avg", 60: "avg", 300: "max", 3_600: "max", DAY: "max"}
_BITS = 8 / 1_000_000  # bytes a second to megabits a second
_INWARD, _OUTWARD = 0.7, 0.3  # how the bytes of both ways divide


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `signal` None: known to the monitor, and never measured in a world. `agent`: only that sends it.

    `factor` turns what the sensor says into the metric's unit; `ways`: traffic inside and outside the network.
    """

    name: str
    unit: str
    statistics: Mapping[int, str]
    signal: SignalName | None = None
    factor: float = 1.0
    agent: bool = False
    cards: bool = False
    side: str = ""
    dimensions: tuple[str, ...] = ("vm_uuid",)


MACHINE = ("InstanceId",)
"""The dimension by which every metric may be asked for (248/6843), whatever is declared."""
CARD = ("minorNumber", "unInstanceId")
"""As a published listing of DescribeBaseMetrics has the dimensions of GPU metrics."""

_ALL = (
    Metric("CpuUsage", "%", _PEAKS, SignalName.CPU, agent=True),
    Metric("BaseCpuUsage", "%", _PEAKS, SignalName.CPU),
    Metric("MemUsage", "%", _PEAKS, agent=True),
    Metric("LanOuttraffic", "Mbps", _PEAKS, SignalName.NETWORK, _BITS * _OUTWARD, side="lan"),
    Metric("LanIntraffic", "Mbps", _PEAKS, SignalName.NETWORK, _BITS * _INWARD, side="lan"),
    Metric("WanOuttraffic", "Mbps", _PEAKS, SignalName.NETWORK, _BITS * _OUTWARD, side="wan", dimensions=MACHINE),
    Metric("WanIntraffic", "Mbps", _PEAKS, SignalName.NETWORK, _BITS * _INWARD, side="wan", dimensions=MACHINE),
    Metric("Gpuutil", "%", _AVERAGES, SignalName.GPU, agent=True, cards=True, dimensions=CARD),
    Metric("Gpupowdraw", "0", _AVERAGES, SignalName.POWER, agent=True, cards=True, dimensions=CARD),
    Metric("Gpupowlimit", "0", _AVERAGES, agent=True, dimensions=CARD),
    Metric("Gpupowusage", "%", _AVERAGES, agent=True, dimensions=CARD),
    Metric("Gpumemusage", "%", _AVERAGES, agent=True, dimensions=CARD),
    Metric("GpuMemUsed", "MB", _AVERAGES, agent=True, dimensions=CARD),
    Metric("GpuMemTotal", "MB", _AVERAGES, agent=True, dimensions=CARD),
    Metric("Gputemp", "0", _AVERAGES, agent=True, dimensions=CARD),
)
METRICS: Mapping[str, Metric] = MappingProxyType({metric.name.lower(): metric for metric in _ALL})
"""By name in lower case: the vendor's own pages spell them differently, and the monitor takes either."""


@dataclass(frozen=True, slots=True)
class Point:
    """One period: the mean and the largest of what was measured in it."""

    timestamp: int
    average: float
    largest: float


def slots(period: int, since: datetime, until: datetime) -> range:
    """The beginnings of the periods that a question covers.

    Both ends are moved down to a period; the last belongs to it below an hour, and from an hour up not: so the
    monitor was seen to answer.
    """
    shift = _EAST if period == DAY else 0

    def down(moment: datetime) -> int:
        second = int(moment.timestamp()) + shift
        return second - second % period - shift

    return range(down(since), down(until) + (period if period < PERIODS[3] else 0), period)


def points(
    machine: Machine, metric: Metric, period: int, asked: range, now: datetime, card: int | None = None
) -> Iterator[Point]:
    """The points that exist, each of a period that is over; where nothing was measured there is none.

    Of one card, or of all of them together.
    """
    if metric.signal is None or (metric.agent and not machine.workload.agent):
        return
    chip = machine.spec.accelerator
    if metric.cards and (chip.kind is not AcceleratorKind.NVIDIA_GPU or chip.count <= (card or 0)):
        return
    series = _Series(machine, metric, metric.signal, now, card)
    last = now.timestamp() - period
    oldest = now.timestamp() - KEPT_FOR[period].total_seconds()
    over = [at for at in asked if oldest <= at <= last]
    if period <= PERIOD_SECONDS[metric.signal]:
        yield from (Point(at, value, value) for at, value in series.samples_at(over))
        return
    for at in over:
        found = series.over(at, period)
        if found is not None:
            yield Point(at, *found)


class _Series:
    """What one metric of one machine was, at any time. Of all cards it is their mean."""

    def __init__(self, machine: Machine, metric: Metric, signal: SignalName, now: datetime, card: int | None) -> None:
        self._workload, self._seed, self._signal = machine.workload, machine.native_id, signal
        self._finest = PERIOD_SECONDS[signal]
        cards = range(ceil(machine.spec.accelerator.count)) if metric.cards else range(1)
        self._cards = cards if card is None else range(card, card + 1)
        self._factor = metric.factor * _share(machine, metric.side) / len(self._cards)
        self._windows = windows_of(machine, now.timestamp(), of_devices=metric.agent)

    def samples_at(self, moments: Sequence[int]) -> Iterator[tuple[int, float]]:
        """Those of the moments that lie in a sample, with it."""
        slots = dict.fromkeys(at - at % self._finest for at in moments)
        measured = [slot for slot in slots if any(self._measured(slot, slot + self._finest))]
        known = dict(zip(measured, self._samples(measured), strict=True))
        for at in moments:
            value = known.get(at - at % self._finest)
            if value is not None:
                yield at, value

    def over(self, begin: int, period: int) -> tuple[float, float] | None:
        """The mean and the largest sample of a period longer than a sample; None where nothing was measured."""
        if period <= HOUR_SECONDS and any(start <= begin and begin + period <= end for start, end in self._windows):
            known = self._undisturbed(range(begin, begin + period, self._finest))
            if known is not None:
                return known
        samples = self._samples([*self._measured(begin, begin + period)])
        return (sum(samples) / len(samples), max(samples)) if samples else None

    def _undisturbed(self, slots: range) -> tuple[float, float] | None:
        """The same at a fraction of the cost, where nothing changes in that hour."""
        mean = largest = 0.0
        for card in self._cards:
            spread = self._workload.spread_of_slots(self._signal, card, slots, self._finest, self._seed)
            if spread is None:
                return None
            mean += spread[1] * self._factor
            largest += spread[2] * self._factor  # told of series with one card only
        return mean, largest

    def _measured(self, begin: int, end: int) -> Iterator[int]:
        for second in range(begin, end, self._finest):
            if any(start <= second and second + self._finest <= last for start, last in self._windows):
                yield second

    def _samples(self, seconds: Sequence[int]) -> list[float]:
        """What was measured in each slot: of cards, all of them together."""
        samples = self._workload.samples
        cards = (samples(self._signal, card, seconds, self._finest, self._seed) for card in self._cards)
        return [self._factor * sum(each) for each in zip(*cards, strict=True)]


def _share(machine: Machine, side: str) -> float:
    """How much of the traffic goes this side: half of it outside where there is a public address, else none."""
    public = bool(machine.spec.public_ip) or machine.spec.kept_address
    if not side:
        return 1.0
    return 0.5 if public else float(side == "lan")
