"""Answers of Monitor, taken apart without trust, and the periods it keeps. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from costguard.domain.errors import TruncatedReadError
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.kit.core.fields import Fields, as_documented, cut_short, named, parts, text, whole
from costguard.providers.tencent.core.products import told

OPERATION = "monitor:GetMonitorData"
_RETENTION = ((60, timedelta(days=15)), (300, timedelta(days=31)), (3600, timedelta(days=93)))
"""Periods and how long their points are kept ("Metric data retention"). Points of 10 s are kept for one day, and
would cost six times the calls for it: a window of a day already begins before they do."""

FINEST = _RETENTION[0][0]
_MACHINE, _CARD = ("instanceid", "uninstanceid"), "minornumber"
"""Names of dimensions in lower case: of the machine, and of one card of it."""


@dataclass(frozen=True, slots=True)
class Points:
    """The points of one machine, or of one card of it, inside what was asked for."""

    native_id: str
    timestamps: Sequence[datetime]
    values: Sequence[Any]
    card: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """A metric as Monitor spells it, its unit, and the dimensions that it declares of a card: machine, card."""

    name: str
    unit: str
    of_card: tuple[str, str] | None = None


def period_for(since: datetime, now: datetime, finest: int = FINEST) -> int:
    """The finest period from `finest` on that is still kept from `since` on; the coarsest where none is."""
    for period, kept in _RETENTION:
        if period >= finest and now - since <= kept:
            return period
    return _RETENTION[-1][0]


def points_in(
    answer: Fields, asked: frozenset[tuple[str, str]], begin: datetime, end: datetime, period: int
) -> list[Points]:
    """The series of `answer` for what was `asked` for, machine and card each, from `begin` to before `end`.

    An end may be included or not, so points there are left for the next call; the interval it names itself is in
    either zone, and not read. A machine without a series has no points: that is for the caller to see. The card is
    empty where a machine was asked for: a series that names one is no mean, and one that names none is of no card.

    Raises:
        TruncatedReadError: `Msg` says something: too much was asked for, and what came is not all there is.
        ProviderError: not as documented.
    """
    with as_documented(OPERATION):
        said = text(told(answer, "Msg"), "Msg")
        series = parts(answer, "DataPoints")
        told_period = whole(answer, "Period")
    if said:
        raise cut_short(OPERATION, f"{without_secrets(said)}", "Msg")
    if told_period != period:
        message = f"{OPERATION}: points every {told_period} s where every {period} s were asked for"
        raise TruncatedReadError(message, operation=OPERATION, code="OtherPeriod")
    found = []
    with as_documented(OPERATION):
        for each in series:
            native_id, card = _subject(each)
            if (native_id, card) in asked:
                found.append(_points(native_id, card, each, begin, end))
        if len({(one.native_id, one.card) for one in found}) != len(found):
            message = "a machine or a card has two series"
            raise ValueError(message)
    return found


def _subject(series: Fields) -> tuple[str, str]:
    """Machine and card. Dimensions come in no order, and their names in either case."""
    found = {named(pair, "Name").lower(): text(pair, "Value") for pair in parts(series, "Dimensions")}
    return next((found[name] for name in _MACHINE if name in found), ""), found.get(_CARD, "")


def _points(native_id: str, card: str, series: Fields, begin: datetime, end: datetime) -> Points:
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
    times = [datetime.fromtimestamp(at, timezone.utc) for at in inside]
    return Points(native_id, times, list(inside.values()), card)


def metric_names(answer: Fields) -> Mapping[str, Known]:
    """Metrics by their name in lower case, as the cloud describes them. DescribeBaseMetrics.

    Raises:
        ProviderError: not as documented.
    """
    with as_documented("monitor:DescribeBaseMetrics"):
        return {
            named(metric, "MetricName").lower(): Known(
                named(metric, "MetricName"), text(told(metric, "Unit"), "Unit"), _of_card(metric.get("Dimensions"))
            )
            for metric in parts(answer, "MetricSet")
        }


def _of_card(declared: Any) -> tuple[str, str] | None:
    """The names of machine and card in the one set that has these two and no third; of another form it declares none.

    A published listing of `QCE/CVM` has `minorNumber` and `unInstanceId` for every GPU metric, where Tencent's page
    (248/6843) has `InstanceId`.
    """
    for each in declared if isinstance(declared, list) else ():
        names = each.get("Dimensions") if isinstance(each, Mapping) else None
        spelled = {str(name).lower(): str(name) for name in names} if isinstance(names, list) else {}
        machine = next((spelled[name] for name in _MACHINE if name in spelled), None)
        if machine is not None and _CARD in spelled and len(spelled) == 2:  # noqa: PLR2004 - these two
            return machine, spelled[_CARD]
    return None
