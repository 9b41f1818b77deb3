"""Fields as Tencent's products send them, beyond what is the same everywhere: documented nulls, and tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from costguard.providers.kit.core.fields import Fields, parts, text

# Times as Tencent's products write them: what has an offset or a `Z` means it, what has none is UTC+8, anywhere.

_BEIJING = timezone(timedelta(hours=8))
_WRITTEN = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(Z|[+-]\d\d:\d\d)?",
    re.ASCII,
)


def parse_moment(written: str) -> datetime:
    """`2022-09-06T03:07:37Z`, `2022-09-06T11:07:37+08:00` and `2022-09-06 11:07:37` are one moment; given in UTC.

    Raises:
        ValueError: no time in any of these forms.
    """
    found = _WRITTEN.fullmatch(written)
    if found is None:
        message = "a time in no documented form"
        raise ValueError(message)
    zone = found[7]
    offset = _BEIJING
    if zone is not None:
        sign = -1 if zone.startswith("-") else 1
        hours, minutes = (0, 0) if zone == "Z" else (int(zone[1:3]), int(zone[4:6]))
        offset = timezone(sign * timedelta(hours=hours, minutes=minutes))
    year, month, day, hour, minute, second = (int(found[place]) for place in range(1, 7))
    return datetime(year, month, day, hour, minute, second, tzinfo=offset).astimezone(timezone.utc)


def moment(fields: Fields, key: str) -> datetime | None:
    """A time; None where absent, empty or null, which is how CVM and CBS say that there is none."""
    if fields.get(key) is None:
        return None
    written = text(fields, key)
    return parse_moment(written) if written else None


def written_local(moment: datetime) -> str:
    """`2022-09-06 11:07:37`, as bills are asked: in UTC+8, without saying so."""
    return moment.astimezone(_BEIJING).strftime("%Y-%m-%d %H:%M:%S")


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
