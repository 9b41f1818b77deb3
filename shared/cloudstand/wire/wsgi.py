"""A WSGI application behind a `WireServer`, which keeps connections open where the usual servers open one a request."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any
from urllib.parse import unquote_to_bytes

from cloudstand.wire.messages import Answer, Request

WsgiApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_SAID_BY_THE_SERVER = frozenset({"content-length", "content-type", "date", "server", "connection"})


def serving(application: WsgiApplication) -> Callable[[Request], Answer]:
    """`application` as a `WireServer` asks it: whole requests, whole answers, no streams."""

    def answer(request: Request) -> Answer:
        said: list[tuple[str, list[tuple[str, str]]]] = []
        body: list[bytes] = []

        def start_response(status: str, headers: list[tuple[str, str]], _failure: Any = None) -> Callable[[bytes], Any]:
            said.append((status, headers))
            return body.append

        chunks = application(environ_of(request), start_response)
        try:
            body += chunks
        finally:
            if hasattr(chunks, "close"):
                chunks.close()
        status, headers = said[-1]
        kinds = [value for name, value in headers if name.lower() == "content-type"]
        more = {name: value for name, value in headers if name.lower() not in _SAID_BY_THE_SERVER}
        lengths = [int(value) for name, value in headers if name.lower() == "content-length"]
        length = lengths[-1] if lengths and request.method == "HEAD" else None
        return Answer(int(status.split(" ", 1)[0]), b"".join(body), kinds[-1] if kinds else "", more, length=length)

    return answer


def environ_of(request: Request) -> dict[str, Any]:
    """The request as PEP 3333 has it."""
    host, _, port = request.headers.get("host", "").partition(":")
    uri = f"{request.path}?{request.query}" if request.query else request.path
    environ: dict[str, Any] = {
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(request.path).decode("latin-1"),
        "QUERY_STRING": request.query,
        "REQUEST_URI": uri,
        "RAW_URI": uri,
        "SERVER_NAME": host,
        "SERVER_PORT": port or "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_LENGTH": str(len(request.body)),
    }
    for name, value in request.headers.items():
        key = name.upper().replace("-", "_")
        if key == "CONTENT_TYPE":
            environ[key] = value
        elif key != "CONTENT_LENGTH":
            environ[f"HTTP_{key}"] = value
    return environ
