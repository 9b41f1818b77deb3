"""Times as each product tells them: CVM and EIP in UTC, CBS and organisations in UTC+8 wherever they are."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from cloudstand.tencent.core.errors import bad_value

BEIJING = timezone(timedelta(hours=8))


def zulu(moment: datetime) -> str:
    """`2022-09-06T03:07:37Z`, as CVM, EIP and STS write."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def local(moment: datetime) -> str:
    """`2022-09-06 11:07:37`: UTC+8 without saying so, in every region, as CBS and organisations write."""
    return moment.astimezone(BEIJING).strftime("%Y-%m-%d %H:%M:%S")


def offset(moment: datetime) -> str:
    """`2022-09-06T11:07:37+08:00`, as the monitor writes."""
    return moment.astimezone(BEIJING).replace(microsecond=0).isoformat()


def moment_of(name: str, text: str) -> datetime:
    """A time as callers write them; without an offset it is local.

    Raises:
        ApiError: it is none.
    """
    written = re.sub(r"[zZ]$", "+00:00", text.strip()).replace(" ", "T", 1)
    try:
        found = datetime.fromisoformat(written)
    except ValueError as err:
        raise bad_value(name, f"{text} is no ISO 8601 time") from err
    return found if found.tzinfo is not None else found.replace(tzinfo=BEIJING)
