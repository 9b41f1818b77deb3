"""Where a promise about budgets is easily broken: an amount that changes, a month that is over, a day, a first day."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.builders import policy
from tests.scenario.budget_stage import HOUR, STOP_IDLE, BudgetStage, machine, research
from tests.scenario.stage import CLOUDS, DAY

from costguard.domain.money import Money
from costguard.domain.resources import InstanceState
from costguard.engine.budget_told import budget_reports
from costguard.engine.repositories.outbox_notice import Notice, NoticeState
from costguard.estimates.exchange import ExchangeRate
from costguard.guards.budget_rules import BudgetPeriod, BudgetRule
from costguard.sandbox.world import workload as does

on_every_cloud = pytest.mark.parametrize("cloud", CLOUDS)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Any]:
    opened: list[BudgetStage] = []

    def build(*fleet: Any, budgets: tuple[BudgetRule, ...] = (), **more: Any) -> BudgetStage:
        under = replace(policy(), idle_gpu=(), budgets=budgets or (quiet(),), **more)
        opened.append(BudgetStage(tmp_path, *fleet, under=under))
        return opened[-1]

    yield build
    for each in opened:
        each.close()


def quiet(monthly: str = "1000", **changes: Any) -> BudgetRule:
    """The budget, without forecasts and surges."""
    return research(monthly, **{"forecast_alert_at": (), "surge_alert": False, **changes})


def now_under(month: BudgetStage, *budgets: BudgetRule) -> None:
    month.policy = replace(month.policy, budgets=budgets)


@on_every_cloud
def test_a_lowered_budget_tells_how_much_of_it_is_spent(stage: Any, cloud: str) -> None:
    """48 a day from March 1: 50 % of 1,000 is told on the 11th; then it is 500, and the same money is all of it."""
    month = stage(machine(cloud=cloud, does=does.busy()))
    month.until(11 * DAY)
    assert [title[17:21] for title in month.mailbox.titles] == ["50 %"]
    now_under(month, quiet("500"))
    month.until(12 * DAY)
    assert month.mailbox.titles[1:] == ["Budget research: 100 % of 500.00 USD is spent"]
    month.until(25 * DAY)
    assert len(month.mailbox.titles) == 2


@on_every_cloud
def test_a_raised_budget_tells_nothing_anew_of_the_same_money(stage: Any, cloud: str) -> None:
    month = stage(machine(cloud=cloud, does=does.busy()), budgets=(quiet("500"),))
    month.until(11 * DAY)
    last = "Budget research: 100 % of 500.00 USD is about to be spent"
    assert month.mailbox.titles[-1] == last
    told = len(month.mailbox.titles)
    now_under(month, quiet("1000"))
    month.until(14 * DAY)
    assert len(month.mailbox.titles) == told
    shown = budget_reports(month.surroundings(), month.runs[-1].look)[0].told
    assert [one.title for one in shown] == [last]
    month.until(18 * DAY)
    assert [title[:24] for title in month.mailbox.titles[told:]] == ["Budget research: 80 % of"]


def test_a_renamed_budget_tells_nothing_anew(stage: Any) -> None:
    month = stage(machine(does=does.busy()))
    month.until(12 * DAY)
    now_under(month, quiet(name="vision"))
    month.until(14 * DAY)
    assert [title[7:21] for title in month.mailbox.titles] == ["research: 50 %"]
    month.until(18 * DAY)
    assert [title[7:19] for title in month.mailbox.titles[1:]] == ["vision: 80 %"]


def test_two_budgets_of_one_scope_each_tell_their_own(stage: Any) -> None:
    """All of the smaller one is half of the greater one: what one has told is no news of the other."""
    month = stage(machine(does=does.busy()), budgets=(quiet("500", name="soft"), quiet("1000", name="hard")))
    month.until(12 * DAY)
    assert {title[7:19] for title in month.mailbox.titles} == {
        "soft: 50 % o",
        "soft: 80 % o",
        "soft: 100 % ",
        "hard: 50 % o",
    }


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "UTC"])
@pytest.mark.parametrize("cloud", ["alibaba", "tencent"])
def test_a_rate_dated_the_first_holds_for_the_bills_first_day(stage: Any, cloud: str, zone: str) -> None:
    """48 dollars a day, billed as 336 yuan by the days of China: all of 400 dollars is spent on the 9th."""
    one = replace(machine(cloud=cloud), hourly=Money(Decimal(14), "CNY"))
    rate = ExchangeRate("USD", "CNY", Decimal(7), date(2026, 3, 1))
    spending = quiet("400", period=BudgetPeriod(zone=zone), steps=(STOP_IDLE,), alert_at=(Decimal(1),))
    month = stage(one, budgets=(spending,), exchange_rates=(rate,))
    done = month.until(9 * DAY)
    (status,) = done.look.statuses
    assert [doubt.code.value for doubt in status.doubts] == []
    assert [part.unconverted for part in status.parts] == [()]
    assert [title for title in month.mailbox.titles if "100 %" in title] != []
    month.until(9 * DAY + 6 * HOUR, every=HOUR)
    assert month.state_of("trainer") is InstanceState.STOPPED


def old_notice(share: str, amount: str, title: str, **changes: Any) -> Notice:
    """As ledgers had it: its id knew the budget's name and the money, but not the share."""
    money = format((Decimal(share) * Decimal(amount)).normalize(), "f")
    words = ("research", "2026-03", "actual", money, "USD")
    alert_id = "budget-" + hashlib.sha256("\n".join(words).encode()).hexdigest()[:24]
    moment = changes.pop("created_at")
    ordinary = Notice(f"{alert_id}/slack:#gpu", "", "budget/spent/scope:research", "slack:#gpu", title, title, moment)
    return replace(ordinary, **{"state": NoticeState.DELIVERED, "delivered_at": moment, **changes})


@pytest.mark.parametrize(
    "title",
    ["Budget research: 50 % of 1,000.00 USD is spent", "预算 research：已用到 1,000.00 USD 的 50%"],
)
def test_what_an_older_program_told_is_not_told_anew(stage: Any, title: str) -> None:
    month = stage(machine(does=does.busy()))
    month.memory.outbox.enqueue(old_notice("0.5", "1000", title, created_at=month.clock.now()))
    done = month.until(12 * DAY)
    assert month.mailbox.titles == []
    assert [one.title for one in budget_reports(month.surroundings(), done.look)[0].told] == [title]
    now_under(month, quiet("500"))
    month.until(13 * DAY)
    assert month.mailbox.titles == ["Budget research: 100 % of 500.00 USD is spent"]


def test_what_an_older_program_told_before_a_raise_is_not_told_anew(stage: Any) -> None:
    month = stage(machine(does=does.busy()))
    told = old_notice("1", "500", "Budget research: 100 % of 500.00 USD is spent", created_at=month.clock.now())
    month.memory.outbox.enqueue(told)
    month.until(12 * DAY)
    assert month.mailbox.titles == []
