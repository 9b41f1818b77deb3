"""The HTTP server that a container image starts where the platform's own runtime is too old or missing.

* fc: `POST /invoke` with the event as its body; what comes over an HTTP trigger arrives as it was sent. Headers
  `x-fc-…` tell of the call, the role's keys among them; answers carry `x-fc-status`: 200, or 404 for an error.
  (Function Compute, "Code development for Custom Container runtimes", "Context and log format of custom runtimes")
* scf: `POST /event-invoke` with the event as its body; a web function's requests arrive as they were sent. Headers
  `X-Scf-…` tell of the call, the role's keys among them. (SCF, "WebServer Image Function")

No header of a platform's own reaches a function as part of a request: keys are among them.

`python -m costguard.faas.container HOST FUNCTION`: HOST is fc or scf. One call at a time, as functions expect; the
platform starts another instance for the next. On Lambda the base image brings AWS's own runtime client instead.
"""

from __future__ import annotations

import argparse
import base64
import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import IO, Any
from urllib.parse import parse_qsl, urlsplit

from costguard.domain.errors import InvalidInputError
from costguard.faas.handler import Handler, build_handler, build_http_handler
from costguard.faas.invocation import Host
from costguard.settings import Settings, load_settings, process_environment

PLATFORM_HEADERS = ("x-fc-", "x-scf-")
EVENT_PATHS = {Host.FC: "/invoke", Host.SCF: "/event-invoke"}
INITIALIZE_PATHS = frozenset({"/initialize", "/pre-stop", "/pre-freeze"})
_SHORTEST_IN_MILLISECONDS = 1000
_FC_KEYS = ("access_key_id", "access_key_secret", "security_token")
_SCF_KEYS = {
    "x-scf-secret-id": "TENCENTCLOUD_SECRETID",
    "x-scf-secret-key": "TENCENTCLOUD_SECRETKEY",
    "x-scf-session-token": "TENCENTCLOUD_SESSIONTOKEN",
}


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came. Names of `headers` are in small letters; `target` has the query."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """Without the query."""
        return urlsplit(self.target).path or "/"


def is_event(received: Received, host: Host) -> bool:
    """Whether the platform hands an event over, rather than what somebody sent.

    FC says which in a header that nobody outside can send.
    """
    told = received.headers.get("x-fc-control-path", "") if host is Host.FC else ""
    return received.method == "POST" and (told or received.path) == EVENT_PATHS[host]


def request_id(received: Received, host: Host) -> str:
    """The platform's name for this call."""
    return received.headers.get(f"x-{host.value}-request-id", "")


def event_of(received: Received, host: Host) -> object:
    """What the platform's own runtime would hand over: bytes on FC, a dict on SCF.

    Raises:
        InvalidInputError: no JSON.
    """
    if host is Host.FC:
        return received.body
    try:
        event: object = json.loads(received.body.decode("utf-8-sig")) if received.body.strip() else {}
    except (ValueError, RecursionError) as err:
        message = f"the event is no JSON in UTF-8 ({type(err).__name__})"
        raise InvalidInputError(message) from err
    return event


def request_event(received: Received, host: Host) -> object:
    """A request from outside in the form in which the platform's own runtime would hand it over."""
    query = dict(parse_qsl(urlsplit(received.target).query, keep_blank_values=True))
    headers = {name: value for name, value in received.headers.items() if not name.startswith(PLATFORM_HEADERS)}
    body = base64.b64encode(received.body).decode()
    shared = {"headers": headers, "body": body, "isBase64Encoded": True}
    if host is Host.SCF:
        return {"httpMethod": received.method, "path": received.path, "queryString": query, **shared}
    http = {"method": received.method, "path": received.path}
    event = {"version": "v1", "rawPath": received.path, "queryParameters": query, "requestContext": {"http": http}}
    return json.dumps({**event, **shared}).encode()


def context_of(received: Received, host: Host) -> Any:
    """The context that the platform's own runtime would make of these headers."""
    headers = received.headers
    if host is Host.SCF:
        return {
            "request_id": request_id(received, host),
            "time_limit_in_ms": _milliseconds(headers.get("x-scf-timeout", "")),
            "function_name": headers.get("x-scf-name", ""),
            "tencentcloud_region": headers.get("x-scf-region", ""),
        }
    keys = {name: headers.get(f"x-fc-{name.replace('_', '-')}", "") for name in _FC_KEYS}
    return SimpleNamespace(
        request_id=request_id(received, host),
        credentials=SimpleNamespace(**keys),
        function=SimpleNamespace(
            name=headers.get("x-fc-function-name", ""), timeout=headers.get("x-fc-function-timeout", "")
        ),
        region=headers.get("x-fc-region", ""),
        account_id=headers.get("x-fc-account-id", ""),
    )


def environment_of(received: Received, host: Host) -> Mapping[str, str]:
    """What the platform's own runtime would leave in the environment for this call: its mark, region, the role's keys.

    Keys are taken whole or not at all: half of one with half of an older one would be nobody's. On SCF they are taken
    from events alone: whether somebody outside can send such headers to a web function is not documented.
    """
    headers = received.headers
    if host is Host.FC:
        told = {"FC_FUNCTION_NAME": headers.get("x-fc-function-name") or "container"}
        return {**told, "FC_REGION": headers["x-fc-region"]} if headers.get("x-fc-region") else told
    told = {"TENCENTCLOUD_RUNENV": "SCF"}
    if headers.get("x-scf-region"):
        told["TENCENTCLOUD_REGION"] = headers["x-scf-region"]
    keys = {variable: headers.get(name, "") for name, variable in _SCF_KEYS.items()}
    return {**told, **keys} if all(keys.values()) and is_event(received, host) else told


def _milliseconds(told: str) -> int | None:
    """The time allowed; None where it is not told.

    The documents name no unit. No function is given 1,000 s, so that less is seconds and more is milliseconds: where
    that is wrong the deadline is too early, which only ends a run in good time.
    """
    if not (told.isascii() and told.isdigit()):
        return None
    count = int(told)
    return count if count >= _SHORTEST_IN_MILLISECONDS else count * 1000


PORT = 9000  # both platforms' default; SCF knows no other
OVER_HTTP = frozenset({"slack_actions"})
MOST_BYTES = 6 * 1024 * 1024  # of an event; SCF allows as much, FC's timers and our requests send far less
_IDLE_SECONDS = 20 * 60  # FC asks that a connection be kept for 15 minutes
_JSON = "application/json; charset=utf-8"
_FAILED = {Host.FC: 404, Host.SCF: 500}  # FC documents 404 for a failed call, SCF any status but 200

Build = Callable[[str, Callable[[], Settings]], Handler]
"""Function, its settings at each call → what answers events."""


class Container:
    """One function behind HTTP: what to answer to one request, whatever server it came through."""

    def __init__(
        self,
        host: Host,
        function: str,
        *,
        environ: Callable[[], Mapping[str, str]] = process_environment,
        build: Build | None = None,
        log: IO[str] | None = None,
    ) -> None:
        self._host = host
        self._over_http = function in OVER_HTTP
        self._environ = environ
        self._told: Mapping[str, str] = {}
        self._one_call = ThreadPoolExecutor(1, "call")
        self._log = log or sys.stdout
        self._handler = (build or _built)(function, self._settings)

    def answer(self, received: Received) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body."""
        if is_event(received, self._host):
            return self._answer_event(received)
        if received.method == "POST" and received.path in INITIALIZE_PATHS and self._host is Host.FC:
            return 200, {"x-fc-status": "200"}, b""
        if self._over_http:
            return self._answer_request(received)
        return 404, {"Content-Type": "text/plain; charset=utf-8"}, b"not found\n"

    def close(self) -> None:
        """Wait for the call that runs, and take no other."""
        self._one_call.shutdown()

    def _answer_event(self, received: Received) -> tuple[int, Mapping[str, str], bytes]:
        called = self._one_call.submit(self._called, received, event_of)
        error = called.exception()
        if error is None:
            status, told = 200, called.result()
        else:  # logged by the handler already, and without secrets
            status, told = _FAILED[self._host], {"errorMessage": str(error), "errorType": type(error).__name__}
        extra = {"x-fc-status": str(status)} if self._host is Host.FC else {}
        return status, {"Content-Type": _JSON, **extra}, json.dumps(told, ensure_ascii=False).encode()

    def _answer_request(self, received: Received) -> tuple[int, Mapping[str, str], bytes]:
        """Handlers of requests never raise; theirs is the status, the headers and the body."""
        told = self._one_call.submit(self._called, received, request_event).result()
        return told["statusCode"], told["headers"], told["body"].encode()

    def _called(self, received: Received, read: Callable[[Received, Host], object]) -> Mapping[str, Any]:
        """The handler's answer, between the lines by which FC finds a call's log."""
        name = request_id(received, self._host)
        self._told = environment_of(received, self._host)
        self._say("Start", name)
        try:
            return self._handler(read(received, self._host), context_of(received, self._host))
        finally:
            self._say("End", name)

    def _say(self, what: str, name: str) -> None:
        print(f"{self._host.value.upper()} Invoke {what} RequestId: {name}", file=self._log, flush=True)

    def _settings(self) -> Settings:
        return load_settings({**self._environ(), **self._told})


def _built(function: str, settings: Callable[[], Settings]) -> Handler:
    build = build_http_handler if function in OVER_HTTP else build_handler
    return build(function, settings=settings)


class _Requests(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    server_version, sys_version = "costguard", ""

    def answer(self) -> None:
        """Any method, any path."""
        try:
            body = self._body()
        except ValueError:
            self.close_connection = True
            self._send(413, {}, b"")
            return
        headers: dict[str, str] = {}
        for name, value in self.headers.items():
            known = name.lower()
            headers[known] = f"{headers[known]},{value}" if known in headers else value
        self._send(*self.server.container.answer(Received(self.command, self.path, headers, body)))

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = answer  # noqa: N815 - as it looks for

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Functions log their calls themselves; a path may hold a Keep link's token."""

    def _body(self) -> bytes:
        """Raises ValueError where it is too long, or its length is not told."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return self._chunks()
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 <= length <= MOST_BYTES:
            raise ValueError(length)
        return self.rfile.read(length)

    def _chunks(self) -> bytes:
        found = b""
        while size := int(self.rfile.readline(100).partition(b";")[0], 16):
            if size < 0 or len(found) + size > MOST_BYTES:
                raise ValueError(size)
            found += self.rfile.read(size)
            self.rfile.readline(100)
        while self.rfile.readline(1000).strip():
            """Trailers are of no interest."""
        return found

    def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, container: Container, address: tuple[str, int]) -> None:
        super().__init__(address, _Requests)
        self.container = container

    def server_close(self) -> None:
        """No more connections, and no more calls."""
        super().server_close()
        self.container.close()


def serve(container: Container, address: tuple[str, int]) -> _Server:
    """A server that is bound, and serves once its `serve_forever` is called."""
    return _Server(container, address)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until the platform ends the process: by SIGTERM, after the call that runs.

    A container's first process ignores that signal otherwise, and is killed in the middle of a call.
    """
    parser = argparse.ArgumentParser(description="Serve one function to Function Compute or SCF from a container.")
    parser.add_argument("host", choices=[Host.FC.value, Host.SCF.value])
    parser.add_argument("function")
    parser.add_argument("--port", type=int, default=PORT)
    everywhere = "0.0.0.0"  # noqa: S104 - platforms reach it from outside  # nosec B104
    parser.add_argument("--bind", default=everywhere, help="both platforms reach a container from outside it")
    given = parser.parse_args(arguments)
    if not given.function.isidentifier():
        message = f"not a function's name: {given.function!r}"
        raise InvalidInputError(message)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with serve(Container(Host(given.host), given.function), (given.bind, given.port)) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
