"""An HTTP/1.1 server on loopback with connections kept open, latency, and endings no framework would send."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

from typing_extensions import Self

from cloudstand.wire.control import PREFIX
from cloudstand.wire.messages import Answer, Ending, Request
from cloudstand.wire.watching import show

Application = Callable[[Request], Answer]

_LONGEST_BODY = 10 * 1024 * 1024
_MOST_WAITING = 512  # connections, while all threads are busy
_NO_CONTENT, _NOT_MODIFIED = 204, 304  # whose answers end with their headers (RFC 9110, 6.4.1)


class WireServer:
    """Serves `application` from threads of its own until closed. `port` 0 takes a free one, None listens nowhere.

    Whoever shares the process may ask through `answer`: where nothing listens, there is no other way in.

    `latency_seconds` is added to every answer, as distance would. Requests that arrived are counted in `requests`.
    Answers of a `cloud` are seen by those who watch (`watching.py`).
    """

    def __init__(
        self,
        application: Application,
        *,
        port: int | None = 0,
        latency_seconds: float = 0.0,
        stall_seconds: float = 30.0,
        cloud: str = "",
    ) -> None:
        self._application = application
        self._cloud = cloud
        self.now: Callable[[], datetime] | None = None  # what the Date of an answer is told by; None is the wall
        self.control: Application | None = None  # what answers under its own prefix, for tests in other languages
        self._latency = latency_seconds
        self._closing = Event()
        self._stall = stall_seconds
        self._counting = Lock()
        self.requests = 0
        self._listening: tuple[_Server, Thread] | None = None
        if port is not None:
            server = _Server(("127.0.0.1", port), self)
            thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
            self._listening = server, thread
            thread.start()

    @property
    def url(self) -> str:
        """Where it listens; empty for nowhere."""
        return "" if self._listening is None else f"http://127.0.0.1:{self._listening[0].server_address[1]}"

    def answer(self, request: Request) -> Answer:
        """The application's answer, after the distance."""
        with self._counting:
            self.requests += 1
        if self._latency > 0:
            time.sleep(self._latency)
        if self.control is not None and request.path.startswith(PREFIX):
            return self.control(request)
        answer = self._application(request)
        if self._cloud:
            show(self._cloud, request, answer)
        return answer

    def stall(self) -> None:
        """Keep a connection waiting until the server's patience ends or it closes."""
        self._closing.wait(self._stall)

    def close(self) -> None:
        """Stop serving and close every socket; may be repeated."""
        self._closing.set()
        if self._listening is not None:
            server, thread = self._listening
            server.shutdown()
            thread.join()
            server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = _MOST_WAITING

    def __init__(self, address: tuple[str, int], wire: WireServer) -> None:
        self.wire = wire
        self._open: set[socket.socket] = set()
        self._open_lock = Lock()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._open_lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._open_lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news."""

    def server_close(self) -> None:
        super().server_close()
        with self._open_lock:
            still_open = list(self._open)
        for connection in still_open:  # kept alive by clients that may never speak again
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # its client was quicker


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # one packet an answer: headers and body together

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def do_PATCH(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's own signature
        """Say nothing: the output belongs to the command line."""

    def _serve(self) -> None:
        if "Transfer-Encoding" in self.headers:  # unread, its chunks would be taken for the next request
            self.send_error(501)
            self.close_connection = True
            return
        length = self.headers.get("Content-Length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > _LONGEST_BODY:
            self.send_error(400)
            self.close_connection = True
            return
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(length))
        self._send(self.server.wire.answer(Request(self.command, path, query, headers, body)))

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The Date header."""
        now = self.server.wire.now
        return super().date_time_string(timestamp if now is None else now().timestamp())

    def _send(self, answer: Answer) -> None:
        if answer.ending is Ending.RESET:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return
        ends_with_headers = answer.status in {_NO_CONTENT, _NOT_MODIFIED}
        self.send_response(answer.status)
        if not ends_with_headers:
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body) if answer.length is None else answer.length))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        body = b"" if ends_with_headers or self.command == "HEAD" else answer.body
        if answer.ending is Ending.WHOLE:
            self.wfile.write(body)
            return
        self.close_connection = True
        if answer.ending is Ending.TRUNCATED:
            self.wfile.write(body[: len(body) // 2])
            return
        self.wfile.flush()
        self.server.wire.stall()
