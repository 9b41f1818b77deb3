"""What Cost Explorer answers, taken apart: amounts by day and group."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal

from costguard.domain.money import Money
from costguard.providers.kit.core.fields import Fields, cut_short, named, part, parts

COSTS = "ce:GetCostAndUsage"
DAY = timedelta(days=1)
_DATE = "%Y-%m-%d"
_AMOUNT = re.compile(r"-?\d{1,15}(?:\.\d{1,40})?(?:[eE][-+]?\d{1,2})?", re.ASCII)
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Costs:
    """What one group of one day was charged."""

    billed: Money
    effective: Money

    def __add__(self, other: Costs) -> Costs:
        return Costs(self.billed + other.billed, self.effective + other.effective)

    def less(self, other: Costs) -> Costs:
        """What is left without `other`."""
        return Costs(self.billed + other.billed.times(-1), self.effective + other.effective.times(-1))

    @property
    def size(self) -> Decimal:
        """How much there is of it, of whatever sign."""
        return abs(self.billed.amount) + abs(self.effective.amount)


Grouped = Mapping[tuple[datetime, str, str], Costs]
"""Costs by day and the two keys asked for; a group of no cost is there as well."""


def costs_by_day(
    results: Iterable[Fields], since: datetime, until: datetime, metrics: tuple[str, str], currency: str
) -> Grouped:
    """What `ResultsByTime` of all pages says; `metrics` name the billed and the effective cost.

    Pages may cut a day: its groups go on in the next. A figure without a unit is in `currency` if it is zero.

    Raises:
        TruncatedReadError: a day is missing, or a group came twice.
    """
    found: dict[tuple[datetime, str, str], Costs] = {}
    days: set[datetime] = set()
    for result in results:
        period = part(result, "TimePeriod")
        day = _day(named(period, "Start"))
        if _day(named(period, "End")) != day + DAY or not since <= day < until:
            message = f"{day:{_DATE}} is not a day that was asked for"
            raise ValueError(message)
        days.add(day)
        for group in parts(result, "Groups"):
            first, second = _keys(group)
            costs = _costs(part(group, "Metrics"), metrics, currency)
            if found.setdefault((day, first, second), costs) is not costs:
                raise cut_short(COSTS, f"{day:{_DATE}} has a group twice", "Contradiction")
    missing = (until - since) // DAY - len(days)
    if missing:
        raise cut_short(COSTS, f"{missing} of the days asked for are not in the answer", "MissingDays")
    return found


def _day(told: str) -> datetime:
    return datetime.strptime(told[:10], _DATE).replace(tzinfo=timezone.utc)


def _keys(group: Fields) -> tuple[str, str]:
    keys = group.get("Keys")
    if not isinstance(keys, list) or len(keys) != 2 or not all(isinstance(key, str) for key in keys):  # noqa: PLR2004
        message = "Keys are not the two that were asked for"
        raise ValueError(message)
    return keys[0], keys[1]


def _costs(told: Fields, metrics: tuple[str, str], currency: str) -> Costs:
    billed, effective = (money_of(part(told, metric), currency) for metric in metrics)
    if billed.currency != effective.currency:
        message = "two currencies in one group"
        raise ValueError(message)
    return Costs(billed, effective)


def money_of(told: Fields, currency: str = "") -> Money:
    """`Amount` and `Unit`, exactly; where there is no unit, a zero is in `currency`."""
    amount, unit = named(told, "Amount"), named(told, "Unit")
    if not _AMOUNT.fullmatch(amount):
        message = "Amount is no number"
        raise ValueError(message)
    value = Decimal(amount)
    if not _CURRENCY.fullmatch(unit):
        if value or not currency:
            message = "Unit is no currency"
            raise ValueError(message)
        unit = currency
    return Money(value, unit)
