"""Copies of disks: asked for once, under way for minutes to hours, and then complete or failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import assert_never

from cloudstand.alibaba.compute.disks import is_system, local_disk_ids
from cloudstand.alibaba.compute.instances import has_tags
from cloudstand.alibaba.compute.tagging import checked_tags
from cloudstand.alibaba.core.errors import BAD_REQUEST, FORBIDDEN, NOT_FOUND, ApiError, invalid
from cloudstand.alibaba.core.ownership import Origin
from cloudstand.alibaba.core.paging import Pages
from cloudstand.alibaba.core.shapes import tags
from cloudstand.alibaba.core.site import ApiCall, SnapshotNote
from cloudstand.alibaba.core.times import second
from cloudstand.world.cloud import World
from cloudstand.world.kinds import SnapshotState
from cloudstand.world.places import Place
from cloudstand.world.records import Refusal, WorldRefusalError, WorldSnapshot

MOST_OF_A_DISK = 256  # manual copies
_USABLE_AT_ONCE = ("cloud_essd", "cloud_auto", "cloud_essd_entry")
_STATUS = {
    SnapshotState.PENDING: "progressing",
    SnapshotState.COMPLETED: "accomplished",
    SnapshotState.FAILED: "failed",
}


def create_snapshot(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Begin a copy of one disk; with the same ClientToken again, the same copy.

    Raises:
        ApiError: no such disk, one that cannot be copied, or a copy of it under way.
    """
    return call.once(lambda: _create(call, world))


def _create(call: ApiCall, world: World) -> Mapping[str, Any]:
    asked, site = call.asked, call.site
    name = asked.text("SnapshotName")
    if name.startswith(("auto", "http://", "https://")):
        raise ApiError("InvalidSnapshotName.Malformed", "The specified SnapshotName is wrongly formed.")
    if asked.text("Description").startswith(("http://", "https://")):
        raise ApiError("InvalidDescription.Malformed", "The specified description is wrongly formed.")
    if asked.given("InstantAccessRetentionDays") and not asked.flag("InstantAccess"):
        raise invalid("InstantAccessRetentionDays", "It takes effect only when InstantAccess is true.")
    wanted = checked_tags(asked)
    disk_id = asked.text("DiskId")
    shard = Place(site.cloud, call.account, call.region)
    if any(disk_id in local_disk_ids(machine.spec) for machine in world.machines_in(shard)):
        message = "The specified disk category does not support this operation."
        raise ApiError("DiskCategory.OperationNotSupported", message, FORBIDDEN)
    found = site.ownership.volume(disk_id)
    if found is None or found[1].shard != shard:
        raise ApiError("InvalidDiskId.NotFound", "The specified disk does not exist.", NOT_FOUND)
    if len(world.snapshots_of(disk_id)) >= MOST_OF_A_DISK:
        message = "The snapshot quota of the specified disk exceeds."
        raise ApiError("QuotaExceed.Snapshot", message, BAD_REQUEST)
    try:
        made = world.create_snapshot(disk_id, "api", tags=wanted, description=asked.text("Description"))
    except WorldRefusalError as err:
        if err.refusal is not Refusal.COPY_UNDER_WAY:
            raise ApiError("InvalidDiskId.NotFound", "The specified disk does not exist.", NOT_FOUND) from err
        message = "A previous snapshot creation is in process."
        raise ApiError("IncorrectDiskStatus.CreatingSnapshot", message, FORBIDDEN) from err
    site.notes[made.native_id] = SnapshotNote(name, asked.whole("RetentionDays"))
    return {"SnapshotId": made.native_id}


def describe_snapshots(call: ApiCall, world: World) -> Mapping[str, Any]:
    """The copies in one region that fit every filter, newest first, in pages."""
    asked = call.asked
    copies = call.site.ownership.snapshots(Place(call.site.cloud, call.account, call.region))
    found = [copy for copy in copies if _fits(copy, call)]
    by_token = asked.given("MaxResults") or asked.given("NextToken")
    page = Pages("DescribeSnapshots", asked, most=100, usual=10, least=10).of(found, by_token=by_token)
    return {
        "Snapshots": {"Snapshot": [_described(call, world, copy) for copy in page.items]},
        "NextToken": page.token,
        "PageNumber": page.number,
        "PageSize": 0 if by_token else page.size,
        "TotalCount": 0 if by_token else len(found),
    }


def _described(call: ApiCall, world: World, copy: WorldSnapshot) -> dict[str, Any]:
    note = call.site.notes.get(copy.native_id, SnapshotNote("", None))
    origin, volume = call.site.ownership.origin_of_snapshot(copy), world.volumes.get(copy.volume)
    kind = volume.disk.volume_type if volume else ""
    pending = copy.state is SnapshotState.PENDING
    return {
        "SnapshotId": copy.native_id,
        "SnapshotName": note.name,
        "SnapshotSN": copy.native_id[2:],
        "Description": copy.description,
        "SourceDiskId": copy.volume,
        "SourceDiskSize": str(copy.size_gib),
        "SourceDiskType": _type_of(world, copy, origin),
        "SourceStorageType": "disk",
        "RegionId": call.region,
        "Status": _STATUS[copy.state],
        "Progress": _progress(world, copy),
        "RemainTime": max(0, int((copy.completes_at - world.now).total_seconds())) if pending else 0,
        "Available": copy.state is SnapshotState.COMPLETED or (pending and kind in _USABLE_AT_ONCE),
        "CreationTime": second(copy.started_at),
        "LastModifiedTime": second(copy.started_at if pending else copy.completes_at),
        **({"RetentionDays": note.retention_days} if note.retention_days is not None else {}),
        "SnapshotType": "user",
        "Category": "Standard",
        "InstantAccess": False,
        "Encrypted": bool(volume and volume.disk.key_id),
        "KMSKeyId": volume.disk.key_id if volume else "",
        "ProductCode": "",
        "ResourceGroupId": "",
        "SnapshotLinkId": f"sl-{copy.volume[2:]}",
        "Usage": "none",
        **tags(copy.tags, copy.native_id),
    }


def _progress(world: World, copy: WorldSnapshot) -> str:
    """A text with a percent sign; a failed copy stays where it was."""
    if copy.state is SnapshotState.COMPLETED:
        return "100%"
    if copy.state is SnapshotState.FAILED:
        return "37%"
    if copy.state is SnapshotState.PENDING:
        whole = (copy.completes_at - copy.started_at).total_seconds() or 1.0
        return f"{min(99, int(100 * (world.now - copy.started_at).total_seconds() / whole))}%"
    assert_never(copy.state)


def _type_of(world: World, copy: WorldSnapshot, origin: Origin | None) -> str:
    volume = world.volumes.get(copy.volume)
    return "system" if volume is not None and origin is not None and is_system(world, volume, origin) else "data"


def _fits(copy: WorldSnapshot, call: ApiCall) -> bool:
    asked = call.asked
    ids = asked.ids("SnapshotIds")
    exact = {
        "DiskId": copy.volume,
        "InstanceId": copy.machine,
        "SnapshotName": call.site.notes.get(copy.native_id, SnapshotNote("", None)).name,
        "Status": _STATUS[copy.state],
        "SnapshotType": "user",
    }
    return (
        (ids is None or copy.native_id in ids)
        and all(asked.text(name) in ("", "all", value) for name, value in exact.items())
        and has_tags(copy.tags, asked)
    )
