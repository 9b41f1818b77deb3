"""Working time: grace periods count only while people are there to answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

_MAX_DAYS = 3650  # a calendar without a working day in ten years is a mistake, caught when the policy loads


@dataclass(frozen=True, slots=True)
class WorkingCalendar:
    """Working hours in one time zone. `weekdays` are 0 (Monday) to 6.

    `exceptions` says of single dates whether they are worked: holidays are False, moved workdays True.
    """

    zone: str
    weekdays: frozenset[int]
    opens: time
    closes: time
    exceptions: Mapping[date, bool] = field(default_factory=dict)

    def is_working_day(self, day: date) -> bool:
        """Whether anybody works on `day`, in the calendar's zone."""
        return self.exceptions.get(day, day.weekday() in self.weekdays)

    def after(self, start: datetime, duration: timedelta) -> datetime:
        """When `duration` of working time has passed since `start`; UTC.

        A day of 24 h in a policy means 24 working hours here, so a calendar only ever lengthens a grace.
        """
        zone = ZoneInfo(self.zone)
        left = duration
        day = start.astimezone(zone).date()
        for _ in range(_MAX_DAYS):
            if self.is_working_day(day):
                opening = datetime.combine(day, self.opens, zone).astimezone(timezone.utc)
                closing = datetime.combine(day, self.closes, zone).astimezone(timezone.utc)
                begin = max(opening, start.astimezone(timezone.utc))
                if begin < closing:
                    if begin + left <= closing:
                        return begin + left
                    left -= closing - begin
            day += timedelta(days=1)
        message = f"no {duration} of working time within ten years of {start.isoformat()}"
        raise ValueError(message)
