"""A budget's month: what its people hear and when, what is stopped for it, and what never is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.builders import policy, usd
from tests.scenario.budget_stage import HALF, HOUR, MIDNIGHT, STOP_IDLE, BudgetStage, machine, research
from tests.scenario.stage import CLOUDS, DAY
from tests.world_ports.translate import to_world

from cloudstand.world import workload as does
from cloudstand.world.money import ChargeCategory, Money
from cloudstand.world.records import OtherCharge
from costguard.domain.money import ExchangeRate, SpendScope
from costguard.domain.resources import InstanceState
from costguard.guards.budget.rules import BudgetRule, BudgetStep, PriorityClass, StepKind
from costguard.guards.rules.common import Mode, Selector


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Any]:
    opened: list[BudgetStage] = []

    def build(*fleet: Any, budgets: tuple[BudgetRule, ...] = (), **more: Any) -> BudgetStage:
        under = replace(policy(), idle_gpu=(), budgets=budgets or (research(),), **more)
        opened.append(BudgetStage(tmp_path, *fleet, under=under))
        return opened[-1]

    yield build
    for each in opened:
        each.close()


def test_people_hear_of_each_threshold_once_and_in_time(stage: Any) -> None:
    """48 a day from March 1: half of 1,000 is spent on the 11th at 10:00, four fifths on the 17th at 16:00.

    A look an hour before tells what is about to be; one that comes later, what is.
    """
    month = stage(machine(does=does.busy()), budgets=(research(forecast_alert_at=()),))
    month.until(9 * DAY - HOUR)
    assert month.mailbox.titles == []
    month.until(9 * DAY)
    assert month.mailbox.titles == ["Budget research: 50 % of 1,000.00 USD is about to be spent"]
    month.until(timedelta(days=15, hours=5))
    assert len(month.mailbox.titles) == 1
    month.until(timedelta(days=15, hours=7), every=2 * HOUR)
    assert month.mailbox.titles[1:] == ["Budget research: 80 % of 1,000.00 USD is spent"]
    month.until(20 * DAY)
    assert month.mailbox.titles[2:] == ["Budget research: 100 % of 1,000.00 USD is spent"]
    assert month.state_of("trainer") is InstanceState.RUNNING


def test_billed_and_accrued_together_are_the_truth(stage: Any) -> None:
    month = stage(machine(does=does.busy()), machine("second", "3.5", does=does.busy()))
    looked = month.until(5 * DAY).look
    spent = looked.statuses[0].spent
    assert spent.total.amount == month.true_spend()
    assert spent.billed.amount > 0
    assert spent.accrued.amount > 0


def test_an_idle_machine_is_stopped_for_a_spent_budget_after_its_owner_was_told(stage: Any) -> None:
    month = stage(machine(), budgets=(research("400", steps=(STOP_IDLE,)),))
    month.until(timedelta(days=6, hours=22))
    assert [title for title in month.mailbox.titles if "trainer" in title] == []
    month.until(timedelta(days=7, hours=2), every=HOUR)
    assert len([title for title in month.mailbox.titles if "trainer" in title]) == 1
    assert month.state_of("trainer") is InstanceState.RUNNING
    month.until(timedelta(days=7, hours=6), every=HOUR)
    assert month.state_of("trainer") is InstanceState.STOPPED


def test_a_busy_machine_is_never_stopped_by_an_idle_step(stage: Any) -> None:
    month = stage(machine(does=does.busy()), budgets=(research("100", steps=(STOP_IDLE,)),))
    month.until(10 * DAY)
    assert month.state_of("trainer") is InstanceState.RUNNING


def test_a_class_of_work_is_stopped_though_busy_and_the_rest_goes_on(stage: Any) -> None:
    step = BudgetStep(Decimal("1.1"), StepKind.STOP_CLASSES, timedelta(hours=8), classes=("dev",))
    month = stage(
        machine("experiment", does=does.busy(), tags={"env": "dev"}),
        machine("serving", does=does.busy()),
        budgets=(research("400", steps=(STOP_IDLE, step)),),
        priority_classes=(PriorityClass("dev", Selector(tags={"env": "dev"})),),
    )
    month.until(10 * DAY)
    assert month.state_of("experiment") is InstanceState.STOPPED
    assert month.state_of("serving") is InstanceState.RUNNING


def test_an_observing_budget_alerts_and_stops_nothing(stage: Any) -> None:
    month = stage(machine(), budgets=(research("100", mode=Mode.OBSERVE, steps=(STOP_IDLE,)),))
    month.until(6 * DAY)
    assert "Budget research: 100 % of 100.00 USD is spent" in month.mailbox.titles
    assert month.executor.calls == []
    assert all("trainer is" not in title for title in month.mailbox.titles)


def test_without_a_bill_it_alerts_on_what_is_known_and_stops_nothing(stage: Any) -> None:
    month = stage(machine(), budgets=(research("100", steps=(STOP_IDLE,)),))
    month.cloud.deny("aws", "111122223333", "bill")
    month.until(6 * DAY)
    assert "Budget research: 100 % of 100.00 USD is spent" in month.mailbox.titles
    assert "at least" in month.mailbox.messages[0].text
    assert month.executor.calls == []


def test_a_bill_that_goes_stale_holds_what_was_announced(stage: Any) -> None:
    slow = replace(STOP_IDLE, wait=timedelta(hours=100))
    month = stage(machine(), budgets=(research("400", steps=(slow,)),))
    month.until(timedelta(days=8), every=HALF)
    assert any("trainer" in title for title in month.mailbox.titles)
    month.cloud.deny("aws", "111122223333", "bill")
    month.until(timedelta(days=14), every=HALF)
    assert month.executor.calls == []
    month.cloud.allow("aws", "111122223333", "bill")
    month.until(timedelta(days=15), every=HALF)
    assert month.state_of("trainer") is InstanceState.STOPPED


def test_a_raised_budget_lets_go_of_the_machines_it_asked_for(stage: Any) -> None:
    month = stage(machine(), budgets=(research("400", steps=(STOP_IDLE,)),))
    month.until(timedelta(days=7, hours=1))
    assert len(month.memory.cases.active("budget")) == 1
    month.policy = replace(month.policy, budgets=(research("4000", steps=(STOP_IDLE,)),))
    month.until(timedelta(days=9))
    assert month.state_of("trainer") is InstanceState.RUNNING
    assert month.memory.cases.active("budget") == ()


def test_a_refund_arms_no_alert_anew(stage: Any) -> None:
    month = stage(
        machine(does=does.busy()), budgets=(research("400", forecast_alert_at=(), alert_at=(Decimal("0.8"),)),)
    )
    month.until(7 * DAY)
    assert len(month.mailbox.titles) == 1
    credit = OtherCharge(
        "aws",
        "111122223333",
        "us-east-1",
        "refund",
        ChargeCategory.ADJUSTMENT,
        MIDNIGHT,
        MIDNIGHT + DAY,
        to_world(usd("-200")),
        tags={"team": "research"},
    )
    month.cloud.charge(credit)
    done = month.until(9 * DAY)
    assert done.look.statuses[0].share < Decimal("0.8")
    month.until(14 * DAY)
    assert len(month.mailbox.titles) == 1


def test_an_alert_that_could_not_be_sent_is_sent_later_and_once(stage: Any) -> None:
    month = stage(machine(does=does.busy()), budgets=(research("100", forecast_alert_at=()),))
    month.mailbox.down = True
    month.until(2 * DAY, every=HALF)
    month.mailbox.down = False
    month.until(6 * DAY, every=HALF)
    assert [title[17:22] for title in month.mailbox.titles] == ["80 % ", "100 %"]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_one_budget_means_the_same_on_every_cloud(stage: Any, cloud: str) -> None:
    month = stage(machine(cloud=cloud), budgets=(research("700", steps=(STOP_IDLE,)),))
    month.until(13 * DAY)
    assert month.state_of("trainer") is InstanceState.RUNNING
    month.until(timedelta(days=13, hours=18), every=3 * HOUR)
    assert month.state_of("trainer") is InstanceState.STOPPED
    assert sum("100 %" in title for title in month.mailbox.titles) <= 2


def test_a_budget_over_two_currencies_without_a_rate_alerts_and_stops_nothing(stage: Any) -> None:
    everything = research("400", covers=SpendScope(), steps=(STOP_IDLE,))
    yuan = Money(Decimal(14), "CNY")
    month = stage(machine(), replace(machine("china", cloud="alibaba"), hourly=yuan), budgets=(everything,))
    month.until(9 * DAY, every=HALF)
    assert any("100 %" in title for title in month.mailbox.titles)
    assert month.executor.calls == []
    rate = ExchangeRate("USD", "CNY", Decimal(7), MIDNIGHT.date().replace(month=1))
    month.policy = replace(month.policy, exchange_rates=(rate,))
    month.until(10 * DAY, every=HALF)
    assert len(month.executor.calls) == 2
