"""A run that cannot read everything in its time: the next goes on where it ended, and what was read is acted on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine
from tests.scenario.test_a_keys_month import KeyStage
from tests.world_ports.networks import WorldNetworks

from cloudstand.clock import MovedClock
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import GapKind, InstanceDetail, Inventory
from costguard.engine.run.run import RunReport, run_guard
from costguard.engine.run.scan import CloudReaders, ScanCursor, in_turn, not_reached, reading_until
from costguard.ports import Discovery, InventorySource, Target

Result = TypeVar("Result")
ACCOUNTS = tuple(f"{number:012d}" for number in range(1, 11))
ALLOWED = timedelta(seconds=80)


class InTurn:
    """`Workers` of one thread."""

    def each(self, tasks: Sequence[Callable[[], Result]]) -> Iterator[tuple[int, Result]]:
        for place, task in enumerate(tasks):
            yield place, task()


@dataclass
class Slow:
    """An inventory whose listing of a shard takes ten seconds."""

    inner: InventorySource
    clock: MovedClock
    read_shards: Counter[str] = field(default_factory=Counter)

    def discover(self, target: Target) -> Discovery:
        return self.inner.discover(target)

    def read(self, shard: Shard) -> Inventory:
        self.clock.advance(timedelta(seconds=10))
        self.read_shards[shard.account] += 1
        return self.inner.read(shard)

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        return self.inner.details(refs)

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        return self.inner.protections(ref, wanted)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, *(idle_machine(f"idle-{account}", account=account) for account in ACCOUNTS))
    yield made
    made.close()


def hurried(stage: Stage, slow: Slow, at: timedelta) -> RunReport:
    """One run with 80 seconds where reading everything takes 100."""
    stage.clock.advance(START + at - stage.clock.now())
    world = stage.world()
    reading = CloudReaders(slow, stage.reading.signals, stage.reading.prices)
    world = replace(world, readings=dict.fromkeys(world.readings, reading), workers=InTurn())
    return run_guard(world, f"run-{at}", deadline=stage.clock.now() + ALLOWED).report


def test_what_one_run_did_not_reach_the_next_begins_with(stage: Stage) -> None:
    slow = Slow(stage.inventory, stage.clock)
    for hour in range(5):
        report = hurried(stage, slow, timedelta(hours=hour))
        assert report.plan is not None
        assert {gap.kind for gap in report.plan.gaps} == {GapKind.DEADLINE}
    assert sum(slow.read_shards.values()) == 30  # six in each: three quarters of the time
    assert set(slow.read_shards.values()) == {3}


def test_a_run_that_cannot_read_everything_still_acts_on_what_it_read(stage: Stage) -> None:
    """Reading to the last second would leave none to act in, in this run and in every other."""
    slow = Slow(stage.inventory, stage.clock)
    for number in range(4):
        hurried(stage, slow, number * timedelta(hours=1))
    hurried(stage, slow, DAY + timedelta(hours=2))
    assert stage.verbs().count("stop") == 6  # a share of the fleet is one of what this run saw
    hurried(stage, slow, 2 * DAY + timedelta(hours=3))
    assert stage.verbs().count("stop") == 10


def test_a_run_with_time_enough_begins_anew(stage: Stage) -> None:
    slow = Slow(stage.inventory, stage.clock)
    hurried(stage, slow, timedelta(0))
    stage.clock.advance(timedelta(hours=1))
    world = replace(stage.world(), workers=InTurn())
    report = run_guard(world, "with time", deadline=stage.clock.now() + timedelta(hours=1)).report
    assert report.plan is not None
    assert report.plan.gaps == ()
    slow.read_shards.clear()
    hurried(stage, slow, timedelta(hours=2))
    assert sorted(slow.read_shards) == list(ACCOUNTS[:6])


SHARDS = st.lists(st.integers(0, 50).map(lambda number: Shard("aws", f"{number:012d}", "us-east-1")), unique=True)


@given(SHARDS, st.integers(0, 60), st.integers(1, 5))
def test_no_shard_waits_longer_than_one_round(shards: list[Shard], begin: int, reached: int) -> None:
    """However they are cut, after as many runs as a round takes every shard was read."""
    begin_at, seen = f"aws:{begin:012d}:us-east-1", set[Shard]()
    for _ in range(-(-len(shards) // reached)):
        order = in_turn(shards, begin_at)
        assert sorted(order) == sorted(shards)
        seen.update(order[:reached])
        left = order[reached:]
        begin_at = str(left[0]) if left else ""
    assert seen == set(shards)


def test_nobody_who_was_reached_is_said_to_be_left() -> None:
    assert not_reached((), "aws:1") == ""


@pytest.mark.parametrize(("seconds", "expected"), [(800, 600), (0, 0), (-5, 0)])
def test_a_quarter_of_the_time_is_kept_for_acting(seconds: int, expected: int) -> None:
    until = reading_until(START, START + timedelta(seconds=seconds))
    assert until == START + timedelta(seconds=expected)


def test_no_deadline_is_none() -> None:
    nothing: datetime | None = None
    assert reading_until(START, nothing) is None


def test_keys_and_networks_that_were_not_reached_come_first_in_the_next_run(tmp_path: Path) -> None:
    stage = KeyStage(tmp_path)
    world, now = stage.surroundings(), stage.clock.now()
    networks = dict.fromkeys(CLOUDS, WorldNetworks(stage.cloud, stage.clock))

    run_guard(world, "cut", deadline=now)
    run_guard(replace(world, guard="network_audit", networks=networks), "cut too", deadline=now)

    turns = ScanCursor(stage.memory.store)
    first = str(min((spec.ref.shard for spec in stage.cloud.fleet), key=str))
    assert (turns.first("kms_rotation"), turns.first("network_audit")) == (first, first)
    run_guard(world, "whole", deadline=now + DAY)
    assert turns.first("kms_rotation") == ""
    stage.close()
