"""HTTP to a stand-in of this process without a socket: what the SDKs' own HTTP libraries write and read, in one thread.

All three SDKs end in urllib3, Alibaba's in a copy of its own. Both open connections through one function, which is
replaced while a simulation runs: nothing of theirs is left out but the network, and whatever would leave the process
is an error.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from io import BytesIO
from types import ModuleType
from typing import Any

from typing_extensions import Self

from cloudstand.wire.messages import Answer, Ending, Request

Application = Callable[[Request], Answer]
_OPENING = (  # where each library opens its connections
    "urllib3.util.connection",
    "aliyunsdkcore.vendored.requests.packages.urllib3.util.connection",
)
_POOLED = (  # what the providers read side by side, here one after another
    "costguard.providers.aws.compute.metrics",
    "costguard.providers.alibaba.compute.metrics",
    "costguard.providers.tencent.compute.metric_calls",
    "costguard.providers.tencent.core.session",
    "costguard.providers.kit.core.accounts",
)


class LeftTheProcessError(BaseException):
    """Something was sent to an address that no stand-in has."""


class InThisThread:
    """What the providers use of `ThreadPoolExecutor`, without a thread."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Take what a pool takes."""

    def __enter__(self) -> Self:
        """A pool that is open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is under way."""

    def map(self, work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        """One after another, in order."""
        return iter([work(item) for item in items])

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Done before it returns."""
        done: Future[Any] = Future()
        try:
            done.set_result(work(*arguments))
        except Exception as err:  # noqa: BLE001 - handed to whoever asks for the result
            done.set_exception(err)
        return done

    def shutdown(self) -> None:
        """Nothing is under way."""


@contextmanager
def in_process(applications: Mapping[str, Application]) -> Iterator[None]:
    """Until the block ends, `host:port` of these is answered here and everything else is an error."""

    def connect(address: tuple[str, int], *_: Any, **__: Any) -> _Connection:
        application = applications.get(f"{address[0]}:{address[1]}")
        if application is None:
            raise LeftTheProcessError(address)
        return _Connection(application)

    with ExitStack() as until:
        for name in _OPENING:
            until.enter_context(_replaced(importlib.import_module(name), "create_connection", connect))
        for name in _POOLED:
            until.enter_context(_replaced(importlib.import_module(name), "ThreadPoolExecutor", InThisThread))
        yield


@contextmanager
def _replaced(module: ModuleType, name: str, value: object) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


class _Connection:
    """What `http.client` needs of a socket: for one request and its answer."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._sent = bytearray()

    def sendall(self, data: Any) -> None:
        self._sent += data

    def makefile(self, *_: Any, **__: Any) -> Any:
        answer = self._application(_request(bytes(self._sent)))
        return _Broken() if answer.ending is Ending.RESET else BytesIO(_written(answer))

    def settimeout(self, seconds: float | None) -> None:
        """Nothing here takes time."""

    def setsockopt(self, *_: Any) -> None:
        """There are no options."""

    def shutdown(self, how: int) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""


class _Broken(BytesIO):
    """A connection that breaks before the first byte of an answer."""

    def readline(self, size: int | None = -1, /) -> bytes:
        del size
        raise ConnectionResetError(104, "Connection reset by peer")


def _request(raw: bytes) -> Request:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    path, _, query = target.partition("?")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Request(method, path, query, headers, body)


def _written(answer: Answer) -> bytes:
    """The answer as it stands on a wire that closes after it; half of its body where it is truncated."""
    headers = {
        "Content-Type": answer.content_type,
        "Content-Length": str(len(answer.body)),
        "Connection": "close",
        **answer.headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    body = answer.body if answer.ending is Ending.WHOLE else answer.body[: len(answer.body) // 2]
    return f"HTTP/1.1 {answer.status} Answer\r\n{head}\r\n".encode("latin-1") + body
