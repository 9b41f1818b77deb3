"""The inventory of Tencent Cloud: accounts and regions, instances with accelerators, and what hangs on each.

Permissions: those of `Feature.INVENTORY` in permissions.py, and `MEMBERS` and `ORGANISATION` where used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from costguard.domain.errors import ProviderError, TruncatedReadError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import (
    Gap,
    Instance,
    InstanceDetail,
    ManagedBy,
    Snapshot,
    SnapshotState,
    Volume,
)
from costguard.ports import Discovery, Target
from costguard.providers.kit.compute.source import (
    DECISION_TAG,
    CloudInventory,
    Described,
    Reading,
    batched,
    type_in,
)
from costguard.providers.kit.core.calls import Lists, Reads, listed
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named, present, text, whole
from costguard.providers.tencent.compute.instance_types import (
    CATALOGUE,
    TencentTypes,
    accelerator_of,
    local_disk_gib,
    may_carry_accelerator,
)
from costguard.providers.tencent.compute.instances import (
    TERMINATION_PROTECTION,
    attached_disk_ids,
    read_memberships,
    to_instance,
)
from costguard.providers.tencent.core import errors
from costguard.providers.tencent.core.products import moment, tags_of, told
from costguard.providers.tencent.core.session import TencentSession, discover

DISKS, SNAPSHOTS, ADDRESSES = "cbs:DescribeDisks", "cbs:DescribeSnapshots", "vpc:DescribeAddresses"
_API = "cvm:DescribeInstances"
_IDS = 100  # ids in one request
_PAGE = 100  # the most that lists of the CBS give: their API pages, `Limit`
_VALUES = 5  # values of one filter: CVM's limit; CBS names none of its own
_ADDRESS_VALUES = 100  # the same of DescribeAddresses
_BOUND = frozenset({"BIND", "BINDING"})
"""AddressStatus counts, not InstanceId: an unbound address was seen with the machine it had been bound to."""

Addresses = Mapping[str, Sequence[tuple[ResourceRef, str]]]
"""Elastic addresses by the id of their instance, each with the address that it stands for."""


class TencentInventory(CloudInventory[TencentSession]):
    """For one site of Tencent Cloud. Instances in the recycle bin are listed.

    A list of scaling groups or clusters that cannot be read is an inventory gap too: whose machines these are would be
    unknown.

    API: CVM DescribeInstances, 100 a page and no filter by GPU; DescribeZoneInstanceConfigInfos once for each type a
    process meets; where there are accelerators, AS DescribeAutoScalingInstances, TKE DescribeClusters and
    DescribeClusterInstances, and VPC DescribeAddresses where some have a public address. For details DescribeInstances
    by up to 100 ids, CBS DescribeDisks and DescribeSnapshots by filters of 5 values or, where those are fewer requests,
    all of the region by 100 a page, VPC DescribeAddresses, and the same lists.
    """

    api = _API
    undescribed = "cvm:DescribeInstanceTypeConfigs: Tencent does not describe {} here"
    _gap = staticmethod(errors.gap)

    def __init__(self, session: TencentSession, *, catalogue: TencentTypes = CATALOGUE) -> None:
        super().__init__(session, catalogue)
        self._facts = catalogue.known

    def discover(self, target: Target) -> Discovery:
        """Accounts and regions of `target`; see `session.discover`."""
        return discover(self._session, target)

    def _pages(self, shard: Shard) -> Iterator[Sequence[Any]]:
        return self._session.pages(shard, "cvm", "DescribeInstances", "InstanceSet")

    def _count(self, reading: Reading, items: Sequence[Fields]) -> int:
        """Each once: a page that shifts while it is read repeats some."""
        reading.ids.update(named(item, "InstanceId") for item in items)
        return len(reading.ids)

    def _may_carry(self, item: Fields) -> bool:
        return "GPUInfo" in item or may_carry_accelerator(type_in(item))

    def _made(self, shard: Shard, item: Fields) -> Instance | None:
        facts = self._facts(type_in(item))
        accelerator = accelerator_of(item, facts)
        return None if accelerator is None else to_instance(shard, item, accelerator, local_disk_gib(item, facts))

    def _completed(self, reading: Reading) -> Sequence[Instance]:
        found = reading.found
        if found:
            try:
                found = _kept(found, read_memberships(self._session, reading.shard))
            except ProviderError as err:
                reading.gaps.append(errors.gap(reading.shard, "inventory", err))
            found = self._with_addresses(reading.shard, found, reading.gaps)
        return found

    def _with_addresses(self, shard: Shard, found: Sequence[Instance], gaps: list[Gap]) -> Sequence[Instance]:
        reachable = [instance.ref.native_id for instance in found if instance.public_ip]
        if not reachable:
            return found
        try:
            addresses = kept_addresses(self._session, shard, reachable)
        except ProviderError as err:
            gaps.append(errors.gap(shard, "details", err))  # every public address is then shown as one to be lost
            return found
        return [_with_kept_address(instance, addresses) for instance in found]

    def _described(self, shard: Shard, ids: Sequence[str]) -> Described:
        # ids nobody knows are no error, they are not there; but some are refused for their form
        return self._known(shard, ids, "InstanceSet")

    def _attached(
        self, shard: Shard, instances: Sequence[Instance], described: Mapping[str, Fields]
    ) -> Iterator[InstanceDetail]:
        return read_attached(self._session, shard, _kept(instances, read_memberships(self._session, shard)), described)


def _kept(instances: Sequence[Instance], memberships: Mapping[str, ManagedBy]) -> list[Instance]:
    """Each with its keeper: what it gives away itself, or who lists it as its own."""
    return [
        instance
        if instance.managed_by is not None or instance.ref.native_id not in memberships
        else replace(instance, managed_by=memberships[instance.ref.native_id])
        for instance in instances
    ]


def read_attached(
    session: Reads, shard: Shard, instances: Sequence[Instance], described: Mapping[str, Fields]
) -> Iterator[InstanceDetail]:
    """A detail for each of `instances`; `described` holds their DescribeInstances elements by id.

    Raises:
        TruncatedReadError: the instance names a disk that DescribeDisks does not: never a short list.
        ProviderError: another read failed.
    """
    ids = [instance.ref.native_id for instance in instances]
    with as_documented(_API):
        named_disks = {native_id: attached_disk_ids(described[native_id]) for native_id in ids}
    volumes = _volumes(session, shard, named_disks)
    snapshots = _snapshots(session, shard, sorted({v.ref.native_id for found in volumes.values() for v in found}))
    addresses = kept_addresses(session, shard, ids)
    for instance in instances:
        native_id = instance.ref.native_id
        own = tuple(volumes[native_id])
        kept = tuple(ref for ref, _ in addresses.get(native_id, ()))
        yield InstanceDetail(
            instance=_with_kept_address(instance, addresses),
            volumes=own,
            snapshots=tuple(snapshot for volume in own for snapshot in snapshots[volume.ref.native_id]),
            kept_addresses=kept,
            protected_by=tuple(each for each in instance.protected_by if each == TERMINATION_PROTECTION),
        )


def kept_addresses(session: Lists, shard: Shard, ids: Sequence[str]) -> Addresses:
    """Elastic addresses bound to these instances, by id, with the address each stands for.

    API: VPC DescribeAddresses, which without a filter by type leaves plain public addresses out.

    Raises:
        ProviderError: they could not be read.
    """
    found: defaultdict[str, list[tuple[ResourceRef, str]]] = defaultdict(list)
    for batch in batched(ids, _ADDRESS_VALUES):
        with as_documented(ADDRESSES):
            for item in _having(session, shard, ADDRESSES, "AddressSet", "instance-id", batch):
                known = told(item, "InstanceId", "AddressIp")
                native_id = text(known, "InstanceId")
                if native_id in batch and text(known, "AddressStatus") in _BOUND:
                    ref = _ref(shard, "public_address", named(known, "AddressId"))
                    if ref not in [each for each, _ in found[native_id]]:
                        found[native_id].append((ref, text(known, "AddressIp")))
    return found


def _with_kept_address(instance: Instance, addresses: Addresses) -> Instance:
    """`instance`, knowing whether its public address outlives a stop."""
    own = addresses.get(instance.ref.native_id, ())
    kept = bool(instance.public_ip) and any(address in {"", instance.public_ip} for _, address in own)
    return replace(instance, public_ip_is_kept=kept)


def _volumes(session: Reads, shard: Shard, named_disks: Mapping[str, frozenset[str]]) -> defaultdict[str, list[Volume]]:
    """Disks by instance: those that the CBS says are attached, and by id those that it did not name so.

    A disk attached to several machines has the list of them in InstanceIdList, which no filter is said to know.
    """
    found: defaultdict[str, list[Volume]] = defaultdict(list)
    with as_documented(DISKS):
        for item in _of_all(session, shard, DISKS, "DiskSet", "instance-id", list(named_disks)):
            _take(shard, item, named_disks, found)
    unseen = {
        disk for native_id, disks in named_disks.items() for disk in disks - {v.ref.native_id for v in found[native_id]}
    }
    for batch in batched(sorted(unseen), _IDS):
        with as_documented(DISKS):
            for item in listed(session, shard, DISKS, "DiskSet", DiskIds=batch):
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


def _snapshots(session: Reads, shard: Shard, ids: Sequence[str]) -> defaultdict[str, list[Snapshot]]:
    found: defaultdict[str, list[Snapshot]] = defaultdict(list)
    wanted = frozenset(ids)
    with as_documented(SNAPSHOTS):
        for item in _of_all(session, shard, SNAPSHOTS, "SnapshotSet", "disk-id", ids):
            ours = item.get("DiskId") in wanted  # of other disks nothing is read
            snapshot = to_snapshot(shard, item) if ours else None
            if snapshot is not None and snapshot not in found[snapshot.volume.native_id]:
                found[snapshot.volume.native_id].append(snapshot)
    return found


def _of_all(
    session: Reads, shard: Shard, operation: str, key: str, filter_name: str, values: Sequence[str]
) -> Iterator[Any]:
    """What is of any of `values`, and where that takes fewer requests all that there is in the region."""
    batches = list(batched(values, _VALUES))
    if len(batches) > 1:
        service, _, action = operation.partition(":")
        first = session.call(shard, service, action, Limit=_PAGE, Offset=0)
        items, total = first.get(key), whole(first, "TotalCount")
        if isinstance(items, list) and len(items) == total:
            yield from items
            return
        if 1 - (-total // _PAGE) < len(batches):
            yield from listed(session, shard, operation, key)
            return
    for batch in batches:
        yield from _having(session, shard, operation, key, filter_name, batch)


def to_snapshot(shard: Shard, item: Fields) -> Snapshot | None:
    """One element of DescribeSnapshots. None for a copy from another region: its disk is not here.

    Such a one says `CopyFromRemote`, and was recorded with a DiskId that is empty.
    """
    known = told(item, "DiskId", "CopyFromRemote")
    if not text(known, "DiskId") or flag(known, "CopyFromRemote"):
        return None
    volume = _ref(shard, "volume", named(known, "DiskId"))
    return Snapshot(
        ref=volume.sibling("snapshot", named(item, "SnapshotId")),
        volume=volume,
        state=_snapshot_state(item),
        started_at=present(moment(item, "CreateTime"), "CreateTime"),
        decision_id=tags_of(item, "Tags").get(DECISION_TAG, ""),
    )


def _snapshot_state(item: Fields) -> SnapshotState:
    """Complete is NORMAL at 100 %. One that the cloud will delete by itself, or has begun to, is no copy to rely on."""
    state = text(item, "SnapshotState")
    if state == "TORECYCLE" or ("IsPermanent" in item and not flag(item, "IsPermanent")):
        return SnapshotState.FAILED
    complete = state == "NORMAL" and whole(item, "Percent") == 100  # noqa: PLR2004 - per cent
    return SnapshotState.COMPLETED if complete else SnapshotState.PENDING


def _having(
    session: Lists, shard: Shard, operation: str, key: str, filter_name: str, values: Sequence[str]
) -> Iterator[Any]:
    return listed(session, shard, operation, key, Filters=[{"Name": filter_name, "Values": list(values)}])


def _ref(shard: Shard, kind: str, native_id: str) -> ResourceRef:
    return ResourceRef(shard.cloud, shard.account, shard.region, kind, native_id)
