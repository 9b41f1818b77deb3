"""What is replayed and what comes of it, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from costguard.domain.money import HourlyRate
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance
from costguard.domain.signals import SignalHistory


@dataclass(frozen=True, slots=True)
class Run:
    """A time in which the machine is recorded as running; `until` None: to the end of its record."""

    since: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine of a record. `instance` is as the inventory would list it; its state and run are the replay's.

    `runs` are in order and apart from each other; empty: nobody recorded them, and it counts as running from its first
    sample to its last. `owner` empty: the policy says whose it is.
    """

    instance: Instance
    rate: HourlyRate | None
    histories: tuple[SignalHistory, ...]
    runs: tuple[Run, ...] = ()
    owner: str = ""


class Regret(str, Enum):
    """Whether recorded use came back within a horizon of a stop; a record that ends or has holes may not tell."""

    YES = "yes"
    NO = "no"
    UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True)
class WouldStop:
    """One stop that would have been asked for. `back_at`: the hour in which recorded use comes back, if it does.

    `counted_until` is where its account ends: the return, the machine's own recorded stop, or the record's end.
    `idle_hours` are those between that were measured and idle; `unmeasured_hours` the others, which nobody can count.
    `regrets` go with `HORIZONS`. `terminated_at`: when the ladder would have gone on to the end.
    """

    at: datetime
    counted_until: datetime
    back_at: datetime | None
    idle_hours: int
    unmeasured_hours: int
    regrets: tuple[Regret, ...]
    terminated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """What became of one machine. `rule` empty: none applies. `exempt`: why it is never touched, else empty.

    `recorded_hours` are those it ran in the record, `idle_hours` of them measured and idle by the rule's bounds.
    `unmeasured_hours` are those that runs could not judge; `judged` says whether any could.
    """

    ref: ResourceRef
    rule: str
    team: str
    exempt: str
    judged: bool
    recorded_hours: int
    idle_hours: int
    unmeasured_hours: int
    stops: tuple[WouldStop, ...]
    rate: HourlyRate | None
