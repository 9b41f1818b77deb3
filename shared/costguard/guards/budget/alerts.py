"""Which thresholds a budget has crossed, and which of them people are still to be told of. Pure.

A threshold is a share of an amount for one scope in one period: it is told once, whatever refunds, a new name or a
second run do. A budget whose amount changes has new ones, but for those that are the very money its people were told of
before it was raised. Where several were crossed since the last look, the highest is told and stands for those below it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import Enum

from costguard.domain.money import Money
from costguard.guards.budget.rules import BudgetRule


class AlertKind(str, Enum):
    """What crossed: what is spent, what is forecast for the period's end, or the burn its own history."""

    ACTUAL = "actual"
    FORECAST = "forecast"
    SURGE = "surge"


@dataclass(frozen=True, slots=True)
class Crossing:
    """One threshold crossed. `at` is its share of the budget, 1 for a surge; `alert_id` is the same in every run.

    `early`: it is not spent yet for sure, but is about to be before anybody looks again. `money_id` begins the ids of
    all thresholds that are the same money, whatever share of whatever amount; `old_id` is what it was known by in
    ledgers whose alerts knew the budget's name and the money, but not the share.
    """

    alert_id: str
    budget: str
    kind: AlertKind
    at: Decimal
    early: bool = False
    money_id: str = ""
    old_id: str = ""


_AGAIN = "+again"
Told = Callable[[Crossing], bool]
"""Whether everybody was told of a threshold, or of the same money before the budget was raised (see `stands_for`)."""


def crossings(
    rule: BudgetRule,
    period: str,
    certain: Money,
    forecast: Money | None,
    surge_since: datetime | None,
    soon: Money | None = None,
) -> tuple[Crossing, ...]:
    """Every threshold that is crossed now, in the period named, ascending by kind and share.

    `certain` (`Spent.certain`) and `forecast` are in the budget's currency; exactly a threshold's amount crosses it.
    `soon` is what may be spent before the next look (`Spent.soon`): it crosses thresholds of what is spent, early. A
    forecast tells of shares that are not spent yet. A surge is told once a day.
    """
    most = certain if soon is None or soon.amount < certain.amount else soon
    found = [
        replace(one, early=certain.amount < rule.amount.amount * one.at)
        for one in _crossed(rule, period, AlertKind.ACTUAL, rule.alert_at, most)
    ]
    if forecast is not None:
        ahead = [share for share in rule.forecast_alert_at if most.amount < rule.amount.amount * share]
        found += _crossed(rule, period, AlertKind.FORECAST, ahead, forecast)
    if surge_since is not None and rule.surge_alert:
        day = surge_since.date().isoformat()
        found.append(_crossing(rule, f"{period}/{day}", AlertKind.SURGE, Decimal(1)))
    return tuple(found)


def thresholds(rule: BudgetRule, period: str) -> tuple[Crossing, ...]:
    """Every threshold of what is spent and of what is forecast, crossed or not, ascending by kind and share."""
    shares = ((AlertKind.ACTUAL, rule.alert_at), (AlertKind.FORECAST, rule.forecast_alert_at))
    return tuple(_crossing(rule, period, kind, share) for kind, of in shares for share in sorted(of))


def untold(
    rule: BudgetRule, period: str, crossed: Sequence[Crossing], told: Told, again: Container[str] = ()
) -> tuple[Crossing, ...]:
    """Of each kind the highest threshold crossed, unless it or a higher one was told.

    A higher one was told where a refund has brought the spend down since: that arms nothing anew. `again` are the ids
    of early alerts that did not come true (see `fallen_back`): they stand for nothing, and are told once more when it
    is certain, and not before.
    """
    found = []
    for kind in AlertKind:
        mine = [one for one in crossed if one.kind is kind]
        for some in (mine, [one for one in mine if not one.early]):
            highest = max(some, key=lambda one: one.at, default=None)
            if highest is None or any(_stands(one, told, again) for one in _standing_for(rule, period, highest)):
                break
            armed = highest.alert_id in again
            if not (armed and highest.early):
                found.append(once_more(highest) if armed else highest)
                break
    return tuple(found)


def fallen_back(
    rule: BudgetRule, period: str, soon: Money, early: Callable[[Crossing], Iterable[str]]
) -> frozenset[str]:
    """The early alerts of what is not about to be spent any more, by id; `early` knows those of a threshold's money."""
    beyond = (
        one
        for one in thresholds(rule, period)
        if one.kind is AlertKind.ACTUAL and soon.amount < rule.amount.amount * one.at
    )
    return frozenset(alert_id for one in beyond for alert_id in early(one))


def once_more(crossing: Crossing) -> Crossing:
    """The same threshold, told again after its early alert did not come true."""
    return replace(crossing, alert_id=crossing.alert_id + _AGAIN)


def stands_for(alert_id: str, crossing: Crossing) -> bool:
    """Whether an alert of the same budget by name says what this one would: of the same money, a greater share.

    Only a budget that was raised makes it so. One that was lowered has passed more of itself than people were told.
    """
    money, _, share = alert_id.removesuffix(_AGAIN).rpartition("-")
    return money == crossing.money_id and Decimal(share) > crossing.at


def scope_id(rule: BudgetRule) -> str:
    """What a budget watches, in words that no other name changes: two are the same where they count the same spend."""
    covers = rule.covers
    lists = (None if words is None else sorted(words) for words in (covers.clouds, covers.accounts, covers.regions))
    counted = rule.counted
    parts = (*lists, list(map(list, covers.tags)), counted.basis.value, counted.credits, counted.tax)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def _stands(crossing: Crossing, told: Told, again: Container[str]) -> bool:
    return told(once_more(crossing)) or (crossing.alert_id not in again and told(crossing))


def _standing_for(rule: BudgetRule, period: str, crossing: Crossing) -> Iterator[Crossing]:
    yield crossing
    shares = rule.alert_at if crossing.kind is AlertKind.ACTUAL else rule.forecast_alert_at
    if crossing.kind is not AlertKind.SURGE:
        yield from (_crossing(rule, period, crossing.kind, share) for share in shares if share > crossing.at)


def _crossed(
    rule: BudgetRule, period: str, kind: AlertKind, shares: Sequence[Decimal], amount: Money
) -> Iterator[Crossing]:
    for share in sorted(shares):
        if amount.amount >= rule.amount.amount * share:
            yield _crossing(rule, period, kind, share)


def _crossing(rule: BudgetRule, period: str, kind: AlertKind, share: Decimal) -> Crossing:
    threshold = _plain(rule.amount.amount * share)
    of_money = (period, kind.value, threshold, rule.amount.currency)
    money_id = _id(scope_id(rule), *of_money)
    alert_id = f"{money_id}-{_plain(share)}"
    return Crossing(alert_id, rule.name, kind, share, money_id=money_id, old_id=_id(rule.name, *of_money))


def _id(*parts: str) -> str:
    return "budget-" + hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def _plain(number: Decimal) -> str:
    return format(number.normalize(), "f")
