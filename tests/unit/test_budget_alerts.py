"""NEVER rule 14: a threshold is told once in a period, whatever happens to spend, name or amount, and never lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import usd

from costguard.domain.money import SpendScope
from costguard.guards.budget.alerts import AlertKind, Crossing, crossings, fallen_back, stands_for, thresholds, untold
from costguard.guards.budget.rules import BudgetPeriod, BudgetRule, CostBasis, Counted
from costguard.guards.rules.common import Mode

MONTH = "2026-11"
NOON = datetime(2026, 11, 7, 12, tzinfo=timezone.utc)


def budget(**changes: Any) -> BudgetRule:
    return replace(BudgetRule("research", Mode.OBSERVE, SpendScope(), BudgetPeriod(), usd("5000")), **changes)


def crossed(spent: str, forecast: str | None = None, rule: BudgetRule | None = None) -> tuple[Crossing, ...]:
    ahead = None if forecast is None else usd(forecast)
    return crossings(rule or budget(), MONTH, usd(spent), ahead, None)


def shares(found: tuple[Crossing, ...]) -> list[tuple[str, str]]:
    return [(one.kind.value, str(one.at)) for one in found]


class Heard:
    """What people were told so far."""

    def __init__(self) -> None:
        self.alerts: list[Crossing] = []

    def __call__(self, crossing: Crossing) -> bool:
        return any(one.alert_id == crossing.alert_id or stands_for(one.alert_id, crossing) for one in self.alerts)

    def at(self, spent: str, rule: BudgetRule | None = None, period: str = MONTH) -> list[str]:
        """The shares that are told at this much spent."""
        under = rule or budget()
        new = untold(under, period, crossings(under, period, usd(spent), None, None), self)
        self.alerts.extend(new)
        return [str(one.at) for one in new]


def told_of(*spends: str) -> tuple[list[Crossing], Heard]:
    """What is told over several looks, each at this much spent."""
    heard = Heard()
    for spent in spends:
        heard.at(spent)
    return heard.alerts, heard


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
    assert len(untold(budget(), "2026-12", december, told)) == 1


def test_a_raised_budget_has_new_thresholds_and_an_untouched_one_has_not() -> None:
    _, told = told_of("5100")
    raised = budget(amount=usd("10000"))
    found = crossings(raised, MONTH, usd("8100"), None, None)
    assert [str(one.at) for one in untold(raised, MONTH, found, told)] == ["0.8"]


def test_a_lowered_budget_tells_of_the_share_it_has_passed_though_the_money_is_what_was_told_of() -> None:
    """50 % of 5,000 and 100 % of 2,500 are the same money, and not the same news."""
    heard = Heard()
    assert heard.at("2600") == ["0.5"]
    assert heard.at("2700", budget(amount=usd("2500"))) == ["1"]


@pytest.mark.parametrize("amount", ["1000", "2500", "3200", "4999"])
def test_whatever_a_budget_is_lowered_to_its_highest_share_is_told(amount: str) -> None:
    heard = Heard()
    heard.at("4100")
    assert heard.at("5100", budget(amount=usd(amount))) == ["1"]


def test_a_raise_tells_nothing_anew_of_money_that_was_told_of() -> None:
    heard = Heard()
    assert heard.at("5100") == ["1"]
    assert heard.at("5200", budget(amount=usd("10000"))) == []  # 50 % of it is the same 5,000
    assert heard.at("8000", budget(amount=usd("10000"))) == ["0.8"]


def test_a_budget_that_is_raised_and_put_back_has_told_what_it_told() -> None:
    heard = Heard()
    assert heard.at("2600") == ["0.5"]
    heard.at("2600", budget(amount=usd("10000")))
    assert heard.at("2600") == []


def test_another_name_tells_nothing_anew_and_another_scope_all_of_it() -> None:
    heard = Heard()
    heard.at("4100")
    assert heard.at("4200", budget(name="vision")) == []
    assert heard.at("4200", budget(covers=SpendScope(clouds=("aws",)))) == ["0.8"]
    assert heard.at("4200", budget(counted=Counted(CostBasis.BILLED))) == ["0.8"]


def test_the_order_in_which_a_scope_is_written_is_no_other_scope() -> None:
    heard = Heard()
    heard.at("4100", budget(covers=SpendScope(clouds=("aws", "alibaba"))))
    assert heard.at("4100", budget(covers=SpendScope(clouds=("alibaba", "aws")))) == []


@given(st.lists(st.tuples(st.integers(0, 90), st.sampled_from((10, 20, 25, 50, 100))), min_size=1, max_size=12))
def test_whatever_becomes_of_the_amount_the_highest_share_is_known_and_nothing_is_told_twice(
    looks: list[tuple[int, int]],
) -> None:
    """Known is a share that was told, or one above it, of this amount; or the same money as a greater share of less."""
    heard = Heard()
    for spent, hundreds in looks:
        under = budget(amount=usd(str(hundreds * 100)))
        heard.at(str(spent * 100), under)
        found = crossings(under, MONTH, usd(str(spent * 100)), None, None)
        if found:
            above = from_share(under, found[-1].at)
            assert any(heard(one) for one in above)
    ids = [one.alert_id for one in heard.alerts]
    assert len(ids) == len(set(ids))


def from_share(rule: BudgetRule, share: Decimal) -> list[Crossing]:
    return [one for one in thresholds(rule, MONTH) if one.kind is AlertKind.ACTUAL and one.at >= share]


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
    told = Heard()
    told.alerts.extend(untold(budget(), MONTH, early, told))
    later = crossings(budget(), MONTH, usd("4020"), None, None, soon=usd("4040"))
    assert [one.early for one in later] == [False, False]
    assert untold(budget(), MONTH, later, told) == ()


def test_an_early_alert_that_did_not_come_true_is_told_once_more_when_it_is_certain_and_not_before() -> None:
    """An estimate said 80 %, fell back to 60 %, said it again, and then it was so."""
    told = Heard()
    (early,) = untold(budget(), MONTH, crossings(budget(), MONTH, usd("2400"), None, None, usd("4100")), told)
    told.alerts.append(early)
    assert (str(early.at), early.early) == ("0.8", True)
    known = lambda crossing: [one.alert_id for one in told.alerts if one.alert_id == crossing.alert_id]  # noqa: E731
    assert fallen_back(budget(), MONTH, usd("4000"), known) == frozenset()
    again = fallen_back(budget(), MONTH, usd("3999"), known)
    assert again == {early.alert_id}

    def look(certain: str, soon: str) -> list[str]:
        crossed = crossings(budget(), MONTH, usd(certain), None, None, usd(soon))
        new = untold(budget(), MONTH, crossed, told, again)
        told.alerts.extend(new)
        return [str(one.at) for one in new]

    assert look("2400", "2450") == []
    assert look("2500", "3000") == ["0.5"], "it stood for the half as well, and does so no more"
    assert look("3000", "4200") == []
    assert look("4000", "4300") == ["0.8"]
    assert look("4100", "4400") == []
    assert look("4990", "5100") == ["1"]


def test_without_falling_back_an_early_alert_is_the_only_one() -> None:
    told = Heard()
    for certain, soon in (("3900", "4001"), ("3950", "4050"), ("4000", "4100"), ("4900", "4950")):
        told.alerts.extend(
            untold(budget(), MONTH, crossings(budget(), MONTH, usd(certain), None, None, usd(soon)), told)
        )
    assert [(str(one.at), one.early) for one in told.alerts] == [("0.8", True)]


def test_a_share_told_early_is_not_forecast_as_well() -> None:
    found = crossings(budget(), MONTH, usd("4995"), usd("9000"), None, soon=usd("5001"))
    assert [one.kind for one in found if one.at == 1] == [AlertKind.ACTUAL]
