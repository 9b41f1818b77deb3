"""What three hosts hand over becomes one invocation; anything else is refused before anything is done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from costguard.cli.act.invoke import OVER_HTTP
from costguard.domain.errors import InvalidInputError
from costguard.faas.invocation import Host, parse_invocation, recognise_host
from costguard.faas.local import context_of, host_of

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 3, 2, 9, 17, 42, 250_000, tzinfo=timezone.utc)
TIMES = datetime(2026, 3, 2, 9, 17, tzinfo=timezone.utc)


class At:
    def now(self) -> datetime:
        return NOW

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


FUNCTIONS = sorted({path.parent.name for path in (ROOT / "functions").glob("*/handler.py")} - OVER_HTTP)


def handed_over(host: Host, function: str = "idle_gpu") -> tuple[Any, Any]:
    """The shipped sample event of `host` in that host's form, and its context."""
    raw = (ROOT / "events" / host.value / f"{function}.json").read_bytes()
    return (raw if host is Host.FC else json.loads(raw)), context_of(host, At())


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("host", [Host.LAMBDA, Host.FC, Host.SCF])
def test_the_sample_event_of_each_host_is_understood(host: Host, function: str) -> None:
    event, context = handed_over(host, function)

    found = parse_invocation(event, context, function=function, now=NOW)

    assert (found.host, found.function, found.request_id) == (host, function, "by-hand")
    assert (found.scheduled_at.date(), found.scheduled_at_assumed) == (TIMES.date(), False)
    assert found.deadline == NOW + timedelta(seconds=810)  # of 900 s, 10 % are kept for reporting


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_same_scheduled_time_is_the_same_run_on_every_host(function: str) -> None:
    runs = {
        parse_invocation(*handed_over(host, function), function=function, now=NOW).run_id
        for host in (Host.LAMBDA, Host.FC, Host.SCF)
    }
    assert len(runs) == 1


def test_another_time_or_function_is_another_run() -> None:
    def run_id(function: str, time: str) -> str:
        return parse_invocation({"time": time}, None, function=function, now=NOW).run_id

    first = run_id("idle_gpu", "2026-03-02T09:17:00Z")
    assert first == run_id("idle_gpu", "2026-03-02T17:17:00+08:00")
    assert first != run_id("idle_gpu", "2026-03-02T10:17:00Z")
    assert first != run_id("budget", "2026-03-02T09:17:00Z")


def test_an_event_without_a_time_is_the_minute_of_the_clock_and_says_so() -> None:
    for event, context in (
        ({}, context_of(Host.LAMBDA, At())),
        (b"{}", context_of(Host.FC, At())),
        (b"", context_of(Host.FC, At())),
        ({}, context_of(Host.SCF, At())),
        ({}, None),
    ):
        found = parse_invocation(event, context, function="idle_gpu", now=NOW)
        assert (found.scheduled_at, found.scheduled_at_assumed) == (TIMES, True)


def test_a_rule_of_eventbridge_sends_its_detail_as_an_object() -> None:
    event = {"detail-type": "Scheduled Event", "source": "aws.events", "time": "2026-03-02T09:17:00Z", "detail": {}}
    assert parse_invocation(event, None, function="idle_gpu", now=NOW, host=Host.LAMBDA).scheduled_at == TIMES


def test_the_free_text_of_a_timer_may_be_a_note() -> None:
    event = json.dumps({"triggerTime": "2026-03-02T09:17:00Z", "triggerName": "x", "payload": "{see the wiki"}).encode()
    assert parse_invocation(event, context_of(Host.FC, At()), function="idle_gpu", now=NOW).scheduled_at == TIMES


@pytest.mark.parametrize(
    ("host", "event"),
    [
        (Host.LAMBDA, {"Records": [{"eventSource": "aws:s3"}]}),
        (Host.LAMBDA, {"detail-type": "EC2 Instance State-change Notification", "time": "2026-03-02T09:17:00Z"}),
        (Host.LAMBDA, {"source": "aws.events", "time": "2026-03-02T09:17:00Z"}),
        (Host.LAMBDA, {"detail-type": "Scheduled Event"}),
        (
            Host.LAMBDA,
            {"detail-type": "Scheduled Event", "time": "2026-03-02T09:17:00Z", "detail": '{"dry_run": true}'},
        ),
        (Host.LAMBDA, {"detail-type": "Scheduled Event", "time": "2026-03-02T09:17:00Z", "detail": {"mode": "x"}}),
        (Host.LAMBDA, {"time": "2026-03-02T09:17:00Z", "dry_run": True}),
        (Host.LAMBDA, {"time": "2026-03-02T09:17:00"}),
        (Host.LAMBDA, {"time": "yesterday"}),
        (Host.LAMBDA, {"time": "0001-01-01T00:00:00+08:00"}),
        (Host.LAMBDA, {"time": 1_772_442_000}),
        (Host.LAMBDA, {"time": None}),
        (Host.LAMBDA, {"time": ""}),
        (Host.LAMBDA, {"dry_run": True}),
        (Host.LAMBDA, ["2026-03-02T09:17:00Z"]),
        (Host.LAMBDA, None),
        (Host.LAMBDA, b"{}"),
        (Host.FC, {"triggerTime": "2026-03-02T09:17:00Z"}),
        (Host.FC, b"not JSON"),
        (Host.FC, b"\xff\xfe{}"),
        (Host.FC, b"[" * 100_000),
        (Host.FC, b"[]"),
        (Host.FC, b"null"),
        (Host.FC, b'{"triggerName": "x", "payload": ""}'),
        (Host.FC, b'{"triggerTime": "2026-03-02T09:17:00Z", "payload": "{\\"dry_run\\": true}"}'),
        (Host.FC, b'{"triggerTime": "2026-03-02T09:17:00Z", "payload": "[1]"}'),
        (Host.FC, b'{"triggerTime": "2026-03-02T09:17:00Z", "payload": 7}'),
        (Host.FC, json.dumps({"triggerTime": "2026-03-02T09:17:00Z", "payload": "[" * 50_000 + "]" * 50_000}).encode()),
        (Host.SCF, {"Type": "Timer", "Time": "2026-03-02T09:17:00Z", "Message": f'{{"dry_run": {"9" * 5000}}}'}),
        (Host.LAMBDA, {10**5000: "2026-03-02T09:17:00Z"}),
        (Host.FC, b'{"triggerTime": "2026-03-02T09:17:00Z", "isBase64Encoded": false}'),
        (Host.FC, b'{"time": "2026-03-02T09:17:00Z"}'),
        (Host.SCF, {"Type": "Cmq", "Time": "2026-03-02T09:17:00Z"}),
        (Host.SCF, {"Type": "Timer", "TriggerName": "x"}),
        (Host.SCF, {"Type": "Timer", "Time": "2026-03-02T09:17:00Z", "Message": '{"dry_run": true}'}),
        (Host.SCF, {"headers": {}, "httpMethod": "GET"}),
        (Host.LOCAL, {"triggerTime": "2026-03-02T09:17:00Z"}),
        (Host.LOCAL, "2026-03-02T09:17:00Z"),
    ],
)
def test_any_other_event_is_refused_naming_what_is_expected(host: Host, event: object) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_invocation(event, context_of(host, At()), function="idle_gpu", now=NOW, host=host)
    assert f"host {host.value} expects" in str(caught.value)
    assert "2026-01-31T09:00:00Z" in str(caught.value)


def test_a_refusal_names_the_fields_of_an_event_and_never_their_contents() -> None:
    event = {"Authorization": "a-credential", "body": "private"}
    with pytest.raises(InvalidInputError, match="an object with Authorization, body") as caught:
        parse_invocation(event, None, function="idle_gpu", now=NOW, host=Host.LAMBDA)
    assert "a-credential" not in str(caught.value)


def test_a_host_is_recognised_by_its_context_before_the_event() -> None:
    """Whoever sends events chooses their shape, not the context."""
    fake_fc: Mapping[str, str] = {"triggerTime": "2026-03-02T09:17:00Z"}
    assert recognise_host(fake_fc, context_of(Host.LAMBDA, At())) is Host.LAMBDA
    assert recognise_host(fake_fc, context_of(Host.SCF, At())) is Host.SCF
    assert recognise_host(b"{}", context_of(Host.FC, At())) is Host.FC
    assert recognise_host({}, None) is Host.LOCAL


@pytest.mark.parametrize(
    ("seconds", "usable"),
    [(900, 810.0), (200, 180.0), (60, 40.0), (30, 15.0), (3, 1.5), (0, 0.0)],
)
def test_the_deadline_leaves_time_to_report(seconds: int, usable: float) -> None:
    context = SimpleNamespace(request_id="r", function=SimpleNamespace(timeout=seconds))
    found = parse_invocation(b"{}", context, function="idle_gpu", now=NOW)
    assert found.deadline == NOW + timedelta(seconds=usable)


def test_a_host_that_is_late_leaves_no_time_rather_than_all() -> None:
    class Late:
        aws_request_id = "r"

        def get_remaining_time_in_millis(self) -> int:
            return -5

    assert parse_invocation({}, Late(), function="idle_gpu", now=NOW).deadline == NOW


def test_by_hand_there_is_no_deadline() -> None:
    assert parse_invocation({}, None, function="idle_gpu", now=NOW).deadline is None


@pytest.mark.parametrize("host", [Host.LAMBDA, Host.FC, Host.SCF])
def test_a_sample_event_tells_its_host_by_its_keys(host: Host) -> None:
    event = json.loads((ROOT / "events" / host.value / "idle_gpu.json").read_bytes())
    assert host_of(event) is host
    assert host_of({"time": "2026-03-02T09:17:00Z"}) is Host.LOCAL


@pytest.mark.parametrize("key", ["\ud800", "\x1b[31m", "\u202e", "a\nb"])
def test_the_name_of_a_field_commands_no_terminal(key: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_invocation({key: 1}, None, function="idle_gpu", now=NOW, host=Host.LOCAL)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("limit", [2**63, 10**400, pytest.param(10**5000, id="5001 digits"), "9" * 5000])
def test_a_limit_beyond_every_calendar_is_a_week(limit: object) -> None:
    context = {"time_limit_in_ms": limit, "request_id": limit}
    event = {"Type": "Timer", "TriggerName": "x", "Time": "2026-03-02T09:17:00Z", "Message": ""}
    found = parse_invocation(event, context, function="idle_gpu", now=NOW)
    assert found.deadline == NOW + timedelta(days=7) * 0.9
