"""From what a host hands over to one invocation that is the same everywhere, read strictly. Pure.

What each host hands over, and where that is documented:

* lambda: a dict. EventBridge rules and EventBridge Scheduler send `detail-type: Scheduled Event` with `time`;
  by hand `{}` or `{"time": "…Z"}`. The context is an object with `get_remaining_time_in_millis()`.
  (EventBridge user guide, "Events from scheduled rules"; Lambda developer guide, "context object in Python")
* fc: bytes of JSON, `{"triggerTime", "triggerName", "payload"}`; `payload` is text. The context is an object with
  `request_id` and `function.timeout` in seconds. (Function Compute 3.0, "Time triggers", "Context")
* scf: a dict, `{"Type": "Timer", "TriggerName", "Time", "Message"}`. The context is a dict with `request_id` and
  `time_limit_in_ms`. (SCF, "Timer trigger", "Python")
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import Any

from typing_extensions import assert_never

from costguard.domain.errors import InvalidInputError
from costguard.policy.syntax.moments import parse_moment
from costguard.policy.syntax.problems import printable
from costguard.settings import AccessKey, Secret, Settings

_SHOWN_KEYS = 8
_FIRST_YEAR, _LAST_YEAR = 2000, 2999
_AT_MOST_BYTES = 1_000_000  # timers send under 1 KB; FC and SCF allow 128 KB of payload


class Host(str, Enum):
    """What runs the function."""

    LAMBDA = "lambda"
    FC = "fc"
    SCF = "scf"
    LOCAL = "local"


EXPECTED = {
    Host.LAMBDA: 'an EventBridge event {"detail-type": "Scheduled Event", "time": "2026-01-31T09:00:00Z", …}, '
    'or by hand {"time": "2026-01-31T09:00:00Z"} or {}',
    Host.FC: 'the bytes of a timer trigger\'s event {"triggerTime": "2026-01-31T09:00:00Z", "triggerName": "…", '
    '"payload": ""}, or by hand {}',
    Host.SCF: 'a timer trigger\'s event {"Type": "Timer", "TriggerName": "…", "Time": "2026-01-31T09:00:00Z", '
    '"Message": ""}, or by hand {}',
    Host.LOCAL: '{"time": "2026-01-31T09:00:00Z"} or {}',
}
"""The events each host may hand over, in words for people."""


def read_event(event: object, host: Host) -> datetime | None:
    """The time an event of `host` was scheduled for, in UTC; None where it was sent by hand without one.

    Raises:
        InvalidInputError: not an event of that host's timer; names what was found and what is expected.
    """
    if host is Host.LAMBDA:
        return _read_lambda(_dict(event, host))
    if host is Host.FC:
        return _read_fc(_json_object(event, host))
    if host is Host.SCF:
        return _read_scf(_dict(event, host))
    if host is Host.LOCAL:
        return _read_by_hand(_dict(event, host), host)
    assert_never(host)


def _read_lambda(event: Mapping[str, Any]) -> datetime | None:
    if "detail-type" not in event and "source" not in event:
        return _read_by_hand(event, Host.LAMBDA)
    if event.get("detail-type") != "Scheduled Event":
        raise _wrong(kind_of(event), Host.LAMBDA)
    _refuse_orders(event, "detail", Host.LAMBDA)
    return _time(event, "time", Host.LAMBDA)


def _read_fc(event: Mapping[str, Any]) -> datetime | None:
    if not event:
        return None
    if "triggerTime" not in event or event.keys() - {"triggerTime", "triggerName", "payload"}:
        raise _wrong(kind_of(event), Host.FC)
    _refuse_orders(event, "payload", Host.FC)
    return _time(event, "triggerTime", Host.FC)


def _read_scf(event: Mapping[str, Any]) -> datetime | None:
    if not event:
        return None
    if event.get("Type") != "Timer" or event.keys() - {"Type", "TriggerName", "Time", "Message"}:
        raise _wrong(kind_of(event), Host.SCF)
    _refuse_orders(event, "Message", Host.SCF)
    return _time(event, "Time", Host.SCF)


def _read_by_hand(event: Mapping[str, Any], host: Host) -> datetime | None:
    if not event:
        return None
    if event.keys() != {"time"}:
        raise _wrong(kind_of(event), host)
    return _time(event, "time", host)


def _dict(event: object, host: Host) -> Mapping[str, Any]:
    if not isinstance(event, Mapping) or not all(isinstance(key, str) for key in event):
        raise _wrong(kind_of(event), host)
    return event


def _json_object(event: object, host: Host) -> Mapping[str, Any]:
    if not isinstance(event, (bytes, bytearray)) or len(event) > _AT_MOST_BYTES:
        raise _wrong(kind_of(event), host)
    try:
        decoded: object = json.loads(event.decode("utf-8-sig")) if event.strip() else {}
    except (ValueError, RecursionError) as err:  # UnicodeDecodeError and JSONDecodeError are both ValueError
        found = f"bytes that are not JSON in UTF-8 ({type(err).__name__})"
        raise _wrong(found, host) from err
    return _dict(decoded, host)


def _time(event: Mapping[str, Any], key: str, host: Host) -> datetime:
    value = event.get(key)
    moment = parse_moment(value) if isinstance(value, str) else None
    if moment is not None and moment.tzinfo is not None and _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        return moment.astimezone(timezone.utc)
    found = f"{key} {value[:40]!r}" if isinstance(value, str) else f"{key} {kind_of(value)}"
    complaint = f"{found}, which is no time with its offset"
    raise _wrong(complaint, host)


def _refuse_orders(event: Mapping[str, Any], key: str, host: Host) -> None:
    """The free part of a timer's event may be a note, but no JSON: ignoring `{"dry_run": true}` would be dangerous."""
    value = event.get(key)
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip().startswith(("{", "[")) else None
        except json.JSONDecodeError:
            value = None  # a note after all
        except (ValueError, RecursionError):
            value = {"JSON too long or deep to be read": value}  # whatever it orders
    if value:
        complaint = f"{key} {kind_of(value)}; functions take no orders from events, what to do stands in the policy"
        raise _wrong(complaint, host)


def _wrong(found: str, host: Host) -> InvalidInputError:
    return InvalidInputError(f"function event: found {found}; host {host.value} expects {EXPECTED[host]}")


def kind_of(value: object) -> str:
    """What a value is, never its contents: an event may carry anything."""
    if isinstance(value, Mapping):
        keys = sorted(printable(key[:40]) if isinstance(key, str) else f"a {type(key).__name__}" for key in value)
        shown = ", ".join(keys[:_SHOWN_KEYS]) + (", …" if len(keys) > _SHOWN_KEYS else "")
        return f"an object with {shown}" if keys else "an empty object"
    if value is None:
        return "missing"
    if value == "":
        return "empty"
    return f"of type {type(value).__name__}"


_TEMPORARY = "STS."  # how the id of every key begins that Alibaba Cloud's AssumeRole makes


def settings_of_call(settings: Settings, context: object, host: Host) -> Settings:
    """`settings`, with the keys of the function's role as this call brought them.

    Function Compute writes the role's keys into the environment when it starts an instance, and not again; they end
    after 36 hours. Its Python runtimes up to 3.10 bring the present ones with each call, in `context.credentials`.
    A key in the environment that is no role's was put there by people, and stays: with the role's key in its
    place, another account might be guarded than the one they meant.
    """
    if host is not Host.FC:
        return settings
    brought, own = _key_of(getattr(context, "credentials", None)), settings.alibaba.key
    if brought is None or (own is not None and not own.key_id.startswith(_TEMPORARY)):
        return settings
    return replace(settings, alibaba=replace(settings.alibaba, key=brought))


def _key_of(credentials: object) -> AccessKey | None:
    """A whole temporary key, or none: without a role all three parts are empty."""
    names = ("access_key_id", "access_key_secret", "security_token")
    parts = [getattr(credentials, name, None) for name in names]
    key_id, secret, token = (part.strip() if isinstance(part, str) else "" for part in parts)
    return AccessKey(key_id, Secret(secret), Secret(token)) if key_id and secret and token else None


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
