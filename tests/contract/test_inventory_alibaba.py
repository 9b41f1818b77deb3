"""The inventory of Alibaba Cloud where it differs from other clouds, on the emulator."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.contract.alibaba_world import AlibabaStandIn, AlibabaWorld, alibaba_stand_in, alibaba_world
from tests.world_ports.translate import to_product

from cloudstand.wire.faults import FaultKind
from cloudstand.world.fleet import Disk
from costguard.domain.errors import AccessDeniedError, ProviderError, TruncatedReadError, UnavailableError
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import (
    Accelerator,
    AcceleratorKind,
    Billing,
    GapKind,
    Instance,
    InstanceDetail,
    InstanceState,
    Inventory,
    Keeper,
    ManagedBy,
    SnapshotState,
)
from costguard.ports import Target
from costguard.providers.alibaba.compute.source import AlibabaInventory
from costguard.providers.alibaba.core.session import CLOSED_REGIONS, AlibabaSession


@pytest.fixture(scope="module")
def stand_in() -> Iterator[AlibabaStandIn]:
    with alibaba_stand_in() as made:
        yield made


@pytest.fixture
def world(stand_in: AlibabaStandIn) -> Iterator[AlibabaWorld]:
    with alibaba_world(stand_in) as made:
        yield made


def read(world: AlibabaWorld) -> Inventory:
    return world.inventory.read(world.shard)


def only(world: AlibabaWorld) -> Instance:
    (found,) = read(world).instances
    return found


def detail(world: AlibabaWorld, native_id: str) -> InstanceDetail:
    ref = ResourceRef(world.shard.cloud, world.shard.account, world.shard.region, "instance", native_id)
    return world.inventory.details([ref])[ref]


def asked(world: AlibabaWorld, action: str) -> list[dict[str, str]]:
    return [one for one in world.relay.asked if one.get("Action") == action]


def test_an_empty_region_is_asked_about_by_a_dry_run(world: AlibabaWorld) -> None:
    inventory = read(world)

    assert inventory == Inventory(world.shard, ())
    assert [one.get("DryRun", "") for one in asked(world, "DescribeInstances")] == ["", "true"]


def test_a_region_with_machines_needs_no_dry_run(world: AlibabaWorld) -> None:
    world.launch(gpu=False)

    inventory = read(world)

    assert (inventory.instances, inventory.instances_seen, inventory.complete) == ((), 1, True)
    assert [one.get("DryRun", "") for one in asked(world, "DescribeInstances")] == [""]


def test_a_list_that_is_empty_because_it_is_denied_is_a_gap(world: AlibabaWorld) -> None:
    world.launch()
    world.go_wrong("list", "denied")

    (gap,) = read(world).gaps

    assert (gap.what, gap.kind) == ("inventory", GapKind.DENIED)
    assert "empty list" in gap.detail
    assert gap.fix == "grant ecs:DescribeInstances to these credentials"


def test_an_empty_list_whose_dry_run_does_not_answer_is_a_gap(world: AlibabaWorld) -> None:
    world.inventory.discover(world.target(world.shard.region))
    world.relay.ignored.add("DescribeInstances")

    (gap,) = read(world).gaps

    assert (gap.what, gap.kind) == ("inventory", GapKind.UNAVAILABLE)


def test_a_machine_is_gone_only_where_asking_is_permitted(world: AlibabaWorld) -> None:
    """Else a permission taken away would close every case as vanished."""
    native_id = world.launch()
    ref = only(world).ref
    world.go_wrong("list", "denied")

    with pytest.raises(AccessDeniedError):
        world.inventory.details([ref])
    world.heal()
    world.terminate(native_id)
    assert world.inventory.details([ref]) == {}


def test_disks_that_are_denied_are_an_error_not_none(world: AlibabaWorld) -> None:
    native_id = world.launch()
    read(world)
    world.go_wrong("volumes", "denied")

    with pytest.raises(AccessDeniedError, match="DescribeDisks"):
        detail(world, native_id)


def test_a_machine_without_a_system_disk_is_an_error(world: AlibabaWorld) -> None:
    native_id = world.launch()
    read(world)
    world.relay.changes["DescribeDisks"] = lambda answer: {**answer, "Disks": {"Disk": []}, "TotalCount": 0}

    with pytest.raises(TruncatedReadError, match="system disk"):
        detail(world, native_id)


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: {**answer, "TotalCount": None},
        lambda answer: {k: v for k, v in answer.items() if k != "TotalCount"},
        lambda answer: {**answer, "Disks": {"Disk": [{**answer["Disks"]["Disk"][0], "InstanceId": "i-another"}]}},
    ],
)
def test_an_answer_that_may_leave_a_disk_out_is_an_error(world: AlibabaWorld, change: Any) -> None:
    native_id = world.launch()
    read(world)

    def shown(answer: dict[str, Any]) -> dict[str, Any]:
        for disk in answer["Disks"]["Disk"]:
            disk["Attachments"] = {"Attachment": []}
        found: dict[str, Any] = change(answer)
        return found

    world.relay.changes["DescribeDisks"] = shown

    with pytest.raises(ProviderError):
        detail(world, native_id)


def test_local_disks_are_no_volumes_and_count_as_lost_by_a_stop(world: AlibabaWorld) -> None:
    native_id = world.launch(instance_type="ecs.gn5-c4g1.xlarge")

    found = detail(world, native_id)

    assert {volume.ref.native_id for volume in found.volumes} == world.volumes(native_id)
    assert found.instance.local_disk_gib == 440.0


def test_a_local_disk_counts_although_the_type_is_said_to_have_none(world: AlibabaWorld) -> None:
    native_id = world.launch()

    def with_local(answer: dict[str, Any]) -> dict[str, Any]:
        (disk,) = answer["Disks"]["Disk"]
        local = {**disk, "DiskId": "d-local", "Category": "local_ssd_pro", "Type": "data", "Size": 894}
        return {**answer, "Disks": {"Disk": [disk, local]}, "TotalCount": 2}

    read(world)
    world.relay.changes["DescribeDisks"] = with_local

    found = detail(world, native_id)
    assert found.instance.local_disk_gib == 894.0
    assert len(found.volumes) == 1


def test_what_a_release_deletes_is_told_of_each_disk(world: AlibabaWorld) -> None:
    kept = Disk(500, "/dev/xvdb", "cloud_essd", deleted_with_instance=False)
    native_id = world.launch(disks=(Disk(100, "/dev/xvda", "cloud_essd"), kept))

    volumes = sorted(detail(world, native_id).volumes, key=lambda volume: volume.size_gib)

    assert [(v.size_gib, v.volume_type, v.deleted_with_instance) for v in volumes] == [
        (100.0, "cloud_essd", True),
        (500.0, "cloud_essd", False),
    ]


def test_snapshots_are_pending_until_accomplished_and_may_fail(world: AlibabaWorld) -> None:
    native_id = world.launch(
        disks=(Disk(10, "/dev/xvda", "cloud_essd"), Disk(10, "/dev/xvdb", "cloud_ssd", snapshots_fail=True))
    )
    volumes = sorted(world.volumes(native_id))
    for volume in volumes:
        world.world.create_snapshot(volume, "owner")

    def states() -> list[str]:
        return sorted(snapshot.state.value for snapshot in detail(world, native_id).snapshots)

    assert states() == [SnapshotState.PENDING.value] * 2
    world.pass_(timedelta(hours=1))
    assert states() == [SnapshotState.COMPLETED.value, SnapshotState.FAILED.value]


@pytest.mark.parametrize("source", [{"SourceDiskId": ""}, {"SourceDiskId": None}, {}])
def test_a_copied_snapshot_of_no_disk_is_none_of_this_and_breaks_nothing(
    world: AlibabaWorld, source: dict[str, Any]
) -> None:
    native_id = world.launch()
    (volume,) = world.volumes(native_id)
    world.world.create_snapshot(volume, "owner")
    world.pass_(timedelta(hours=1))

    def with_copied(answer: dict[str, Any]) -> dict[str, Any]:
        own = answer["Snapshots"]["Snapshot"][0]
        copied = {name: value for name, value in own.items() if name != "SourceDiskId"}
        return {**answer, "Snapshots": {"Snapshot": [{**copied, "SnapshotId": "s-copied", **source}, own]}}

    world.relay.changes["DescribeSnapshots"] = with_copied

    (found,) = detail(world, native_id).snapshots
    assert (found.volume.native_id, found.ref.native_id != "s-copied") == (volume, True)


def test_a_snapshot_of_another_disk_makes_the_answer_untrusted(world: AlibabaWorld) -> None:
    native_id = world.launch()
    (volume,) = world.volumes(native_id)
    world.world.create_snapshot(volume, "owner")

    def of_another(answer: dict[str, Any]) -> dict[str, Any]:
        for item in answer["Snapshots"]["Snapshot"]:
            item["SourceDiskId"] = "d-another"
        return answer

    world.relay.changes["DescribeSnapshots"] = of_another
    with pytest.raises(TruncatedReadError):
        detail(world, native_id)


@pytest.mark.parametrize("more", [{"billing": Billing.PREPAID}, {"stop_keeps_billing": True}])
def test_a_stop_that_does_not_end_the_bill_is_seen_afterwards(world: AlibabaWorld, more: dict[str, Any]) -> None:
    native_id = world.launch(**more)
    assert not only(world).billed_while_stopped
    world.stop(native_id)

    assert only(world).state is InstanceState.STOPPED
    assert only(world).billed_while_stopped


@pytest.mark.parametrize("billing", [Billing.PREPAID, Billing.SPOT, Billing.ON_DEMAND])
def test_how_a_machine_is_paid_for(world: AlibabaWorld, billing: Billing) -> None:
    world.launch(billing=billing)

    assert only(world).billing is billing


@pytest.mark.parametrize(
    ("instance_type", "kind", "count"),
    [
        ("ecs.vgn6i-m4.xlarge", AcceleratorKind.NVIDIA_GPU, 0.25),
        ("ecs.sgn8ia-m2.xlarge", AcceleratorKind.NVIDIA_GPU, 1 / 24),  # its card is masked
        ("ecs.gn7e-c16g1.32xlarge", AcceleratorKind.NVIDIA_GPU, 8),
        ("ecs.f3-c16f1.4xlarge", AcceleratorKind.FPGA, 1),
        ("ecs.video-trans.26xlarge", AcceleratorKind.MEDIA, 1),
        ("ecs.ebman1.26xlarge", AcceleratorKind.OTHER, 4),
        ("ecs.gp7.16xlarge", AcceleratorKind.OTHER, 4),
    ],
)
def test_what_counts_as_a_gpu_there_is_told_apart_here(
    world: AlibabaWorld, instance_type: str, kind: AcceleratorKind, count: float
) -> None:
    written = world.launch()
    world.rewrite(written, instance_type=instance_type, accelerator=Accelerator(kind, "", count))

    found = only(world).accelerator

    assert found.kind is kind
    assert found.count == pytest.approx(count)


def test_nodes_of_clusters_and_groups_are_shown_as_theirs(world: AlibabaWorld) -> None:
    world.launch(tags={"acs:autoscaling:scalingGroupId": "asg-1"})
    world.launch(tags={"ack.aliyun.com": "c-1"})

    keepers = {found.managed_by for found in read(world).instances}

    assert keepers == {ManagedBy(Keeper.AUTOSCALING, "asg-1"), ManagedBy(Keeper.KUBERNETES, "c-1")}


def test_types_that_cannot_be_read_leave_the_shard_incomplete_and_its_machines_shown(world: AlibabaWorld) -> None:
    written = world.launch()
    world.rewrite(written, instance_type="ecs.gn99-c8g1.2xlarge")
    world.fault(FaultKind.REFUSED, "DescribeInstanceTypes", code="Forbidden.RAM", status=403)

    inventory = read(world)

    assert [(gap.what, gap.kind) for gap in inventory.gaps] == [("inventory", GapKind.DENIED)]
    assert [found.accelerator.count for found in inventory.instances] == [0]


def test_each_type_is_asked_about_once_a_process(world: AlibabaWorld) -> None:
    world.rewrite(world.launch(), instance_type="ecs.gn98-c8g1.2xlarge")
    for _ in range(3):
        read(world)

    assert len(asked(world, "DescribeInstanceTypes")) <= 1


def test_a_machine_described_twice_and_differently_is_a_gap(world: AlibabaWorld) -> None:
    world.launch()
    read(world)

    def contradicting(answer: dict[str, Any]) -> dict[str, Any]:
        (item,) = answer["Instances"]["Instance"]
        return {**answer, "Instances": {"Instance": [item, {**item, "DeletionProtection": True}]}}

    world.relay.changes["DescribeInstances"] = contradicting

    assert [gap.kind for gap in read(world).gaps] == [GapKind.TRUNCATED]


def test_many_pages_are_one_list(world: AlibabaWorld) -> None:
    launched = {world.launch() for _ in range(120)}

    inventory = read(world)

    assert {found.ref.native_id for found in inventory.instances} == launched
    assert [one["MaxResults"] for one in asked(world, "DescribeInstances")] == ["100", "100"]


def with_interface(answer: dict[str, Any]) -> dict[str, Any]:
    for item in answer["Instances"]["Instance"]:
        item["NetworkInterfaces"] = {"NetworkInterface": [{"NetworkInterfaceId": "eni-2", "Type": "Secondary"}]}
    return answer


ON_CARD = {
    "AllocationId": "eip-1",
    "IpAddress": "203.0.113.8",
    "InstanceId": "eni-2",
    "InstanceType": "NetworkInterface",
}
ELSEWHERE = {**ON_CARD, "AllocationId": "eip-2", "IpAddress": "203.0.113.9", "InstanceId": "eni-9"}
OF_A_MACHINE = {**ON_CARD, "AllocationId": "eip-3", "IpAddress": "203.0.113.10", "InstanceType": "EcsInstance"}


def addresses(*told: dict[str, str]) -> dict[str, Any]:
    return {"EipAddresses": {"EipAddress": [*told]}, "TotalCount": len(told)}


def test_the_listing_tells_the_addresses_of_further_interfaces(world: AlibabaWorld) -> None:
    world.launch()
    world.relay.changes["DescribeInstances"] = with_interface
    listed = addresses(ON_CARD, ELSEWHERE, OF_A_MACHINE)
    world.relay.changes["DescribeEipAddresses"] = lambda answer: {**answer, **listed}

    assert only(world).further_public_ips == ("203.0.113.8",)
    assert len(asked(world, "DescribeEipAddresses")) == 1


def test_a_region_without_further_interfaces_is_not_asked_for_addresses(world: AlibabaWorld) -> None:
    world.keep_address(world.launch())

    assert only(world).further_public_ips == ()
    assert asked(world, "DescribeEipAddresses") == []


def test_addresses_that_may_not_be_listed_are_a_gap_and_not_none(world: AlibabaWorld) -> None:
    world.launch()
    world.relay.changes["DescribeInstances"] = with_interface
    listed = {**addresses(ON_CARD), "TotalCount": 3}
    world.relay.changes["DescribeEipAddresses"] = lambda answer: {**answer, **listed}

    inventory = read(world)

    assert [one.further_public_ips for one in inventory.instances] == [None]
    assert [(gap.what, gap.kind) for gap in inventory.gaps] == [("details", GapKind.TRUNCATED)]


def test_addresses_of_further_interfaces_are_kept_too(world: AlibabaWorld) -> None:
    native_id = world.launch()
    kept = world.keep_address(native_id)
    read(world)

    world.relay.changes["DescribeInstances"] = with_interface
    world.relay.changes["DescribeEipAddresses"] = lambda answer: {
        **answer,
        **addresses({**ON_CARD, "AllocationId": "eip-further"}),
    }

    found = detail(world, native_id)
    assert [ref.native_id for ref in found.kept_addresses] == [kept, "eip-further"]
    assert found.instance.further_public_ips == ("203.0.113.8",)
    (question,) = asked(world, "DescribeEipAddresses")
    assert (question["AssociatedInstanceType"], question["AssociatedInstanceId"]) == ("NetworkInterface", "eni-2")


def test_addresses_left_out_are_an_error(world: AlibabaWorld) -> None:
    native_id = world.launch()
    read(world)

    world.relay.changes["DescribeInstances"] = with_interface
    world.relay.changes["DescribeEipAddresses"] = lambda answer: {**answer, "TotalCount": 3}

    with pytest.raises(TruncatedReadError):
        detail(world, native_id)


def test_regions_that_were_shut_down_are_left_out_or_a_gap_when_named(world: AlibabaWorld) -> None:
    def listing_closed(answer: dict[str, Any]) -> dict[str, Any]:
        more = [{"RegionId": name} for name in sorted(CLOSED_REGIONS)]
        return {**answer, "Regions": {"Region": [*answer["Regions"]["Region"], *more]}}

    world.relay.changes["DescribeRegions"] = listing_closed
    everywhere = world.inventory.discover(world.target(every=True))
    one = world.inventory.discover(world.target("ap-south-1", world.shard.region))

    assert everywhere.gaps == ()
    assert not {shard.region for shard in everywhere.shards} & CLOSED_REGIONS
    assert one.shards == (world.shard,)
    assert [(gap.what, gap.kind, gap.shard.region) for gap in one.gaps] == [
        ("regions", GapKind.UNREADABLE, "ap-south-1")
    ]


def test_regions_that_may_not_be_listed_are_taken_at_their_word_when_named(world: AlibabaWorld) -> None:
    world.fault(FaultKind.REFUSED, "DescribeRegions", code="Forbidden.RAM", status=403)

    found = world.inventory.discover(world.target(world.shard.region))
    everywhere = world.inventory.discover(world.target(every=True))

    assert found.shards == (world.shard,)
    assert everywhere.shards == ()
    assert [(gap.what, gap.kind) for gap in everywhere.gaps] == [("regions", GapKind.DENIED)]


@pytest.mark.parametrize("listed", [[], [{"RegionId": "evil.example/x"}], [{"RegionId": ""}]])
def test_a_list_of_no_regions_is_a_gap_never_nothing_to_do(world: AlibabaWorld, listed: list[dict[str, str]]) -> None:
    world.relay.changes["DescribeRegions"] = lambda answer: {**answer, "Regions": {"Region": listed}}

    found = world.inventory.discover(world.target(every=True))

    assert found.shards == ()
    assert [gap.what for gap in found.gaps] == ["regions"]


def test_members_in_an_unusable_state_are_gaps(world: AlibabaWorld) -> None:
    leader = next(iter(world.emulator.accounts))
    states = {"1999999999999998": "CreateVerifying", "1999999999999999": "InviteFailed"}
    members = [{"AccountId": account, "Status": state} for account, state in states.items()]
    world.relay.changes["ListAccounts"] = lambda answer: {**answer, "Accounts": {"Account": members}, "NextToken": ""}
    session = AlibabaSession(keys=to_product(world.emulator.keys), endpoint=world.relay.url, now=world.clock.now)
    target = Target("alibaba", regions=(world.shard.region,), organisation=True)

    found = AlibabaInventory(session).discover(target)
    session.close()

    assert {gap.shard.account: gap.kind for gap in found.gaps} == dict.fromkeys(states, GapKind.UNREADABLE)
    assert [shard.account for shard in found.shards] == [leader]


def test_a_page_that_stays_away_is_a_gap_with_what_was_read(world: AlibabaWorld) -> None:
    for _ in range(101):
        world.launch(gpu=False)
    world.launch()
    world.inventory.discover(world.target(world.shard.region))

    def no_second(answer: dict[str, Any]) -> dict[str, Any]:
        return {**answer, "Instances": None} if not answer["NextToken"] else answer

    world.relay.changes["DescribeInstances"] = no_second

    inventory = read(world)

    assert (inventory.instances_seen, inventory.complete) == (100, False)
    assert [gap.kind for gap in inventory.gaps] == [GapKind.TRUNCATED]


def test_a_dry_run_that_is_ignored_proves_nothing(world: AlibabaWorld) -> None:
    ref = ResourceRef("alibaba", world.shard.account, world.shard.region, "instance", "i-gone")
    world.inventory.discover(world.target(world.shard.region))
    world.relay.ignored.add("DescribeInstances")

    with pytest.raises(UnavailableError, match="dry run"):
        world.inventory.details([ref])


def details(world: AlibabaWorld, native_ids: list[str]) -> dict[str, InstanceDetail]:
    refs = [
        ResourceRef(world.shard.cloud, world.shard.account, world.shard.region, "instance", native_id)
        for native_id in native_ids
    ]
    return {ref.native_id: found for ref, found in world.inventory.details(refs).items()}


def several(world: AlibabaWorld, count: int) -> list[str]:
    """Machines with two disks each, of which one is copied."""
    both = (Disk(100, "/dev/xvda", "cloud_essd"), Disk(500, "/dev/xvdb", "cloud_essd"))
    native_ids = [world.launch(disks=both) for _ in range(count)]
    for native_id in native_ids:
        world.world.create_snapshot(min(world.volumes(native_id)), "owner")
    read(world)
    return native_ids


def test_disks_and_copies_of_several_machines_are_listed_a_page_at_a_time(world: AlibabaWorld) -> None:
    native_ids = several(world, 6)
    apart = {native_id: detail(world, native_id) for native_id in native_ids}
    world.relay.asked.clear()

    together = details(world, native_ids)

    assert [len(asked(world, action)) for action in ("DescribeDisks", "DescribeSnapshots")] == [1, 1]
    assert together == apart
    assert all((len(found.volumes), len(found.snapshots)) == (2, 1) for found in together.values())


@pytest.mark.parametrize("action", ["DescribeDisks", "DescribeSnapshots"])
def test_a_list_that_moves_while_it_is_read_is_read_machine_by_machine(world: AlibabaWorld, action: str) -> None:
    native_ids = several(world, 6)
    apart = {native_id: detail(world, native_id) for native_id in native_ids}
    world.relay.asked.clear()
    moved = iter([True])

    def one_is_missing(answer: dict[str, Any]) -> dict[str, Any]:
        if next(moved, False):
            key, item = ("Disks", "Disk") if action == "DescribeDisks" else ("Snapshots", "Snapshot")
            return {**answer, key: {item: answer[key][item][1:]}}
        return answer

    world.relay.changes[action] = one_is_missing

    assert details(world, native_ids) == apart
    assert len(asked(world, action)) > 6


def test_a_region_with_more_pages_than_machines_is_not_listed_whole(world: AlibabaWorld) -> None:
    native_ids = several(world, 6)
    world.relay.changes["DescribeDisks"] = lambda answer: (
        {**answer, "TotalCount": 2_001} if answer["TotalCount"] == 12 else answer
    )
    world.relay.asked.clear()

    found = details(world, native_ids)

    assert all(len(each.volumes) == 2 for each in found.values())
    assert len(asked(world, "DescribeDisks")) == 1 + 6


def test_a_machine_that_the_whole_list_shows_without_a_system_disk_is_an_error(world: AlibabaWorld) -> None:
    native_ids = several(world, 6)

    def without_system_disks(answer: dict[str, Any]) -> dict[str, Any]:
        kept = [disk for disk in answer["Disks"]["Disk"] if disk["Type"] != "system"]
        return {**answer, "Disks": {"Disk": kept}, "TotalCount": len(kept)}

    world.relay.changes["DescribeDisks"] = without_system_disks

    with pytest.raises(TruncatedReadError, match="system disk"):
        details(world, native_ids)


def test_beyond_a_page_the_disks_of_a_region_are_read_by_token(world: AlibabaWorld) -> None:
    native_ids = several(world, 6)
    apart = {native_id: detail(world, native_id) for native_id in native_ids}
    real = iter([True])
    world.relay.changes["DescribeDisks"] = lambda answer: (
        {**answer, "Disks": {"Disk": answer["Disks"]["Disk"][:1]}, "TotalCount": 101} if next(real, False) else answer
    )
    world.relay.asked.clear()

    assert details(world, native_ids) == apart
    first, by_token, *rest = asked(world, "DescribeDisks")
    assert (first["PageNumber"], by_token["MaxResults"], len(rest)) == ("1", "500", 6)  # 12 are not 101: one by one
