"""Terraform's values in MessagePack ("Wire Format for Terraform Objects and Associated Values").

What is not known yet is an extension of its own there, and `UNKNOWN` here. Numbers that no float holds exactly travel
as texts; they stay what they were, so that Terraform finds in its state the number that it wrote.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from tests.infra.stand_in.wire import WireError


class _Unknown:
    """There is one, and it equals only itself."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()
"""A value that is known after apply."""

_FORMS: Final[Mapping[int, str]] = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_CONSTANTS: Final[Mapping[int, Any]] = {0xC0: None, 0xC2: False, 0xC3: True}


def from_json(text: bytes) -> Any:
    """A value of a state file; fractions keep their digits."""
    return json.loads(text, parse_float=Decimal)


def encoded(value: Any) -> bytes:
    """As MessagePack."""
    if value is UNKNOWN:
        return b"\xd4\x00\x00"
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return _whole(value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, Decimal):
        return _text(str(value))
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(encoded(one) for one in value)
    return (
        b"\xdf"
        + struct.pack(">I", len(value))
        + b"".join(_text(name) + encoded(one) for name, one in sorted(value.items()))
    )


def _whole(value: int) -> bytes:
    return b"\xd3" + struct.pack(">q", value) if value < 0 else b"\xcf" + struct.pack(">Q", value)


def _text(value: str) -> bytes:
    data = value.encode()
    return b"\xdb" + struct.pack(">I", len(data)) + data


def decoded(data: bytes) -> Any:
    """From MessagePack.

    Raises:
        WireError: not MessagePack, or more than one value.
    """
    reader = _Reader(data)
    try:
        value = reader.value()
    except (struct.error, IndexError) as err:
        raise WireError("a value is cut short") from err
    if reader.at != len(data):
        raise WireError("something follows a value")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def value(self) -> Any:
        first = self._take(1)[0]
        if first <= 0x7F or first >= 0xE0:
            return first if first <= 0x7F else first - 0x100
        if first <= 0xBF:
            return self._short(first)
        if first in _CONSTANTS:
            return _CONSTANTS[first]
        if first in _FORMS:
            form = _FORMS[first]
            return struct.unpack(form, self._take(struct.calcsize(form)))[0]
        if first in _EXTENSIONS:
            return self.extension(_EXTENSIONS[first])
        if first not in _COUNTED:
            message = f"no MessagePack begins with {first:#x}"
            raise WireError(message)
        form, read = _COUNTED[first]
        return read(self, struct.unpack(form, self._take(struct.calcsize(form)))[0])

    def _short(self, first: int) -> Any:
        """What says its size in its first byte."""
        if first <= 0x8F:
            return self.mapping(first & 0x0F)
        if first <= 0x9F:
            return self.listed(first & 0x0F)
        return self.text(first & 0x1F)

    def _take(self, size: int) -> bytes:
        taken = self._data[self.at : self.at + size]
        if len(taken) < size:
            raise WireError("a value is cut short")
        self.at += size
        return taken

    def text(self, size: int) -> str:
        return self._take(size).decode()

    def listed(self, size: int) -> list[Any]:
        return [self.value() for _ in range(size)]

    def mapping(self, size: int) -> dict[str, Any]:
        return {str(self.value()): self.value() for _ in range(size)}

    def extension(self, size: int) -> Any:
        """There is one: its kind, and what is known of the unknown."""
        self._take(1 + size)
        return UNKNOWN


_EXTENSIONS: Final[Mapping[int, int]] = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_COUNTED: Final[Mapping[int, tuple[str, Callable[[_Reader, int], Any]]]] = {
    0xC7: (">B", _Reader.extension),
    0xC8: (">H", _Reader.extension),
    0xC9: (">I", _Reader.extension),
    0xD9: (">B", _Reader.text),
    0xDA: (">H", _Reader.text),
    0xDB: (">I", _Reader.text),
    0xDC: (">H", _Reader.listed),
    0xDD: (">I", _Reader.listed),
    0xDE: (">H", _Reader.mapping),
    0xDF: (">I", _Reader.mapping),
}
