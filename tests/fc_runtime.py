"""What Function Compute's Python runtime does in the process of a function; started by `host_runtimes.py`.

Written after the behaviour of the vendor's runtime for Python 3.9 and 3.10, whose text is public, and after the
documents for 3.12. The HTTP client of the platform's own API is replaced by lines of JSON on a socket.
"""

from __future__ import annotations

import base64
import importlib
import json
import logging
import os
import signal
import socket
import sys
import time
import traceback
from datetime import date
from decimal import Decimal
from types import FrameType, SimpleNamespace
from typing import Any

LONGEST_WRITE = 32 * 1024  # of a log line; the rest is cut off
KEPT = {
    "FC_FUNC_CODE_PATH",
    "FC_FUNCTION_MEMORY_SIZE",
    "FC_RUNTIME_VERSION",
    "FC_ACCOUNT_ID",
    "FC_FUNCTION_HANDLER",
    "FC_FUNCTION_NAME",
    "FC_SERVICE_NAME",
    "FC_VER_ID",
    "FC_FUNCTION_VERSION",
    "FC_QUALIFIER",
    "FC_REGION",
    "FC_INSTANCE_ID",
}
"""The variables of its own that the runtime leaves to the function."""

_now_serving = {"request_id": ""}


class CutStream:
    """Writes at once, and no more than the platform takes."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, text: str) -> None:
        self._inner.write(text[:LONGEST_WRITE])
        self._inner.flush()


class LoadError(Exception):
    """The function could not be loaded."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def main() -> None:
    del sys.path[0]  # this file's folder; the runtime's own is none of the function's either
    sys.path.insert(0, os.environ["FC_FUNC_CODE_PATH"])
    sys.stdout, sys.stderr = CutStream(sys.stdout), CutStream(sys.stderr)
    signal.signal(signal.SIGTERM, tell_where_it_stands)
    start_logging()
    channel = socket.socket(fileno=int(os.environ["HOST_CHANNEL"]))
    for name in [name for name in os.environ if name.startswith(("FC_", "_FC_")) and name not in KEPT]:
        del os.environ[name]
    sys.stdout.write("FunctionCompute python3 runtime inited.\n")
    for line in channel.makefile("rb"):
        kind, body = serve(json.loads(line))
        channel.sendall(json.dumps({"kind": kind, "body": body}).encode() + b"\n")


def start_logging() -> None:
    """The root logger, at INFO, to standard output, each line with the request's id."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        logging.Formatter("%(asctime)s.%(msecs)03dZ %(request_id)s [%(levelname)s] %(message)s", "%Y-%m-%dT%H:%M:%S")
    )
    handler.addFilter(with_request_id)
    logging.Formatter.converter = time.gmtime
    logging.getLogger().handlers = [handler]
    logging.getLogger().setLevel("INFO")


def with_request_id(record: logging.LogRecord) -> bool:
    record.request_id = _now_serving["request_id"]
    return True


def serve(request: dict[str, Any]) -> tuple[str, str]:
    _now_serving["request_id"] = request["request_id"]
    sys.stdout.write(f"FC Invoke Start RequestId: {request['request_id']}\n")
    kind, body = answer(request)
    if kind == "error":
        logging.getLogger().error(body)
    failed = ", Error: Unhandled function error" if kind == "error" else ""
    sys.stdout.write(f"FC Invoke End RequestId: {request['request_id']}{failed}\n")
    return kind, body


def answer(request: dict[str, Any]) -> tuple[str, str]:
    try:
        handler = load(request["handler"])
    except LoadError as err:
        return "error", error_of(err.kind, str(err), [])
    try:
        result = handler(base64.b64decode(request["event"]), context_of(request))
        if isinstance(result, bytes):
            return "response", result.decode()
        return "response", result if isinstance(result, str) else as_json(result)
    except Exception as err:  # noqa: BLE001 - as the runtime does: whatever the function raises becomes its error
        stack = [
            [f'File "{at.filename}"', f"line {at.lineno}", f"in {at.name}", at.line or ""]
            for at in traceback.extract_tb(err.__traceback__)[1:]
        ]
        return "error", error_of(type(err).__name__, str(err), stack)


def load(handler: str) -> Any:
    """Loaded with the first request, within its time; kept for the next."""
    module, _, name = handler.rpartition(".")
    try:
        loaded = importlib.import_module(module)
    except ImportError as err:
        raise LoadError("ImportModuleError", f"Unable to import module '{module}'") from err
    except SyntaxError as err:
        raise LoadError("UserCodeSyntaxError", f"Syntax error in module '{module}'") from err
    except Exception as err:
        raise LoadError("UserCodeError", f"Module initialization error: '{err}'") from err
    if not hasattr(loaded, name):
        raise LoadError("HandlerNotFound", f"Handler '{name}' is missing on module '{module}'")
    return getattr(loaded, name)


def context_of(request: dict[str, Any]) -> SimpleNamespace:
    """Up to Python 3.10 with the role's keys and a service, and times as the headers' text; in 3.12 without."""
    about = {"region": "cn-shanghai", "account_id": "1234567890123456", "request_id": request["request_id"]}
    function = {"name": os.environ["FC_FUNCTION_NAME"], "handler": request["handler"], "memory": 512}
    if request["runtime"] == "python3.10":
        names = ("access_key_id", "access_key_secret", "security_token")
        return SimpleNamespace(
            **about,
            requestId=request["request_id"],
            credentials=SimpleNamespace(**dict(zip(names, request["credentials"], strict=True))),
            function=SimpleNamespace(**function, timeout=str(request["seconds"])),
            service=SimpleNamespace(name="", log_project="", log_store="", qualifier="LATEST", version_id=""),
            tracing=SimpleNamespace(span_context="", jaeger_endpoint="", span_baggages={}),
            retry_count=request["attempt"],
        )
    return SimpleNamespace(
        **about,
        function=SimpleNamespace(**function, timeout=request["seconds"], version_id="", qualifier="LATEST"),
        logger=None,
        log_project="",
        log_store="",
    )


def as_json(result: object) -> str:
    return json.dumps(result, default=plain, indent=4, sort_keys=True)


def plain(value: object) -> object:
    """What the runtime makes of values that JSON does not know."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date):
        return value.isoformat()
    message = f"{value!r} is not JSON serializable"
    raise TypeError(message)


def error_of(kind: str, message: str, stack: list[list[str]]) -> str:
    return as_json({"errorMessage": message, "errorType": kind, **({"stackTrace": stack} if stack else {})})


def tell_where_it_stands(_signal: int, _frame: FrameType | None) -> None:
    """At the timeout: every thread's place goes to the log, then the process ends."""
    log = logging.getLogger()
    log.error("Dumping stack trace after function timeout")
    for number, frame in sys._current_frames().items():  # noqa: SLF001 - Python offers it to debuggers, as here
        log.error("request id = %s, thread id = %s", _now_serving["request_id"], number)
        log.error("".join(traceback.format_stack(frame)))
    sys.exit(143)


if __name__ == "__main__":
    main()
