"""Times as each part of Alibaba Cloud writes them: UTC, to the minute or to the second. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from costguard.providers.kit.core.fields import text

# DescribeInstances tells minutes, disks and snapshots seconds; the documents give some fields both ways
_FORM = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,6})?)?Z", re.ASCII)


def time_of(fields: Mapping[str, Any], key: str) -> datetime | None:
    """A time; None where it is absent or empty.

    Raises:
        ValueError: another form.
    """
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
