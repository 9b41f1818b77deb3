"""Working time: grace periods count only while people are there to answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

_MAX_DAYS = 3650  # a calendar without a working day in ten years is a mistake, caught when the policy loads
_ONE_DAY = timedelta(days=1)
_NOON = time(12)


@dataclass(frozen=True, slots=True)
class WorkingCalendar:
    """Working hours in one time zone. `weekdays` are 0 (Monday) to 6; `closes` 00:00 is the end of the day.

    `exceptions` says of single dates whether they are worked: holidays are False, moved workdays True.
    After `known_until` (None: known for good) nobody knows which days are holidays, so waits grow longer there:
    see `after`. `computed` are years whose holidays were not announced; `source` tells where all of them are from.
    """

    zone: str
    weekdays: frozenset[int]
    opens: time
    closes: time
    exceptions: Mapping[date, bool] = field(default_factory=dict)
    known_until: date | None = None
    computed: frozenset[int] = field(default=frozenset(), compare=False)
    source: str = field(default="", compare=False)

    def is_working_day(self, day: date) -> bool:
        """Whether anybody works on `day`, in the calendar's zone."""
        worked = self.exceptions.get(day)
        return day.weekday() in self.weekdays if worked is None else worked

    def after(self, start: datetime, duration: timedelta, *, first_stop: bool = False) -> datetime:
        """When `duration` of working time has passed since `start`; UTC, never before `start + duration`.

        A day of 24 h in a policy means 24 working hours here, so a calendar only ever lengthens a grace.
        Time is counted as it passes: an hour that the clocks skip is not worked, one they repeat is.
        What reaches into a year whose holidays nobody knows counts twice there, and two weeks of working hours more:
        no country has that many holidays. With `first_stop` it goes on to a moment that `suits_first_stop`.

        Raises:
            ValueError: `start` carries no offset, `duration` is negative, or ten years are not enough.
        """
        if start.utcoffset() is None:
            raise ValueError("the start of a grace must carry an offset")
        if duration < timedelta(0):
            raise ValueError("a grace cannot be negative")
        zone = ZoneInfo(self.zone)
        began = start.astimezone(timezone.utc)
        left, stretched = duration, duration == timedelta(0)
        day = began.astimezone(zone).date()
        for _ in range(_MAX_DAYS):
            if not stretched and self.known_until is not None and day > self.known_until:
                left, stretched = 2 * left + 2 * self.weekly(), True
            if self.is_working_day(day):
                opening, closing = self._hours(day, zone)
                begin = max(opening, began)
                if begin < closing:
                    if begin + left <= closing:
                        return self._first_stop_from(begin + left, zone) if first_stop else begin + left
                    left -= closing - begin
            day += _ONE_DAY
        message = f"no {duration} of working time within ten years of {start.isoformat()}"
        raise ValueError(message)

    def _first_stop_from(self, moment: datetime, zone: ZoneInfo) -> datetime:
        """The first moment, from `moment` on, at which a machine may be stopped for the first time.

        That is in working hours, before noon on the last working day before days of rest, and never on the last
        working day before a holiday: whoever is surprised by a stop finds colleagues, and time left to start again.
        """
        day = moment.astimezone(zone).date()
        for _ in range(_MAX_DAYS):
            opening, closing = self._first_stops(day, zone)
            if max(opening, moment) < closing:
                return max(opening, moment)
            day += _ONE_DAY
        message = f"no first stop is possible within ten years of {moment.isoformat()}"
        raise ValueError(message)

    def _first_stops(self, day: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
        """From when to when on `day` a first stop may come, in UTC; none where the end is not after the beginning."""
        opening, closing = self._hours(day, zone)
        if not self.is_working_day(day):
            return opening, opening
        rest = day + _ONE_DAY
        if self.is_working_day(rest):
            return opening, closing
        for _ in range(_MAX_DAYS):
            if self.exceptions.get(rest) is False:
                return opening, opening
            rest += _ONE_DAY
            if self.is_working_day(rest):
                break
        return opening, min(closing, *_both(day, _NOON, zone))

    def has_first_stops(self) -> bool:
        """Whether a week without holidays has a moment that suits a first stop."""
        a_day_follows = any((day + 1) % 7 in self.weekdays for day in self.weekdays)
        return a_day_follows or self.opens < _NOON

    def is_undated(self, now: datetime) -> bool:
        """Whether nobody knows the holidays of the present year."""
        return self.known_until is not None and self.year_of(now) > self.known_until.year

    def year_of(self, now: datetime) -> int:
        """The present year in the calendar's zone."""
        return now.astimezone(ZoneInfo(self.zone)).year

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
