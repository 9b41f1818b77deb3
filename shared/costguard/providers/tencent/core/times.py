"""Times as Tencent's products write them: what has an offset or a `Z` means it, what has none is UTC+8, anywhere."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from costguard.providers.kit.core.fields import Fields, text

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
    """A time; None where absent, empty or null, which is how CVM and CBS say that there is none.

    Raises:
        ValueError, TypeError: it is no time.
    """
    if fields.get(key) is None:
        return None
    written = text(fields, key)
    return parse_moment(written) if written else None


def written_local(moment: datetime) -> str:
    """`2022-09-06 11:07:37`, as bills are asked: in UTC+8, without saying so."""
    return moment.astimezone(_BEIJING).strftime("%Y-%m-%d %H:%M:%S")
