"""Events of every host, damaged: one invocation that is well formed, or a refusal; never an order taken."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.bounds import LONG, attempt, fuzz
from tests.fuzz.mutations import NUMBERS, Mutated, json_junk, junk, mutated, nested, texts

from costguard.domain.errors import InvalidInputError
from costguard.faas.invocation import Host, Invocation, parse_invocation
from costguard.faas.local import context_of, invoke

NOW = datetime(2026, 3, 2, 9, 17, 42, 250_000, tzinfo=timezone.utc)
TIME = "2026-03-02T09:17:00Z"
API_GATEWAY = {
    "version": "2.0",
    "routeKey": "POST /run",
    "rawPath": "/run",
    "headers": {"content-type": "application/json"},
    "requestContext": {"http": {"method": "POST", "path": "/run"}},
    "body": '{"time": "2026-03-02T09:17:00Z"}',
    "isBase64Encoded": False,
}
EVENTS: dict[Host, dict[str, Any]] = {
    Host.LAMBDA: {
        "version": "0",
        "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": "111122223333",
        "time": TIME,
        "region": "us-east-1",
        "resources": ["arn:aws:scheduler:us-east-1:111122223333:schedule/costguard/idle_gpu"],
        "detail": "{}",
    },
    Host.FC: {"triggerTime": TIME, "triggerName": "idle_gpu", "payload": ""},
    Host.SCF: {"Type": "Timer", "TriggerName": "idle_gpu", "Time": TIME, "Message": ""},
    Host.LOCAL: {"time": TIME},
}
NOTES = {Host.LAMBDA: "detail", Host.FC: "payload", Host.SCF: "Message"}
HOSTS = st.sampled_from(list(Host))


class At:
    def now(self) -> datetime:
        return NOW

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def understood(event: object, host: Host | None, context: object = None) -> Invocation | None:
    """The invocation, checked, or None where the event was refused."""
    context = context_of(host, At()) if context is None and host is not None else context
    found = attempt(
        "events",
        lambda: parse_invocation(event, context, function="idle_gpu", now=NOW, host=host),
        InvalidInputError,
    )
    if found is not None:
        assert found.scheduled_at.tzinfo is timezone.utc
        assert 2000 <= found.scheduled_at.year <= 2999 or found.scheduled_at.year == 1999
        assert len(found.run_id) == 20
        assert found.deadline is None or found.deadline >= NOW
    return found


def handed_over(document: object, host: Host) -> object:
    """In the form of the host: Function Compute sends bytes."""
    return json.dumps(document, default=str).encode() if host is Host.FC else document


@pytest.mark.parametrize("host", list(Host))
def test_each_event_is_understood_to_begin_with(host: Host) -> None:
    found = understood(handed_over(EVENTS[host], host), host)
    assert found is not None
    assert found.scheduled_at == datetime(2026, 3, 2, 9, 17, tzinfo=timezone.utc)


@fuzz(quick=75)
@given(HOSTS.flatmap(lambda host: st.tuples(st.just(host), mutated(EVENTS[host], json_junk()))))
def test_a_damaged_event_is_refused_or_means_the_time_it_names(case: tuple[Host, Mutated]) -> None:
    """What is understood is the event's own time; a time nobody can read is never taken for now."""
    host, damaged = case
    found = understood(handed_over(damaged.document, host), host)
    if found is not None and damaged.document:
        assert not found.scheduled_at_assumed
        assert isinstance(damaged.document, dict)
        named = {damaged.document.get(key) for key in ("time", "triggerTime", "Time") if key in damaged.document}
        assert all(isinstance(each, str) for each in named)


@fuzz(quick=40)
@given(HOSTS, st.sampled_from([*Host, None]), st.one_of(junk(), texts(), st.binary(max_size=200)))
def test_anything_as_an_event_is_refused_or_empty(host: Host, told: Host | None, event: Any) -> None:
    context = context_of(host, At())
    for handed in (event, handed_over(event, Host.FC)):
        found = understood(handed, told, context)
        empty = handed in ({}, b"", b"{}") or (isinstance(handed, bytes) and not handed.strip())
        assert found is None or empty, "an invocation out of nothing"


@fuzz(quick=30)
@given(st.sampled_from(list(NOTES)), st.dictionaries(texts(), junk(), min_size=1, max_size=2), st.booleans())
def test_orders_in_the_free_part_of_an_event_are_refused(host: Host, orders: dict[str, Any], as_text: bool) -> None:  # noqa: FBT001
    """A timer that says `{"dry_run": true}` expects to be obeyed; running anyway would be dangerous."""
    note = json.dumps(orders, default=str) if as_text else orders
    assert understood(handed_over({**EVENTS[host], NOTES[host]: note}, host), host) is None


@fuzz(quick=20)
@given(mutated(API_GATEWAY), HOSTS)
def test_a_request_of_an_api_gateway_is_never_a_timer(damaged: Mutated, host: Host) -> None:
    document = damaged.document
    assert understood(handed_over(document, host), host) is None or not document


LIMITS: list[Any] = [*NUMBERS, 10**5000, "9" * 5000, "900", "٣", "-1", "", None, True, [], {}, b"1"]


@fuzz(quick=40)
@given(st.sampled_from(LIMITS), st.sampled_from(LIMITS))
def test_whatever_a_host_says_of_its_limits_the_deadline_is_not_before_now(limit: Any, request_id: Any) -> None:
    contexts = {
        Host.LAMBDA: SimpleNamespace(get_remaining_time_in_millis=lambda: limit, aws_request_id=request_id),
        Host.FC: SimpleNamespace(function=SimpleNamespace(timeout=limit), request_id=request_id),
        Host.SCF: {"time_limit_in_ms": limit, "request_id": request_id},
    }
    for host, context in contexts.items():
        found = understood(handed_over(EVENTS[host], host), host, context)
        assert found is not None
        if isinstance(limit, int) and not isinstance(limit, bool) and limit <= 0:
            assert found.deadline == NOW, "nothing left is not no limit"


BOMBS: dict[str, bytes] = {
    "lists": b"[" * 60_000,
    "closed lists": b"[" * 30_000 + b"]" * 30_000,
    "objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "time in lists": b'{"triggerTime":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "integer": b'{"triggerTime":' + b"9" * 60_000 + b"}",
    "integer of 4000 digits": b'{"triggerTime":' + b"9" * 4000 + b"}",
    "float": b'{"triggerTime": 1e' + b"9" * 60_000 + b"}",
    "keys": json.dumps({f"k{number}": 1 for number in range(6000)}).encode(),
    "key": json.dumps({"k" * 60_000: 1}).encode(),
    "same key": b"{" + b",".join([b'"triggerTime": 1'] * 3000) + b"}",
    "payload of lists": json.dumps({**EVENTS[Host.FC], "payload": "[" * 60_000}).encode(),
    "payload of closed lists": json.dumps({**EVENTS[Host.FC], "payload": "[" * 30_000 + "]" * 30_000}).encode(),
    "payload is an integer": json.dumps({**EVENTS[Host.FC], "payload": "[" + "9" * 60_000 + "]"}).encode(),
    "half surrogate": b'{"\\ud800": 1}',
    "escape": b'{"\\u001b[31m": 1}',
    "direction": '{"\u202e": 1}'.encode(),
    "utf-16": '{"time": "x"}'.encode("utf-16"),
    "cut character": '{"é'.encode()[:-1],
    "nan": b'{"triggerTime": NaN}',
}


@pytest.mark.parametrize("name", sorted(BOMBS))
def test_a_bomb_is_refused_at_once(name: str) -> None:
    raw = BOMBS[name]
    assert understood(raw, Host.FC) is None or name == "payload of lists"  # a note: no JSON at all
    outcome = attempt(
        "events", lambda: invoke(lambda event, _: {"event": event}, raw, At()), InvalidInputError, measure=LONG
    )
    assert outcome is None or set(outcome) == {"event"}


def test_a_body_over_the_limit_is_refused_unread() -> None:
    assert understood(b" " * 1_000_001, Host.FC) is None
    assert understood({10**5000: 1, "a": nested(200)}, Host.LOCAL) is None


@fuzz(quick=30)
@given(st.datetimes(min_value=datetime(1999, 12, 30), max_value=datetime(3000, 1, 3)), st.integers(-1439, 1439))  # noqa: DTZ001
def test_a_time_with_an_offset_means_the_same_moment_on_every_host(moment: datetime, minutes: int) -> None:
    stamp = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)), microsecond=0).isoformat()
    keys = {Host.LAMBDA: "time", Host.FC: "triggerTime", Host.SCF: "Time", Host.LOCAL: "time"}
    found = {host: understood(handed_over({**EVENTS[host], key: stamp}, host), host) for host, key in keys.items()}
    runs = {invocation.run_id if invocation else "" for invocation in found.values()}
    assert len(runs) == 1
