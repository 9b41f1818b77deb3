"""A contract that the bill tells of: what the owner, the plan and the savings then say that a machine costs."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, Stage, idle_machine
from tests.world_ports.spend import WorldSpend

from costguard.domain.money import Discount, HourlyRate, Money, NetSource, SpendScope
from costguard.engine.guards.budgets.run import run_budgets
from costguard.guards.budget.rules import BudgetPeriod, BudgetRule
from costguard.guards.rules.common import Limits, Mode

BUDGET = BudgetRule(
    "all", Mode.OBSERVE, SpendScope(), BudgetPeriod(), Money(Decimal(9000), "USD"), limits=Limits(), digest="d"
)


def stage(folder: Path, cloud: str, share: str = "0.25", *discounts: Discount) -> Stage:
    under = replace(policy(rule()), budgets=(BUDGET,), discounts=discounts)
    return Stage(folder, replace(idle_machine(cloud=cloud), discount=Decimal(share)), under=under)


def read_bills(on: Stage) -> None:
    spends = dict.fromkeys(on.clouds, WorldSpend(on.cloud, on.clock))
    run_budgets(replace(on.world(), guard="budget", spends=spends), f"budget-{on.clock.now().isoformat()}")


def found(on: Stage) -> HourlyRate:
    (finding,) = on.plan().findings
    assert finding.rate is not None
    return finding.rate


@pytest.mark.parametrize("cloud", CLOUDS)
def test_what_the_bill_measured_reaches_plan_and_notice(tmp_path: Path, cloud: str) -> None:
    on = stage(tmp_path, cloud)
    assert found(on).net is None, "before a bill was read only the list price is known"

    read_bills(on)
    rate = found(on)
    on.day(0)

    assert rate.net is not None
    assert (rate.net.source, rate.net.discount) == (NetSource.BILL, Decimal("0.2500"))
    assert rate.net.money == rate.money.times(Decimal("0.75"))
    (warned,) = (message for message in on.mailbox.messages if "notebook" in message.title)
    assert "at list price" in warned.text
    assert "net of discounts" in warned.text
    assert "25 % off, by the bill up to" in warned.text
    on.close()


def test_a_stale_bill_is_not_believed_and_the_declared_discount_is_shown(tmp_path: Path) -> None:
    on = stage(tmp_path, "aws", "0.25", Discount("aws", Decimal("0.4"), since=date(2025, 1, 1)))
    read_bills(on)
    rate = found(on)
    assert rate.net is not None
    assert (rate.net.source, rate.net.declared) == (NetSource.BILL, Decimal("0.4"))

    on.day(9)

    rate = found(on)
    assert rate.net is not None
    assert (rate.net.source, rate.net.discount) == (NetSource.DISCOUNT, Decimal("0.4"))
    on.close()


def test_limits_in_money_count_the_list_price(tmp_path: Path) -> None:
    """The machine costs less after its discount than the limit allows, and more at list price: it is held."""
    on = stage(tmp_path, "aws", "0.25", Discount("aws", Decimal("0.9")))
    (finding,) = on.plan().findings
    assert finding.rate is not None
    between = Money(finding.rate.money.amount * Decimal("0.5"), finding.rate.money.currency)
    capped = rule(limits=replace(rule().limits, hourly_cost_stopped_per_day=(between,)))
    on.policy = replace(on.policy, idle_gpu=(capped,))

    on.days((0, 1, 2))

    assert on.state() == "running"
    (held,) = on.plan().held
    assert held.reason.code.value == "cap_money"
    on.close()
