"""How far a cloud's clock is from ours, by the `Date` header of its answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

_HALF_A_SECOND = timedelta(seconds=0.5)  # the header has whole seconds: on average it lies that much behind


def date_told(header: object) -> datetime | None:
    """The moment a `Date` header tells, in UTC; None where it tells none."""
    if not isinstance(header, str):
        return None
    try:
        told = parsedate_to_datetime(header)
        return None if told.tzinfo is None else told.astimezone(timezone.utc)
    except (ValueError, TypeError, OverflowError):
        return None


def clock_skew(now: Callable[[], datetime], ask_time: Callable[[], datetime | None]) -> timedelta | None:
    """The cloud's clock, which `ask_time` asks for, less ours; None where it was not told.

    The answer was on its way: right to half the round trip.
    """
    before = now()
    told = ask_time()
    return None if told is None else told + _HALF_A_SECOND - (before + (now() - before) / 2)
