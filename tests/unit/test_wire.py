"""The server, the faults and the limits that every emulator stands on."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import urlsplit

import pytest

from cloudstand.clock import RunningClock
from cloudstand.wire.control import Control
from cloudstand.wire.faults import Fault, FaultKind, Faults
from cloudstand.wire.limits import RateLimits
from cloudstand.wire.messages import Answer, Ending, Request
from cloudstand.wire.server import WireServer
from cloudstand.wire.wsgi import serving


class Echo:
    """Answers with the request's own words, ended as told."""

    def __init__(self) -> None:
        self.ending = Ending.WHOLE
        self.seen: list[Request] = []

    def __call__(self, request: Request) -> Answer:
        self.seen.append(request)
        return Answer(200, request.body or request.query.encode(), ending=self.ending)


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def connection(echo: Echo) -> Iterator[http.client.HTTPConnection]:
    with WireServer(echo, stall_seconds=0.05) as server:
        opened = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
        try:
            yield opened
        finally:
            opened.close()


def test_one_connection_serves_many_requests(echo: Echo, connection: http.client.HTTPConnection) -> None:
    for number in range(3):
        connection.request("POST", "/there?a=b", body=str(number), headers={"X-Mine": "yes"})
        assert connection.getresponse().read() == str(number).encode()
    ports = {(one.path, one.query, one.headers["x-mine"]) for one in echo.seen}
    assert ports == {("/there", "a=b", "yes")}


def test_a_head_is_told_the_length_and_brings_no_body(echo: Echo) -> None:
    """A body would be taken for the beginning of the next answer."""
    asked = ["HEAD", "GET", "HEAD"]
    with (
        WireServer(echo) as server,
        socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), timeout=5) as sent,
    ):
        for method, close in zip(asked, ("", "", "Connection: close\r\n"), strict=True):
            sent.sendall(f"{method} /there?0123456789 HTTP/1.1\r\nHost: x\r\n{close}\r\n".encode())
        came = sent.makefile("rb").read()
    heads, bodies = zip(*(one.split(b"\r\n\r\n") for one in came.split(b"HTTP/1.1 200 OK\r\n")[1:]), strict=True)
    assert bodies == (b"", b"0123456789", b"")
    assert all(b"\r\nContent-Length: 10\r\n" in head + b"\r\n" for head in heads)
    assert [one.method for one in echo.seen] == asked


def test_a_patch_brings_its_body_and_a_delete_may_bring_none(
    echo: Echo, connection: http.client.HTTPConnection
) -> None:
    asked = [("PATCH", b"some of it"), ("DELETE", b""), ("DELETE", b"which"), ("PATCH", b"more")]
    for method, body in asked:
        connection.request(method, "/there", body=body or None)
        assert connection.getresponse().read() == body
    assert [(one.method, one.body) for one in echo.seen] == asked


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_content_ends_with_its_headers(status: int) -> None:
    with WireServer(lambda _: Answer(status, b"never sent", headers={"X-Mine": "yes"})) as server:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
        for _ in range(2):
            connection.request("DELETE", "/there")
            answer = connection.getresponse()
            assert (answer.status, answer.read(), answer.headers["X-Mine"]) == (status, b"", "yes")
            assert (answer.headers["Content-Length"], answer.headers["Content-Type"]) == (None, None)
        connection.close()


def test_a_head_is_told_what_a_wsgi_application_says_of_the_length() -> None:
    def application(_: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4096")])
        return []

    with WireServer(serving(application)) as server:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
        for _ in range(2):
            connection.request("HEAD", "/bucket/object")
            answer = connection.getresponse()
            assert (answer.headers.get_all("Content-Length"), answer.read()) == (["4096"], b"")
        connection.close()


@pytest.mark.parametrize("word", ["OPTIONS", "TRACE"])
def test_a_method_that_no_client_here_has_is_refused_at_once(
    echo: Echo, connection: http.client.HTTPConnection, word: str
) -> None:
    connection.request(word, "/there")
    assert connection.getresponse().status == 501
    assert echo.seen == []


def test_a_body_in_chunks_is_refused_and_not_taken_for_a_request(echo: Echo) -> None:
    with (
        WireServer(echo) as server,
        socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), timeout=5) as sent,
    ):
        sent.sendall(b"PUT /there HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n")
        assert sent.makefile("rb").read().startswith(b"HTTP/1.1 501")
    assert echo.seen == []


def test_a_wsgi_application_is_served_over_one_connection_too() -> None:
    asked: list[dict[str, Any]] = []

    def application(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        asked.append({**environ, "body": environ["wsgi.input"].read()})
        start_response("404 Not Found", [("Content-Type", "text/plain"), ("Content-Length", "2"), ("X-More", "yes")])
        yield b"n"
        yield b"o"

    with WireServer(serving(application)) as server:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
        for _ in range(2):
            connection.request("POST", "/a%20b?c=%2F", body="in", headers={"X-Amz-Target": "T", "Content-Type": "x/y"})
            answer = connection.getresponse()
            told = (answer.status, answer.read(), answer.headers.get_all("Content-Length"), answer.headers["X-More"])
            assert told == (404, b"no", ["2"], "yes")
        connection.close()
    words = (
        "REQUEST_METHOD",
        "PATH_INFO",
        "QUERY_STRING",
        "CONTENT_TYPE",
        "CONTENT_LENGTH",
        "HTTP_X_AMZ_TARGET",
        "body",
    )
    assert [tuple(each[word] for word in words) for each in asked] == [
        ("POST", "/a b", "c=%2F", "x/y", "2", "T", b"in")
    ] * 2


def test_a_reset_comes_before_any_byte(echo: Echo, connection: http.client.HTTPConnection) -> None:
    echo.ending = Ending.RESET
    connection.request("GET", "/?x=1")
    with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
        connection.getresponse()


@pytest.mark.parametrize("ending", [Ending.TRUNCATED, Ending.STALLED])
def test_less_comes_than_was_promised(echo: Echo, connection: http.client.HTTPConnection, ending: Ending) -> None:
    echo.ending = ending
    connection.request("POST", "/", body="0123456789")
    answer = connection.getresponse()
    assert answer.headers["Content-Length"] == "10"
    with pytest.raises(http.client.IncompleteRead):
        answer.read()


def test_a_length_that_is_none_is_refused(connection: http.client.HTTPConnection) -> None:
    connection.putrequest("POST", "/")
    connection.putheader("Content-Length", "-1")
    connection.endheaders()
    assert connection.getresponse().status == 400


def test_closing_ends_connections_that_clients_keep() -> None:
    server = WireServer(Echo())
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=5) as kept:
        kept.sendall(b"GET /?a HTTP/1.1\r\nHost: x\r\n\r\n")
        assert kept.recv(4096).startswith(b"HTTP/1.1 200")
        server.close()
        assert kept.recv(1) == b""


def test_a_fault_strikes_as_often_as_told_and_only_whom_it_means() -> None:
    faults = Faults()
    faults.add(Fault(FaultKind.REFUSED, "StopInstances", times=2, region="cn-hangzhou", code="Throttling"))
    assert faults.take("StopInstances", "1", "cn-beijing") is None
    assert faults.take("DeleteInstance", "1", "cn-hangzhou") is None
    struck = [faults.take("StopInstances", "1", "cn-hangzhou") for _ in range(3)]
    assert [one and one.code for one in struck] == ["Throttling", "Throttling", None]


def test_a_bucket_empties_and_fills_for_each_who_shares_it() -> None:
    now = [0.0]
    limits = RateLimits({"DescribeInstances": (2, 10)}, lambda: now[0])
    assert [limits.allow("DescribeInstances", "1", "a") for _ in range(3)] == [True, True, False]
    assert limits.allow("DescribeInstances", "1", "b")
    assert limits.allow("StopInstances", "1", "a")
    now[0] = 0.1
    assert [limits.allow("DescribeInstances", "1", "a") for _ in range(2)] == [True, False]
    assert limits.throttled == 2


class Moved:
    """A clock to move."""

    def __init__(self) -> None:
        self.at = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)

    def now(self) -> datetime:
        return self.at

    def advance(self, step: timedelta) -> datetime:
        self.at += step
        return self.at


def controlled(method: str, path: str, body: object = None, control: Control | None = None) -> tuple[int, Any]:
    asked = Request(method, f"/_sandbox/{path}", "", {}, b"" if body is None else json.dumps(body).encode())
    answer = (control or Control(Moved(), Faults(), []))(asked)
    return answer.status, json.loads(answer.body)


def test_a_server_with_control_keeps_the_clouds_own_paths(echo: Echo) -> None:
    with WireServer(echo) as server:
        server.control = Control(Moved(), Faults(), [])
        opened = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
        opened.request("GET", "/_sandbox/state")
        assert json.loads(opened.getresponse().read())["now"] == "2026-03-02T09:00:00+00:00"
        opened.request("POST", "/", body="the cloud's")
        assert opened.getresponse().read() == b"the cloud's"
        opened.close()


def test_time_is_moved_and_faults_are_added_from_outside() -> None:
    clock, faults = Moved(), Faults()
    control = Control(clock, faults, [])
    assert controlled("POST", "advance", {"seconds": 3600}, control)[1]["now"] == "2026-03-02T10:00:00+00:00"
    fault = {"kind": "refused", "action": "StopInstances", "times": 1, "code": "Throttling"}
    assert controlled("POST", "faults", fault, control) == (200, {"added": True})
    assert faults.take("StopInstances", "1", "r") == Fault(FaultKind.REFUSED, "StopInstances", code="Throttling")
    controlled("POST", "faults", fault, control)
    controlled("POST", "faults/clear", None, control)
    assert faults.take("StopInstances", "1", "r") is None


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("advance", {"seconds": -1}, "expected 0 to"),
        ("advance", {"seconds": True}, "expected"),
        ("advance", {"seconds": 1e300}, "expected 0 to"),
        ("advance", [], "no JSON object"),
        ("faults", {"kind": "worse"}, "expected one of refused"),
        ("faults", {"kind": "reset", "when": "now"}, "unknown when"),
        ("faults", {"kind": "reset", "times": "2"}, "times is no whole number"),
    ],
)
def test_what_control_does_not_understand_it_says(path: str, body: object, said: str) -> None:
    status, told = controlled("POST", path, body)
    assert status == 400
    assert said in told["error"]


def test_an_unknown_path_of_control_names_those_there_are() -> None:
    status, told = controlled("GET", "nowhere")
    assert status == 404
    assert "POST /_sandbox/advance" in told["error"]


def test_a_running_clock_is_real_time_and_what_was_added() -> None:
    wall = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
    clock = RunningClock(lambda: wall)
    assert clock.now() == wall
    assert clock.advance(timedelta(hours=2)) == wall + timedelta(hours=2) == clock.now()
    with pytest.raises(ValueError, match="forward only"):
        clock.advance(-timedelta(seconds=1))
