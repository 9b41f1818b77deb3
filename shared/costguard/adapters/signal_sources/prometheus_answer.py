"""Prometheus' JSON answers, read without trust. Pure.

An answer is whole or it is an error: warnings, notes and partial data mean that something was left out,
and what was left out may have been the busy hour.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from costguard.adapters.signal_sources.http import HttpAnswer, refused
from costguard.domain.errors import ProviderError, TruncatedReadError

_SAID_MAX = 300
_NUMBER = re.compile(r"[-+]?(?:\d{1,400}(?:\.\d{0,400})?(?:[eE][-+]?\d{1,5})?|Inf|NaN)", re.ASCII)
_OK = 200


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an answer: its labels, and (Unix seconds, value) pairs; a value may be NaN or infinite."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


def series_in(answer: HttpAnswer, *, operation: str) -> tuple[Series, ...]:
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


def _series(entry: dict[str, Any], result_type: str) -> Series:
    if result_type == "matrix":
        pairs = entry["values"]
    elif result_type == "vector":
        pairs = [entry["value"]]
    else:
        message = f"result type {result_type!r}"
        raise ValueError(message)
    labels = {str(name): str(value) for name, value in entry["metric"].items()}
    return Series(labels, tuple((_seconds(moment), _number(value)) for moment, value in _listed(pairs)))


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
