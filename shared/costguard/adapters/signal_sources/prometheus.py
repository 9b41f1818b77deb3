"""Signals from a Prometheus server: dcgm-exporter or nvidia-smi for the cards, node_exporter for CPU and network.

Works with whatever answers Prometheus' HTTP API v1 (Prometheus 2 and 3, Thanos, Mimir, VictoriaMetrics,
managed services). Needs read access to `/api/v1/query` and `/api/v1/query_range`; changes nothing.

An answer is whole or it is an error: warnings, notes and partial data mean that something was left out,
and what was left out may have been the busy hour.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from costguard.adapters.signal_sources import promql
from costguard.adapters.signal_sources.combined import signals_gap
from costguard.adapters.signal_sources.http import HttpAnswer, PostForm, refused
from costguard.adapters.signal_sources.promql import (
    SIGNAL_OF,
    BatchQuestion,
    InstanceHistories,
    Selection,
    Track,
    delay,
    histories,
)
from costguard.domain.errors import AccessDeniedError, ProviderError, TruncatedReadError, UnavailableError
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Gap, Instance
from costguard.domain.signals import HOUR, SignalName, SignalReading, floor_hour
from costguard.policy.model.policy import Prometheus
from costguard.ports import SignalReport

_logger = logging.getLogger(__name__)
_BATCH = 25  # 25 instances of 8 cards over 14 days: 134,400 points, about 5 MB of JSON a query
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
_MOST_SAMPLES = 1_000_000  # an hour of scrapes a second has 3,600
_NAMED = 3  # ids spelled out in a gap
_FIX = "check the address, credentials and limits of the Prometheus server; docs/signals.md says what is asked of it"


@dataclass(frozen=True, slots=True)
class _Window:
    """Whole hours from `start`, of which `complete` are over at `until`; one more may be in progress."""

    start: datetime
    until: datetime
    complete: int

    @property
    def hours(self) -> int:
        return self.complete + (self.so_far > timedelta(0))

    @property
    def so_far(self) -> timedelta:
        return self.until - (self.start + self.complete * HOUR)


class PrometheusSignals:
    """A `SignalSource` that asks one Prometheus server.

    `post` posts a form to a path below the server's address (`http_post(settings.url)`).
    `signals` are those judged; GPU is always read. `shown` are read beside them and decide nothing: where a question
    about one of them fails, only it is missing.

    An instance is found where the label `settings.instance_label` holds its native id, alone or followed
    by `.domain` or `:port`. One that is not found has an empty reading: it is unmeasured. One whose read
    failed in any part is absent, and a gap says why: half a reading could call a busy machine idle.
    """

    def __init__(
        self,
        settings: Prometheus,
        post: PostForm,
        signals: Collection[SignalName] = tuple(SignalName),
        shown: Collection[SignalName] = (),
    ) -> None:
        self._label = promql.checked_label(settings.instance_label)
        self._extra = promql.bare_matchers(settings.extra_matchers)
        self._post = post
        self._questions = tuple(q for q in BatchQuestion if SIGNAL_OF[q] in {*signals, SignalName.GPU})
        self._shown = tuple(q for q in BatchQuestion if SIGNAL_OF[q] in shown and q not in self._questions)

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        """Hourly histories from `since` to `until`, widened to whole UTC hours but never past `until`."""
        start = floor_hour(since)
        window = _Window(start, until, max(0, (until - start) // HOUR))
        readings: dict[ResourceRef, SignalReading] = {}
        gaps: list[Gap] = []
        shown = list(self._shown)
        for first in range(0, len(instances), _BATCH):
            batch = instances[first : first + _BATCH]
            try:
                readings.update(self._read_batch(batch, window, shown))
            except (AccessDeniedError, UnavailableError) as err:
                gaps.append(_gap(instances[first:], err))  # the next batch would wait for the same refusal
                break
            except ProviderError as err:
                gaps.append(_gap(batch, err))
        return SignalReport(readings, tuple(gaps))

    def _read_batch(
        self, batch: Sequence[Instance], window: _Window, shown: list[BatchQuestion]
    ) -> dict[ResourceRef, SignalReading]:
        found = {instance.ref.native_id: InstanceHistories() for instance in batch}
        selection = Selection(self._label, tuple(found), self._extra)
        for question in self._questions:
            self._take(question, selection, window, found)
        for question in tuple(shown):
            beside = {native_id: InstanceHistories() for native_id in found}
            try:
                self._take(question, selection, window, beside)
            except ProviderError as err:
                _logger.warning(
                    "a signal that is only shown could not be read",
                    extra={"operation": err.operation, "code": err.code, "signal": SIGNAL_OF[question].value},
                )
                shown.remove(question)  # nor asked of the next batch, which would wait for the same refusal
                continue
            for native_id, one in beside.items():
                found[native_id].tracks.update(one.tracks)
        return {
            instance.ref: SignalReading(
                histories(found[instance.ref.native_id], window.start), delay(found[instance.ref.native_id])
            )
            for instance in batch
        }

    def _take(
        self, question: BatchQuestion, selection: Selection, window: _Window, found: Mapping[str, InstanceHistories]
    ) -> None:
        for series, hour, value in self._values(question, selection, window):
            native_id = promql.id_in(series.labels.get(self._label, ""))
            if native_id not in found:
                message = f"the answer names an instance that was not asked for: {native_id[:60]!r}"
                raise ProviderError(message, operation=question.value)
            device, part = series.labels.get(promql.DEVICE_LABEL, ""), series.labels.get(promql.SLICE_LABEL, "")
            track = found[native_id].track(question, device, part, window.hours)
            _note(track, hour, series.labels.get(promql.PART_LABEL, ""), value)

    def _values(
        self, question: BatchQuestion, selection: Selection, window: _Window
    ) -> Iterator[tuple[LabelledSeries, int, float]]:
        """(series, hour, value) of everything the server knows about these instances."""
        if window.complete:
            form = {
                "query": promql.whole_hour(question, selection),
                "start": _unix(window.start + HOUR),
                "end": _unix(window.start + window.complete * HOUR),
                "step": "3600",
            }
            for series in self._ask("/api/v1/query_range", form):
                for moment, value in series.points:
                    yield series, _hour_before(moment, window), value
        if window.so_far > timedelta(0):
            length = math.ceil(window.so_far / _MILLISECOND)
            form = {"query": promql.hour_so_far(question, selection, length), "time": _unix(window.until)}
            for series in self._ask("/api/v1/query", form):
                for _, value in series.points:
                    yield series, window.complete, value

    def _ask(self, path: str, form: dict[str, str]) -> tuple[LabelledSeries, ...]:
        return series_in(self._post(path, form), operation=f"prometheus:{path.rsplit('/', 1)[-1]}")


def _note(track: Track, hour: int, part: str, value: float) -> None:
    """Put one value in its place; a maximum that is no number becomes infinity, never nothing."""
    if part == promql.MAXIMUM:
        if math.isnan(track.maxima[hour]) or not value <= track.maxima[hour]:
            track.maxima[hour] = math.inf if math.isnan(value) else value
        return
    if part not in {promql.SAMPLES, promql.DENSITY} or not 0 <= value <= _MOST_SAMPLES:
        message = f"the answer counts {value} samples as {part[:20]!r}"
        raise ProviderError(message, operation="prometheus:query")
    if part == promql.SAMPLES:
        track.samples[hour] = max(track.samples[hour], int(value))
    else:
        track.density = max(track.density, int(value))


def _hour_before(moment: float, window: _Window) -> int:
    """Which hour ended at `moment`; a server that moved the evaluation times did not answer what was asked."""
    hour = (moment - (window.start - _EPOCH) / timedelta(seconds=1)) / 3600 - 1
    if not hour.is_integer() or not 0 <= hour < window.complete:
        message = f"the answer has a point at {moment}, which is not one of the hours asked for"
        raise ProviderError(message, operation="prometheus:query_range")
    return int(hour)


def _unix(moment: datetime) -> str:
    return f"{(moment - _EPOCH) / timedelta(seconds=1):.3f}"


def _gap(unread: Sequence[Instance], err: ProviderError) -> Gap:
    shard = unread[0].ref.shard
    gap = signals_gap(shard, err, fix=_FIX)
    names = ", ".join(instance.ref.native_id for instance in unread[:_NAMED])
    more = f" and {len(unread) - _NAMED} more" if len(unread) > _NAMED else ""
    _logger.warning(
        "metrics could not be read",
        extra={"shard": str(shard), "instances": len(unread), "operation": err.operation, "code": err.code},
    )
    return Gap(gap.shard, gap.what, gap.kind, f"Prometheus: {gap.detail} (unread: {names}{more})", gap.fix)


_SAID_MAX = 300
_NUMBER = re.compile(r"[-+]?(?:\d{1,400}(?:\.\d{0,400})?(?:[eE][-+]?\d{1,5})?|Inf|NaN)", re.ASCII)
_OK = 200


@dataclass(frozen=True, slots=True)
class LabelledSeries:
    """One series of an answer: its labels, and (Unix seconds, value) pairs; a value may be NaN or infinite."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


def series_in(answer: HttpAnswer, *, operation: str) -> tuple[LabelledSeries, ...]:
    """Every series of a query's answer.

    Raises:
        AccessDeniedError: 401, 403 or 407.
        ThrottledError: 429.
        UnavailableError: 5xx, a query that timed out or was aborted included.
        TruncatedReadError: the JSON ends early, or the server says that the answer is partial.
        ProviderError: anything else that is not a complete answer.

    API: Prometheus HTTP API v1, `query` and `query_range`.
    """
    document = _document(answer, operation)
    said = _printable(document.get("error"))
    if answer.status != _OK:
        raise refused(answer, said, operation=operation)
    if document.get("status") != "success":
        message = f"Prometheus answered status {_printable(document.get('status'))!r}: {said}"
        raise ProviderError(message, operation=operation, code=_printable(document.get("errorType")))
    for kind in ("warnings", "infos"):
        if document.get(kind):
            message = f"Prometheus answered with {kind}, so something may be missing: {_printable(document[kind])}"
            raise TruncatedReadError(message, operation=operation, code=kind)
    if document.get("isPartial") or document.get("partial"):  # VictoriaMetrics' and others' word for it
        message = "the answer says that it is partial"
        raise TruncatedReadError(message, operation=operation, code="partial")
    try:
        return tuple(_series(entry, document["data"]["resultType"]) for entry in _listed(document["data"]["result"]))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as err:
        message = f"the answer is not a Prometheus result: {type(err).__name__}: {_printable(str(err))}"
        raise ProviderError(message, operation=operation) from err


def _document(answer: HttpAnswer, operation: str) -> dict[str, Any]:
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError) as err:
        if answer.status != _OK:
            raise refused(answer, "", operation=operation) from err
        if answer.body.lstrip()[:1] == b"{":
            message = f"the JSON answer breaks off after {len(answer.body)} bytes"
            raise TruncatedReadError(message, operation=operation) from err
        message = "the answer is not JSON; is this the address of a Prometheus server?"
        raise ProviderError(message, operation=operation) from err
    if isinstance(document, dict):
        return document
    message = "the answer is JSON, but not an object; is this the address of a Prometheus server?"
    raise ProviderError(message, operation=operation)


def _series(entry: dict[str, Any], result_type: str) -> LabelledSeries:
    if result_type == "matrix":
        pairs = entry["values"]
    elif result_type == "vector":
        pairs = [entry["value"]]
    else:
        message = f"result type {result_type!r}"
        raise ValueError(message)
    labels = {str(name): str(value) for name, value in entry["metric"].items()}
    return LabelledSeries(labels, tuple((_seconds(moment), _number(value)) for moment, value in _listed(pairs)))


def _listed(value: object) -> list[Any]:
    """A list; anything else that can be gone through, such as an empty text, would pass for "nothing found"."""
    if isinstance(value, list):
        return value
    message = f"a list was expected, not {type(value).__name__}"
    raise TypeError(message)


def _seconds(moment: object) -> float:
    if isinstance(moment, bool) or not isinstance(moment, (int, float)):
        message = f"a time was expected, not {type(moment).__name__}"
        raise TypeError(message)
    return float(moment)


def _number(value: object) -> float:
    """A sample's value: text, as JSON has no NaN. `float` alone would take `1_0` and any script's digits."""
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        message = f"a number in quotes was expected, not {type(value).__name__} {str(value)[:40]!r}"
        raise TypeError(message)
    return float(value)


def _printable(said: object) -> str:
    text = "; ".join(str(part) for part in said) if isinstance(said, list) else str(said or "")
    return "".join(char if char.isprintable() else " " for char in text)[:_SAID_MAX]
