"""From what a host hands over to one invocation that is the same everywhere. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from typing_extensions import assert_never

from costguard.faas.events import Host, read_event

_RESERVE = timedelta(seconds=20)  # to commit, tell people and report; a Slack call alone may take 10
_RESERVE_PERCENT = 10
_LONGEST = timedelta(days=7)  # the longest timeout a host grants is a day; more is a mistake, and no calendar's end
_MOST_DIGITS = 12
_RUN_ID_CHARACTERS = 20  # 80 bits: no collision among hourly runs of any guard, ever


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of one function, whatever host made it.

    `scheduled_at`, in UTC, names the run: the same event delivered twice is the same run. Where the event has no
    time it is the clock's minute, and `scheduled_at_assumed` says so. No new work starts after `deadline`, which is
    early enough to report before the host ends the process; None means no limit.
    """

    host: Host
    function: str
    scheduled_at: datetime
    scheduled_at_assumed: bool
    deadline: datetime | None
    request_id: str

    @property
    def run_id(self) -> str:
        """The same for every delivery of the same event, another for every function and time."""
        moment = self.scheduled_at.isoformat(timespec="seconds")
        return hashlib.sha256(f"{self.function}\n{moment}".encode()).hexdigest()[:_RUN_ID_CHARACTERS]


def parse_invocation(
    event: object, context: object, *, function: str, now: datetime, host: Host | None = None
) -> Invocation:
    """Understand what a host handed over; `host` None recognises it by shape.

    Raises:
        InvalidInputError: not an event of that host's timer; names what was found and what is expected.
    """
    host = host or recognise_host(event, context)
    named = read_event(event, host)
    scheduled_at = named or now.replace(second=0, microsecond=0)
    return Invocation(
        host=host,
        function=function,
        scheduled_at=scheduled_at,
        scheduled_at_assumed=named is None,
        deadline=_deadline(context, host, now),
        request_id=request_id_of(context),
    )


def recognise_host(event: object, context: object) -> Host:
    """The host whose shape this is: by the context first, which no sender of events can choose."""
    if callable(getattr(context, "get_remaining_time_in_millis", None)):
        return Host.LAMBDA
    if isinstance(context, Mapping):
        return Host.SCF
    if isinstance(event, (bytes, bytearray)):
        return Host.FC
    return Host.LOCAL


def request_id_of(context: object) -> str:
    """The host's own name for this call; empty where it gives none. Lambda names it after AWS."""
    if isinstance(context, Mapping):
        named: object = context.get("request_id")
    else:
        named = getattr(context, "aws_request_id", None) or getattr(context, "request_id", None)
    return named if isinstance(named, str) else ""


def _deadline(context: object, host: Host, now: datetime) -> datetime | None:
    """When to stop starting work: 20 s or 10 % before the host ends the process, at most half of what is left."""
    left = _time_left(context, host)
    if left is None:
        return None
    reserve = min(max(_RESERVE, left * _RESERVE_PERCENT / 100), left / 2)
    return now + left - reserve


def _time_left(context: object, host: Host) -> timedelta | None:
    if host is Host.LAMBDA:
        ask = getattr(context, "get_remaining_time_in_millis", None)
        return _positive(ask() if callable(ask) else None, timedelta(milliseconds=1))
    if host is Host.FC:
        function = getattr(context, "function", None)
        return _positive(getattr(function, "timeout", None), timedelta(seconds=1))
    if host is Host.SCF:
        limit = context.get("time_limit_in_ms") if isinstance(context, Mapping) else None
        return _positive(limit, timedelta(milliseconds=1))
    if host is Host.LOCAL:
        return None
    assert_never(host)


def _positive(count: object, unit: timedelta) -> timedelta | None:
    """`count` units; None when the host does not say. Nothing left is zero, never no limit."""
    if isinstance(count, str) and count.isascii() and count.isdigit():
        count = int(count[:_MOST_DIGITS])
    if isinstance(count, bool) or not isinstance(count, int):
        return None
    return min(max(count, 0) * unit, _LONGEST) if count < 10**_MOST_DIGITS else _LONGEST
