"""What a budget takes to be running where it cannot list accounts, or never saw a machine run: nothing is made up."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.builders import policy
from tests.scenario.budget_stage import HOUR, BudgetStage, machine, research
from tests.scenario.stage import DAY

from cloudstand.world import workload as does
from costguard.domain.errors import AccessDeniedError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import InstanceDetail, Inventory
from costguard.engine.run.run_context import RunContext
from costguard.ports import Discovery, InventorySource, Target


@dataclass
class Blind:
    """An inventory whose accounts nobody may list any more."""

    inner: InventorySource

    def discover(self, target: Target) -> Discovery:
        raise AccessDeniedError("not allowed", operation=f"{target.cloud}:ListAccounts")

    def read(self, shard: Shard) -> Inventory:
        return self.inner.read(shard)

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        return self.inner.details(refs)

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        return self.inner.protections(ref, wanted)


class Month(BudgetStage):
    """One busy machine of 48 USD a day, and from some moment on no list of accounts."""

    blind = False

    def surroundings(self) -> RunContext:
        ordinary = super().surroundings()
        if not self.blind:
            return ordinary
        readings = {
            cloud: replace(reading, inventory=Blind(reading.inventory)) for cloud, reading in ordinary.readings.items()
        }
        return replace(ordinary, readings=readings)


@pytest.fixture
def month(tmp_path: Path) -> Iterator[Month]:
    under = replace(policy(), idle_gpu=(), budgets=(research("1000"),))
    stage = Month(tmp_path, machine(does=does.busy()), under=under)
    stage.until(9 * DAY, every=3 * DAY)
    yield stage
    stage.close()


def reckoned(month: Month) -> tuple[str, list[str]]:
    """The spend by a run now, and the doubts it names."""
    look = month.hour().look
    assert look is not None
    (status,) = look.statuses
    assert status.spent is not None
    return f"{status.spent.total.amount:.2f}", [doubt.code.value for doubt in status.doubts]


def test_a_stopped_machine_is_not_taken_for_a_platform_that_goes_on(month: Month) -> None:
    (native_id,) = month.cloud.machines
    month.cloud.stop(native_id, "owner")
    month.clock.advance(HOUR)
    month.hour()
    month.clock.advance(12 * HOUR)
    month.blind = True
    spent, doubts = reckoned(month)
    assert spent == f"{month.true_spend():.2f}"
    assert doubts == ["burn_incomplete"]


def test_what_was_stopped_before_anybody_looked_does_not_go_on_at_its_old_rate(tmp_path: Path) -> None:
    under = replace(policy(), idle_gpu=(), budgets=(research("1000"),))
    month = Month(tmp_path, machine(does=does.busy()), under=under)
    month.clock.advance(9 * DAY)
    month.cloud.tick(month.clock.now())
    (native_id,) = month.cloud.machines
    month.cloud.stop(native_id, "owner")
    month.clock.advance(2 * DAY)
    spent, doubts = reckoned(month)
    assert (spent, doubts) == (f"{month.true_spend():.2f}", [])
    month.close()


def test_a_machine_that_ran_when_last_seen_runs_on(month: Month) -> None:
    month.clock.advance(12 * HOUR)
    month.blind = True
    spent, doubts = reckoned(month)
    assert spent == f"{month.true_spend():.2f}"
    assert doubts == ["burn_incomplete"]
