"""The public schema of SARIF 2.1.0, as OASIS publishes it, for tests (see `oasis/NOTICE.md`)."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from jsonschema import Draft4Validator

SCHEMA = Path(__file__).with_name("oasis") / "sarif-schema-2.1.0.json"


@lru_cache(maxsize=1)
def _validator() -> Draft4Validator:
    return Draft4Validator(json.loads(SCHEMA.read_bytes()), format_checker=Draft4Validator.FORMAT_CHECKER)


def against_the_standard(log: dict[str, Any]) -> list[str]:
    """Everything that the standard has against a log, by its place; nothing where it is valid."""
    return [f"{error.json_path}: {error.message}" for error in _validator().iter_errors(log)]
