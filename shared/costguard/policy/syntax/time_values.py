"""Reads windows, waits, moments, working hours and zones of policy documents. Pure."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from costguard.domain.actions import Verb
from costguard.policy.model.holidays import country
from costguard.policy.syntax import units
from costguard.policy.syntax.moments import parse_date, parse_moment
from costguard.policy.syntax.problems import BadValueError, did_you_mean

SHORTEST_WINDOW = timedelta(hours=1)  # signals are kept as hourly maxima
LONGEST_WINDOW = timedelta(days=60)  # CloudWatch keeps points of five minutes for 63 days
LONGEST_OBSERVED = timedelta(days=90)
LONGEST_EXCEPTION = timedelta(days=730)
MOST_HOLIDAYS = 366  # a year of them: of the 521 weeks that a grace may look ahead, over the 104 it may need stay
_HOURS = re.compile(r"([0-9]{2}):([0-9]{2})-([0-9]{2}):([0-9]{2})")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MIDNIGHT_HOUR = 24
_LONGEST_FIX = 100
_FIRST_YEAR, _LAST_YEAR = 2006, 2199  # before, no cloud sent a bill; after, sums of days leave the calendar
UNCHOSEN = "choose"
"""What the starter has in the place of a zone."""
_ZONES = "write for example Asia/Shanghai, Europe/Berlin or UTC"


def window(raw: object) -> timedelta:
    """How long something must be idle: 1 h to 60 d."""
    length = units.parse_duration(raw)
    if length < SHORTEST_WINDOW:
        message = f"{raw} is too short to call anything idle; at least 1h"
        raise BadValueError(message, "write 24h if unsure")
    if length > LONGEST_WINDOW:
        message = f"{raw} is longer than signals are kept; at most 60d"
        raise BadValueError(message, "write 14d or less")
    return length


def observed(raw: object) -> timedelta:
    """How long a new account is only observed: 1 h to 90 d."""
    length = units.parse_duration(raw)
    if length < SHORTEST_WINDOW:
        message = f"{raw} is too short for anybody to look at what would be done; at least 1h"
        raise BadValueError(message, "write 14d if unsure, or leave new_accounts out")
    if length > LONGEST_OBSERVED:
        message = f"{raw} is longer than a new account may stay unguarded; at most 90d"
        raise BadValueError(message, "write 14d, and mode: observe where nothing is ever to be done")
    return length


def longest_exception(raw: object) -> timedelta:
    """How long an exception may last that is asked for: 1 d to 730 d."""
    length = units.parse_duration(raw)
    if length < timedelta(days=1):
        message = f"{raw} leaves no room for any exception; at least 1d"
        raise BadValueError(message, "leave longest_exception out for 180d")
    if length > LONGEST_EXCEPTION:
        message = f"{raw} is no exception any more; at most 730d"
        raise BadValueError(message, "write except_when_any into a rule, or protect the machine by a tag")
    return length


def moment(raw: object) -> datetime:
    """An aware time."""
    expected = "expected a time with its offset, such as 2026-12-01T18:00:00+08:00"
    text = raw if isinstance(raw, str) else str(raw)
    if parse_date(text) is not None:
        message = f"{text} is a date without time and offset; {expected}"
        raise BadValueError(message, f"write {text}T23:59:59Z or an offset of your own")
    found = parse_moment(text)
    if found is None:
        message = f"{text!r} is not a time; {expected}"
        raise BadValueError(message)
    if found.utcoffset() is None:
        message = f"{text} says no offset, so it is another moment in each zone; {expected}"
        raise BadValueError(message, f"write {text}Z or {text}+08:00")
    return found


def day(raw: object) -> date:
    """A calendar date."""
    found = parse_date(raw) if isinstance(raw, str) else None
    if found is None:
        message = f"{raw!r} is not a date; expected year-month-day such as 2026-10-01"
        raise BadValueError(message, _day_fix(raw))
    return found


def bill_day(raw: object) -> date:
    """A calendar date in years that have bills."""
    found = day(raw)
    if not _FIRST_YEAR <= found.year <= _LAST_YEAR:
        message = f"no bill is of the year {found.year}"
        raise BadValueError(message, f"write a year from {_FIRST_YEAR} to {_LAST_YEAR}")
    return found


def _day_fix(raw: object) -> str:
    """Of a day that its month does not have: the last one it has."""
    written = re.fullmatch(r"([0-9]{4})-([0-9]{2})-(29|30|31)", raw) if isinstance(raw, str) else None
    first = parse_date(f"{written.group(1)}-{written.group(2)}-01") if written else None
    if first is None:
        return ""
    return f"that month ends on {first:%Y-%m}-{monthrange(first.year, first.month)[1]}"


def hours(raw: object) -> tuple[time, time]:
    """Opening and closing time; closing 00:00 is the end of the day."""
    expected = 'expected opening and closing time such as "10:00-18:00"'
    match = _HOURS.fullmatch(raw) if isinstance(raw, str) else None
    if match is None:
        message = f"{raw!r} is not a span of hours; {expected}"
        raise BadValueError(message)
    start_hour, start_minute, end_hour, end_minute = (int(part) for part in match.groups())
    try:
        opens = time(start_hour, start_minute)
        closes = time(0) if (end_hour, end_minute) == (_MIDNIGHT_HOUR, 0) else time(end_hour, end_minute)
    except ValueError as err:
        message = f"{raw} names a time no clock shows; {expected}"
        raise BadValueError(message) from err
    if end_hour != _MIDNIGHT_HOUR and opens >= closes:
        message = f"{raw} closes before it opens; {expected}"
        raise BadValueError(
            message,
            "the end of a day is 24:00; hours over midnight are not supported",
        )
    return opens, closes


def weekdays(raw: object) -> frozenset[int]:
    """`mon-fri`, `mon, wed` or a list of day names."""
    expected = "expected days such as mon-fri or [mon, tue, thu]"
    parts = raw if isinstance(raw, tuple) else tuple(str(raw).split(","))
    days: set[int] = set()
    for part in parts:
        first, dash, last = str(part).strip().casefold().partition("-")
        span = [name.strip() for name in ((first, last) if dash else (first,))]
        for name in span:
            if name not in _DAYS:
                message = f"{name!r} is not a day; {expected}"
                raise BadValueError(message, did_you_mean(name, _DAYS))
        begin, end = _DAYS.index(span[0]), _DAYS.index(span[-1])
        days.update((begin + step) % 7 for step in range((end - begin) % 7 + 1))
    if not days:
        message = f"no day is worked; {expected}"
        raise BadValueError(message, "leave the calendar out to count every hour")
    return frozenset(days)


def zone(text: str) -> str:
    """A zone of the IANA database; a fixed offset knows no summer time."""
    if text.casefold() == UNCHOSEN:
        message = "no time zone is chosen yet: expected an IANA name such as Asia/Shanghai"
        raise BadValueError(message, "write the zone of those who get notices, or calendar: none to count every hour")
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as err:
        message = f"{text!r} is not a time zone; expected an IANA name such as Asia/Shanghai"
        raise BadValueError(message, _zone_alike(text)) from err
    return text


def _zone_alike(text: str) -> str:
    """By the city's name, or a misspelt zone; an offset such as UTC+8 fits many."""
    if re.search(r"[+0-9]", text):
        return _ZONES
    zones = {name for name in available_timezones() if "/" in name}
    city = {name.rsplit("/", 1)[-1]: name for name in sorted(zones)}.get(text.replace(" ", "_").title())
    fix = f"write {city}" if city else did_you_mean(text, zones)
    return fix if len(fix) < _LONGEST_FIX else _ZONES


_LONGEST_SHOWN, _MOST_SHOWN = 40, 11


@dataclass(frozen=True, slots=True)
class Holidays:
    """What `holidays` says: countries by their canonical names, and dates."""

    countries: tuple[str, ...] = ()
    days: tuple[date, ...] = ()


def holidays(raw: object) -> Holidays:
    """Countries or parts of them, dates, or both. All that are wrong are named, at the place of the first."""
    parts = raw if isinstance(raw, tuple) else (raw,)
    if len(parts) > MOST_HOLIDAYS:
        message = f"{len(parts)} holidays might leave no working day for years; at most {MOST_HOLIDAYS}"
        raise BadValueError(message, "list the years ahead; calendar.days says which weekdays are free")
    countries, days = [], []
    wrong: list[tuple[int, object, BadValueError]] = []
    for index, part in enumerate(parts):
        try:
            if isinstance(part, str) and (not part[:1].isdigit()):
                countries.append(country(part))
            else:
                days.append(day(part))
        except BadValueError as err:
            wrong.append((index, part, err))
    if wrong:
        index, _, first = wrong[0]
        others = ", ".join(str(part)[:_LONGEST_SHOWN] for _, part, _ in wrong[1:_MOST_SHOWN])
        message = f"{first.message}; wrong too: {others}" if others else first.message
        raise BadValueError(message, first.fix, at=(index,) if isinstance(raw, tuple) else ()) from first
    return Holidays(tuple(sorted(set(countries))), tuple(days))


def some_years(raw: object) -> tuple[int, ...]:
    """Years that have bills."""
    parts = raw if isinstance(raw, tuple) else ()
    if not parts or not all(isinstance(year, int) and _FIRST_YEAR <= year <= _LAST_YEAR for year in parts):
        message = f"{raw!r} are no years; expected years such as [2026, 2027]"
        raise BadValueError(message, "publish the policy again: this file is written by Costguard")
    return parts


def years(raw: object) -> tuple[int, int]:
    """The first and the last year."""
    found = some_years(raw)
    if found != tuple(sorted(found)) or len(found) != len(("first", "last")):
        message = f"{raw!r} are no first and last year; expected two, such as [2024, 2029]"
        raise BadValueError(message, "publish the policy again: this file is written by Costguard")
    return found[0], found[1]


def day_list(raw: object) -> tuple[date, ...]:
    """Dates in one text: few nodes are quick to read."""
    return tuple(day(each) for each in str(raw).split())


SHORTEST_WAITS = {
    Verb.SNAPSHOT: timedelta(0),  # of a running machine: nothing is interrupted
    Verb.STOP: timedelta(hours=1),  # less is no notice: people are in meetings
    Verb.TERMINATE: timedelta(days=1),  # the quarantine must see at least one morning
}
LONGEST_WAIT = timedelta(days=90)


def read_wait(raw: object, word: str, shortest: timedelta, at: tuple[str, ...]) -> timedelta:
    """How long the step `word` waits: `shortest` to 90 d; a refusal is placed `at` its key."""
    try:
        wait = units.parse_duration(raw)
    except BadValueError as err:
        raise BadValueError(err.message, err.fix, at=at) from err
    if wait < shortest:
        hours = int(shortest.total_seconds() // 3600)
        message = f"{raw} is too short a wait before {word}; at least {hours}h"
        raise BadValueError(message, f"write {hours}h or more", at=at)
    if wait > LONGEST_WAIT:
        message = f"{raw} is too long a wait; at most {LONGEST_WAIT.days}d"
        raise BadValueError(message, "write 90d or less", at=at)
    return wait


def remediation_wait(raw: object) -> timedelta:
    """How long after its notice something is mended; not sooner than a stop: less is no notice."""
    return read_wait(raw, "a mend", SHORTEST_WAITS[Verb.STOP], ())
