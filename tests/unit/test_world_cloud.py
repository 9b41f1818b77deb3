"""The world behaves like a cloud: things take time, wrong requests change nothing, and all of it is recorded."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from cloudstand.fleets import aws_machine
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import Disk
from cloudstand.world.kinds import Billing, InstanceState, SnapshotState
from cloudstand.world.records import Machine, Refusal, WorldRefusalError

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)
MINUTE = timedelta(minutes=1)


def one_machine(**more: Any) -> tuple[World, Machine]:
    world = World([aws_machine("box", "g5g.xlarge", does.idle(), NOW - timedelta(days=9), **more)], NOW)
    return world, next(iter(world.machines.values()))


def told(world: World) -> list[tuple[str, str]]:
    return [(event.by, event.what) for event in world.history]


def test_a_stop_takes_about_a_minute() -> None:
    world, machine = one_machine()
    world.stop(machine.native_id, "api")
    states = [machine.state]
    for moment in (NOW + timedelta(seconds=59), NOW + MINUTE):
        world.tick(moment)
        states.append(machine.state)
    assert states == [InstanceState.STOPPING, InstanceState.STOPPING, InstanceState.STOPPED]
    assert told(world) == [("api", "stop"), ("cloud", "stopped")]


def test_what_was_due_happens_at_its_own_time_however_far_time_jumps() -> None:
    world, machine = one_machine()
    world.stop(machine.native_id, "api")
    world.tick(NOW + timedelta(days=3))
    assert world.history[-1].at == NOW + MINUTE
    assert world.now == NOW + timedelta(days=3)


def test_time_does_not_run_backwards() -> None:
    world, _ = one_machine()
    with pytest.raises(ValueError, match="cannot go back"):
        world.tick(NOW - MINUTE)


def test_a_start_begins_a_new_run() -> None:
    world, machine = one_machine()
    first = machine.launched_at
    world.stop(machine.native_id, "api")
    world.tick(NOW + 5 * MINUTE)
    world.start(machine.native_id, "owner")
    assert machine.launched_at == NOW + 5 * MINUTE
    states = [machine.state]
    world.tick(NOW + 6 * MINUTE)
    assert [*states, machine.state] == [InstanceState.PENDING, InstanceState.RUNNING]
    assert machine.stop_requested_at is None
    assert machine.runs == [(first, NOW), (NOW + 5 * MINUTE, None)]


def test_stopping_what_is_stopped_changes_nothing() -> None:
    world, machine = one_machine()
    world.stop(machine.native_id, "api")
    world.tick(NOW + 5 * MINUTE)
    seen = list(world.history)
    world.stop(machine.native_id, "api")
    world.tick(NOW + 9 * MINUTE)
    assert world.history == seen


@pytest.mark.parametrize(
    ("more", "verb", "refusal"),
    [
        ({"billing": Billing.SPOT, "one_time_spot": True}, "stop", Refusal.CANNOT_STOP),
        ({"protections": ("stop_protection",)}, "stop", Refusal.STOP_PROTECTED),
        ({"protections": ("stop_protection",)}, "terminate", Refusal.TERMINATION_PROTECTED),
        ({"protections": ("termination_protection",)}, "terminate", Refusal.TERMINATION_PROTECTED),
    ],
)
def test_a_refusal_changes_nothing(more: dict[str, Any], verb: str, refusal: Refusal) -> None:
    world, machine = one_machine(**more)
    with pytest.raises(WorldRefusalError) as refused:
        getattr(world, verb)(machine.native_id, "api")
    assert refused.value.refusal is refusal
    assert machine.state is InstanceState.RUNNING
    assert world.history == []


def test_what_is_ended_cannot_be_stopped_or_started() -> None:
    world, machine = one_machine()
    world.terminate(machine.native_id, "api")
    world.tick(NOW + 5 * MINUTE)
    for verb in (world.stop, world.start):
        with pytest.raises(WorldRefusalError, match="wrong_state"):
            verb(machine.native_id, "api")


def test_what_is_still_stopping_cannot_be_started() -> None:
    world, machine = one_machine()
    world.stop(machine.native_id, "api")
    with pytest.raises(WorldRefusalError, match="wrong_state"):
        world.start(machine.native_id, "owner")


def test_a_scarce_machine_does_not_start_again() -> None:
    world, machine = one_machine(no_capacity=True)
    world.stop(machine.native_id, "api")
    world.tick(NOW + 5 * MINUTE)
    with pytest.raises(WorldRefusalError, match="no_capacity"):
        world.start(machine.native_id, "owner")
    assert machine.state is InstanceState.STOPPED


def test_termination_deletes_the_disks_that_go_with_it_and_leaves_the_rest_billing() -> None:
    world, machine = one_machine(
        disks=(Disk(100), Disk(500, device="/dev/sdf", deleted_with_instance=False)), kept_address=True
    )
    root, data = world.volumes_of(machine.native_id)
    world.terminate(machine.native_id, "api")
    world.tick(NOW + 5 * MINUTE)
    assert root.deleted_at is not None
    assert (data.deleted_at, data.machine) == (None, "")
    assert [address.machine for address in world.addresses.values()] == [""]
    assert world.volumes_of(machine.native_id) == []


def test_an_ended_machine_fades_after_an_hour() -> None:
    world, machine = one_machine()
    world.terminate(machine.native_id, "api")
    world.tick(NOW + 59 * MINUTE)
    assert world.is_listed(machine)
    world.tick(NOW + 70 * MINUTE)
    assert not world.is_listed(machine)
    with pytest.raises(WorldRefusalError, match="not_found"):
        world.terminate(machine.native_id, "api")


def test_a_snapshot_is_pending_for_as_long_as_its_disk_is_large() -> None:
    world, machine = one_machine(disks=(Disk(100), Disk(2000, device="/dev/sdf")))
    small, large = (world.create_snapshot(disk.native_id, "api") for disk in world.volumes_of(machine.native_id))
    assert (small.state, large.state) == (SnapshotState.PENDING, SnapshotState.PENDING)
    world.tick(NOW + 15 * MINUTE)
    assert (small.state, large.state) == (SnapshotState.COMPLETED, SnapshotState.PENDING)
    world.tick(NOW + 4 * 60 * MINUTE)
    assert large.state is SnapshotState.COMPLETED


def test_a_set_of_copies_is_begun_by_one_call_and_fails_as_one() -> None:
    """EBS user guide: if any one of the set fails, all of the others enter the error state."""
    world, machine = one_machine(disks=(Disk(100), Disk(2000, device="/dev/sdf", snapshots_fail=True)))
    small, large = world.create_snapshots(machine.native_id, "api", decision_id="d-1")
    assert (small.set_id, small.started_at, small.decision_id) == (large.set_id, large.started_at, "d-1")
    world.tick(NOW + 15 * MINUTE)
    assert (small.state, large.state) == (SnapshotState.COMPLETED, SnapshotState.PENDING)
    world.tick(NOW + 4 * 60 * MINUTE)
    assert (small.state, large.state) == (SnapshotState.FAILED, SnapshotState.FAILED)


def test_of_a_set_only_the_named_disks_are_copied_with_tags_of_their_own() -> None:
    world, machine = one_machine(disks=(Disk(100), Disk(100, device="/dev/sdf")))
    root, data = world.volumes_of(machine.native_id)
    (copy,) = world.create_snapshots(machine.native_id, "api", tags={data.native_id: {"a": "b"}})
    assert (copy.volume, copy.tags, list(world.snapshots_of(root.native_id))) == (data.native_id, {"a": "b"}, [])


def test_no_set_is_made_of_a_machine_that_is_gone() -> None:
    world, machine = one_machine()
    world.terminate(machine.native_id, "api")
    world.tick(NOW + 5 * MINUTE)
    with pytest.raises(WorldRefusalError, match="wrong_state"):
        world.create_snapshots(machine.native_id, "api")


def test_a_snapshot_can_fail() -> None:
    world, machine = one_machine(disks=(Disk(100, snapshots_fail=True),))
    copy = world.create_snapshot(world.volumes_of(machine.native_id)[0].native_id, "api")
    world.tick(NOW + timedelta(hours=1))
    assert copy.state is SnapshotState.FAILED
    assert told(world)[-1] == ("cloud", "snapshot_failed")


def test_a_copy_outlives_its_machine() -> None:
    world, machine = one_machine()
    copy = world.create_snapshot(world.volumes_of(machine.native_id)[0].native_id, "api")
    world.terminate(machine.native_id, "api")
    world.tick(NOW + timedelta(hours=3))
    assert copy.state is SnapshotState.COMPLETED
    with pytest.raises(WorldRefusalError, match="not_found"):
        world.create_snapshot(copy.volume, "api")


def test_tags_and_protections_are_set_and_lifted_and_recorded() -> None:
    world, machine = one_machine(tags={"team": "research"})
    world.tag(machine.native_id, "keep", "yes", "owner")
    world.untag(machine.native_id, "team", "owner")
    world.protect(machine.native_id, "termination_protection", "owner")
    assert machine.tags == {"Name": "box", "keep": "yes"}
    assert machine.protections == {"termination_protection"}
    world.protect(machine.native_id, "termination_protection", "owner", on=False)
    assert machine.protections == set()
    assert [by for by, _ in told(world)] == ["owner"] * 4


def test_every_change_is_noticed_by_its_revision() -> None:
    world, machine = one_machine()
    seen = world.revision
    world.tick(NOW + timedelta(days=1))
    assert world.revision == seen, "time alone changes nothing"
    world.stop(machine.native_id, "api")
    assert world.revision > seen
