"""Two deployments at work on one account, each with a ledger and a policy of its own: neither knows the other's word.

Without a leader neither acts; with one, it alone does. Owners read from which of them a notice is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, Stage, idle_machine
from tests.world_ports.inventory import WorldExecutor, WorldInventory, WorldPrices, WorldSignals
from tests.world_ports.trail import WorldAuditLog

from cloudstand.world.records import Operation
from costguard.adapters.notifiers.router import NotifierRouter
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import Deployment
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import CloudReaders
from costguard.guards.rules.common import Mode


class Deployed(Stage):
    """One deployment on the stage of another, or on one of its own."""

    def __init__(self, folder: Path, name: str, on: str, beside: Deployed | None = None) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder, idle_machine(cloud=on))
        if beside is not None:
            self.cloud, self.clock = beside.cloud, beside.clock
            self.executor.inner = WorldExecutor(self.cloud, self.clock)
            self.inventory = WorldInventory(self.cloud, self.clock)
            self.reading = CloudReaders(self.inventory, WorldSignals(self.cloud, self.clock), WorldPrices(self.cloud))
        self.name = name

    def world(self) -> RunContext:
        own = Deployment(self.name, self.memory.identity.made(self.clock.now()))
        trail = WorldAuditLog(self.cloud, self.clock, str(own))
        foot = f"Sent by the Costguard deployment {self.name}"
        return replace(
            super().world(),
            trails=dict.fromkeys(self.clouds, trail),
            deployment=own,
            notifier=NotifierRouter({"slack": self.mailbox}, default="slack", foot=foot),
        )

    @property
    def held(self) -> set[ReasonCode]:
        plan = self.reports[-1].plan
        assert plan is not None
        return {each.reason.code for each in plan.held}


Duel = Callable[..., tuple[Deployed, Deployed]]


@pytest.fixture(params=CLOUDS)
def duel(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Duel]:
    made: list[Deployed] = []

    def begin(*names: str, leading: str = "") -> tuple[Deployed, Deployed]:
        first = Deployed(tmp_path / "first", names[0], request.param)
        second = Deployed(tmp_path / "second", names[1], request.param, beside=first)
        made.extend((first, second))
        for each in made:
            each.policy = policy(leading_deployment=leading)
        return first, second

    yield begin
    for each in made:
        each.close()


def both(first: Deployed, second: Deployed, *days: int) -> None:
    for day in days:
        first.day(day)
        second.at(day * DAY + DAY / 24)


def test_without_a_leader_neither_acts_and_the_owner_reads_both_names(duel: Duel) -> None:
    first, second = duel("platform-eu", "research")

    both(first, second, *range(12))

    assert (first.executor.calls, second.executor.calls) == ([], [])
    assert first.state() == "running"
    assert first.held == second.held == {ReasonCode.OTHER_DEPLOYMENT}
    for each in (first, second):
        assert len(each.mailbox.messages) == 1
        assert each.mailbox.messages[0].lines[-1] == f"Sent by the Costguard deployment {each.name}"


def test_the_leader_alone_acts(duel: Duel) -> None:
    first, second = duel("platform-eu", "research", leading="platform-eu")

    both(first, second, *range(12))

    assert "stop" in first.verbs()
    assert second.executor.calls == []


def test_a_leader_named_later_takes_up_where_it_stood(duel: Duel) -> None:
    first, second = duel("platform-eu", "research")
    both(first, second, 0, 1, 2, 3)
    for each in (first, second):
        each.policy = replace(each.policy, leading_deployment="research")

    both(first, second, 4)

    assert first.executor.calls == []
    assert second.verbs() == ["stop"]


def test_naming_one_leads_nowhere_where_both_have_that_name(duel: Duel) -> None:
    """Two ledgers under one name are two deployments, and the name cannot say which of them is meant."""
    first, second = duel("costguard", "costguard", leading="costguard")

    both(first, second, *range(6))

    assert (first.executor.calls, second.executor.calls) == ([], [])
    (reason,) = {each.reason.facts["same_name"] for each in first.plan().held}
    assert reason == "costguard"


def test_a_deployment_that_is_gone_bars_for_a_week(duel: Duel) -> None:
    first, second = duel("platform-eu", "research")
    both(first, second, 0)

    first.days(range(1, 7))
    assert first.executor.calls == []
    first.day(8)

    assert first.verbs() == ["stop"]


def test_alone_it_acts_as_ever(duel: Duel) -> None:
    first, _ = duel("platform-eu", "research")

    first.days((0, 1, 2))

    assert first.verbs() == ["stop"]


def test_a_log_that_cannot_be_read_bars_nobody_but_is_shown(duel: Duel) -> None:
    """Whoever never granted the log is guarded as before; where the policy knows of a leader, it alone goes on."""
    first, _ = duel("platform-eu", "research")
    for shard in {first.ref().shard}:
        first.cloud.deny(shard.cloud, shard.account, Operation.TRAIL)

    first.policy = replace(first.policy, leading_deployment="research")
    first.days((0, 1, 2))
    assert first.executor.calls == []
    first.policy = replace(first.policy, leading_deployment="")
    report = first.day(3)

    assert first.verbs() == ["stop"]
    assert report.plan is not None
    assert "deployments" in {gap.what for gap in report.plan.gaps}


def test_one_that_only_observes_looks_for_nobody(duel: Duel) -> None:
    first, second = duel("platform-eu", "research")
    second.policy = policy(rule(mode=Mode.OBSERVE))

    both(first, second, 0, 1, 2)

    assert first.verbs() == ["stop"]
