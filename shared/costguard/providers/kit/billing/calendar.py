"""Days and months of a bill that counts in UTC+8, whoever reads it and wherever. Pure."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone

CHINA = timezone(timedelta(hours=8))
ZONE = "Asia/Shanghai"  # the same, as a calendar
DAY = timedelta(days=1)


def day_of(moment: datetime) -> date:
    """The billing day that holds `moment`."""
    return moment.astimezone(CHINA).date()


def begin_of(day: date) -> datetime:
    """When a billing day begins, in UTC; of a moment, the day that holds it."""
    if isinstance(day, datetime):
        day = day_of(day)
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
class Month:
    """A month of a bill, which is a billing cycle."""

    year: int
    month: int

    def __str__(self) -> str:
        return f"{self.year:04d}-{self.month:02d}"

    @classmethod
    def of(cls, day: date) -> Month:
        """The month of a billing day, or of a moment."""
        if isinstance(day, datetime):
            day = day_of(day)
        return cls(day.year, day.month)

    @property
    def first(self) -> date:
        """Its first day."""
        return date(self.year, self.month, 1)

    @property
    def last(self) -> date:
        """Its last day."""
        return date(self.year, self.month, monthrange(self.year, self.month)[1])

    @property
    def begins(self) -> datetime:
        """Its first moment, in UTC."""
        return begin_of(self.first)

    def plus(self, months: int) -> Month:
        """So many months later, or earlier."""
        number = self.year * 12 + self.month - 1 + months
        return Month(number // 12, number % 12 + 1)

    def days(self) -> Iterator[date]:
        """Its days, in order."""
        for number in range(self.last.day):
            yield self.first + number * DAY
