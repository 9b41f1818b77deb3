"""What a JSON answer may look like, and what of one does not: fields, types, and values where they are listed."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_TIMES = {
    "date": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    "datetime": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.ASCII),
    "datetime_iso": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|\+08:00)", re.ASCII),
}


@dataclass(frozen=True)
class Complaint:
    """What is not as published. `field` is the object and its field, without places in lists; `value` is as told."""

    field: str
    why: str
    value: str = ""


class Shape(ABC):
    """What is published of a value."""

    null = False

    def complaints(self, value: Any, field: str) -> Iterator[Complaint]:
        """Everything in `value` that is not as published."""
        if value is not None:
            yield from self._inside(value, field)
        elif not self.null:
            yield Complaint(field, "null")

    @abstractmethod
    def _inside(self, value: Any, field: str) -> Iterator[Complaint]: ...


@dataclass(frozen=True)
class Leaf(Shape):
    """A value of a published type (`string`, `int64`, `datetime_iso` …); `values` are all there are, if not empty."""

    kind: str
    null: bool = False
    values: tuple[str, ...] = ()

    def _inside(self, value: Any, field: str) -> Iterator[Complaint]:
        if not _is(self.kind, value):
            yield Complaint(field, f"no {self.kind}", repr(value))
        elif self.values and str(value) not in self.values:
            yield Complaint(field, "a value that is not listed", repr(value))


@dataclass(frozen=True)
class Listing(Shape):
    """A list of one shape."""

    of: Shape
    null: bool = False

    def _inside(self, value: Any, field: str) -> Iterator[Complaint]:
        if not isinstance(value, list):
            yield Complaint(field, "no list", repr(value))
            return
        for each in value:
            yield from self.of.complaints(each, field)


@dataclass(frozen=True)
class Mapped(Shape):
    """An object whose names are values themselves."""

    of: Shape

    def _inside(self, value: Any, field: str) -> Iterator[Complaint]:
        if not isinstance(value, dict):
            yield Complaint(field, "no object", repr(value))
            return
        for each in value.values():
            yield from self.of.complaints(each, field)


@dataclass(frozen=True)
class Structure(Shape):
    """An object: these fields, and no other. `fields` is asked late, since shapes may hold themselves."""

    name: str
    fields: Callable[[], Mapping[str, Shape]]
    null: bool = False

    def _inside(self, value: Any, field: str) -> Iterator[Complaint]:
        if not isinstance(value, dict):
            yield Complaint(field, "no object", repr(value))
            return
        fields = self.fields()
        for name, each in value.items():
            known = fields.get(name)
            if known is None:
                yield Complaint(f"{self.name}.{name}", "no such field")
            else:
                yield from known.complaints(each, f"{self.name}.{name}")


def _is(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind in {"bool", "boolean", "any"}
    if isinstance(value, int):
        return kind in {"int", "int64", "float", "double", "moment", "any"} or (kind == "uint64" and value >= 0)
    if isinstance(value, float):
        return kind in {"float", "double", "moment", "any"}  # AWS has moments in seconds since 1970
    if isinstance(value, str) and kind in _TIMES:
        return _TIMES[kind].fullmatch(value) is not None
    return kind == "any" or (isinstance(value, str) and kind in {"string", "str"})
