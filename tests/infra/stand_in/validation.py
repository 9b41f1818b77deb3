"""What the published sources refuse of an argument's value; names and types Terraform holds against the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.infra.stand_in.changes import Fields, State, number
from tests.infra.stand_in.schema import Field
from tests.infra.stand_in.values import UNKNOWN

Path = tuple[str | int, ...]
Wrong = tuple[Path, str]


def wrong_values(fields: Fields, config: State) -> list[Wrong]:
    """Where, and what is wrong there; what is not known yet is not judged."""
    return [*_inside(fields, config, ()), *_together(fields, config)]


def _inside(fields: Fields, config: State, at: Path) -> Iterator[Wrong]:
    for name, field in fields.items():
        value = config.get(name)
        here = (*at, name)
        if value is None or value is UNKNOWN:
            continue
        if field.is_block and isinstance(field.of, Mapping) and isinstance(value, list):
            for position, one in enumerate(value):
                if isinstance(one, dict):
                    yield from _inside(field.of, one, (*here, position) if field.type == "list" else here)
        elif isinstance(value, list):
            yield from _of_list(field, value, here)
        else:
            yield from ((here, words) for words in _of_value(field.said, value))


def _of_list(field: Field, values: Sequence[Any], at: Path) -> Iterator[Wrong]:
    most, least = field.said.get("most", len(values)), field.said.get("least", 0)
    if not least <= len(values) <= most:
        yield at, f"takes {least} to {most} elements, not {len(values)}"
    for one in values:
        if one is not None and one is not UNKNOWN:
            yield from ((at, words) for words in _of_value(field.said.get("each", {}), one))


def _of_value(said: Mapping[str, Any], value: Any) -> Iterator[str]:
    if "values" in said and not _among(said["values"], value, any_case=said.get("any_case", False)):
        yield f"{value!r} is none of {', '.join(map(str, said['values']))}"
    if "length" in said and not said["length"][0] <= len(str(value)) <= said["length"][1]:
        yield f"has {len(str(value))} letters, and takes {said['length'][0]} to {said['length'][1]}"
    if "matches" in said and re.search(said["matches"], str(value)) is None:
        yield f"{value!r} does not match {said['matches']}"
    if said.get("json") and not _is_json(str(value)):
        yield "is not JSON"
    figure = number(value)
    if figure is None or not {"range", "step", "whole"} & set(said):
        return
    low, high = said.get("range", (None, None))
    if (low is not None and figure < low) or (high is not None and figure > high):
        yield f"{figure} is not between {low} and {high}"
    if figure % said.get("step", 1 if said.get("whole") else figure or 1):
        yield f"{figure} is no multiple of {said.get('step', 1)}"


def _among(values: Sequence[Any], value: Any, *, any_case: bool) -> bool:
    fold = str.lower if any_case else str
    return fold(str(value)) in {fold(str(one)) for one in values}


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _together(fields: Fields, config: State) -> Iterator[Wrong]:
    """Arguments of the resource itself that exclude or ask for each other."""
    given = {name for name, value in config.items() if value is not None and value != []}
    for name, field in fields.items():
        said = field.said
        if name in given:
            against = sorted(given & set(said.get("conflicts", ())))
            lacking = sorted(set(said.get("with", ())) - given)
            if against:
                yield (name,), f"conflicts with {', '.join(against)}"
            if lacking:
                yield (name,), f"is given without {', '.join(lacking)}"
        if "one_of" in said:
            of = {*said["one_of"], name}
            if len(of & given) != 1:
                yield (name,), f"one of {', '.join(sorted(of))} must be given, not {len(of & given)}"
