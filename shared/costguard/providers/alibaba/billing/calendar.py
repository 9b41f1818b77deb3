"""Days and billing cycles of a bill that counts in UTC+8, whoever reads it and wherever. Pure."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone

from costguard.estimates.purchases import months_on

CHINA = timezone(timedelta(hours=8))
ZONE = "Asia/Shanghai"  # the same, as a calendar
DAY = timedelta(days=1)
_LAST_OPEN_DAY = 4
"""Of a month for the bill of the month before. Expenses and Costs, "Instructions for using the bill": monthly bill and
spending details "12:00 on the 3rd of the following month", split bills on the 4th, by UTC+8; its adjustments come
"in rare cases" even later."""


def day_of(moment: datetime) -> date:
    """The billing day that holds `moment`."""
    return moment.astimezone(CHINA).date()


def begin_of(day: date) -> datetime:
    """When a billing day begins, in UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=CHINA).astimezone(timezone.utc)


def end_of(day: date) -> datetime:
    """When a billing day is over, in UTC."""
    return begin_of(day) + DAY


def days_between(since: datetime, until: datetime) -> list[date]:
    """Every billing day that has some of the time from `since` to `until`."""
    first = day_of(since)
    count = max(0, -((begin_of(first) - until) // DAY))
    return [first + number * DAY for number in range(count)] if since < until else []


@dataclass(frozen=True, order=True, slots=True)
class Cycle:
    """A billing cycle: a calendar month."""

    year: int
    month: int

    def __str__(self) -> str:
        return f"{self.year:04d}-{self.month:02d}"

    @classmethod
    def of(cls, day: date) -> Cycle:
        """The cycle of a day."""
        return cls(day.year, day.month)

    @property
    def first(self) -> date:
        """Its first day."""
        return date(self.year, self.month, 1)

    @property
    def last(self) -> date:
        """Its last day."""
        return date(self.year, self.month, monthrange(self.year, self.month)[1])

    def earlier(self, months: int) -> Cycle:
        """The cycle so many months before."""
        return Cycle.of(months_on(self.first, -months))

    def is_final(self, today: date) -> bool:
        """Whether its bill no longer changes: it is final "after 12:00 on the third day of the next month"."""
        return today > Cycle.of(months_on(self.first, 1)).first.replace(day=_LAST_OPEN_DAY)

    def days(self) -> Iterator[date]:
        """Its days, in order."""
        for number in range(self.last.day):
            yield self.first + number * DAY


def final_until(now: datetime) -> datetime:
    """The begin of the first cycle of which what is read now may still change, by the documents."""
    today = day_of(now)
    current = Cycle.of(today)
    before = current.earlier(1)
    return begin_of(current.first if before.is_final(today) else before.first)


@dataclass(frozen=True, slots=True)
class Term:
    """How long something was paid for in advance."""

    months: int
    rest: timedelta = timedelta(0)

    def end(self, day: date) -> datetime:
        """When it is over if it begins with `day`."""
        return begin_of(months_on(day, self.months)) + self.rest
