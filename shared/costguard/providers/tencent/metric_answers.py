"""An answer of GetMonitorData, taken apart without trust; and how many points of how many machines to ask for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from math import ceil
from typing import Any

from costguard.domain.errors import TruncatedReadError
from costguard.providers.documented import Fields, as_documented, named, parts, text, whole
from costguard.providers.redaction import without_secrets
from costguard.providers.tencent.answers import told

OPERATION = "monitor:GetMonitorData"
MAX_INSTANCES = 10
MAX_POINTS = 1_440
"""Of one call (product page of GetMonitorData; newer SDKs say 50 and 7,200, and the smaller limits hold under both).

Beyond them the call succeeds: a message stands in `Msg`, and series are empty that are not."""

_RETENTION = ((60, timedelta(days=15)), (300, timedelta(days=31)), (3600, timedelta(days=93)))
"""Periods and how long their points are kept ("Metric data retention"). Points of 10 s are kept for one day, and
would cost six times the calls for it: a window of a day already begins before they do."""

FINEST = _RETENTION[0][0]
_MANY = 2520  # machines that fill calls of every size up to ten: for more, the best cut is the same


@dataclass(frozen=True, slots=True)
class Piece:
    """`points` of each of `instances` machines: what fits one call."""

    points: int
    instances: int


@dataclass(frozen=True, slots=True)
class Points:
    """The points of one machine inside what was asked for."""

    native_id: str
    timestamps: Sequence[datetime]
    values: Sequence[Any]


def period_for(since: datetime, now: datetime, finest: int = FINEST) -> int:
    """The finest period from `finest` on that is still kept from `since` on; the coarsest where none is."""
    for period, kept in _RETENTION:
        if period >= finest and now - since <= kept:
            return period
    return _RETENTION[-1][0]


def pieces(points: int, machines: int) -> tuple[Piece, ...]:
    """How to cut so many points of each of so many machines into the fewest calls.

    One call of 1,439 points for one machine costs as much as one of 143 points for ten. An interval may be
    answered with its end included, so each has room for one point more than it is long.
    """
    return _cheapest(points, min(machines, _MANY))


@lru_cache(maxsize=256)
def _cheapest(points: int, machines: int) -> tuple[Piece, ...]:
    """The fewest calls for every length up to the whole.

    A full call for one machine wastes nothing, so those go first: only what is left, less than two of them, is weighed.
    """
    single = MAX_POINTS - 1
    alone = max(0, points // single - 1)
    left = points - alone * single
    sizes = [(each, MAX_POINTS // each - 1, ceil(machines / each)) for each in range(1, MAX_INSTANCES + 1)]
    calls, chosen = [0], [Piece(0, 0)]
    for length in range(1, left + 1):
        fewest, fuller, most = min(
            (calls[max(0, length - most)] + cost, -each, min(length, most)) for each, most, cost in sizes
        )
        calls.append(fewest)
        chosen.append(Piece(most, -fuller))
    found = [Piece(single, 1)] * alone
    while left > 0:
        found.append(chosen[left])
        left -= chosen[left].points
    return tuple(found)


def points_in(answer: Fields, asked: frozenset[str], begin: datetime, end: datetime, period: int) -> list[Points]:
    """The series of `answer` for the machines `asked` for, from `begin` to before `end`.

    An end may be included or not, so points there are left for the next call; the interval it names itself is in
    either zone, and not read. A machine without a series has no points: that is for the caller to see.

    Raises:
        TruncatedReadError: `Msg` says something: too much was asked for, and what came is not all there is.
        ProviderError: not as documented.
    """
    with as_documented(OPERATION):
        said = text(told(answer, "Msg"), "Msg")
        series = parts(answer, "DataPoints")
        told_period = whole(answer, "Period")
    if said:
        message = f"{OPERATION}: {without_secrets(said)}"
        raise TruncatedReadError(message, operation=OPERATION, code="Msg")
    if told_period != period:
        message = f"{OPERATION}: points every {told_period} s where every {period} s were asked for"
        raise TruncatedReadError(message, operation=OPERATION, code="OtherPeriod")
    found = []
    with as_documented(OPERATION):
        for each in series:
            native_id = _machine(each)
            if native_id in asked:
                found.append(_points(native_id, each, begin, end))
        if len({one.native_id for one in found}) != len(found):
            message = "a machine has two series"
            raise ValueError(message)
    return found


def _machine(series: Fields) -> str:
    """Dimensions come in no order, and their names in either case."""
    found = {named(pair, "Name").lower(): text(pair, "Value") for pair in parts(series, "Dimensions")}
    return found.get("instanceid", "")


def _points(native_id: str, series: Fields, begin: datetime, end: datetime) -> Points:
    known = told(series, "Timestamps", "Values")
    seconds, values = known.get("Timestamps", []), known.get("Values", [])
    if not isinstance(seconds, list) or not isinstance(values, list) or len(seconds) != len(values):
        message = "as many times as values were expected"
        raise ValueError(message)
    first, last = begin.timestamp(), end.timestamp()
    inside: dict[float, Any] = {}
    for second, value in zip(seconds, values, strict=True):
        if isinstance(second, bool) or not isinstance(second, (int, float)) or second < first:
            message = "a time that was not asked for"
            raise ValueError(message)
        if second < last and value is not None:
            if second in inside:
                message = "a time that is there twice"
                raise ValueError(message)
            inside[second] = value
    return Points(native_id, [datetime.fromtimestamp(at, timezone.utc) for at in inside], list(inside.values()))


def metric_names(answer: Fields) -> Mapping[str, tuple[str, str]]:
    """Metrics by their name in lower case: as the cloud spells it, and its unit. DescribeBaseMetrics.

    Raises:
        ProviderError: not as documented.
    """
    with as_documented("monitor:DescribeBaseMetrics"):
        return {
            named(metric, "MetricName").lower(): (named(metric, "MetricName"), text(told(metric, "Unit"), "Unit"))
            for metric in parts(answer, "MetricSet")
        }
