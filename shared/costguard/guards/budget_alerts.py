"""Which thresholds a budget has crossed, and which of them people are still to be told of. Pure.

A threshold is an amount of money in one period: it is told once, whatever refunds or a second run do, and a budget
that is raised has new ones. Where several were crossed since the last look, the highest is told and stands for those
below it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import Enum

from costguard.domain.money import Money
from costguard.guards.budget_rules import BudgetRule


class AlertKind(str, Enum):
    """What crossed: what is spent, what is forecast for the period's end, or the burn its own history."""

    ACTUAL = "actual"
    FORECAST = "forecast"
    SURGE = "surge"


@dataclass(frozen=True, slots=True)
class Crossing:
    """One threshold crossed. `at` is its share of the budget, 1 for a surge; `alert_id` is the same in every run.

    `early`: it is not spent yet for sure, but is about to be before anybody looks again.
    """

    alert_id: str
    budget: str
    kind: AlertKind
    at: Decimal
    early: bool = False


def crossings(
    rule: BudgetRule,
    period: str,
    spent: Money,
    forecast: Money | None,
    surge_since: datetime | None,
    soon: Money | None = None,
) -> tuple[Crossing, ...]:
    """Every threshold that is crossed now, in the period named, ascending by kind and share.

    `spent` and `forecast` are in the budget's currency; exactly a threshold's amount crosses it. `soon` is what may be
    spent before the next look (`Spent.soon`): it crosses thresholds of what is spent, early. A forecast tells of shares
    that are not spent yet. A surge is told once a day.
    """
    most = spent if soon is None or soon.amount < spent.amount else soon
    found = [
        replace(one, early=spent.amount < rule.amount.amount * one.at)
        for one in _crossed(rule, period, AlertKind.ACTUAL, rule.alert_at, most)
    ]
    if forecast is not None:
        ahead = [share for share in rule.forecast_alert_at if most.amount < rule.amount.amount * share]
        found += _crossed(rule, period, AlertKind.FORECAST, ahead, forecast)
    if surge_since is not None and rule.surge_alert:
        day = surge_since.date().isoformat()
        found.append(
            Crossing(_id(rule, f"{period}/{day}", AlertKind.SURGE, Decimal(1)), rule.name, AlertKind.SURGE, Decimal(1))
        )
    return tuple(found)


def thresholds(rule: BudgetRule, period: str) -> tuple[Crossing, ...]:
    """Every threshold of what is spent and of what is forecast, crossed or not, ascending by kind and share."""
    shares = ((AlertKind.ACTUAL, rule.alert_at), (AlertKind.FORECAST, rule.forecast_alert_at))
    return tuple(
        Crossing(_id(rule, period, kind, share), rule.name, kind, share) for kind, of in shares for share in sorted(of)
    )


def untold(
    rule: BudgetRule, period: str, crossed: Sequence[Crossing], told: Callable[[str], bool]
) -> tuple[Crossing, ...]:
    """Of each kind the highest threshold crossed, unless it or a higher one was told; `told` knows alerts by id.

    A higher one was told where a refund has brought the spend down since: that arms nothing anew.
    """
    found = []
    for kind in AlertKind:
        highest = max((one for one in crossed if one.kind is kind), key=lambda one: one.at, default=None)
        if highest is not None and not any(told(known) for known in _standing_for(rule, period, highest)):
            found.append(highest)
    return tuple(found)


def _standing_for(rule: BudgetRule, period: str, crossing: Crossing) -> Iterator[str]:
    yield crossing.alert_id
    shares = rule.alert_at if crossing.kind is AlertKind.ACTUAL else rule.forecast_alert_at
    if crossing.kind is not AlertKind.SURGE:
        yield from (_id(rule, period, crossing.kind, share) for share in shares if share > crossing.at)


def _crossed(
    rule: BudgetRule, period: str, kind: AlertKind, shares: Sequence[Decimal], amount: Money
) -> Iterator[Crossing]:
    for share in sorted(shares):
        if amount.amount >= rule.amount.amount * share:
            yield Crossing(_id(rule, period, kind, share), rule.name, kind, share)


def _id(rule: BudgetRule, period: str, kind: AlertKind, share: Decimal) -> str:
    threshold = format((rule.amount.amount * share).normalize(), "f")
    parts = (rule.name, period, kind.value, threshold, rule.amount.currency)
    return "budget-" + hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]
