"""How busy a machine is, as a function of time: what its sensors would say at any moment, the same on every run.

The noise is a hash of (machine, signal, card, moment), so nothing is stored and nothing depends on order.
Each whole hour has one peak, reached in one slot; the other slots stay below it. That gives the maximum of an
undisturbed hour in closed form, equal to what its single samples would give.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from zlib import crc32

from costguard.domain.signals import SignalName

HOUR_SECONDS = 3600
_HASH_RANGE = 2**32


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
GPU_ONLY = Load(gpu_percent=91.0, cpu_percent=3.0, network_bytes_per_second=3_000.0, watts_per_card=255.0)


@dataclass(frozen=True, slots=True)
class Workload:
    """What one machine does over time, and whether an agent tells.

    `phases` are (from this moment on, load), in time order, after `first`. `spikes` are moments with one busy
    sample. `idle_cards` never work. `agent` False means no device metric was ever sent;
    `agent_dies_at` is when they cease. CPU and network are measured by the cloud and need no agent.
    """

    first: Load
    phases: tuple[tuple[datetime, Load], ...] = ()
    spikes: tuple[datetime, ...] = ()
    idle_cards: frozenset[int] = frozenset()
    agent: bool = True
    agent_dies_at: datetime | None = None

    def then(self, moment: datetime, load: Load) -> Workload:
        """The same until `moment`, `load` from there on."""
        return replace(self, phases=(*(phase for phase in self.phases if phase[0] < moment), (moment, load)))

    def sample(self, signal: SignalName, card: int, second: int, period: int, seed: str) -> float:
        """The one sample of the slot that begins at `second` (Unix time, a multiple of `period`)."""
        if any(second <= spike.timestamp() < second + period for spike in self.spikes):
            return BUSY.of(signal)
        hour = second - second % HOUR_SECONDS
        peak = self._peak(signal, card, second, seed)
        slots = HOUR_SECONDS // period
        if (second - hour) // period == int(_unit(f"{seed}/{signal.value}/{card}/{hour}/slot") * slots):
            return peak
        return peak * (0.5 + 0.4 * _unit(f"{seed}/{signal.value}/{card}/{second}"))

    def hour_peak(self, signal: SignalName, card: int, hour: int, seed: str) -> float | None:
        """The largest sample of the whole hour, or None where something changes within it and samples must be read."""
        end = hour + HOUR_SECONDS
        if any(hour < moment.timestamp() < end for moment, _ in self.phases):
            return None
        if any(hour <= spike.timestamp() < end for spike in self.spikes):
            return None
        return self._peak(signal, card, hour, seed)

    def _peak(self, signal: SignalName, card: int, second: int, seed: str) -> float:
        load = self.first
        for moment, phase in self.phases:
            if second >= moment.timestamp():
                load = phase
        if card in self.idle_cards and signal in (SignalName.GPU, SignalName.POWER):
            load = IDLE
        hour = second - second % HOUR_SECONDS
        return load.of(signal) * (0.8 + 0.2 * _unit(f"{seed}/{signal.value}/{card}/{hour}"))


def _unit(text: str) -> float:
    """A number from 0 to below 1 that always belongs to `text`."""
    return crc32(text.encode()) / _HASH_RANGE


def idle() -> Workload:
    """Nothing to do, and an agent that says so."""
    return Workload(IDLE)


def busy() -> Workload:
    """Working on every card."""
    return Workload(BUSY)


def cpu_idle_gpu_busy() -> Workload:
    """Training from local data: the CPU hardly moves, the cards are full."""
    return Workload(GPU_ONLY)


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
