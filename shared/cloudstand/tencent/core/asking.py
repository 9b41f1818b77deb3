"""One call that passed the door, what it may reach, and how answers are paged and filtered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from cloudstand.tencent.core.credentials import Accounts, Identity
from cloudstand.tencent.core.errors import ApiError, not_modelled
from cloudstand.tencent.core.memory import Memory
from cloudstand.tencent.core.settings import Settings
from cloudstand.world.cloud import World
from cloudstand.world.places import Place

Item = TypeVar("Item")
Answer = Mapping[str, Any]
By = Mapping[str, Callable[[Any], Iterable[str]] | None]
"""What each filter compares: its name, and the values an item has for it; None where a world has no such thing."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A call whose signature, permission and parameters are right. `world` is open while it is answered."""

    identity: Identity
    region: str
    parameters: Mapping[str, Any]
    language: str
    request_id: str
    world: World
    accounts: Accounts
    memory: Memory
    settings: Settings
    agent: str = ""

    @property
    def account(self) -> str:
        """The account that is asked about: the caller's own."""
        return self.identity.account

    @property
    def now(self) -> datetime:
        """The present moment of the world."""
        return self.world.now

    @property
    def shard(self) -> Place:
        """The region of the account that is asked about."""
        return self.in_region(self.region)

    def in_region(self, region: str) -> Place:
        """A region of the account that is asked about."""
        return Place(self.settings.cloud, self.account, region)

    def get(self, name: str, default: Any = None) -> Any:
        """A parameter, or its published default."""
        return self.parameters.get(name, default)


def page(asked: Asked, items: Sequence[Item], usual: int = 20) -> Sequence[Item]:
    """The part from Offset, Limit long; a page past the end is empty and no error."""
    first = int(asked.get("Offset", 0))
    return items[first : first + int(asked.get("Limit", usual))]


def filtered(
    filters: Iterable[Mapping[str, Any]], items: Iterable[Item], by: By, *, code: str = "InvalidFilter"
) -> list[Item]:
    """The items that every filter lets through; the values of one filter are alternatives.

    Raises:
        ApiError: there is no such filter, or nothing here that it could compare.
    """
    found = list(items)
    for wanted in filters:
        name, values = wanted["Name"], set(wanted["Values"])
        tag = name.startswith("tag:") and "tag:" in by
        if name not in by and not tag:
            raise ApiError(code, f"the filter `{name}` is not supported.", f"无效的过滤器`{name}`。")
        if tag:
            values = {f"{name[4:]}={value}" for value in values}
        compared = by["tag:" if tag else name]
        if compared is None:
            raise not_modelled(name)
        found = [item for item in found if values & set(compared(item))]
    return found


def either(asked: Asked, ids: str, code: str) -> None:
    """Ids and filters do not go together.

    Raises:
        ApiError: both are there.
    """
    if asked.get(ids) and asked.get("Filters"):
        raise ApiError(
            code, f"`{ids}` and `Filters` cannot be specified together.", f"不支持同时指定`{ids}`和`Filters`。"
        )
