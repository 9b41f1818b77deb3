"""Public holidays of a country or a part of one, as dates: from the `holidays` package, or from `holidays.yaml`. Pure.

The package is there where policies are checked and published, and not in functions: those read the dates that a
publication wrote into its bundle. A year that a country has not announced yet is computed from its law. Whoever moves
workdays (China, Hungary) announces them year by year, so in such a year no workday is assumed to be moved, and the
days around each holiday may be days of rest.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

from costguard.policy.syntax.problems import BadValueError, did_you_mean

FILE = "holidays.yaml"
_NAME = re.compile(r"([A-Za-z]{2})(?:-([A-Za-z0-9]{1,8}))?", re.ASCII)
_BEFORE, _AFTER = 2, 3
"""Years around the last one that China announced, which is the year a release is made for or the one after."""
_STILL_MOVES = 2  # years since the last moved workday, after which a country is taken to have given it up
_ROOM = timedelta(days=5)
"""Around a holiday not announced yet. From 2008 to 2026 China announced no day of rest more than four days away."""
_MOON = timedelta(days=1)  # the month of an estimated holiday begins when the moon is seen, a day off at most
_ONE_DAY = timedelta(days=1)
_EXAMPLE = "write a country such as cn, us or de-BY, or dates: [2026-12-25, 2027-01-01]"


@dataclass(frozen=True, slots=True)
class HolidayDates:
    """Days of rest, and days worked although they fall on a weekend, in the years from `first` to `last`.

    `computed` are the years of these that were not announced. `source` names the package and its version.
    """

    name: str
    first: int
    last: int
    closed: frozenset[date]
    worked: frozenset[date]
    computed: frozenset[int]
    source: str

    @property
    def known_until(self) -> date:
        """The last day that is known."""
        return date(self.last, 12, 31)


def country(raw: str) -> str:
    """The canonical name of a country or subdivision: `cn`, `de-BY`. Without the package only its form is checked.

    Raises:
        BadValueError: not one, or none that the package knows.
    """
    found = _NAME.fullmatch(raw)
    if found is None:
        message = f"{raw!r} is no country and no date"
        raise BadValueError(message, _called(raw))
    code, part = found.group(1).upper(), found.group(2) or ""
    known = _supported()
    if known is None:
        return f"{code.lower()}-{part}" if part else code.lower()
    if code not in known:
        message = f"no holidays are known of {raw!r}"
        raise BadValueError(message, _called(code))
    parts = {each.casefold(): each for each in known[code]}
    if part and part.casefold() not in parts:
        message = f"no part of {code.lower()} is called {part!r}"
        raise BadValueError(message, did_you_mean(part, parts.values()) if parts else f"write {code.lower()}")
    return f"{code.lower()}-{parts[part.casefold()]}" if part else code.lower()


def _called(word: str) -> str:
    """The code of the country whose name or longer code is nearest to `word`."""
    package = _package()
    registry = {} if package is None else package.registry.COUNTRIES
    names = {name.casefold(): said[1] for key, said in registry.items() for name in (key, *said)}
    near = difflib.get_close_matches(word.casefold().replace(" ", "_"), names, n=1, cutoff=0.75)
    return f"write {names[near[0]].lower()}" if near else _EXAMPLE


def _package() -> Any:
    """The package, or None in a function."""
    try:
        import holidays
    except ImportError:
        return None
    return holidays


@lru_cache(maxsize=1)
def _supported() -> Mapping[str, tuple[str, ...]] | None:
    package = _package()
    if package is None:
        return None
    found = package.list_supported_countries()
    return {code: tuple(parts) for code, parts in sorted(found.items())}


@lru_cache(maxsize=32)
def dates_of(name: str) -> HolidayDates | None:
    """The dates of one canonical name out of the package, None where it is not installed or does not know the name."""
    package, known = _package(), _supported()
    code, _, part = name.partition("-")
    if package is None or known is None or code.upper() not in known:
        return None
    announced = max(day.year for day in _days(package, "CN", "", range(2024, 2100)).weekend_workdays)
    first, last = announced - _BEFORE, announced + _AFTER
    found = _days(package, code.upper(), part, range(first, last + 2))  # the next New Year may reach back
    moved = max((day.year for day in found.weekend_workdays), default=0)
    until = moved if moved >= announced - _STILL_MOVES else None
    dates = dates_out_of(found, until, first, last)
    return replace(dates, name=name, source=f"holidays {package.__version__}")


def dates_out_of(found: Any, announced: int | None, first: int, last: int) -> HolidayDates:
    """The dates of `found`, holidays of the package. `announced` is the last year whose moved days are known.

    None of a country that moves none.
    """
    closed: set[date] = set()
    computed: set[int] = set()
    for day, said in found.items():
        unknown = announced is not None and day.year > announced
        room = _ROOM if unknown else _MOON if "(estimated)" in said else timedelta(0)
        if room:
            computed.add(day.year)
        closed |= set(_around(day, room))
    worked = {day for day in found.weekend_workdays if announced is None or day.year <= announced}
    return HolidayDates(
        name="",
        first=first,
        last=last,
        closed=frozenset(day for day in closed - worked if first <= day.year <= last),
        worked=frozenset(day for day in worked if first <= day.year <= last),
        computed=frozenset(year for year in computed if first <= year <= last),
        source="",
    )


def _days(package: Any, code: str, part: str, years: range) -> Any:
    languages = package.country_holidays(code).supported_languages
    language = "en_US" if "en_US" in languages else None
    return package.country_holidays(code, subdiv=part or None, years=years, expand=False, language=language)


def _around(day: date, room: timedelta) -> Iterator[date]:
    at = day - room
    while at <= day + room:
        yield at
        at += _ONE_DAY


def exceptions(found: Iterable[HolidayDates]) -> dict[date, bool]:
    """Whether single dates are worked. Of several countries a day is worked only where all of them say so."""
    every = tuple(found)
    worked = frozenset[date].intersection(*(each.worked for each in every)) if every else frozenset()
    return dict(sorted({**dict.fromkeys(worked, True), **{d: False for each in every for d in each.closed}}.items()))


def file_text(found: Iterable[HolidayDates]) -> str:
    """`holidays.yaml`: these dates for whoever has no package."""
    lines = [
        "# The dates behind calendar.holidays, for functions. Written by Costguard: publish again for newer ones.",
        "calendars:",
    ]
    for each in found:
        lines += [
            f"  - name: {each.name}",
            f'    source: "{each.source}"',
            f"    years: [{each.first}, {each.last}]",
            *((f"    computed: [{', '.join(map(str, sorted(each.computed)))}]",) if each.computed else ()),
            *_dates("closed", each.closed),
            *_dates("worked", each.worked),
        ]
    return "\n".join(lines) + "\n"


def _dates(key: str, days: frozenset[date]) -> Iterator[str]:
    """One line a year of one text: few nodes are quick to read in a function."""
    if not days:
        return
    yield f"    {key}: >-"
    for year in sorted({day.year for day in days}):
        yield "      " + " ".join(day.isoformat() for day in sorted(days) if day.year == year)
