"""Valid documents, damaged: the strategies all parsers share."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from typing import Any

from hypothesis import strategies as st

Path = tuple[str | int, ...]

NASTY_TEXTS = (
    "",
    " ",
    "\x00",
    "\x1b[31m",
    "\u202eevresbo",
    "\u2066x\u2069",
    "\ufeff",
    "\ud800",
    "\udfff\ud800",
    "\u200b",
    "\u2028",
    "a\nb",
    "\r",
    "null",
    "None",
    "true",
    "NaN",
    "Infinity",
    "-inf",
    "1e999",
    "-1",
    "0",
    "0x10",
    "1_000",
    "１２",  # noqa: RUF001 - digits that int() takes and ASCII does not
    "٣",
    "²",
    "9" * 4500,
    "9" * 400,
    "1e99999999999",
    "{}",
    "[]",
    "<a/>",
    "&lol;",
    "../../etc/passwd",
    "${x}",
    "%s%n",
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59",
    "2026-02-30",
    "é" * 300,
    "\N{SNOWMAN}" * 2000,
    "a" * 8_000,
)
NUMBERS = (
    0, 1, -1, 2, 7, 59, 60, 100, 101, 3600, 2**31, 2**63, -(2**63), 2**64, 10**18, 10**19, 10**400, -(10**4000),
    0.0, -0.0, 0.5, -0.5, 99.9, 1e-300, 1e308, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
MOMENTS = (
    datetime(2026, 3, 1),  # noqa: DTZ001 - naive on purpose
    datetime(2026, 3, 1, tzinfo=timezone.utc),
    datetime.max.replace(microsecond=0),  # noqa: DTZ901 - naive on purpose
    datetime.min.replace(microsecond=1),  # noqa: DTZ901
    datetime.max.replace(tzinfo=timezone.utc),
    datetime.min.replace(tzinfo=timezone.utc),
)


@cache
def texts() -> st.SearchStrategy[str]:
    """Short, long, empty, hostile; half surrogates as well."""
    anything = st.text(st.characters(exclude_categories=()), max_size=30)
    return st.one_of(st.sampled_from(NASTY_TEXTS), anything)


@cache
def scalars() -> st.SearchStrategy[Any]:
    """Any single value JSON knows, and some it does not."""
    return st.one_of(
        st.none(),
        st.booleans(),
        st.sampled_from(NUMBERS),
        st.integers(),
        st.floats(),
        texts(),
        st.just([]),
        st.just({}),
    )


@cache
def junk() -> st.SearchStrategy[Any]:
    """Anything in the place of anything."""
    return st.one_of(
        scalars(),
        st.sampled_from(MOMENTS),
        st.recursive(
            scalars(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3)
        ),
        st.integers(10, 150).map(nested),
    )


@cache
def json_junk() -> st.SearchStrategy[Any]:
    """Junk that JSON can carry."""
    return junk().filter(lambda value: not isinstance(value, datetime))


def nested(depth: int, *, mapping: bool = False) -> Any:
    """A list of a list of a list…, or mappings."""
    value: Any = 0
    for _ in range(depth):
        value = {"a": value} if mapping else [value]
    return value


@dataclass(frozen=True)
class Mutated:
    """A document after some damage, and what was done where."""

    document: Any
    steps: tuple[tuple[str, Path], ...]


def mutated(document: Any, replacements: st.SearchStrategy[Any] | None = None, *, most: int = 3) -> Any:
    """A strategy: `document` with one to `most` parts dropped, doubled, replaced, wrapped, emptied or swapped."""
    fill = junk() if replacements is None else replacements

    @st.composite
    def build(draw: Callable[[Any], Any]) -> Mutated:
        damaged = copy.deepcopy(document)
        steps: list[tuple[str, Path]] = []
        for _ in range(draw(st.integers(1, most))):
            paths = [path for path, _ in nodes(damaged) if path]
            if not paths:
                break
            path = paths[draw(st.integers(0, len(paths) - 1))]
            kind = draw(st.sampled_from(sorted(_OPERATIONS)))
            other = paths[draw(st.integers(0, len(paths) - 1))] if kind == "swap" else path
            new = draw(fill) if kind in {"replace", "add"} else None
            _OPERATIONS[kind](damaged, path, copy.deepcopy(at(damaged, other)) if kind == "swap" else new)
            steps.append((kind, path))
        return Mutated(damaged, tuple(steps))

    return build()


def nodes(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every part of a document with its path, the whole first."""
    yield path, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from nodes(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from nodes(item, (*path, index))


def at(document: Any, path: Path) -> Any:
    """The part at `path`."""
    for step in path:
        document = document[step]
    return document


def _drop(document: Any, path: Path, _: Any) -> None:
    del at(document, path[:-1])[path[-1]]


def _double(document: Any, path: Path, _: Any) -> None:
    """An item of a list comes twice; a value also stands under a new key."""
    parent, key = at(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        parent.insert(int(key), copy.deepcopy(parent[int(key)]))
    else:
        parent[f"{key}2"] = copy.deepcopy(parent[key])


def _replace(document: Any, path: Path, new: Any) -> None:
    at(document, path[:-1])[path[-1]] = new


def _add(document: Any, path: Path, new: Any) -> None:
    """Something more beside it: in a list, or under a key that nobody knows."""
    parent = at(document, path[:-1])
    if isinstance(parent, list):
        parent.append(new)
    else:
        parent["Unheard-of"] = new


def _wrap(document: Any, path: Path, _: Any) -> None:
    parent, key = at(document, path[:-1]), path[-1]
    parent[key] = [parent[key]]


def _unwrap(document: Any, path: Path, _: Any) -> None:
    """A list or mapping becomes the first thing in it; a scalar becomes its text."""
    parent, key = at(document, path[:-1]), path[-1]
    value = parent[key]
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    parent[key] = inner[0] if inner else str(value)[:100] if not isinstance(value, int) else f"{value:x}"


def _empty(document: Any, path: Path, _: Any) -> None:
    parent, key = at(document, path[:-1]), path[-1]
    parent[key] = type(parent[key])() if isinstance(parent[key], (str, list, dict, int, float)) else None


def _reverse(document: Any, path: Path, _: Any) -> None:
    parent, key = at(document, path[:-1]), path[-1]
    if isinstance(parent[key], (list, str)):
        parent[key] = parent[key][::-1]
    elif isinstance(parent[key], (int, float)):
        parent[key] = -parent[key]


_OPERATIONS: dict[str, Callable[[Any, Path, Any], None]] = {
    "drop": _drop,
    "double": _double,
    "replace": _replace,
    "add": _add,
    "wrap": _wrap,
    "unwrap": _unwrap,
    "empty": _empty,
    "reverse": _reverse,
    "swap": _replace,
}
