"""Protocol buffers, as much as the plugin protocol takes: what a message is made of is a table, a message is a dict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union

_VARINT, _LONG, _COUNTED, _SHORT = 0, 1, 2, 5  # "Protocol Buffers: Encoding", wire types
_FIXED = {_LONG: 8, _SHORT: 4}
_MORE, _SEVEN = 0x80, 0x7F


class WireError(Exception):
    """Bytes that are no such message."""


@dataclass(frozen=True, slots=True)
class Part:
    """One field of a message; `many` of it are a list."""

    number: int
    kind: Union[Literal["text", "bytes", "count", "flag"], Mapping[str, Part]]  # noqa: UP007 - 3.10 cannot join it with |
    many: bool = False


Shape = Mapping[str, Part]
"""A message: name → field."""


def packed(shape: Shape, message: Mapping[str, Any]) -> bytes:
    """The message as bytes; what is absent or empty takes none."""
    parts = bytearray()
    for name, value in message.items():
        part = shape[name]
        for one in value if part.many else [value]:
            parts += _field(part, one, always=part.many)
    return bytes(parts)


def _field(part: Part, value: Any, *, always: bool) -> bytes:
    if value is None or (not always and value in ("", b"", 0, False)):
        return b""
    if part.kind in ("count", "flag"):
        return _varint(part.number << 3 | _VARINT) + _varint(int(value) & 0xFFFF_FFFF_FFFF_FFFF)
    if isinstance(part.kind, Mapping):
        body = packed(part.kind, value)
    else:
        body = value.encode() if part.kind == "text" else value
    return _varint(part.number << 3 | _COUNTED) + _varint(len(body)) + body


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > _SEVEN:
        out.append(value & _SEVEN | _MORE)
        value >>= 7
    out.append(value)
    return bytes(out)


def unpacked(shape: Shape, data: bytes) -> dict[str, Any]:
    """The message in these bytes, every field of the shape with a value; fields of other numbers are passed over.

    Raises:
        WireError: cut short.
    """
    named = {part.number: (name, part) for name, part in shape.items()}
    message: dict[str, Any] = {name: _absent(part) for name, part in shape.items()}
    for number, value in _fields(data):
        if number not in named:
            continue
        name, part = named[number]
        read = _read(part, value)
        if part.many:
            message[name].append(read)
        else:
            message[name] = read
    return message


def _absent(part: Part) -> Any:
    if part.many:
        return []
    if isinstance(part.kind, Mapping):
        return None
    return {"text": "", "bytes": b"", "count": 0, "flag": False}[part.kind]


def _read(part: Part, value: int | bytes) -> Any:
    if isinstance(value, int):
        return bool(value) if part.kind == "flag" else value
    if isinstance(part.kind, Mapping):
        return unpacked(part.kind, value)
    return value.decode() if part.kind == "text" else value


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        wire = key & 7
        if wire == _VARINT:
            value, at = _number(data, at)
            yield key >> 3, value
            continue
        if wire == _COUNTED:
            size, at = _number(data, at)
        else:
            size = _FIXED.get(wire, len(data))
        if at + size > len(data):
            raise WireError("a message is cut short")
        yield key >> 3, data[at : at + size]
        at += size


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data):
            raise WireError("a number is cut short")
        byte = data[at]
        at += 1
        value |= (byte & _SEVEN) << shift
        shift += 7
        if byte < _MORE:
            return value, at
