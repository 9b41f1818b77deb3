"""How busy a machine is, as a function of time: what its sensors would say at any moment, the same on every run.

The noise is a hash of (machine, signal, card, moment), so nothing is stored and nothing depends on order.
Each whole hour has one peak, reached in one slot; the other slots stay below it. That gives the maximum of an
undisturbed hour in closed form, equal to what its single samples would give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from functools import lru_cache
from itertools import repeat
from zlib import crc32

HOUR_SECONDS = 3600
_HASH_RANGE = 2**32


class SignalName(str, Enum):
    """What is measured. Percent for GPU and CPU, bytes a second for network and disk, watts for power."""

    GPU = "gpu"
    GPU_MEMORY = "gpu_memory"
    CPU = "cpu"
    NETWORK = "network"
    POWER = "power"
    DISK = "disk"


@dataclass(frozen=True, slots=True)
class Load:
    """The peak of each signal in an hour of this kind of work: percent, bytes a second, watts a card."""

    gpu_percent: float
    cpu_percent: float
    network_bytes_per_second: float
    watts_per_card: float

    def of(self, signal: SignalName) -> float:
        """The peak of one signal; memory is not modelled."""
        peaks = {
            SignalName.GPU: self.gpu_percent,
            SignalName.CPU: self.cpu_percent,
            SignalName.NETWORK: self.network_bytes_per_second,
            SignalName.POWER: self.watts_per_card,
        }
        return peaks.get(signal, 0.0)


IDLE = Load(gpu_percent=0.0, cpu_percent=2.0, network_bytes_per_second=2_000.0, watts_per_card=31.0)
BUSY = Load(gpu_percent=96.0, cpu_percent=55.0, network_bytes_per_second=4_000_000.0, watts_per_card=270.0)
STUCK_AT_0 = Load(gpu_percent=0.0, cpu_percent=55.0, network_bytes_per_second=4_000_000.0, watts_per_card=270.0)
GPU_ONLY = Load(gpu_percent=91.0, cpu_percent=3.0, network_bytes_per_second=3_000.0, watts_per_card=255.0)


@dataclass(frozen=True, slots=True)
class Workload:
    """What one machine does over time, and whether an agent tells.

    `phases` are (from this moment on, load), in time order, after `first`. `spikes` are moments with one busy
    sample. `idle_cards` never work. `agent` False means no device metric was ever sent;
    `agent_dies_at` is when they cease. CPU and network are measured by the cloud and need no agent.
    `phase_seconds` and `spike_seconds` are the moments in Unix time.
    """

    first: Load
    phases: tuple[tuple[datetime, Load], ...] = ()
    spikes: tuple[datetime, ...] = ()
    idle_cards: frozenset[int] = frozenset()
    agent: bool = True
    agent_dies_at: datetime | None = None
    phase_seconds: tuple[float, ...] = field(init=False, repr=False, compare=False)
    spike_seconds: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "phase_seconds", tuple(moment.timestamp() for moment, _ in self.phases))
        object.__setattr__(self, "spike_seconds", tuple(spike.timestamp() for spike in self.spikes))

    def then(self, moment: datetime, load: Load) -> Workload:
        """The same until `moment`, `load` from there on."""
        return replace(self, phases=(*(phase for phase in self.phases if phase[0] < moment), (moment, load)))

    def sample(self, signal: SignalName, card: int, second: int, period: int, seed: str) -> float:
        """The one sample of the slot that begins at `second` (Unix time, a multiple of `period`)."""
        if any(second <= spike < second + period for spike in self.spike_seconds):
            return BUSY.of(signal)
        prefix = _prefix(signal, card, seed)
        hour = second - second % HOUR_SECONDS
        peak = self._amplitude(signal, card, second) * (0.8 + 0.2 * _unit(prefix, b"%d" % hour))
        if (second - hour) // period == int(_unit(prefix, b"%d/slot" % hour) * (HOUR_SECONDS // period)):
            return peak
        return peak * (0.5 + 0.4 * _unit(prefix, b"%d" % second))

    def samples(self, signal: SignalName, card: int, slots: Sequence[int], period: int, seed: str) -> list[float]:
        """`sample` of each of these slots, at a fraction of the cost in hours in which nothing changes."""
        prefix, known = _prefix(signal, card, seed), 0
        found: list[float] = []
        peak: float | None = None
        top = 0
        for second in slots:
            hour = second - second % HOUR_SECONDS
            if hour != known:
                known, peak = hour, self.hour_peak(signal, card, hour, seed)
                top = hour + period * int(_unit(prefix, b"%d/slot" % hour) * (HOUR_SECONDS // period))
            if peak is None:
                found.append(self.sample(signal, card, second, period, seed))
            elif second == top:
                found.append(peak)
            else:
                found.append(peak * (0.5 + 0.4 * (crc32(b"%d" % second, prefix) / _HASH_RANGE)))
        return found

    def hour_peak(self, signal: SignalName, card: int, hour: int, seed: str) -> float | None:
        """The largest sample of the whole hour, or None where something changes within it and samples must be read."""
        end = hour + HOUR_SECONDS
        if any(hour < moment < end for moment in self.phase_seconds):
            return None
        if any(hour <= spike < end for spike in self.spike_seconds):
            return None
        return self.hour_peaks(signal, card, range(hour, end, HOUR_SECONDS), seed)[0]

    def peak_of_slots(
        self, signal: SignalName, card: int, hour: int, slots: Sequence[int], period: int, seed: str
    ) -> float | None:
        """The largest sample of some slots of one hour, or None as for `hour_peak`."""
        peak = self.hour_peak(signal, card, hour, seed)
        if not peak:
            return peak
        prefix = _prefix(signal, card, seed)
        if hour + period * int(_unit(prefix, b"%d/slot" % hour) * (HOUR_SECONDS // period)) in slots:
            return peak
        highest = max([crc32(b"%d" % second, prefix) for second in slots])
        return peak * (0.5 + 0.4 * (highest / _HASH_RANGE))

    def spread_of_slots(
        self, signal: SignalName, card: int, slots: range, period: int, seed: str
    ) -> tuple[float, float, float] | None:
        """The smallest, mean and largest sample of some slots of one hour, or None as for `hour_peak`."""
        hour = slots.start - slots.start % HOUR_SECONDS
        peak = self.hour_peak(signal, card, hour, seed)
        if not peak:
            return None if peak is None else (peak, peak, peak)
        prefix = _prefix(signal, card, seed)
        top = hour + period * int(_unit(prefix, b"%d/slot" % hour) * (HOUR_SECONDS // period))
        hashes = list(map(crc32, _written(slots), repeat(prefix)))
        has_top = top in slots
        if has_top:
            del hashes[slots.index(top)]
        if not hashes:
            return peak, peak, peak
        rest = peak * (0.5 * len(hashes) + 0.4 * (sum(hashes) / _HASH_RANGE))
        lowest = peak * (0.5 + 0.4 * (min(hashes) / _HASH_RANGE))
        if has_top:
            return lowest, (rest + peak) / len(slots), peak
        return lowest, rest / len(slots), peak * (0.5 + 0.4 * (max(hashes) / _HASH_RANGE))

    def hour_peaks(self, signal: SignalName, card: int, hours: range, seed: str) -> list[float]:
        """`hour_peak` of a run of hours within which, and between which, nothing changes."""
        amplitude = self._amplitude(signal, card, hours[0])
        if not amplitude:
            return [amplitude] * len(hours)
        prefix = _prefix(signal, card, seed)
        return [amplitude * (0.8 + 0.2 * (crc32(hour, prefix) / _HASH_RANGE)) for hour in _written(hours)]

    def _amplitude(self, signal: SignalName, card: int, second: int) -> float:
        if card in self.idle_cards and signal in _DEVICE:
            return IDLE.of(signal)
        load = self.first
        for moment, (_, phase) in zip(self.phase_seconds, self.phases, strict=True):
            if second >= moment:
                load = phase
        return load.of(signal)


_DEVICE = (SignalName.GPU, SignalName.POWER)


@lru_cache(maxsize=4096)  # machines times series of a large fleet
def _prefix(signal: SignalName, card: int, seed: str) -> int:
    """The checksum of a series' name, from which those of its moments go on."""
    return crc32(f"{seed}/{signal.value}/{card}/".encode())


@lru_cache(maxsize=1024)  # all machines are asked for the same few windows
def _written(moments: range) -> tuple[bytes, ...]:
    return tuple(b"%d" % moment for moment in moments)


def _unit(prefix: int, moment: bytes) -> float:
    """A number from 0 to below 1 that always belongs to this moment of the series."""
    return crc32(moment, prefix) / _HASH_RANGE


def idle() -> Workload:
    """Nothing to do, and an agent that says so."""
    return Workload(IDLE)


def busy() -> Workload:
    """Working on every card."""
    return Workload(BUSY)


def cpu_idle_gpu_busy() -> Workload:
    """Training from local data: the CPU hardly moves, the cards are full."""
    return Workload(GPU_ONLY)


def stuck_exporter() -> Workload:
    """Working on every card, while whoever tells of their use is stuck at 0."""
    return Workload(STUCK_AT_0)


def one_spike(at: datetime) -> Workload:
    """Idle but for one busy sample."""
    return Workload(IDLE, spikes=(at,))


def no_data() -> Workload:
    """No agent: the cloud sees CPU and network, nobody sees the cards."""
    return Workload(IDLE, agent=False)


def agent_dies(at: datetime) -> Workload:
    """Idle, and from `at` on no device metric arrives any more."""
    return Workload(IDLE, agent_dies_at=at)


def too_new() -> Workload:
    """Idle; young only by the `launched_at` of its machine."""
    return Workload(IDLE)


def partly_idle(*cards: int) -> Workload:
    """A quiet CPU and busy cards, but for these cards, which never work."""
    return Workload(GPU_ONLY, idle_cards=frozenset(cards))


def busy_until(moment: datetime) -> Workload:
    """Busy, idle from `moment` on."""
    return busy().then(moment, IDLE)


def comes_back(at: datetime) -> Workload:
    """Idle, busy from `at` on."""
    return idle().then(at, BUSY)
