"""Money of one currency in another, by the dated rates of the policy; never by a rate nobody gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from costguard.domain.money import Money


@dataclass(frozen=True, slots=True)
class ExchangeRate:
    """What one unit of `base` is worth in `quote` from the day `since` on, until a later rate of the same pair."""

    base: str
    quote: str
    rate: Decimal
    since: date


def converted(money: Money, currency: str, on: date, rates: Sequence[ExchangeRate]) -> Money | None:
    """`money` in `currency` by the rate that held on that day; None where there was none.

    A pair is used in either direction; nothing is converted over a third currency.
    """
    if money.currency == currency:
        return money
    latest = rate_on(money.currency, currency, on, rates)
    if latest is None:
        return None
    factor = latest.rate if latest.base == money.currency else 1 / latest.rate
    return Money(money.amount * factor, currency)


def rate_on(one: str, other: str, on: date, rates: Sequence[ExchangeRate]) -> ExchangeRate | None:
    """The rate between two currencies, in either direction, that held on that day."""
    held = [rate for rate in rates if rate.since <= on and {rate.base, rate.quote} == {one, other}]
    return max(held, key=lambda rate: rate.since, default=None)
