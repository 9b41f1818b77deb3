"""The inventory of Alibaba Cloud: accounts and regions, instances with accelerators, and a closer look at each.

Permissions: those of `Feature.INVENTORY` in permissions.py, and `MEMBERS` and `ORGANISATION` where used. A list that
is not permitted may come back empty, without an error: an empty one counts only after a dry run of the same call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from costguard.domain.errors import ProviderError, TruncatedReadError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind, Instance, InstanceDetail, Inventory
from costguard.ports import Discovery, Target
from costguard.providers.alibaba import accounts, errors
from costguard.providers.alibaba.attached import read_attached
from costguard.providers.alibaba.forms import json_list
from costguard.providers.alibaba.instance_types import CATALOGUE, TypeCatalogue, may_carry_accelerator
from costguard.providers.alibaba.instances import API, to_instance
from costguard.providers.alibaba.proof import prove_permitted
from costguard.providers.alibaba.session import AlibabaSession
from costguard.providers.documented import Fields, as_documented, named, text
from costguard.providers.redaction import without_secrets

_PAGE = 100  # the most DescribeInstances gives, and the most ids it takes
_LIST = "Instances.Instance"


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

        API: ECS DescribeInstances, 100 a page; DescribeInstanceTypes once for each type a process meets.
        """
        reading = _Reading(self._session, self._catalogue, shard)
        try:
            for page in self._session.pages(shard, "ecs", "DescribeInstances", _LIST, MaxResults=_PAGE):
                with as_documented(API):
                    reading.take(page)
        except ProviderError as err:
            reading.gaps.append(errors.gap(shard, "inventory", err))
        if not reading.seen and not reading.gaps:
            try:
                prove_permitted(self._session, shard, "ecs", "DescribeInstances")
            except ProviderError as err:
                reading.gaps.append(errors.unproven(shard, err))
        return Inventory(shard, tuple(reading.found), tuple(reading.gaps), instances_seen=reading.seen)

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
        for shard in sorted({ref.shard for ref in refs}):
            ids = sorted({ref.native_id for ref in refs if ref.shard == shard})
            for start in range(0, len(ids), _PAGE):
                with as_documented(API):
                    for detail in self._details(shard, ids[start : start + _PAGE]):
                        details[detail.instance.ref] = detail
        return details

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

    def _describe(self, shard: Shard, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        # an empty list of ids would be a filter that nothing passes: `json_list` refuses to write one
        pages = self._session.pages(
            shard, "ecs", "DescribeInstances", _LIST, InstanceIds=json_list(ids), MaxResults=_PAGE
        )
        described: dict[str, dict[str, Any]] = {}
        for item in (item for page in pages for item in page):
            if described.setdefault(named(item, "InstanceId"), item) != item:
                raise _contradiction(named(item, "InstanceId"))
        return {native_id: described[native_id] for native_id in ids if native_id in described}


class _Reading:
    """One pass over the pages of a shard; keeps only instances with accelerators."""

    def __init__(self, session: AlibabaSession, catalogue: TypeCatalogue, shard: Shard) -> None:
        self._session = session
        self._catalogue = catalogue
        self._shard = shard
        self._undescribed: set[str] = set()
        self._taken: dict[str, Instance] = {}
        self.gaps: list[Gap] = []
        self.seen = 0

    def take(self, page: Sequence[Fields]) -> None:
        """One page: count all, keep those that carry an accelerator.

        Raises:
            TruncatedReadError: an instance described in two ways.
        """
        self.seen += len(page)
        candidates = [item for item in page if may_carry_accelerator(item)]
        self._learn({_type(item) for item in candidates})
        for item in candidates:
            facts = self._catalogue.facts(_type(item))
            if facts.accelerator is not None:
                found = to_instance(self._shard, item, facts.accelerator, facts.local_disk_gib)
                if self._taken.setdefault(found.ref.native_id, found) != found:
                    raise _contradiction(found.ref.native_id)

    @property
    def found(self) -> Sequence[Instance]:
        """Each once: a page that shifts while it is read repeats some."""
        return list(self._taken.values())

    def _learn(self, types: set[str]) -> None:
        try:
            undescribed = self._catalogue.learn(self._session, self._shard, types) - self._undescribed
        except ProviderError as err:
            # shown as far as their names tell, and the shard is incomplete: nothing is done in it
            self.gaps.append(errors.gap(self._shard, "inventory", err))
            return
        if undescribed:
            self._undescribed |= undescribed
            names = ", ".join(sorted(undescribed))
            detail = f"ecs:DescribeInstanceTypes: {without_secrets(names)} is not described"
            self.gaps.append(Gap(self._shard, "types", GapKind.UNREADABLE, detail))


def _type(item: Fields) -> str:
    return text(item, "InstanceType")


def _contradiction(native_id: str) -> TruncatedReadError:
    message = f"{API}: {without_secrets(native_id)} is described twice, and differently"
    return TruncatedReadError(message, operation=API, code="Contradiction")
