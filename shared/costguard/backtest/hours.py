"""A machine's record hour by hour: busy, idle or nobody knows, by one rule's bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from costguard.domain.resources import Instance
from costguard.domain.signals import HOUR, SignalHistory, SignalName, Statistic
from costguard.guards.rules.idle import IdleBounds

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
