"""Request parameters, checked against the vendor's published names and types before anything looks at them.

The tables in `tables/` are text, one line a parameter:

    RegionId!            text                 must be there
    InstanceId.100!      text                 a list: InstanceId.1 to InstanceId.100, at least one
    Tag.20.Key           text 1-128           a list of structures; the figures are the length
    PageSize             whole 1-50           outside of it is refused
    MaxResults           whole                any whole number: what happens to it is the action's own affair
    DryRun               flag                 "true" or "false", in these letters
    InstanceIds          ids 100              a JSON list of at most so many texts
    Status               Running|Stopped      one of these
    ~VpcId               text                 published, and not modelled: refused rather than overlooked
    ResourceId.50        text @NumberExceed   the code for one entry too many

The cloud overlooks parameters that it does not know. Here they are errors, since a misspelt filter finds everything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cloudstand.alibaba.core.errors import ApiError, invalid, malformed, missing, not_modelled
from cloudstand.alibaba.core.protocol import PROTOCOL_PARAMETERS

_WHOLE = re.compile(r"-?\d{1,18}")
_LINE = re.compile(
    r"(?P<off>~?)(?P<name>[\w.]+)(?P<must>!?)\s+(?P<kind>\S+)(?:\s+(?P<size>\d\S*))?(?:\s+@(?P<code>\S+))?"
)
_OWNERS = """
    OwnerId                whole
    OwnerAccount           text
    ResourceOwnerId        whole
    ResourceOwnerAccount   text
"""
"""Parameters of every ECS and VPC action, left from the time before RAM; they change nothing."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One published parameter; `most` counts the entries of a list, `low` and `high` bound a number or a length."""

    name: str
    kind: str
    required: bool = False
    modelled: bool = True
    most: int = 0
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    too_many: str = "InvalidParameter"


@dataclass(frozen=True, slots=True)
class Asked:
    """The parameters of one request, by the names of the table, each of its type."""

    single: Mapping[str, Any] = field(default_factory=dict)
    lists: Mapping[str, Mapping[int, Mapping[str, Any]]] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """A text."""
        return str(self.single.get(name, default))

    def whole(self, name: str) -> int | None:
        """A whole number."""
        found = self.single.get(name)
        return None if found is None else int(found)

    def flag(self, name: str) -> bool:
        """Yes or no; no where it is not there."""
        return bool(self.single.get(name, False))

    def given(self, name: str) -> bool:
        """Whether it is there at all, as a single value or a list."""
        return name in self.single or name in self.lists

    def ids(self, name: str) -> Sequence[str] | None:
        """A JSON list; None where it is not there, which is not the same as empty."""
        found: Sequence[str] | None = self.single.get(name)
        return found

    def many(self, name: str) -> Sequence[str]:
        """A plain list, in the order of its numbers."""
        entries = self.lists.get(name, {})
        return [str(entries[number][""]) for number in sorted(entries)]

    def groups(self, name: str) -> Sequence[Mapping[str, Any]]:
        """A list of structures, in the order of its numbers."""
        entries = self.lists.get(name, {})
        return [entries[number] for number in sorted(entries)]


class Table:
    """The published parameters of one action."""

    def __init__(self, text: str, *, owners: bool = False) -> None:
        lines = (*text.splitlines(), *(_OWNERS.splitlines() if owners else ()))
        written = [line.partition("#")[0].strip() for line in lines]
        self._rows = {row.name: row for row in (_row(line) for line in written if line)}

    def read(self, sent: Mapping[str, str]) -> Asked:
        """The request's parameters, apart from those of the protocol.

        Raises:
            ApiError: one is unknown, of another type, out of range, missing, or not modelled.
        """
        single: dict[str, Any] = {}
        lists: dict[str, dict[int, dict[str, Any]]] = {}
        for name, value in sent.items():
            row = self._rows.get(_pattern(name))
            if row is None:
                if name in PROTOCOL_PARAMETERS:
                    continue
                raise invalid(name, "It is not published for this action.")
            if not row.modelled:
                raise not_modelled("the parameter", name)
            checked = _checked(row, name, value)
            if row.most:
                root, number, leaf = _place(name)
                if not 1 <= number <= row.most:
                    raise ApiError(row.too_many, f'"{name}" is out of range. Valid values of N: 1 to {row.most}.')
                lists.setdefault(root, {}).setdefault(number, {})[leaf] = checked
            else:
                single[name] = checked
        self._check_required(single, lists)
        return Asked(single, lists)

    def _check_required(self, single: Mapping[str, Any], lists: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> None:
        for row in self._rows.values():
            if not row.required:
                continue
            if not row.most:
                if single.get(row.name, "") == "":
                    raise missing(row.name)
                continue
            root, _, leaf = row.name.partition(".N")
            leaf = leaf.removeprefix(".")
            if root not in lists:
                raise missing(root)
            for number, entry in lists[root].items():
                if leaf not in entry:
                    place = f"{root}.{number}.{leaf}"
                    raise missing(place)


def _row(line: str) -> Parameter:
    match = _LINE.fullmatch(line)
    if match is None:
        message = f"not a line of a table: {line!r}"
        raise ValueError(message)
    name, most = match["name"], 0
    for part in name.split("."):
        if part.isdigit():
            most = int(part)
            name = name.replace(f".{part}", ".N", 1)
    kind, size = match["kind"], match["size"] or ""
    choices = tuple(kind.split("|")) if "|" in kind else ()
    low, _, high = size.partition("-")
    return Parameter(
        name=name,
        kind="choice" if choices else kind,
        required=bool(match["must"]),
        modelled=not match["off"],
        most=most,
        low=int(low) if high else None,
        high=int(high or low) if size else None,
        choices=choices,
        too_many=match["code"] or "InvalidParameter",
    )


def _pattern(name: str) -> str:
    """`Tag.3.Key` as its row is called, `Tag.N.Key`."""
    if "." not in name:
        return name
    return ".".join("N" if part.isdigit() else part for part in name.split("."))


def _place(name: str) -> tuple[str, int, str]:
    parts = name.split(".")
    at = next(place for place, part in enumerate(parts) if part.isdigit())
    return ".".join(parts[:at]), int(parts[at]), ".".join(parts[at + 1 :])


def _checked(row: Parameter, name: str, value: str) -> Any:
    if row.kind == "text":
        _check_bounds(row, name, len(value))
        return value
    if row.kind == "choice":
        if value not in row.choices:
            raise invalid(name, f"Valid values: {', '.join(row.choices)}.")
        return value
    if row.kind == "flag":
        if value not in ("true", "false"):
            raise invalid(name, "Valid values: true, false.")
        return value == "true"
    if row.kind == "whole":
        if not _WHOLE.fullmatch(value):
            raise invalid(name, "It is no whole number.")
        _check_bounds(row, name, int(value))
        return int(value)
    if row.kind == "ids":
        return _listed(row, name, value)
    message = f"{row.name} is of an unknown kind {row.kind!r}"
    raise ValueError(message)


def _check_bounds(row: Parameter, name: str, size: int) -> None:
    if (row.low is not None and size < row.low) or (row.high is not None and size > row.high):
        raise invalid(name, f"Valid values: {row.low or 0} to {row.high}.")


def _listed(row: Parameter, name: str, value: str) -> list[str]:
    try:
        found = json.loads(value)
    except ValueError as err:
        raise malformed(name, "it is no JSON list") from err
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise malformed(name, "it is no JSON list of texts")
    if row.high is not None and len(found) > row.high:
        why = f"it has more than {row.high} entries"
        raise malformed(name, why)
    return found
