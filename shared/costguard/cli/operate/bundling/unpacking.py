"""Wheels unpacked into one folder, without what no function can reach, and models narrowed."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from costguard.cli.operate.bundling.deferring import DEFERRED, deferred_file
from costguard.cli.operate.bundling.faults import RefusedBundleError
from costguard.cli.operate.bundling.models import narrowed_file
from costguard.cli.operate.bundling.trimming import keeps, newest_versions
from costguard.cli.operate.bundling.wheels import Wheel


@dataclass(frozen=True, slots=True)
class Unpacked:
    """One package as it ships: its files by their path in the zip, its metadata, whether anything was left out."""

    wheel: Wheel
    files: Mapping[str, Path]
    metadata: str
    narrowed: bool


_CHANGED_MODELS = "botocore"


def unpack(wheel: Wheel, tree: Path) -> Unpacked:
    """Unpack what ships of `wheel` into `tree`, which all packages share as they would share site-packages.

    Raises:
        RefusedBundleError: a path that leads elsewhere, or one that another package has already.
    """
    files: dict[str, Path] = {}
    metadata = ""
    left_out = False
    with zipfile.ZipFile(wheel.path) as archive:
        paths = tuple(name for name in archive.namelist() if not name.endswith("/"))
        newest = newest_versions(paths) if wheel.pin.name == _CHANGED_MODELS else {}
        for path in paths:
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                message = f"{wheel.path.name}: a file of it would be written elsewhere: {path[:80]!r}"
                raise RefusedBundleError(message)
            if not keeps(wheel.pin.name, path, newest):
                left_out = left_out or ".dist-info/" not in path
                continue
            body = archive.read(path)
            if path.endswith(".dist-info/METADATA"):
                metadata = body.decode("utf-8", "replace")
            name, body = _changed(wheel, path, body)
            target = tree / name
            if target.exists():
                message = f"{wheel.path.name}: {name} is in another package as well"
                raise RefusedBundleError(message)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(body)
            files[name] = target
    return Unpacked(wheel, files, metadata, left_out)


def _changed(wheel: Wheel, path: str, body: bytes) -> tuple[str, bytes]:
    """The file as it ships, and its path.

    Raises:
        RefusedBundleError: a package cannot be spared any more, though it is not there.
    """
    name = wheel.pin.name
    if name == _CHANGED_MODELS:
        return narrowed_file(path, body) or (path, body)
    if name in DEFERRED and path == DEFERRED[name].path:
        late = deferred_file(name, path, body)
        if late is None:
            message = f"{wheel.path.name}: {path} imports {DEFERRED[name].spares} in another way than is known"
            raise RefusedBundleError(message)
        return path, late
    return path, body
