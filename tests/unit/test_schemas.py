"""The schema files of JSON answers are made from the shapes that the code declares, and let nothing else through."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests import schemas


def test_schema_files_are_what_the_shapes_say() -> None:
    """`python -m tests.schemas` writes them."""
    assert schemas.outdated() == []


@pytest.mark.parametrize("name", schemas.ANSWERS)
def test_an_answer_has_every_key_of_its_shape_and_no_other(name: str) -> None:
    """A key that is dropped or added is refused at every depth."""
    schema = schemas.schema_of(name)
    for part in _objects(schema):
        assert part["additionalProperties"] is False
        assert part["required"] or not part["properties"]


def test_a_command_imports_no_shape() -> None:
    """Shapes cost pydantic; they are for type checkers and for the schema files."""
    files = [path for path in _REPORT.rglob("*.py") if path.name != "shapes.py" and path.parent != schemas.FOLDER]
    modules = [".".join(path.relative_to(_REPORT.parents[1]).with_suffix("").parts) for path in sorted(files)]
    loaded = "[one for one in sys.modules if one.endswith(('.shapes', '.schemas.values'))]"
    code = f"import sys, {', '.join(modules)}; print({loaded})"
    said = subprocess.run(  # noqa: S603 - this interpreter, and words of this file
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "[]"


_REPORT = schemas.FOLDER.parent


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if "properties" in schema and schema.get("type") == "object":
            yield schema
        for part in schema.values():
            yield from _objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _objects(part)
