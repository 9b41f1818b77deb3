"""A stand-in for AWS in its own process, on loopback: every answer rendered before it is asked for.

`python -m tests.benchmarks.loopback_aws --instances 10000` prints the port it listens on and serves until
its standard input closes. HTTP/1.1 with keep-alive; EC2 and STS in their query protocols, CloudWatch
and the price list in AWS JSON (what botocore 1.40 and later picks). `GET /latency?ms=40` makes every further
answer wait; `GET /counts` tells what was asked since the last time, by operation.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import urllib.parse
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

from tests.benchmarks import fleet

PAGE = 1_000  # DescribeInstances
LISTED = 500  # ListMetrics
MOST_QUERIES = 500  # GetMetricData
MOST_POINTS = 100_800
_QUERY_ID = re.compile(rb'"Id": ?"([ms])(\d+)"')
_START = re.compile(rb'"StartTime": ?"?([^",}]+)')
_END = re.compile(rb'"EndTime": ?"?([^",}]+)')
_TOKEN = re.compile(rb'"NextToken": ?"(\d+)"')
_QUERY = "application/x-www-form-urlencoded"


@dataclass
class Answers:
    """Bodies by operation, ready to send."""

    instances: int
    gpu_every: int = fleet.GPU_SHARE
    pages: list[bytes] = field(default_factory=list)
    metrics: list[bytes] = field(default_factory=list)
    fixed: dict[str, bytes] = field(default_factory=dict)
    points: dict[tuple[bytes, bytes], tuple[list[bytes], list[bytes]]] = field(default_factory=dict)
    statistics: dict[tuple[bytes, bytes], list[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pages = [
            fleet.instances_page(self.instances, first, PAGE, self.gpu_every).encode()
            for first in range(0, self.instances, PAGE)
        ]
        series = fleet.series(self.instances, self.gpu_every)
        chunks = [series[first : first + LISTED] for first in range(0, len(series), LISTED)]
        self.metrics = [
            json.dumps({"Metrics": chunk, **({"NextToken": str(number)} if number < len(chunks) else {})}).encode()
            for number, chunk in enumerate(chunks, start=1)
        ]
        self.fixed = {name: text.encode() for name, text in fleet.fixed_answers().items()}

    def prepare(self, start: bytes, end: bytes) -> None:
        """Render the points between two times, as the client writes them."""
        hours = fleet.hours_between(_moment(start), _moment(end))
        times = ",".join(f"{hour.timestamp():.1f}" for hour in hours)
        maxima = [
            _data(times, [fleet.maximum(kind, hour) for hour in range(len(hours))]) for kind in range(fleet.KINDS)
        ]
        counts = [_data(times, [60.0] * len(hours)) for _ in range(fleet.KINDS)]
        self.points[start, end] = (maxima, counts)
        self.statistics[start, end] = [_datapoints(hours, kind) for kind in range(fleet.KINDS)]


def _data(times: str, values: Sequence[float]) -> bytes:
    text = ",".join(map(str, values))
    return f'"Label":"x","Timestamps":[{times}],"Values":[{text}],"StatusCode":"Complete"}}'.encode()


def _datapoints(hours: Sequence[datetime], kind: int) -> bytes:
    points = [
        {"Timestamp": hour.timestamp(), "Maximum": fleet.maximum(kind, number), "SampleCount": 60.0, "Unit": "None"}
        for number, hour in enumerate(hours)
    ]
    return json.dumps({"Label": fleet.METRIC, "Datapoints": points}).encode()


def _moment(text: bytes) -> datetime:
    decoded = text.decode()
    if decoded.endswith("Z"):
        return datetime.strptime(decoded, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    return datetime.fromtimestamp(float(decoded), timezone.utc)


@dataclass
class Server:
    """Answers from `Answers`, waits, counts."""

    answers: Answers
    latency: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, kept alive."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                headers = {
                    name.strip().lower(): value.strip()
                    for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
                }
                body = await reader.readexactly(int(headers.get(b"content-length", b"0")))
                path = head.split(b" ", 2)[1].decode()
                answer, kind = self._answer(path, headers, body)
                if self.latency and not path.startswith("/latency"):
                    await asyncio.sleep(self.latency)
                writer.write(
                    f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nx-amzn-RequestId: r\r\n"
                    f"Content-Length: {len(answer)}\r\n\r\n".encode()
                    + answer
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, path: str, headers: dict[bytes, bytes], body: bytes) -> tuple[bytes, str]:
        target = headers.get(b"x-amz-target", b"").rpartition(b".")[2].decode()
        if target:
            self.counts[target] += 1
            return self.json(target, body), "application/x-amz-json-1.1"
        if body:
            form = urllib.parse.parse_qs(body.decode())
            action = form["Action"][0]
            self.counts[action] += 1
            return self.xml(action, form), "text/xml;charset=UTF-8"
        if path.startswith("/latency"):
            self.latency = float(path.partition("=")[2]) / 1_000
        told = json.dumps(self.counts).encode()
        self.counts.clear()
        return told, "application/json"

    def xml(self, action: str, form: dict[str, list[str]]) -> bytes:
        """The answer of EC2 or STS."""
        if action == "DescribeInstances":
            return self.answers.pages[int(form.get("NextToken", ["0"])[0])]
        return self.answers.fixed[action]

    def json(self, operation: str, body: bytes) -> bytes:
        """The answer of CloudWatch or the price list."""
        if operation == "ListMetrics":
            token = _TOKEN.search(body)
            return self.answers.metrics[int(token[1]) if token else 0]
        if operation == "GetProducts":
            filters = {one["Field"]: one for one in json.loads(body)["Filters"]}
            asked_types = filters["instanceType"]
            several = asked_types["Type"] == "ANY_OF"
            return fleet.price_list(asked_types["Value"].split(",") if several else [asked_types["Value"]]).encode()
        start, end = times_in(body)
        if (start, end) not in self.answers.points:
            self.answers.prepare(start, end)
        if operation == "GetMetricStatistics":
            return self.answers.statistics[start, end][0]
        maxima, counts = self.answers.points[start, end]
        asked = _QUERY_ID.findall(body)
        if len(asked) > MOST_QUERIES:
            message = f"{len(asked)} queries in one call"
            raise ValueError(message)
        hours = maxima[0].count(b",") // 2  # commas: one less than hours between times and values each, and three
        if len(asked) * hours > MOST_POINTS:
            return self._first_page(body, asked, maxima, counts, hours)
        return self._results(asked, maxima, counts, "")

    def _first_page(
        self, body: bytes, asked: list[tuple[bytes, bytes]], maxima: list[bytes], counts: list[bytes], hours: int
    ) -> bytes:
        """Over 100,800 points CloudWatch pages: the rest of the series come under a token."""
        token = _TOKEN.search(body)
        first = int(token[1]) if token else 0
        fit = MOST_POINTS // hours
        rest = first + fit
        return self._results(asked[first:rest], maxima, counts, str(rest) if rest < len(asked) else "")

    @staticmethod
    def _results(asked: list[tuple[bytes, bytes]], maxima: list[bytes], counts: list[bytes], token: str) -> bytes:
        found = b",".join(
            b'{"Id":"' + letter + number + b'",' + (maxima if letter == b"m" else counts)[int(number) % fleet.KINDS]
            for letter, number in asked
        )
        tail = f',"NextToken":"{token}"' if token else ""
        return b'{"MetricDataResults":[' + found + b'],"Messages":[]' + tail.encode() + b"}"


def times_in(body: bytes) -> tuple[bytes, bytes]:
    """From when to when points are asked for, as the client writes it."""
    return _found(_START, body), _found(_END, body)


def _found(pattern: re.Pattern[bytes], body: bytes) -> bytes:
    match = pattern.search(body)
    if match is None:
        raise ValueError("a request without times")
    return match[1]


async def _until_closed(answers: Answers, *, ready: Callable[[int], None]) -> None:
    server = Server(answers)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=2**24)
    ready(listener.sockets[0].getsockname()[1])
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, sys.stdin.read)
    listener.close()


def main() -> None:
    """Serve a fleet of `--instances` until standard input closes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, required=True)
    given = parser.parse_args()
    answers = Answers(given.instances)
    asyncio.run(_until_closed(answers, ready=lambda port: print(port, flush=True)))


if __name__ == "__main__":
    main()
