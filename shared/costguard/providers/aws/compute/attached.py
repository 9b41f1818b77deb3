"""What hangs on an instance: volumes, their snapshots and kept addresses in batches, protections one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from costguard.domain.errors import TruncatedReadError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import (
    Instance,
    InstanceDetail,
    InstanceState,
    Snapshot,
    SnapshotState,
    Volume,
)
from costguard.providers.aws.compute.instances import volume_ids, volumes_deleted_with
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.kit.core.fields import as_documented, flag, moment, named, part, parts, tags_of, text, whole

DECISION_TAG = "costguard:decision-id"
CASE_TAG = "costguard:case"

COPIED_AT_ONCE = 128
"""The most volumes, the root volume counted, of which one CreateSnapshots makes a crash-consistent set.

EBS user guide, "Create multi-volume Amazon EBS snapshots": 127 data volumes; where one fails, the whole set does.
"""

_VALUES = 200  # the most values one filter takes
_VOLUMES_PAGE = 500
_SNAPSHOTS_PAGE = 1000
_SNAPSHOT_STATES = {"completed": SnapshotState.COMPLETED, "error": SnapshotState.FAILED}
_OF_A_COPY = "vol-ffffffff"
"""VolumeId of copied snapshots, "an arbitrary volume ID that you should not use for any purpose" (EC2, `Snapshot`)."""
_PROTECTIONS: Mapping[str, tuple[str, str]] = {
    "termination_protection": ("disableApiTermination", "DisableApiTermination"),
    "stop_protection": ("disableApiStop", "DisableApiStop"),
}
"""By our word the attribute that is asked for and the one that answers; DescribeInstances has neither of them."""


def read_attached(
    session: AwsSession, shard: Shard, instances: Sequence[Instance], described: Mapping[str, Mapping[str, Any]]
) -> Iterator[InstanceDetail]:
    """A detail for each of `instances`; `described` holds their DescribeInstances elements by id.

    Raises:
        TruncatedReadError: the instance names a volume that DescribeVolumes does not: never a short list.
        ProviderError: another read failed.
    """
    there = [instance for instance in instances if instance.state is not InstanceState.TERMINATED]
    ids = [instance.ref.native_id for instance in there]
    volumes = _volumes(session, shard, {native_id: described[native_id] for native_id in ids})
    for native_id in ids:
        listed = {volume.ref.native_id for volume in volumes[native_id]}
        missing = sorted(set(volume_ids(described[native_id])) - listed)
        if missing:
            api = "ec2:DescribeVolumes"
            message = f"{api}: {native_id} has {', '.join(missing)} attached, which the answer leaves out"
            raise TruncatedReadError(message, operation=api, code="MissingVolume")
    snapshots = _snapshots(session, shard, sorted({v.ref.native_id for found in volumes.values() for v in found}))
    addresses = _addresses(session, shard, ids)
    for instance in instances:
        native_id = instance.ref.native_id
        own = tuple(volumes[native_id])
        yield InstanceDetail(
            instance=instance,
            volumes=own,
            snapshots=tuple(snapshot for volume in own for snapshot in snapshots[volume.ref.native_id]),
            kept_addresses=tuple(addresses[native_id]),
            copied_together=1 < len(own) <= COPIED_AT_ONCE,
            unread_protections=() if instance.state is InstanceState.TERMINATED else tuple(_PROTECTIONS),
        )


def _batches(values: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(values), _VALUES):
        yield list(values[start : start + _VALUES])


def _volumes(
    session: AwsSession, shard: Shard, described: Mapping[str, Mapping[str, Any]]
) -> defaultdict[str, list[Volume]]:
    found: defaultdict[str, list[Volume]] = defaultdict(list)
    for batch in _batches(list(described)):
        attached = [{"Name": "attachment.instance-id", "Values": batch}]
        pages = session.pages(shard, "ec2", "DescribeVolumes", "Volumes", Filters=attached, MaxResults=_VOLUMES_PAGE)
        with as_documented("ec2:DescribeVolumes"):
            for item in (item for page in pages for item in page):
                for attachment in parts(item, "Attachments"):
                    native_id = text(attachment, "InstanceId")
                    if native_id in batch:
                        volume = _volume(shard, item, attachment, described[native_id])
                        if volume not in found[native_id]:
                            found[native_id].append(volume)
    return found


def _volume(
    shard: Shard, item: Mapping[str, Any], attachment: Mapping[str, Any], instance: Mapping[str, Any]
) -> Volume:
    native_id = named(item, "VolumeId")
    return Volume(
        ref=ResourceRef(shard.cloud, shard.account, shard.region, "volume", native_id),
        size_gib=float(whole(item, "Size")),
        volume_type=text(item, "VolumeType"),
        device=text(attachment, "Device"),
        deleted_with_instance=flag(attachment, "DeleteOnTermination") or native_id in volumes_deleted_with(instance),
    )


def _snapshots(session: AwsSession, shard: Shard, ids: Sequence[str]) -> defaultdict[str, list[Snapshot]]:
    found: defaultdict[str, list[Snapshot]] = defaultdict(list)
    for batch in _batches(ids):
        of_volumes = [{"Name": "volume-id", "Values": batch}]
        pages = session.pages(
            shard,
            "ec2",
            "DescribeSnapshots",
            "Snapshots",
            OwnerIds=["self"],
            Filters=of_volumes,
            MaxResults=_SNAPSHOTS_PAGE,
        )
        with as_documented("ec2:DescribeSnapshots"):
            for item in (item for page in pages for item in page):
                native_id = text(item, "VolumeId")
                if native_id == _OF_A_COPY or native_id not in batch:
                    continue
                volume = ResourceRef(shard.cloud, shard.account, shard.region, "volume", native_id)
                snapshot = Snapshot(
                    ref=volume.sibling("snapshot", named(item, "SnapshotId")),
                    volume=volume,
                    state=_SNAPSHOT_STATES.get(text(item, "State"), SnapshotState.PENDING),
                    started_at=_started_at(item),
                    decision_id=tags_of(item).get(DECISION_TAG, ""),
                )
                if snapshot not in found[native_id]:
                    found[native_id].append(snapshot)
    return found


def _started_at(item: Mapping[str, Any]) -> datetime:
    found = moment(item, "StartTime")
    if found is None:
        message = "StartTime is missing"
        raise ValueError(message)
    return found


def _addresses(session: AwsSession, shard: Shard, ids: Sequence[str]) -> defaultdict[str, list[ResourceRef]]:
    """Elastic IPs by instance; EC2 DescribeAddresses gives one answer without pages."""
    found: defaultdict[str, list[ResourceRef]] = defaultdict(list)
    for batch in _batches(ids):
        of_instances = [{"Name": "instance-id", "Values": batch}]
        for page in session.pages(shard, "ec2", "DescribeAddresses", "Addresses", Filters=of_instances):
            with as_documented("ec2:DescribeAddresses"):
                for item in page:
                    native_id = text(item, "AllocationId") or named(item, "PublicIp")
                    found[text(item, "InstanceId")].append(
                        ResourceRef(shard.cloud, shard.account, shard.region, "public_address", native_id)
                    )
    return found


def read_protections(session: AwsSession, shard: Shard, native_id: str, wanted: Collection[str]) -> tuple[str, ...]:
    """Those of `wanted` that are set.

    Raises:
        NotFoundError: no such instance.
        ProviderError: one of them could not be read.

    API: EC2 DescribeInstanceAttribute, one attribute of one instance a call; the bucket of the describe calls without
    pages holds 50 and is refilled by 10 a second (EC2 API, "Request throttling for the Amazon EC2 API").
    """
    held = []
    for word, (attribute, key) in _PROTECTIONS.items():
        if word not in wanted:
            continue
        answer = session.call(shard, "ec2", "DescribeInstanceAttribute", InstanceId=native_id, Attribute=attribute)
        with as_documented("ec2:DescribeInstanceAttribute"):
            value = part(answer, key).get("Value")
        if not isinstance(value, bool):
            api = "ec2:DescribeInstanceAttribute"
            message = f"{api}: {native_id}: answered without {key}: not as documented"
            raise TruncatedReadError(message, operation=api, code="MissingResult")
        if value:
            held.append(word)
    return tuple(held)
