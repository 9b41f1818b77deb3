"""One pass over the instances of a shard: each kept once, the same however often it comes, and types that are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from costguard.domain.errors import NotFoundError, ProviderError, TruncatedReadError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind, Instance
from costguard.providers.kit.core.fields import named
from costguard.providers.kit.core.redaction import without_secrets


def tag_value(pattern: str, tags: Mapping[str, str]) -> str | None:
    """What a tag says, or its name where it is empty; `pattern` ending in `*` stands for what follows; None without."""
    if not pattern.endswith("*"):
        value = tags.get(pattern)
        return None if value is None else value or pattern
    prefix = pattern[:-1]
    found = sorted(tag for tag in tags if tag.startswith(prefix))
    return (found[0][len(prefix) :] or prefix) if found else None


Described = dict[str, dict[str, Any]]
"""Instances by id, as the cloud describes them."""


class Reading:
    """What was found so far in a shard that `operation` lists page by page.

    `gap` makes a gap of an error; `undescribed` says in the vendor's words that the types put in for `{}` are not
    described.
    """

    def __init__(
        self, shard: Shard, operation: str, *, gap: Callable[[Shard, str, ProviderError], Gap], undescribed: str
    ) -> None:
        self.shard = shard
        self.gaps: list[Gap] = []
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
        ids = sorted(found)
        for start in range(0, len(ids), most):
            yield shard, ids[start : start + most]


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
    """What `describe` says of `ids`, where a single id that nobody knows makes the cloud refuse them all."""
    try:
        return describe(ids)
    except NotFoundError:
        if len(ids) == 1:
            return {}
    described: Described = {}
    for one in ids:
        described.update(known_among([one], describe))
    return described


def _contradiction(operation: str, native_id: str) -> TruncatedReadError:
    message = f"{operation}: {without_secrets(native_id)} is described twice, and differently"
    return TruncatedReadError(message, operation=operation, code="Contradiction")
