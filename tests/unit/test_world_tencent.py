"""What Tencent does otherwise: the recycle bin, null addresses, epochs without a time, refunds by quota."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.world_ports.inventory import WorldInventory
from tests.world_ports.translate import to_product

from cloudstand.clock import MovedClock
from cloudstand.fleets import TENCENT_ACCOUNT, tencent_machine
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import Disk
from cloudstand.world.kinds import Billing, InstanceState
from cloudstand.world.records import Machine, Operation, Refusal, WorldRefusalError
from costguard.domain.resources import Instance

NOW = datetime(2026, 3, 2, 9, 0, 20, tzinfo=timezone.utc)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def one_machine(**more: Any) -> tuple[World, Machine]:
    world = World([tencent_machine("box", does.idle(), NOW - 9 * DAY, **more)], NOW)
    return world, next(iter(world.machines.values()))


def shown(world: World) -> Instance | None:
    (shard,) = world.shards
    listed = WorldInventory(world, MovedClock(world.now)).read(to_product(shard)).instances
    return listed[0] if listed else None


def told(world: World) -> list[tuple[str, str]]:
    return [(event.by, event.what) for event in world.history]


def recycled(**more: Any) -> tuple[World, Machine]:
    world, machine = one_machine(**{"recycles": True, **more})
    world.terminate(machine.native_id, "costguard")
    world.tick(NOW + MINUTE)
    return world, machine


def test_the_first_terminate_of_a_prepaid_machine_only_puts_it_into_the_recycle_bin() -> None:
    world, machine = one_machine(billing=Billing.PREPAID)
    world.terminate(machine.native_id, "owner")
    world.tick(NOW + MINUTE)
    assert told(world) == [("owner", "terminate"), ("cloud", "recycled")]
    assert machine.recycled_at is not None
    assert [volume.deleted_at for volume in world.volumes_of(machine.native_id)] == [None]


def test_any_machine_can_be_put_where_it_recycles() -> None:
    world, machine = recycled()
    assert machine.spec.billing is Billing.ON_DEMAND
    assert told(world)[-1] == ("cloud", "recycled")


def test_a_recycled_machine_is_shown_in_a_state_that_is_never_acted_on() -> None:
    world, _ = recycled()
    seen = shown(world)
    assert seen is not None
    assert seen.state is to_product(InstanceState.UNKNOWN)


def test_the_second_terminate_destroys_for_good() -> None:
    disks = (Disk(100, "vda"), Disk(50, "vdb", deleted_with_instance=False))
    world, machine = recycled(disks=disks)
    system, data = world.volumes_of(machine.native_id)
    world.terminate(machine.native_id, "costguard")
    assert told(world)[-2:] == [("costguard", "terminate"), ("costguard", "destroyed")]
    assert (system.deleted_at, data.deleted_at, data.machine) == (world.now, None, "")
    assert shown(world) is None
    for verb in (world.terminate, world.start, world.stop, world.restore):
        with pytest.raises(WorldRefusalError):
            verb(machine.native_id, "owner")


def test_a_second_terminate_destroys_even_before_the_bin_has_the_machine() -> None:
    world, machine = one_machine(recycles=True)
    world.terminate(machine.native_id, "costguard")
    world.terminate(machine.native_id, "costguard")
    assert told(world)[-1] == ("costguard", "destroyed")
    world.tick(NOW + DAY)
    assert ("cloud", "recycled") not in told(world)


@pytest.mark.parametrize(
    ("more", "kept"), [({"recycles": True}, 2 * HOUR), ({"billing": Billing.PREPAID}, 7 * DAY)], ids=str
)
def test_the_bin_is_emptied_by_itself(more: dict[str, Any], kept: timedelta) -> None:
    world, machine = one_machine(**more)
    world.terminate(machine.native_id, "owner")
    world.tick(NOW + kept)
    assert told(world)[-1] == ("cloud", "recycled")
    world.tick(NOW + kept + MINUTE)
    assert told(world)[-1] == ("cloud", "destroyed")


@pytest.mark.parametrize("wait", [timedelta(0), MINUTE], ids=["at once", "from the bin"])
def test_destroying_loses_the_local_disk_once(wait: timedelta) -> None:
    world, machine = one_machine(recycles=True, local_disk_gib=440.0)
    world.terminate(machine.native_id, "costguard")
    world.tick(NOW + wait)
    world.terminate(machine.native_id, "costguard")
    assert [what for _, what in told(world)].count("local_disk_lost") == 1


def test_an_owner_can_take_a_machine_out_of_the_bin() -> None:
    world, machine = recycled()
    world.restore(machine.native_id, "owner")
    assert machine.state is InstanceState.STOPPED
    assert machine.run_epoch == machine.latest_request_id, "whoever restores it is not whoever stopped it"
    world.tick(NOW + DAY)
    assert machine.state is InstanceState.STOPPED, "the bin has forgotten it"
    world.terminate(machine.native_id, "owner")
    world.tick(NOW + DAY + MINUTE)
    assert told(world)[-1] == ("cloud", "recycled"), "the count of calls begins anew"


def test_what_is_not_in_the_bin_cannot_be_restored() -> None:
    world, machine = one_machine()
    with pytest.raises(WorldRefusalError, match="wrong_state"):
        world.restore(machine.native_id, "owner")


def test_a_recycled_machine_can_neither_be_stopped_nor_started() -> None:
    world, machine = recycled()
    for verb in (world.stop, world.start):
        with pytest.raises(WorldRefusalError, match="wrong_state"):
            verb(machine.native_id, "owner")


def test_a_pay_as_you_go_machine_is_destroyed_at_once_and_no_longer_listed() -> None:
    world, machine = one_machine()
    world.terminate(machine.native_id, "owner")
    world.tick(NOW + MINUTE)
    assert told(world) == [("owner", "terminate"), ("cloud", "terminated")]
    assert shown(world) is None


def test_a_prepaid_machine_is_refused_once_the_refund_quota_is_used_up() -> None:
    fleet = [tencent_machine(name, does.idle(), NOW - DAY, billing=Billing.PREPAID) for name in "ab"]
    world = World(fleet, NOW)
    world.refund_quota("tencent", TENCENT_ACCOUNT, 1)
    world.terminate(fleet[0].native_id, "owner")
    assert world.refusal(Operation.TERMINATE, fleet[1].native_id) is Refusal.REFUND_QUOTA
    assert world.refusal(Operation.TERMINATE, fleet[0].native_id) is None, "what is refunded already can be destroyed"


def test_one_call_takes_one_charge_type() -> None:
    fleet = [
        tencent_machine("a", does.idle(), NOW - DAY),
        tencent_machine("b", does.idle(), NOW - DAY, billing=Billing.PREPAID),
    ]
    world = World(fleet, NOW)
    with pytest.raises(WorldRefusalError, match="mixed_billing"):
        world.terminate_many([spec.native_id for spec in fleet], "owner")
    assert world.history == []


def test_a_batch_beyond_the_refund_quota_changes_nothing() -> None:
    fleet = [tencent_machine(name, does.idle(), NOW - DAY, billing=Billing.PREPAID) for name in "ab"]
    world = World(fleet, NOW)
    world.refund_quota("tencent", TENCENT_ACCOUNT, 1)
    seen = list(world.history)
    with pytest.raises(WorldRefusalError, match="refund_quota"):
        world.terminate_many([spec.native_id for spec in fleet], "owner")
    assert world.history == seen


def test_the_plain_address_is_null_as_soon_as_a_stop_begins() -> None:
    world, machine = one_machine(public_ip="203.0.113.7")
    world.stop(machine.native_id, "owner")
    assert machine.state is InstanceState.STOPPING
    assert machine.public_ip is None
    assert told(world) == [("owner", "stop"), ("cloud", "public_ip_released")]
    seen = shown(world)
    assert seen is not None
    assert seen.public_ip == ""


def test_a_machine_may_have_null_for_an_address_from_the_beginning() -> None:
    world, machine = one_machine()
    assert machine.public_ip is None
    seen = shown(world)
    assert seen is not None
    assert (seen.public_ip, seen.public_ip_is_kept) == ("", False)


def test_a_stop_that_keeps_charging_keeps_the_plain_address() -> None:
    world, machine = one_machine(public_ip="203.0.113.7", stop_keeps_billing=True)
    world.stop(machine.native_id, "owner")
    world.tick(NOW + 2 * MINUTE)
    assert machine.public_ip == "203.0.113.7"
    seen = shown(world)
    assert seen is not None
    assert seen.billed_while_stopped


def test_the_latest_operation_tells_the_run_and_once_stopped_who_stopped_it() -> None:
    world, machine = one_machine()
    first = machine.run_epoch
    world.tag(machine.native_id, "a", "b", "owner")
    assert (machine.run_epoch, machine.stopped_by) == (first, "")
    world.stop(machine.native_id, "owner")
    world.tick(NOW + 2 * MINUTE)
    seen = shown(world)
    assert seen is not None
    assert (seen.run_epoch, seen.stopped_by) == ("", machine.latest_request_id)
    world.start(machine.native_id, "owner")
    assert machine.stopped_by == ""
    assert machine.run_epoch not in {"", first, seen.stopped_by}
    assert [len(part) for part in first.split("-")] == [8, 4, 4, 4, 12]


def test_no_time_of_a_start_is_told_but_the_first() -> None:
    world, machine = one_machine()
    world.stop(machine.native_id, "owner")
    world.tick(NOW + 2 * MINUTE)
    world.start(machine.native_id, "owner")
    seen = shown(world)
    assert seen is not None
    assert seen.launched_at == machine.spec.launched_at


@pytest.mark.parametrize(("verb", "prepare"), [("stop", "stop"), ("start", "")])
def test_a_call_in_the_wrong_state_is_an_error_even_if_nothing_would_change(verb: str, prepare: str) -> None:
    world, machine = one_machine()
    if prepare:
        getattr(world, prepare)(machine.native_id, "owner")
        world.tick(NOW + 2 * MINUTE)
    with pytest.raises(WorldRefusalError, match="wrong_state"):
        getattr(world, verb)(machine.native_id, "owner")


def test_a_disk_that_is_being_copied_cannot_be_copied_again() -> None:
    world, machine = one_machine()
    (disk,) = world.volumes_of(machine.native_id)
    first = world.create_snapshot(disk.native_id, "owner")
    with pytest.raises(WorldRefusalError, match="copy_under_way"):
        world.create_snapshot(disk.native_id, "costguard")
    world.tick(first.completes_at)
    world.create_snapshot(disk.native_id, "costguard")
    assert first.native_id.startswith("snap-")


def test_termination_protection_is_told_by_the_list() -> None:
    world, _ = one_machine(protections=("termination_protection",))
    seen = shown(world)
    assert seen is not None
    assert seen.protected_by == ("termination_protection",)
