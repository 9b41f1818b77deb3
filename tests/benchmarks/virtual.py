"""Time that passes only where something waits, a ledger with DynamoDB's limits, a channel with Slack's."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TypeVar

from costguard.domain.errors import LedgerError, RateLimitedError
from costguard.ports import Delivery, Message, Put, Record, VersionCheck
from costguard.ports.records import Ledger, Name, body_text, conflict, record_from, target_of

Result = TypeVar("Result")
BEGIN = datetime(2026, 3, 2, 9, 17, tzinfo=timezone.utc)


@dataclass
class Time:
    """Seconds since the beginning; whoever waits moves them."""

    seconds: float = 0.0

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass
class Lanes:
    """`Workers` in virtual time: each task begins when the first of so many threads is free, as in a thread pool.

    Tasks are worked one after another here, so two that overlap meet at a token bucket in the order of their beginning.
    """

    time: Time
    threads: int = 8

    def each(self, tasks: Sequence[Callable[[], Result]]) -> Iterator[tuple[int, Result]]:
        begun = self.time.seconds
        free = [begun] * max(1, min(self.threads, len(tasks)))
        ended: list[tuple[float, int, Result]] = []
        for place, task in enumerate(tasks):
            self.time.seconds = heapq.heappop(free)
            result = task()
            heapq.heappush(free, self.time.seconds)
            ended.append((self.time.seconds, place, result))
        self.time.seconds = max(free)
        ended.sort(key=lambda one: one[:2])
        for _, place, result in ended:
            yield place, result


@dataclass(frozen=True)
class Waits:
    """Seconds that a request to DynamoDB takes, from a function in its region."""

    get: float = 0.005
    page: float = 0.012
    put: float = 0.008
    transact: float = 0.020


MAX_ITEM = 400 * 1024
MAX_PAGE = 1024 * 1024
MAX_TRANSACTION = 4 * 1024 * 1024


@dataclass
class Sent:
    """What a ledger was asked."""

    requests: Counter[str] = field(default_factory=Counter)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    read_units: float = 0.0
    write_units: float = 0.0
    largest: dict[str, tuple[int, str]] = field(default_factory=dict)


class DynamoLike(Ledger):
    """A ledger in memory that refuses what DynamoDB refuses, takes the time it takes, and counts what it bills."""

    def __init__(self, time: Time, waits: Waits | None = None) -> None:
        super().__init__(durable=True)
        self._time = time
        self._waits = waits or Waits()
        self._stored: dict[str, dict[str, tuple[int, int, str]]] = {}
        self._keys: dict[str, list[str]] = {}
        self.sent = Sent()

    def close(self) -> None:
        """Nothing."""

    def _prepare(self) -> None:
        """Nothing."""

    def _spent(self, what: str, kind: str, seconds: float) -> None:
        self._time.sleep(seconds)
        self.sent.requests[what] += 1
        self.sent.kinds[what, kind] += 1

    def _read(self, kind: str, key: str) -> Record | None:
        self._spent("get", kind, self._waits.get)
        found = self._stored.get(kind, {}).get(key)
        self.sent.read_units += 1 if found is None else -(-len(found[2]) // 4096)
        return None if found is None else record_from(kind, key, *found)

    def _read_many(self, names: Sequence[Name]) -> Sequence[Record]:
        found = {
            (kind, key): stored for kind, key in names if (stored := self._stored.get(kind, {}).get(key)) is not None
        }
        self._spent("batch get", "+".join(sorted({kind for kind, _ in names})), self._waits.page)
        self.sent.read_units += sum(-(-len(stored[2]) // 4096) for stored in found.values()) + len(names) - len(found)
        return [record_from(kind, key, *stored) for (kind, key), stored in found.items()]

    def _page(self, kind: str, prefix: str, after: str, limit: int) -> tuple[Sequence[Record], bool]:
        self._spent("query", kind, self._waits.page)
        keys = self._keys.get(kind, [])
        at = bisect_right(keys, after) if after else bisect_left(keys, prefix)
        page: list[Record] = []
        size = 0
        while at < len(keys) and keys[at].startswith(prefix) and len(page) < limit and size < MAX_PAGE:
            stored = self._stored[kind][keys[at]]
            page.append(record_from(kind, keys[at], *stored))
            size += len(stored[2])
            at += 1
        self.sent.read_units += max(1, size / 4096)
        return page, at < len(keys) and keys[at].startswith(prefix)

    def _write(self, operations: Sequence[Put | VersionCheck]) -> None:
        several = len(operations) > 1
        kinds = "+".join(sorted({target_of(operation)[0] for operation in operations}))
        self._spent("transact" if several else "put", kinds, self._waits.transact if several else self._waits.put)
        texts = [body_text(operation.record) if isinstance(operation, Put) else "" for operation in operations]
        for operation, text in zip(operations, texts, strict=True):
            kind, key, expected = target_of(operation)
            if self._stored.get(kind, {}).get(key, (0,))[0] != expected:
                raise conflict(kind, key, expected)
            size = len(text) + len(kind) + len(key) + 100
            if size > self.sent.largest.get(kind, (0, ""))[0]:
                self.sent.largest[kind] = (size, key)
            if size > MAX_ITEM:
                message = f"record {kind}/{key} has {size:,} bytes; DynamoDB stores at most {MAX_ITEM:,}"
                raise LedgerError(message)
            self.sent.write_units += -(-size // 1024) * (2 if several else 1)
        if several and sum(map(len, texts)) > MAX_TRANSACTION:
            message = f"a transaction of {sum(map(len, texts)):,} bytes; DynamoDB takes {MAX_TRANSACTION:,}"
            raise LedgerError(message)
        for operation, text in zip(operations, texts, strict=True):
            if isinstance(operation, Put):
                kind, key, expected = target_of(operation)
                table = self._stored.setdefault(kind, {})
                if key not in table:
                    insort(self._keys.setdefault(kind, []), key)
                table[key] = (expected + 1, operation.record.schema, text)


@dataclass
class SlackLike:
    """A notifier with one message a second and channel, and the time each takes."""

    time: Time
    free_at: dict[str, float] = field(default_factory=dict)
    messages: int = 0

    def send(self, message: Message) -> Delivery:
        wait = self.free_at.get(message.channel, 0.0) - self.time.seconds
        if wait > 0:
            raise RateLimitedError("slow down", retry_after=timedelta(seconds=wait))
        self.free_at[message.channel] = self.time.seconds + 1.0
        self.time.sleep(0.15)
        self.messages += 1
        return Delivery(f"{self.messages}")

    def edit(self, receipt: str, message: Message) -> bool:
        del receipt, message
        return True

    def capacity(self, message: Message) -> int:
        return max(1, min(10, len(message.parts)))
