"""The AWS SDK's API models, narrowed to the operations that are ever called: EC2's whole one is 4 MB to read.

The program's own loader narrows them again when it reads them, so that a whole model does the same, only later.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from typing import Any

from costguard.providers.aws.iam.permissions import ALL_OPERATIONS

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
    ours = {name.partition(":")[2] for name in ALL_OPERATIONS if name.startswith(f"{service}:")}
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
