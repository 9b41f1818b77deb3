"""What the stand-ins for clouds with rate limits share: HTTP on loopback, distance, limits, and a tally.

One process, one thread. A request is counted against its limit when it has arrived whole; its answer leaves when the
latency is over, so what the stand-in itself works is hidden in the distance as long as it is less than that.
`GET /latency?ms=40` sets the distance; `GET /tally` tells what was asked since the last time, and begins anew.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


class OverLimitError(Exception):
    """More was asked for in one call than the vendor gives: the benchmark fails on it."""

    def __init__(self, *what: object) -> None:
        super().__init__(" ".join(map(str, what)))


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many calls in any span of so many seconds, wherever it begins: the strictest reading of a rate."""

    most: int
    seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came; names of headers in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class Cloud(Protocol):
    """What one vendor answers."""

    @property
    def limits(self) -> Mapping[str, Limit]:
        """By operation, for one account in one region; what is not here is not limited."""

    @property
    def content_type(self) -> str:
        """Of every answer."""

    def operation(self, request: Request) -> str:
        """What is asked."""

    def answer(self, request: Request) -> bytes:
        """Its answer; raises OverLimitError."""

    def throttled(self) -> tuple[int, bytes]:
        """Status and body where a limit is exceeded."""


@dataclass
class Tally:
    """What was asked, and how it went. `busiest` is the most in any one span of a limit."""

    asked: Counter[str] = field(default_factory=Counter)
    throttled: Counter[str] = field(default_factory=Counter)
    over_limit: list[str] = field(default_factory=list)
    busiest: Counter[str] = field(default_factory=Counter)


@dataclass
class Server:
    """Answers for `cloud`, waits, limits, counts."""

    cloud: Cloud
    latency: float = 0.0
    tally: Tally = field(default_factory=Tally)
    _passed: dict[str, deque[float]] = field(default_factory=dict)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, kept alive."""
        clock = asyncio.get_running_loop().time
        try:
            while True:
                request = await _read(reader)
                arrived = clock()
                told = request.path.startswith(("/latency", "/tally"))
                status, body = (200, self._told(request.path)) if told else self._answered(request, arrived)
                if not told:
                    await asyncio.sleep(max(0.0, arrived + self.latency - clock()))
                writer.write(
                    f"HTTP/1.1 {status} -\r\nContent-Type: {self.cloud.content_type}\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _told(self, path: str) -> bytes:
        if path.startswith("/latency"):
            self.latency = float(path.partition("=")[2]) / 1_000
        used = resource.getrusage(resource.RUSAGE_SELF)
        told = {**vars(self.tally), "cpu_s": used.ru_utime + used.ru_stime}
        self.tally = Tally()
        return json.dumps(told).encode()

    def _answered(self, request: Request, arrived: float) -> tuple[int, bytes]:
        operation = self.cloud.operation(request)
        self.tally.asked[operation] += 1
        limit = self.cloud.limits.get(operation)
        if limit is not None and not self._let_pass(operation, limit, arrived):
            self.tally.throttled[operation] += 1
            return self.cloud.throttled()
        try:
            return 200, self.cloud.answer(request)
        except OverLimitError as err:
            self.tally.over_limit.append(str(err))
            return 400, b"{}"

    def _let_pass(self, operation: str, limit: Limit, arrived: float) -> bool:
        passed = self._passed.setdefault(operation, deque())
        while passed and passed[0] <= arrived - limit.seconds:
            passed.popleft()
        allowed = len(passed) < limit.most
        if allowed:
            passed.append(arrived)
            self.tally.busiest[operation] = max(self.tally.busiest[operation], len(passed))
        return allowed


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(first.split(" ", 2)[1], headers, body)


async def _until_closed(cloud: Cloud) -> None:
    listener = await asyncio.start_server(Server(cloud).serve, "127.0.0.1", 0, limit=2**24)
    print(listener.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    listener.close()


def serve(made: Callable[[int, int], Cloud], description: str | None) -> None:
    """Serve `--instances`, every `--gpu-every`th with a GPU, until standard input closes; prints the port."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--instances", type=int, required=True)
    parser.add_argument("--gpu-every", type=int, required=True)
    given = parser.parse_args()
    asyncio.run(_until_closed(made(given.instances, given.gpu_every)))
