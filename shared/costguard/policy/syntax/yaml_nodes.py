"""A YAML text as a tree in which every node knows its place. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from typing_extensions import assert_never

from costguard.policy.syntax.problems import Mark, Problem, excerpt, shortened

Plain = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value; `text` is how it was written, without quotes."""

    mark: Mark
    value: Plain
    text: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    mark: Mark
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys and values in the order written, each key with its own place."""

    mark: Mark
    items: dict[str, Node]
    keys: dict[str, Mark]


Node = Scalar | Sequence | Mapping


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One file as read: `root` is None when nothing usable was found, and then `problems` says why.

    What stands at a `damaged` place was dropped or replaced, so nothing more can be said about it.
    """

    path: str
    text: str
    root: Node | None
    problems: tuple[Problem, ...]
    damaged: frozenset[Mark] = frozenset()

    def problem(self, mark: Mark, field: str, message: str, fix: str = "") -> Problem:
        """A problem of this file, with its line."""
        return Problem(self.path, mark, field, shortened(message), shortened(fix), excerpt(self.text, mark))

    def locate(self, loc: tuple[str | int, ...], *, key: bool = False) -> tuple[Mark, Node | None]:
        """The place and node that `loc` leads to, or the nearest node above; with `key` the place of the last key."""
        node = self.root
        mark = node.mark if node is not None else Mark()
        for part in loc:
            if isinstance(node, Mapping) and part in node.items:
                mark, node = node.keys[str(part)], node.items[str(part)]
                if not (key and part is loc[-1]):
                    mark = node.mark
            elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
                node = node.items[part]
                mark = node.mark
            else:
                return mark, None
        return mark, node


def plain(node: Node) -> Any:
    """The values alone: dict, tuple, str, int, float, bool, None."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return tuple(plain(item) for item in node.items)
    if isinstance(node, Mapping):
        return {key: plain(value) for key, value in node.items.items()}
    assert_never(node)
