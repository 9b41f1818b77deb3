"""The inventory of Tencent Cloud: accounts and regions, instances with accelerators, and a closer look at each.

Permissions: those of `Feature.INVENTORY` in permissions.py, and `MEMBERS` and `ORGANISATION` where used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from costguard.domain.errors import ProviderError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, Instance, InstanceDetail, Inventory, ManagedBy
from costguard.ports import Discovery, Target
from costguard.providers.kit.compute.instances import Described, Reading, batches, by_id, known_among
from costguard.providers.kit.core.fields import Fields, as_documented, named, text
from costguard.providers.tencent.compute.attached import kept_addresses, read_attached, with_kept_address
from costguard.providers.tencent.compute.instance_types import (
    CATALOGUE,
    TypeCatalogue,
    accelerator_of,
    local_disk_gib,
    may_carry_accelerator,
)
from costguard.providers.tencent.compute.instances import to_instance
from costguard.providers.tencent.compute.managed import read_memberships
from costguard.providers.tencent.core import accounts, errors
from costguard.providers.tencent.core.session import TencentSession

_API = "cvm:DescribeInstances"
_UNDESCRIBED = "cvm:DescribeInstanceTypeConfigs: Tencent does not describe {} here"
_BATCH = 100  # ids in one request


class TencentInventory:
    """`InventorySource` for one site of Tencent Cloud."""

    def __init__(self, session: TencentSession, *, catalogue: TypeCatalogue = CATALOGUE) -> None:
        self._session = session
        self._catalogue = catalogue

    def discover(self, target: Target) -> Discovery:
        """Accounts and regions of `target`; see `accounts.discover`."""
        return accounts.discover(self._session, target)

    def read(self, shard: Shard) -> Inventory:
        """Every accelerator instance of the shard, those in the recycle bin included.

        A failure leaves what was read so far and an inventory gap. So does a list of scaling groups or clusters
        that cannot be read: whose machines these are would be unknown.

        API: CVM DescribeInstances, 100 a page and no filter by GPU; DescribeZoneInstanceConfigInfos once for each
        type a process meets; where there are accelerators, AS DescribeAutoScalingInstances, TKE DescribeClusters
        and DescribeClusterInstances, and VPC DescribeAddresses where some have a public address.
        """
        reading = _Pages(self._session, self._catalogue, shard)
        try:
            for page in self._session.pages(shard, "cvm", "DescribeInstances", "InstanceSet"):
                with as_documented(_API):
                    reading.take(page)
        except ProviderError as err:
            reading.gaps.append(errors.gap(shard, "inventory", err))
        found = reading.found
        if found:
            found = self._with_keepers(shard, found, reading.gaps)
            found = self._with_addresses(shard, found, reading.gaps)
        return Inventory(shard, tuple(found), tuple(reading.gaps), instances_seen=reading.seen)

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        """These instances read anew, with disks, snapshots, kept addresses and protections.

        Absent are those that are gone, or whose type was changed to one without accelerator.

        Raises:
            ProviderError: anything that leaves the answer incomplete.

        API: CVM DescribeInstances by up to 100 ids, CBS DescribeDisks and DescribeSnapshots, VPC DescribeAddresses,
        and the lists of scaling groups and clusters.
        """
        details: dict[ResourceRef, InstanceDetail] = {}
        for shard, ids in batches(refs, _BATCH):
            for detail in self._details(shard, ids):
                details[detail.instance.ref] = detail
        return details

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        """None: DescribeInstances tells DisableApiTermination, so `details` leaves nothing unread."""
        del ref, wanted
        return ()

    def _details(self, shard: Shard, ids: Sequence[str]) -> Iterator[InstanceDetail]:
        # ids nobody knows are no error, they are not there; but some are refused for their form
        described = known_among(ids, lambda some: self._describe(shard, some))
        if not described:
            return
        with as_documented(_API):
            types = {text(item, "InstanceType") for item in described.values()}
        self._catalogue.learn(self._session, shard, types)
        instances: list[Instance] = []
        with as_documented(_API):
            for item in described.values():
                made = _made(self._catalogue, shard, item)
                if made is not None:
                    instances.append(made)
        if instances:
            kept = _kept(instances, read_memberships(self._session, shard))
            yield from read_attached(self._session, shard, kept, described)

    def _describe(self, shard: Shard, ids: Sequence[str]) -> Described:
        pages = self._session.pages(shard, "cvm", "DescribeInstances", "InstanceSet", InstanceIds=list(ids))
        with as_documented(_API):
            return by_id(_API, (item for page in pages for item in page), ids)

    def _with_keepers(self, shard: Shard, found: Sequence[Instance], gaps: list[Gap]) -> Sequence[Instance]:
        try:
            return _kept(found, read_memberships(self._session, shard))
        except ProviderError as err:
            gaps.append(errors.gap(shard, "inventory", err))
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
        return [with_kept_address(instance, addresses) for instance in found]


class _Pages(Reading):
    """One pass over the pages of a shard; keeps only instances with accelerators."""

    def __init__(self, session: TencentSession, catalogue: TypeCatalogue, shard: Shard) -> None:
        super().__init__(shard, _API, gap=errors.gap, undescribed=_UNDESCRIBED)
        self._session = session
        self._catalogue = catalogue
        self._ids: set[str] = set()

    @property
    def seen(self) -> int:
        """How many instances the cloud listed, each once: a page that shifts while it is read repeats some."""
        return len(self._ids)

    def take(self, page: Sequence[Fields]) -> None:
        """One page: count all, keep those that carry an accelerator.

        Raises:
            TruncatedReadError: an instance described in two ways.
        """
        self._ids.update(named(item, "InstanceId") for item in page)
        candidates = [item for item in page if "GPUInfo" in item or may_carry_accelerator(text(item, "InstanceType"))]
        types = {text(item, "InstanceType") for item in candidates}
        self.learn(lambda: self._catalogue.learn(self._session, self.shard, types))
        for item in candidates:
            made = _made(self._catalogue, self.shard, item)
            if made is not None:
                self.keep(made)


def _made(catalogue: TypeCatalogue, shard: Shard, item: Fields) -> Instance | None:
    facts = catalogue.facts(text(item, "InstanceType"))
    accelerator = accelerator_of(item, facts)
    return None if accelerator is None else to_instance(shard, item, accelerator, local_disk_gib(item, facts))


def _kept(instances: Sequence[Instance], memberships: Mapping[str, ManagedBy]) -> list[Instance]:
    """Each with its keeper: what it gives away itself, or who lists it as its own."""
    return [
        instance
        if instance.managed_by is not None or instance.ref.native_id not in memberships
        else replace(instance, managed_by=memberships[instance.ref.native_id])
        for instance in instances
    ]
