"""What a stop is said to have saved, from the day it was done to the day somebody else took up its work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine
from tests.world_ports.spend import WorldSpend
from tests.world_ports.translate import to_world

from cloudstand.world.money import ChargeCategory
from cloudstand.world.records import Operation, OtherCharge
from cloudstand.world.workload import IDLE
from costguard.domain.actions import Verb
from costguard.domain.money import Money, SpendScope
from costguard.domain.savings import SavingEntry, SavingsReport, SavingStanding, Worth
from costguard.engine.answers.undo import Undoers, undo, undoing_of
from costguard.engine.guards.budgets.run import run_budgets
from costguard.engine.run.run import RunReport
from costguard.engine.savings import savings_report
from costguard.guards.budget.rules import BudgetPeriod, BudgetRule
from costguard.guards.rules.common import Limits, Mode, Step

HOUR = timedelta(hours=1)
WARN_THEN_STOP = (Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, timedelta(hours=24)))


@pytest.fixture(params=CLOUDS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """A notebook told of on day 0, stopped on day 1, seen stopped on day 2; the ladder ends there."""
    opened = Stage(tmp_path, idle_machine(cloud=request.param), under=policy(rule(ladder=WARN_THEN_STOP)))
    yield opened
    opened.close()


def report(stage: Stage, since: datetime = START) -> SavingsReport:
    return savings_report(stage.memory, since, stage.clock.now(), stage.clock.now())


def told(stage: Stage) -> list[tuple[str, float]]:
    """Each saving: why it counts as far as it does, and for how many hours it was realised."""
    return [(one.standing.value, _hours(one)) for one in sorted(report(stage).entries, key=lambda one: one.since)]


def _hours(entry: SavingEntry) -> float:
    return (entry.counted_until - entry.since) / HOUR


def net_hourly(entry: SavingEntry) -> Decimal:
    assert entry.hourly is not None
    return entry.hourly.amount - sum((cost.amount for _, cost in entry.kept if cost is not None), Decimal(0))


def test_a_stop_that_saved_then_someone_started_it_again_then_a_replacement(stage: Stage) -> None:
    stage.days((0, 1))
    assert told(stage) == [], "asked for is not done: nothing is counted before it was seen"

    stage.day(2)
    assert told(stage) == [("stopped", 0.0)], "seen stopped; it counts from here"

    stage.days((3, 4))
    assert told(stage) == [("stopped", 48.0)], "seen stopped twice more"
    (entry,) = report(stage).entries
    assert (entry.predicted, entry.realised) == (entry.realised, entry.predicted)
    assert float(entry.realised[0].amount) == pytest.approx(float(net_hourly(entry)) * 48), "less what stays billed"
    assert entry.still_billed[0].amount > 0

    stage.clock.advance(5 * HOUR)
    stage.cloud.tick(stage.clock.now())
    stage.cloud.start(stage.ref().native_id, "owner")
    stage.cloud.work(stage.ref().native_id, IDLE)
    stage.day(5)
    assert told(stage)[0][0] == "restarted"
    assert 48.0 <= told(stage)[0][1] <= 53.1, "up to the start where the cloud tells when, else to the last look"
    counted = told(stage)[0][1]

    stage.days((6, 7, 8))
    assert told(stage)[0] == ("restarted", counted), "what ended stays as it ended"
    assert [standing for standing, _ in told(stage)] == ["restarted", "stopped"], (
        "idle again, told again, stopped again"
    )

    first, second = sorted(report(stage).entries, key=lambda one: one.since)
    assert second.since >= first.counted_until, "no hour is in both"
    stage.clock.advance(2 * HOUR)
    stage.cloud.tick(stage.clock.now())
    spec = next(iter(stage.cloud.fleet))
    stage.cloud.launch(replace(spec, name="notebook-2", native_id=f"{spec.native_id[:-4]}beef"), "owner")
    launched = stage.clock.now()
    stage.day(10)

    replaced = max(report(stage).entries, key=lambda one: one.since)
    assert (replaced.standing, replaced.replaced_how) == (SavingStanding.REPLACED, "name")
    assert replaced.replaced_by is not None
    assert replaced.replaced_by != stage.ref()
    assert replaced.counted_until <= launched + HOUR, "from then on another machine costs what this one did"
    assert replaced.predicted[0].amount > replaced.realised[0].amount

    both = sum((money.amount for one in report(stage).entries for money in one.realised), Decimal(0))
    assert report(stage).totals[0].realised == Money(both, "USD")


def undone(stage: Stage) -> None:
    """Somebody asks for the last stop back."""
    (cloud,) = stage.clouds
    action = next(action.action_id for action in stage.executor.calls if action.verb is Verb.STOP)
    by = Undoers({cloud: stage.inventory}, {cloud: lambda: stage.executor}, {})
    undo(stage.memory, undoing_of(stage.memory, action), by, "vision", "again", stage.clock.now(), paused=False)


def test_a_stop_that_was_taken_back_saved_until_then(tmp_path: Path) -> None:
    stage = Stage(tmp_path, idle_machine(cloud="tencent"))
    stage.days((0, 1, 2, 3))
    stage.clock.advance(2 * HOUR)
    undone(stage)
    stage.day(4)
    ((standing, counted),) = told(stage)
    assert standing == "undone"
    assert 24 <= counted <= 26.1
    stage.close()


def test_what_another_hand_terminated_saved_up_to_the_last_look(tmp_path: Path) -> None:
    stage = Stage(tmp_path, idle_machine(cloud="alibaba"))
    stage.days((0, 1, 2, 3))
    stage.cloud.terminate(stage.ref().native_id, "owner")
    stage.day(4)
    assert told(stage) == [("gone", 24.0)]
    stage.close()


def test_while_nobody_can_look_nothing_is_counted_and_then_it_is_made_up_for(tmp_path: Path) -> None:
    stage = Stage(tmp_path, idle_machine())
    stage.days((0, 1, 2, 3))
    account = stage.ref().account
    stage.cloud.deny("aws", account, Operation.LIST)
    stage.day(6)
    assert told(stage) == [("unseen", 24.0)]
    stage.cloud.allow("aws", account, Operation.LIST)
    stage.day(7)
    assert told(stage) == [("stopped", 120.0)]
    stage.close()


def test_a_machine_that_bills_on_although_stopped_saved_nothing(tmp_path: Path) -> None:
    stage = Stage(tmp_path, replace(idle_machine(cloud="alibaba"), stop_keeps_billing=True))
    stage.days((0, 1, 2, 3))
    (entry,) = report(stage).entries
    assert (entry.worth, entry.realised, entry.predicted) == (Worth.BILLED_ON, (), ())
    stage.close()


class WithBills(Stage):
    """A day has a run of the idle guard and one of the budgets, which read the bills."""

    def day(self, number: int) -> RunReport:
        done = super().day(number)
        spends = dict.fromkeys(self.clouds, WorldSpend(self.cloud, self.clock))
        run_budgets(replace(self.world(), guard="budget", spends=spends), f"budget-{number}")
        return done


def test_the_bill_confirms_what_it_shows_nothing_of_and_takes_off_what_it_does(tmp_path: Path) -> None:
    """A bill by the days of China, two days late."""
    caps = Limits(fleet_share_per_day=Decimal(1), hourly_cost_stopped_per_day=())
    budget = BudgetRule(
        "all", Mode.OBSERVE, SpendScope(), BudgetPeriod(), Money(Decimal(9000), "USD"), limits=caps, digest="d"
    )
    under = replace(policy(rule(ladder=WARN_THEN_STOP)), budgets=(budget,))
    stage = WithBills(tmp_path, idle_machine(cloud="tencent"), under=under)
    ref = stage.ref()
    stage.days((0, 1, 2, 6))
    (entry,) = report(stage).entries
    assert (entry.billed_anyway, entry.standing) == (None, SavingStanding.STOPPED)
    assert entry.billed_until is not None, "the bill has caught up with the stop"
    assert entry.billed_until < stage.clock.now()

    midnight = START.replace(hour=0) + 4 * DAY - 8 * HOUR
    all_the_same = Money(Decimal(7), "USD")
    stage.cloud.charge(
        OtherCharge(
            ref.cloud,
            ref.account,
            ref.region,
            "compute",
            ChargeCategory.USAGE,
            midnight,
            midnight + DAY,
            to_world(all_the_same),
            ref.native_id,
        )
    )
    stage.days((7, 9))
    (entry,) = report(stage).entries
    assert entry.billed_anyway is not None
    assert Decimal(6) < entry.billed_anyway.amount <= Decimal(7), "less the disks, which were known to stay billed"
    taken_off = entry.predicted[0].amount - entry.realised[0].amount
    assert float(taken_off) == pytest.approx(float(entry.billed_anyway.amount))
    stage.close()
