"""A stretch of time with a budget of its own, and the days it is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import lru_cache
from zoneinfo import ZoneInfo

from costguard.domain.money import hours

_ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, order=True, slots=True)
class Day:
    """One calendar day of some zone as the time from `start` to `end` (aware, UTC; the end is outside it).

    23 or 25 hours long where a zone changes its clocks, and empty where a zone left a day out.
    """

    day: date
    start: datetime
    end: datetime

    @property
    def hours(self) -> Decimal:
        """How long it is."""
        return hours(self.end - self.start)


@dataclass(frozen=True, order=True, slots=True)
class Period:
    """From `start` to `end` (aware, UTC; the end is outside it), whole days in `zone`.

    `key` names it for ever: `2026-11`, `2026-Q4`, `2026` or `2026-11-01..2026-12-15`.
    """

    key: str
    start: datetime
    end: datetime
    zone: str = "UTC"

    def holds(self, moment: datetime) -> bool:
        """Whether `moment` lies in the period."""
        return self.start <= moment < self.end

    @property
    def hours(self) -> Decimal:
        """How long it is; a month in which clocks change has an hour more or less."""
        return hours(self.end - self.start)

    @property
    def days(self) -> tuple[Day, ...]:
        """Its days, in order; they fill it without a hole."""
        return tuple(days_between(self.start, self.end, self.zone))

    def hours_left(self, now: datetime) -> Decimal:
        """How much of it lies ahead."""
        return hours(self.end - min(max(now, self.start), self.end))


@lru_cache(maxsize=4096)  # a year of days in ten zones
def start_of(day: date, zone: str) -> datetime:
    """When a calendar day begins in `zone`, in UTC.

    Midnight that is left out by a change of clocks is the moment of the change; of two midnights it is the first.
    """
    return datetime.combine(day, time(0), tzinfo=ZoneInfo(zone)).astimezone(timezone.utc)


def day_of(moment: datetime, zone: str) -> Day:
    """The calendar day of `zone` that `moment` lies in."""
    return _day(date_in(zone, moment), zone)


def date_in(zone: str, moment: datetime) -> date:
    """The calendar date of `zone` at that moment."""
    return moment.astimezone(ZoneInfo(zone)).date()


def days_between(since: datetime, until: datetime, zone: str) -> Iterator[Day]:
    """The days of `zone` that lie in this time in full, in order."""
    if since >= until:
        return
    day = day_of(since, zone)
    if day.start < since:
        day = _day(day.day + _ONE_DAY, zone)
    while day.end <= until and day.start < until:
        yield day
        day = _day(day.day + _ONE_DAY, zone)


def _day(day: date, zone: str) -> Day:
    return Day(day, start_of(day, zone), start_of(day + _ONE_DAY, zone))
