"""Zips and sums with the same bytes every time: sorted names, one time, one mode."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

_BEGINNING = (1980, 1, 1, 0, 0, 0)  # the first time that a zip can tell
_UNIX = 3
_FILE_MODE = 0o100644 << 16
_LEVEL = 9


def write_zip(target: Path, files: Mapping[str, Path]) -> int:
    """Write `files`, by their names in the zip; the bytes they take unpacked."""
    unpacked = 0
    with zipfile.ZipFile(target, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _BEGINNING)
            entry.create_system, entry.external_attr = _UNIX, _FILE_MODE
            body = files[name].read_bytes()
            unpacked += len(body)
            archive.writestr(entry, body, zipfile.ZIP_DEFLATED, _LEVEL)
    return unpacked


def sha256_of(path: Path) -> str:
    """The file's hash in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as source:
        while block := source.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def sums_of(folder: Path) -> str:
    """The hashes of every bundle and its bill of materials in the folder, as `sha256sum --check` reads them."""
    names = sorted(path.name for pattern in ("*.zip", "*.cdx.json") for path in folder.glob(pattern))
    return "".join(f"{sha256_of(folder / name)}  {name}\n" for name in names)
