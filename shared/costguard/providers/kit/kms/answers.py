"""How each kind of key can be given new material, by vendor: rows of data, which docs/keys.md shows.

Each provider's `kms/answers.py` has its rows in `MATRIX`, and a `rotatability(…)` that looks a key up in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from costguard.domain.keys import (
    EncryptionKey,
    KeyManager,
    KeyOrigin,
    KeyState,
    KeyUsage,
    MultiRegion,
    Rotatability,
    RotationCost,
    RotationMeans,
    RotationSetting,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.kit.core.fields import Fields, as_documented, named, text


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """What decides how a key can be rotated, in neutral words; whether it is enabled just now does not.

    `spec` is the vendor's word. `symmetric`: one secret, not a pair; a key for MACs is symmetric too, and known by its
    usage. `in_instance`: it belongs to a KMS instance, store or cluster of its owner's; `in_hardware`: its material
    lives in a module of that. `rotation_told`: whether the cloud told a rotation setting for it at all, None where
    that says nothing.
    """

    spec: str
    symmetric: bool
    usage: KeyUsage
    origin: KeyOrigin
    manager: KeyManager
    multi_region: MultiRegion = MultiRegion.NONE
    is_default: bool = False
    in_instance: bool = False
    in_hardware: bool = False
    rotation_told: bool | None = None


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One kind of key: `when` says for people what `holds` asks of its facts; `allows` is what its vendor allows."""

    when: str
    holds: Callable[[KeyFacts], bool]
    allows: Rotatability


_BY_SUCCESSOR = frozenset({RotationMeans.SUCCESSOR})


def no_means(when: str, holds: Callable[[KeyFacts], bool], note: str, source: str, cost: RotationCost) -> MatrixRow:
    """A kind of key that nobody but its vendor gives new material."""
    return MatrixRow(when, holds, Rotatability(frozenset(), note=note, source=source, cost=cost))


def by_successor(
    when: str, holds: Callable[[KeyFacts], bool], note: str, source: str, cost: RotationCost, *, succeeds: bool = False
) -> MatrixRow:
    """A kind of key in whose place another has to be made; `succeeds`: costguard can make it."""
    allows = Rotatability(_BY_SUCCESSOR, note=note, source=source, cost=cost, succeeds=succeeds)
    return MatrixRow(when, holds, allows)


IN_NO_ROW = Rotatability(frozenset(), note="a kind of key that costguard does not know: nothing is done to it")


def rotatability_of(matrix: Sequence[MatrixRow], facts: KeyFacts) -> Rotatability:
    """What the first row that holds allows; of a key that is in no row nothing is known, and nothing allowed."""
    return next((row.allows for row in matrix if row.holds(facts)), IN_NO_ROW)


def unread_key(
    ref: ResourceRef,
    aliases: Sequence[str],
    used_by: Iterable[ResourceRef],
    *,
    of_cloud: bool,
    allows: Rotatability = IN_NO_ROW,
    tags: Mapping[str, str] = MappingProxyType({}),
) -> EncryptionKey:
    """One that is listed and could not be described: all that is unread is unknown, and nothing is allowed of it."""
    return EncryptionKey(
        ref=ref,
        spec="",
        usage=KeyUsage.UNKNOWN,
        origin=KeyOrigin.UNKNOWN,
        state=KeyState.UNKNOWN,
        manager=KeyManager.CLOUD if of_cloud else KeyManager.CUSTOMER,
        rotation=RotationSetting(automatic=None),
        rotatability=allows,
        aliases=tuple(aliases),
        is_default=of_cloud,
        tags=tags,
        used_by=tuple(used_by),
    )


Users = Mapping[str, dict[ResourceRef, None]]
"""The disks that name a key, by the ids of keys: in the order in which they were listed."""


def add_users(
    found: Users,
    shard: Shard,
    pages: Iterable[Sequence[Fields]],
    api: str,
    id_key: str,
    key_of: Callable[[Fields], str],
) -> int:
    """Put each disk of a list to the key that it names, if that is one of those asked about; tells how many came.

    Raises:
        ProviderError: the list ended early; what came before is there.
    """
    seen = 0
    for page in pages:
        seen += len(page)
        with as_documented(api):
            for disk in page:
                ref = ResourceRef(shard.cloud, shard.account, shard.region, "volume", named(disk, id_key))
                found.get(key_of(disk), {})[ref] = None
    return seen


def add_tags(
    found: Mapping[str, dict[str, str]],
    page: Iterable[Fields],
    value_of: Callable[[Fields], str] = lambda tag: text(tag, "TagValue"),
) -> None:
    """Put each tag of a list to its key.

    Raises:
        ValueError: it is of something else, or there twice: one of the two may protect.
    """
    for tag in page:
        of_key, name = found.get(named(tag, "ResourceId")), named(tag, "TagKey")
        if of_key is None or name in of_key:
            raise ValueError("a tag of something else, or twice")
        of_key[name] = value_of(tag)
