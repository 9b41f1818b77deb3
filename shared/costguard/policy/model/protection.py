"""Tags that keep an instance from being touched. In doubt they protect. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta, timezone

from costguard.domain.reasons import Reason, ReasonCode
from costguard.guards.rules.common import KEEP_TAG, Protection
from costguard.guards.rules.spelling import folded, spelling
from costguard.policy.syntax.moments import parse_date, parse_moment

_DENIALS = frozenset({"false", "no", "0", "off"})
_KEEP_TAG = spelling(KEEP_TAG)
_FAR_AHEAD = datetime(9000, 1, 1, tzinfo=timezone.utc)  # the last day of 9999 has no tomorrow in other zones
_LAST_ZONE_ON_EARTH = timezone(timedelta(hours=-12))


def protected_by_tag(tags: Mapping[str, str], protection: Protection, now: datetime) -> Reason | None:
    """The first tag, by name, that protects at `now`; None when none does.

    A protection tag protects whatever its value, also empty, unless it says `false`, `no`, `0` or `off`.
    An expiry tag protects until its moment, a bare date through the end of that day everywhere on Earth;
    what is not a date, or a time without offset, protects. A controller's tag does whatever it says.
    A Keep written as a tag is heeded whatever the policy says, and named where nothing else protects.
    """
    names = _spellings(protection.tag_names)
    expiry_names = _spellings(protection.expiry_tag_names)
    for key in sorted(tags):
        name, value = spelling(key), folded(tags[key])
        if name in names and value not in _DENIALS:
            return Reason(ReasonCode.PROTECTED_TAG, {"tag": key, "value": tags[key]})
        if name not in expiry_names and name != _KEEP_TAG:
            continue
        if _end(value) is None:
            return Reason(ReasonCode.PROTECTED_TAG, {"tag": key, "value": tags[key], "unread": key})
        if name != _KEEP_TAG and not _expired(value, now):
            return Reason(ReasonCode.PROTECTED_TAG, {"tag": key, "value": tags[key]})
    return _run_by_a_controller(tags, protection.controller_tags) or _kept(tags, now)


def kept_until(tags: Mapping[str, str], now: datetime) -> datetime | None:
    """When the last Keep ends that is written in the tags, in whichever spelling; None where none holds at `now`."""
    return max((until for until, _ in _keeps(tags, now)), default=None)


def _kept(tags: Mapping[str, str], now: datetime) -> Reason | None:
    keeps = sorted(_keeps(tags, now))
    if not keeps:
        return None
    until, key = keeps[-1]
    return Reason(ReasonCode.KEPT_BY_TAG, {"tag": key, "until": until.isoformat(timespec="minutes")})


def _keeps(tags: Mapping[str, str], now: datetime) -> Iterator[tuple[datetime, str]]:
    for key in sorted(tags):
        value = folded(tags[key])
        until = _end(value) if spelling(key) == _KEEP_TAG else None
        if until is not None and not _expired(value, now):
            yield min(until, _FAR_AHEAD).astimezone(timezone.utc), key


def _run_by_a_controller(tags: Mapping[str, str], wanted: Iterable[str]) -> Reason | None:
    whole = _spellings(name for name in wanted if not name.endswith("*"))
    begun = tuple(_spellings(name[:-1] for name in wanted if name.endswith("*")))
    for key in sorted(tags):
        name = spelling(key)
        if name in whole or name.startswith(begun):
            return Reason(ReasonCode.CONTROLLER, {"manager": f"{key} {tags[key]}".strip()})
    return None


def _spellings(names: Iterable[str]) -> frozenset[str]:
    return frozenset(found for found in map(spelling, names) if found)


def _expired(value: str, now: datetime) -> bool:
    end = _end(value)
    return end is not None and (now >= end if parse_date(value) is not None else now > end)


def _end(value: str) -> datetime | None:
    """When what is written is over; None where it cannot be read."""
    day = parse_date(value)
    if day is not None:
        return _end_of_day(day)
    moment = parse_moment(value.upper())
    return moment if moment is not None and moment.utcoffset() is not None else None


def _end_of_day(day: date) -> datetime:
    """When `day` is over in the last time zone; the very last day never ends."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=_LAST_ZONE_ON_EARTH)
    try:
        return midnight + timedelta(days=1)
    except OverflowError:
        return datetime.max.replace(tzinfo=timezone.utc)
