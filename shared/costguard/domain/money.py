"""Money as exact decimals that never cross currencies by accident."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_HALF_EVEN, Decimal

HOURS_PER_MONTH = Decimal(730)  # 8,760 / 12, the month of cloud price pages
_SECONDS_PER_HOUR = Decimal(3600)


@dataclass(frozen=True, slots=True)
class Money:
    """An exact amount in one currency (ISO 4217 code, FOCUS `billing_currency`)."""

    amount: Decimal
    currency: str

    def __add__(self, other: Money) -> Money:
        if self.currency != other.currency:
            message = f"cannot add {other.currency} to {self.currency}; keep one total per currency"
            raise ValueError(message)
        return Money(self.amount + other.amount, self.currency)

    def times(self, factor: Decimal | int) -> Money:
        """This amount `factor` times."""
        return Money(self.amount * factor, self.currency)

    def rounded(self, places: int = 2) -> Money:
        """For people to read; never feed a rounded amount back into a decision."""
        return Money(self.amount.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN), self.currency)

    def __str__(self) -> str:
        return f"{self.rounded().amount:,} {self.currency}"


def totals(amounts: Iterable[Money]) -> tuple[Money, ...]:
    """One sum per currency, largest first, then by currency code."""
    sums: dict[str, Decimal] = {}
    for money in amounts:
        sums[money.currency] = sums.get(money.currency, Decimal(0)) + money.amount
    ordered = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Money(amount, currency) for currency, amount in ordered)


def hours(duration: timedelta) -> Decimal:
    """A duration in exact hours, for multiplying an hourly price."""
    return (
        Decimal(duration.days * 24)
        + (Decimal(duration.seconds) + Decimal(duration.microseconds) / 1_000_000) / _SECONDS_PER_HOUR
    )


@dataclass(frozen=True, slots=True)
class HourlyRate:
    """What one running hour costs, and how we know.

    `source` is where the number is from (`policy`, `aws-pricing`, `table`), `as_of` its ISO date.
    List price: commitments and negotiated discounts are not in it.
    """

    money: Money
    source: str
    as_of: str
