"""What a race is: who starts, what each process answers, and the store that counts writes refused to it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from costguard.domain.errors import VersionConflictError
from costguard.ports import Put, Record, RecordStore, VersionCheck
from costguard.ports.records import Name

NOW = datetime(2026, 3, 10, 12, 30, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Race:
    """One race of `runners` processes. `seed` and `number` settle everything that varies in it."""

    contest: str
    number: int
    seed: int
    runners: int

    @property
    def name(self) -> str:
        """What its records are called; no two races of a ledger share one."""
        return f"{self.contest}-{self.number:05}"

    def dice(self) -> random.Random:
        """The same numbers in every process."""
        return random.Random(f"{self.seed} {self.name}")  # noqa: S311 - variety that can be repeated, no secret


@dataclass(frozen=True, slots=True)
class Lot:
    """A fresh ledger for some races, and the file that every message sent is written to."""

    address: str
    sent: Path


@dataclass(frozen=True, slots=True)
class Answer:
    """What one process has to tell. `won` is what the repository told it; `error` is any other end than yes or no.

    `refused_writes` counts the writes that somebody else's write came before: proof that the two overlapped.
    """

    won: bool
    facts: Mapping[str, Any] = field(default_factory=dict)
    refused_writes: int = 0
    error: str = ""


Attempt = Callable[[], Answer]


class Contest(Protocol):
    """One kind of race."""

    name: str

    def prepare(self, store: RecordStore, race: Race) -> None:
        """Write what the race is about, before anybody starts."""

    def ready(self, store: RecordStore, lot: Lot, race: Race, runner: int) -> Attempt:
        """Read what a process has read before it acts; the attempt is what all do at once."""

    def check(self, store: RecordStore, lot: Lot, race: Race, answers: Sequence[Answer]) -> Iterator[str]:
        """Read the store from the outside, and name every breach."""


class CountingStore:
    """The given store; counts the writes it refused because another came first."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self.refused_writes = 0

    @property
    def durable(self) -> bool:
        return self._store.durable

    def get(self, kind: str, key: str) -> Record | None:
        return self._store.get(kind, key)

    def get_many(self, kind: str, keys: Iterable[str]) -> Mapping[str, Record]:
        return self._store.get_many(kind, keys)

    def get_each(self, names: Iterable[Name]) -> Mapping[Name, Record]:
        return self._store.get_each(names)

    def put(self, record: Record, expect_version: int) -> Record:
        try:
            return self._store.put(record, expect_version)
        except VersionConflictError:
            self.refused_writes += 1
            raise

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        return self._store.query(kind, prefix, after)

    def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
        try:
            self._store.transact(operations)
        except VersionConflictError:
            self.refused_writes += 1
            raise

    def close(self) -> None:
        self._store.close()


class CarelessStore:
    """The given store without its promise: it writes whatever stands there now. For proving that breaches are seen."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    @property
    def durable(self) -> bool:
        return self._store.durable

    def get(self, kind: str, key: str) -> Record | None:
        return self._store.get(kind, key)

    def get_many(self, kind: str, keys: Iterable[str]) -> Mapping[str, Record]:
        return self._store.get_many(kind, keys)

    def get_each(self, names: Iterable[Name]) -> Mapping[Name, Record]:
        return self._store.get_each(names)

    def put(self, record: Record, expect_version: int) -> Record:
        self.transact((Put(record, expect_version),))
        return record

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        return self._store.query(kind, prefix, after)

    def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
        puts = [operation.record for operation in operations if isinstance(operation, Put)]
        while True:
            try:
                self._store.transact([Put(record, self._version(record)) for record in puts])
            except VersionConflictError:
                continue
            return

    def close(self) -> None:
        self._store.close()

    def _version(self, record: Record) -> int:
        there = self._store.get(record.kind, record.key)
        return there.version if there is not None else 0


def body_of(store: RecordStore, kind: str, key: str) -> Mapping[str, Any]:
    """A record's body as it is stored; empty where there is none."""
    record = store.get(kind, key)
    return record.body if record is not None else {}


def audited(store: RecordStore, chain: str) -> list[Mapping[str, Any]]:
    """The bodies of a chain's entries, in order."""
    return [record.body for record in store.query("audit", f"{chain}/")]
