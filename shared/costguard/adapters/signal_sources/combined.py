"""Several metrics backends read as one.

An instance counts as read only if every source read it: what one source could not say may have been
the busy hour. Where sources measured the same signal of the same device, the larger maximum of each
hour stands, and the better covered count of samples (in minutes, where one samples more often than the
other); elsewhere their histories stand side by side.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from costguard.domain.errors import (
    AccessDeniedError,
    ProviderError,
    ThrottledError,
    TruncatedReadError,
    UnavailableError,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind, Instance
from costguard.domain.signals import HOUR, SignalHistory, SignalName, SignalReading, Statistic
from costguard.ports import SignalReport, SignalSource

_KINDS: tuple[tuple[type[ProviderError], GapKind], ...] = (
    (AccessDeniedError, GapKind.DENIED),
    (ThrottledError, GapKind.THROTTLED),
    (TruncatedReadError, GapKind.TRUNCATED),
    (UnavailableError, GapKind.UNAVAILABLE),
)


def signals_gap(shard: Shard, error: ProviderError, *, fix: str = "") -> Gap:
    """What `error` left unread; anything that is not a passing fault counts as unreadable."""
    kind = next((kind for expected, kind in _KINDS if isinstance(error, expected)), GapKind.UNREADABLE)
    return Gap(shard, "signals", kind, str(error), fix)


class RefusedSignals:
    """A `SignalSource` that reads nothing and reports why, so that every instance stays unread."""

    def __init__(self, url: str, reason: str, fix: str) -> None:
        self._detail = f"Prometheus {url}: {reason}"
        self._fix = fix

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:  # noqa: ARG002 - a port
        """No readings, and a gap for each shard."""
        shards = dict.fromkeys(instance.ref.shard for instance in instances)
        gaps = (Gap(shard, "signals", GapKind.DENIED, self._detail, self._fix) for shard in shards)
        return SignalReport({}, tuple(gaps))


_MINUTES = 60  # an hour, in which samples of different cadences are counted
_Key = tuple[SignalName, str, Statistic]


class CombinedSignals:
    """A `SignalSource` over several. Without any, nothing is measured."""

    def __init__(self, sources: Sequence[SignalSource]) -> None:
        self._sources = tuple(sources)

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        """Every source's histories merged by instance; a source that raises leaves all instances unread."""
        reports: list[SignalReport] = []
        for source in self._sources:
            try:
                reports.append(source.read(instances, since, until))
            except ProviderError as err:
                gaps = (signals_gap(instances[0].ref.shard, err),) if instances else ()
                reports.append(SignalReport({}, gaps))
        readings: dict[ResourceRef, SignalReading] = {}
        for instance in instances:
            read = [report.readings[instance.ref] for report in reports if instance.ref in report.readings]
            if len(read) == len(reports):
                readings[instance.ref] = merged(read)
        return SignalReport(readings, tuple(_distinct(gap for report in reports for gap in report.gaps)))


def merged(readings: Sequence[SignalReading]) -> SignalReading:
    """One reading of several for the same instance; as late as the latest source that found anything."""
    by_key: dict[_Key, list[SignalHistory]] = {}
    for reading in readings:
        for history in reading.histories:
            own = history if history.delay is not None else replace(history, delay=reading.documented_delay)
            by_key.setdefault((history.name, history.device, history.statistic), []).append(own)
    speaking = [reading for reading in readings if reading.histories] or readings
    return SignalReading(
        tuple(_merged_history(histories) for histories in by_key.values()),
        max((reading.documented_delay for reading in speaking), default=timedelta(0)),
    )


def _merged_history(histories: Sequence[SignalHistory]) -> SignalHistory:
    if len(histories) == 1:
        return histories[0]
    start = min(history.start for history in histories)
    hours = max((history.start - start) // HOUR + len(history.maxima) for history in histories)
    maxima = array("d", [math.nan]) * hours
    samples = array("l", [0]) * hours
    alike = len({history.samples_per_hour for history in histories}) == 1
    for history in histories:
        first = (history.start - start) // HOUR
        counts = history.samples if alike else _minutes(history)
        for index, (value, count) in enumerate(zip(history.maxima, counts, strict=True), first):
            if math.isnan(maxima[index]) or value > maxima[index]:
                maxima[index] = value
            samples[index] = max(samples[index], count)
    one = histories[0]
    source = "+".join(dict.fromkeys(history.source for history in histories))
    documented = max(history.documented_per_hour for history in histories) if alike else _MINUTES
    delay = max(history.delay or timedelta(0) for history in histories)
    return SignalHistory(one.name, one.device, start, maxima, samples, source, one.statistic, documented, delay)


def _minutes(history: SignalHistory) -> array[int]:
    """Samples as the minutes they cover, rounded so as never to gain."""
    per_hour = history.samples_per_hour
    minutes = array("l", (min(count, per_hour) * _MINUTES // per_hour for count in history.samples))
    last = next((hour for hour in range(len(minutes) - 1, -1, -1) if minutes[hour]), None)
    if last is not None:
        # the newest of n samples may be as old as (n - 1) periods after the hour; it may not be told younger
        minutes[last] = max(1, minutes[last] - max(0, math.ceil(_MINUTES / per_hour) - 1))
    return minutes


def _distinct(gaps: Iterable[Gap]) -> list[Gap]:
    return list(dict.fromkeys(gaps))
