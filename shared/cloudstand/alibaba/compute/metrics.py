"""CloudMonitor's metrics over the world's sensors: what each is called, how often it comes, and what it measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from cloudstand.world.kinds import AcceleratorKind
from cloudstand.world.records import Machine
from cloudstand.world.sensors import PERIOD_SECONDS, windows_of
from cloudstand.world.workload import SignalName

Window = tuple[float, float]
Statistics = tuple[float, float, float]
"""Minimum, average and maximum of one period."""

_BITS = 8
_KEPT_FOR = ((60, timedelta(days=7)), (300, timedelta(days=31)))
_LONGEST = timedelta(days=91)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `signal` None is one that the world does not measure: it is known, and has never any data.

    `per_card`: a series for each card, told apart by `gpuId`; `per_address`: for each public address, by `ip`.
    `of_device`: it comes from driver and agent within the machine. `factor` turns what the sensor says into the
    metric's own unit, `factor_alone` where the machine has no public address.
    """

    name: str
    unit: str
    signal: SignalName | None = None
    per_card: bool = False
    per_address: bool = False
    of_device: bool = False
    factor: float = 1.0
    factor_alone: float = 1.0

    @property
    def periods(self) -> tuple[int, ...]:
        """Seconds over which it may be asked for; the first is the one in which it is reported."""
        return (15, 60, 900, 3600) if self.of_device else (60, 900, 3600)

    @property
    def dimensions(self) -> tuple[str, ...]:
        """What tells its series apart."""
        part = ("gpuId",) if self.per_card else ("ip",) if self.per_address else ()
        return ("userId", "instanceId", *part)


def _gpu(name: str, unit: str, signal: SignalName | None = None) -> tuple[Metric, Metric]:
    """Each GPU metric comes for every card, and once more for the whole machine."""
    return (
        Metric(f"gpu_{name}", unit, signal, per_card=True, of_device=True),
        Metric(f"instance_gpu_{name}", unit, signal, of_device=True),
    )


def _rate(name: str, share: float, alone: float = 0.0) -> Metric:
    """A part of what the one network sensor of the world says, in bits; all addresses have the `share` together."""
    signal, outside = SignalName.NETWORK, not alone
    return Metric(name, "bit/s", signal, per_address=outside, factor=share * _BITS, factor_alone=alone * _BITS)


METRICS = {
    metric.name: metric
    for metric in (
        *_gpu("gpu_usedutilization", "%", SignalName.GPU),
        *_gpu("power_readings_power_draw", "W", SignalName.POWER),
        *_gpu("memory_usedutilization", "%"),
        *_gpu("memory_freeutilization", "%"),
        *_gpu("memory_usedspace", "bytes"),
        *_gpu("memory_freespace", "bytes"),
        *_gpu("memory_totalspace", "bytes"),
        *_gpu("encoder_utilization", "%"),
        *_gpu("decoder_utilization", "%"),
        *_gpu("gpu_temperature", "C"),
        Metric("CPUUtilization", "%", SignalName.CPU),
        _rate("IntranetInRate", 0.3, alone=0.7),  # together they are the world's bytes of both ways
        _rate("IntranetOutRate", 0.1, alone=0.3),
        _rate("VPC_PublicIP_InternetInRate", 0.4),
        _rate("VPC_PublicIP_InternetOutRate", 0.2),
        Metric("InternetInRate", "bit/s"),  # of the classic network, which is not here
        Metric("InternetOutRate", "bit/s"),
        Metric("DiskReadBPS", "byte/s"),
        Metric("DiskWriteBPS", "byte/s"),
        Metric("DiskReadIOPS", "count/s"),
        Metric("DiskWriteIOPS", "count/s"),
        Metric("cpu_total", "%", of_device=True),
        Metric("memory_usedutilization", "%", of_device=True),
        Metric("load_1m", "", of_device=True),
    )
    if not metric.name.startswith("gpu_memory_") or metric.per_card
}
"""By name, as in acs_ecs_dashboard."""


def kept_for(period: int) -> timedelta:
    """How long points of this period are kept."""
    return next((time for below, time in _KEPT_FOR if period < below), _LONGEST)


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of one machine, of one card of it where `card` is a number and of all of them where it is None.

    `ip` is the address it is about, if any.
    """

    machine: Machine
    metric: Metric
    signal: SignalName
    card: int | None
    windows: Sequence[Window]
    factor: float
    ip: str = ""

    def stamps(self, after: int, until: int, period: int) -> list[int]:
        """The beginnings of the periods with data, above `after` and up to `until`, in Unix time.

        A period is told once it is over. One shorter than the sensor's own repeats the sample that it lies within.
        """
        own = PERIOD_SECONDS[self.signal]
        step = max(own, period)
        found: dict[int, None] = {}
        for start, end in self.windows:
            first = -(-max(ceil(start), after - step) // own) * own
            last = min(int(end), until + step)
            if period < own:
                slots = range(first, last - own + 1, own)
                found.update(dict.fromkeys(at for slot in slots for at in range(slot, slot + own, period)))
            else:
                begins = range(first - first % period, last - own + 1, period)
                found.update(dict.fromkeys(begins))
        return [at for at in found if after < at <= until]

    def statistics(self, begins: Sequence[int], period: int) -> list[Statistics]:
        """What was measured in each of these periods, which have data."""
        own = PERIOD_SECONDS[self.signal]
        if period > own:
            return [self._of_period(begin, period) for begin in begins]
        slots = [begin - begin % own for begin in begins]  # a period within a sample repeats it
        known = dict(zip(dict.fromkeys(slots), self._of_slots([*dict.fromkeys(slots)], own), strict=True))
        return [known[slot] for slot in slots]

    def _of_slots(self, slots: Sequence[int], own: int) -> Iterator[Statistics]:
        factor, workload, seed = self.factor, self.machine.workload, self.machine.native_id
        for values in zip(
            *(workload.samples(self.signal, card or 0, slots, own, seed) for card in self._cards()), strict=True
        ):
            yield min(values) * factor, sum(values) / len(values) * factor, max(values) * factor

    def _of_period(self, begin: int, period: int) -> Statistics:
        factor, cards = self.factor, self._cards()
        if len(cards) == 1:
            low, mean, high = self._spread(cards[0] or 0, begin, period)
            return low * factor, mean * factor, high * factor
        parts = [self._spread(card or 0, begin, period) for card in cards]
        mean = sum(part[1] for part in parts) / len(parts)
        return min(part[0] for part in parts) * factor, mean * factor, max(part[2] for part in parts) * factor

    def _cards(self) -> Sequence[int | None]:
        return (self.card,) if self.card is not None else _cards(self.machine, self.metric)

    def _spread(self, card: int, begin: int, period: int) -> Statistics:
        own, seed = PERIOD_SECONDS[self.signal], self.machine.native_id
        workload = self.machine.workload
        if any(start <= begin and begin + period <= last for start, last in self.windows):
            known = workload.spread_of_slots(self.signal, card, range(begin, begin + period, own), own, seed)
            if known is not None:
                return known
        values = workload.samples(self.signal, card, self._slots(begin, begin + period, own), own, seed)
        return min(values), sum(values) / len(values), max(values)

    def _slots(self, begin: int, end: int, own: int) -> list[int]:
        return [
            slot
            for start, last in self.windows
            for slot in range(
                -(-max(begin, ceil(start)) // own) * own,
                min(end, int(last) - own + 1),
                own,
            )
        ]


def series_of(machine: Machine, metric: Metric, now: float, ips: Sequence[str] = ()) -> Iterator[Series]:
    """The series of one metric of a machine up to `now`; none where no card, driver or agent ever measured.

    `ips` are its public addresses: the traffic over them is shared evenly among them.
    """
    if metric.signal is None or (metric.of_device and not _measures_cards(machine)):
        return
    windows = windows_of(machine, now, of_devices=metric.of_device)
    if metric.per_address:
        for ip in ips:
            yield Series(machine, metric, metric.signal, None, windows, metric.factor / len(ips), ip)
        return
    factor = metric.factor_alone if metric.signal is SignalName.NETWORK and not ips else metric.factor
    for card in _cards(machine, metric) if metric.per_card else (None,):
        yield Series(machine, metric, metric.signal, card, windows, factor)


def agent_runs(machine: Machine, now: float) -> bool:
    """Whether the agent within the machine lives now."""
    died = machine.workload.agent_dies_at
    return machine.workload.agent and (died is None or now < died.timestamp())


def _measures_cards(machine: Machine) -> bool:
    return machine.spec.accelerator.kind is AcceleratorKind.NVIDIA_GPU and machine.workload.agent


def _cards(machine: Machine, metric: Metric) -> Sequence[int | None]:
    return range(ceil(machine.spec.accelerator.count)) if metric.of_device else (None,)
