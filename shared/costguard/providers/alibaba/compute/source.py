"""The inventory of Alibaba Cloud: accounts and regions, instances with accelerators, and what hangs on each.

Permissions: those of `Feature.INVENTORY` in permissions.py, and `MEMBERS` and `ORGANISATION` where used. A list that
is not permitted may come back empty, without an error: an empty one counts only after a dry run of the same call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from costguard.domain.errors import ProviderError, TruncatedReadError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Instance, InstanceDetail, Snapshot, SnapshotState, Volume
from costguard.ports import Discovery, Target
from costguard.providers.alibaba.compute.instance_types import CATALOGUE, AlibabaTypes, may_carry_accelerator
from costguard.providers.alibaba.compute.instances import (
    API,
    METADATA,
    elastic_address,
    secondary_interfaces,
    to_instance,
)
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.products import json_list, needed_time, structures_in, tags_of
from costguard.providers.alibaba.core.session import AlibabaSession, discover, numbered_pages, prove_permitted
from costguard.providers.kit.compute.source import DECISION_TAG, CloudInventory, Described, Reading, by_id, type_in
from costguard.providers.kit.core.calls import listed
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named, text, whole

_PAGE = 100  # the most DescribeInstances gives, and the most ids it takes
_LIST = "Instances.Instance"
_DISKS, _SNAPSHOTS, _ADDRESSES = "ecs:DescribeDisks", "ecs:DescribeSnapshots", "vpc:DescribeEipAddresses"
_COPIES = "Snapshots.Snapshot"
_FEW = 3  # so many are asked about one by one, whatever else is in their region
_DISKS_BY_TOKEN = 500  # the most that DescribeDisks gives by token
_MOST_DISKS = 100  # of a page by number; an instance has 65 at most
_SNAPSHOT_STATES = {"accomplished": SnapshotState.COMPLETED, "failed": SnapshotState.FAILED}
_LOCAL = ("local_", "ephemeral", "elastic_ephemeral")
"""Disks that a stop or a release destroys, and that cannot be copied."""

_USUAL_LEVEL = "PL1"
_CARD = "NetworkInterface"  # what an address may be bound to, in the vendor's words


class AlibabaInventory(CloudInventory[AlibabaSession]):
    """For one site of Alibaba Cloud. What is released is not listed any more.

    An empty answer is a gap too, unless a dry run says that asking is permitted; so it is where a closer look misses
    an instance.

    API: ECS DescribeInstances, 100 a page; DescribeInstanceTypes once for each type a process meets; VPC
    DescribeEipAddresses where one has further network interfaces. For details DescribeDisks and DescribeSnapshots,
    which take one instance or disk a request and no list of them: of several, every disk (500 a page) and copy (100) of
    the region where those are fewer requests, else one after another. DescribeEipAddresses once a further interface.
    """

    api = API
    undescribed = "ecs:DescribeInstanceTypes: {} is not described"
    _gap = staticmethod(errors.gap)

    def __init__(self, session: AlibabaSession, *, catalogue: AlibabaTypes = CATALOGUE) -> None:
        super().__init__(session, catalogue)
        self._facts = catalogue.facts

    def discover(self, target: Target) -> Discovery:
        """Accounts and regions of `target`; see `session.discover`."""
        return discover(self._session, target)

    def _pages(self, shard: Shard) -> Iterator[Sequence[Any]]:
        return self._session.pages(
            shard, "ecs", "DescribeInstances", _LIST, MaxResults=_PAGE, AdditionalAttributes=METADATA
        )

    def _may_carry(self, item: Fields) -> bool:
        return may_carry_accelerator(item)

    def _candidates(self, described: Iterable[Fields]) -> Sequence[Fields]:
        return [item for item in described if may_carry_accelerator(item)]

    def _made(self, shard: Shard, item: Fields) -> Instance | None:
        facts = self._facts(type_in(item))
        if facts.accelerator is None:
            return None
        return to_instance(shard, item, facts.accelerator, facts.local_disk_gib)

    def _note(self, item: Fields) -> Sequence[str]:
        return secondary_interfaces(item)

    def _completed(self, reading: Reading) -> Sequence[Instance]:
        found = self._with_further_addresses(reading)
        if not reading.seen and not reading.gaps:
            try:
                prove_permitted(self._session, reading.shard, "ecs", "DescribeInstances")
            except ProviderError as err:
                reading.gaps.append(errors.unproven(reading.shard, err))
        return found

    def _with_further_addresses(self, reading: Reading) -> Sequence[Instance]:
        """Where they cannot be read, it is only the network of their instances that is unmeasured."""
        if not reading.notes:
            return reading.found
        addresses: Mapping[str, tuple[str, ...] | None]
        try:
            addresses = self._addresses_of_cards(reading.shard, reading.notes)
        except ProviderError as err:
            reading.gaps.append(errors.gap(reading.shard, "details", err))
            addresses = dict.fromkeys(reading.notes)
        return [
            replace(each, further_public_ips=addresses[each.ref.native_id]) if each.ref.native_id in addresses else each
            for each in reading.found
        ]

    def _described(self, shard: Shard, ids: Sequence[str]) -> Described:
        # an empty list of ids would be a filter that nothing passes: `json_list` refuses to write one
        found = listed(
            self._session,
            shard,
            API,
            _LIST,
            InstanceIds=json_list(ids),
            MaxResults=_PAGE,
            AdditionalAttributes=METADATA,
        )
        described = by_id(API, found, ids)
        if len(described) < len(ids):
            prove_permitted(self._session, shard, "ecs", "DescribeInstances")
        return described

    def _attached(
        self, shard: Shard, instances: Sequence[Instance], described: Mapping[str, Fields]
    ) -> Iterator[InstanceDetail]:
        disks_of = self._disks_of(shard, [instance.ref.native_id for instance in instances])
        volumes_of = {
            native_id: tuple(_volume(shard, disk) for disk in disks if not _is_local(disk))
            for native_id, disks in disks_of.items()
        }
        copies_of = self._copies_of(shard, sorted({each.ref.native_id for own in volumes_of.values() for each in own}))
        for instance in instances:
            native_id = instance.ref.native_id
            disks, volumes = disks_of[native_id], volumes_of[native_id]
            snapshots = tuple(copy for volume in volumes for copy in copies_of[volume.ref.native_id])
            own, cards = elastic_address(described[native_id]), secondary_interfaces(described[native_id])
            further = [address for card in cards for address in self._of_card(shard, card)]
            kept = [*([own] if own else []), *(address_id for address_id, _ in further)]
            yield InstanceDetail(
                instance=replace(_with_local_disks(instance, disks), further_public_ips=tuple(ip for _, ip in further)),
                volumes=volumes,
                snapshots=snapshots,
                kept_addresses=tuple(
                    ResourceRef(shard.cloud, shard.account, shard.region, "public_address", each) for each in kept
                ),
                protected_by=instance.protected_by,
            )

    def _disks_of(self, shard: Shard, ids: Sequence[str]) -> Mapping[str, Sequence[Fields]]:
        """Every disk of each instance; one whose system disk the region's list lacks is asked about by itself."""
        whole = self._whole_region(shard, _DISKS, "Disks.Disk", "DiskId", _DISKS_BY_TOKEN, len(ids))
        found: dict[str, list[Fields]] = {native_id: [] for native_id in ids}
        with as_documented(_DISKS):
            for disk in whole or ():
                for native_id in _attached_to(disk) & found.keys():
                    found[native_id].append(disk)
        return {
            native_id: disks if _has_system(disks) else self._disks(shard, native_id)
            for native_id, disks in found.items()
        }

    def _copies_of(self, shard: Shard, ids: Sequence[str]) -> Mapping[str, Sequence[Snapshot]]:
        """Every snapshot of each disk."""
        whole = self._whole_region(shard, _SNAPSHOTS, _COPIES, "SnapshotId", _PAGE, len(ids))
        if whole is None:
            return {disk_id: list(self._snapshots(shard, disk_id)) for disk_id in ids}
        found: dict[str, list[Snapshot]] = {disk_id: [] for disk_id in ids}
        with as_documented(_SNAPSHOTS):
            for item in whole:
                disk_id = "" if item.get("SourceDiskId") is None else text(item, "SourceDiskId")
                if disk_id in found:
                    found[disk_id].append(_snapshot(shard, disk_id, item))
        return found

    def _whole_region(
        self, shard: Shard, api: str, result_key: str, named_by: str, size: int, apart: int
    ) -> Sequence[Fields] | None:
        """All that `api` lists in the region; None where that takes as many requests as to ask `apart` times.

        None also where not as many came as there are: what is asked about one by one moves less. Pages by number shift
        while they are read, so beyond the first, which tells how many there are, it is read by token.
        """
        if apart <= _FEW:
            return None
        answer = self._session.call(shard, "ecs", api.partition(":")[2], PageNumber=1, PageSize=_PAGE)
        with as_documented(api):
            found, total = structures_in(answer, result_key, api), whole(answer, "TotalCount")
            if total > _PAGE:
                if 1 - (-total // size) >= apart:
                    return None
                found = list(listed(self._session, shard, api, result_key, MaxResults=size))
            names = {named(item, named_by) for item in found}
        return found if len(names) == len(found) == total else None

    def _disks(self, shard: Shard, native_id: str) -> list[Fields]:
        """Every disk of one instance.

        DescribeInstances names no disks, so nothing else tells how many there are: hence paging by number, whose count
        holds, where by token it is said to mean nothing.
        """
        answer = self._session.call(
            shard, "ecs", "DescribeDisks", InstanceId=native_id, PageNumber=1, PageSize=_MOST_DISKS
        )
        with as_documented(_DISKS):
            found = structures_in(answer, "Disks.Disk", _DISKS)
            there = [disk for disk in found if native_id in _attached_to(disk)]
            ids = {named(disk, "DiskId") for disk in there}
            if not (len(ids) == len(found) == whole(answer, "TotalCount")):
                message = f"{_DISKS}: {native_id} has {whole(answer, 'TotalCount')} disks, of which {len(ids)} came"
                raise TruncatedReadError(message, operation=_DISKS, code="MissingVolume")
            if _has_system(there):
                return there
        prove_permitted(self._session, shard, "ecs", "DescribeDisks")
        message = f"{_DISKS}: {native_id} came without a system disk, and every instance has one"
        raise TruncatedReadError(message, operation=_DISKS, code="MissingVolume")

    def _snapshots(self, shard: Shard, disk_id: str) -> Iterator[Snapshot]:
        """Every snapshot of one disk; a copied one that names no disk is of none.

        API: ECS DescribeSnapshots, one disk a request.
        """
        seen: set[str] = set()
        with as_documented(_SNAPSHOTS):
            for item in listed(self._session, shard, _SNAPSHOTS, _COPIES, DiskId=disk_id, MaxResults=_PAGE):
                native_id = named(item, "SnapshotId")
                if item.get("SourceDiskId") in (None, ""):
                    continue
                if named(item, "SourceDiskId") != disk_id:
                    message = f"{_SNAPSHOTS}: asked about {disk_id}, answered about another disk"
                    raise TruncatedReadError(message, operation=_SNAPSHOTS, code="Contradiction")
                if native_id not in seen:
                    seen.add(native_id)
                    yield _snapshot(shard, disk_id, item)

    def _of_card(self, shard: Shard, interface: str) -> Iterator[tuple[str, str]]:
        """Elastic addresses of one further interface, each with its id."""
        asked = {"AssociatedInstanceType": _CARD, "AssociatedInstanceId": interface, "PageSize": _PAGE}
        answer = self._session.call(shard, "vpc", "DescribeEipAddresses", **asked)
        with as_documented(_ADDRESSES):
            found = structures_in(answer, "EipAddresses.EipAddress", _ADDRESSES)
            if len(found) != whole(answer, "TotalCount"):
                message = f"{_ADDRESSES}: {whole(answer, 'TotalCount')} addresses, of which {len(found)} came"
                raise TruncatedReadError(message, operation=_ADDRESSES, code="MissingAddress")
            yield from [(named(address, "AllocationId"), named(address, "IpAddress")) for address in found]

    def _addresses_of_cards(self, shard: Shard, cards: Mapping[str, Iterable[str]]) -> Mapping[str, tuple[str, ...]]:
        """By instance, the elastic addresses of its further interfaces, of which DescribeInstances tells the ids alone.

        Raises:
            ProviderError: they were not read to their end.

        API: VPC DescribeEipAddresses, every address of the region, 100 a page.
        """
        by_card: dict[str, list[str]] = {}
        pages = numbered_pages(self._session, shard, _ADDRESSES, "EipAddresses.EipAddress", "AllocationId", _PAGE)
        for page in pages:
            with as_documented(_ADDRESSES):
                for address in page.values():
                    if text(address, "InstanceType") == _CARD:
                        by_card.setdefault(named(address, "InstanceId"), []).append(named(address, "IpAddress"))
        return {
            native_id: tuple(ip for card in interfaces for ip in by_card.get(card, ()))
            for native_id, interfaces in cards.items()
        }


def _attached_to(disk: Fields) -> frozenset[str]:
    """The instances that have it: a shared disk names one of them, and all in its attachments."""
    attachments = structures_in(disk, "Attachments.Attachment", _DISKS)
    return frozenset({text(disk, "InstanceId"), *(text(each, "InstanceId") for each in attachments)})


def _has_system(disks: Iterable[Fields]) -> bool:
    return any(text(disk, "Type") == "system" for disk in disks)


def _snapshot(shard: Shard, disk_id: str, item: Fields) -> Snapshot:
    volume = ResourceRef(shard.cloud, shard.account, shard.region, "volume", disk_id)
    return Snapshot(
        ref=volume.sibling("snapshot", named(item, "SnapshotId")),
        volume=volume,
        state=_SNAPSHOT_STATES.get(text(item, "Status"), SnapshotState.PENDING),
        started_at=needed_time(item, "CreationTime"),
        decision_id=tags_of(item, _SNAPSHOTS).get(DECISION_TAG, ""),
    )


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
