"""Stores that do to a repository what other processes and crashes do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from costguard.domain.errors import LedgerError
from costguard.ports import Put, Record, RecordStore, VersionCheck


class InterferingStore:
    """The given store; before each of its next writes, something else happens."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self.before_writes: list[Callable[[], object]] = []
        self.writes = 0

    @property
    def durable(self) -> bool:
        return self._store.durable

    def get(self, kind: str, key: str) -> Record | None:
        return self._store.get(kind, key)

    def get_many(self, kind: str, keys: Iterable[str]) -> Mapping[str, Record]:
        return self._store.get_many(kind, keys)

    def put(self, record: Record, expect_version: int) -> Record:
        self._interfere()
        return self._store.put(record, expect_version)

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        return self._store.query(kind, prefix, after)

    def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
        self._interfere()
        self._store.transact(operations)

    def close(self) -> None:
        self._store.close()

    def _interfere(self) -> None:
        self.writes += 1
        if self.before_writes:
            self.before_writes.pop(0)()


def fail() -> None:
    """The ledger is out of reach."""
    raise LedgerError("the ledger is out of reach")
