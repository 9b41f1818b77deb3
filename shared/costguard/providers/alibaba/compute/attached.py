"""What hangs on an instance: disks, their snapshots, kept addresses, and protections set at the cloud."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from costguard.domain.errors import TruncatedReadError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Instance, InstanceDetail, Snapshot, SnapshotState, Volume
from costguard.providers.alibaba.compute.instances import elastic_address, secondary_interfaces
from costguard.providers.alibaba.core.fields import needed_time, structures_in, tags_of
from costguard.providers.alibaba.core.paging import numbered_pages, prove_permitted
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named, text, whole

DECISION_TAG = "costguard:decision-id"
CASE_TAG = "costguard:case"

_DISKS, _SNAPSHOTS, _ADDRESSES = "ecs:DescribeDisks", "ecs:DescribeSnapshots", "vpc:DescribeEipAddresses"
_MOST_DISKS = 100  # of a page by number; an instance has 65 at most
_PAGE = 100
_SNAPSHOT_STATES = {"accomplished": SnapshotState.COMPLETED, "failed": SnapshotState.FAILED}
_LOCAL = ("local_", "ephemeral", "elastic_ephemeral")
"""Disks that a stop or a release destroys, and that cannot be copied."""

_USUAL_LEVEL = "PL1"
_CARD = "NetworkInterface"  # what an address may be bound to, in the vendor's words


def read_attached(
    session: AlibabaSession, shard: Shard, instances: Sequence[Instance], described: Mapping[str, Fields]
) -> Iterator[InstanceDetail]:
    """A detail for each of `instances`; `described` holds their DescribeInstances elements by id.

    Raises:
        TruncatedReadError: fewer disks came than there are, or no system disk: never a short list.
        ProviderError: another read failed.
    """
    for instance in instances:
        native_id = instance.ref.native_id
        disks = _disks(session, shard, native_id)
        volumes = tuple(_volume(shard, disk) for disk in disks if not _is_local(disk))
        snapshots = tuple(
            snapshot for volume in volumes for snapshot in _snapshots(session, shard, volume.ref.native_id)
        )
        own, cards = elastic_address(described[native_id]), secondary_interfaces(described[native_id])
        further = [address for card in cards for address in _of_card(session, shard, card)]
        kept = [*([own] if own else []), *(native_id for native_id, _ in further)]
        yield InstanceDetail(
            instance=replace(_with_local_disks(instance, disks), further_public_ips=tuple(ip for _, ip in further)),
            volumes=volumes,
            snapshots=snapshots,
            kept_addresses=tuple(
                ResourceRef(shard.cloud, shard.account, shard.region, "public_address", each) for each in kept
            ),
            protected_by=instance.protected_by,
        )


def _disks(session: AlibabaSession, shard: Shard, native_id: str) -> list[Fields]:
    """Every disk of one instance.

    DescribeInstances names no disks, so nothing else tells how many there are: hence paging by number, whose count
    holds, where by token it is said to mean nothing.
    """
    answer = session.call(shard, "ecs", "DescribeDisks", InstanceId=native_id, PageNumber=1, PageSize=_MOST_DISKS)
    with as_documented(_DISKS):
        found = structures_in(answer, "Disks.Disk", _DISKS)
        there = [disk for disk in found if text(disk, "InstanceId") == native_id or _is_shared_with(disk, native_id)]
        ids = {named(disk, "DiskId") for disk in there}
        if not (len(ids) == len(found) == whole(answer, "TotalCount")):
            message = f"{_DISKS}: {native_id} has {whole(answer, 'TotalCount')} disks, of which {len(ids)} came"
            raise TruncatedReadError(message, operation=_DISKS, code="MissingVolume")
        if any(text(disk, "Type") == "system" for disk in there):
            return there
    prove_permitted(session, shard, "ecs", "DescribeDisks")
    message = f"{_DISKS}: {native_id} came without a system disk, and every instance has one"
    raise TruncatedReadError(message, operation=_DISKS, code="MissingVolume")


def _is_shared_with(disk: Fields, native_id: str) -> bool:
    attachments = structures_in(disk, "Attachments.Attachment", _DISKS)
    return any(text(each, "InstanceId") == native_id for each in attachments)


def _is_local(disk: Fields) -> bool:
    return text(disk, "Category").startswith(_LOCAL)


def _with_local_disks(instance: Instance, disks: Sequence[Fields]) -> Instance:
    """What is attached counts, also where the type was said to have no local disks."""
    attached = sum(float(whole(disk, "Size")) for disk in disks if _is_local(disk))
    known = instance.local_disk_gib
    return instance if known is None or attached <= known else replace(instance, local_disk_gib=attached)


def _volume(shard: Shard, disk: Fields) -> Volume:
    level = text(disk, "PerformanceLevel")
    category = named(disk, "Category")
    return Volume(
        ref=ResourceRef(shard.cloud, shard.account, shard.region, "volume", named(disk, "DiskId")),
        size_gib=float(whole(disk, "Size")),
        volume_type=category if level in ("", _USUAL_LEVEL) else f"{category}:{level}",
        device=text(disk, "Device"),
        deleted_with_instance=flag(disk, "DeleteWithInstance"),
    )


def _snapshots(session: AlibabaSession, shard: Shard, disk_id: str) -> Iterator[Snapshot]:
    """Every snapshot of one disk; a copied one that names no disk is of none.

    API: ECS DescribeSnapshots, one disk a request.
    """
    volume = ResourceRef(shard.cloud, shard.account, shard.region, "volume", disk_id)
    seen: set[str] = set()
    for page in session.pages(
        shard, "ecs", "DescribeSnapshots", "Snapshots.Snapshot", DiskId=disk_id, MaxResults=_PAGE
    ):
        with as_documented(_SNAPSHOTS):
            for item in page:
                native_id = named(item, "SnapshotId")
                if item.get("SourceDiskId") in (None, ""):
                    continue
                if named(item, "SourceDiskId") != disk_id:
                    message = f"{_SNAPSHOTS}: asked about {disk_id}, answered about another disk"
                    raise TruncatedReadError(message, operation=_SNAPSHOTS, code="Contradiction")
                if native_id not in seen:
                    seen.add(native_id)
                    yield Snapshot(
                        ref=volume.sibling("snapshot", native_id),
                        volume=volume,
                        state=_SNAPSHOT_STATES.get(text(item, "Status"), SnapshotState.PENDING),
                        started_at=needed_time(item, "CreationTime"),
                        decision_id=tags_of(item, _SNAPSHOTS).get(DECISION_TAG, ""),
                    )


def _of_card(session: AlibabaSession, shard: Shard, interface: str) -> Iterator[tuple[str, str]]:
    """Elastic addresses of one further interface, each with its id."""
    answer = session.call(
        shard,
        "vpc",
        "DescribeEipAddresses",
        AssociatedInstanceType=_CARD,
        AssociatedInstanceId=interface,
        PageSize=_PAGE,
    )
    with as_documented(_ADDRESSES):
        found = structures_in(answer, "EipAddresses.EipAddress", _ADDRESSES)
        if len(found) != whole(answer, "TotalCount"):
            message = f"{_ADDRESSES}: {whole(answer, 'TotalCount')} addresses, of which {len(found)} came"
            raise TruncatedReadError(message, operation=_ADDRESSES, code="MissingAddress")
        yield from [(named(address, "AllocationId"), named(address, "IpAddress")) for address in found]


def addresses_of_cards(
    session: AlibabaSession, shard: Shard, cards: Mapping[str, Iterable[str]]
) -> Mapping[str, tuple[str, ...]]:
    """By instance, the elastic addresses of its further interfaces, of which DescribeInstances tells the ids alone.

    Raises:
        ProviderError: they were not read to their end.

    API: VPC DescribeEipAddresses, every address of the region, 100 a page.
    """
    by_card: dict[str, list[str]] = {}
    for page in numbered_pages(session, shard, _ADDRESSES, "EipAddresses.EipAddress", "AllocationId", _PAGE):
        with as_documented(_ADDRESSES):
            for address in page.values():
                if text(address, "InstanceType") == _CARD:
                    by_card.setdefault(named(address, "InstanceId"), []).append(named(address, "IpAddress"))
    return {
        native_id: tuple(ip for card in interfaces for ip in by_card.get(card, ()))
        for native_id, interfaces in cards.items()
    }
