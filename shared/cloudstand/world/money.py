"""Money as exact decimals of one currency, and what kinds of charges there are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from enum import Enum

HOURS_PER_MONTH = Decimal(730)  # 8,760 / 12, the month of cloud price pages


@dataclass(frozen=True, slots=True)
class Money:
    """An exact amount in one currency (ISO 4217 code)."""

    amount: Decimal
    currency: str

    def times(self, factor: Decimal | int) -> Money:
        """This amount `factor` times."""
        return Money(self.amount * factor, self.currency)

    def __str__(self) -> str:
        return f"{self.amount.quantize(Decimal('0.01'), rounding=ROUND_HALF_EVEN):,} {self.currency}"


def hours(duration: timedelta) -> Decimal:
    """A duration in exact hours."""
    seconds = Decimal(duration.seconds) + Decimal(duration.microseconds) / 1_000_000
    return Decimal(duration.days * 24) + seconds / 3600


@dataclass(frozen=True, slots=True)
class HourlyRate:
    """What one hour costs; `source` is where the number is from, `as_of` its ISO date."""

    money: Money
    source: str
    as_of: str


class ChargeCategory(str, Enum):
    """FOCUS `ChargeCategory`: refunds are `ADJUSTMENT`, vouchers `CREDIT`, terms paid up front `PURCHASE`."""

    USAGE = "usage"
    PURCHASE = "purchase"
    TAX = "tax"
    CREDIT = "credit"
    ADJUSTMENT = "adjustment"


class PricingCategory(str, Enum):
    """FOCUS `PricingCategory`: at list price, at a market price (spot), or under a commitment."""

    STANDARD = "standard"
    DYNAMIC = "dynamic"
    COMMITTED = "committed"
    OTHER = "other"
