"""The inventory of Alibaba Cloud: accounts and regions, instances with accelerators, and a closer look at each.

Permissions: those of `Feature.INVENTORY` in permissions.py, and `MEMBERS` and `ORGANISATION` where used. A list that
is not permitted may come back empty, without an error: an empty one counts only after a dry run of the same call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from costguard.domain.errors import ProviderError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Instance, InstanceDetail, Inventory
from costguard.ports import Discovery, Target
from costguard.providers.alibaba.compute.attached import addresses_of_cards, read_attached
from costguard.providers.alibaba.compute.instance_types import CATALOGUE, TypeCatalogue, may_carry_accelerator
from costguard.providers.alibaba.compute.instances import API, METADATA, secondary_interfaces, to_instance
from costguard.providers.alibaba.core import accounts, errors
from costguard.providers.alibaba.core.fields import json_list
from costguard.providers.alibaba.core.paging import prove_permitted
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.compute.instances import Described, Reading, batches, by_id
from costguard.providers.kit.core.fields import Fields, as_documented, named, text

_PAGE = 100  # the most DescribeInstances gives, and the most ids it takes
_LIST = "Instances.Instance"
_UNDESCRIBED = "ecs:DescribeInstanceTypes: {} is not described"


class AlibabaInventory:
    """`InventorySource` for one site of Alibaba Cloud."""

    def __init__(self, session: AlibabaSession, *, catalogue: TypeCatalogue = CATALOGUE) -> None:
        self._session = session
        self._catalogue = catalogue

    def discover(self, target: Target) -> Discovery:
        """Accounts and regions of `target`; see `accounts.discover`."""
        return accounts.discover(self._session, target)

    def read(self, shard: Shard) -> Inventory:
        """Every accelerator instance of the shard; what is released is not listed any more.

        A failure leaves what was read so far and an inventory gap. An empty answer is one too, unless a dry run says
        that asking is permitted.

        API: ECS DescribeInstances, 100 a page; DescribeInstanceTypes once for each type a process meets; VPC
        DescribeEipAddresses where one has further network interfaces.
        """
        reading = _Pages(self._session, self._catalogue, shard)
        try:
            for page in self._session.pages(
                shard, "ecs", "DescribeInstances", _LIST, MaxResults=_PAGE, AdditionalAttributes=METADATA
            ):
                with as_documented(API):
                    reading.take(page)
        except ProviderError as err:
            reading.gaps.append(errors.gap(shard, "inventory", err))
        found = _with_further_addresses(self._session, shard, reading)
        if not reading.seen and not reading.gaps:
            try:
                prove_permitted(self._session, shard, "ecs", "DescribeInstances")
            except ProviderError as err:
                reading.gaps.append(errors.unproven(shard, err))
        return Inventory(shard, tuple(found), tuple(reading.gaps), instances_seen=reading.seen)

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        """These instances read anew, with volumes, snapshots, kept addresses and protections.

        Absent are those that are gone, or whose type was changed to one without accelerator; where one is absent, a
        dry run has said that asking is permitted.

        Raises:
            ProviderError: anything that leaves the answer incomplete.

        API: ECS DescribeInstances, DescribeDisks once an instance, DescribeSnapshots once a disk; VPC
        DescribeEipAddresses once for each further network interface.
        """
        details: dict[ResourceRef, InstanceDetail] = {}
        for shard, ids in batches(refs, _PAGE):
            with as_documented(API):
                for detail in self._details(shard, ids):
                    details[detail.instance.ref] = detail
        return details

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        """None: DescribeInstances tells DeletionProtection, so `details` leaves nothing unread."""
        del ref, wanted
        return ()

    def _details(self, shard: Shard, ids: Sequence[str]) -> Iterator[InstanceDetail]:
        described = self._describe(shard, ids)
        if len(described) < len(ids):
            prove_permitted(self._session, shard, "ecs", "DescribeInstances")
        candidates = [item for item in described.values() if may_carry_accelerator(item)]
        self._catalogue.learn(self._session, shard, map(_type, candidates))
        instances: list[Instance] = []
        for item in candidates:
            facts = self._catalogue.facts(_type(item))
            if facts.accelerator is not None:
                instances.append(to_instance(shard, item, facts.accelerator, facts.local_disk_gib))
        yield from read_attached(self._session, shard, instances, described)

    def _describe(self, shard: Shard, ids: Sequence[str]) -> Described:
        # an empty list of ids would be a filter that nothing passes: `json_list` refuses to write one
        pages = self._session.pages(
            shard,
            "ecs",
            "DescribeInstances",
            _LIST,
            InstanceIds=json_list(ids),
            MaxResults=_PAGE,
            AdditionalAttributes=METADATA,
        )
        return by_id(API, (item for page in pages for item in page), ids)


class _Pages(Reading):
    """One pass over the pages of a shard; keeps only instances with accelerators."""

    def __init__(self, session: AlibabaSession, catalogue: TypeCatalogue, shard: Shard) -> None:
        super().__init__(shard, API, gap=errors.gap, undescribed=_UNDESCRIBED)
        self._session = session
        self._catalogue = catalogue
        self.seen = 0
        self.cards: dict[str, list[str]] = {}  # further network interfaces, by instance

    def take(self, page: Sequence[Fields]) -> None:
        """One page: count all, keep those that carry an accelerator.

        Raises:
            TruncatedReadError: an instance described in two ways.
        """
        self.seen += len(page)
        candidates = [item for item in page if may_carry_accelerator(item)]
        types = {_type(item) for item in candidates}
        self.learn(lambda: self._catalogue.learn(self._session, self.shard, types))
        for item in candidates:
            facts = self._catalogue.facts(_type(item))
            if facts.accelerator is not None:
                self.keep(to_instance(self.shard, item, facts.accelerator, facts.local_disk_gib))
                if cards := secondary_interfaces(item):
                    self.cards[named(item, "InstanceId")] = cards


def _with_further_addresses(session: AlibabaSession, shard: Shard, reading: _Pages) -> Sequence[Instance]:
    """Where they cannot be read, it is only the network of their instances that is unmeasured."""
    if not reading.cards:
        return reading.found
    addresses: Mapping[str, tuple[str, ...] | None]
    try:
        addresses = addresses_of_cards(session, shard, reading.cards)
    except ProviderError as err:
        reading.gaps.append(errors.gap(shard, "details", err))
        addresses = dict.fromkeys(reading.cards)
    return [
        replace(each, further_public_ips=addresses[each.ref.native_id]) if each.ref.native_id in addresses else each
        for each in reading.found
    ]


def _type(item: Fields) -> str:
    return text(item, "InstanceType")
