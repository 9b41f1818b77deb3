"""What can be read about a machine: samples exist while it ran, while its agent lived, and once their slot is over.

Device metrics come from an agent every minute, CPU and network from the cloud every five.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from costguard.domain.resources import AcceleratorKind
from costguard.domain.signals import SignalName
from costguard.sandbox.world.records import Machine
from costguard.sandbox.world.workload import HOUR_SECONDS

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
        died = self.machine.workload.agent_dies_at if self.card is not None else None
        last = now.timestamp() if died is None else min(now, died).timestamp()
        spans = ((start.timestamp(), end.timestamp() if end else last) for start, end in self.machine.runs)
        return [(start, min(end, last)) for start, end in spans if start < last]

    def has_samples(self, since: datetime, now: datetime) -> bool:
        """Whether anything was measured from `since` to `now`."""
        first = since.timestamp()
        period = PERIOD_SECONDS[self.signal]
        return any(end - max(start, first) >= 2 * period for start, end in self.windows(now))

    def samples(self, begin: int, end: int, now: datetime) -> Iterator[float]:
        """Every sample whose slot begins from `begin` to before `end` (Unix time), in order."""
        period = PERIOD_SECONDS[self.signal]
        for second in self._slots(begin, end, now):
            yield self._workload_sample(second, period)

    def peak(self, begin: int, end: int, now: datetime) -> tuple[float | None, int]:
        """The largest sample from `begin` to before `end` and how many there are; whole hours without looking at each.

        The value is as a person would say it: percent, bytes a second, watts.
        """
        slots = self._slots(begin, end, now)
        whole_hour = begin % HOUR_SECONDS == 0 and end - begin == HOUR_SECONDS
        if whole_hour and len(slots) == HOUR_SECONDS // PERIOD_SECONDS[self.signal]:
            peak = self.machine.workload.hour_peak(self.signal, self.card or 0, begin, self.machine.native_id)
            if peak is not None:
                return peak, len(slots)
        period = PERIOD_SECONDS[self.signal]
        return max((self._workload_sample(second, period) for second in slots), default=None), len(slots)

    def _workload_sample(self, second: int, period: int) -> float:
        return self.machine.workload.sample(self.signal, self.card or 0, second, period, self.machine.native_id)

    def _slots(self, begin: int, end: int, now: datetime) -> list[int] | range:
        period = PERIOD_SECONDS[self.signal]
        found: list[int] | range = range(0)
        for start, last in self.windows(now):
            first = max(begin, int(start))
            first += -first % period
            slots = range(first, min(end, int(last) - period + 1), period)
            found = slots if not found else [*found, *slots]
        return found


def sensors_of(machine: Machine) -> tuple[Sensor, ...]:
    """Every series of a machine. Only NVIDIA cards with an agent have device metrics."""
    common = (Sensor(machine, SignalName.CPU), Sensor(machine, SignalName.NETWORK))
    accelerator = machine.spec.accelerator
    if accelerator.kind is not AcceleratorKind.NVIDIA_GPU or not machine.workload.agent:
        return common
    cards = range(int(accelerator.count))
    return tuple(Sensor(machine, signal, card) for signal in DEVICE_SIGNALS for card in cards) + common
