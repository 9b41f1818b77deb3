"""The HTTP server that a container image starts where the platform's own runtime is too old or missing.

`python -m costguard.faas.container HOST FUNCTION`: HOST is fc or scf. One call at a time, as functions expect; the
platform starts another instance for the next. On Lambda the base image brings AWS's own runtime client instead.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO, Any

from costguard.domain.errors import InvalidInputError
from costguard.faas.container_calls import (
    INITIALIZE_PATHS,
    Received,
    context_of,
    environment_of,
    event_of,
    is_event,
    request_event,
    request_id,
)
from costguard.faas.events import Host
from costguard.faas.handler import Handler, build_handler, build_http_handler
from costguard.settings import Settings, load_settings, process_environment

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
