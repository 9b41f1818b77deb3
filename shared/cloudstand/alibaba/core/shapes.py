"""Lists as the cloud writes them: wrapped twice, and in several ways when there is nothing in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def wrapped(name: str, items: Sequence[Any]) -> dict[str, list[Any]]:
    """`{"Tag": [...]}`; an empty list stays one."""
    return {name: [*items]}


def some(field: str, name: str, items: Sequence[Any], owner: str) -> dict[str, Any]:
    """A field with a wrapped list; an empty one takes whichever shape falls to its owner.

    All four were seen: an empty list, an empty structure, an empty text (what an empty XML element becomes), nothing.
    """
    if items:
        return {field: wrapped(name, items)}
    turn = sum(owner.encode()) % 4
    if turn == 0:
        return {field: wrapped(name, items)}
    return {} if turn == 1 else {field: {} if turn == 2 else ""}  # noqa: PLR2004 - the shapes in turn


def tags(values: Mapping[str, str], owner: str, key: str = "TagKey", value: str = "TagValue") -> dict[str, Any]:
    """The field `Tags` as ECS writes it; VPC calls the same things `Key` and `Value`."""
    return some("Tags", "Tag", [{key: name, value: text} for name, text in values.items()], owner)
