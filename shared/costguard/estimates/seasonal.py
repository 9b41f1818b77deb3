"""Days ahead from days behind: a level, the shape of the week, and how far such forecasts were off. In floats.

Which way won on real series, and by how much, stands in `tests/benchmarks/README.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, median

WEEK = 7
_SHAPE_WEEKS = 4
LEAST_FOR_SHAPE = 3 * WEEK  # of two weeks a median is a mean, and one holiday makes a weekday
_LEAST_SHAPE = 0.25  # of a mean day: what little a weekday costs, divided by its share, says nothing of the level
_SMOOTHING = 0.3  # best of 0.1, 0.3 and 0.5 on the real series
_LEVEL_DAYS = 14
LEAST_TO_FIT = 14
_TRIES_WITHIN = 4  # a horizon at most this part of the past, so that the tries do not all overlap


@dataclass(frozen=True, slots=True)
class Tries:
    """Forecasts of `days` days each, from every day of a series' own past that has enough before and after it.

    `misses` and `came` are money; `shares` are the misses as shares of the forecast, or of the mean of the series,
    where that is more.
    """

    days: int
    misses: tuple[float, ...]
    came: tuple[float, ...]
    shares: tuple[float, ...]

    @property
    def mean_error(self) -> float:
        """The sum of misses over the sum of what came."""
        total = sum(self.came)
        return sum(self.misses) / total if total > 0 else 0.0


@dataclass(frozen=True, slots=True)
class SeriesBackTest:
    """How the method did on the series' own past.

    `width` is how far four of five forecasts were off at most, as a share of the forecast (or of the mean of the
    series, where that is more), for the horizon asked for.
    """

    tries: int
    mean_error: float
    width: float


def begun(history: Sequence[float]) -> int:
    """The first day that tells what a day costs: what began lately is not cheaper for the days before it.

    The day it began on is a part of one, and counts only where there is none after it. 0 where nothing ever was.
    """
    first = next((place for place, value in enumerate(history) if value), 0)
    return first + 1 if 0 < first < len(history) - 1 else first


def level(history: Sequence[float]) -> float:
    """What a day costs now: the mean of a fast and a slow answer, smoothing and the last two weeks' mean."""
    smoothed = history[0]
    for value in history[1:]:
        smoothed += _SMOOTHING * (value - smoothed)
    return (smoothed + fmean(history[-_LEVEL_DAYS:])) / 2


def week_shape(history: Sequence[float]) -> tuple[float, ...]:
    """How each day of a week compares with the mean one; the first is the weekday that comes after the last day given.

    All 1 with less than three weeks, or where most weeks were empty. Medians: one odd day makes no weekday.
    """
    weeks = min(len(history) // WEEK, _SHAPE_WEEKS)
    if weeks < LEAST_FOR_SHAPE // WEEK:
        return (1.0,) * WEEK
    return _shape_of(tuple(history[-weeks * WEEK :]))


@lru_cache(maxsize=4096)  # trying a method on the past asks for the shape of each of its days over and over
def _shape_of(last: tuple[float, ...]) -> tuple[float, ...]:
    ratios: list[list[float]] = [[] for _ in range(WEEK)]
    for start in range(0, len(last), WEEK):
        week = last[start : start + WEEK]
        mean = fmean(week)
        for place, value in enumerate(week):
            ratios[place].append(value / mean if mean > 0 else 1.0)
    medians = [max(median(of_place), 0.0) for of_place in ratios]  # refunds are no weekday
    mean = fmean(medians)
    return tuple(value / mean for value in medians) if mean > 0 else (1.0,) * WEEK


def last_week(history: Sequence[float]) -> float:
    """What a day costs now: the mean of the last seven. It follows a step within a week."""
    return fmean(history[-WEEK:])


def last_month(history: Sequence[float]) -> float:
    """What a day costs now: the mean of the last four weeks. Slow, and right where odd days mean nothing."""
    return fmean(history[-4 * WEEK :])


def ahead(
    history: Sequence[float],
    days: int,
    newer: Sequence[int] = (),
    newer_mean: float = 0.0,
    *,
    level_of: Callable[[Sequence[float]], float] = level,
) -> list[float]:
    """What each of the `days` after the last of the history is expected to cost; never less than nothing.

    `newer` are later days (0 is the first after the history) of which only the mean is known: they move the level.
    Weekdays on which next to nothing runs do not, else one night of work there would be a fleet.
    """
    shape = week_shape(history)
    flat = [
        value / shape[place]
        for place, value in zip(_places(len(history)), history, strict=True)
        if shape[place] >= _LEAST_SHAPE
    ]
    usual = fmean(shape[day % WEEK] for day in newer) if newer else 0.0
    lately = (newer_mean / usual,) * len(newer) if usual >= _LEAST_SHAPE else ()
    a_day = max(level_of([*flat, *lately]), 0.0)
    return [a_day * shape[day % WEEK] for day in range(days)]


def _places(count: int) -> list[int]:
    """Which place in `week_shape` each of the last `count` days has."""
    return [(place - count) % WEEK for place in range(count)]


def steady(history: Sequence[float], days: int) -> list[float]:
    """The same by the mean of the last seven days alone: for a day or two ahead, and easy to check by hand."""
    a_day = fmean(history[-WEEK:])
    shape = week_shape(history)
    return [a_day * shape[day % WEEK] for day in range(days)]


def try_on_past(
    history: Sequence[float], days: int, method: Callable[[Sequence[float], int], Sequence[float]], within: int
) -> Tries | None:
    """Forecasts from every day of the past that has enough before it and after it; None where there is none.

    They are of `days` days, or of the `within`th part of the past that is not needed to fit the first, if that is less.
    """
    spare = len(history) - LEAST_TO_FIT
    if spare < 1 or days < 1:
        return None
    tried = max(1, min(days, spare // within))
    usual = fmean(history)
    misses: list[float] = []
    came: list[float] = []
    shares: list[float] = []
    for origin in range(LEAST_TO_FIT, len(history) - tried + 1):
        expected = sum(method(history[:origin], tried))
        real = sum(history[origin : origin + tried])
        misses.append(abs(real - expected))
        came.append(real)
        yardstick = max(expected, usual * tried)
        shares.append(misses[-1] / yardstick if yardstick > 0 else 0.0)
    return Tries(tried, tuple(misses), tuple(came), tuple(shares))


def back_test(
    history: Sequence[float], days: int, method: Callable[[Sequence[float], int], Sequence[float]] = ahead
) -> SeriesBackTest | None:
    """How a method for a few days ahead did on the past; None where there is too little of it.

    With little past the days ahead tried are fewer, and what they were off by grows with the root of the time, as a
    level that wanders does. The fewer tries do not overlap, the wider the answer.
    """
    tries = try_on_past(history, days, method, _TRIES_WITHIN)
    if tries is None:
        return None
    apart = max(1.0, len(tries.shares) / tries.days)
    width = quantile(tries.shares, SHARE) * math.sqrt(days / tries.days) * (1 + 0.5 / apart)
    return SeriesBackTest(len(tries.shares), tries.mean_error, width)


SHARE = 0.8
FLOOR = 0.04  # of what is to come, times the root of the days it takes; see `half_width`


def quantile(values: Sequence[float], share: float) -> float:
    """Linear between the two nearest; the values need no order."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def half_width(misses: Sequence[float], tried: int, days: int) -> float:
    """Half of the 80 % interval, as a share of what `days` days are forecast to cost.

    `misses` are shares too, of forecasts of `tried` days each on the scope's own past, in order. It grows with the root
    of the time, as a level that wanders does.

    The floor is what the past does not show: steady spend takes a step. Of a real bill by application, those whose own
    past had promised ± 2 % missed by 9 to 49 % in one month of five, as much as those that had promised ± 20 %. By
    4 % of one day's cost, and with 63 days of past, the interval held 78 to 80 % of months of half of the applications,
    on which it was chosen, and 76 to 81 % of the other half, which without a floor it held 74 % of; 84 to 95 % of two
    families of other origin, and 72 to 81 % of noisy ones that are no spend. See `tests/benchmarks/README.md`.
    A floor as a share is also what makes totals safe: however many parts a budget adds up, and however their own
    misses cancel out, it is not narrower than a shock that moves all of them by the floor, as a new price does.
    To take the largest of few tries for their 80 % quantile did not hold more steps, and made noisy series wider.
    """
    return max(quantile(misses, SHARE) / math.sqrt(tried), FLOOR) * math.sqrt(days)


def held(misses: Sequence[float], tried: int) -> int:
    """How many of the tries lay within the interval, as it would have been by the tries that were over before each."""
    return sum(
        miss <= half_width(misses[: max(place - tried + 1, 0)] or (0.0,), tried, tried)
        for place, miss in enumerate(misses)
    )
