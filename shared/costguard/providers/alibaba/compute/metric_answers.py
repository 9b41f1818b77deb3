"""A page of DescribeMetricList, taken apart without trust, and folded into hours. Pure.

CloudMonitor tells no sample counts, so points are asked for minute by minute and counted: a minute counts once, however
often it comes. `Datapoints` is a JSON text within the JSON.
"""

from __future__ import annotations

import json
import math
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from math import ceil
from typing import Any, TypeAlias

from costguard.domain.errors import ProviderError
from costguard.domain.resources import Instance
from costguard.domain.signals import HOUR, SignalName
from costguard.providers.kit.compute.metrics import Cells, Window, fold_counts, fold_values
from costguard.providers.kit.core.fields import UNDOCUMENTED, Fields, as_documented, named, text

MOST_INSTANCES = 50  # of one question
MOST_POINTS = 1440  # of one page
_PAGES_OF_A_BATCH = 64
_PAGES_OF_A_SPAN = 8  # at least: fewer are not worth a question of their own, as each costs one where nothing reports


@dataclass(frozen=True, slots=True)
class Span:
    """Minutes of the window, from `first` to before `last`."""

    first: int
    last: int


def series_of(instance: Instance, metric: Metric) -> int:
    """How many series there are of it: one for each card, or one."""
    return max(1, ceil(instance.accelerator.count)) if metric.per_card else 1


def batched(instances: Sequence[Instance], metric: Metric, minutes: int) -> Iterator[tuple[Instance, ...]]:
    """As many instances a question as it takes, and as give some dozens of full pages.

    Of pages that follow one another only the last is not full, so the more of them the fewer requests in all; but
    they are read one after the other. A question ends where its last page is as full as can be: 48 series of 1,470
    points are 49 pages, 50 are 52.
    """
    rest = list(instances)
    while rest:
        points = list(accumulate(series_of(each, metric) * minutes for each in rest[:MOST_INSTANCES]))
        most = max(1, bisect_right(points, _PAGES_OF_A_BATCH * MOST_POINTS))
        if most < len(rest):
            most = max(range(most // 2, most), key=lambda place: (_fullness(points[place]), place)) + 1
        yield tuple(rest[:most])
        del rest[:most]


def cut(whole: Span, series: int, parts: int) -> list[Span]:
    """The span in up to so many parts, cut where pages are full, so that the parts have as many pages as the whole."""
    pages = series * (whole.last - whole.first) / MOST_POINTS
    parts = min(parts, int(pages // _PAGES_OF_A_SPAN))
    if parts <= 1:
        return [whole]
    length = ceil(pages / parts) * MOST_POINTS // series
    ends = range(whole.first + length, whole.last, length)
    return [Span(first, last) for first, last in zip([whole.first, *ends], [*ends, whole.last], strict=True)]


def _fullness(points: int) -> float:
    """How much of its pages this many points fill."""
    return points / (ceil(points / MOST_POINTS) * MOST_POINTS)


OPERATION = "cms:DescribeMetricList"
MINUTES = 60  # an hour
_MINUTE_MS = 60_000
_BITS = 8  # of a byte: rates of networks come in bits a second


@dataclass(frozen=True, slots=True)
class Metric:
    """A documented metric: what it tells of. `part` of what it is, if any.

    `per_card`: a series for each `gpuId`. `per_address`: for each `ip`, and what they tell adds up.
    """

    name: str
    signal: SignalName
    per_card: bool = False
    per_address: bool = False
    part: str = ""
    needed: bool = True


@dataclass(slots=True)
class _Minutes:
    """One series while its pages come: the largest value of each hour, and which minutes there were."""

    cells: Cells
    seen: bytearray


Rates: TypeAlias = "array[float]"
"""Bytes a second by the minute; NaN where there is no point."""


@dataclass(slots=True)
class Folding:
    """The answer to one question, page by page: by instance and card or address. Points of others make it untrusted."""

    metric: Metric
    window: Window
    asked: frozenset[str]
    _series: dict[tuple[str, str], _Minutes] = field(default_factory=dict)
    _rates: dict[tuple[str, str], Rates] = field(default_factory=dict)
    _hours: list[datetime] = field(init=False)
    _start_ms: int = field(init=False)

    def __post_init__(self) -> None:
        self._hours = [self.window.start + hour * HOUR for hour in range(self.window.hours)]
        self._start_ms = int(self.window.start.timestamp()) * 1000

    def take(self, answer: Fields) -> None:
        """Fold one page in.

        Raises:
            ProviderError: it is not as documented.
        """
        with as_documented(OPERATION):
            # by what they say of themselves: a scan of ten thousand machines reads a million points
            alike: dict[tuple[Any, Any], list[Fields]] = {}
            part = "ip" if self.metric.per_address else "gpuId"
            for point in points_in(answer):
                alike.setdefault((point.get("instanceId", ""), point.get(part, "")), []).append(point)
            fold = self._keep if self.metric.per_address else self._fold
            for points in alike.values():
                key = self._key(points[0])
                if key is not None:
                    fold(key, [self._minute(point) for point in points], [point["Maximum"] for point in points])

    def finished(self) -> Iterator[tuple[str, str, Cells]]:
        """Instance, card and hours of each series, once every page was taken; they are not kept."""
        while self._series:
            (native_id, card), series = self._series.popitem()
            counts = [sum(series.seen[at : at + MINUTES]) for at in range(0, len(series.seen), MINUTES)]
            fold_counts(series.cells, self.window.start, self._hours, counts)
            yield native_id, card, series.cells

    def rates(self) -> Iterator[tuple[str, str, Rates]]:
        """Instance, address and minutes of each series of addresses, once every page was taken; they are not kept."""
        while self._rates:
            (native_id, ip), minutes = self._rates.popitem()
            yield native_id, ip, minutes

    def _key(self, point: Fields) -> tuple[str, str] | None:
        native_id = named(point, "instanceId")
        if native_id not in self.asked:
            message = "a point of an instance that was not asked about"
            raise ValueError(message)
        if self.metric.per_address:
            return native_id, named(point, "ip")
        if not self.metric.per_card:
            return native_id, ""
        card = text(point, "gpuId")
        return (native_id, card) if card else None  # of no card in particular: says nothing about any

    def _minute(self, point: Fields) -> int:
        stamp = point["timestamp"]
        if type(stamp) is not int:
            message = "timestamp is no whole number"
            raise TypeError(message)
        minute = (stamp - self._start_ms) // _MINUTE_MS
        if not 0 <= minute < self.window.hours * MINUTES:
            message = "a point outside of the hours asked for"
            raise ValueError(message)
        return minute

    def _fold(self, key: tuple[str, str], minutes: Sequence[int], values: Sequence[Any]) -> None:
        series = self._series.get(key)
        if series is None:
            hours = self.window.hours
            series = self._series[key] = _Minutes(Cells.empty(hours), bytearray(hours * MINUTES))
        for minute in minutes:
            series.seen[minute] = 1
        moments = [self._hours[minute // MINUTES] for minute in minutes]
        if self.metric.signal is SignalName.NETWORK:
            values = [value / _BITS if type(value) in (int, float) else value for value in values]
        fold_values(series.cells, self.metric.signal, self.window.start, moments, values)

    def _keep(self, key: tuple[str, str], minutes: Sequence[int], values: Sequence[Any]) -> None:
        """Minute by minute, as series of several addresses are added up before anything is the largest of them."""
        found = self._rates.setdefault(key, array("d", [math.nan]) * (self.window.hours * MINUTES))
        for minute, value in zip(minutes, values, strict=True):
            rate = value / _BITS if type(value) in (int, float) and 0 <= value <= sys.float_info.max else math.inf
            if not rate <= found[minute]:  # true where nothing was there yet: NaN compares false
                found[minute] = rate


def points_in(answer: Fields) -> list[Fields]:
    """The points of one page; nothing and an empty text are both an empty list.

    Raises:
        ProviderError: something else.
    """
    with as_documented(OPERATION):
        told = text(answer, "Datapoints")
        found = json.loads(told) if told else []
    if not isinstance(found, list) or not all(isinstance(point, Mapping) for point in found):
        message = f"{OPERATION}: Datapoints is no list of points: not as documented"
        raise ProviderError(message, operation=OPERATION, code=UNDOCUMENTED)
    return found


def added(needed: Sequence[Cells], others: Sequence[Cells]) -> Cells:
    """Rates as one: the sum of the largest values, although they may fall into different minutes, so never too little.

    An hour counts as measured where every one of `needed` is, as often as the least of them; `others` are added where
    they have something.
    """
    whole = Cells.empty(len(needed[0].maxima))
    for hour in range(len(whole.maxima)):
        samples = min(piece.samples[hour] for piece in needed)
        if not samples:
            continue
        more = [piece.maxima[hour] for piece in others if piece.samples[hour]]
        whole.maxima[hour] = sum((*(piece.maxima[hour] for piece in needed), *more))
        whole.samples[hour] = samples
    return whole


def summed(series: Mapping[str, Rates], needed: AbstractSet[str], hours: int) -> Cells:
    """Rates of several addresses as one: added up in every minute, and of those sums the largest of each hour.

    A minute counts where each that is `needed` has a point in it. In one that does not count, what is there is still
    among the largest.
    """
    whole = Cells.empty(hours)
    if not series.keys() >= needed:
        return whole
    for hour in range(hours):
        minutes = [*zip(*(each[hour * MINUTES : (hour + 1) * MINUTES] for each in series.values()), strict=True)]
        sums = [sum(rates) for rates in minutes]
        counted = sum(not math.isnan(rate) for rate in sums)
        if counted < len(sums):
            sums = [sum(rate for rate in rates if not math.isnan(rate)) for rates in minutes]
        if counted:
            whole.maxima[hour], whole.samples[hour] = max(sums), counted
    return whole
