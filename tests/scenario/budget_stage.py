"""The stage for budgets: bills as late as each cloud's, and a run whenever the clock says so."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.builders import usd
from tests.scenario.stage import DAY, START, Stage, idle_machine
from tests.world_ports.spend import WorldSpend
from tests.world_ports.translate import to_product, to_world

from cloudstand.world.billing import charges
from costguard.domain.money import Money, SpendScope
from costguard.domain.resources import InstanceState
from costguard.engine.guards.budgets.run import BudgetRun, run_budgets
from costguard.engine.run.run_context import RunContext
from costguard.guards.budget.rules import BudgetPeriod, BudgetRule, BudgetStep, StepKind
from costguard.guards.rules.common import Limits, Mode
from costguard.policy.model.policy import Policy

HOUR = timedelta(hours=1)
HALF = 12 * HOUR
MIDNIGHT = START.replace(hour=0)
CAPS = (usd("1000"), Money(Decimal(1000), "CNY"))
LIMITS = Limits(fleet_share_per_day=Decimal(1), hourly_cost_stopped_per_day=CAPS)
STOP_IDLE = BudgetStep(Decimal(1), StepKind.STOP_IDLE, timedelta(hours=4))


def research(monthly: str = "1000", **changes: Any) -> BudgetRule:
    scope = SpendScope(tags=(("team", "research"),))
    rule = BudgetRule("research", Mode.ENFORCE, scope, BudgetPeriod(), usd(monthly), limits=LIMITS, digest="digest")
    return replace(rule, **changes)


def machine(name: str = "trainer", hourly: str = "2", **more: Any) -> Any:
    """Two dollars an hour, 48 a day, for ten days already."""
    tags = {"team": "research", **more.pop("tags", {})}
    return replace(idle_machine(name, tags=tags, **more), hourly=to_world(usd(hourly)), disks=())


class BudgetStage(Stage):
    """The stage for budgets: their guard runs by the hour, over bills as late as each cloud's."""

    def __init__(self, folder: Path, *fleet: Any, under: Policy) -> None:
        super().__init__(folder, *fleet, under=under)
        self.spend = WorldSpend(self.cloud, self.clock)
        self.runs: list[BudgetRun] = []

    def surroundings(self) -> RunContext:
        return replace(self.world(), guard="budget", spends=dict.fromkeys(self.clouds, self.spend))

    def hour(self) -> BudgetRun:
        """One run now."""
        done = run_budgets(self.surroundings(), f"budget-{self.clock.now().isoformat()}")
        self.runs.append(done)
        return done

    def until(self, moment: timedelta, every: timedelta = DAY) -> BudgetRun:
        """Runs up to this time after the start, the last one then."""
        while True:
            self.clock.advance(min(every, START + moment - self.clock.now()))
            done = self.hour()
            if self.clock.now() == START + moment:
                return done

    def true_spend(self) -> Decimal:
        """What the month has really cost."""
        began = MIDNIGHT.replace(day=1)
        found = [charge for cloud in self.clouds for charge in charges(self.cloud, cloud, began, self.clock.now())]
        return sum((charge.effective.amount for charge in found), Decimal(0))

    def state_of(self, name: str) -> InstanceState:
        return to_product(next(one.state for one in self.cloud.machines.values() if one.spec.name == name))
