"""What SCF's Python runtime does in the process of a function; started by `host_runtimes.py`.

Written after the behaviour of the runtime that the vendor publishes for running functions at home, and after the
documents where they say more. The platform's socket is replaced by lines of JSON on a socket of ours.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import logging
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

LONGEST_ANSWER = 6 * 1024 * 1024

Handler = Callable[[Any, Any], Any]


class FlushedStream:
    """Writes at once."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, text: str) -> None:
        self._inner.write(text)
        self._inner.flush()


def main() -> None:
    del sys.path[0]  # this file's folder; the runtime's own is none of the function's either
    sys.stdout, sys.stderr = FlushedStream(sys.stdout), FlushedStream(sys.stderr)
    logging.getLogger().setLevel(logging.DEBUG)  # whatever any library says, and to standard output
    logging.getLogger().addHandler(logging.StreamHandler(sys.stdout))
    channel = socket.socket(fileno=int(os.environ["HOST_CHANNEL"]))
    del os.environ["SOCKETPATH"]
    handler: Handler | None = None
    problem = ""
    for number, line in enumerate(channel.makefile("rb")):
        request = json.loads(line)
        if number == 0:
            handler, problem = load(request["handler"])
        kind, body = ("error", problem) if handler is None else answer(handler, request)
        channel.sendall(json.dumps({"kind": kind, "body": body}).encode() + b"\n")


def load(handler: str) -> tuple[Handler | None, str]:
    """The function, loaded once from its file, under no name; or what went wrong, told to every event."""
    module, _, name = handler.rpartition(".")
    path = Path(os.environ["USER_CODE_ROOT"]) / f"{module}.py"
    sys.path.append(str(path.parent))
    os.chdir(path.parent)
    try:
        spec = importlib.util.spec_from_file_location("", path)
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return getattr(loaded, name), ""
    except Exception as err:  # noqa: BLE001 - as the runtime does
        return None, str(err)


def answer(handler: Handler, request: dict[str, Any]) -> tuple[str, str]:
    started = time.monotonic()
    try:
        event = json.loads(base64.b64decode(request["event"]))
    except ValueError as err:
        return "error", f"eval event failed\n{err}"
    context = context_of(request)
    for pair in context["environ"].split(";"):  # fresh keys of the role reach a warm process this way
        name, _, value = pair.partition("=")
        os.environ[name] = value
    context["get_remaining_time_in_millis"] = lambda: (
        context["time_limit_in_ms"] - int((time.monotonic() - started) * 1000)
    )
    try:
        told = json.dumps(handler(event, context), ensure_ascii=False)
    except Exception as err:  # noqa: BLE001 - as the runtime does: whatever the function raises becomes its error
        below = err.__traceback__ and err.__traceback__.tb_next  # this file's own place is left out
        return "error", "".join(traceback.format_exception(type(err), err, below)).strip()
    return ("error", "body size is too long") if len(told) > LONGEST_ANSWER else ("response", told)


def context_of(request: dict[str, Any]) -> dict[str, Any]:
    environment: dict[str, str] = request["environment"]
    return {
        "memory_limit_in_mb": 512,
        "time_limit_in_ms": request["seconds"] * 1000,
        "request_id": request["request_id"],
        "environment": json.dumps(environment),
        "environ": ";".join(f"{name}={value}" for name, value in environment.items()),
        "function_version": "$LATEST",
        "function_name": os.environ["SCF_FUNCTIONNAME"],
        "namespace": "default",
        "tencentcloud_region": "ap-shanghai",
        "tencentcloud_appid": "1250000000",
        "tencentcloud_uin": "100000000001",
    }


if __name__ == "__main__":
    main()
