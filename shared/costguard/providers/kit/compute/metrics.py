"""Points as they come, folded into hours: a maximum and a sample count each.

Whatever its unit does not allow is kept as infinity, for the core to call implausible.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from costguard.domain.errors import ProviderError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, Instance
from costguard.domain.signals import HOUR, SignalHistory, SignalName, SignalReading, floor_hour
from costguard.ports import SignalReport
from costguard.providers.kit.core.calls import signal_gaps

ADDED = frozenset({SignalName.NETWORK, SignalName.DISK})
"""Signals whose parts (in and out, read and written) are one stream of bytes."""
_PERCENT = frozenset({SignalName.GPU, SignalName.CPU})
_MOST_PERCENT = 100.5  # more than rounding can add
_MOST = sys.float_info.max  # a whole number may be larger, and fits no array
_NUMBERS = frozenset({int, float})  # not bool, which is an int to isinstance
_MOST_SAMPLES = 1_000_000  # an hour of 1 s samples has 3,600; the arrays hold 4 billion
_SLOW_SAMPLES = 12  # an hour of 5-minute samples
_HOURS_TO_PROVE = 2


@dataclass(slots=True)
class Cells:
    """The hours of one series while they are filled. Merging keeps the larger value, and the larger count.

    Counts of two sets of dimensions of one card are never added: both may report the same samples.
    """

    maxima: array[float]
    samples: array[int]

    @classmethod
    def empty(cls, hours: int) -> Cells:
        """Nothing measured yet."""
        return cls(array("d", [math.nan]) * hours, array("I", [0]) * hours)


@dataclass(frozen=True, slots=True)
class Window:
    """Whole hours from `start`, the hour in progress included."""

    start: datetime
    hours: int

    @classmethod
    def spanning(cls, since: datetime, until: datetime) -> Window:
        """Both ends widened outwards to whole hours."""
        start = floor_hour(since)
        return cls(start, max(0, -((start - until) // HOUR)))


def fold_values(
    cells: Cells, signal: SignalName, start: datetime, timestamps: Sequence[datetime], values: Sequence[Any]
) -> None:
    """Merge hourly maxima in; what the unit does not allow (NaN, below 0, over 100 %, no number) becomes infinity.

    Raises:
        ValueError: a point outside the hours asked for.
        TypeError: a time that is none, or has no offset.
    """
    most = _MOST_PERCENT if signal in _PERCENT else _MOST
    maxima, hours = cells.maxima, len(cells.maxima)
    for moment, value in zip(timestamps, values, strict=True):
        since = moment - start
        hour = since.days * 24 + since.seconds // 3600  # a third of the time of dividing timedeltas
        if not 0 <= hour < hours:
            raise _outside(moment)
        plausible = value if type(value) in _NUMBERS and 0 <= value <= most else math.inf
        if not plausible <= maxima[hour]:  # true where nothing was measured yet: NaN compares false
            maxima[hour] = plausible


def fold_counts(cells: Cells, start: datetime, timestamps: Sequence[datetime], values: Sequence[Any]) -> None:
    """Merge hourly sample counts in; a count that is none makes its hour implausible. Raises as `fold_values`."""
    maxima, samples, hours = cells.maxima, cells.samples, len(cells.samples)
    for moment, value in zip(timestamps, values, strict=True):
        since = moment - start
        hour = since.days * 24 + since.seconds // 3600
        if not 0 <= hour < hours:
            raise _outside(moment)
        if not (type(value) in _NUMBERS and 0 <= value <= _MOST_SAMPLES):
            maxima[hour] = math.inf
        elif value > samples[hour]:
            samples[hour] = int(value)


def _outside(moment: datetime) -> ValueError:
    message = f"a point at {moment.isoformat()}, which is not one of the hours asked for"
    return ValueError(message)


def combine(signal: SignalName, pieces: Sequence[Cells]) -> Cells:
    """The parts of one device (cores; bytes in and out) as one: as busy as they can have been, as seen as the least.

    Network and disk add both directions' maxima although they may fall into different minutes: an upper bound.
    An hour that was counted and has no maximum lost it on the way: busy, for all we know.
    """
    adds = signal in ADDED
    if len(pieces) == 1 and not adds:
        for hour, count in enumerate(pieces[0].samples):
            if count and math.isnan(pieces[0].maxima[hour]):
                pieces[0].maxima[hour] = math.inf
        return pieces[0]
    whole = Cells.empty(len(pieces[0].maxima))
    scales = [1 / seconds_per_sample(piece.samples) if adds else 1.0 for piece in pieces]
    for hour in range(len(whole.maxima)):
        values = [piece.maxima[hour] * scale for piece, scale in zip(pieces, scales, strict=True)]
        if not any(math.isnan(value) for value in values):
            whole.maxima[hour] = sum(values) if adds else max(values)
            whole.samples[hour] = min(piece.samples[hour] for piece in pieces)
        elif math.inf in values or any(math.isnan(piece.maxima[hour]) and piece.samples[hour] for piece in pieces):
            whole.maxima[hour] = math.inf
    return whole


def seconds_per_sample(samples: Sequence[int]) -> int:
    """How many seconds of traffic one EC2 network sample holds: 300 only where whole hours prove it, else 60.

    Detailed monitoring sends 60 samples an hour, and so does basic monitoring where the hypervisor packs
    five into each of its 5-minute points; 12 an hour are 5-minute sums. Too short a time overstates the
    rate, so an hour cut short (12 samples may be 12 minutes) must not be taken for a slow cadence.
    """
    seen = [hour for hour, count in enumerate(samples) if count]
    whole = [samples[hour] for hour in range(seen[0] + 1, seen[-1])] if seen else []
    slow = len(whole) >= _HOURS_TO_PROVE and max(samples) <= _SLOW_SAMPLES and min(whole) >= _SLOW_SAMPLES - 1
    return 300 if slow else 60


def report_of(
    instances: Sequence[Instance],
    histories: Mapping[ResourceRef, Sequence[SignalHistory]],
    failures: Mapping[ResourceRef, ProviderError],
    delay: timedelta,
    gap: Callable[[Shard, str, ProviderError], Gap],
) -> SignalReport:
    """What was read of the instances of one shard; those that failed are left out, and named in gaps."""
    readings = {}
    for ref in (instance.ref for instance in instances if instance.ref not in failures):
        found = sorted(histories.get(ref, ()), key=lambda one: (one.name.value, len(one.device), one.device))
        readings[ref] = SignalReading(tuple(found), delay)
    gaps = signal_gaps(instances[0].ref.shard, failures, len(instances), gap)
    return SignalReport(readings, tuple(gaps))
