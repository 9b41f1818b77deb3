"""The Tencent Cloud emulator's disks, copies, addresses and tags, through the vendor's own SDK."""

from __future__ import annotations

from typing import Any

from tests.contract.test_sandbox_tencent import AT, DAY, HOUR, LEADER, MEMBER, MINUTE, Cloud, cloud, machine

from cloudstand.world.fleet import Disk, MachineSpec
from cloudstand.world.records import Operation

SYSTEM = Disk(100, "vda", "CLOUD_PREMIUM")
KEPT = Disk(500, "vdb", "CLOUD_SSD", deleted_with_instance=False)


def two_disks(name: str = "trainer", **more: Any) -> MachineSpec:
    return machine(name, disks=(SYSTEM, KEPT), **more)


def filters(**wanted: str) -> list[dict[str, object]]:
    return [{"Name": name.replace("_", "-"), "Values": [value]} for name, value in wanted.items()]


def disk_ids(here: Cloud) -> list[str]:
    return [each["DiskId"] for each in here.call("cbs", "DescribeDisks")["DiskSet"]]


def test_disks_tell_their_times_in_utc_plus_8_wherever_they_are() -> None:
    with cloud(machine(region="ap-singapore")) as here:
        disk = here.call("cbs", "DescribeDisks", None, "ap-singapore")["DiskSet"][0]
        made = here.call("cvm", "DescribeInstances", None, "ap-singapore")["InstanceSet"][0]
        assert (made["CreatedTime"], disk["CreateTime"]) == ("2026-02-27T09:00:00Z", "2026-02-27 17:00:00")
        assert disk["DeadlineTime"] == ""


def test_disks_are_found_by_machine_use_and_id() -> None:
    with cloud(two_disks("a"), two_disks("b"), two_disks("other", account=MEMBER)) as here:
        native_id = here.world.fleet[0].native_id
        mine = here.call("cbs", "DescribeDisks", Filters=filters(instance_id=native_id))
        assert [(each["DiskUsage"], each["DiskSize"]) for each in mine["DiskSet"]] == [
            ("SYSTEM_DISK", 100),
            ("DATA_DISK", 500),
        ]
        assert [each["DeleteWithInstance"] for each in mine["DiskSet"]] == [True, False]
        data = here.call("cbs", "DescribeDisks", Filters=filters(instance_id=native_id, disk_usage="DATA_DISK"))
        assert data["TotalCount"] == 1
        by_id = here.call("cbs", "DescribeDisks", DiskIds=[data["DiskSet"][0]["DiskId"], "disk-00000000"])
        assert by_id["TotalCount"] == 1
        assert here.call("cbs", "DescribeDisks")["TotalCount"] == 4
        assert here.refused("cbs", "DescribeDisks", Filters=filters(gpu="1")) == "InvalidFilter"
        both = {"DiskIds": ["disk-00000000"], "Filters": filters(zone="x")}
        assert here.refused("cbs", "DescribeDisks", **both) == "InvalidParameterValue"
        machine_view = here.machine(native_id)
        assert machine_view["SystemDisk"]["DiskSize"] == 100
        # a field of RunInstances here, whatever it says: the CBS knows
        assert machine_view["DataDisks"][0]["DeleteWithInstance"] is False


def test_local_disks_are_told_of_the_machine_and_are_none_of_the_cbs() -> None:
    with cloud(machine(local_disk_gib=3_570.0)) as here:
        seen = here.machine(here.world.fleet[0].native_id)
        assert [(each["DiskType"], each["DiskSize"]) for each in seen["DataDisks"]] == [("LOCAL_NVME", 3_570)]
        assert len(disk_ids(here)) == 1


def test_a_disk_that_came_off_or_was_added_keeps_its_account_and_region() -> None:
    with cloud(two_disks(), two_disks("far", region="ap-shanghai")) as here:
        native_id = here.world.fleet[0].native_id
        here.pass_time(HOUR)
        added = here.world.attach(native_id, Disk(20, "vdc", "CLOUD_HSSD"), "owner")
        here.world.detach(added, "owner")
        found = here.call("cbs", "DescribeDisks", DiskIds=[added])["DiskSet"]
        assert [(each["Attached"], each["LastAttachInsId"], each["CreateTime"]) for each in found] == [
            (False, native_id, "2026-03-02 18:00:00")
        ]
        assert here.call("cbs", "DescribeDisks", Filters=filters(disk_state="UNATTACHED"))["TotalCount"] == 1


def test_a_copy_is_done_at_normal_and_a_hundred_percent() -> None:
    with cloud(two_disks()) as here:
        disk = disk_ids(here)[0]
        tags = [{"Key": "costguard:decision-id", "Value": "d1"}]
        made = here.call("cbs", "CreateSnapshot", DiskId=disk, SnapshotName="before", Tags=tags)["SnapshotId"]
        assert here.world.snapshots[made].decision_id == "d1"

        def seen() -> dict[str, object]:
            return dict(here.call("cbs", "DescribeSnapshots", SnapshotIds=[made])["SnapshotSet"][0])

        assert (seen()["SnapshotState"], seen()["Percent"]) == ("CREATING", 0)
        assert (seen()["CreateTime"], seen()["Tags"]) == ("2026-03-02 17:00:00", tags)
        here.pass_time(6 * MINUTE)
        assert (seen()["SnapshotState"], seen()["Percent"]) == ("CREATING", 50)
        here.pass_time(7 * MINUTE)
        assert (seen()["SnapshotState"], seen()["Percent"]) == ("NORMAL", 100)
        assert (seen()["IsPermanent"], seen()["DeadlineTime"]) == (True, "")
        named = here.call("cbs", "DescribeSnapshots", Filters=filters(disk_id=disk, snapshot_name="before"))
        assert named["TotalCount"] == 1
        assert here.call("cbs", "DescribeSnapshots", SnapshotIds=["snap-00000000"])["SnapshotSet"] == []


def test_one_disk_is_copied_once_at_a_time_and_a_second_call_makes_a_second_copy() -> None:
    with cloud(two_disks()) as here:
        disk = disk_ids(here)[0]
        here.call("cbs", "CreateSnapshot", DiskId=disk, SnapshotName="same")
        assert here.refused("cbs", "CreateSnapshot", DiskId=disk) == "InvalidDisk.SnapshotCreating"
        here.pass_time(HOUR)
        here.call("cbs", "CreateSnapshot", DiskId=disk, SnapshotName="same")
        assert here.call("cbs", "DescribeSnapshots", Filters=filters(snapshot_name="same"))["TotalCount"] == 2
        assert here.refused("cbs", "CreateSnapshot", DiskId="disk-00000000") == "InvalidDiskId.NotFound"
        assert here.refused("cbs", "CreateSnapshot") == "MissingParameter"
        foreign = here.emulator.keys
        assert here.refused("cbs", "CreateSnapshot", foreign, DiskId=disk, ClientToken="x") == "UnknownParameter"


def test_a_copy_that_fails_is_never_complete() -> None:
    with cloud(machine(disks=(Disk(100, "vda", "CLOUD_PREMIUM", snapshots_fail=True),))) as here:
        here.call("cbs", "CreateSnapshot", DiskId=disk_ids(here)[0])
        here.pass_time(10 * DAY)
        seen = here.call("cbs", "DescribeSnapshots")["SnapshotSet"][0]
        assert (seen["SnapshotState"], seen["Percent"]) == ("CREATING", 99)


def test_a_copy_with_a_deadline_ends_by_itself() -> None:
    with cloud(two_disks()) as here:
        disk = disk_ids(here)[0]
        soon = (AT + HOUR).isoformat()
        assert here.refused("cbs", "CreateSnapshot", DiskId=disk, Deadline=soon) == "InvalidParameterValue"
        here.call("cbs", "CreateSnapshot", DiskId=disk, Deadline=(AT + 2 * DAY).isoformat())
        seen = here.call("cbs", "DescribeSnapshots")["SnapshotSet"][0]
        assert (seen["IsPermanent"], seen["DeadlineTime"]) == (False, "2026-03-04 17:00:00")
        here.pass_time(3 * DAY)
        assert here.call("cbs", "DescribeSnapshots")["TotalCount"] == 0


def test_copies_are_deleted_all_or_none_and_not_while_they_are_made() -> None:
    with cloud(two_disks()) as here:
        first, second = disk_ids(here)
        done = here.call("cbs", "CreateSnapshot", DiskId=first)["SnapshotId"]
        here.pass_time(HOUR)
        pending = here.call("cbs", "CreateSnapshot", DiskId=second)["SnapshotId"]
        code = "ResourceUnavailable.SnapshotCreating"
        assert here.refused("cbs", "DeleteSnapshots", SnapshotIds=[done, pending]) == code
        assert here.refused("cbs", "DeleteSnapshots", SnapshotIds=["snap-00000000"]) == "InvalidSnapshotId.NotFound"
        assert here.call("cbs", "DescribeSnapshots")["TotalCount"] == 2
        here.call("cbs", "DeleteSnapshots", SnapshotIds=[done])
        assert here.call("cbs", "DescribeSnapshots")["TotalCount"] == 1


def test_copies_outlive_the_machine_and_its_disk() -> None:
    with cloud(two_disks()) as here:
        here.call("cbs", "CreateSnapshot", DiskId=disk_ids(here)[0])
        here.pass_time(HOUR)
        here.call("cvm", "TerminateInstances", InstanceIds=[here.world.fleet[0].native_id])
        here.pass_time(HOUR)
        assert here.call("cbs", "DescribeSnapshots")["SnapshotSet"][0]["SnapshotState"] == "NORMAL"


def test_disks_and_copies_of_another_account_or_region_are_not_there() -> None:
    with cloud(machine(), machine("far", region="ap-shanghai"), machine("other", account=MEMBER)) as here:
        mine = disk_ids(here)
        far = [each["DiskId"] for each in here.call("cbs", "DescribeDisks", None, "ap-shanghai")["DiskSet"]]
        member = here.emulator.keys_of(MEMBER)
        theirs = [each["DiskId"] for each in here.call("cbs", "DescribeDisks", member)["DiskSet"]]
        assert len({*mine, *far, *theirs}) == 3
        for foreign in (*far, *theirs):
            assert here.refused("cbs", "CreateSnapshot", DiskId=foreign) == "InvalidDiskId.NotFound"
            assert here.call("cbs", "DescribeDisks", DiskIds=[foreign])["TotalCount"] == 0
        native_id = here.world.fleet[2].native_id
        assert here.call("cbs", "DescribeDisks", Filters=filters(instance_id=native_id))["TotalCount"] == 0
        made = here.call("cbs", "CreateSnapshot", member, DiskId=theirs[0])["SnapshotId"]
        assert here.call("cbs", "DescribeSnapshots")["TotalCount"] == 0
        here.pass_time(HOUR)
        assert here.refused("cbs", "DeleteSnapshots", SnapshotIds=[made]) == "InvalidSnapshotId.NotFound"


def test_disks_and_copies_can_be_denied() -> None:
    with cloud(two_disks()) as here:
        disk = disk_ids(here)[0]
        here.world.deny("tencent", LEADER, Operation.DISKS)
        here.world.deny("tencent", LEADER, Operation.SNAPSHOT)
        assert here.refused("cbs", "DescribeDisks") == "UnauthorizedOperation"
        assert here.refused("cbs", "DescribeSnapshots") == "UnauthorizedOperation"
        assert here.refused("cbs", "CreateSnapshot", DiskId=disk) == "UnauthorizedOperation"


def test_plain_addresses_are_listed_only_for_who_asks_for_them() -> None:
    with cloud(machine("plain", public_ip="203.0.113.7"), machine("kept", kept_address=True)) as here:
        plain, kept = (spec.native_id for spec in here.world.fleet)
        elastic = here.call("vpc", "DescribeAddresses")["AddressSet"]
        assert [(each["InstanceId"], each["AddressStatus"], each["AddressType"]) for each in elastic] == [
            (kept, "BIND", "EIP")
        ]
        assert elastic[0]["CreatedTime"].endswith("Z")
        assert elastic[0]["AddressIp"] == here.machine(kept)["PublicIpAddresses"][0]
        wan = here.call("vpc", "DescribeAddresses", Filters=filters(address_type="WanIP"))["AddressSet"]
        assert [(each["InstanceId"], each["AddressIp"]) for each in wan] == [(plain, "203.0.113.7")]
        of_one = here.call("vpc", "DescribeAddresses", Filters=filters(instance_id=kept))
        assert of_one["TotalCount"] == 1
        assert here.refused("vpc", "DescribeAddresses", Filters=filters(x="y")) == "InvalidParameter.InvalidFilter"
        too_many = filters(address_id="x") * 11
        assert here.refused("vpc", "DescribeAddresses", Filters=too_many) == "LimitExceeded.NumberOfFilters"


def name_of(here: Cloud, kind: str = "instance", native_id: str = "") -> str:
    found = native_id or here.world.fleet[0].native_id
    return f"qcs::cvm:ap-guangzhou:uin/{LEADER}:{kind}/{found}"


def test_tags_fail_one_by_one_inside_a_success() -> None:
    with cloud(machine()) as here:
        resources = [name_of(here), name_of(here, native_id="ins-00000000")]
        tags = [{"TagKey": "team", "TagValue": "nlp"}]
        answer = here.call("tag", "TagResources", ResourceList=resources, Tags=tags)
        assert [each["Resource"] for each in answer["FailedResources"]] == [resources[1]]
        listed = here.call("tag", "GetResources", TagFilters=[{"TagKey": "team", "TagValue": ["nlp", "x"]}])
        assert [each["Resource"] for each in listed["ResourceTagMappingList"]] == [resources[0]]
        assert here.call("tag", "GetResources", ResourceList=resources)["PaginationToken"] == ""
        here.call("tag", "UnTagResources", ResourceList=resources[:1], TagKeys=["team"])
        assert here.machine(here.world.fleet[0].native_id)["Tags"] == []


def test_tags_of_one_resource_are_set_and_removed_together() -> None:
    with cloud(two_disks(tags={"old": "1", "stays": "2"})) as here:
        change = {"ReplaceTags": [{"TagKey": "new", "TagValue": "3"}], "DeleteTags": [{"TagKey": "old"}]}
        here.call("tag", "ModifyResourceTags", Resource=name_of(here), **change)
        native_id = here.world.fleet[0].native_id
        assert here.world.machines[native_id].tags == {"stays": "2", "new": "3"}
        volume = name_of(here, "volume", disk_ids(here)[0])
        here.call("tag", "ModifyResourceTags", Resource=volume, ReplaceTags=change["ReplaceTags"])
        assert here.call("cbs", "DescribeDisks")["DiskSet"][0]["Tags"] == [{"Key": "new", "Value": "3"}]
        ask = "tag", "ModifyResourceTags"
        assert here.refused(*ask, Resource=name_of(here)) == "InvalidParameter.Tag"
        assert here.refused(*ask, Resource=name_of(here), DeleteTags=[]) == "InvalidParameterValue"
        reserved = [{"TagKey": "qcloud-x", "TagValue": ""}]
        assert here.refused(*ask, Resource=name_of(here), ReplaceTags=reserved) == "InvalidParameter.ReservedTagKey"
        gone = [{"TagKey": "old"}]
        code = "ResourceNotFound.AttachedTagKeyNotFound"
        assert here.refused(*ask, Resource=name_of(here), DeleteTags=gone) == code
        wrong = "InvalidParameterValue.ResourceDescriptionError"
        assert here.refused(*ask, Resource=native_id, DeleteTags=gone) == wrong


def test_resources_with_tags_come_in_pages() -> None:
    with cloud(*(machine(f"m{place}", tags={"n": str(place)}) for place in range(5))) as here:
        first = here.call("tag", "GetResources", MaxResults=3)
        rest = here.call("tag", "GetResources", MaxResults=3, PaginationToken=first["PaginationToken"])
        assert len(first["ResourceTagMappingList"] + rest["ResourceTagMappingList"]) == 5
        assert rest["PaginationToken"] == ""
