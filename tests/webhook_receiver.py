"""A receiver of webhooks on loopback: it checks signatures as docs/notices.md says, and keeps what it took."""

from __future__ import annotations

import hmac
import json
import ssl
import threading
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from typing_extensions import Self

from costguard.ports import Clock

DEFAULT_SECRET = "sandbox-webhook-secret"
_MOST_BYTES = 512 * 1024
_LATE = 300  # seconds a signature may be off, either way


@dataclass(frozen=True, slots=True)
class Received:
    """One notice that was believed: the path it came to, its key, and its document."""

    path: str
    key: str
    document: dict[str, Any]
    body: bytes


@dataclass(slots=True)
class WebhookFaults:
    """What goes wrong from now on; empty: nothing.

    `status` answers every call, with `headers`. `down` ends connections without an answer, `slow` waits first, at most
    until the receiver closes, `drip` sends the answer a byte at a time, for ever. `lost` keeps the notice and answers
    nothing.
    """

    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    down: bool = False
    lost: bool = False
    drip: bool = False
    slow: timedelta = timedelta(0)


class WebhookReceiver:
    """Used as a context manager; `received` holds every notice in order, `calls` counts every request.

    A notice whose key it knows is answered and not kept again. `tls` makes it speak HTTPS.
    """

    def __init__(self, clock: Clock, *, secret: str = DEFAULT_SECRET, tls: ssl.SSLContext | None = None) -> None:
        self.faults = WebhookFaults()
        self.received: list[Received] = []
        self.calls = 0
        self.closing = threading.Event()
        self._clock = clock
        self._secret = secret.encode()
        self._scheme = "http" if tls is None else "https"
        self._lock = threading.Lock()
        self._server = _Server(self, tls)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens, on 127.0.0.1."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """What to name as a channel."""
        return f"{self._scheme}://127.0.0.1:{self.port}/hooks/costguard"

    def close(self) -> None:
        """Stop answering and release the port; may be repeated."""
        if not self.closing.is_set():
            self.closing.set()
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def take(self, path: str, headers: Any, body: bytes) -> int:
        """The status of the answer to one request."""
        if not self._is_signed(headers.get("Costguard-Signature") or "", body):
            return 401
        key = headers.get("Idempotency-Key") or ""
        try:
            document = json.loads(body)
        except ValueError:
            return 400
        if not key or document.get("schema") != "costguard.notice/1":
            return 422
        with self._lock:
            if all(known.key != key for known in self.received):
                self.received.append(Received(path, key, document, body))
        return 202

    def _is_signed(self, given: str, body: bytes) -> bool:
        parts = dict(part.partition("=")[::2] for part in given.split(","))
        stamp = parts.get("t", "")
        if not stamp.isdigit() or abs(int(stamp) - self._clock.now().timestamp()) > _LATE:
            return False
        expected = hmac.new(self._secret, f"{stamp}.".encode() + body, sha256).hexdigest()
        return hmac.compare_digest(expected, parts.get("v1", ""))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, receiver: WebhookReceiver, tls: ssl.SSLContext | None) -> None:
        self.receiver = receiver
        super().__init__(("127.0.0.1", 0), _Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay quiet: a client that gave up waiting is one of the faults on offer."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.server.receiver.calls += 1
        self._reply(405)

    def do_POST(self) -> None:
        receiver = self.server.receiver
        faults = receiver.faults
        receiver.calls += 1
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(min(length, _MOST_BYTES + 1))
        if faults.slow:
            receiver.closing.wait(faults.slow.total_seconds())
        if faults.down:
            return  # the connection closes without an answer
        status = faults.status or (413 if length > _MOST_BYTES else receiver.take(self.path, self.headers, body))
        if faults.lost:
            return
        if faults.drip:
            self._drip()
            return
        self._reply(status)

    def _reply(self, status: int) -> None:
        self.send_response(status)
        for name, value in self.server.receiver.faults.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _drip(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while not self.server.receiver.closing.wait(0.02):
            self.wfile.write(b".")
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing on the terminal."""
