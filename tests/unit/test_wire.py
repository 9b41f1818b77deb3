"""The server, the faults and the limits that every emulator stands on."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from costguard.sandbox.wire.faults import Fault, FaultKind, Faults
from costguard.sandbox.wire.limits import RateLimits
from costguard.sandbox.wire.messages import Answer, Ending, Request
from costguard.sandbox.wire.server import WireServer


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
