"""What is replayed, hour by hour, and what comes of it, as values; and the tally over many machines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum

from costguard.domain.backtests import HORIZONS, RegretCount, Tallied, Tally
from costguard.domain.money import HourlyRate, totals
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance
from costguard.domain.signals import HOUR, SignalHistory, SignalName, Statistic
from costguard.guards.rules.idle import IdleBounds


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


UNKNOWN, IDLE, BUSY = 0, 1, 2
_MAX_PERCENT = 100.5  # as the judge has it
_PERCENT = frozenset({SignalName.GPU, SignalName.CPU, SignalName.GPU_MEMORY})


@dataclass(frozen=True, slots=True)
class Hours:
    """Every hour from `start` on. `last_busy[i]` is the latest busy hour up to and with i, -1 where there was none.

    `doubtful`: somewhere stands a value that cannot be, so that the judge may call any window unmeasured.
    """

    start: datetime
    kinds: bytearray
    last_busy: Sequence[int]
    doubtful: bool

    def index(self, moment: datetime) -> int:
        """The hour that begins at or before `moment`; may lie outside."""
        return (moment - self.start) // HOUR

    def at(self, index: int) -> datetime:
        """Where an hour begins."""
        return self.start + index * HOUR

    def first_busy(self, since: int, until: int) -> int | None:
        """The first busy hour of a stretch."""
        found = self.kinds.find(BUSY, max(0, since), max(0, until))
        return None if found < 0 else found

    def count(self, kind: int, since: int, until: int) -> int:
        """How many hours of a stretch are of a kind; what lies outside of the record is unknown."""
        first, last = max(0, since), min(len(self.kinds), until)
        inside = self.kinds.count(kind, first, last) if first < last else 0
        outside = max(0, until - since) - max(0, last - first)
        return inside + outside if kind == UNKNOWN else inside


def hours_of(
    instance: Instance, histories: Sequence[SignalHistory], bounds: IdleBounds, start: datetime, end: datetime
) -> Hours:
    """The record from `start` to `end`, both whole hours.

    One sample at or over its bound makes an hour busy, however little else was measured. Idle takes full cover of
    every card and every signal that the bounds name; all else is unknown.
    """
    length = max(0, (end - start) // HOUR)
    named = dict(bounds.bounds())
    relevant = [history for history in histories if history.name in named]
    idle, busy, doubtful = bytearray(length), bytearray(length), False
    whole = 0
    for history in relevant:
        limit = _bound(history, named[history.name], instance)
        offset = (history.start - start) // HOUR
        enough = history.samples_per_hour * bounds.min_coverage
        most = _MAX_PERCENT if history.name in _PERCENT else math.inf
        for place, (maximum, samples) in enumerate(zip(history.maxima, history.samples, strict=True), start=offset):
            if not 0 <= place < length or maximum != maximum:  # noqa: PLR0124 - NaN: nothing was measured
                continue
            if maximum < 0 or maximum > most or maximum == math.inf:
                doubtful = True
            elif maximum >= limit:
                busy[place] = 1
            elif samples >= enough:
                idle[place] += 1
        whole += 1
    complete = _complete(instance, relevant, named)
    kinds, last_busy, latest = bytearray(length), [-1] * length, -1
    for place in range(length):
        if busy[place]:
            kinds[place], latest = BUSY, place
        elif complete and idle[place] == whole:
            kinds[place] = IDLE
        last_busy[place] = latest
    return Hours(start, kinds, last_busy, doubtful)


def _bound(history: SignalHistory, bound: float, instance: Instance) -> float:
    """A mean over N cards may hide one card at N times the mean."""
    if history.statistic is Statistic.MEAN_OF_CARDS:
        return bound / max(1.0, instance.accelerator.count)
    return bound


def _complete(instance: Instance, relevant: Sequence[SignalHistory], named: dict[SignalName, float]) -> bool:
    """Whether every card and every signal that is asked for is in the record at all."""
    if {history.name for history in relevant} != set(named):
        return False
    for name in named:
        found = [history for history in relevant if history.name is name]
        together = any(history.statistic is Statistic.MEAN_OF_CARDS for history in found)
        per_card = name in {SignalName.GPU, SignalName.POWER} and not together
        if per_card and len({history.device for history in found}) < math.ceil(instance.accelerator.count):
            return False
    return True


def until_whole(moment: datetime, since: datetime, every: timedelta) -> datetime:
    """The first of `since`, `since + every`, … at or after `moment`."""
    steps = max(0, -((since - moment) // every))
    return since + steps * every
