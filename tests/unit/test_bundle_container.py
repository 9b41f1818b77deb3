"""The server inside container images: what both platforms send to it, and what each is answered."""

from __future__ import annotations

import http.client
import io
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from typing import Any

import pytest

from costguard.domain.errors import UnavailableError
from costguard.faas.container import MOST_BYTES, Container, Received, context_of, environment_of, request_event, serve
from costguard.faas.handler import Handler, build_handler, build_http_handler
from costguard.faas.http import HttpReply, HttpRequest, read_request
from costguard.faas.invocation import Host
from costguard.ports import Clock
from costguard.settings import Settings

FC_HEADERS = {
    "x-fc-request-id": "1-67a59f35",
    "x-fc-control-path": "/invoke",
    "x-fc-function-name": "costguard-idle-gpu",
    "x-fc-function-timeout": "900",
    "x-fc-region": "cn-shanghai",
    "x-fc-access-key-id": "STS.made-up",
    "x-fc-access-key-secret": "made-up-secret",
    "x-fc-security-token": "made-up-token",
}
SCF_HEADERS = {
    "x-scf-request-id": "3fc1-01",
    "x-scf-timeout": "900",
    "x-scf-region": "ap-shanghai",
    "x-scf-secret-id": "AKID-made-up",
    "x-scf-secret-key": "made-up-secret",
    "x-scf-session-token": "made-up-token",
}
FC_EVENT = b'{"triggerTime": "2026-03-02T09:17:00Z", "triggerName": "timer", "payload": ""}'
SCF_EVENT = b'{"Type": "Timer", "TriggerName": "timer", "Time": "2026-03-02T09:17:00Z", "Message": ""}'


def summary(function: str, run_id: str, deadline: Any, settings: Settings, clock: Clock) -> Mapping[str, object]:
    """What a run would tell, with what it was given."""
    key = settings.access("alibaba" if settings.host == "fc" else "tencent").key
    return {
        "run_id": run_id,
        "function": function,
        "host": settings.host,
        "seconds_left": round((deadline - clock.now()).total_seconds()) if deadline else None,
        "key": (key.key_id, key.secret.reveal(), key.token.reveal()) if key else None,
        "region": settings.alibaba_region or settings.tencent_region,
    }


def failing(*_: object) -> Mapping[str, object]:
    raise UnavailableError("ecs:DescribeInstances: no answer")


def echo(request: HttpRequest, _settings: Settings, _clock: Clock) -> HttpReply:
    words = [request.method, request.path, request.query, request.body.decode(), *sorted(request.headers)]
    return HttpReply(201, " ".join(words), headers={"X-Told": request.headers.get("x-sent", "")})


class Rig:
    """A container, the log it wrote, and requests to it without a socket."""

    def __init__(self, host: Host, function: str, run: Any = summary) -> None:
        self.log = io.StringIO()
        self._host = host

        def build(name: str, settings: Callable[[], Settings]) -> Handler:
            if name == "slack_actions":
                return build_http_handler(name, answer=echo, settings=settings, stream=self.log)
            return build_handler(name, run=run, settings=settings, stream=self.log)

        self.container = Container(host, function, environ=dict, build=build, log=self.log)

    def close(self) -> None:
        self.container.close()

    def post(self, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Mapping[str, str], Any]:
        status, told, answer = self.container.answer(Received("POST", path, headers, body))
        return status, told, json.loads(answer) if answer.startswith(b"{") else answer.decode()


@pytest.fixture
def rig() -> Iterator[Callable[..., Rig]]:
    with ExitStack() as running:
        yield lambda *given: running.enter_context(closing(Rig(*given)))


def test_function_compute_has_its_timer_answered(rig: Callable[..., Rig]) -> None:
    status, headers, told = rig(Host.FC, "idle_gpu").post("/invoke", FC_HEADERS, FC_EVENT)

    assert (status, headers["x-fc-status"]) == (200, "200")
    assert (told["host"], told["function"], told["region"]) == ("fc", "idle_gpu", "cn-shanghai")
    assert told["scheduled_at"] == "2026-03-02T09:17:00+00:00"
    assert told["key"] == ["STS.made-up", "made-up-secret", "made-up-token"]
    assert 800 <= told["seconds_left"] <= 810


def test_scf_has_its_timer_answered_with_the_keys_of_the_call(rig: Callable[..., Rig]) -> None:
    status, headers, told = rig(Host.SCF, "idle_gpu").post("/event-invoke", SCF_HEADERS, SCF_EVENT)

    assert (status, "x-fc-status" in headers) == (200, False)
    assert (told["host"], told["region"]) == ("scf", "ap-shanghai")
    assert told["key"] == ["AKID-made-up", "made-up-secret", "made-up-token"]
    assert 800 <= told["seconds_left"] <= 810


def test_keys_of_one_call_are_gone_with_it(rig: Callable[..., Rig]) -> None:
    function = rig(Host.SCF, "idle_gpu")
    function.post("/event-invoke", SCF_HEADERS, SCF_EVENT)
    bare = {name: value for name, value in SCF_HEADERS.items() if name != "x-scf-session-token"}

    assert function.post("/event-invoke", bare, SCF_EVENT)[2]["key"] is None


@pytest.mark.parametrize(
    ("host", "path", "headers", "event", "failed"),
    [(Host.FC, "/invoke", FC_HEADERS, FC_EVENT, 404), (Host.SCF, "/event-invoke", SCF_HEADERS, SCF_EVENT, 500)],
)
def test_an_error_is_told_as_the_platform_counts_it(
    rig: Callable[..., Rig], host: Host, path: str, headers: Mapping[str, str], event: bytes, failed: int
) -> None:
    function = rig(host, "idle_gpu", failing)

    status, told_headers, told = function.post(path, headers, event)

    assert status == failed
    assert told == {"errorMessage": "ecs:DescribeInstances: no answer", "errorType": "UnavailableError"}
    assert told_headers.get("x-fc-status") == (str(failed) if host is Host.FC else None)
    assert "run failed" in function.log.getvalue()
    assert "made-up-secret" not in function.log.getvalue()


def test_an_event_that_is_no_json_is_an_error_and_the_next_call_works(rig: Callable[..., Rig]) -> None:
    function = rig(Host.SCF, "idle_gpu")
    assert function.post("/event-invoke", SCF_HEADERS, b"{")[2]["errorType"] == "InvalidInputError"
    assert function.post("/event-invoke", SCF_HEADERS, SCF_EVENT)[0] == 200


def test_a_timers_function_answers_nobody_else(rig: Callable[..., Rig]) -> None:
    assert rig(Host.SCF, "idle_gpu").post("/", SCF_HEADERS, SCF_EVENT)[0] == 404
    outside = {**FC_HEADERS, "x-fc-control-path": "/http-invoke"}
    assert rig(Host.FC, "idle_gpu").post("/invoke", outside, FC_EVENT)[0] == 404


def test_each_call_is_marked_in_the_log_as_function_compute_asks(rig: Callable[..., Rig]) -> None:
    function = rig(Host.FC, "idle_gpu")
    function.post("/initialize", FC_HEADERS, b"")
    function.post("/invoke", FC_HEADERS, FC_EVENT)
    lines = function.log.getvalue().splitlines()
    assert (lines[0], lines[-1]) == ("FC Invoke Start RequestId: 1-67a59f35", "FC Invoke End RequestId: 1-67a59f35")


@pytest.mark.parametrize("host", [Host.FC, Host.SCF])
def test_a_request_arrives_byte_for_byte_and_without_the_platforms_headers(host: Host) -> None:
    headers = {**FC_HEADERS, **SCF_HEADERS, "x-slack-signature": "v0=1"}
    body = bytes(range(256))
    event = request_event(Received("POST", "/slack?a=1&b=", headers, body), host)

    request = read_request(event, host)

    assert (request.method, request.path, request.query, request.body) == ("POST", "/slack", "a=1&b=", body)
    assert dict(request.headers) == {"x-slack-signature": "v0=1"}


def test_nobody_outside_brings_keys_to_a_web_function() -> None:
    assert environment_of(Received("POST", "/slack", SCF_HEADERS, b""), Host.SCF) == {
        "TENCENTCLOUD_RUNENV": "SCF",
        "TENCENTCLOUD_REGION": "ap-shanghai",
    }


@pytest.mark.parametrize(("told", "allowed"), [("900", 900_000), ("900000", 900_000), ("", None), ("soon", None)])
def test_the_time_allowed_is_never_read_longer_than_it_is(told: str, allowed: int | None) -> None:
    context = context_of(Received("POST", "/event-invoke", {"x-scf-timeout": told}, b""), Host.SCF)
    assert context["time_limit_in_ms"] == allowed


def test_the_server_speaks_http_over_a_socket(rig: Callable[..., Rig]) -> None:
    container = rig(Host.FC, "slack_actions").container
    with serve(container, ("127.0.0.1", 0)) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
        try:
            connection.request("POST", "/slack?x=1", iter([b"pay", b"load"]), {"X-Sent": "7"}, encode_chunked=True)
            answer = connection.getresponse()
            told = answer.read().decode()
            connection.request("HEAD", "/keep")
            head = connection.getresponse()
            nothing = head.read()
            connection.request("POST", "/slack", headers={"Content-Length": str(MOST_BYTES + 1)})
            refused = connection.getresponse().status
        finally:
            connection.close()
            server.shutdown()
            serving.join()

    assert (answer.status, answer.headers["X-Told"]) == (201, "7")
    assert told.startswith("POST /slack x=1 payload")
    assert (head.status, nothing, int(head.headers["Content-Length"]) > 0) == (201, b"", True)
    assert refused == 413
