"""A small Lambda: the Runtime API on loopback, and the real runtime client in a process of its own.

https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html, version 2018-06-01. It delivers events one at a time,
takes responses and errors, and starts a new process where the old one ended, as the service does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from types import TracebackType
from typing import Any

from typing_extensions import Self

FUNCTION = "costguard-idle-gpu"
_API = "/2018-06-01/runtime"
_PATIENCE_SECONDS = 60  # a loaded machine; nothing waits this long unless something is broken


@dataclass(frozen=True)
class Told:
    """What the runtime told: `response`, `error`, `init_error`, or `exited` (with its status) where the process ended.

    A function under test may tell more by a POST to a path of its own, which is then the kind.
    """

    kind: str
    body: Any
    error_type: str = ""


class SmallLambda:
    """One function; use it as a context manager.

    `folder` holds the handler's module, `handler` is `module.attribute`, `environ` what is configured on the function.
    """

    def __init__(self, folder: Path, handler: str, log: Path, environ: Mapping[str, str] | None = None) -> None:
        self._handler = handler
        self._environ = {
            "PYTHONPATH": str(folder),
            "LAMBDA_TASK_ROOT": str(folder),
            "AWS_LAMBDA_FUNCTION_NAME": FUNCTION,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_EXECUTION_ENV": f"AWS_Lambda_python{sys.version_info.major}.{sys.version_info.minor}",
            "AWS_REGION": "us-east-1",
            **(environ or {}),
        }
        self._log = log
        self._told: Queue[Told] = Queue()
        self._worker: _Worker | None = None
        self._calls = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_process()

    def invoke(self, event: object, *, seconds: float = 900, request_id: str = "") -> Told:
        """Deliver `event`, to be answered within `seconds`, and wait for what is told.

        Starts a process where none runs.
        """
        self._calls += 1
        body = event if isinstance(event, bytes) else json.dumps(event).encode()
        if self._worker is None or not self._worker.lives():
            self.end_process()
            self._worker = _Worker(self._handler, self._environ, self._log, self._told)
        self._worker.events.put((request_id or f"request-{self._calls}", body, time.time() + seconds))
        return self.told()

    def told(self) -> Told:
        """The next thing the runtime tells."""
        return self._told.get(timeout=_PATIENCE_SECONDS)

    def end_process(self) -> None:
        """What the service does when the time is up: the process is gone at once."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def log_lines(self) -> list[dict[str, Any]]:
        """The JSON lines among what the process wrote."""
        return [json.loads(line) for line in self.log_text().splitlines() if line.startswith("{")]

    def log_text(self) -> str:
        """All that every process of this function wrote."""
        return self._log.read_text("utf-8") if self._log.exists() else ""


class _Worker:
    """One process of the function, with a Runtime API of its own."""

    def __init__(self, handler: str, environ: Mapping[str, str], log: Path, told: Queue[Told]) -> None:
        self.events: Queue[tuple[str, bytes, float] | None] = Queue()
        self._told = told
        self._server = _Server(self.events, told)
        self._serving = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._serving.start()
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own arguments
                [sys.executable, "-m", "awslambdaric", handler],
                env={**environ, "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self._server.server_address[1]}"},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._watching = threading.Thread(target=self._watch)
        self._watching.start()

    def lives(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        if self.lives():
            self._process.kill()
        self._watching.join()
        self._server.shutdown()
        self.events.put(None)
        self._server.server_close()
        self._serving.join()

    def _watch(self) -> None:
        code = self._process.wait()
        self._told.put(Told("exited", code))


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, events: Queue[tuple[str, bytes, float] | None], told: Queue[Told]) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.events = events
        self.told = told


class _Answers(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        if self.path != f"{_API}/invocation/next":
            self._answer(404, b"{}")
            return
        waiting = self.server.events.get()
        if waiting is None:
            self.server.events.put(None)  # for the next one that waits
            return
        request_id, body, ends_at = waiting
        self._answer(
            200,
            body,
            {
                "Lambda-Runtime-Aws-Request-Id": request_id,
                "Lambda-Runtime-Deadline-Ms": str(int(ends_at * 1000)),
                "Lambda-Runtime-Invoked-Function-Arn": f"arn:aws:lambda:us-east-1:111122223333:function:{FUNCTION}",
                "Lambda-Runtime-Trace-Id": "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0",
            },
        )

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or self._chunks()
        kind = "init_error" if self.path == f"{_API}/init/error" else self.path.rpartition("/")[2]
        self._answer(202, b'{"status":"OK"}')
        error_type = self.headers.get("Lambda-Runtime-Function-Error-Type") or ""
        self.server.told.put(Told(kind, json.loads(body), error_type))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Requests are not of interest."""

    def _chunks(self) -> bytes:
        """A body sent in chunks: the runtime's C++ client streams."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return b""
        parts = []
        while size := int(self.rfile.readline().strip() or b"0", 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
