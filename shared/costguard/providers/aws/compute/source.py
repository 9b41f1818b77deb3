"""The inventory of AWS: accounts and regions, instances with accelerators, and a closer look at each.

Permissions: those of `Feature.INVENTORY` in permissions.py, and `MEMBERS` and `ORGANISATION` where used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from costguard.domain.errors import ProviderError, TruncatedReadError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Instance, InstanceDetail, Inventory
from costguard.ports import Discovery, Target
from costguard.providers.aws.compute.attached import read_attached, read_protections
from costguard.providers.aws.compute.commitments import with_reservations, with_spot_requests
from costguard.providers.aws.compute.instance_types import CATALOGUE, TypeCatalogue, may_carry_accelerator
from costguard.providers.aws.compute.instances import to_instance
from costguard.providers.aws.core import accounts, errors
from costguard.providers.aws.core.accounts import require_open
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.kit.compute.instances import Described, Reading, batches, by_id, known_among
from costguard.providers.kit.core.fields import as_documented, named, text

_PAGE = 1000  # the most DescribeInstances gives
_BATCH = 100  # ids in one request; AWS takes 1,000, but one unknown id fails them all
_API = "ec2:DescribeInstances"
_UNDESCRIBED = "ec2:DescribeInstanceTypes: AWS does not describe {} here"
_STATES = [{"Name": "instance-state-name", "Values": ["pending", "running", "shutting-down", "stopping", "stopped"]}]


class AwsInventory:
    """`InventorySource` for one partition of AWS."""

    def __init__(self, session: AwsSession, *, catalogue: TypeCatalogue = CATALOGUE) -> None:
        self._session = session
        self._catalogue = catalogue

    def discover(self, target: Target) -> Discovery:
        """Accounts and regions of `target`; see `accounts.discover`."""
        return accounts.discover(self._session, target)

    def read(self, shard: Shard) -> Inventory:
        """Every accelerator instance of the shard that is not terminated.

        A failure leaves what was read so far and an inventory gap.

        Raises:
            ClosedRegionError: the organisation denies everything in this region.

        API: EC2 DescribeInstances, 1,000 a page; DescribeInstanceTypes once for each type a process meets;
        DescribeSpotInstanceRequests and DescribeReservedInstances where there are instances they concern.
        """
        reading = _Pages(self._session, self._catalogue, shard)
        try:
            for page in self._session.pages(
                shard, "ec2", "DescribeInstances", "Reservations", MaxResults=_PAGE, Filters=_STATES
            ):
                with as_documented(_API):
                    reading.take(page)
        except ProviderError as err:
            if not reading.seen:
                require_open(self._session, shard, err)
            reading.gaps.append(errors.gap(shard, "inventory", err))
        found: Sequence[Instance] = reading.found
        try:
            found = with_spot_requests(self._session, shard, found, reading.spot_requests)
        except ProviderError as err:
            reading.gaps.append(errors.gap(shard, "billing", err))  # they stay one-time: never stopped
        found, gaps = with_reservations(self._session, shard, found)
        return Inventory(shard, tuple(found), (*reading.gaps, *gaps), instances_seen=reading.seen)

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        """These instances read anew, with volumes, snapshots and kept addresses; AWS lists no protections.

        Absent are those that are gone, or whose type was changed to one without accelerator. AWS lists a
        terminated one for about an hour, in that state and without volumes. Reserved Instances are not
        weighed again: which instances they cover can only be told of a whole shard.

        Raises:
            ProviderError: anything that leaves the answer incomplete.

        API: EC2 DescribeInstances, DescribeVolumes, DescribeSnapshots, DescribeAddresses; none once an instance.
        """
        details: dict[ResourceRef, InstanceDetail] = {}
        for shard, ids in batches(refs, _BATCH):
            with as_documented(_API):
                for detail in self._details(shard, ids):
                    details[detail.instance.ref] = detail
        return details

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        """Those of `wanted` that are set; see `attached.read_protections`."""
        return read_protections(self._session, ref.shard, ref.native_id, wanted)

    def _details(self, shard: Shard, ids: Sequence[str]) -> Iterator[InstanceDetail]:
        described = known_among(ids, lambda some: self._describe(shard, some))
        self._catalogue.learn(self._session, shard, map(_type, described.values()))
        instances: list[Instance] = []
        for item in described.values():
            facts = self._catalogue.facts(_type(item))
            if facts.accelerator is not None:
                instances.append(to_instance(shard, item, facts.accelerator, facts.local_disk_gib))
        found = with_spot_requests(self._session, shard, instances, _spot_requests(described.values()))
        yield from read_attached(self._session, shard, found, described)

    def _describe(self, shard: Shard, ids: Sequence[str]) -> Described:
        pages = self._session.pages(shard, "ec2", "DescribeInstances", "Reservations", InstanceIds=list(ids))
        with as_documented(_API):
            return by_id(_API, (item for page in pages for item in _instances(page)), ids)


class _Pages(Reading):
    """One pass over the pages of a shard; keeps only instances with accelerators."""

    def __init__(self, session: AwsSession, catalogue: TypeCatalogue, shard: Shard) -> None:
        super().__init__(shard, _API, gap=errors.gap, undescribed=_UNDESCRIBED)
        self._session = session
        self._catalogue = catalogue
        self.spot_requests: dict[str, str] = {}
        self.seen = 0

    def take(self, reservations: Sequence[Mapping[str, Any]]) -> None:
        """One page: count all, keep those that carry an accelerator.

        Raises:
            TruncatedReadError: a reservation without its instances, or an instance described in two ways.
        """
        candidates = []
        for item in _instances(reservations):
            self.seen += 1
            if may_carry_accelerator(_type(item)):
                candidates.append(item)
        types = {_type(item) for item in candidates}
        self.learn(lambda: self._catalogue.learn(self._session, self.shard, types))
        for item in candidates:
            facts = self._catalogue.facts(_type(item))
            if facts.accelerator is not None:
                self.keep(to_instance(self.shard, item, facts.accelerator, facts.local_disk_gib))
                self.spot_requests.update(_spot_requests([item]))


def _type(item: Mapping[str, Any]) -> str:
    return text(item, "InstanceType")


def _instances(reservations: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for reservation in reservations:
        instances = reservation.get("Instances")
        if not isinstance(instances, list):
            message = f"{_API}: a reservation came without its instances: not as documented"
            raise TruncatedReadError(message, operation=_API, code="MissingResult")
        yield from instances


def _spot_requests(described: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    requests = ((named(item, "InstanceId"), text(item, "SpotInstanceRequestId")) for item in described)
    return {native_id: request for native_id, request in requests if request}
