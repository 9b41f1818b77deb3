"""Times of a history: RFC 3339 with an offset, and nothing that leaves the zone to be guessed."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_EARLIEST, _LATEST = 2000, 2199
_KEPT = 200_000  # a month of minutes has 43,200


def parse_moment(text: str) -> datetime:
    """One time, aware.

    Raises:
        ValueError: not RFC 3339, without an offset, or not a time there is.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        message = f"{text[:60]!r} is no time; expected RFC 3339, such as 2026-11-21T09:00:00Z"
        raise ValueError(message)
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    if not offset:
        message = f"{text!r} does not say its zone; write 2026-11-21T09:00:00Z or +08:00 behind it"
        raise ValueError(message)
    if not _EARLIEST <= int(year) <= _LATEST:
        message = f"{text!r} is not of these centuries"
        raise ValueError(message)
    zone = timezone.utc
    if offset not in "Zz":
        ahead = timedelta(hours=int(offset[1:3]), minutes=int(offset[4:6]))
        zone = timezone(-ahead if offset[0] == "-" else ahead)
    microsecond = int((fraction or "0").ljust(6, "0")[:6])
    return datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), microsecond, zone)


class Moments:
    """Unix seconds by text, remembered: the same minutes come again for every series."""

    def __init__(self) -> None:
        self.known: dict[str, float] = {}

    def __getitem__(self, text: str) -> float:
        known = self.known.get(text)
        if known is None:
            known = (parse_moment(text) - _EPOCH) / timedelta(seconds=1)
            if len(self.known) >= _KEPT:
                self.known.clear()
            self.known[text] = known
        return known
