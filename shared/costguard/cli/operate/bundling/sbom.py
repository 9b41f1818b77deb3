"""The bill of materials of one bundle: CycloneDX 1.6 in JSON, without times, so that it never differs either. Pure.

https://cyclonedx.org/docs/1.6/json/
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from typing import Any

from costguard.cli.operate.bundling.locks import Pin

_SPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://cyclonedx.org/")
_LONGEST_NAME = 80  # a longer "License" is the licence's own text


@dataclass(frozen=True, slots=True)
class Part:
    """One package as it ships: the wheel's hash, and what its metadata tell of licences."""

    pin: Pin
    sha256: str
    metadata: str
    narrowed: bool = False


@dataclass(frozen=True, slots=True)
class Whole:
    """The bundle. `built_with` tells what compiled it, empty where nothing did."""

    function: str
    host: str
    python: str
    arch: str
    ledger: str
    version: str
    zip_sha256: str
    built_with: str


def bill_of(whole: Whole, parts: Sequence[Part]) -> str:
    """The document's text."""
    root = f"costguard-{whole.function}@{whole.version}"
    refs = {part.pin.name: _purl(part.pin) for part in parts}
    wants: dict[str, list[str]] = {root: [], **{ref: [] for ref in refs.values()}}
    for part in parts:
        for asker in part.pin.asked_by:
            if asker in refs or not asker:
                wants[refs.get(asker, root)].append(refs[part.pin.name])
    about = {
        "host": whole.host,
        "python": whole.python,
        "architecture": whole.arch,
        "ledger": whole.ledger,
        "compiled-with": whole.built_with or "nothing",
    }
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_SPACE, whole.zip_sha256)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": f"costguard-{whole.function}",
                "version": whole.version,
                "hashes": [_sha256(whole.zip_sha256)],
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "properties": [{"name": f"costguard:{name}", "value": value} for name, value in about.items()],
            }
        },
        "components": [_component(part) for part in parts],
        "dependencies": [{"ref": ref, "dependsOn": sorted(wanted)} for ref, wanted in sorted(wants.items())],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _component(part: Part) -> Mapping[str, Any]:
    """The hash is that of the wheel as published; files that cannot be reached are left out of the bundle."""
    told = HeaderParser().parsestr(part.metadata)
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": _purl(part.pin),
        "name": part.pin.name,
        "version": part.pin.version,
        "hashes": [_sha256(part.sha256)],
        "purl": _purl(part.pin),
    }
    summary = str(told.get("Summary") or "").strip()
    licences = _licences(told)
    component |= {"description": summary} if summary else {}
    component |= {"licenses": licences} if licences else {}
    if part.narrowed:
        component["properties"] = [{"name": "costguard:left-out", "value": "files that no function can reach"}]
    return component


def _licences(told: Any) -> list[Mapping[str, Any]]:
    """An SPDX expression where the package has one, else what it wrote, else its classifiers."""
    expression = str(told.get("License-Expression") or "").strip()
    if expression:
        return [{"expression": expression}]
    named = str(told.get("License") or "").strip()
    if named and len(named) <= _LONGEST_NAME and "\n" not in named:
        return [{"license": {"name": named}}]
    prefix = "License :: "
    found = [value.rpartition(" :: ")[2] for value in told.get_all("Classifier", []) if value.startswith(prefix)]
    return [{"license": {"name": name}} for name in sorted(set(found))]


def _purl(pin: Pin) -> str:
    return f"pkg:pypi/{pin.name}@{pin.version}"


def _sha256(digest: str) -> Mapping[str, str]:
    return {"alg": "SHA-256", "content": digest}
