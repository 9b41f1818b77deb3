"""A burn that leaves its own history: a new fleet at midnight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from statistics import median

from costguard.domain.money import Money
from costguard.estimates.burn import Metered, burning

WEEKS = 4
LEAST_WEEKS = 2
LEAST_HOURS = 24
_JUST_NOW = 6  # hours that are not compared with, so that a run that failed leaves others to see the surge
DEVIATIONS = Decimal(5)
FACTOR = Decimal("1.5")
FACTOR_WITH_LITTLE = Decimal(3)
FLOOR_SHARE = Decimal("0.05")
_NORMAL = Decimal("1.4826")  # makes a median absolute deviation comparable to a standard deviation
_HOUR, _DAY, _WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)
_HOURS_A_DAY = Decimal(24)
_PLACES = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Surge:
    """Evidence that the burn is out of the ordinary: money an hour now and usually, and how many times as much.

    `factor` None: usually nothing runs at all. `compared` says with what.
    """

    now: Money
    usual: Money
    factor: Decimal | None
    compared: str


def floor_of(budget: Money) -> Money:
    """The excess an hour below which nothing is a surge: what would take a day to use 5 % of the budget."""
    return budget.times(FLOOR_SHARE / _HOURS_A_DAY)


def surge(metered: Sequence[Metered], now: datetime, metered_since: datetime, floor: Money) -> Surge | None:
    """Whether what burns now leaves what burned at the same hours of the past weeks; None where it does not.

    `metered_since`: from when on metering is whole, so that nothing metered means nothing ran. With less than two
    weeks of it the burn must be three times the most of the past day, its last six hours left out.

    Raises:
        ValueError: something is in another currency than `floor`.
    """
    currency = floor.currency
    burn = burning(metered, now).of(currency).amount
    weeks = min((now - metered_since) // _WEEK, WEEKS)
    if weeks >= LEAST_WEEKS:
        moments = [now - week * _WEEK + hour * _HOUR for week in range(1, weeks + 1) for hour in (-1, 0, 1)]
        past = [burning(metered, moment).of(currency).amount for moment in moments]
        usual = median(past)
        spread = median(abs(amount - usual) for amount in past) * _NORMAL
        bound = max(usual + DEVIATIONS * spread, max(past) * FACTOR)
        compared = f"the same hours of the past {weeks} weeks"
    elif now - metered_since >= LEAST_HOURS * _HOUR:
        hours_known = range(LEAST_HOURS, _JUST_NOW, -1)
        usual = max(burning(metered, now - hour * _HOUR).of(currency).amount for hour in hours_known)
        bound = usual * FACTOR_WITH_LITTLE
        compared = f"the past {LEAST_HOURS} hours"
    else:
        return None
    if burn <= bound or burn - usual < floor.amount:
        return None
    factor = (burn / usual).quantize(_PLACES) if usual else None
    return Surge(Money(burn, currency), Money(usual, currency), factor, compared)
