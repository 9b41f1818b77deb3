"""The Slack stand-in's HTTP side: methods below /api/, and response addresses below /actions/ and /commands/."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

Answer = tuple[int, dict[str, str], str]
"""Status, headers and body."""


class Workspace(Protocol):
    """What answers."""

    def hangs_up(self) -> bool:
        """Whether this call ends without an answer; it counts all the same."""

    def answer(self, method: str, token: str, fields: Mapping[str, Any] | None) -> Answer:
        """One call of the Web API; `fields` None could not be read."""

    def hear(self, path: str, fields: Mapping[str, Any] | None) -> Answer:
        """One answer to a click, at a response address."""


class SlackServer(ThreadingHTTPServer):
    """On loopback, at a port of its own; 0 takes a free one."""

    daemon_threads = True

    def __init__(self, workspace: Workspace, port: int = 0) -> None:
        self.workspace = workspace
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay quiet: a client that gave up waiting is one of the faults on offer."""


class _Handler(BaseHTTPRequestHandler):
    server: SlackServer

    def do_GET(self) -> None:
        self._respond()

    def do_POST(self) -> None:
        self._respond()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing on the terminal."""

    def _respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        workspace = self.server.workspace
        if workspace.hangs_up():
            return
        address = urlsplit(self.path)  # a proxied call names the whole address
        fields = _fields(self.headers.get("Content-Type") or "", body, address.query)
        if not address.path.startswith("/api/"):
            self._write(workspace.hear(address.path, fields))
            return
        scheme, _, token = (self.headers.get("Authorization") or "").partition(" ")
        if scheme != "Bearer":
            token = str((fields or {}).get("token") or "")
        self._write(workspace.answer(address.path.removeprefix("/api/"), token, fields))

    def _write(self, answer: Answer) -> None:
        status, headers, text = answer
        encoded = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(encoded)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(encoded)


def _fields(content_type: str, body: bytes, query: str) -> dict[str, Any] | None:
    """The arguments of a call, from a JSON or form body and the query; None for a broken JSON body."""
    fields: dict[str, Any] = dict(parse_qsl(query))
    if not body:
        return fields
    try:
        if not content_type.startswith("application/json"):
            return {**fields, **dict(parse_qsl(body.decode()))}
        document = json.loads(body)
    except ValueError:
        return None
    return {**fields, **document} if isinstance(document, dict) else None
