"""China's public holidays and moved workdays, as the State Council announces them year by year. Pure.

The dates are those of the `chinesecalendar` package, released after each announcement (about November). Where holidays
can fall in a year not announced yet follows the State Council's regulation on days of rest (of 2024: New Year, Spring
Festival, Qingming, Labour Day, Dragon Boat, Mid-Autumn, National Day) and the lunar calendar.
"""

from __future__ import annotations

from datetime import date, timedelta

from chinese_calendar.constants import holidays, workdays  # type: ignore[import-untyped,unused-ignore]

_FIRST, _LAST = 2004, 2050
_SPRING = """
0122 0209 0129 0218 0207 0126 0214 0203 0123 0210 0131 0219 0208 0128 0216 0205 0125 0212 0201 0122 0210 0129 0217
0206 0126 0213 0203 0123 0211 0131 0219 0208 0128 0215 0204 0124 0212 0201 0122 0210 0130 0217 0206 0126 0214 0202
0123
"""
_DRAGON_BOAT = """
0622 0611 0531 0619 0608 0528 0616 0606 0623 0612 0602 0620 0609 0530 0618 0607 0625 0614 0603 0622 0610 0531 0619
0609 0528 0616 0605 0624 0612 0601 0620 0610 0530 0618 0607 0527 0614 0603 0622 0611 0531 0619 0608 0529 0615 0604
0623
"""
_MID_AUTUMN = """
0928 0918 1006 0925 0914 1003 0922 0912 0930 0919 0908 0927 0915 1004 0924 0913 1001 0921 0910 0929 0917 1006 0925
0915 1003 0922 0912 1001 0919 0908 0927 0916 1004 0924 0913 1002 0920 0910 0928 0917 1005 0925 0915 1004 0922 0911
0930
"""
"""Month and day of the 1st of the 1st, 5th of the 5th and 15th of the 8th lunar month, from `_FIRST` to `_LAST`.

Computed by the packages lunardate and LunarCalendar, which agree on all of them.
"""

_FIXED = (
    ((1, 1), (1, 5)),  # New Year
    ((4, 1), (4, 10)),  # Qingming, 4 to 6 April
    ((4, 27), (5, 8)),  # Labour Day
    ((9, 1), (9, 5)),  # Victory Day, as in 2015
    ((9, 28), (10, 12)),  # National Day
    ((12, 29), (12, 31)),  # the bridge into New Year
)
_AROUND = ((_SPRING, 4, 12), (_DRAGON_BOAT, 4, 4), (_MID_AUTUMN, 4, 4))
_LUNAR_ANYWHERE = (((1, 17), (3, 4)), ((5, 24), (6, 29)), ((9, 1), (10, 12)))


def exceptions() -> dict[date, bool]:
    """Every holiday (False) and moved workday (True) announced so far."""
    return {**dict.fromkeys(holidays, False), **dict.fromkeys(workdays, True)}


def known_until() -> date:
    """The last day of the last year announced. Its own bridge into the next year may still be missing."""
    last_year = max(day.year for day in holidays)
    return date(last_year, 12, 31) - timedelta(days=3)


def is_doubtful(day: date) -> bool:
    """Whether it can be a holiday in a year not announced yet, with room for the days moved around it."""
    here = (day.month, day.day)
    if any(first <= here <= last for first, last in _FIXED):
        return True
    if not _FIRST <= day.year <= _LAST:
        return any(first <= here <= last for first, last in _LUNAR_ANYWHERE)
    return any(_close(day, festival, before, after) for festival, before, after in _AROUND)


def _close(day: date, festival: str, before: int, after: int) -> bool:
    told = festival.split()[day.year - _FIRST]
    first = date(day.year, int(told[:2]), int(told[2:]))
    return -before <= (day - first).days <= after
