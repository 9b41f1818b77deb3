"""Checks the parameters of a request against what is published: unknown, missing and mistyped ones are refused.

A table is a mapping of names to kinds; a name that ends in `!` is required. One that ends in `?` is published and has
no counterpart in a world: who sends it is told so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import assert_never

from cloudstand.tencent.core.errors import bad_value, missing, mistyped, not_modelled, unknown


@dataclass(frozen=True, slots=True)
class Text:
    """A string. `choices` empty means any; `code` is what a value outside is refused with."""

    choices: tuple[str, ...] = ()
    shortest: int = 0
    longest: int | None = None
    pattern: str = ""
    code: str = "InvalidParameterValue"


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer from `least` to `most`; booleans are none, and neither is a number in quotes."""

    least: int | None = None
    most: int | None = None
    code: str = "InvalidParameterValue"


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""


@dataclass(frozen=True, slots=True)
class Many:
    """A list of at most `most` of a kind, and at least `least`."""

    of: Kind
    most: int | None = None
    least: int = 0
    code: str = "InvalidParameterValue.LimitExceeded"


@dataclass(frozen=True, slots=True)
class Fields:
    """A structure with its own table."""

    table: Table


Kind = Text | Whole | Flag | Many | Fields
Table = Mapping[str, Kind]

TEXT, FLAG, COUNT, WHOLE = Text(), Flag(), Whole(0), Whole()
TEXTS = Many(TEXT)
FILTERS_MOST = 10  # "每次请求的Filters的上限为10"


def filters(values: int, code: str = "InvalidFilterValue.LimitExceeded") -> Many:
    """`Filters` as nearly every product has them: up to ten names, and up to `values` values each."""
    return Many(Fields({"Name!": TEXT, "Values!": Many(TEXT, values, code=code)}), FILTERS_MOST, code=code)


def checked(table: Table, given: Mapping[str, Any], path: str = "") -> None:
    """Pass when `given` is as the table has it.

    Raises:
        ApiError: UnknownParameter, MissingParameter, InvalidParameter (a wrong type), the code of a wrong value, or
            Emulator.NotModelled.
    """
    kinds = {name.rstrip("!?"): kind for name, kind in table.items()}
    for name in given:
        if name not in kinds:
            raise unknown(path + name)
    for name in table:
        if name.endswith("!") and name[:-1] not in given:
            raise missing(path + name[:-1])
    for name, value in given.items():
        _check(kinds[name], value, path + name)
        if f"{name}?" in table and value is not False:  # no is what happens anyway
            raise not_modelled(path + name)


def _check(kind: Kind, value: Any, name: str) -> None:
    if isinstance(kind, Text):
        _check_text(kind, value, name)
    elif isinstance(kind, Whole):
        if isinstance(value, bool) or not isinstance(value, int):
            raise mistyped(name, "int")
        if (kind.least is not None and value < kind.least) or (kind.most is not None and value > kind.most):
            raise bad_value(name, f"{value} is out of range", kind.code)
    elif isinstance(kind, Flag):
        if not isinstance(value, bool):
            raise mistyped(name, "bool")
    elif isinstance(kind, Many):
        _check_many(kind, value, name)
    elif isinstance(kind, Fields):
        if not isinstance(value, Mapping):
            raise mistyped(name, "object")
        checked(kind.table, value, f"{name}.")
    else:
        assert_never(kind)


def _check_text(kind: Text, value: Any, name: str) -> None:
    if not isinstance(value, str):
        raise mistyped(name, "string")
    if kind.choices and value not in kind.choices:
        raise bad_value(name, f"{value} is not one of {', '.join(kind.choices)}", kind.code)
    if len(value) < kind.shortest or (kind.longest is not None and len(value) > kind.longest):
        raise bad_value(name, f"its length is {len(value)}", kind.code)
    if kind.pattern and not re.fullmatch(kind.pattern, value):
        raise bad_value(name, "its form is wrong", kind.code)


def _check_many(kind: Many, value: Any, name: str) -> None:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise mistyped(name, "list")
    if len(value) < kind.least:
        raise bad_value(name, "it is empty", "InvalidParameterValue")
    if kind.most is not None and len(value) > kind.most:
        raise bad_value(name, f"{len(value)} are more than {kind.most}", kind.code)
    for place, each in enumerate(value):
        _check(kind.of, each, f"{name}.{place}")


def typed(table: Table, query: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of a GET request, `Filters.0.Name=zone`, as they would stand in a JSON body.

    Raises:
        ApiError: a number, truth value or index cannot be read.
    """
    nested: dict[str, Any] = {}
    for path, value in query.items():
        here, *parts = path.split(".")
        place = nested
        for part in parts:
            place = place.setdefault(here, {})
            if not isinstance(place, dict):
                raise mistyped(path, "list")
            here = part
        place[here] = value
    return {name: _typed(_kind_of(table, name), value, name) for name, value in nested.items()}


def _kind_of(table: Table, name: str) -> Kind:
    return table.get(name) or table.get(f"{name}!") or table.get(f"{name}?") or TEXT


def _typed(kind: Kind, value: Any, name: str) -> Any:
    if isinstance(value, str):
        return _simple(kind, value)
    if isinstance(kind, Many):
        if not all(place.isdigit() for place in value):
            raise mistyped(name, "list")
        return [_typed(kind.of, value[place], f"{name}.{place}") for place in sorted(value, key=int)]
    if isinstance(kind, Fields):
        return {each: _typed(_kind_of(kind.table, each), of, f"{name}.{each}") for each, of in value.items()}
    raise mistyped(name, "scalar")


def _simple(kind: Kind, value: str) -> Any:
    if isinstance(kind, Whole) and re.fullmatch(r"-?\d+", value):
        return int(value)
    if isinstance(kind, Flag) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    return value
