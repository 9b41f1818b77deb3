"""HTTP on three hosts: the request byte for byte, the reply in the host's form, and nothing told of what went wrong."""

from __future__ import annotations

import base64
import io
import json
import logging
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from costguard.adapters.notifiers.slack.requests import verify
from costguard.domain.errors import InvalidInputError, UnavailableError
from costguard.faas.handler import build_http_handler
from costguard.faas.http import LARGEST_BODY, HttpReply, HttpRequest, TooLargeError, read_request, write_reply
from costguard.faas.invocation import Host
from costguard.faas.local import context_of, host_of, invoke, signed_event
from costguard.ports import Clock
from costguard.settings import Secret, Settings

ROOT = Path(__file__).parents[2]
HOSTS = (Host.LAMBDA, Host.FC, Host.SCF)
NOW = datetime(2026, 3, 2, 9, 17, 42, tzinfo=timezone.utc)
SECRET = "made-up-signing-secret-0123456789"


class Still:
    def now(self) -> datetime:
        return NOW

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


@pytest.fixture(autouse=True)
def _logging_left_as_it_was() -> Iterator[None]:
    logger, root = logging.getLogger("costguard"), logging.getLogger()
    before = (logger.handlers[:], logger.propagate, logger.level, root.level)
    yield
    logger.handlers[:], logger.propagate, level, root_level = before
    logger.setLevel(level)
    root.setLevel(root_level)


def sample(host: Host) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / f"events/{host.value}/slack_actions.json").read_bytes())
    return document


def as_event(host: Host, document: Any) -> Any:
    return json.dumps(document).encode() if host is Host.FC else document


@pytest.mark.parametrize("host", HOSTS)
def test_each_hosts_request_is_read_alike(host: Host) -> None:
    request = read_request(as_event(host, sample(host)), host)

    assert (request.method, request.path, request.query) == ("POST", "/slack", "")
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert request.body.startswith(b"token=sandbox-verification-token&team_id=T0SANDBOX&")
    assert host_of(sample(host)) is host


@pytest.mark.parametrize("host", HOSTS)
def test_a_body_is_the_bytes_that_were_sent(host: Host) -> None:
    """What is signed is bytes: a body decoded and encoded again is another."""
    raw = "a=+%2B&实例=\r\n".encode()
    document = {**sample(host), "body": raw.decode(), "isBase64Encoded": False}
    assert read_request(as_event(host, document), host).body == raw
    document = {**sample(host), "body": base64.b64encode(b"\xff\x00").decode(), "isBase64Encoded": True}
    assert read_request(as_event(host, document), host).body == b"\xff\x00"


@pytest.mark.parametrize(
    ("host", "changes", "query"),
    [
        (Host.LAMBDA, {"rawQueryString": "t=a-b_c"}, "t=a-b_c"),
        (Host.FC, {"queryParameters": {"t": "a-b_c"}}, "t=a-b_c"),
        (Host.SCF, {"queryString": {"t": "a b"}}, "t=a+b"),
        (Host.SCF, {"queryString": ""}, ""),
    ],
)
def test_the_query_is_as_an_address_has_it(host: Host, changes: dict[str, Any], query: str) -> None:
    assert read_request(as_event(host, {**sample(host), **changes}), host).query == query


def test_two_headers_of_one_name_are_neither() -> None:
    document = sample(Host.LAMBDA)
    document["headers"] |= {"X-Slack-Signature": "v0=1", "x-slack-signature": "v0=2"}
    assert read_request(document, Host.LAMBDA).headers["x-slack-signature"] == "v0=2,v0=1"


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(
    "changes",
    [
        {"headers": None},
        {"headers": {"a": ["b"]}},
        {"headers": {"a": "b" * 20_000}},
        {"headers": {str(number): "" for number in range(201)}},
        {"body": {"a": 1}},
        {"body": "\ud800"},
        {"body": "not base64!", "isBase64Encoded": True},
        {"isBase64Encoded": "true"},
        {"rawPath": None, "path": None},
        {"rawPath": "/" * 3000, "path": "/" * 3000},
        {"httpMethod": "BREW", "requestContext": {"http": {"method": "BREW"}}},
        {"httpMethod": None, "requestContext": None},
        {"rawQueryString": 1, "queryParameters": {"a": 1}, "queryString": [1]},
    ],
)
def test_what_no_host_sends_is_refused_by_its_form(host: Host, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError) as told:
        read_request(as_event(host, {**sample(host), **changes}), host)
    assert "bbbb" not in str(told.value)


@pytest.mark.parametrize("event", [None, b"", b"[1]", b"\xff", b"[" * 100_000, {"Records": []}, 7])
def test_what_is_no_request_is_refused(event: Any) -> None:
    with pytest.raises(InvalidInputError):
        read_request(event, Host.FC if isinstance(event, bytes) else Host.LAMBDA)


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_too_large_is_told_apart(host: Host) -> None:
    body = base64.b64encode(b"a" * (LARGEST_BODY + 1)).decode()
    with pytest.raises(TooLargeError):
        read_request(as_event(host, {**sample(host), "body": body, "isBase64Encoded": True}), host)
    with pytest.raises(TooLargeError):
        read_request(as_event(host, {**sample(host), "body": body * 4}), host)


def test_a_reply_has_the_form_its_host_documents() -> None:
    reply = HttpReply(200, "实例", headers={"Allow": "POST"})
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Allow": "POST",
    }
    same = {"statusCode": 200, "headers": headers, "body": "实例"}
    assert write_reply(reply, Host.SCF) == same
    assert write_reply(reply, Host.LAMBDA) == write_reply(reply, Host.FC) == {**same, "isBase64Encoded": False}


def handled(event: Any, host: Host, answer: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    stream = io.StringIO()
    settings = Settings(slack_signing_secret=Secret(SECRET))
    handler = build_http_handler(
        "slack_actions", answer=answer, settings=lambda: settings, clock=Still(), stream=stream
    )
    told: dict[str, Any] = handler(event, context_of(host, Still()))
    return told, [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize("host", HOSTS)
def test_a_request_is_answered_and_logged_without_what_it_said(host: Host) -> None:
    def answer(request: HttpRequest, settings: Settings, clock: Clock) -> HttpReply:
        assert (request.path, clock.now()) == ("/slack", NOW)
        return HttpReply(201, settings.language)

    told, lines = handled(as_event(host, sample(host)), host, answer)

    assert (told["statusCode"], told["body"]) == (201, "en")
    (line,) = lines
    assert (line["message"], line["host"], line["function"]) == ("request answered", host.value, "slack_actions")
    assert (line["method"], line["path"], line["status"]) == ("POST", "/slack", 201)
    assert "T0SANDBOX" not in json.dumps(lines)


@pytest.mark.parametrize("host", HOSTS)
def test_what_goes_wrong_is_logged_and_never_told(host: Host) -> None:
    """SCF writes a traceback into the answer of a function that raises."""

    def answer(*_: object) -> HttpReply:
        message = f"ecs:DescribeInstances refused {SECRET}"
        raise UnavailableError(message)

    told, lines = handled(as_event(host, sample(host)), host, answer)

    assert told["statusCode"] == 500
    assert told["body"] == "Costguard could not answer this just now.\nCostguard 暂时无法处理。\n"
    assert lines[-1]["message"] == "request failed"
    assert "DescribeInstances" in lines[-1]["exception"]
    assert SECRET not in json.dumps(lines)


@pytest.mark.parametrize("host", HOSTS)
def test_an_event_that_is_no_request_is_a_polite_400(host: Host) -> None:
    told, lines = handled(as_event(host, {"Records": []}), host, None)
    assert told["statusCode"] == 400
    assert "Records" not in told["body"]
    assert lines[-1]["message"] == "request refused"


def test_a_large_request_is_a_413() -> None:
    told, _ = handled({**sample(Host.SCF), "body": "a" * 3_000_000}, Host.SCF, None)
    assert told["statusCode"] == 413


def test_wrong_settings_are_a_500_too() -> None:
    def broken() -> Settings:
        raise InvalidInputError("environment: COSTGUARD_PAUSE is no setting")

    handler = build_http_handler("slack_actions", settings=broken, clock=Still(), stream=io.StringIO())
    told = handler(sample(Host.LAMBDA), context_of(Host.LAMBDA, Still()))
    assert told["statusCode"] == 500
    assert "COSTGUARD" not in str(told["body"]).upper().replace("COSTGUARD COULD", "").replace("COSTGUARD 暂", "")


def test_a_function_that_answers_no_requests_says_so_in_the_log() -> None:
    stream = io.StringIO()
    handler = build_http_handler("idle_gpu", settings=Settings, clock=Still(), stream=stream)
    assert handler(sample(Host.LAMBDA), context_of(Host.LAMBDA, Still()))["statusCode"] == 500
    assert "answers requests" in stream.getvalue()


@pytest.mark.parametrize("host", HOSTS)
def test_a_sample_is_signed_when_it_is_called(host: Host) -> None:
    """A signature is good for five minutes, so that none can stand in a file."""
    event = signed_event(json.dumps(sample(host)).encode(), SECRET, NOW)
    request = read_request(event if host is Host.FC else json.loads(event), host)
    assert verify(request.headers, request.body, SECRET, NOW).retried is False
    timer = b'{"time": "2026-03-02T09:17:00Z"}'
    assert signed_event(timer, SECRET, NOW) is timer


@pytest.mark.parametrize("host", HOSTS)
def test_by_hand_the_host_is_told_by_the_requests_form(host: Host) -> None:
    seen: list[HttpRequest] = []

    def answer(request: HttpRequest, _settings: Settings, _clock: Clock) -> HttpReply:
        seen.append(request)
        return HttpReply(200)

    handler = build_http_handler("slack_actions", answer=answer, settings=Settings, clock=Still(), stream=io.StringIO())
    told = invoke(handler, json.dumps(sample(host)).encode(), Still())
    assert (told["statusCode"], len(seen)) == (200, 1)
    assert ("isBase64Encoded" in told) is (host is not Host.SCF)
