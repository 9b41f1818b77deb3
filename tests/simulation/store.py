"""A ledger in memory: the bodies every store would hold, compare-and-set, and what the store itself saw."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, TypeVar

from tests.simulation.faults import Fault, Port
from tests.simulation.hub import Hub, Process

from costguard.domain.errors import LedgerError, VersionConflictError
from costguard.ports import Put, Record, VersionCheck
from costguard.ports.records import Ledger, Name, conflict, target_of

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Noticed:
    """A notice as the store got it: the boundary call that first wrote it, by whom, and the one that said delivered."""

    first: int
    writer: Process | None
    delivered: int | None = None


@dataclass(slots=True)
class Shelf:
    """What is remembered; survives every process."""

    records: dict[tuple[str, str], Record] = field(default_factory=dict)
    keys: dict[str, list[str]] = field(default_factory=dict)
    intents: set[str] = field(default_factory=set)  # action ids with an audit entry of their intent
    noticed: dict[str, Noticed] = field(default_factory=dict)  # by id of the notice
    calls: int = 0  # boundary calls made so far, as the process that writes now counts them
    writer: Process | None = None

    def copied(self) -> Shelf:
        """The same, to go on from in another simulation; records are never changed in place."""
        keys = {kind: copy(keys) for kind, keys in self.keys.items()}
        return Shelf(dict(self.records), keys, set(self.intents), dict(self.noticed))

    @property
    def digest(self) -> str:
        """The hash of every record: equal if and only if the same is remembered."""
        found = blake2b(digest_size=16)
        for where, record in sorted(self.records.items()):
            found.update(json.dumps([*where, record.version, record.schema, record.body], sort_keys=True).encode())
        return found.hexdigest()


class MemoryLedger(Ledger):
    """A `RecordStore` over a `Shelf`."""

    def __init__(self, shelf: Shelf, *, durable: bool = True, page_size: int = 50) -> None:
        super().__init__(durable=durable, page_size=page_size)
        self.shelf = shelf

    def close(self) -> None:
        """Nothing to release."""

    def _prepare(self) -> None:
        pass

    def _read(self, kind: str, key: str) -> Record | None:
        return self.shelf.records.get((kind, key))

    def _read_many(self, names: Sequence[Name]) -> Sequence[Record]:
        return [record for name in names if (record := self.shelf.records.get(name)) is not None]

    def _page(self, kind: str, prefix: str, after: str, limit: int) -> tuple[Sequence[Record], bool]:
        keys = self.shelf.keys.get(kind, [])
        first = max(bisect_left(keys, prefix), bisect_right(keys, after) if after else 0)
        page = [key for key in keys[first : first + limit] if key.startswith(prefix)]
        records = self.shelf.records
        return [records[kind, key] for key in page], len(page) == limit

    def _write(self, operations: Sequence[Put | VersionCheck]) -> None:
        records = self.shelf.records
        for operation in operations:
            kind, key, expected = target_of(operation)
            known = records.get((kind, key))
            if (known.version if known is not None else 0) != expected:
                raise conflict(kind, key, expected)
        for operation in operations:
            if isinstance(operation, Put):
                self._put(operation)

    def _put(self, put: Put) -> None:
        record = put.record
        if put.expect_version == 0:
            insort(self.shelf.keys.setdefault(record.kind, []), record.key)
        self.shelf.records[record.kind, record.key] = replace(record, version=put.expect_version + 1)
        if record.kind == "audit" and record.body["what"] == "intent":
            action: dict[str, Any] = record.body["facts"]["action"]
            self.shelf.intents.add(action["action_id"])
        elif record.kind == "notice":
            known = self.shelf.noticed.get(record.key, Noticed(self.shelf.calls, self.shelf.writer))
            if record.body["state"] == "delivered" and known.delivered is None:
                known = replace(known, delivered=self.shelf.calls)
            self.shelf.noticed[record.key] = known


class FaultyLedger:
    """One process's `RecordStore`."""

    def __init__(self, hub: Hub, process: Process, inner: MemoryLedger) -> None:
        self._hub = hub
        self._process = process
        self._inner = inner

    @property
    def durable(self) -> bool:
        """Whether records outlive the process."""
        return self._inner.durable

    def get(self, kind: str, key: str) -> Record | None:
        """The current record."""
        return self._load("get", f"{kind}/{key}", lambda: self._inner.get(kind, key))

    def get_many(self, kind: str, keys: Iterable[str]) -> Mapping[str, Record]:
        """Those of these records that there are."""
        wanted = list(keys)
        if not wanted:
            return {}
        return self._load("get", f"{kind}/{','.join(wanted)}", lambda: self._inner.get_many(kind, wanted))

    def get_each(self, names: Iterable[Name]) -> Mapping[Name, Record]:
        """The same of several kinds."""
        wanted = list(names)
        if not wanted:
            return {}
        asked = ",".join(f"{kind}/{key}" for kind, key in wanted)
        return self._load("get", asked, lambda: self._inner.get_each(wanted))

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        """Records in key order."""
        return iter(self._load("query", f"{kind}/{prefix}", lambda: list(self._inner.query(kind, prefix, after))))

    def put(self, record: Record, expect_version: int) -> Record:
        """Write one record."""
        self.transact((Put(record, expect_version),))
        return replace(record, version=expect_version + 1)

    def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
        """All or nothing."""
        kind, key, _ = target_of(operations[0])
        self._hub.call(
            self._process, Port.STORE, "write", f"{kind}/{key}", lambda fault: self._write(operations, fault)
        )

    def close(self) -> None:
        """Nothing to release."""

    def _write(self, operations: Sequence[Put | VersionCheck], fault: Fault | None) -> None:
        if fault is Fault.LOST:
            raise LedgerError("the ledger did not answer")
        if fault is Fault.CONFLICT:
            raise VersionConflictError("another writer was first")
        self._inner.shelf.writer, self._inner.shelf.calls = self._process, self._hub.calls
        self._inner.transact(operations)
        self._process.wrote(self._hub.calls)
        if fault is Fault.LOST_ANSWER:
            raise LedgerError("the ledger took it and its answer was lost")

    def _load(self, what: str, subject: str, read: Callable[[], _Result]) -> _Result:
        def do(fault: Fault | None) -> _Result:
            if fault is Fault.LOST:
                raise LedgerError("the ledger did not answer")
            return read()

        return self._hub.call(self._process, Port.LOAD, what, subject, do)
