"""Answers of Monitor, taken apart without trust, and the periods it keeps. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from costguard.domain.errors import TruncatedReadError
from costguard.providers.documented import Fields, as_documented, named, parts, text, whole
from costguard.providers.redaction import without_secrets
from costguard.providers.tencent.answers import told

OPERATION = "monitor:GetMonitorData"
_RETENTION = ((60, timedelta(days=15)), (300, timedelta(days=31)), (3600, timedelta(days=93)))
"""Periods and how long their points are kept ("Metric data retention"). Points of 10 s are kept for one day, and
would cost six times the calls for it: a window of a day already begins before they do."""

FINEST = _RETENTION[0][0]


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
