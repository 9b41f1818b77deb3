"""Disks, snapshots and addresses of an instance: never a short list, and nothing that is not there for good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

import pytest

from costguard.domain.errors import ProviderError, TruncatedReadError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import (
    Accelerator,
    AcceleratorKind,
    Billing,
    Instance,
    InstanceDetail,
    InstanceState,
    SnapshotState,
)
from costguard.providers.tencent.compute.source import read_attached, to_snapshot

SHARD = Shard("tencent", "100012345678", "ap-ashburn")


def machine(native_id: str = "ins-1", public_ip: str = "") -> Instance:
    return Instance(
        ref=ResourceRef(SHARD.cloud, SHARD.account, SHARD.region, "instance", native_id),
        instance_type="GN7.2XLARGE32",
        accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "T4", 1),
        state=InstanceState.STOPPED,
        billing=Billing.ON_DEMAND,
        run_epoch="",
        launched_at=None,
        public_ip=public_ip,
        protected_by=("termination_protection",),
    )


def described(*disks: str) -> dict[str, Any]:
    system, *more = [{"DiskId": disk, "DiskType": "CLOUD_SSD", "DiskSize": 50} for disk in disks]
    return {"SystemDisk": system, "DataDisks": more}


def disk(native_id: str = "disk-1", **more: Any) -> dict[str, Any]:
    return {
        "DiskId": native_id,
        "DiskUsage": "SYSTEM_DISK",
        "DiskType": "CLOUD_SSD",
        "DiskSize": 50,
        "InstanceId": "ins-1",
        "InstanceIdList": [],
        "DeleteWithInstance": False,
        **more,
    }


def snapshot(**more: Any) -> dict[str, Any]:
    return {
        "SnapshotId": "snap-1",
        "DiskId": "disk-1",
        "SnapshotState": "NORMAL",
        "Percent": 100,
        "IsPermanent": True,
        "DeadlineTime": "",
        "CreateTime": "2022-09-06 11:07:27",
        "Tags": [{"Key": "costguard:decision-id", "Value": "decision-1"}],
        **more,
    }


def address(**more: Any) -> dict[str, Any]:
    return {
        "AddressId": "eip-1",
        "AddressIp": "203.0.113.7",
        "AddressStatus": "BIND",
        "InstanceId": "ins-1",
        **more,
    }


class Cloud:
    """Answers with these items, filtered as asked."""

    def __init__(self, disks: Any = (), snapshots: Any = (), addresses: Any = (), others: int = 0) -> None:
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self._others = others
        self._items = {"DiskSet": disks, "SnapshotSet": snapshots, "AddressSet": addresses}

    def pages(
        self, shard: Shard, service: str, action: str, result_key: str, /, **parameters: Any
    ) -> Iterator[list[Any]]:
        assert (shard, service in {"cbs", "vpc"}) == (SHARD, True)
        self.asked.append((action, parameters))
        keys = {"instance-id": "InstanceId", "disk-id": "DiskId"}
        items = list(self._items[result_key])
        for wanted in parameters.get("Filters", ()):
            items = [item for item in items if item.get(keys[wanted["Name"]]) in wanted["Values"]]
        if "DiskIds" in parameters:
            items = [item for item in items if item["DiskId"] in parameters["DiskIds"]]
        yield items

    def call(self, shard: Shard, service: str, action: str, /, **parameters: Any) -> Mapping[str, Any]:
        """The first page, with how many there are in the region."""
        assert (shard, service, parameters) == (SHARD, "cbs", {"Limit": 100, "Offset": 0})
        self.asked.append((action, parameters))
        key = {"DescribeDisks": "DiskSet", "DescribeSnapshots": "SnapshotSet"}[action]
        items = list(self._items[key])
        return {key: items, "TotalCount": len(items) + self._others}


def detail(cloud: Cloud, *disks: str, public_ip: str = "") -> InstanceDetail:
    (found,) = read_attached(cloud, SHARD, [machine(public_ip=public_ip)], {"ins-1": described(*disks or ("disk-1",))})
    return found


def test_disks_with_their_copies() -> None:
    found = detail(Cloud([disk()], [snapshot()]))
    assert [(volume.ref.native_id, volume.size_gib, volume.volume_type) for volume in found.volumes] == [
        ("disk-1", 50.0, "CLOUD_SSD")
    ]
    (copy,) = found.snapshots
    assert (copy.state, copy.decision_id) == (SnapshotState.COMPLETED, "decision-1")
    assert copy.started_at == datetime(2022, 9, 6, 3, 7, 27, tzinfo=timezone.utc), "CBS writes UTC+8, in Ashburn too"
    assert found.protected_by == ("termination_protection",)


def test_a_system_disk_goes_with_its_machine_and_of_others_the_cbs_has_the_say() -> None:
    data = disk("disk-2", DiskUsage="DATA_DISK")
    gone = disk("disk-3", DiskUsage="DATA_DISK", DeleteWithInstance=True)
    found = detail(Cloud([disk(), data, gone]), "disk-1", "disk-2", "disk-3")
    assert [volume.deleted_with_instance for volume in found.volumes] == [True, False, True]


def test_a_disk_the_machine_names_and_the_cbs_does_not_is_an_error() -> None:
    with pytest.raises(TruncatedReadError, match="disk-2"):
        detail(Cloud([disk()]), "disk-1", "disk-2")


def test_a_disk_that_the_cbs_names_and_the_machine_does_not_is_attached_all_the_same() -> None:
    found = detail(Cloud([disk(), disk("disk-2", DiskUsage="DATA_DISK")]), "disk-1")
    assert len(found.volumes) == 2


def test_a_shared_disk_is_found_by_its_id() -> None:
    """It stands under no single instance; the list of its machines is what tells."""
    shared = disk("disk-2", DiskUsage="DATA_DISK", InstanceId="", InstanceIdList=["ins-9", "ins-1"])
    cloud = Cloud([disk(), shared])
    found = detail(cloud, "disk-1", "disk-2")
    assert {volume.ref.native_id for volume in found.volumes} == {"disk-1", "disk-2"}
    assert {"DiskIds": ["disk-2"]} in [parameters for _, parameters in cloud.asked]


def several(cloud: Cloud, count: int = 12) -> list[tuple[str, Mapping[str, Any]]]:
    """What was asked of disks for so many machines with a disk each."""
    ids = [f"ins-{number}" for number in range(count)]
    rows = {native_id: described(f"disk-{number}") for number, native_id in enumerate(ids)}
    found = list(read_attached(cloud, SHARD, [machine(each) for each in ids], rows))
    assert [len(each.volumes) for each in found] == [1] * count
    return [(action, asked) for action, asked in cloud.asked if action == "DescribeDisks"]


def disks_of(count: int) -> list[dict[str, Any]]:
    return [disk(f"disk-{number}", InstanceId=f"ins-{number}") for number in range(count)]


def test_filters_take_five_values() -> None:
    first, *filtered = several(Cloud(disks_of(12), others=300))
    assert "Filters" not in first[1]
    assert [len(asked["Filters"][0]["Values"]) for _, asked in filtered] == [5, 5, 2]


def test_a_page_of_the_region_takes_the_place_of_several_filters() -> None:
    assert [asked for _, asked in several(Cloud(disks_of(12)))] == [{"Limit": 100, "Offset": 0}]


def test_pages_of_the_region_are_read_where_those_are_fewer_than_filters() -> None:
    assert [asked for _, asked in several(Cloud(disks_of(16), others=150), 16)] == [{"Limit": 100, "Offset": 0}, {}]


def test_few_machines_are_asked_about_whatever_else_is_in_their_region() -> None:
    ((_, asked),) = several(Cloud(disks_of(5), others=3), 5)
    assert "Filters" in asked


def test_what_is_odd_about_copies_of_other_disks_is_not_read() -> None:
    odd = {"SnapshotId": "snap-2", "DiskId": "disk-of-another"}
    cloud = Cloud(disks_of(12), [snapshot(DiskId="disk-3"), odd])
    ids = [f"ins-{number}" for number in range(12)]
    rows = {native_id: described(f"disk-{number}") for number, native_id in enumerate(ids)}
    found = list(read_attached(cloud, SHARD, [machine(each) for each in ids], rows))
    assert [len(each.snapshots) for each in found] == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, SnapshotState.COMPLETED),
        ({"Percent": 99}, SnapshotState.PENDING),
        ({"SnapshotState": "CREATING", "Percent": 100}, SnapshotState.PENDING),
        ({"SnapshotState": "ROLLBACKING"}, SnapshotState.PENDING),
        ({"SnapshotState": "SOMETHING_NEW"}, SnapshotState.PENDING),
        ({"SnapshotState": "TORECYCLE"}, SnapshotState.FAILED),
        ({"IsPermanent": False, "DeadlineTime": "2022-09-08 11:07:27"}, SnapshotState.FAILED),
    ],
)
def test_a_copy_counts_when_it_is_whole_and_stays(more: dict[str, Any], state: SnapshotState) -> None:
    found = to_snapshot(SHARD, snapshot(**more))
    assert found is not None
    assert found.state is state


class Unfiltered(Cloud):
    """Its list of snapshots overlooks the filter."""

    def pages(
        self, shard: Shard, service: str, action: str, result_key: str, /, **parameters: Any
    ) -> Iterator[list[Any]]:
        if action == "DescribeSnapshots":
            parameters = {}
        yield from super().pages(shard, service, action, result_key, **parameters)


@pytest.mark.parametrize(
    "copied", [{"DiskId": ""}, {"DiskId": None}, {"CopyFromRemote": True}, {"DiskId": "", "CopyFromRemote": True}]
)
def test_a_copied_snapshot_is_of_no_disk_here_and_breaks_nothing(copied: dict[str, Any]) -> None:
    elsewhere = snapshot(SnapshotId="snap-copied", **copied)

    found = detail(Unfiltered([disk()], [elsewhere, snapshot(CopyFromRemote=False)]))

    assert [each.ref.native_id for each in found.snapshots] == ["snap-1"]
    assert to_snapshot(SHARD, elsewhere) is None


@pytest.mark.parametrize(
    "broken",
    [
        {"Percent": None},
        {"CreateTime": ""},
        {"CreateTime": "2022-09-06"},
        {"Tags": None},
        {"IsPermanent": "true"},
    ],
    ids=str,
)
def test_a_copy_of_another_form_is_not_believed(broken: dict[str, Any]) -> None:
    with pytest.raises(ProviderError):
        detail(Cloud([disk()], [snapshot(**broken), snapshot()]))


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ({}, True),
        ({"AddressStatus": "BINDING"}, True),
        ({"AddressStatus": "UNBIND"}, False),
        ({"AddressStatus": "UNBINDING"}, False),
        ({"InstanceId": None}, False),
    ],
)
def test_an_address_is_kept_when_its_status_says_that_it_is_bound(more: dict[str, Any], *, kept: bool) -> None:
    """An unbound one was seen with the instance it had been bound to."""
    found = detail(Cloud([disk()], addresses=[address(**more)]), public_ip="203.0.113.7")
    assert [ref.native_id for ref in found.kept_addresses] == (["eip-1"] if kept else [])
    assert found.instance.public_ip_is_kept is kept


def test_a_plain_address_beside_a_kept_one_is_lost() -> None:
    found = detail(Cloud([disk()], addresses=[address(AddressIp="203.0.113.8")]), public_ip="203.0.113.7")
    assert len(found.kept_addresses) == 1
    assert not found.instance.public_ip_is_kept
