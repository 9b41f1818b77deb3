"""Fields as Tencent's products send them, beyond what is the same everywhere: documented nulls, and tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costguard.providers.kit.core.fields import Fields, parts, text


def told(fields: Mapping[str, Any], *nullable: str) -> Fields:
    """`fields` without those of `nullable` that are null: where a page says "may return null", null means absent."""
    return {key: value for key, value in fields.items() if value is not None or key not in nullable}


def tags_of(fields: Fields, key: str) -> dict[str, str]:
    """The tags under `key`, in every spelling: `Key`, `tagKey` (beside it, on real machines) and `TagKey`.

    The list must be there, if empty: a tag that was left out could be the one that protects.

    Raises:
        ValueError, TypeError: no list of tags, a tag without a name, or a name with two values.
    """
    if key not in fields:
        message = f"{key} is missing"
        raise ValueError(message)
    found: dict[str, str] = {}
    for tag in parts(fields, key):
        names = {text(tag, name) for name in ("Key", "tagKey", "TagKey") if name in tag}
        values = {text(told(tag, name), name) for name in ("Value", "tagValue", "TagValue") if name in tag}
        if len(names) != 1 or "" in names or len(values) > 1:
            message = "a tag without one name and one value"
            raise ValueError(message)
        name = names.pop()
        if name in found:
            message = "a tag is there twice"
            raise ValueError(message)
        found[name] = values.pop() if values else ""
    return found
