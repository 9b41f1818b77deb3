"""Asking again after losing a race for a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from costguard.domain.errors import LedgerError, VersionConflictError

_Result = TypeVar("_Result")

# Each lost race means that another writer got through, so n writers at once need at most n tries each.
_TRIES = 100


def until_uncontested(attempt: Callable[[], _Result], what: str) -> _Result:
    """The result of `attempt`, which reads anew, decides anew and writes, once it loses no race.

    Raises:
        LedgerError: it lost 100 times in a row.
    """
    for _ in range(_TRIES):
        try:
            return attempt()
        except VersionConflictError:
            continue
    message = f"{what}: other writers were first {_TRIES} times in a row; nothing was changed"
    raise LedgerError(message)
