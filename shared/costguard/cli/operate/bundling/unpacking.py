"""Wheels unpacked into one folder, without what no function can reach, and models narrowed.

The program's own loader narrows them again when it reads them, so that a whole model does the same, only later.
"""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from costguard.cli.operate.bundling.locks import RefusedBundleError
from costguard.cli.operate.bundling.trimming import DEFERRED, deferred_file, keeps, newest_versions
from costguard.cli.operate.bundling.wheels import Wheel
from costguard.providers.aws.iam.permissions import KNOWN_OPERATIONS


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


_SERVICE_MODEL = "/service-2.json"
_OF_THE_SDK = frozenset({"sts", "sso", "sso-oidc", "signin"})  # its credential providers call more than the tables name


def narrowed_file(path: str, body: bytes) -> tuple[str, bytes] | None:
    """A model's new path and bytes, uncompressed; None where it stays as it is."""
    plain = path.removesuffix(".gz")
    if not plain.endswith(_SERVICE_MODEL):
        return None
    text = gzip.decompress(body) if path.endswith(".gz") else body
    narrowed = narrow(plain.split("/")[-3], json.loads(text))
    return plain, json.dumps(narrowed, ensure_ascii=False, separators=(",", ":")).encode()


def narrow(service: str, model: Mapping[str, Any]) -> Mapping[str, Any]:
    """`model` with the operations the tables name and the shapes these need; whole where they name none."""
    ours = {name.partition(":")[2] for name in KNOWN_OPERATIONS if name.startswith(f"{service}:")}
    if service in _OF_THE_SDK or not ours:
        return model
    operations = {name: told for name, told in model["operations"].items() if name in ours}
    shapes: dict[str, Any] = {}
    waiting = list(_shapes_in(operations))
    while waiting:
        name = waiting.pop()
        if name not in shapes:
            shapes[name] = model["shapes"][name]
            waiting.extend(_shapes_in(shapes[name]))
    kept = {name: shape for name, shape in model["shapes"].items() if name in shapes}
    return {**model, "operations": operations, "shapes": kept}


def _shapes_in(told: Any) -> Iterable[str]:
    """Every name that something refers to as its shape."""
    if isinstance(told, Mapping):
        for key, value in told.items():
            if key == "shape" and isinstance(value, str):
                yield value
            else:
                yield from _shapes_in(value)
    elif isinstance(told, list):
        for one in told:
            yield from _shapes_in(one)
