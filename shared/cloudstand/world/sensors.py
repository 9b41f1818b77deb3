"""What can be read about a machine: samples exist while it ran, while its agent lived, and once their slot is over.

Device metrics come from an agent every minute, CPU and network from the cloud every five.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from cloudstand.world.kinds import AcceleratorKind
from cloudstand.world.records import Machine, Silence
from cloudstand.world.workload import HOUR_SECONDS, SignalName

PERIOD_SECONDS = {SignalName.GPU: 60, SignalName.POWER: 60, SignalName.CPU: 300, SignalName.NETWORK: 300}
DEVICE_SIGNALS = (SignalName.GPU, SignalName.POWER)


@dataclass(frozen=True, slots=True)
class Sensor:
    """One series: a signal of one card, or of the whole machine (`card` None)."""

    machine: Machine
    signal: SignalName
    card: int | None = None

    @property
    def device(self) -> str:
        """The card as signals name it."""
        return "" if self.card is None else str(self.card)

    def windows(self, now: datetime) -> list[tuple[float, float]]:
        """When samples exist, in Unix time: from, to."""
        return windows_of(self.machine, now.timestamp(), of_devices=self.card is not None)

    def has_samples(self, since: datetime, now: datetime) -> bool:
        """Whether anything was measured from `since` to `now`."""
        return any_slot(self.windows(now), since.timestamp(), PERIOD_SECONDS[self.signal])

    def samples(self, begin: int, end: int, now: datetime) -> Iterator[float]:
        """Every sample whose slot begins from `begin` to before `end` (Unix time), in order."""
        yield from self.samples_within(begin, end, self.windows(now))

    def samples_within(self, begin: int, end: int, windows: Sequence[tuple[float, float]]) -> Sequence[float]:
        """`samples`, where it is known already when samples exist."""
        period = PERIOD_SECONDS[self.signal]
        return self._workload_samples(_slots(begin, end, period, windows), period)

    def count_within(self, begin: int, end: int, windows: Sequence[tuple[float, float]]) -> int:
        """How many samples there are."""
        return len(_slots(begin, end, PERIOD_SECONDS[self.signal], windows))

    def peak(self, begin: int, end: int, now: datetime) -> tuple[float | None, int]:
        """The largest sample from `begin` to before `end` and how many there are.

        The value is as a person would say it: percent, bytes a second, watts.
        """
        return self.peak_within(begin, end, self.windows(now))

    def peak_within(self, begin: int, end: int, windows: Sequence[tuple[float, float]]) -> tuple[float | None, int]:
        """`peak`, where it is known already when samples exist."""
        period = PERIOD_SECONDS[self.signal]
        slots = _slots(begin, end, period, windows)
        if not slots:
            return None, 0
        hour = begin - begin % HOUR_SECONDS
        if end <= hour + HOUR_SECONDS:
            workload, card = self.machine.workload, self.card or 0
            peak = workload.peak_of_slots(self.signal, card, hour, slots, period, self.machine.native_id)
            if peak is not None:
                return peak, len(slots)
        return max(self._workload_samples(slots, period)), len(slots)

    def _workload_samples(self, slots: Sequence[int], period: int) -> Sequence[float]:
        return self.machine.workload.samples(self.signal, self.card or 0, slots, period, self.machine.native_id)


def windows_of(machine: Machine, now: float, *, of_devices: bool) -> list[tuple[float, float]]:
    """When samples of a machine exist, in Unix time: from, to. Devices fall silent with their agent."""
    died = machine.workload.agent_dies_at if of_devices else None
    last = now if died is None else min(now, died.timestamp())
    spans = ((start.timestamp(), last if end is None else min(end.timestamp(), last)) for start, end in machine.runs)
    windows = [(start, end) for start, end in spans if start < last]
    for silence in machine.silences:
        if of_devices or silence.all_signals:
            windows = [part for window in windows for part in _without(window, silence)]
    return windows


def any_slot(windows: Iterable[tuple[float, float]], since: float, period: int) -> bool:
    """Whether a whole slot that begins at `since` or later lies in one of the windows."""
    return any(-(-max(start, since) // period) * period + period <= end for start, end in windows)


def _without(window: tuple[float, float], silence: Silence) -> Iterator[tuple[float, float]]:
    start, end = window
    if silence.until <= start or end <= silence.since:
        yield window
        return
    if start < silence.since:
        yield start, silence.since
    if silence.until < end:
        yield silence.until, end


def _slots(begin: int, end: int, period: int, windows: Iterable[tuple[float, float]]) -> list[int] | range:
    found: list[int] | range = range(0)
    for start, last in windows:
        first = -(-max(begin, ceil(start)) // period) * period
        slots = range(first, min(end, int(last) - period + 1), period)
        if slots:
            found = slots if not found else [*found, *slots]
    return found


def sensors_of(machine: Machine) -> tuple[Sensor, ...]:
    """Every series of a machine. Only NVIDIA cards with an agent have device metrics."""
    common = (Sensor(machine, SignalName.CPU), Sensor(machine, SignalName.NETWORK))
    accelerator = machine.spec.accelerator
    if accelerator.kind is not AcceleratorKind.NVIDIA_GPU or not machine.workload.agent:
        return common
    cards = range(ceil(accelerator.count))  # a slice of a card has a metric of its own
    return tuple(Sensor(machine, signal, card) for signal in DEVICE_SIGNALS for card in cards) + common
