"""A page of GetMetricData, taken apart without trust. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from costguard.domain.errors import AccessDeniedError, ProviderError, TruncatedReadError, UnavailableError
from costguard.providers.documented import as_documented, parts, text
from costguard.providers.redaction import without_secrets

OPERATION = "cloudwatch:GetMetricData"
PARTIAL = "PartialData"
_MOST_DIGITS = 4  # of a query's number; a call has 500 queries


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to query `letter` + `number`; `error` says why its points are not complete."""

    letter: str
    number: int
    timestamps: Sequence[Any]
    values: Sequence[Any]
    error: ProviderError | None

    @property
    def name(self) -> str:
        """The query's id."""
        return f"{self.letter}{self.number}"


def results_in(page: Mapping[str, Any]) -> list[Answered]:
    """Every result of a page that answers a query of ours.

    Raises:
        TruncatedReadError: a message about the whole call ("maximum number of metrics exceeded"): some was left out.
        ProviderError: the page is not as documented.
    """
    with as_documented(OPERATION):
        found = list(_results(page))
        said = _said(page)
    if said:
        message = f"{OPERATION}: {said}"
        raise TruncatedReadError(message, operation=OPERATION)
    return found


def next_token(page: Mapping[str, Any]) -> str:
    """The token of the next page, empty on the last.

    Raises:
        ProviderError: it is no text.
    """
    with as_documented(OPERATION):
        return text(page, "NextToken")


def worse(known: ProviderError | None, found: ProviderError | None, *, later_page: bool) -> ProviderError | None:
    """What stands of two answers to one query: a failure, unless it only announced the page that has now come."""
    announced = later_page and known is not None and known.code == PARTIAL
    return found if announced or known is None else known


def _results(page: Mapping[str, Any]) -> Iterator[Answered]:
    for result in parts(page, "MetricDataResults"):
        name = text(result, "Id")
        letter, digits = name[:1], name[1:]
        if letter not in {"m", "s"} or not (digits.isascii() and digits.isdigit()) or len(digits) > _MOST_DIGITS:
            continue  # not a query of ours: the one it may stand for goes unanswered
        timestamps, values = _points(result, "Timestamps"), _points(result, "Values")
        error = _failure(result)
        if timestamps is None or values is None or len(timestamps) != len(values):
            message = f"{OPERATION}: as many times as values were expected"
            timestamps, values, error = (), (), UnavailableError(message, operation=OPERATION)
        yield Answered(letter, int(digits), timestamps, values, error)


def _points(result: Mapping[str, Any], key: str) -> Sequence[Any] | None:
    found = result.get(key, ())
    return found if isinstance(found, (list, tuple)) else None


def _failure(result: Mapping[str, Any]) -> ProviderError | None:
    status, said = text(result, "StatusCode"), _said(result)
    if status == "Complete" and not said:
        return None
    message = f"{OPERATION}: {without_secrets(status) or 'no status'}" + (f": {said}" if said else "")
    if status == "Forbidden":
        return AccessDeniedError(message, operation=OPERATION, code=status)
    if status == PARTIAL:
        return TruncatedReadError(message, operation=OPERATION, code=status)
    return UnavailableError(message, operation=OPERATION, code=without_secrets(status))


def _said(fields: Mapping[str, Any]) -> str:
    notes = (f"{text(note, 'Code')}: {text(note, 'Value')}" for note in parts(fields, "Messages"))
    return without_secrets("; ".join(notes))
