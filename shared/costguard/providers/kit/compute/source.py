"""The inventory of every cloud: one pass over the instances of a shard, and a closer look at single ones.

A cloud says how its instances are listed and described, which of them may carry an accelerator, what one of them is
in our words, and what hangs on it.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from costguard.domain.errors import NotFoundError, ProviderError, TruncatedReadError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Accelerator, AcceleratorKind, Gap, GapKind, Instance, InstanceDetail, Inventory
from costguard.ports import Discovery, Target
from costguard.providers.kit.core.calls import Lists, listed
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.kit.core.fields import Fields, as_documented, named, text

DECISION_TAG, CASE_TAG = "costguard:decision-id", "costguard:case"
"""What marks a copy as ours."""

Described = dict[str, dict[str, Any]]
"""Instances by id, as the cloud describes them."""

FactsT = TypeVar("FactsT")
ListsT = TypeVar("ListsT", bound=Lists)


@dataclass(frozen=True, slots=True)
class TypeFacts:
    """What a type carries: `accelerator` None: none. `local_disk_gib` as in `Instance`: None unknown, 0.0 none."""

    accelerator: Accelerator | None
    local_disk_gib: float | None

    @classmethod
    def unread(cls, *, accelerated: bool) -> TypeFacts:
        """Of a type that is not described: an accelerator nobody can measure, if its name says that it has one."""
        return cls(Accelerator(AcceleratorKind.OTHER, model="", count=0) if accelerated else None, None)


class TypeFactsCache(ABC, Generic[FactsT]):
    """Facts of every type met so far, shared by all shards and threads: they never change, and are asked for once.

    `most` types are asked about at a time.
    """

    most: ClassVar[int]

    def __init__(self) -> None:
        self._known: dict[str, FactsT] = {}
        self._lock = threading.Lock()

    def learn(self, session: Lists, shard: Shard, instance_types: Iterable[str]) -> frozenset[str]:
        """Ask for what is not known yet; returns the types that nothing describes.

        Raises:
            ProviderError: the types could not be read.
        """
        wanted = sorted(set(instance_types))
        missing = [name for name in wanted if self.known(name) is None]
        for start in range(0, len(missing), self.most):
            batch = missing[start : start + self.most]
            for name, facts in self._read(session, shard, batch):
                if name in batch:
                    with self._lock:
                        self._known[name] = facts
        return frozenset(name for name in wanted if self.known(name) is None)

    def known(self, instance_type: str) -> FactsT | None:
        """What is known of a type."""
        with self._lock:
            return self._known.get(instance_type)

    @abstractmethod
    def _read(self, session: Lists, shard: Shard, names: Sequence[str]) -> Iterable[tuple[str, FactsT]]:
        """What the cloud says of these types, as far as it knows them."""


class CloudInventory(ABC, Generic[ListsT]):
    """`InventorySource` for one cloud of a provider.

    `api` lists the instances, `ids` are the most that it is asked about together, and `undescribed` says in the
    vendor's words that the types put in for `{}` are not described.
    """

    api: ClassVar[str]
    ids: ClassVar[int] = 100
    undescribed: ClassVar[str]

    def __init__(self, session: ListsT, types: TypeFactsCache[Any]) -> None:
        self._session = session
        self._types = types

    @abstractmethod
    def discover(self, target: Target) -> Discovery:
        """Accounts and regions of `target`; see `accounts.py`."""

    def read(self, shard: Shard) -> Inventory:
        """Every accelerator instance of the shard; a failure leaves what was read so far and an inventory gap.

        Raises:
            ClosedRegionError: the organisation denies everything in this region.
        """
        reading = Reading(shard, self.api, gap=self._gap, undescribed=self.undescribed)
        try:
            for page in self._pages(shard):
                with as_documented(self.api):
                    self._take(reading, page)
                del page  # before the next is read: two of AWS are 20 MB
        except ProviderError as err:
            self._require_open(reading, err)
            reading.gaps.append(self._gap(shard, "inventory", err))
        found = self._completed(reading)
        return Inventory(shard, tuple(found), tuple(reading.gaps), instances_seen=reading.seen)

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        """These instances read anew, with what hangs on them.

        Absent are those that are gone, or whose type was changed to one without accelerator.

        Raises:
            ProviderError: anything that leaves the answer incomplete.
        """
        details: dict[ResourceRef, InstanceDetail] = {}
        for shard, ids in batches(refs, self.ids):
            with as_documented(self.api):
                described = self._described(shard, ids)
                candidates = self._candidates(described.values())
                self._types.learn(self._session, shard, map(type_in, candidates))
                found = [made for item in candidates if (made := self._made(shard, item)) is not None]
                for detail in self._attached(shard, found, described) if found else ():
                    details[detail.instance.ref] = detail
        return details

    def protections(self, ref: ResourceRef, wanted: Collection[str]) -> tuple[str, ...]:
        """None where listing an instance tells its protections: then `details` leaves nothing unread."""
        del ref, wanted
        return ()

    def _take(self, reading: Reading, page: Iterable[Any]) -> None:
        """One page: count all, keep those that carry an accelerator."""
        items = list(self._items(page))
        reading.seen = self._count(reading, items)
        candidates = [item for item in items if self._may_carry(item)]
        types = set(map(type_in, candidates))
        reading.learn(lambda: self._types.learn(self._session, reading.shard, types))
        for item in candidates:
            made = self._made(reading.shard, item)
            if made is not None:
                reading.keep(made)
                if note := self._note(item):
                    reading.notes[made.ref.native_id] = note

    @abstractmethod
    def _gap(self, shard: Shard, what: str, error: ProviderError) -> Gap:
        """The gap that an error leaves."""

    @abstractmethod
    def _pages(self, shard: Shard) -> Iterator[Sequence[Any]]:
        """Every page of instances, as they are listed."""

    def _items(self, page: Iterable[Any]) -> Iterable[dict[str, Any]]:
        """The instances of one page."""
        return page

    def _count(self, reading: Reading, items: Sequence[Fields]) -> int:
        """How many were seen with these, whatever they carry."""
        return reading.seen + len(items)

    @abstractmethod
    def _may_carry(self, item: Fields) -> bool:
        """False where an instance is known to have no accelerator: its type is not asked about."""

    def _candidates(self, described: Iterable[Fields]) -> Sequence[Fields]:
        """Those whose types are asked about in a closer look."""
        return list(described)

    @abstractmethod
    def _made(self, shard: Shard, item: Fields) -> Instance | None:
        """The instance in our words, by what is known of its type; None without an accelerator."""

    def _note(self, item: Fields) -> Any:
        """What has to be asked further about an instance that is kept; nothing where it is falsy."""
        del item

    def _require_open(self, reading: Reading, error: ProviderError) -> None:
        """Ask whether the region is closed in which `error` ended the listing.

        Raises:
            ClosedRegionError: it is.
        """

    @abstractmethod
    def _completed(self, reading: Reading) -> Sequence[Instance]:
        """What was found, with what other lists tell of it; what they do not is among the gaps."""

    @abstractmethod
    def _described(self, shard: Shard, ids: Sequence[str]) -> Described:
        """Those of these instances that there are."""

    def _known(self, shard: Shard, ids: Sequence[str], result_key: str) -> Described:
        """The same, where one id that nobody knows makes the cloud refuse them all."""

        def describe(some: Sequence[str]) -> Described:
            found = listed(self._session, shard, self.api, result_key, InstanceIds=list(some))
            return by_id(self.api, self._items(found), some)

        return known_among(ids, describe)

    @abstractmethod
    def _attached(
        self, shard: Shard, instances: Sequence[Instance], described: Mapping[str, Fields]
    ) -> Iterator[InstanceDetail]:
        """A detail for each of `instances`; `described` holds them by id as the cloud describes them.

        Raises:
            TruncatedReadError: an instance has a volume that is not listed: never a short list.
            ProviderError: another read failed.
        """


def type_in(item: Fields) -> str:
    """The type of an instance that is described."""
    return text(item, "InstanceType")


class Reading:
    """What was found so far in a shard that `operation` lists page by page; `notes` are by id.

    `gap` makes a gap of an error; `undescribed` says in the vendor's words that the types put in for `{}` are not
    described.
    """

    def __init__(
        self, shard: Shard, operation: str, *, gap: Callable[[Shard, str, ProviderError], Gap], undescribed: str
    ) -> None:
        self.shard = shard
        self.seen = 0
        self.gaps: list[Gap] = []
        self.ids: set[str] = set()
        self.notes: dict[str, Any] = {}
        self._operation = operation
        self._gap = gap
        self._words = undescribed
        self._undescribed: set[str] = set()
        self._kept: dict[str, Instance] = {}

    @property
    def found(self) -> Sequence[Instance]:
        """Each once: a page that shifts while it is read repeats some."""
        return list(self._kept.values())

    def keep(self, instance: Instance) -> None:
        """One with accelerators.

        Raises:
            TruncatedReadError: it was described before, and differently.
        """
        if self._kept.setdefault(instance.ref.native_id, instance) != instance:
            raise _contradiction(self._operation, instance.ref.native_id)

    def learn(self, learn: Callable[[], AbstractSet[str]]) -> None:
        """Ask about types; `learn` returns those that nothing describes, and each is a gap once."""
        try:
            undescribed = learn() - self._undescribed
        except ProviderError as err:
            # shown as far as their own words and names tell, and the shard is incomplete: nothing is done in it
            self.gaps.append(self._gap(self.shard, "inventory", err))
            return
        if undescribed:
            self._undescribed |= undescribed
            names = without_secrets(", ".join(sorted(undescribed)))
            self.gaps.append(Gap(self.shard, "types", GapKind.UNREADABLE, self._words.format(names)))


def batches(refs: Iterable[ResourceRef], most: int) -> Iterator[tuple[Shard, Sequence[str]]]:
    """The ids of `refs`, each once and in order, shard by shard and at most `most` together."""
    by_shard: dict[Shard, set[str]] = {}
    for ref in refs:
        by_shard.setdefault(ref.shard, set()).add(ref.native_id)
    for shard, found in sorted(by_shard.items()):
        for batch in batched(sorted(found), most):
            yield shard, batch


def batched(values: Sequence[str], most: int) -> Iterator[list[str]]:
    """The values, at most `most` together."""
    for start in range(0, len(values), most):
        yield list(values[start : start + most])


def by_id(operation: str, listed: Iterable[dict[str, Any]], ids: Sequence[str]) -> Described:
    """Of what was `listed`, the instances asked about, in the order of `ids`.

    Raises:
        TruncatedReadError: one is described twice, and differently.
    """
    described: Described = {}
    for item in listed:
        if described.setdefault(named(item, "InstanceId"), item) != item:
            raise _contradiction(operation, named(item, "InstanceId"))
    return {native_id: described[native_id] for native_id in ids if native_id in described}


def known_among(ids: Sequence[str], describe: Callable[[Sequence[str]], Described]) -> Described:
    """What `describe` says of `ids`, where a single id that nobody knows makes the cloud refuse them all.

    Halves are asked about then, and halves of those: one unknown among 200 costs 16 requests more, not 200.
    """
    try:
        return describe(ids)
    except NotFoundError:
        if len(ids) == 1:
            return {}
    middle = len(ids) // 2
    return {**known_among(ids[:middle], describe), **known_among(ids[middle:], describe)}


def _contradiction(operation: str, native_id: str) -> TruncatedReadError:
    message = f"{operation}: {without_secrets(native_id)} is described twice, and differently"
    return TruncatedReadError(message, operation=operation, code="Contradiction")
