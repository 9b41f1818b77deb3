"""Shards are acted in side by side; within one it is one case after another, under the same caps and switches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import DAY, Recorder, Stage, idle_machine

from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.errors import LedgerError, RefusedError
from costguard.domain.money import Money
from costguard.domain.reasons import ReasonCode
from costguard.engine.guards.keys.run import KeyHandler
from costguard.engine.guards.networks.run import NetworkHandler
from costguard.engine.ledger.audit.audit import AuditEntry
from costguard.engine.ledger.intents import Intent, IntentRepository
from costguard.engine.run.run import carry_out
from costguard.guards.rules.common import STOP, Limits
from costguard.ports import Put, RecordStore

EAST, WEST = "us-east-1", "us-west-2"
_PLENTY = (Money(Decimal(10_000), "USD"),)
_LONGEST = 20.0  # seconds; a test that hangs fails


class Meeting(Recorder):
    """An executor of many threads that notes who is in a call, by region, and may ask something of each."""

    def __init__(self, inner: Recorder) -> None:
        super().__init__(inner.inner)
        self.inside: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.before: Callable[[Action], object] = lambda _: None
        self._lock = threading.Lock()

    def execute(self, action: Action) -> Receipt:
        region = action.subject.region
        with self._lock:
            self.inside[region] = self.inside.get(region, 0) + 1
            self.most[region] = max(self.most.get(region, 0), self.inside[region])
        try:
            self.before(action)
            with self._lock:
                return super().execute(action)
        finally:
            with self._lock:
                self.inside[region] -= 1


def limits(actions: int) -> Limits:
    return replace(
        rule().limits,
        actions_per_day=actions,
        fleet_share_per_day=Decimal(1),
        hourly_cost_stopped_per_day=_PLENTY,
    )


@pytest.fixture
def staged(tmp_path: Path) -> Iterator[Callable[..., tuple[Stage, Meeting]]]:
    """Machines by region, told of a day ago: their stops are due."""
    made: list[Stage] = []

    def make(*, actions: int = 10, **of_region: int) -> tuple[Stage, Meeting]:
        regions = {"east": EAST, "west": WEST}
        fleet = [
            idle_machine(f"{region}-{number}", region=regions[region])
            for region, count in of_region.items()
            for number in range(count)
        ]
        stage = Stage(tmp_path, *fleet, under=policy(rule(limits=limits(actions))))
        made.append(stage)
        stage.day(0)
        stage.clock.advance(DAY)
        meeting = Meeting(stage.executor)
        stage.executor = meeting
        return stage, meeting

    yield make
    for stage in made:
        stage.close()


Staged = Callable[..., tuple[Stage, Meeting]]


def test_two_regions_are_in_a_call_at_the_same_time(staged: Staged) -> None:
    stage, meeting = staged(east=1, west=1)
    both = threading.Barrier(2, timeout=_LONGEST)
    meeting.before = lambda _: both.wait()
    stage.run_with(stage.world())
    assert sorted(stage.verbs()) == ["stop", "stop"]


def test_within_a_region_one_call_ends_before_the_next_begins(staged: Staged) -> None:
    stage, meeting = staged(east=4, west=3)
    stage.run_with(stage.world())
    assert (stage.verbs(), meeting.most) == (["stop"] * 7, {EAST: 1, WEST: 1})


def test_what_became_of_the_first_is_written_before_the_second_is_called(staged: Staged) -> None:
    stage, meeting = staged(east=3)
    open_when_called: list[int] = []

    def look(_: Action) -> None:
        known = [stage.memory.cases.get(step.after.key) for step in stage.reports[-1].plan.transitions]  # type: ignore[union-attr]
        open_when_called.append(sum(case is not None and case.phase.value == "claimed" for case in known))

    meeting.before = look
    stage.run_with(stage.world())
    assert open_when_called == [1, 1, 1]


def test_the_results_are_in_the_order_of_the_plan(staged: Staged) -> None:
    stage, meeting = staged(east=3, west=3)
    slow = threading.Event()

    def west_first(action: Action) -> None:
        if action.subject.region == WEST:
            slow.set()
        else:
            slow.wait(_LONGEST)

    meeting.before = west_first
    plan = stage.plan()
    report = carry_out(stage.world(), replace(plan, run_id="in-order"))
    assert [result.action.action_id for result in report.results] == [action.action_id for action in plan.due]
    assert meeting.calls[0].subject.region == WEST, "it was called first"


@pytest.mark.parametrize("actions", [1, 3, 5])
def test_a_cap_holds_over_all_shards_of_a_run(staged: Staged, actions: int) -> None:
    stage, _ = staged(actions=actions, east=4, west=4)
    stage.run_with(stage.world())
    assert len(stage.verbs()) == actions
    assert stage.memory.caps.usage("idle_gpu", "research", stage.clock.now()).actions == actions


def test_a_reservation_that_came_free_goes_to_the_next_in_line_of_any_shard(staged: Staged) -> None:
    stage, meeting = staged(actions=2, east=1, west=4)
    first = next(action.subject.native_id for action in stage.plan().due if action.verb is Verb.STOP)
    stage.cloud.protect(first, STOP, "owner", on=True)
    stage.run_with(stage.world())
    assert len(meeting.calls) == 2
    assert first not in {call.subject.native_id for call in meeting.calls}


def test_a_refusal_in_one_region_stops_nothing_in_another(staged: Staged) -> None:
    stage, meeting = staged(east=1, west=2)

    def refuse(action: Action) -> None:
        if action.subject.region == EAST:
            raise RefusedError("no", operation="ec2:StopInstances", code="IncorrectState")

    meeting.before = refuse
    report = stage.run_with(stage.world())
    assert sorted(result.outcome.value for result in report.results if result.outcome) == [
        "accepted",
        "accepted",
        "refused",
    ]


def test_a_switch_turned_while_a_region_acts_holds_the_rest_of_all_regions(staged: Staged) -> None:
    stage, meeting = staged(east=3, west=3)
    both = threading.Barrier(2, action=lambda: stage.memory.switch.pause("ada", "look", stage.clock.now()))
    meeting.before = lambda _: both.wait(_LONGEST)
    report = stage.run_with(stage.world())
    assert len(stage.verbs()) == 2, "what was under way was sent, one a region"
    held = [result.reason.code for result in report.results if result.reason]
    assert held == [ReasonCode.KILL_SWITCH] * 4


class GoneInTheWest(IntentRepository):
    """Intents of a ledger that fails once something was called in the west."""

    def __init__(self, store: RecordStore) -> None:
        super().__init__(store)
        self.failed = threading.Event()

    def answer(self, settled: Intent, now: datetime) -> tuple[Put, AuditEntry]:
        if settled.action.subject.region == WEST:
            self.failed.set()
            raise LedgerError("the ledger is gone")
        return super().answer(settled, now)


def test_a_ledger_that_fails_for_one_region_ends_the_others(staged: Staged) -> None:
    stage, meeting = staged(east=20, west=1, actions=30)
    intents = GoneInTheWest(stage.memory.store)
    stage.memory = replace(stage.memory, intents=intents)
    meeting.before = lambda action: None if action.subject.region == WEST else intents.failed.wait(_LONGEST)
    with pytest.raises(LedgerError):
        stage.run_with(stage.world())
    assert len(meeting.calls) <= 3, "one a region was under way, and one may have been begun"


def test_ways_into_networks_are_closed_one_after_another() -> None:
    """One may lead through another region, so the last of them could be closed twice at once."""
    assert not NetworkHandler.shards_apart
    assert not KeyHandler.shards_apart
