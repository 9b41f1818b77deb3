"""What EC2 does otherwise: batches by zone, calls that may be repeated, ended machines listed for an hour."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.world_ports.inventory import WorldInventory
from tests.world_ports.translate import to_product

from cloudstand.clock import MovedClock
from cloudstand.fleets import aws_machine
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec
from cloudstand.world.kinds import Billing
from cloudstand.world.records import Refusal, WorldPartialEffectError, WorldRefusalError
from costguard.domain.resources import InstanceState

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
PROTECTED = ("termination_protection",)


def box(name: str, zone: str = "us-east-1a", **more: Any) -> MachineSpec:
    return aws_machine(name, "g5g.xlarge", does.idle(), NOW - 9 * DAY, zone=zone, **more)


def states(world: World) -> list[str]:
    return [machine.state.value for machine in world.machines.values()]


def test_a_protected_machine_fails_its_own_zone_while_the_others_end_and_the_call_reports_failure() -> None:
    fleet = [box("a"), box("b"), box("c", "us-east-1b", protections=PROTECTED), box("d", "us-east-1b")]
    world = World(fleet, NOW)
    with pytest.raises(WorldPartialEffectError) as failed:
        world.terminate_many([spec.native_id for spec in fleet], "costguard")
    assert states(world) == ["terminating", "terminating", "running", "running"]
    assert failed.value.refusal is Refusal.TERMINATION_PROTECTED
    assert failed.value.done == (fleet[0].native_id, fleet[1].native_id)


def test_one_machine_a_call_means_that_a_refusal_changed_nothing() -> None:
    """Why the executor asks for one at a time: then failed is failed, and done is done."""
    fleet = [box("a"), box("b", "us-east-1b", protections=PROTECTED), box("c", "us-east-1b")]
    world = World(fleet, NOW)
    refused = []
    for spec in fleet:
        try:
            world.terminate_many([spec.native_id], "costguard")
        except WorldRefusalError as err:
            refused.append(err.native_id)
    assert refused == [fleet[1].native_id]
    assert states(world) == ["terminating", "running", "terminating"]


def test_an_unknown_id_fails_the_whole_call() -> None:
    world = World([box("a")], NOW)
    with pytest.raises(WorldRefusalError, match="not_found: i-0"):
        world.terminate_many([*world.machines, "i-0"], "costguard")
    assert world.history == []


def test_a_batch_that_nothing_stands_against_ends_every_machine_once() -> None:
    world = World([box("a"), box("b", "us-east-1b")], NOW)
    world.terminate_many([*world.machines, *world.machines], "costguard")
    assert [event.what for event in world.history] == ["terminate", "terminate"]


def test_terminating_and_stopping_may_be_repeated() -> None:
    world = World([box("a"), box("b")], NOW)
    ended, stopped = world.machines
    world.terminate(ended, "api")
    world.stop(stopped, "api")
    world.tick(NOW + 2 * MINUTE)
    before = list(world.history)
    world.terminate(ended, "api")
    world.stop(stopped, "api")
    assert world.history == before


def test_prepaid_is_a_discount_and_no_machine_so_terminating_is_not_refused() -> None:
    world = World([box("a", billing=Billing.PREPAID)], NOW)
    (native_id,) = world.machines
    world.terminate(native_id, "owner")
    assert states(world) == ["terminating"]


def test_a_one_time_spot_machine_ends_but_never_stops() -> None:
    world = World([box("a", billing=Billing.SPOT, one_time_spot=True)], NOW)
    (native_id,) = world.machines
    with pytest.raises(WorldRefusalError, match="cannot_stop"):
        world.stop(native_id, "owner")
    world.terminate(native_id, "owner")
    assert states(world) == ["terminating"]


def test_the_epoch_is_the_launch_time_to_the_second() -> None:
    world = World([box("a")], NOW)
    (machine,) = world.machines.values()
    assert machine.run_epoch == "2026-02-21T09:00:00+00:00"
    world.stop(machine.native_id, "owner")
    world.tick(NOW + timedelta(minutes=5, microseconds=7))
    world.start(machine.native_id, "owner")
    assert machine.run_epoch == "2026-03-02T09:05:00+00:00"


def test_protection_is_seen_only_by_whoever_asks_for_it() -> None:
    world = World([box("a", protections=PROTECTED)], NOW)
    inventory = WorldInventory(world, MovedClock(NOW))
    (spec,) = world.fleet
    assert inventory.read(to_product(spec.shard)).instances[0].protected_by == ()
    close = inventory.details([to_product(spec.ref)])[to_product(spec.ref)]
    assert (close.protected_by, set(close.unread_protections)) == ((), {"termination_protection", "stop_protection"})
    assert inventory.protections(to_product(spec.ref), close.unread_protections) == PROTECTED
    assert inventory.protections(to_product(spec.ref), ()) == ()


def test_the_plain_address_is_released_once_the_machine_is_stopped_and_a_kept_one_stays() -> None:
    plain, kept = box("a", public_ip="203.0.113.7"), box("b", public_ip="203.0.113.8", kept_address=True)
    world, clock = World([plain, kept], NOW), MovedClock(NOW)
    inventory = WorldInventory(world, clock)

    def addresses() -> list[tuple[str, bool]]:
        return [(seen.public_ip, seen.public_ip_is_kept) for seen in inventory.read(to_product(plain.shard)).instances]

    assert addresses() == [("203.0.113.7", False), ("203.0.113.8", True)]
    for native_id in world.machines:
        world.stop(native_id, "owner")
    assert addresses() == [("203.0.113.7", False), ("203.0.113.8", True)]
    clock.advance(2 * MINUTE)
    assert addresses() == [("", False), ("203.0.113.8", True)]
    released = [event.native_id for event in world.history if event.what == "public_ip_released"]
    assert released == [plain.native_id]


def test_no_stop_is_ever_billed() -> None:
    world, clock = World([box("a", billing=Billing.PREPAID)], NOW), MovedClock(NOW)
    (native_id,) = world.machines
    world.stop(native_id, "owner")
    clock.advance(2 * MINUTE)
    (seen,) = WorldInventory(world, clock).read(to_product(world.fleet[0].shard)).instances
    assert (seen.state, seen.billed_while_stopped) == (InstanceState.STOPPED, False)


@pytest.mark.parametrize("wrong", [{"recycles": True}, {"stop_keeps_billing": True}, {"prepaid_until": NOW}])
def test_what_a_cloud_does_not_have_is_refused_in_its_spec(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} does not go with aws"):
        box("a", **wrong)
