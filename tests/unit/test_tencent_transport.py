"""What Tencent's SDK does of its own accord, and that none of it gets through."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cloudstand.wire.messages import Answer, Ending, Request
from cloudstand.wire.server import WireServer
from costguard.domain.errors import InvalidInputError
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.tencent.core import transport as transport_module
from costguard.providers.tencent.core.transport import Reply, SendingError, Transport

KEYS = Keys("AKIDexample0000000", "a-made-up-secret", "a-made-up-token")
FAILED = {"Response": {"Error": {"Code": "RequestLimitExceeded", "Message": "slower"}, "RequestId": "r-1"}}
FINE = {"Response": {"TotalCount": 0, "InstanceSet": [], "RequestId": "r-2"}}


def told(document: Any, content_type: str = "application/json", **more: Any) -> Answer:
    return Answer(200, json.dumps(document).encode(), content_type, **more)


@contextmanager
def answering(*answers: Answer) -> Iterator[tuple[Transport, list[Request]]]:
    """A transport to a server that gives these answers in turn, the last of them for ever."""
    seen: list[Request] = []
    lock = threading.Lock()

    def application(request: Request) -> Answer:
        with lock:
            seen.append(request)
            return answers[min(len(seen), len(answers)) - 1]

    with WireServer(application, stall_seconds=5) as server:
        transport = Transport("tencent", server.url)
        try:
            yield transport, seen
        finally:
            transport.close()


def send(transport: Transport, **more: Any) -> Reply:
    more.setdefault("sending", lambda: None)
    return transport.send(KEYS, "ap-guangzhou", "cvm", "DescribeInstances", {"Limit": 1}, **more)


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/json; charset=utf-8", "text/plain", "text/html", ""]
)
def test_an_error_is_an_error_whatever_its_content_type(content_type: str) -> None:
    """The SDK takes an error that is labelled with a charset for a success."""
    with answering(told(FAILED, content_type)) as (transport, _):
        assert send(transport).error == ("RequestLimitExceeded", "slower")


@pytest.mark.parametrize(
    "error",
    [{"Code": "X"}, {"Code": 7, "Message": None}, {}, None, "broken"],
    ids=["bare", "mistyped", "empty", "null", "text"],
)
def test_an_error_without_its_parts_is_still_an_error(error: Any) -> None:
    with answering(told({"Response": {"Error": error}})) as (transport, _):
        reply = send(transport)
    assert reply.error is not None
    assert reply.error[0] in {"X", "Unknown"}


def test_an_answer_is_its_fields() -> None:
    with answering(told(FINE)) as (transport, seen):
        reply = send(transport)
    assert reply.error is None
    assert reply.fields == FINE["Response"]
    (request,) = seen
    assert request.headers["x-tc-action"] == "DescribeInstances"
    assert request.headers["x-tc-version"] == "2017-03-12"
    assert request.headers["x-tc-region"] == "ap-guangzhou"
    assert request.headers["x-tc-token"] == KEYS.token
    assert request.headers["x-tc-language"] == "en-US"
    assert "/cvm/tc3_request" in request.headers["authorization"]
    assert json.loads(request.body) == {"Limit": 1}


def test_a_limited_call_is_sent_once() -> None:
    """The SDK's retryer sends again, and raises the old error even when the new call succeeds."""
    with answering(told(FAILED), told(FINE)) as (transport, seen):
        assert send(transport).error is not None
        assert len(seen) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, b"<html>502 Bad Gateway</html>", "application/json"),
        Answer(200, b"[1, 2]"),
        Answer(200, b'{"Other": {}}'),
        Answer(200, b'{"Response": []}'),
        Answer(200, b"[" * 100_000),
        Answer(502, b"bad gateway", "text/html"),
        Answer(500, json.dumps(FINE).encode()),
        told(FINE, ending=Ending.TRUNCATED),
        told(FINE, ending=Ending.RESET),
    ],
    ids=["html", "list", "no Response", "Response a list", "nested", "502", "500 and fine", "truncated", "reset"],
)
def test_what_is_no_answer_may_have_arrived(answer: Answer) -> None:
    with answering(answer) as (transport, seen):
        with pytest.raises(SendingError) as caught:
            send(transport)
        assert caught.value.sent
        assert len(seen) == 1


def test_a_stalled_body_ends_in_time() -> None:
    with answering(told(FINE, ending=Ending.STALLED)) as (transport, _):
        begun = time.monotonic()
        with pytest.raises(SendingError) as caught:
            send(transport, seconds=0.2)
        assert time.monotonic() - begun < 1.5
        assert caught.value.sent


def test_a_dripping_body_ends_in_time() -> None:
    """The SDK's timeout is for each read: a byte now and then keeps it waiting for ever."""
    listening = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()

    def drip() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n")
            try:
                while not stopped.wait(0.02):
                    connection.sendall(b" ")
            except OSError:
                return

    dripping = threading.Thread(target=drip)
    dripping.start()
    transport = Transport("tencent", f"http://127.0.0.1:{listening.getsockname()[1]}")
    try:
        begun = time.monotonic()
        with pytest.raises(SendingError, match="in time"):
            send(transport, seconds=0.3)
        assert time.monotonic() - begun < 1.5
    finally:
        transport.close()
        stopped.set()
        dripping.join()
        listening.close()


def test_a_refused_connection_was_never_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    transport = Transport("tencent", f"http://127.0.0.1:{port}")
    with pytest.raises(SendingError) as caught:
        send(transport)
    transport.close()
    assert not caught.value.sent


def test_keys_that_are_none_were_never_sent() -> None:
    with answering(told(FINE)) as (transport, seen):
        with pytest.raises(SendingError) as caught:
            transport.send(Keys(" ", "x"), "", "sts", "GetCallerIdentity", {}, sending=lambda: None)
        assert not caught.value.sent
        assert seen == []


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://cvm.tencentcloudapi.com",
        "http://10.0.0.8:8080",
        "http://127.0.0.1.example.com",
        "http://user@127.0.0.1:80",
        "ftp://127.0.0.1",
        "127.0.0.1:8080",
        "https://stand-in.example/v1",
    ],
)
def test_secrets_leave_this_machine_by_https_only(endpoint: str) -> None:
    with pytest.raises(InvalidInputError, match="COSTGUARD_TENCENT_ENDPOINT"):
        Transport("tencent", endpoint)


@pytest.mark.parametrize("endpoint", ["", "https://stand-in.example", "http://localhost:1", "http://[::1]:8080"])
def test_https_anywhere_and_http_on_this_machine_are_fine(endpoint: str) -> None:
    transport = Transport("tencent", endpoint)
    assert transport.is_stand_in == bool(endpoint)
    transport.close()


@pytest.mark.parametrize(
    ("cloud", "host"), [("tencent", "cvm.tencentcloudapi.com"), ("tencent-intl", "cvm.intl.tencentcloudapi.com")]
)
def test_each_site_has_its_own_hosts_by_https(cloud: str, host: str) -> None:
    """Through a proxy of ours that hangs up: the request line tells where it was to go."""
    asked: list[bytes] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def refuse() -> None:
        connection, _ = listening.accept()
        with connection:
            asked.append(connection.recv(4096))

    proxy = threading.Thread(target=refuse)
    proxy.start()
    transport = Transport(cloud)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with environment(HTTPS_PROXY=address, NO_PROXY="", no_proxy=""), pytest.raises(SendingError):
        send(transport, seconds=2)
    proxy.join()
    listening.close()
    transport.close()
    assert asked[0].startswith(f"CONNECT {host}:443 ".encode())


def test_a_stand_in_on_this_machine_is_behind_no_proxy() -> None:
    dead = "http://127.0.0.1:9"
    with (
        environment(HTTP_PROXY=dead, http_proxy=dead, NO_PROXY="", no_proxy=""),
        answering(told(FINE)) as (transport, _),
    ):
        assert send(transport).error is None


def test_a_netrc_file_does_not_replace_the_signature(tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password something\n")
    netrc.chmod(0o600)
    with environment(NETRC=str(netrc)), answering(told(FINE)) as (transport, seen):
        send(transport)
    assert seen[0].headers["authorization"].startswith("TC3-HMAC-SHA256 ")


def test_the_sdk_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """At debug level it writes the Authorization header and the token."""
    caplog.set_level(logging.DEBUG)
    with answering(told(FINE)) as (transport, _):
        send(transport)
    assert KEYS.token not in caplog.text
    assert "TC3-HMAC" not in caplog.text


def test_a_deprecated_operation_leaves_the_warning_filters_alone() -> None:
    deprecated = {"Response": {**FINE["Response"], "DeprecatedWarning": "use another"}}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        before = list(warnings.filters)
        with answering(told(deprecated)) as (transport, _):
            assert send(transport).error is None
        assert warnings.filters == before


def test_a_client_serves_one_caller_at_a_time() -> None:
    busy: list[str] = []
    overlapping: list[str] = []

    with WireServer(lambda _: told(FINE), latency_seconds=0.005) as server:
        transport = Transport("tencent", server.url)

        def ask(_: int) -> None:
            with transport._lent("cvm") as client:  # noqa: SLF001 - who holds a client is what is asked
                key = str(id(client))
                (overlapping if key in busy else busy).append(key)
                assert send(transport).error is None
                busy.remove(key)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(64)))
        transport.close()
    assert overlapping == []


def test_a_change_goes_out_on_a_new_connection() -> None:
    """The other side may have closed a kept connection unseen; a change on it could not be told from a lost answer."""
    ports: list[int] = []
    body = json.dumps(FINE).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            ports.append(self.client_address[1])
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its own signature
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        transport = Transport("tencent", f"http://127.0.0.1:{server.server_address[1]}")
        for anew in (False, False, True):
            send(transport, anew=anew)
        transport.close()
        server.shutdown()
        serving.join()
    first, second, changing = ports
    assert first == second, "connections are kept"
    assert changing != second


def test_the_clock_of_whoever_answers_comes_with_the_answer() -> None:
    there = datetime(2031, 5, 6, 7, 8, 9, tzinfo=timezone.utc)
    with WireServer(lambda _: told(FINE)) as server:
        server.now = lambda: there
        transport = Transport("tencent", server.url)
        date = send(transport).date
        transport.close()
    assert date == there


def test_what_leaves_is_counted_just_before() -> None:
    arrived: list[int] = []
    with answering(told(FINE)) as (transport, seen):
        send(transport, sending=lambda: arrived.append(len(seen)))
    assert arrived == [0]


def test_the_transport_is_the_only_importer_of_the_sdk() -> None:
    folder = Path(transport_module.__file__).parent
    importers = [
        path.name for path in folder.glob("*.py") if re.search(r"(?:import|from) tencentcloud", path.read_text())
    ]
    assert importers == ["transport.py"]
