"""Disks as DescribeDisks tells them: cloud disks, which persist, and local ones, which nobody can copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from cloudstand.alibaba.compute.catalogue import facts_of
from cloudstand.alibaba.compute.instances import has_tags
from cloudstand.alibaba.core.ownership import Origin
from cloudstand.alibaba.core.paging import Pages
from cloudstand.alibaba.core.shapes import some, tags
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.core.times import NEVER, second
from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec, made_up_id
from cloudstand.world.places import Place
from cloudstand.world.records import WorldVolume

_ESSD = ("cloud_essd",)


@dataclass(frozen=True, slots=True)
class _Listed:
    """A disk before anybody asked for all of it."""

    disk_id: str
    machine: str
    tags: Mapping[str, str]
    described: Callable[[], dict[str, Any]]


def describe_disks(call: ApiCall, world: World) -> Mapping[str, Any]:
    """The disks of one region that fit every filter, in pages."""
    asked = call.asked
    found = _filtered(call, world)
    by_token = asked.given("MaxResults") or asked.given("NextToken")
    page = Pages("DescribeDisks", asked, most=500, usual=10, least=10).of(found, by_token=by_token)
    return {
        "Disks": {"Disk": [disk.described() for disk in page.items]},
        "NextToken": page.token,
        "PageNumber": page.number,
        "PageSize": 0 if by_token else page.size,
        "TotalCount": 0 if by_token else len(found),
    }


def no_disks(_: ApiCall, __: World) -> Mapping[str, Any]:
    """What who may not ask was answered until 20 December 2025."""
    return {"Disks": {"Disk": []}, "NextToken": "", "PageNumber": 1, "PageSize": 10, "TotalCount": 0}


def local_disk_ids(spec: MachineSpec) -> list[str]:
    """The ids of the disks in a machine's own box."""
    facts = facts_of(spec)
    has = spec.local_disk_gib is None or spec.local_disk_gib > 0
    count = facts.local_disks if has else 0
    return [made_up_id(spec.cloud, "volume", spec.native_id, f"local-{number}") for number in range(count)]


def is_system(world: World, volume: WorldVolume, origin: Origin) -> bool:
    """Whether a disk is the one its machine starts from."""
    disks = world.machines[origin.machine].spec.disks
    return bool(disks) and volume.disk is disks[0]


def _all(call: ApiCall, world: World) -> Iterator[_Listed]:
    shard = Place(call.site.cloud, call.account, call.region)
    for volume, origin in call.site.ownership.volumes(shard):
        yield _Listed(volume.native_id, volume.machine, volume.tags, partial(_cloud_disk, world, volume, origin))
    for machine in world.machines_in(shard):
        for place, disk_id in enumerate(local_disk_ids(machine.spec)):
            yield _Listed(disk_id, machine.native_id, {}, partial(_local_disk, machine.spec, disk_id, place))


def _cloud_disk(world: World, volume: WorldVolume, origin: Origin) -> dict[str, Any]:
    disk, since = volume.disk, world.machines[origin.machine].spec.launched_at
    system = is_system(world, volume, origin)
    return {
        **_common(volume.native_id, origin.zone, origin.shard.region, since),
        **_attachment(volume.machine, disk.device, since),
        "Type": "system" if system else "data",
        "Status": "In_use" if volume.machine else "Available",
        "Category": disk.volume_type,
        **({"PerformanceLevel": "PL1"} if disk.volume_type in _ESSD else {}),
        "Size": disk.size_gib,
        "DeleteWithInstance": disk.deleted_with_instance,
        "Portable": not system,
        "Encrypted": bool(disk.key_id),
        "KMSKeyId": disk.key_id,
        **tags(volume.tags, volume.native_id),
    }


def _local_disk(spec: MachineSpec, disk_id: str, place: int) -> dict[str, Any]:
    facts = facts_of(spec)
    return {
        **_common(disk_id, spec.zone, spec.region, spec.launched_at),
        **_attachment(spec.native_id, f"/dev/vd{'bcdefghijklmnop'[place]}", spec.launched_at),
        "Type": "data",
        "Status": "In_use",
        "Category": facts.local_kind,
        "Size": facts.local_gib,
        "DeleteWithInstance": True,
        "Portable": False,
        **tags({}, disk_id),
    }


def _attachment(machine: str, device: str, since: datetime) -> dict[str, Any]:
    if not machine:
        return {"InstanceId": "", "Device": "", "AttachedTime": "", "Attachments": {"Attachment": []}}
    attached = {"InstanceId": machine, "Device": device, "AttachedTime": second(since)}
    return {**attached, "Attachments": {"Attachment": [attached]}}


def _common(disk_id: str, zone: str, region: str, since: datetime) -> dict[str, Any]:
    return {
        "DiskId": disk_id,
        "DiskName": "",
        "Description": "",
        "RegionId": region,
        "ZoneId": zone,
        "SerialNumber": disk_id[2:],
        "CreationTime": second(since),
        "DetachedTime": "",
        "ExpiredTime": NEVER,
        "DiskChargeType": "PostPaid",
        "DeleteAutoSnapshot": False,
        "EnableAutoSnapshot": True,
        "EnableAutomatedSnapshotPolicy": False,
        "AutoSnapshotPolicyId": "",
        "Encrypted": False,
        "KMSKeyId": "",
        "MultiAttach": "Disabled",
        "ImageId": "",
        "SourceSnapshotId": "",
        "ProductCode": "",
        "ResourceGroupId": "",
        **some("OperationLocks", "OperationLock", [], disk_id),
    }


_EXACT = {
    "DiskType": "Type",
    "Status": "Status",
    "Category": "Category",
    "ZoneId": "ZoneId",
    "KMSKeyId": "KMSKeyId",
}


def _filtered(call: ApiCall, world: World) -> list[_Listed]:
    """The disks that fit every filter that is there; what need not be described for that is not."""
    asked, found = call.asked, [*_all(call, world)]
    ids = asked.ids("DiskIds")
    if ids is not None:
        wanted = frozenset(ids)
        found = [disk for disk in found if disk.disk_id in wanted]
    if asked.text("InstanceId"):
        found = [disk for disk in found if disk.machine == asked.text("InstanceId")]
    if asked.given("Tag"):
        found = [disk for disk in found if has_tags(disk.tags, asked)]
    for name, field in _EXACT.items():
        if asked.text(name) not in ("", "all", "All"):
            found = [disk for disk in found if disk.described()[field] == asked.text(name)]
    if asked.flag("Encrypted"):
        found = [disk for disk in found if disk.described()["Encrypted"]]
    if asked.given("DeleteWithInstance"):
        found = [disk for disk in found if disk.described()["DeleteWithInstance"] == asked.flag("DeleteWithInstance")]
    return found
