"""What hangs on an instance: cloud disks, their snapshots, and elastic addresses that stay and bill."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from costguard.domain.errors import TruncatedReadError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import (
    Instance,
    InstanceDetail,
    Snapshot,
    SnapshotState,
    Volume,
)
from costguard.providers.kit.core.calls import Lists
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named, text, whole
from costguard.providers.tencent.compute.instances import TERMINATION_PROTECTION, attached_disk_ids
from costguard.providers.tencent.core.fields import moment, tags_of, told

DECISION_TAG = "costguard:decision-id"
CASE_TAG = "costguard:case"

DISKS, SNAPSHOTS, ADDRESSES = "cbs:DescribeDisks", "cbs:DescribeSnapshots", "vpc:DescribeAddresses"
_IDS = 100  # ids in one request
_VALUES = 5  # values of one filter: CVM's limit; CBS names none of its own
_ADDRESS_VALUES = 100  # the same of DescribeAddresses
_BOUND = frozenset({"BIND", "BINDING"})
"""AddressStatus counts, not InstanceId: an unbound address was seen with the machine it had been bound to."""


def read_attached(
    session: Lists, shard: Shard, instances: Sequence[Instance], described: Mapping[str, Fields]
) -> Iterator[InstanceDetail]:
    """A detail for each of `instances`; `described` holds their DescribeInstances elements by id.

    Raises:
        TruncatedReadError: the instance names a disk that DescribeDisks does not: never a short list.
        ProviderError: another read failed.
    """
    ids = [instance.ref.native_id for instance in instances]
    with as_documented("cvm:DescribeInstances"):
        named_disks = {native_id: attached_disk_ids(described[native_id]) for native_id in ids}
    volumes = _volumes(session, shard, named_disks)
    snapshots = _snapshots(session, shard, sorted({v.ref.native_id for found in volumes.values() for v in found}))
    addresses = kept_addresses(session, shard, ids)
    for instance in instances:
        native_id = instance.ref.native_id
        own = tuple(volumes[native_id])
        kept = tuple(ref for ref, _ in addresses.get(native_id, ()))
        yield InstanceDetail(
            instance=with_kept_address(instance, addresses),
            volumes=own,
            snapshots=tuple(snapshot for volume in own for snapshot in snapshots[volume.ref.native_id]),
            kept_addresses=kept,
            protected_by=tuple(each for each in instance.protected_by if each == TERMINATION_PROTECTION),
        )


def kept_addresses(session: Lists, shard: Shard, ids: Sequence[str]) -> Mapping[str, Sequence[tuple[ResourceRef, str]]]:
    """Elastic addresses bound to these instances, by id, with the address each stands for.

    API: VPC DescribeAddresses, which without a filter by type leaves plain public addresses out.

    Raises:
        ProviderError: they could not be read.
    """
    found: defaultdict[str, list[tuple[ResourceRef, str]]] = defaultdict(list)
    for batch in _batches(ids, _ADDRESS_VALUES):
        for item in _items(session, shard, ADDRESSES, "AddressSet", "instance-id", batch):
            with as_documented(ADDRESSES):
                known = told(item, "InstanceId", "AddressIp")
                native_id = text(known, "InstanceId")
                if native_id in batch and text(known, "AddressStatus") in _BOUND:
                    ref = _ref(shard, "public_address", named(known, "AddressId"))
                    if ref not in [each for each, _ in found[native_id]]:
                        found[native_id].append((ref, text(known, "AddressIp")))
    return found


def with_kept_address(instance: Instance, addresses: Mapping[str, Sequence[tuple[ResourceRef, str]]]) -> Instance:
    """`instance`, knowing whether its public address outlives a stop."""
    own = addresses.get(instance.ref.native_id, ())
    kept = bool(instance.public_ip) and any(address in {"", instance.public_ip} for _, address in own)
    return replace(instance, public_ip_is_kept=kept)


def _volumes(session: Lists, shard: Shard, named_disks: Mapping[str, frozenset[str]]) -> defaultdict[str, list[Volume]]:
    """Disks by instance: those that the CBS says are attached, and by id those that it did not name so.

    A disk attached to several machines has the list of them in InstanceIdList, which no filter is said to know.
    """
    found: defaultdict[str, list[Volume]] = defaultdict(list)
    for batch in _batches(list(named_disks), _VALUES):
        for item in _items(session, shard, DISKS, "DiskSet", "instance-id", batch):
            with as_documented(DISKS):
                _take(shard, item, named_disks, found)
    unseen = {
        disk for native_id, disks in named_disks.items() for disk in disks - {v.ref.native_id for v in found[native_id]}
    }
    for batch in _batches(sorted(unseen), _IDS):
        for page in session.pages(shard, "cbs", "DescribeDisks", "DiskSet", DiskIds=batch):
            with as_documented(DISKS):
                for item in page:
                    _take(shard, item, named_disks, found)
    for native_id, disks in named_disks.items():
        missing = sorted(disks - {volume.ref.native_id for volume in found[native_id]})
        if missing:
            message = f"{DISKS}: {native_id} has {', '.join(missing)} attached, which the answer leaves out"
            raise TruncatedReadError(message, operation=DISKS, code="MissingVolume")
    return found


def _take(
    shard: Shard,
    item: Fields,
    named_disks: Mapping[str, frozenset[str]],
    found: defaultdict[str, list[Volume]],
) -> None:
    known = told(item, "InstanceId", "InstanceIdList", "DeleteWithInstance")
    several = known.get("InstanceIdList", [])
    if not isinstance(several, list):
        message = "InstanceIdList is no list"
        raise TypeError(message)
    disk_id = named(known, "DiskId")
    for native_id in {text(known, "InstanceId"), *several} & named_disks.keys():
        volume = Volume(
            ref=_ref(shard, "volume", disk_id),
            size_gib=float(whole(known, "DiskSize")),
            volume_type=text(known, "DiskType"),
            # a system disk always goes with its machine; of data disks the CBS has the say, not DescribeInstances
            deleted_with_instance=text(known, "DiskUsage") == "SYSTEM_DISK" or flag(known, "DeleteWithInstance"),
        )
        if volume not in found[native_id]:
            found[native_id].append(volume)


def _snapshots(session: Lists, shard: Shard, ids: Sequence[str]) -> defaultdict[str, list[Snapshot]]:
    found: defaultdict[str, list[Snapshot]] = defaultdict(list)
    for batch in _batches(ids, _VALUES):
        for item in _items(session, shard, SNAPSHOTS, "SnapshotSet", "disk-id", batch):
            with as_documented(SNAPSHOTS):
                snapshot = to_snapshot(shard, item)
            if snapshot is not None and snapshot not in found[snapshot.volume.native_id]:
                found[snapshot.volume.native_id].append(snapshot)
    return found


def to_snapshot(shard: Shard, item: Fields) -> Snapshot | None:
    """One element of DescribeSnapshots. None for a copy from another region: its disk is not here.

    Such a one says `CopyFromRemote`, and was recorded with a DiskId that is empty.

    Raises:
        TypeError, ValueError: not as documented.
    """
    known = told(item, "DiskId", "CopyFromRemote")
    if not text(known, "DiskId") or flag(known, "CopyFromRemote"):
        return None
    volume = _ref(shard, "volume", named(known, "DiskId"))
    return Snapshot(
        ref=volume.sibling("snapshot", named(item, "SnapshotId")),
        volume=volume,
        state=_snapshot_state(item),
        started_at=_started_at(item),
        decision_id=tags_of(item, "Tags").get(DECISION_TAG, ""),
    )


def _snapshot_state(item: Fields) -> SnapshotState:
    """Complete is NORMAL at 100 %. One that the cloud will delete by itself, or has begun to, is no copy to rely on."""
    state = text(item, "SnapshotState")
    if state == "TORECYCLE" or ("IsPermanent" in item and not flag(item, "IsPermanent")):
        return SnapshotState.FAILED
    complete = state == "NORMAL" and whole(item, "Percent") == 100  # noqa: PLR2004 - per cent
    return SnapshotState.COMPLETED if complete else SnapshotState.PENDING


def _started_at(item: Fields) -> datetime:
    found = moment(item, "CreateTime")
    if found is None:
        message = "CreateTime is missing"
        raise ValueError(message)
    return found


def _items(
    session: Lists, shard: Shard, operation: str, key: str, filter_name: str, values: Sequence[str]
) -> Iterator[Any]:
    service, action = operation.split(":")
    wanted = [{"Name": filter_name, "Values": list(values)}]
    for page in session.pages(shard, service, action, key, Filters=wanted):
        yield from page


def _batches(values: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(values), size):
        yield list(values[start : start + size])


def _ref(shard: Shard, kind: str, native_id: str) -> ResourceRef:
    return ResourceRef(shard.cloud, shard.account, shard.region, kind, native_id)
