"""Lock files as `infra/requirements/lock` writes them: versions, hashes, and who asked for each. Pure.

What may go wrong while a bundle is made:

CostguardError
├── FetchError      packages, or the interpreter asked for, could not be had
└── RefusedBundleError  what was had is not what was pinned, or too large; nothing was written
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from costguard.domain.errors import CostguardError, InvalidInputError

_PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9.!+_-]+)(?P<rest>.*)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_ROOT = "-r "


@dataclass(frozen=True, slots=True)
class Pin:
    """One package of a lock: `asked_by` are packages, and "" where the project itself asked."""

    name: str
    version: str
    hashes: frozenset[str]
    asked_by: frozenset[str]


def canonical(name: str) -> str:
    """A package's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(text: str, where: str) -> Mapping[str, Pin]:
    """The packages of one lock by name.

    Raises:
        InvalidInputError: a line that is no pin, or a pin without a hash or without anybody who asked for it.
    """
    found: dict[str, Pin] = {}
    for entry in _entries(text.splitlines()):
        first, *comments = entry
        match = _PIN.fullmatch(first)
        asked = _asked_by(comments)
        hashes = frozenset(_HASH.findall(match["rest"])) if match else frozenset()
        if match is None or not hashes or not asked:
            message = (
                f"{where}: not a pinned, hashed package with its reason: {first[:60]!r}; run infra/requirements/lock"
            )
            raise InvalidInputError(message)
        name = canonical(match["name"])
        found[name] = Pin(name, match["version"], hashes, asked)
    return found


def _entries(lines: Iterable[str]) -> Iterable[list[str]]:
    """Each package's line, continued ones joined, and the comment lines below it."""
    entry: list[str] = []
    continued = False
    for line in lines:
        text = line.rstrip("\\").rstrip()
        if continued:
            entry[0] += text
        elif line.startswith(" ") and entry:
            entry.append(text.strip().lstrip("#").strip())
        elif text and not text.startswith("#"):
            if entry:
                yield entry
            entry = [text]
        continued = line.endswith("\\")
    if entry:
        yield entry


def _asked_by(comments: Iterable[str]) -> frozenset[str]:
    named = (comment.removeprefix("via").strip() for comment in comments)
    return frozenset("" if name.startswith(_ROOT) else canonical(name) for name in named if name and name[:2] != "-c")


def merged(first: Mapping[str, Pin], second: Mapping[str, Pin], where: str) -> Mapping[str, Pin]:
    """Two locks as one.

    Raises:
        InvalidInputError: they pin a package to different versions.
    """
    both = dict(first)
    for name, pin in second.items():
        known = both.get(name)
        if known is not None and known.version != pin.version:
            message = f"{where}: {name} {pin.version}, but {known.version} elsewhere; run infra/requirements/lock"
            raise InvalidInputError(message)
        both[name] = pin if known is None else replace(known, asked_by=known.asked_by | pin.asked_by)
    return both


def needed(pins: Mapping[str, Pin], without: Collection[str]) -> Mapping[str, Pin]:
    """What ships where the packages in `without` do not: what the project asked for, and what that asks for in turn."""
    wanted: set[str] = set()
    asking = {""}
    while asking:
        found = {name for name, pin in pins.items() if pin.asked_by & asking} - wanted - set(without)
        wanted |= found
        asking = found
    return {name: pins[name] for name in sorted(wanted)}


def requirements_text(pins: Iterable[Pin]) -> str:
    """The pins as a requirements file for `pip --require-hashes`."""
    lines = (
        f"{pin.name}=={pin.version} " + " ".join(f"--hash=sha256:{one}" for one in sorted(pin.hashes)) for pin in pins
    )
    return "".join(f"{line}\n" for line in lines)


class FetchError(CostguardError):
    """A package could not be had: try again, or give a folder of wheels."""


class RefusedBundleError(CostguardError):
    """A hash is not the pinned one, or a bundle is over its limit. Nothing was written."""
