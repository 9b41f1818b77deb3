"""How this API writes lists: numbered parameters one way, lists wrapped twice the other. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from costguard.providers.kit.core.fields import Fields, cut_short, named, text

# DescribeInstances tells minutes, disks and snapshots seconds; the documents give some fields both ways
_FORM = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,6})?)?Z", re.ASCII)


def time_of(fields: Mapping[str, Any], key: str) -> datetime | None:
    """A time; None where it is absent or empty."""
    found = text(fields, key)
    if not found:
        return None
    match = _FORM.fullmatch(found)
    if match is None:
        message = f"{key} is no time"
        raise ValueError(message)
    year, month, day, hour, minute = (int(match[group]) for group in range(1, 6))
    return datetime(year, month, day, hour, minute, int(match[6] or 0), tzinfo=timezone.utc)


def needed_time(fields: Mapping[str, Any], key: str) -> datetime:
    """A time that must be there.

    Raises:
        ValueError: it is not, or of another form.
    """
    found = time_of(fields, key)
    if found is None:
        message = f"{key} is missing"
        raise ValueError(message)
    return found


def flattened(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Parameters as this API writes them: `InstanceId.1`, `Tag.1.Key`, `true`.

    Raises:
        TypeError: a value that has no such form. An empty list has none: left out, it would mean all.
    """
    flat: dict[str, str] = {}
    for name, value in parameters.items():
        if isinstance(value, bool):
            flat[name] = "true" if value else "false"
        elif isinstance(value, (str, int)):
            flat[name] = str(value)
        elif isinstance(value, (list, tuple)) and value:
            flat |= flattened({f"{name}.{number}": each for number, each in enumerate(value, start=1)})
        elif isinstance(value, Mapping) and value:
            flat |= flattened({f"{name}.{key}": each for key, each in value.items()})
        else:
            message = f"{name} is of type {type(value).__name__}, or empty"
            raise TypeError(message)
    return flat


def json_list(values: Sequence[Any]) -> str:
    """A list as the parameters take it that are JSON texts.

    Raises:
        ValueError: it is empty, which the cloud reads as a filter that nothing passes, or as none at all.
    """
    if not values:
        message = "a list without anything in it"
        raise ValueError(message)
    return json.dumps(list(values), separators=(",", ":"))


def items_in(answer: Mapping[str, Any], result_key: str, operation: str) -> list[Any]:
    """The list at `Outer.Inner`. Where there is nothing, the cloud may leave out either, or write an empty text.

    Raises:
        TruncatedReadError: something else is there.
    """
    found: Any = answer
    for key in result_key.split("."):
        if isinstance(found, Mapping):
            found = found.get(key, "")
        if found in ("", {}):
            return []
    if not isinstance(found, list):
        raise cut_short(operation, f"answered without {result_key}: not as documented", "MissingResult")
    return found


def structures_in(fields: Fields, result_key: str, operation: str) -> list[Fields]:
    """As `items_in`, where each item must be a structure.

    Raises:
        TypeError: one is not.
    """
    found = items_in(fields, result_key, operation)
    if not all(isinstance(each, Mapping) for each in found):
        message = f"{result_key} is no list of structures"
        raise TypeError(message)
    return found


def tags_of(fields: Fields, operation: str, key: str = "TagKey", value: str = "TagValue") -> dict[str, str]:
    """`Tags` as ECS writes them, or as VPC does (`Key`, `Value`).

    A name twice is no answer of a cloud, and one of the two may protect.
    """
    tags = structures_in(fields, "Tags.Tag", operation)
    found = {named(tag, key): text(tag, value) for tag in tags}
    if len(found) != len(tags):
        message = "a tag is there twice"
        raise ValueError(message)
    return found
