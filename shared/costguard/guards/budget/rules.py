"""What a rule of the `budget` guard says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum

from costguard.domain.money import Money
from costguard.domain.spend import SpendScope
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
