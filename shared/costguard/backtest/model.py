"""What is replayed and what comes of it, as values, and the tally over many machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum

from costguard.domain.backtests import HORIZONS, RegretCount, Tallied, Tally
from costguard.domain.money import HourlyRate, totals
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


def tallied(replays: Iterable[Replay], policy_digest: str) -> Tallied:
    """Counted by rule and by team, each in the order of their names."""
    everything = list(replays)
    ruled = [each for each in everything if each.rule]
    rules = sorted({each.rule for each in ruled})
    teams = sorted({each.team for each in ruled})
    return Tallied(
        policy_digest,
        tally("", ruled),
        tuple(tally(name, [each for each in ruled if each.rule == name]) for name in rules),
        tuple(tally(name, [each for each in ruled if each.team == name]) for name in teams),
        len(everything) - len(ruled),
    )


def tally(name: str, replays: Sequence[Replay]) -> Tally:
    """Some replays summed."""
    stops = [stop for each in replays for stop in each.stops]
    hours = [(each, sum(stop.idle_hours for stop in each.stops)) for each in replays]
    return Tally(
        name=name,
        machines=len(replays),
        exempt=sum(bool(each.exempt) for each in replays),
        unmeasured=sum(not each.judged and not each.exempt for each in replays),
        recorded_hours=sum(each.recorded_hours for each in replays),
        idle_hours=sum(each.idle_hours for each in replays),
        unmeasured_hours=sum(each.unmeasured_hours for each in replays),
        stopped=sum(bool(each.stops) for each in replays),
        stops=len(stops),
        terminations=sum(stop.terminated_at is not None for stop in stops),
        came_back_terminated=sum(stop.terminated_at is not None and stop.back_at is not None for stop in stops),
        reclaimed_hours=sum(stop.idle_hours for stop in stops),
        uncounted_hours=sum(stop.unmeasured_hours for stop in stops),
        reclaimed=totals(each.rate.money.times(Decimal(idle)) for each, idle in hours if each.rate and idle),
        unpriced_hours=sum(idle for each, idle in hours if each.rate is None),
        regrets=tuple(_regret(stops, place, horizon) for place, horizon in enumerate(HORIZONS)),
    )


def _regret(stops: Sequence[WouldStop], place: int, horizon: int) -> RegretCount:
    found = [stop.regrets[place] for stop in stops]
    return RegretCount(horizon, found.count(Regret.YES), found.count(Regret.NO), found.count(Regret.UNDETERMINED))
