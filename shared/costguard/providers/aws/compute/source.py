"""The inventory of AWS: accounts and regions, instances with accelerators, and what hangs on each.

Permissions: those of `Feature.INVENTORY` in permissions.py, and `MEMBERS` and `ORGANISATION` where used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from costguard.domain.errors import ProviderError, TruncatedReadError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import (
    Instance,
    InstanceDetail,
    InstanceState,
    Snapshot,
    SnapshotState,
    Volume,
)
from costguard.ports import Discovery, Target
from costguard.providers.aws.compute.commitments import with_reservations, with_spot_requests
from costguard.providers.aws.compute.instance_types import CATALOGUE, AwsTypes, may_carry_accelerator
from costguard.providers.aws.compute.instances import to_instance, volume_ids, volumes_deleted_with
from costguard.providers.aws.core import errors
from costguard.providers.aws.core.session import AwsSession, discover, require_open
from costguard.providers.kit.compute.source import (
    DECISION_TAG,
    CloudInventory,
    Described,
    Reading,
    batched,
    type_in,
)
from costguard.providers.kit.core.calls import listed
from costguard.providers.kit.core.fields import (
    Fields,
    as_documented,
    cut_short,
    flag,
    moment,
    named,
    part,
    parts,
    present,
    tags_of,
    text,
    whole,
)

COPIED_AT_ONCE = 128
"""The most volumes, the root volume counted, of which one CreateSnapshots makes a crash-consistent set.

EBS user guide, "Create multi-volume Amazon EBS snapshots": 127 data volumes; where one fails, the whole set does.
"""

_PAGE = 1000  # the most DescribeInstances gives
_API, _VOLUMES, _SNAPSHOTS = "ec2:DescribeInstances", "ec2:DescribeVolumes", "ec2:DescribeSnapshots"
_ADDRESSES, _ATTRIBUTE = "ec2:DescribeAddresses", "ec2:DescribeInstanceAttribute"
_STATES = [{"Name": "instance-state-name", "Values": ["pending", "running", "shutting-down", "stopping", "stopped"]}]
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


class AwsInventory(CloudInventory[AwsSession]):
    """For one partition of AWS. Terminated instances are not listed.

    AWS lists no protections. Described by id it shows a terminated instance for about an hour, in that state and
    without volumes. Reserved Instances are weighed by `read` alone: which instances they cover can only be told of a
    whole shard.

    API: EC2 DescribeInstances, 1,000 a page; DescribeInstanceTypes once for each type a process meets;
    DescribeSpotInstanceRequests and DescribeReservedInstances where there are instances they concern. For details
    DescribeVolumes, DescribeSnapshots, DescribeAddresses; none once an instance.
    """

    api = _API
    ids = _VALUES  # in one request; AWS takes 1,000, but what hangs on them is asked for by filter
    undescribed = "ec2:DescribeInstanceTypes: AWS does not describe {} here"
    _gap = staticmethod(errors.gap)

    def __init__(self, session: AwsSession, *, catalogue: AwsTypes = CATALOGUE) -> None:
        super().__init__(session, catalogue)
        self._facts = catalogue.facts

    def discover(self, target: Target) -> Discovery:
        """Accounts and regions of `target`; see `session.discover`."""
        return discover(self._session, target)

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        """Those of `wanted` that are set.

        Raises:
            NotFoundError: no such instance.
            ProviderError: one of them could not be read.

        API: EC2 DescribeInstanceAttribute, one attribute of one instance a call; the bucket of the describe calls
        without pages holds 50 and is refilled by 10 a second (EC2 API, "Request throttling for the Amazon EC2 API").
        """
        held = []
        for word, (attribute, key) in _PROTECTIONS.items():
            if word not in wanted:
                continue
            answer = self._session.call(
                ref.shard, "ec2", "DescribeInstanceAttribute", InstanceId=ref.native_id, Attribute=attribute
            )
            with as_documented(_ATTRIBUTE):
                value = part(answer, key).get("Value")
            if not isinstance(value, bool):
                message = f"{_ATTRIBUTE}: {ref.native_id}: answered without {key}: not as documented"
                raise TruncatedReadError(message, operation=_ATTRIBUTE, code="MissingResult")
            if value:
                held.append(word)
        return tuple(held)

    def _pages(self, shard: Shard) -> Iterator[Sequence[Any]]:
        return self._session.pages(shard, "ec2", "DescribeInstances", "Reservations", MaxResults=_PAGE, Filters=_STATES)

    def _items(self, page: Iterable[Any]) -> Iterator[dict[str, Any]]:
        for reservation in page:
            instances = reservation.get("Instances")
            if not isinstance(instances, list):
                raise cut_short(_API, "a reservation came without its instances: not as documented", "MissingResult")
            yield from instances

    def _may_carry(self, item: Fields) -> bool:
        return may_carry_accelerator(type_in(item))

    def _made(self, shard: Shard, item: Fields) -> Instance | None:
        facts = self._facts(type_in(item))
        if facts.accelerator is None:
            return None
        return to_instance(shard, item, facts.accelerator, facts.local_disk_gib)

    def _note(self, item: Fields) -> str:
        return text(item, "SpotInstanceRequestId")

    def _require_open(self, reading: Reading, error: ProviderError) -> None:
        if not reading.seen:
            require_open(self._session, reading.shard, error)

    def _completed(self, reading: Reading) -> Sequence[Instance]:
        found: Sequence[Instance] = reading.found
        try:
            found = with_spot_requests(self._session, reading.shard, found, reading.notes)
        except ProviderError as err:
            reading.gaps.append(errors.gap(reading.shard, "billing", err))  # they stay one-time: never stopped
        found, gaps = with_reservations(self._session, reading.shard, found)
        reading.gaps += gaps
        return found

    def _described(self, shard: Shard, ids: Sequence[str]) -> Described:
        return self._known(shard, ids, "Reservations")

    def _attached(
        self, shard: Shard, instances: Sequence[Instance], described: Mapping[str, Fields]
    ) -> Iterator[InstanceDetail]:
        requests = {one.ref.native_id: self._note(described[one.ref.native_id]) for one in instances}
        found = with_spot_requests(
            self._session, shard, instances, {native_id: request for native_id, request in requests.items() if request}
        )
        there = [instance for instance in found if instance.state is not InstanceState.TERMINATED]
        ids = [instance.ref.native_id for instance in there]
        volumes = self._volumes(shard, {native_id: described[native_id] for native_id in ids})
        for native_id in ids:
            listed_ids = {volume.ref.native_id for volume in volumes[native_id]}
            missing = sorted(set(volume_ids(described[native_id])) - listed_ids)
            if missing:
                message = f"{_VOLUMES}: {native_id} has {', '.join(missing)} attached, which the answer leaves out"
                raise TruncatedReadError(message, operation=_VOLUMES, code="MissingVolume")
        snapshots = self._snapshots(shard, sorted({v.ref.native_id for own in volumes.values() for v in own}))
        addresses = self._addresses(shard, ids)
        for instance in found:
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

    def _volumes(self, shard: Shard, described: Mapping[str, Fields]) -> defaultdict[str, list[Volume]]:
        found: defaultdict[str, list[Volume]] = defaultdict(list)
        for batch in batched(list(described), _VALUES):
            attached = [{"Name": "attachment.instance-id", "Values": batch}]
            with as_documented(_VOLUMES):
                for item in listed(
                    self._session, shard, _VOLUMES, "Volumes", Filters=attached, MaxResults=_VOLUMES_PAGE
                ):
                    for attachment in parts(item, "Attachments"):
                        native_id = text(attachment, "InstanceId")
                        if native_id in batch:
                            volume = _volume(shard, item, attachment, described[native_id])
                            if volume not in found[native_id]:
                                found[native_id].append(volume)
        return found

    def _snapshots(self, shard: Shard, ids: Sequence[str]) -> defaultdict[str, list[Snapshot]]:
        found: defaultdict[str, list[Snapshot]] = defaultdict(list)
        for batch in batched(ids, _VALUES):
            asked = {"OwnerIds": ["self"], "Filters": [{"Name": "volume-id", "Values": batch}]}
            with as_documented(_SNAPSHOTS):
                for item in listed(self._session, shard, _SNAPSHOTS, "Snapshots", **asked, MaxResults=_SNAPSHOTS_PAGE):
                    native_id = text(item, "VolumeId")
                    if native_id == _OF_A_COPY or native_id not in batch:
                        continue
                    volume = ResourceRef(shard.cloud, shard.account, shard.region, "volume", native_id)
                    snapshot = Snapshot(
                        ref=volume.sibling("snapshot", named(item, "SnapshotId")),
                        volume=volume,
                        state=_SNAPSHOT_STATES.get(text(item, "State"), SnapshotState.PENDING),
                        started_at=present(moment(item, "StartTime"), "StartTime"),
                        decision_id=tags_of(item).get(DECISION_TAG, ""),
                    )
                    if snapshot not in found[native_id]:
                        found[native_id].append(snapshot)
        return found

    def _addresses(self, shard: Shard, ids: Sequence[str]) -> defaultdict[str, list[ResourceRef]]:
        """Elastic IPs by instance; EC2 DescribeAddresses gives one answer without pages."""
        found: defaultdict[str, list[ResourceRef]] = defaultdict(list)
        for batch in batched(ids, _VALUES):
            of_instances = [{"Name": "instance-id", "Values": batch}]
            with as_documented(_ADDRESSES):
                for item in listed(self._session, shard, _ADDRESSES, "Addresses", Filters=of_instances):
                    native_id = text(item, "AllocationId") or named(item, "PublicIp")
                    found[text(item, "InstanceId")].append(
                        ResourceRef(shard.cloud, shard.account, shard.region, "public_address", native_id)
                    )
        return found


def _volume(shard: Shard, item: Fields, attachment: Fields, instance: Fields) -> Volume:
    native_id = named(item, "VolumeId")
    return Volume(
        ref=ResourceRef(shard.cloud, shard.account, shard.region, "volume", native_id),
        size_gib=float(whole(item, "Size")),
        volume_type=text(item, "VolumeType"),
        device=text(attachment, "Device"),
        deleted_with_instance=flag(attachment, "DeleteOnTermination") or native_id in volumes_deleted_with(instance),
    )
