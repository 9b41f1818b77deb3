"""Compiled files of a bundle: made for the processor, the Python and the C library that its host has?"""

from __future__ import annotations

import re
import struct
import zipfile
from pathlib import Path

from tests.bundles.reporting import UnexpectedError

from costguard.cli.operate.bundling.recipes import Arch, Recipe

_ELF = b"\x7fELF\x02\x01"  # 64 bits, little end first
_MACHINES = {Arch.X86_64: 0x3E, Arch.ARM64: 0xB7}
_NAMES = {Arch.X86_64: "x86_64", Arch.ARM64: "aarch64"}
_TAGGED = re.compile(r"\.cpython-(?P<python>\d+)-(?P<machine>[a-z0-9_]+)-linux-gnu\.so$")
_GLIBC = re.compile(rb"GLIBC_2\.(\d+)")


def check_compiled(path: Path, recipe: Recipe) -> int:
    """How many compiled files the zip has.

    Raises:
        UnexpectedError: one is for another processor, another Python, or asks for a newer C library.
    """
    count = 0
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            body = archive.read(name)
            if body[:4] == _ELF[:4] or re.search(r"\.so(\.|$)", name):
                _check_one(name, body, recipe)
                count += 1
    if not count:
        raise UnexpectedError(path.name, "has no compiled file at all")
    return count


def _check_one(name: str, body: bytes, recipe: Recipe) -> None:
    machine = struct.unpack_from("<H", body, 18)[0] if body.startswith(_ELF) else None
    if machine != _MACHINES[recipe.arch]:
        raise UnexpectedError(name, "is not for", recipe.arch.value, "but for machine", machine)
    tagged = _TAGGED.search(name)
    ours = (recipe.python.replace(".", ""), _NAMES[recipe.arch])
    if tagged is not None and (tagged["python"], tagged["machine"]) != ours:
        raise UnexpectedError(name, "is not for Python", recipe.python)
    loose = ".abi3." in name or ".libs/" in name or not name.endswith(".so")
    if tagged is None and not loose:
        raise UnexpectedError(name, "does not tell its Python")
    newest = max((int(number) for number in _GLIBC.findall(body)), default=0)
    if newest > recipe.host.glibc:
        raise UnexpectedError(name, f"asks for glibc 2.{newest}, and 2.{recipe.host.glibc} is the newest allowed")
