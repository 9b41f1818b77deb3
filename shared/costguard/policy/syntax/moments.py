"""Dates and times as people write them in policies and tags: ISO 8601, and nothing guessed. Pure."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]{1,9})?)?"
    r" ?(Z|z|[+-][0-9]{2}:?[0-9]{2})?"
)
_DAY_HOURS, _HOUR_MINUTES = 24, 60


def parse_date(text: str) -> date | None:
    """`2026-10-01`, or None when it is not a date that exists."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    try:
        return date(*(int(part) for part in match.groups()))
    except ValueError:
        return None


def parse_moment(text: str) -> datetime | None:
    """`2026-10-01T18:00:00+08:00` or `…Z`; naive where no offset was written; None when it is neither.

    Fractions of a second are dropped.
    """
    match = _MOMENT.fullmatch(text)
    day = parse_date(match.group(1)) if match else None
    if match is None or day is None:
        return None
    hour, minute, second = (int(part or 0) for part in match.group(2, 3, 4))
    zone = _offset(match.group(5))
    if match.group(5) and zone is None:
        return None
    try:
        return datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=zone)
    except ValueError:
        return None


def _offset(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text in "Zz":
        return timezone.utc
    hours, minutes = int(text[1:3]), int(text[-2:])
    if hours >= _DAY_HOURS or minutes >= _HOUR_MINUTES:
        return None
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)
