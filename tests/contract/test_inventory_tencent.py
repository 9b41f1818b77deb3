"""What the inventory of Tencent Cloud tells of machines that are not like the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.contract.tencent_world import SHARD, TencentWorld, tencent_world

from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.world.fleet import Disk
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import (
    Accelerator,
    AcceleratorKind,
    Billing,
    GapKind,
    Instance,
    InstanceDetail,
    InstanceState,
    Keeper,
    ManagedBy,
)
from costguard.providers.tencent.billing.prices import TencentPrices


@pytest.fixture
def world() -> Iterator[TencentWorld]:
    with tencent_world() as made:
        yield made


def only(world: TencentWorld) -> Instance:
    inventory = world.inventory.read(SHARD)
    assert inventory.gaps == ()
    (found,) = inventory.instances
    return found


def detail(world: TencentWorld, native_id: str) -> InstanceDetail:
    ref = ResourceRef(SHARD.cloud, SHARD.account, SHARD.region, "instance", native_id)
    return world.inventory.details([ref])[ref]


def asked(emulator: TencentEmulator) -> list[str]:
    return [call.action for call in emulator.calls]


def test_a_quarter_of_a_card_is_a_fraction(world: TencentWorld) -> None:
    world.launch(instance_type="GN7.LARGE20")
    assert only(world).accelerator == Accelerator(AcceleratorKind.NVIDIA_GPU, "T4", 0.25)


def test_a_body_without_gpu_info_is_told_by_its_type(world: TencentWorld) -> None:
    """Every recorded body of 2022 to 2024 is like that."""
    world.launch()

    def older(fields: dict[str, Any]) -> None:
        for item in fields["InstanceSet"]:
            item.pop("GPUInfo", None)

    world.changing("DescribeInstances", older)
    found = only(world)
    assert (found.accelerator.count, found.accelerator.kind) == (1.0, AcceleratorKind.NVIDIA_GPU)


def test_a_type_that_is_no_longer_sold_is_described_by_the_other_api(world: TencentWorld) -> None:
    world.launch()

    def retired(fields: dict[str, Any]) -> None:
        fields["InstanceTypeQuotaSet"] = []

    world.changing("DescribeZoneInstanceConfigInfos", retired)
    found = only(world)
    assert found.accelerator.count == 1.0
    assert found.local_disk_gib is None, "that api knows no disks: they may be there"
    assert "DescribeInstanceTypeConfigs" in asked(world.emulator)


def test_prepaid_is_shown_with_its_owner_and_price(world: TencentWorld) -> None:
    world.launch(billing=Billing.PREPAID, tags={"owner": "nlp"})
    found = only(world)
    assert (found.billing, found.tags) == (Billing.PREPAID, {"owner": "nlp"})
    prices = TencentPrices(world.session, (), now=world.clock.now())
    rate = prices.rates([found])[found.ref]
    assert rate.money.currency == "CNY"
    assert 0 < rate.money.amount < Decimal("8.7")


@pytest.mark.parametrize("billing", [Billing.ON_DEMAND, Billing.SPOT])
def test_prices_are_those_of_the_charge_type(world: TencentWorld, billing: Billing) -> None:
    world.launch(billing=billing)
    found = only(world)
    rate = TencentPrices(world.session, (), now=world.clock.now()).rates([found])[found.ref]
    assert rate.money.amount == (Decimal("8.7") if billing is Billing.ON_DEMAND else Decimal("3.48"))


def test_a_prepaid_machine_in_the_recycle_bin_is_shown_and_never_to_be_touched(world: TencentWorld) -> None:
    native_id = world.launch(billing=Billing.PREPAID)
    world.terminate(native_id)
    found = only(world)
    assert (found.state, found.run_epoch) == (InstanceState.UNKNOWN, "")


def test_an_expired_machine_is_never_to_be_touched(world: TencentWorld) -> None:
    world.launch(billing=Billing.PREPAID, prepaid_until=world.clock.now() + timedelta(days=1))
    assert only(world).state is InstanceState.RUNNING
    world.pass_time(timedelta(days=2))
    assert only(world).state is InstanceState.UNKNOWN


def test_local_disks_are_told_with_their_size_and_are_no_volumes(world: TencentWorld) -> None:
    native_id = world.launch(local_disk_gib=3570.0)
    assert only(world).local_disk_gib == 3570.0
    found = detail(world, native_id)
    assert {volume.ref.native_id for volume in found.volumes} == world.volumes(native_id)


def test_what_goes_with_a_machine_and_what_stays(world: TencentWorld) -> None:
    disks = (Disk(100, "vda", "CLOUD_PREMIUM"), Disk(50, "vdb", "CLOUD_SSD", deleted_with_instance=False))
    native_id = world.launch(disks=disks)
    found = {volume.volume_type: volume.deleted_with_instance for volume in detail(world, native_id).volumes}
    assert found == {"CLOUD_PREMIUM": True, "CLOUD_SSD": False}


@pytest.mark.parametrize(
    ("keeper", "name"), [(Keeper.AUTOSCALING, "asg-inference"), (Keeper.KUBERNETES, "cls-training")]
)
def test_nodes_and_members_of_groups_are_shown_as_theirs(world: TencentWorld, keeper: Keeper, name: str) -> None:
    native_id = world.launch(managed_by=ManagedBy(keeper, name))
    assert only(world).managed_by == ManagedBy(keeper, name)
    assert detail(world, native_id).instance.managed_by == ManagedBy(keeper, name)


@pytest.mark.parametrize("keeper", [Keeper.AUTOSCALING, Keeper.KUBERNETES])
def test_a_node_that_lost_its_tag_is_still_on_the_list(world: TencentWorld, keeper: Keeper) -> None:
    native_id = world.launch(managed_by=ManagedBy(keeper, "workers"))

    def untagged(fields: dict[str, Any]) -> None:
        for item in fields["InstanceSet"]:
            if "Tags" in item:
                item["Tags"] = []

    world.changing("DescribeInstances", untagged)
    assert only(world).managed_by == ManagedBy(keeper, "workers")
    assert detail(world, native_id).instance.managed_by == ManagedBy(keeper, "workers")


@pytest.mark.parametrize(
    "permission", ["as:DescribeAutoScalingInstances", "tke:DescribeClusters", "tke:DescribeClusterInstances"]
)
def test_without_the_lists_of_keepers_nothing_is_done_in_the_region(permission: str) -> None:
    everything = {
        "sts:GetCallerIdentity",
        "cvm:DescribeInstances",
        "cvm:DescribeZoneInstanceConfigInfos",
        "as:DescribeAutoScalingInstances",
        "tke:DescribeClusters",
        "tke:DescribeClusterInstances",
    }
    with tencent_world() as world:
        world.launch(managed_by=ManagedBy(Keeper.KUBERNETES, "workers"))
        world.emulator.allowed[SHARD.account] = everything - {permission}
        inventory = world.inventory.read(SHARD)
    assert not inventory.complete
    assert [(gap.what, gap.kind) for gap in inventory.gaps] == [("inventory", GapKind.DENIED)]
    assert permission in inventory.gaps[0].fix
    assert len(inventory.instances) == 1, "shown all the same"


def test_a_region_without_accelerators_costs_one_request(world: TencentWorld) -> None:
    world.launch(gpu=False)
    world.session.identity()
    before = len(world.emulator.calls)
    assert world.inventory.read(SHARD).instances_seen == 1
    assert asked(world.emulator)[before:] == ["DescribeInstances"]


def test_addresses_are_looked_at_where_there_are_some(world: TencentWorld) -> None:
    plain = world.launch(public_ip="203.0.113.7")
    kept = world.launch(public_ip="203.0.113.8")
    world.keep_address(kept)
    inventory = world.inventory.read(SHARD)
    told = {one.ref.native_id: (one.public_ip, one.public_ip_is_kept) for one in inventory.instances}
    assert told == {plain: ("203.0.113.7", False), kept: ("203.0.113.8", True)}


def test_without_the_permission_every_address_is_one_to_be_lost(world: TencentWorld) -> None:
    native_id = world.launch(public_ip="203.0.113.8")
    world.keep_address(native_id)
    world.emulator.allowed[SHARD.account] = {
        "sts:GetCallerIdentity",
        "cvm:DescribeInstances",
        "cvm:DescribeZoneInstanceConfigInfos",
        "as:DescribeAutoScalingInstances",
        "tke:DescribeClusters",
    }
    inventory = world.inventory.read(SHARD)
    assert [(gap.what, gap.kind) for gap in inventory.gaps] == [("details", GapKind.DENIED)]
    assert inventory.complete
    assert not inventory.instances[0].public_ip_is_kept


def test_two_hundred_machines_and_five_come_in_three_pages(world: TencentWorld) -> None:
    ids = {world.launch() for _ in range(205)}
    world.session.identity()
    before = len(world.emulator.calls)
    inventory = world.inventory.read(SHARD)
    assert {one.ref.native_id for one in inventory.instances} == ids
    assert asked(world.emulator)[before:].count("DescribeInstances") == 3
    assert asked(world.emulator)[before:].count("DescribeZoneInstanceConfigInfos") == 1


def test_a_machine_described_in_two_ways_is_an_incomplete_region(world: TencentWorld) -> None:
    world.launch()

    def twice(fields: dict[str, Any]) -> None:
        (item,) = fields["InstanceSet"]
        fields["InstanceSet"].append({**item, "InstanceName": "another"})
        fields["TotalCount"] = 2

    world.changing("DescribeInstances", twice)
    inventory = world.inventory.read(SHARD)
    assert not inventory.complete
    assert inventory.gaps[0].kind is GapKind.TRUNCATED


@pytest.mark.parametrize(
    "broken", [{"Tags": None}, {"InstanceState": 7}, {"CreatedTime": "soon"}, {"GPUInfo": []}], ids=str
)
def test_a_machine_of_another_form_is_a_gap_and_not_a_guess(world: TencentWorld, broken: dict[str, Any]) -> None:
    world.launch()
    world.changing("DescribeInstances", lambda fields: fields["InstanceSet"][0].update(broken))
    inventory = world.inventory.read(SHARD)
    assert (inventory.complete, inventory.instances) == (False, ())
    assert inventory.gaps[0].kind is GapKind.UNREADABLE


def test_another_region_is_another_shard(world: TencentWorld) -> None:
    elsewhere = replace(SHARD, region="ap-shanghai")
    (found,) = world.inventory.read(elsewhere).instances
    assert found.ref.region == "ap-shanghai"
    assert world.inventory.read(SHARD).instances == ()


def test_a_region_that_does_not_exist_is_a_gap(world: TencentWorld) -> None:
    found = world.inventory.read(replace(SHARD, region="mars-north-1"))
    assert [(gap.what, gap.kind) for gap in found.gaps] == [("inventory", GapKind.UNREADABLE)]
    assert "take the region out" in found.gaps[0].fix


def details(world: TencentWorld, native_ids: list[str]) -> dict[str, InstanceDetail]:
    refs = [ResourceRef(SHARD.cloud, SHARD.account, SHARD.region, "instance", native_id) for native_id in native_ids]
    return {ref.native_id: found for ref, found in world.inventory.details(refs).items()}


def test_disks_and_copies_of_several_machines_are_listed_a_page_at_a_time(world: TencentWorld) -> None:
    """A filter takes five values, so eleven machines with two disks each would be three requests and five."""
    both = (Disk(50, "/dev/vda", "CLOUD_SSD"), Disk(500, "/dev/vdb", "CLOUD_SSD"))
    native_ids = [world.launch(disks=both) for _ in range(11)]
    for native_id in native_ids:
        world.world.create_snapshot(min(world.volumes(native_id)), "owner")
    apart = {native_id: detail(world, native_id) for native_id in native_ids}
    before = len(asked(world.emulator))

    together = details(world, native_ids)

    since = asked(world.emulator)[before:]
    assert [since.count(action) for action in ("DescribeDisks", "DescribeSnapshots")] == [1, 1]
    assert together == apart
    assert all((len(found.volumes), len(found.snapshots)) == (2, 1) for found in together.values())
