"""The published schema of CycloneDX 1.6, for tests (see `cyclonedx/NOTICE.md`)."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator
from referencing import Registry, Resource

_FOLDER = Path(__file__).with_name("cyclonedx")
_AT = "http://cyclonedx.org/schema/"


@lru_cache(maxsize=1)
def _validator() -> Draft7Validator:
    schemas = {path.name: json.loads(path.read_bytes()) for path in _FOLDER.glob("*.schema.json")}
    known = Registry().with_resources((_AT + name, Resource.from_contents(body)) for name, body in schemas.items())
    return Draft7Validator(
        schemas["bom-1.6.schema.json"], registry=known, format_checker=Draft7Validator.FORMAT_CHECKER
    )


def against_cyclonedx(bill: dict[str, Any]) -> list[str]:
    """Everything that the schema has against a bill, by its place; nothing where it is valid."""
    return [f"{error.json_path}: {error.message}" for error in _validator().iter_errors(bill)]
