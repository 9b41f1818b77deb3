"""NEVER rule 14: a threshold is told once in a period, whatever happens to the spend, and never lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import usd

from costguard.domain.spend import SpendScope
from costguard.guards.budget_alerts import AlertKind, Crossing, crossings, untold
from costguard.guards.budget_rules import BudgetPeriod, BudgetRule
from costguard.guards.rules import Mode

MONTH = "2026-11"
NOON = datetime(2026, 11, 7, 12, tzinfo=timezone.utc)


def budget(**changes: Any) -> BudgetRule:
    return replace(BudgetRule("research", Mode.OBSERVE, SpendScope(), BudgetPeriod(), usd("5000")), **changes)


def crossed(spent: str, forecast: str | None = None, rule: BudgetRule | None = None) -> tuple[Crossing, ...]:
    ahead = None if forecast is None else usd(forecast)
    return crossings(rule or budget(), MONTH, usd(spent), ahead, None)


def shares(found: tuple[Crossing, ...]) -> list[tuple[str, str]]:
    return [(one.kind.value, str(one.at)) for one in found]


def told_of(*spends: str) -> tuple[list[Crossing], set[str]]:
    """What is told over several looks, each at this much spent."""
    told: set[str] = set()
    alerts: list[Crossing] = []
    for spent in spends:
        new = untold(budget(), MONTH, crossed(spent), told.__contains__)
        alerts.extend(new)
        told.update(one.alert_id for one in new)
    return alerts, told


@pytest.mark.parametrize(
    ("spent", "expected"),
    [
        ("2499.99", []),
        ("2500.00", ["0.5"]),
        ("3999.999999", ["0.5"]),
        ("4000", ["0.5", "0.8"]),
        ("5000", ["0.5", "0.8", "1"]),
    ],
)
def test_exactly_a_share_crosses_it(spent: str, expected: list[str]) -> None:
    assert [share for _, share in shares(crossed(spent))] == expected


def test_each_threshold_is_told_once() -> None:
    alerts, _ = told_of("2600", "2700", "4100", "4200", "5100", "5200")
    assert [str(one.at) for one in alerts] == ["0.5", "0.8", "1"]


def test_of_several_crossed_at_once_the_highest_is_told_for_all() -> None:
    alerts, _ = told_of("5100", "5100")
    assert [str(one.at) for one in alerts] == ["1"]


def test_a_refund_arms_nothing_anew() -> None:
    alerts, _ = told_of("4100", "2600", "1000", "4100")
    assert [str(one.at) for one in alerts] == ["0.8"]


def test_a_new_period_has_its_own_thresholds() -> None:
    _, told = told_of("5100")
    december = crossings(budget(), "2026-12", usd("2600"), None, None)
    assert len(untold(budget(), "2026-12", december, told.__contains__)) == 1


def test_a_raised_budget_has_new_thresholds_and_an_untouched_one_has_not() -> None:
    _, told = told_of("5100")
    raised = budget(amount=usd("10000"))
    found = crossings(raised, MONTH, usd("8100"), None, None)
    assert [str(one.at) for one in untold(raised, MONTH, found, told.__contains__)] == ["0.8"]


def test_a_forecast_is_told_apart_and_only_of_what_is_not_spent_yet() -> None:
    assert ("forecast", "1") in shares(crossed("4100", "5200"))
    assert ("forecast", "1") not in shares(crossed("5100", "6200"))


def test_a_surge_is_told_once_a_day_and_only_if_asked_for() -> None:
    found = crossings(budget(), MONTH, usd("10"), None, NOON)
    assert shares(found) == [("surge", "1")]
    later = crossings(budget(), MONTH, usd("10"), None, NOON.replace(hour=18))
    assert found == later
    assert crossings(budget(), MONTH, usd("10"), None, NOON.replace(day=8)) != found
    assert crossings(budget(surge_alert=False), MONTH, usd("10"), None, NOON) == ()


@given(st.lists(st.decimals(0, 9000, places=2), min_size=1, max_size=30))
def test_whatever_the_spend_does_the_highest_threshold_ever_crossed_is_told_and_none_twice(
    spends: list[Decimal],
) -> None:
    alerts, _ = told_of(*map(str, spends))
    ids = [one.alert_id for one in alerts]
    assert len(ids) == len(set(ids))
    reached = [share for share in budget().alert_at if max(spends) >= 5000 * share]
    assert [one.at for one in alerts if one.kind is AlertKind.ACTUAL][-1:] == reached[-1:]


def test_what_is_about_to_be_spent_is_told_early_and_once() -> None:
    """79.9 % at this look, and 80.2 % before the next one."""
    early = crossings(budget(), MONTH, usd("3995"), None, None, soon=usd("4010"))
    assert [(str(one.at), one.early) for one in early] == [("0.5", False), ("0.8", True)]
    told = {one.alert_id for one in untold(budget(), MONTH, early, lambda _: False)}
    later = crossings(budget(), MONTH, usd("4020"), None, None, soon=usd("4040"))
    assert [one.early for one in later] == [False, False]
    assert untold(budget(), MONTH, later, told.__contains__) == ()


def test_a_share_told_early_is_not_forecast_as_well() -> None:
    found = crossings(budget(), MONTH, usd("4995"), usd("9000"), None, soon=usd("5001"))
    assert [one.kind for one in found if one.at == 1] == [AlertKind.ACTUAL]
