"""Tags that a controller of instances gives itself away by."""

from __future__ import annotations

from collections.abc import Mapping


def tag_value(pattern: str, tags: Mapping[str, str]) -> str | None:
    """What a tag says, or its name where it is empty; `pattern` ending in `*` stands for what follows; None without."""
    if not pattern.endswith("*"):
        value = tags.get(pattern)
        return None if value is None else value or pattern
    prefix = pattern[:-1]
    found = sorted(tag for tag in tags if tag.startswith(prefix))
    return (found[0][len(prefix) :] or prefix) if found else None
