"""The contract of `InventorySource`, on every provider's adapter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta

import pytest
from tests.contract.cloud_worlds import DENIED, LEFT_OUT, REPEATED, THROTTLED, World
from tests.contract.provider_worlds import WORLDS

from costguard.domain.errors import ProviderError, TruncatedReadError
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Billing, GapKind, Instance, InstanceDetail, InstanceState, Inventory


@pytest.fixture(scope="module", params=sorted(WORLDS))
def provider(request: pytest.FixtureRequest) -> Iterator[Callable[[], AbstractContextManager[World]]]:
    with WORLDS[request.param]() as new_world:
        yield new_world


@pytest.fixture
def world(provider: Callable[[], AbstractContextManager[World]]) -> Iterator[World]:
    with provider() as made:
        yield made


def read(world: World) -> Inventory:
    """Discover, then read the one region in use."""
    found = world.inventory.discover(world.target(world.shard.region))
    assert found.shards == (world.shard,)
    return world.inventory.read(world.shard)


def only(inventory: Inventory) -> Instance:
    (found,) = inventory.instances
    return found


def ref(world: World, native_id: str) -> ResourceRef:
    return ResourceRef(world.shard.cloud, world.shard.account, world.shard.region, "instance", native_id)


def test_discovery_finds_the_own_account_in_every_region(world: World) -> None:
    found = world.inventory.discover(world.target(every=True))

    assert world.shard in found.shards
    assert len({shard.region for shard in found.shards}) == len(found.shards) > 1
    assert {shard.account for shard in found.shards} == {world.shard.account}
    assert found.gaps == ()


def test_no_regions_means_none_not_all(world: World) -> None:
    assert world.inventory.discover(world.target()).shards == ()


def test_a_region_nobody_has_is_a_gap_and_the_others_go_on(world: World) -> None:
    found = world.inventory.discover(world.target("mars-north-1", world.shard.region))

    assert found.shards == (world.shard,)
    assert [(gap.shard.region, gap.kind) for gap in found.gaps] == [("mars-north-1", GapKind.UNREADABLE)]
    assert found.gaps[0].fix


def test_accelerators_are_listed_and_everything_is_counted(world: World) -> None:
    gpu = world.launch()
    world.launch(gpu=False)

    inventory = read(world)

    assert [one.ref for one in inventory.instances] == [ref(world, gpu)]
    assert inventory.instances_seen == 2
    assert inventory.complete
    assert inventory.gaps == ()


def test_an_empty_region_is_complete_and_empty(world: World) -> None:
    inventory = read(world)

    assert inventory == Inventory(world.shard, ())


def test_an_instance_tells_what_it_is(world: World) -> None:
    world.launch(tags={"Name": "trainer", "team": "nlp"})

    found = only(read(world))

    assert found.state is InstanceState.RUNNING
    assert found.billing is Billing.ON_DEMAND
    assert found.accelerator.count >= 1
    assert found.run_epoch
    assert found.launched_at is not None
    assert found.launched_at.utcoffset() == timedelta(0)
    assert found.tags == {"Name": "trainer", "team": "nlp"}
    assert found.name == "trainer"


def test_a_stopped_instance_is_listed_in_the_same_run_epoch(world: World) -> None:
    native_id = world.launch()
    before = only(read(world))
    world.stop(native_id)

    after = only(read(world))

    assert after.state is InstanceState.STOPPED
    assert after.run_epoch == before.run_epoch or (not after.run_epoch and after.stopped_by)


def test_a_terminated_instance_is_not_listed(world: World) -> None:
    world.terminate(world.launch())

    assert read(world).instances == ()


@pytest.mark.parametrize(
    ("how", "kind"),
    [(DENIED, GapKind.DENIED), (THROTTLED, GapKind.THROTTLED), (REPEATED, GapKind.TRUNCATED)],
)
def test_a_failed_listing_is_a_gap_never_an_empty_region(world: World, how: str, kind: GapKind) -> None:
    world.launch()
    world.inventory.discover(world.target(world.shard.region))
    world.go_wrong("list", how)

    inventory = world.inventory.read(world.shard)

    assert not inventory.complete
    assert [(gap.what, gap.kind, gap.shard) for gap in inventory.gaps] == [("inventory", kind, world.shard)]
    assert inventory.gaps[0].detail


def test_a_denied_listing_names_the_permission_to_grant(world: World) -> None:
    world.inventory.discover(world.target(world.shard.region))
    world.go_wrong("list", DENIED)

    (gap,) = world.inventory.read(world.shard).gaps

    assert "DescribeInstances" in gap.fix


def test_details_list_every_attached_volume(world: World) -> None:
    native_id = world.launch()
    world.add_volume(native_id)
    read(world)

    detail = world.inventory.details([ref(world, native_id)])[ref(world, native_id)]

    assert {volume.ref.native_id for volume in detail.volumes} == world.volumes(native_id)
    assert len(detail.volumes) == 2
    assert all(volume.size_gib > 0 and volume.volume_type for volume in detail.volumes)
    assert detail.snapshots == ()
    assert detail.instance.ref == ref(world, native_id)


def test_details_tell_kept_addresses_and_protections_of_each(world: World) -> None:
    plain, kept = world.launch(), world.launch()
    address = world.keep_address(kept)
    world.protect(kept)
    read(world)

    details = world.inventory.details([ref(world, plain), ref(world, kept)])

    assert [one.native_id for one in details[ref(world, kept)].kept_addresses] == [address]
    assert protections(world, details[ref(world, kept)]) == ("termination_protection",)
    assert details[ref(world, plain)].kept_addresses == ()
    assert protections(world, details[ref(world, plain)]) == ()


def protections(world: World, detail: InstanceDetail) -> tuple[str, ...]:
    """What the close look tells, and what it leaves to be asked for, which costs a request each."""
    asked = world.inventory.protections(detail.instance.ref, detail.unread_protections)
    assert not {*asked} - {*detail.unread_protections}
    return (*detail.protected_by, *asked)


def test_details_leave_out_what_is_gone(world: World) -> None:
    there = world.launch()
    read(world)

    details = world.inventory.details([ref(world, world.missing), ref(world, there)])

    assert set(details) == {ref(world, there)}


def test_details_of_nothing_ask_nothing(world: World) -> None:
    read(world)
    before = world.requests()

    assert world.inventory.details([]) == {}
    assert world.requests() == before


def test_a_volume_left_out_of_the_answer_is_an_error_never_a_short_list(world: World) -> None:
    native_id = world.launch()
    world.add_volume(native_id)
    read(world)
    world.go_wrong("volumes", LEFT_OUT)

    with pytest.raises(TruncatedReadError):
        world.inventory.details([ref(world, native_id)])


@pytest.mark.parametrize("what", ["list", "volumes"])
@pytest.mark.parametrize("how", [DENIED, THROTTLED, REPEATED])
def test_details_that_cannot_be_read_are_an_error(world: World, what: str, how: str) -> None:
    native_id = world.launch()
    read(world)
    world.go_wrong(what, how)

    with pytest.raises(ProviderError):
        world.inventory.details([ref(world, native_id)])


def test_reading_changes_nothing(world: World) -> None:
    native_id = world.launch()
    read(world)
    world.inventory.details([ref(world, native_id)])

    assert world.changes_sent() == []
