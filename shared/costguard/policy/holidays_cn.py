"""China's public holidays and moved workdays, as the State Council announces them year by year. Pure.

The dates are those of the `chinesecalendar` package, released after each announcement (about November).
"""

from __future__ import annotations

from datetime import date, timedelta

from chinese_calendar.constants import holidays, workdays  # type: ignore[import-untyped,unused-ignore]

from costguard.policy.calendar import Window

DOUBTFUL: tuple[Window, ...] = (
    ((1, 1), (1, 5)),  # New Year
    ((1, 18), (3, 4)),  # Spring Festival: its first day falls between 21 January and 20 February
    ((4, 1), (4, 10)),  # Qingming, 4 to 6 April
    ((4, 27), (5, 8)),  # Labour Day
    ((5, 25), (6, 29)),  # Dragon Boat, the fifth of the fifth lunar month
    ((9, 1), (10, 12)),  # Victory Day (2015), Mid-Autumn and National Day
    ((12, 29), (12, 31)),  # the bridge into New Year
)
"""Where holidays can fall in a year not announced yet, with the days moved around them."""


def exceptions() -> dict[date, bool]:
    """Every holiday (False) and moved workday (True) announced so far."""
    return {**dict.fromkeys(holidays, False), **dict.fromkeys(workdays, True)}


def known_until() -> date:
    """The last day of the last year announced. Its own bridge into the next year may still be missing."""
    last_year = max(day.year for day in holidays)
    return date(last_year, 12, 31) - timedelta(days=3)
