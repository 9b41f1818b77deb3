"""Disks, their copies, kept addresses and tags as the emulator shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.contract.alibaba_asking import AT, DAY, HOUR, MINUTE, Cloud, cloud_of

from cloudstand.fleets import ALIBABA_ACCOUNT, alibaba_machine
from cloudstand.world import workload as does
from cloudstand.world.fleet import Disk, made_up_id

MEMBER = "1098765432109876"
OLD = AT - 30 * DAY
ROOT = Disk(100, "/dev/xvda", "cloud_essd")
KEPT = Disk(50, "/dev/xvdb", "cloud_efficiency", deleted_with_instance=False)
BREAKS = Disk(40, "/dev/xvdb", "cloud_essd", snapshots_fail=True)
PLAIN = alibaba_machine("plain", does.idle(), OLD, disks=(ROOT, KEPT), kept_address=True)
BROKEN = alibaba_machine("broken", does.idle(), OLD, disks=(ROOT, BREAKS))
LOCAL = alibaba_machine("local", does.idle(), OLD, "ecs.gn5-c4g1.xlarge")
NEXT_DOOR = alibaba_machine("next-door", does.idle(), OLD, account=MEMBER)


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with cloud_of(PLAIN, BROKEN, LOCAL, NEXT_DOOR) as opened:
        yield opened


@pytest.fixture(scope="module")
def steady() -> Iterator[Cloud]:
    """One for all the tests that are only refused."""
    with cloud_of(PLAIN, NEXT_DOOR) as opened:
        yield opened


def disk_id(name: str, device: str = "/dev/xvda") -> str:
    spec = next(spec for spec in (PLAIN, BROKEN, LOCAL, NEXT_DOOR) if spec.name == name)
    return made_up_id("alibaba", "volume", spec.native_id, device)


def copies(cloud: Cloud, **filters: str) -> list[dict[str, object]]:
    found = cloud.ask("DescribeSnapshots", {"MaxResults": "100", **filters})["Snapshots"]["Snapshot"]
    return list(found)


def test_disks_say_what_survives_their_machine(cloud: Cloud) -> None:
    found = cloud.ask("DescribeDisks", InstanceId=PLAIN.native_id)["Disks"]["Disk"]
    assert [(one["Type"], one["Size"], one["DeleteWithInstance"], one["Category"]) for one in found] == [
        ("system", 100, True, "cloud_essd"),
        ("data", 50, False, "cloud_efficiency"),
    ]
    assert found[0]["CreationTime"] == "2026-01-31T09:00:00Z"  # to the second, unlike a machine's
    cloud.ask("DeleteInstances", {"InstanceId.1": PLAIN.native_id, "Force": "true"})
    cloud.clock.advance(MINUTE)
    left = cloud.ask("DescribeDisks", DiskIds=json.dumps([disk_id("plain"), disk_id("plain", "/dev/xvdb")]))
    assert [(one["Status"], one["InstanceId"]) for one in left["Disks"]["Disk"]] == [("Available", "")]


def test_disks_come_in_pages_of_up_to_five_hundred(cloud: Cloud) -> None:
    """The fourth of the account is the local one; the neighbour's is not among them."""
    assert len(cloud.ask("DescribeDisks", MaxResults="500")["Disks"]["Disk"]) == 6
    assert [one["Type"] for one in cloud.ask("DescribeDisks", DiskType="system")["Disks"]["Disk"]] == ["system"] * 3
    assert cloud.ask("DescribeDisks", DiskIds="[]")["Disks"]["Disk"] == []
    assert cloud.refusal("DescribeDisks", MaxResult="10") == "InvalidParameter"


def test_a_local_disk_is_listed_and_cannot_be_copied(cloud: Cloud) -> None:
    local = cloud.ask("DescribeDisks", Category="local_ssd_pro")["Disks"]["Disk"]
    assert [(one["InstanceId"], one["Size"], one["Portable"]) for one in local] == [(LOCAL.native_id, 440, False)]
    assert cloud.refusal("CreateSnapshot", DiskId=local[0]["DiskId"]) == "DiskCategory.OperationNotSupported"


def test_a_disk_that_its_owner_adds_is_found(cloud: Cloud) -> None:
    added = cloud.world.attach(PLAIN.native_id, Disk(20, "/dev/xvdc", "cloud_ssd"), "owner")
    assert cloud.ask("DescribeDisks", DiskIds=json.dumps([added]))["Disks"]["Disk"][0]["InstanceId"] == PLAIN.native_id
    cloud.world.detach(added, "owner")
    assert cloud.ask("DescribeDisks", Status="Available")["Disks"]["Disk"][0]["DiskId"] == added


def test_a_copy_is_under_way_then_done(cloud: Cloud) -> None:
    made = cloud.ask(
        "CreateSnapshot",
        {"DiskId": disk_id("plain"), "SnapshotName": "before", "Tag.1.Key": "made-by", "Tag.1.Value": "costguard"},
    )["SnapshotId"]
    cloud.clock.advance(6 * MINUTE)
    (half,) = copies(cloud, SnapshotIds=json.dumps([made]))
    assert (half["Status"], half["Progress"], half["RemainTime"]) == ("progressing", "50%", 360)
    assert half["Available"] is True  # usable at once on ESSD, and not yet a copy
    assert (half["SourceDiskSize"], half["SourceDiskType"]) == ("100", "system")
    assert half["Tags"] == {"Tag": [{"TagKey": "made-by", "TagValue": "costguard"}]}
    cloud.clock.advance(6 * MINUTE)
    (whole,) = copies(cloud, InstanceId=PLAIN.native_id, Status="accomplished", SnapshotName="before")
    assert (whole["Status"], whole["Progress"], whole["CreationTime"]) == (
        "accomplished",
        "100%",
        "2026-03-02T09:00:00Z",
    )


def test_a_copy_may_fail_and_says_so(cloud: Cloud) -> None:
    cloud.ask("CreateSnapshot", DiskId=disk_id("broken", "/dev/xvdb"))
    cloud.clock.advance(HOUR)
    (failed,) = copies(cloud, Status="failed")
    assert (failed["Progress"], failed["Available"]) == ("37%", False)
    assert copies(cloud, Status="accomplished") == []


def test_one_copy_of_a_disk_at_a_time_and_one_for_a_token(cloud: Cloud) -> None:
    """Without a token a repeated request would be a second copy; with it, the first one's answer comes again."""
    asked = {"DiskId": disk_id("plain"), "ClientToken": "run-1"}
    first = cloud.ask("CreateSnapshot", asked)["SnapshotId"]
    again = cloud.ask("CreateSnapshot", asked)
    assert again["SnapshotId"] == first
    assert cloud.refusal("CreateSnapshot", {**asked, "RetentionDays": "7"}) == "IdempotentParameterMismatch"
    assert cloud.refusal("CreateSnapshot", DiskId=disk_id("plain")) == "IncorrectDiskStatus.CreatingSnapshot"
    cloud.clock.advance(HOUR)
    assert cloud.ask("CreateSnapshot", asked)["SnapshotId"] == first
    assert cloud.ask("CreateSnapshot", DiskId=disk_id("plain"))["SnapshotId"] != first
    assert [one["SnapshotId"] for one in copies(cloud)][-1] == first  # newest first
    assert len(copies(cloud)) == 2


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"DiskId": "d-missing"}, "InvalidDiskId.NotFound"),
        ({"DiskId": disk_id("next-door")}, "InvalidDiskId.NotFound"),
        ({"SnapshotName": "auto-1"}, "InvalidSnapshotName.Malformed"),
        ({"SnapshotName": "x"}, "InvalidParameter"),
        ({"Description": "https://x"}, "InvalidDescription.Malformed"),
        ({"RetentionDays": "0"}, "InvalidParameter"),
        ({"RetentionDays": "65536"}, ""),
        ({"RetentionDays": "65537"}, "InvalidParameter"),
        ({"ClientToken": "x" * 65}, "InvalidParameter"),
        ({"Tag.1.Key": "acs:x"}, "InvalidTagKey.Malformed"),
        ({"InstantAccessRetentionDays": "1"}, "InvalidParameter"),
    ],
)
def test_a_copy_is_asked_for_as_published(steady: Cloud, more: dict[str, str], code: str) -> None:
    assert steady.refusal("CreateSnapshot", {"DiskId": disk_id("plain"), **more}) == code


def test_copies_outlive_their_disk(cloud: Cloud) -> None:
    cloud.ask("CreateSnapshot", DiskId=disk_id("plain"))
    cloud.clock.advance(HOUR)
    cloud.ask("DeleteInstances", {"InstanceId.1": PLAIN.native_id, "Force": "true"})
    cloud.clock.advance(HOUR)
    assert cloud.ask("DescribeDisks", DiskIds=json.dumps([disk_id("plain")]))["Disks"]["Disk"] == []
    assert [one["SourceDiskId"] for one in copies(cloud)] == [disk_id("plain")]


def test_a_denied_copy_is_refused(cloud: Cloud) -> None:
    cloud.world.deny("alibaba", ALIBABA_ACCOUNT, "CreateSnapshot")
    assert cloud.refusal("CreateSnapshot", DiskId=disk_id("plain")) == "Forbidden.RAM"
    cloud.emulator.allowed[ALIBABA_ACCOUNT] = set()
    assert cloud.refusal("DescribeSnapshots") == "Forbidden.RAM"  # this list was never an empty one


def test_a_kept_address_bills_on_without_its_machine(cloud: Cloud) -> None:
    (bound,) = cloud.ask("DescribeEipAddresses", PageSize="100")["EipAddresses"]["EipAddress"]
    assert (bound["Status"], bound["InstanceId"], bound["InstanceType"]) == ("InUse", PLAIN.native_id, "EcsInstance")
    told = cloud.instance(PLAIN.native_id)
    assert told["EipAddress"]["AllocationId"] == bound["AllocationId"]
    assert told["EipAddress"]["IpAddress"] == bound["IpAddress"]
    cloud.ask("DeleteInstances", {"InstanceId.1": PLAIN.native_id, "Force": "true"})
    cloud.clock.advance(MINUTE)
    answer = cloud.ask("DescribeEipAddresses", AllocationId=f"eip-x,{bound['AllocationId']}")
    (left,) = answer["EipAddresses"]["EipAddress"]
    assert (left["Status"], left["InstanceId"]) == ("Available", "")
    assert left["IpAddress"] == bound["IpAddress"]
    assert cloud.ask("DescribeEipAddresses", AssociatedInstanceId=PLAIN.native_id)["TotalCount"] == 0
    assert cloud.refusal("DescribeEipAddresses", PageSize="101") == "InvalidParameter"
    assert cloud.refusal("DescribeEipAddresses", DryRun="true") == "DryRunOperation"


def test_tags_are_set_on_all_resources_or_on_none(cloud: Cloud) -> None:
    asked = {"ResourceType": "instance", "ResourceId.1": PLAIN.native_id, "Tag.1.Key": "stop-at", "Tag.1.Value": "9:30"}
    cloud.ask("TagResources", asked)
    assert cloud.instance(PLAIN.native_id)["Tags"] == {"Tag": [{"TagKey": "stop-at", "TagValue": "9:30"}]}
    for bad in ("i-missing", NEXT_DOOR.native_id):
        both = {**asked, "ResourceId.2": bad, "Tag.1.Value": "later"}
        assert cloud.refusal("TagResources", both) == "InvalidResourceId.NotFound"
    assert cloud.world.machines[PLAIN.native_id].tags == {"stop-at": "9:30"}
    cloud.ask("UntagResources", {"ResourceType": "instance", "ResourceId.1": PLAIN.native_id, "TagKey.1": "stop-at"})
    assert cloud.world.machines[PLAIN.native_id].tags == {}


def test_disks_and_copies_have_tags_too(cloud: Cloud) -> None:
    copy = cloud.ask("CreateSnapshot", DiskId=disk_id("plain"))["SnapshotId"]
    for kind, native_id in (("disk", disk_id("plain")), ("snapshot", copy)):
        tag = {"ResourceType": kind, "ResourceId.1": native_id, "Tag.1.Key": "team", "Tag.1.Value": "x"}
        cloud.ask("TagResources", tag)
    assert cloud.ask("DescribeDisks", {"Tag.1.Key": "team"})["Disks"]["Disk"][0]["DiskId"] == disk_id("plain")
    assert [one["SnapshotId"] for one in copies(cloud, **{"Tag.1.Key": "team", "Tag.1.Value": "x"})] == [copy]
    cloud.ask("UntagResources", {"ResourceType": "snapshot", "ResourceId.1": copy, "All": "true"})
    assert copies(cloud, **{"Tag.1.Key": "team"}) == []


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"Tag.1.Key": "aliyun-x"}, "InvalidTagKey.Malformed"),
        ({"Tag.1.Key": "https://x"}, "InvalidTagKey.Malformed"),
        ({"Tag.1.Value": "http://x"}, "InvalidTagValue.Malformed"),
        ({"Tag.2.Key": "team"}, "Duplicate.TagKey"),
        ({"Tag.21.Key": "one-too-many"}, "NumberExceed.Tags"),
        ({"ResourceId.51": "i-x"}, "NumberExceed.ResourceIds"),
        ({"Tag.1.Key": "x" * 129}, "InvalidParameter"),
        ({f"Tag.{number}.Key": f"t{number}" for number in range(2, 21)}, ""),
        ({"ResourceType": "image"}, "Emulator.NotModelled"),
        ({"ResourceType": "machine"}, "InvalidParameter"),
    ],
)
def test_tags_are_asked_for_as_published(steady: Cloud, more: dict[str, str], code: str) -> None:
    asked = {"ResourceType": "instance", "ResourceId.1": PLAIN.native_id, "Tag.1.Key": "team", "Tag.1.Value": "x"}
    assert steady.refusal("TagResources", {**asked, **more}) == code


def test_twenty_tags_are_enough(cloud: Cloud) -> None:
    asked = {"ResourceType": "instance", "ResourceId.1": PLAIN.native_id}
    cloud.ask("TagResources", {**asked, **{f"Tag.{number}.Key": f"t{number}" for number in range(1, 21)}})
    assert cloud.refusal("TagResources", {**asked, "Tag.1.Key": "one-more"}) == "QuotaExceed.Tags"
    assert cloud.refusal("TagResources", {**asked, "Tag.1.Key": "t1"}) == ""
    assert cloud.refusal("UntagResources", asked) == "MissingTagKey"
    assert cloud.refusal("TagResources", asked) == "MissingTag"
