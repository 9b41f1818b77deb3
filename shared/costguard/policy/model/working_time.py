"""Working time: grace periods count only while people are there to answer. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

_MAX_DAYS = 3650  # a calendar without a working day in ten years is a mistake, caught when the policy loads
_ONE_DAY = timedelta(days=1)


def _never(_: date) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class WorkingCalendar:
    """Working hours in one time zone. `weekdays` are 0 (Monday) to 6; `closes` 00:00 is the end of the day.

    `exceptions` says of single dates whether they are worked: holidays are False, moved workdays True.
    After `known_until` (None: known for good) nobody has said yet which days are holidays, so every
    day that is `doubtful` counts as one: a grace may only get longer.
    """

    zone: str
    weekdays: frozenset[int]
    opens: time
    closes: time
    exceptions: Mapping[date, bool] = field(default_factory=dict)
    known_until: date | None = None
    doubtful: Callable[[date], bool] = field(default=_never, compare=False)

    def is_working_day(self, day: date) -> bool:
        """Whether anybody works on `day`, in the calendar's zone."""
        if day in self.exceptions:
            return self.exceptions[day]
        if self.known_until is not None and day > self.known_until and self.doubtful(day):
            return False
        return day.weekday() in self.weekdays

    def after(self, start: datetime, duration: timedelta) -> datetime:
        """When `duration` of working time has passed since `start`; UTC, never before `start + duration`.

        A day of 24 h in a policy means 24 working hours here, so a calendar only ever lengthens a grace.
        Time is counted as it passes: an hour that the clocks skip is not worked, one they repeat is.

        Raises:
            ValueError: `start` carries no offset, `duration` is negative, or ten years are not enough.
        """
        if start.utcoffset() is None:
            raise ValueError("the start of a grace must carry an offset")
        if duration < timedelta(0):
            raise ValueError("a grace cannot be negative")
        zone = ZoneInfo(self.zone)
        began = start.astimezone(timezone.utc)
        left = duration
        day = began.astimezone(zone).date()
        for _ in range(_MAX_DAYS):
            if self.is_working_day(day):
                opening, closing = self._hours(day, zone)
                begin = max(opening, began)
                if begin < closing:
                    if begin + left <= closing:
                        return begin + left
                    left -= closing - begin
            day += _ONE_DAY
        message = f"no {duration} of working time within ten years of {start.isoformat()}"
        raise ValueError(message)

    def weekly(self) -> timedelta:
        """Working time of a week without holidays."""
        start = datetime.combine(date.min, self.opens)
        end = datetime.combine(date.min, self.closes) + (_ONE_DAY if self.closes == time(0) else timedelta(0))
        return (end - start) * len(self.weekdays)

    def _hours(self, day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
        """Opening and closing of `day` in UTC; where the clocks skip or repeat a time, the shorter day."""
        last = day + _ONE_DAY if self.closes == time(0) else day
        return max(_both(day, self.opens, zone)), min(_both(last, self.closes, zone))


def _both(day: date, clock: time, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The two moments a clock time may mean; they are one on all days but two of the year."""
    first, second = (datetime.combine(day, clock.replace(fold=fold), zone) for fold in (0, 1))
    return first.astimezone(timezone.utc), second.astimezone(timezone.utc)
