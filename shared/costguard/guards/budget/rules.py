"""What a rule of the `budget` guard says, and which period is now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from zoneinfo import ZoneInfo

from typing_extensions import assert_never

from costguard.domain.errors import InvalidInputError
from costguard.domain.money import Money, SpendScope
from costguard.estimates.period import Period, start_of
from costguard.guards.rules.common import Limits, Mode, Selector
from costguard.guards.rules.idle import SHIPPED_BOUNDS, IdleBounds

DEFAULT_ALERT_SHARES = (Decimal("0.5"), Decimal("0.8"), Decimal(1))
DEFAULT_FORECAST_SHARES = (Decimal(1),)
SHORTLY_IDLE = replace(SHIPPED_BOUNDS, lasting=timedelta(hours=1))
"""A budget that is spent waits for less than an idle machine alone; it names no signal, so all shipped bounds hold."""
_SHIPPED_LIMITS = Limits()


class PeriodKind(str, Enum):
    """How long a budget lasts before it begins anew; `DATED` does not."""

    MONTHLY = "monthly"
    QUARTERLY = "quarterly"
    YEARLY = "yearly"
    DATED = "dated"


@dataclass(frozen=True, slots=True)
class BudgetPeriod:
    """When a budget begins and ends: calendar months, quarters or years in `zone`, or from `first` to `last` day.

    `first` and `last` (both inside the period) go with `DATED` only. Quarters and years begin with January.
    """

    kind: PeriodKind = PeriodKind.MONTHLY
    zone: str = "UTC"
    first: date | None = None
    last: date | None = None


class CostBasis(str, Enum):
    """Which FOCUS cost counts: `EFFECTIVE` spreads commitments over what they pay for, `BILLED` is the invoice."""

    EFFECTIVE = "effective"
    BILLED = "billed"


@dataclass(frozen=True, slots=True)
class Counted:
    """What of a bill counts against a budget. Refunds and corrections always do."""

    basis: CostBasis = CostBasis.EFFECTIVE
    credits: bool = False
    tax: bool = False


@dataclass(frozen=True, slots=True)
class Trust:
    """How good the data must be before a budget may do more than alert.

    `bill_not_older_than` is from `complete_until` to now. `estimated_share` is how much of the spend may be accrued
    or estimated instead of billed, 0 to 1.
    """

    bill_not_older_than: timedelta = timedelta(hours=96)  # Tencent Cloud's is 80 h old at worst, read every 8
    estimated_share: Decimal = Decimal("0.30")


class StepKind(str, Enum):
    """What a budget does when a share of it is spent, from the gentlest on."""

    STOP_IDLE = "stop_idle"
    STOP_CLASSES = "stop_classes"
    FREEZE = "freeze"

    @property
    def harshness(self) -> int:
        """Its place in that order."""
        return list(StepKind).index(self)


@dataclass(frozen=True, slots=True)
class BudgetStep:
    """One step: from `at` on (a share of the budget, 1 is 100 %), until the spend of the period is below it again.

    `wait` is the grace from the delivered notice to the stop. `idle` belongs to `STOP_IDLE`: what counts as idle
    here. `classes` belongs to `STOP_CLASSES`: names of priority classes, idle or not. `freezes` belongs to `FREEZE`:
    names of launch freezes.
    """

    at: Decimal
    kind: StepKind
    wait: timedelta = timedelta(hours=4)
    idle: IdleBounds = SHORTLY_IDLE
    classes: tuple[str, ...] = ()
    freezes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """Work of one importance, by name: the policy lists classes from the least important on."""

    name: str
    selects: Selector


@dataclass(frozen=True, slots=True)
class BudgetRule:
    """One entry of `budgets:` in the policy. `digest` is a hash of everything else here.

    `tell` are addresses the notifiers know; empty means the policy's default. Shares are of `amount`, ascending.
    """

    name: str
    mode: Mode
    covers: SpendScope
    period: BudgetPeriod
    amount: Money
    alert_at: tuple[Decimal, ...] = DEFAULT_ALERT_SHARES
    forecast_alert_at: tuple[Decimal, ...] = DEFAULT_FORECAST_SHARES
    steps: tuple[BudgetStep, ...] = ()
    tell: tuple[str, ...] = ()
    counted: Counted = Counted()
    trust: Trust = Trust()
    limits: Limits = _SHIPPED_LIMITS
    surge_alert: bool = True
    digest: str = ""


_MONTHS = 12
_MONTHS_A_QUARTER = 3


def period_at(period: BudgetPeriod, now: datetime) -> Period | None:
    """The period that holds `now`; None before and after a dated one.

    Raises:
        InvalidInputError: a dated period without its two days, or with the last before the first.
    """
    today = now.astimezone(ZoneInfo(period.zone)).date()
    if period.kind is PeriodKind.MONTHLY:
        return _months(f"{today:%Y-%m}", today.year, today.month, 1, period.zone)
    if period.kind is PeriodKind.QUARTERLY:
        quarter = (today.month - 1) // _MONTHS_A_QUARTER
        first_month = quarter * _MONTHS_A_QUARTER + 1
        return _months(f"{today:%Y}-Q{quarter + 1}", today.year, first_month, _MONTHS_A_QUARTER, period.zone)
    if period.kind is PeriodKind.YEARLY:
        return _months(f"{today:%Y}", today.year, 1, _MONTHS, period.zone)
    if period.kind is PeriodKind.DATED:
        dated = _dated(period)
        return dated if dated.holds(now) else None
    assert_never(period.kind)


def period_before(period: BudgetPeriod, now: datetime) -> Period | None:
    """The one that ended last; None where none has: of a dated one, before its end.

    Raises:
        InvalidInputError: as `period_at`.
    """
    if period.kind is PeriodKind.DATED:
        dated = _dated(period)
        return dated if dated.end <= now else None
    current = period_at(period, now)
    return None if current is None else period_at(period, current.start - timedelta.resolution)


def _months(key: str, year: int, month: int, count: int, zone: str) -> Period:
    ahead = month - 1 + count
    after = date(year + ahead // _MONTHS, ahead % _MONTHS + 1, 1)
    return Period(key, start_of(date(year, month, 1), zone), start_of(after, zone), zone)


def _dated(period: BudgetPeriod) -> Period:
    if period.first is None or period.last is None or period.last < period.first:
        message = f"a dated budget needs its first and last day, in order: {period.first}, {period.last}"
        raise InvalidInputError(message)
    end = start_of(period.last + timedelta(days=1), period.zone)
    return Period(f"{period.first}..{period.last}", start_of(period.first, period.zone), end, period.zone)
