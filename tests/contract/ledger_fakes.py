"""Stores that do to a repository what other processes and crashes do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from costguard.domain.errors import LedgerError
from costguard.ports import Put, Record, RecordStore, VersionCheck
from costguard.ports.records import MAX_KEYS, Name, target_of


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

    def get_each(self, names: Iterable[Name]) -> Mapping[Name, Record]:
        return self._store.get_each(names)

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


class CountingStore(InterferingStore):
    """The given store; `asked` has every call that costs a request, with the kinds it was about."""

    def __init__(self, store: RecordStore) -> None:
        super().__init__(store)
        self.asked: list[tuple[str, str]] = []

    def get(self, kind: str, key: str) -> Record | None:
        self.asked.append(("get", kind))
        return super().get(kind, key)

    def get_many(self, kind: str, keys: Iterable[str]) -> Mapping[str, Record]:
        wanted = list(keys)
        self.asked.extend([("get_many", kind)] * -(-len(wanted) // MAX_KEYS))
        return super().get_many(kind, wanted)

    def get_each(self, names: Iterable[Name]) -> Mapping[Name, Record]:
        wanted = list(names)
        kinds = "+".join(sorted({kind for kind, _ in wanted}))
        self.asked.extend([("get_each", kinds)] * -(-len(wanted) // MAX_KEYS))
        return super().get_each(wanted)

    def put(self, record: Record, expect_version: int) -> Record:
        self.asked.append(("put", record.kind))
        return super().put(record, expect_version)

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        self.asked.append(("query", kind))
        return super().query(kind, prefix, after)

    def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
        self.asked.append(("transact", "+".join(sorted({target_of(operation)[0] for operation in operations}))))
        super().transact(operations)


class WeighingStore:
    """A store that counts the records it gives away, and of what kinds."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self.durable = True
        self.given: dict[str, int] = {}

    def get(self, kind: str, key: str) -> Record | None:
        found = self._store.get(kind, key)
        self._count(kind, found is not None)
        return found

    def get_many(self, kind: str, keys: Iterable[str]) -> Mapping[str, Record]:
        found = self._store.get_many(kind, keys)
        self._count(kind, len(found))
        return found

    def get_each(self, names: Iterable[Name]) -> Mapping[Name, Record]:
        found = self._store.get_each(names)
        for kind, _ in found:
            self._count(kind, 1)
        return found

    def put(self, record: Record, expect_version: int) -> Record:
        return self._store.put(record, expect_version)

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        for record in self._store.query(kind, prefix, after):
            self._count(kind, 1)
            yield record

    def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
        self._store.transact(operations)

    def close(self) -> None:
        self._store.close()

    def _count(self, kind: str, records: int) -> None:
        self.given[kind] = self.given.get(kind, 0) + records


def fail() -> None:
    """The ledger is out of reach."""
    raise LedgerError("the ledger is out of reach")
