"""CBS: disks and their copies, with times in UTC+8; and which machine a disk that came off once belonged to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from cloudstand.tencent.compute.changes import BY
from cloudstand.tencent.compute.machines import is_system_disk
from cloudstand.tencent.core.asking import Answer, Asked, By, either, filtered, page
from cloudstand.tencent.core.errors import ApiError, bad_value
from cloudstand.tencent.core.times import local, moment_of
from cloudstand.world.fleet import made_up_id
from cloudstand.world.kinds import Billing, SnapshotState
from cloudstand.world.records import Machine, Refusal, WorldRefusalError, WorldSnapshot, WorldVolume

DECISION_TAG = "costguard:decision-id"
_SHORTEST_LIFE = timedelta(days=1)
_ALMOST = 99  # percent: a copy that fails never becomes complete, and no state of the API says more

_DISK_FILTERS: By = {
    "disk-usage": lambda entry: [entry["DiskUsage"]],
    "disk-charge-type": lambda entry: [entry["DiskChargeType"]],
    "portable": lambda entry: [str(entry["Portable"]).upper()],
    "project-id": lambda _: ["0"],
    "disk-id": lambda entry: [entry["DiskId"]],
    "disk-name": lambda entry: [entry["DiskName"]],
    "disk-type": lambda entry: [entry["DiskType"]],
    "disk-state": lambda entry: [entry["DiskState"]],
    "instance-id": lambda entry: [entry["InstanceId"]],
    "zone": lambda entry: [entry["Placement"]["Zone"]],
    "instance-ip-address": None,
    "instance-name": None,
    "dedicated-cluster-id": None,
    "cluster-group-id": None,
    "tag-key": lambda entry: [tag["Key"] for tag in entry["Tags"]],
    "tag-value": lambda entry: [tag["Value"] for tag in entry["Tags"]],
    "tag:": lambda entry: [f"{tag['Key']}={tag['Value']}" for tag in entry["Tags"]],
}
_SNAPSHOT_FILTERS: By = {
    "snapshot-id": lambda entry: [entry["SnapshotId"]],
    "snapshot-name": lambda entry: [entry["SnapshotName"]],
    "snapshot-state": lambda entry: [entry["SnapshotState"]],
    "snapshot-type": lambda entry: [entry["SnapshotType"]],
    "disk-id": lambda entry: [entry["DiskId"]],
    "disk-usage": lambda entry: [entry["DiskUsage"]],
    "project-id": lambda _: ["0"],
    "zone": lambda entry: [entry["Placement"]["Zone"]],
    "encrypt": lambda entry: [str(entry["Encrypt"]).upper()],
    "tag-key": lambda entry: [tag["Key"] for tag in entry["Tags"]],
    "tag:": lambda entry: [f"{tag['Key']}={tag['Value']}" for tag in entry["Tags"]],
}


def describe_disks(asked: Asked) -> Answer:
    """DescribeDisks: cloud disks only, attached or not; local ones are none of the CBS's."""
    either(asked, "DiskIds", "InvalidParameterValue")
    volumes = [*_volumes(asked)]
    if not {"DiskIds", "Filters", "Order", "OrderField"} & asked.parameters.keys():  # all: only the page is written out
        entries = [_disk(asked, *pair) for pair in page(asked, volumes)]
        return {"TotalCount": len(volumes), "DiskSet": entries}
    found = _chosen(asked, [_disk(asked, *pair) for pair in volumes], "DiskId", _DISK_FILTERS)
    return {"TotalCount": len(found), "DiskSet": page(asked, found)}


def describe_snapshots(asked: Asked) -> Answer:
    """DescribeSnapshots; done is NORMAL at 100 percent."""
    either(asked, "SnapshotIds", "InvalidParameterValue")
    _expire(asked)
    entries = [
        _snapshot(asked, snapshot, home)
        for snapshot in asked.world.snapshots.values()
        for home in [home_of(asked, asked.world.volumes[snapshot.volume])]
        if home.shard == asked.shard
    ]
    found = _chosen(asked, entries, "SnapshotId", _SNAPSHOT_FILTERS)
    return {"TotalCount": len(found), "SnapshotSet": page(asked, found)}


def create_snapshot(asked: Asked) -> Answer:
    """CreateSnapshot: of one disk, one at a time; asked twice it makes two, there is no token."""
    if "DiskId" not in asked.parameters:
        raise ApiError("MissingParameter", "`DiskId` is missing.", "缺少必要参数`DiskId`。")
    disk_id = asked.parameters["DiskId"]
    deadline = asked.get("Deadline")
    if deadline is not None and moment_of("Deadline", deadline) < asked.now + _SHORTEST_LIFE:
        raise bad_value("Deadline", "it is less than a day ahead")
    volume = asked.world.volumes.get(disk_id)
    if volume is None or volume.deleted_at is not None or home_of(asked, volume).shard != asked.shard:
        raise ApiError("InvalidDiskId.NotFound", f"there is no disk {disk_id}.", f"云硬盘`{disk_id}`不存在。")
    tags = {tag["Key"]: tag["Value"] for tag in asked.get("Tags", ())}
    try:
        snapshot = asked.world.create_snapshot(
            disk_id,
            BY,
            decision_id=tags.get(DECISION_TAG, ""),
            tags=tags,
            description=asked.get("SnapshotName", "未命名"),
        )
    except WorldRefusalError as err:
        if err.refusal is not Refusal.COPY_UNDER_WAY:
            raise
        raise ApiError("InvalidDisk.SnapshotCreating", f"{disk_id} is being copied.", "云硬盘正在创建快照。") from err
    if deadline is not None:
        asked.memory.deadlines[snapshot.native_id] = moment_of("Deadline", deadline)
    return {"SnapshotId": snapshot.native_id}


def delete_snapshots(asked: Asked) -> Answer:
    """DeleteSnapshots: all of them or none, and none that is still being made."""
    ids = dict.fromkeys(asked.parameters["SnapshotIds"])
    for native_id in ids:
        snapshot = asked.world.snapshots.get(native_id)
        if snapshot is None or home_of(asked, asked.world.volumes[snapshot.volume]).shard != asked.shard:
            raise ApiError("InvalidSnapshotId.NotFound", f"there is no {native_id}.", f"快照`{native_id}`不存在。")
        if snapshot.state is not SnapshotState.COMPLETED:
            raise ApiError("ResourceUnavailable.SnapshotCreating", f"{native_id} is being made.", "快照尚未创建完成。")
    for native_id in ids:
        asked.world.delete_snapshot(native_id, BY)
    return {}


def _chosen(asked: Asked, entries: list[dict[str, Any]], key: str, by: By) -> Sequence[dict[str, Any]]:
    ids = asked.get(f"{key}s")
    if ids:
        entries = [entry for entry in entries if entry[key] in set(ids)]
    entries = filtered(asked.get("Filters", ()), entries, by)
    if asked.get("Order") is not None or asked.get("OrderField") is not None:
        field = "DeadlineTime" if asked.get("OrderField") == "DEADLINE" else "CreateTime"
        entries.sort(key=lambda entry: str(entry[field]), reverse=asked.get("Order", "DESC") == "DESC")
    return entries


def _volumes(asked: Asked) -> Iterable[tuple[WorldVolume, Machine]]:
    """The disks of the shard, those on a machine that is asked for first of all: most questions are about one."""
    world, filters = asked.world, asked.get("Filters", ())
    for wanted in filters:
        if wanted["Name"] == "instance-id":
            machines = [world.machines[each] for each in wanted["Values"] if each in world.machines]
            here = [machine for machine in machines if machine.shard == asked.shard]
            return [(volume, machine) for machine in here for volume in world.volumes_of(machine.native_id)]
    alive = (volume for volume in world.volumes.values() if volume.deleted_at is None)
    placed = ((volume, home_of(asked, volume)) for volume in alive)
    return ((volume, home) for volume, home in placed if home.shard == asked.shard)


def home_of(asked: Asked, volume: WorldVolume) -> Machine:
    """The machine a disk is attached to, or was: its account and region are the disk's."""
    world, homes = asked.world, asked.memory.homes
    native_id = volume.machine or homes.get(volume.native_id, "")
    if not native_id:
        for spec in world.fleet:
            for disk in spec.disks:
                homes.setdefault(made_up_id(spec.cloud, "volume", spec.native_id, disk.device), spec.native_id)
        for happening in world.history:
            if happening.what == "attach":
                homes.setdefault(happening.native_id, happening.machine)
        native_id = homes[volume.native_id]
    return world.machines[native_id]


def _created(asked: Asked, volume: WorldVolume, home: Machine) -> datetime:
    if any(volume.disk is disk for disk in home.spec.disks):
        return home.spec.launched_at
    attached = (each.at for each in asked.world.history if each.what == "attach" and each.native_id == volume.native_id)
    return next(attached, home.spec.launched_at)


def _disk(asked: Asked, volume: WorldVolume, home: Machine) -> dict[str, Any]:
    disk, attached, prepaid = volume.disk, bool(volume.machine), home.spec.billing is Billing.PREPAID
    copies = asked.world.snapshots_of(volume.native_id)
    until = home.spec.prepaid_until if prepaid else None
    return {
        "DiskId": volume.native_id,
        "DiskName": disk.device,
        "DiskUsage": "SYSTEM_DISK" if is_system_disk(home, volume) else "DATA_DISK",
        "DiskState": "ATTACHED" if attached else "UNATTACHED",
        "DiskType": disk_type(volume),
        "DiskSize": disk.size_gib,
        "DiskChargeType": "PREPAID" if prepaid else "POSTPAID_BY_HOUR",
        "Attached": attached,
        "InstanceId": volume.machine,
        "InstanceIdList": [],
        "InstanceType": "CVM" if attached else "",
        "LastAttachInsId": home.native_id,
        "DeleteWithInstance": disk.deleted_with_instance,
        "SnapshotAbility": True,
        "SnapshotCount": len(copies),
        "SnapshotSize": sum(copy.size_gib for copy in copies) * 1024,
        "Encrypt": bool(disk.key_id),
        "KmsKeyId": disk.key_id,
        "Portable": not is_system_disk(home, volume),
        "Shareable": False,
        "IsReturnable": False,
        "ReturnFailCode": 3,
        "RenewFlag": "NOTIFY_AND_MANUAL_RENEW" if prepaid else "",
        "CreateTime": local(_created(asked, volume, home)),
        "DeadlineTime": "" if until is None else local(until),
        "DifferDaysOfDeadline": 0 if until is None else max((until - asked.now).days, 0),
        "Tags": _told(volume.tags),
        "Placement": _placement(home),
        "AutoSnapshotPolicyIds": [] if asked.get("ReturnBindAutoSnapshotPolicy") else None,
        "Rollbacking": False,
        "RollbackPercent": 100,
        "Migrating": False,
        "MigratePercent": 0,
        "BackupDisk": True,
        "DeleteSnapshot": 0,
        "ThroughputPerformance": 0,
    }


def disk_type(volume: WorldVolume) -> str:
    """The kind of a disk in the vendor's words; worlds made for other clouds have words of their own."""
    return volume.disk.volume_type if volume.disk.volume_type.startswith("CLOUD_") else "CLOUD_PREMIUM"


def _snapshot(asked: Asked, snapshot: WorldSnapshot, home: Machine) -> dict[str, Any]:
    volume = asked.world.volumes[snapshot.volume]
    deadline = asked.memory.deadlines.get(snapshot.native_id)
    done = snapshot.state is SnapshotState.COMPLETED
    return {
        "SnapshotId": snapshot.native_id,
        "SnapshotName": snapshot.description or "未命名",
        "SnapshotState": "NORMAL" if done else "CREATING",
        "Percent": 100 if done else _percent(asked, snapshot),
        "SnapshotType": "PRIVATE_SNAPSHOT",
        "DiskId": snapshot.volume,
        "DiskUsage": "SYSTEM_DISK" if is_system_disk(home, volume) else "DATA_DISK",
        "DiskSize": snapshot.size_gib,
        "IsPermanent": deadline is None,
        "DeadlineTime": "" if deadline is None else local(deadline),
        "CreateTime": local(snapshot.started_at),
        "Encrypt": False,
        "Tags": _told(snapshot.tags),
        "Images": [],
        "ImageCount": 0,
        "CopyFromRemote": False,
        "CopyingToRegions": [],
        "ShareReference": 0,
        "IsLocked": False,
        "Placement": _placement(home),
    }


def _percent(asked: Asked, snapshot: WorldSnapshot) -> int:
    whole = (snapshot.completes_at - snapshot.started_at).total_seconds()
    passed = (asked.now - snapshot.started_at).total_seconds()
    return min(int(100 * passed / whole) if whole > 0 else 0, _ALMOST)


def _expire(asked: Asked) -> None:
    """Copies whose deadline has passed are gone."""
    for native_id, deadline in [*asked.memory.deadlines.items()]:
        if deadline <= asked.now:
            del asked.memory.deadlines[native_id]
            if native_id in asked.world.snapshots:
                asked.world.delete_snapshot(native_id, "cloud")


def _placement(home: Machine) -> dict[str, Any]:
    return {"Zone": home.spec.zone, "ProjectId": 0, "ProjectName": "默认项目", "CageId": None, "CdcId": None}


def _told(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
