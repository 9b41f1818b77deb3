"""The events of the three hosts' timers, read strictly. Pure.

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

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from typing_extensions import assert_never

from costguard.domain.errors import InvalidInputError
from costguard.policy.syntax.moments import parse_moment
from costguard.policy.syntax.problems import printable

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
