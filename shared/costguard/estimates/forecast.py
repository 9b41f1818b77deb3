"""What a period will have cost at its end, and between which bounds, at the confidence that was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from statistics import fmean

from costguard.domain.money import Money, hours
from costguard.estimates.billed import DailySpend
from costguard.estimates.commitments import Commitment
from costguard.estimates.period import Period, day_of
from costguard.estimates.seasonal import (
    LEAST_TO_FIT,
    Tries,
    ahead,
    begun,
    half_width,
    held,
    last_month,
    last_week,
    level,
    try_on_past,
)
from costguard.estimates.spent import MOST_DAYS as MOST_RATE_DAYS
from costguard.estimates.spent import Spent

LAST_WEEK, SEASONAL, LAST_MONTH = "week shape × last 7 days", "week shape × level", "week shape × last 28 days"
RUN_RATE = "run rate"
LEVELS: Mapping[str, Callable[[Sequence[float]], float]] = {
    LAST_WEEK: last_week,  # first: of the three the least off on real bills, and as good as any on other series
    SEASONAL: level,
    LAST_MONTH: last_month,
}
_BETTER_BY = 0.2  # of the first's misses on the scope's own past: by 0 and 0.1 the choice was worse than none
_TRIES_WITHIN = 2  # a horizon at most this part of the past: tries overlap, but are of weeks, as what is asked for
LEAST_DAYS = LEAST_TO_FIT + 7  # a week of tries
MOST_DAYS = 120
FEWEST_DAYS = MOST_RATE_DAYS  # a week of what no meter counts: of less nobody can tell what will go on
OLDEST = timedelta(days=14)  # a history that ended before says nothing of now
_SURGE_WEIGHT = 0.2  # of a burn beyond the past in a day to come; best of 0 to 1 on real hourly series
_UNTRIED_LOW, _UNTRIED_HIGH = 0.5, 2.0  # of what is to come, where nothing could be tried on the past
_HOURS_A_DAY = 24
_ONE_DAY = timedelta(days=1)
_PLACES = 4  # of a unit of money, where floats become decimals again


@dataclass(frozen=True, slots=True)
class Forecast:
    """The whole period's spend, between `low` and `high` with 80 % confidence where it could be tried on the past.

    `at_this_burn` is what it would be if this hour's burn went on. `backtest_error` is the mean miss of the method on
    the scope's own past, as a share of what came; None where there was no past to try it on, and then the bounds are
    half and twice of what is to come, at no measured confidence. `tested` is how many times it was tried, overlapping,
    and `held` how many of these would have lain within the bounds as they were known then.
    `commitments` are what is known to fall due in the period; what only may is in `high` alone.
    """

    low: Money
    expected: Money
    high: Money
    at_this_burn: Money
    method: str
    backtest_error: Decimal | None = None
    tested: int = 0
    held: int = 0
    commitments: tuple[Commitment, ...] = ()

    @property
    def unknown(self) -> tuple[Commitment, ...]:
        """What of it costs nobody knows what, and so is in no figure here."""
        return tuple(one for one in self.commitments if one.unknown)


@dataclass(frozen=True, slots=True)
class _Ahead:
    """What is still to come, by the methods of this module."""

    expected: float
    low: float
    high: float
    method: str
    error: float | None = None
    tested: int = 0
    held: int = 0


def forecast(
    daily: Sequence[DailySpend],
    spent: Spent,
    burn_per_hour: Money,
    commitments: Sequence[Commitment],
    period: Period,
    now: datetime,
    *,
    surging: bool = False,
    new: bool = False,
) -> Forecast | None:
    """What the period will have cost; None outside of the period, and of a scope of which too few days are known.

    `daily`: days the bill holds in full, in order, in the period's zone, of what goes on (no refunds, credits,
    purchases); 90 of them are good, more than 120 are not looked at. `burn_per_hour`: what is spent an hour now,
    metered machines and the run rate of the rest. `commitments` are not in what was spent yet. `surging`: that burn
    leaves its own history (see `surge`), so the history alone says too little of what is to come. `new`: what no meter
    counts began less than a week ago; where nothing else is known of a week either, there is no forecast.

    Raises:
        ValueError: something is in another currency than what was spent.
    """
    if not period.holds(now):
        return None
    total = spent.total
    for money in (burn_per_hour, *(day.spent for day in daily)):
        if money.currency != total.currency:
            message = f"cannot forecast {total.currency} from {money.currency}; convert by dated rates first"
            raise ValueError(message)
    due = tuple(one for one in commitments if one.due < period.end)
    nothing = Money(Decimal(0), total.currency)
    sure = sum((one.money for one in due if one.sure and one.money is not None), total)
    perhaps = sum((one.money for one in due if not one.sure and one.money is not None), nothing)
    past = _unbroken(daily, now)
    if new and len(past) < FEWEST_DAYS:
        return None
    coming = _coming(past, spent, float(burn_per_hour.amount) if surging else None, period, now)
    if coming is None:
        coming = _run_rate(float(burn_per_hour.amount), period, now)
    return Forecast(
        low=_plus(sure, coming.low),
        expected=_plus(sure, coming.expected),
        high=_plus(sure + perhaps, coming.high),
        at_this_burn=sure + burn_per_hour.times(period.hours_left(now)),
        method=coming.method,
        backtest_error=None if coming.error is None else Decimal(str(round(coming.error, _PLACES))),
        tested=coming.tested,
        held=coming.held,
        commitments=due,
    )


def _run_rate(burn: float, period: Period, now: datetime) -> _Ahead:
    going_on = max(burn, 0.0) * float(period.hours_left(now))
    return _Ahead(going_on, going_on * _UNTRIED_LOW, going_on * _UNTRIED_HIGH, RUN_RATE)


def _coming(
    history: Sequence[DailySpend], spent: Spent, surge: float | None, period: Period, now: datetime
) -> _Ahead | None:
    """None where the past is too short to learn from; `surge` is a burn an hour that the past has not seen."""
    past = [float(day.spent.amount) for day in history]
    horizon = max((period.days[-1].day - history[-1].day).days, 1) if history else 0
    best = _best(past, horizon) if len(past) >= LEAST_DAYS else None
    if best is None:
        return None
    method, tries = best
    left = float(period.hours_left(now))
    days = [(day, float(hours(day.end - max(day.start, now)))) for day in period.days if day.end > now]
    first = history[-1].day + _ONE_DAY
    a_day = ahead(past, horizon, *_lately(spent, first, period, now), level_of=LEVELS[method])
    expected = sum(a_day[max((day.day - first).days, 0)] * length / _HOURS_A_DAY for day, length in days)
    high = 0.0
    if surge is not None:
        high = max(surge, 0.0) * left  # credits make a burn negative, and take nothing off what is due
        expected = (1 - _SURGE_WEIGHT) * expected + _SURGE_WEIGHT * high
    spread = half_width(tries.shares, tries.days, horizon) * max(expected, fmean(past) * left / _HOURS_A_DAY)
    return _Ahead(
        expected,
        max(expected - spread, 0.0),
        max(expected + spread, high),
        method,
        tries.mean_error,
        len(tries.shares),
        held(tries.shares, tries.days),
    )


def _best(past: Sequence[float], days: int) -> tuple[str, Tries] | None:
    """The level that missed least on this past, with its tries; not the first only where it is clearly better."""
    tried = {
        name: try_on_past(past, days, partial(ahead, level_of=level_of), _TRIES_WITHIN)
        for name, level_of in LEVELS.items()
    }
    found = [(name, tries) for name, tries in tried.items() if tries is not None]
    if not found:
        return None
    missed = {name: sum(tries.misses) for name, tries in found}
    bar = missed[LAST_WEEK] * (1 - _BETTER_BY)
    return min(found, key=lambda one: bar if one[0] == LAST_WEEK else missed[one[0]])


def _lately(spent: Spent, first: date, period: Period, now: datetime) -> tuple[Sequence[int], float]:
    """The whole days no bill speaks of yet, counted from `first`, and what one costs in the mean.

    A bill that is late does not make the level old.
    """
    if spent.unbilled_per_hour is None or not spent.rest_is_known:
        return (), 0.0
    count = min((now - max(spent.complete_until, period.start)) // _ONE_DAY, OLDEST // _ONE_DAY)
    today = (day_of(now, period.zone).day - first).days
    return range(max(today - count, 0), today), float(spent.unbilled_per_hour.amount) * _HOURS_A_DAY


def _unbroken(daily: Sequence[DailySpend], now: datetime) -> Sequence[DailySpend]:
    """The days up to the last without a hole, since anything was spent; none where the last is long ago."""
    if not daily or now.date() - daily[-1].day > OLDEST:
        return ()
    first = len(daily) - 1
    while first > 0 and daily[first].day - daily[first - 1].day == _ONE_DAY:
        first -= 1
    unbroken = daily[first:]
    if not any(day.spent.amount for day in unbroken):
        return ()  # days on which nothing was ever charged are no past of what runs now
    return unbroken[begun([float(day.spent.amount) for day in unbroken]) :][-MOST_DAYS:]


def _plus(sure: Money, coming: float) -> Money:
    return sure + Money(Decimal(str(round(coming, _PLACES))), sure.currency)
