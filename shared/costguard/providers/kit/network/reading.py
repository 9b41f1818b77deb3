"""What readers of networks share: refs, networks in one form, parts that may fail, questions asked side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import ip_network
from typing import Any, Generic, TypeVar

from costguard.domain.errors import ProviderError
from costguard.domain.network import NetworkInventory, SecurityGroup
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap
from costguard.providers.kit.core.calls import Gaps

_IN_FLIGHT = 8

T = TypeVar("T")


@lru_cache(maxsize=4096)  # a few networks stand in most rules
def network(said: str) -> str:
    """A network in canonical form; a bare address is a network of one.

    Raises:
        ValueError: it is none.
    """
    return str(ip_network(said, strict=False))


def networks(said: Iterable[str]) -> tuple[str, ...]:
    """Each of these networks once, as `network` has it; what is empty is left out."""
    return tuple(dict.fromkeys(network(each) for each in said if each))


def ref_of(shard: Shard, kind: str, native_id: str) -> ResourceRef:
    """Something of this shard."""
    return ResourceRef(shard.cloud, shard.account, shard.region, kind, native_id)


def ref_to(shard: Shard, kind: str, native_id: str) -> ResourceRef | None:
    """Something of this shard that an answer may name."""
    return ref_of(shard, kind, native_id) if native_id else None


def named_by_rules(groups: Iterable[SecurityGroup]) -> dict[str, dict[str, None]]:
    """By group, those whose rules name it, in the order of the groups."""
    found: dict[str, dict[str, None]] = {}
    for group in groups:
        for rule in group.rules:
            for peer in rule.peer_groups:
                found.setdefault(peer, {})[group.ref.native_id] = None
    return found


def with_references(groups: Iterable[SecurityGroup], named_by: Mapping[str, Iterable[str]]) -> Iterator[SecurityGroup]:
    """The groups, each with those that name it."""
    return (replace(group, referenced_by=tuple(named_by.get(group.ref.native_id, ()))) for group in groups)


@dataclass(slots=True)
class Asked(Generic[T]):
    """What came of asking about each of several things: an answer, or why there is none."""

    answers: dict[str, T] = field(default_factory=dict)
    failures: dict[str, ProviderError] = field(default_factory=dict)


def asked_of_each(names: Sequence[str], ask: Callable[[str], T]) -> Asked[T]:
    """Ask about each, some at a time."""

    def one(name: str) -> tuple[T | None, ProviderError | None]:
        try:
            return ask(name), None
        except ProviderError as err:
            return None, err

    found: Asked[T] = Asked()
    for name, (answer, failure) in zip(names, side_by_side(names, one), strict=True):
        if failure is not None:
            found.failures[name] = failure
        else:
            found.answers[name] = answer  # type: ignore[assignment]
    return found


def side_by_side(names: Sequence[str], ask: Callable[[str], T]) -> list[T]:
    """What is answered about each, some asked at a time: what one raises, this raises."""
    if len(names) < 2:  # noqa: PLR2004 - one needs nobody beside it
        return [ask(name) for name in names]
    with ThreadPoolExecutor(min(_IN_FLIGHT, len(names)), thread_name_prefix="networks") as pool:
        return list(pool.map(ask, names))


_CALLED = {"routes": "route_tables"}
"""Parts that an inventory calls otherwise than gaps do."""


class Parts:
    """One reading of a shard's networks, part by part; `because` makes a gap of an error."""

    def __init__(self, shard: Shard, because: Callable[[Shard, str, ProviderError], Gap]) -> None:
        self.gaps = Gaps(shard, because)
        self._found: dict[str, tuple[Any, ...]] = {}
        self._unread: list[ProviderError] = []

    def read(self, what: str, read: Callable[[], Iterable[T]]) -> tuple[T, ...]:
        """What `read` finds; nothing and a gap where it fails."""
        found: tuple[T, ...] = ()
        try:
            found = tuple(read())
        except ProviderError as err:
            self._unread.append(err)
            self.gaps.add(what, err)
        self._found[_CALLED.get(what, what)] = found
        return found

    def inventory(self, **instead: Any) -> NetworkInventory:
        """All that was read, and what was not; `instead` are parts as others have completed them.

        Raises:
            ProviderError: not even a part could be read.
        """
        if len(self._unread) == len(self._found):
            raise self._unread[0]
        return NetworkInventory(self.gaps.shard, gaps=tuple(self.gaps), **{**self._found, **instead})
