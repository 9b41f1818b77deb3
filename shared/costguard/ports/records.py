"""What every adapter shares: names and bodies checked, pages joined, the store's own schema agreed before first use."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from costguard.domain.errors import LedgerError, NewerSchemaError, VersionConflictError
from costguard.ports import Put, Record, VersionCheck

STORE_SCHEMA = 1
"""The layout of the store as a whole. A store that says more was set up by a newer Costguard and is refused."""

SCHEMA_KIND, SCHEMA_KEY = "ledger", "schema"
MAX_NAME_BYTES = 1024  # the shortest limit among the adapters: a DynamoDB sort key
MAX_OPERATIONS = 100  # the shortest limit among the adapters: DynamoDB TransactWriteItems
MAX_KEYS = 100  # the shortest limit among the adapters: DynamoDB BatchGetItem
_PAGE = 200


class Ledger(ABC):
    """A `RecordStore` less its wire. Adapters implement the underscored methods and raise only our errors."""

    def __init__(self, *, durable: bool, page_size: int = _PAGE) -> None:
        self._durable = durable
        self._page_size = page_size
        self._agreed = threading.Event()
        self._agreeing = threading.Lock()

    @property
    def durable(self) -> bool:
        """Whether records outlive the process."""
        return self._durable

    def get(self, kind: str, key: str) -> Record | None:
        """The current record, strongly consistent, or None."""
        _check_name(kind, key)
        self._agree()
        return self._read(kind, key)

    def get_many(self, kind: str, keys: Iterable[str]) -> Mapping[str, Record]:
        """Those of these records that there are, by key: each strongly consistent, the whole is no snapshot."""
        wanted = list(dict.fromkeys(keys))
        for key in wanted:
            _check_name(kind, key)
        found: dict[str, Record] = {}
        for at in range(0, len(wanted), MAX_KEYS):
            self._agree()
            found.update((record.key, record) for record in self._read_many(kind, wanted[at : at + MAX_KEYS]))
        return found

    def put(self, record: Record, expect_version: int) -> Record:
        """Write if the stored version is `expect_version` (0: absent); returns it with its new version."""
        self.transact((Put(record, expect_version),))
        return replace(record, version=expect_version + 1)

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        """Records of `kind` in key order, read page by page: each page is consistent, the whole is no snapshot."""
        _check_name(kind, prefix or after or kind)
        self._agree()
        if after > prefix and not after.startswith(prefix):
            return iter(())  # code points sort as UTF-8 bytes do, so every key with this prefix sorts before `after`
        return self._pages(kind, prefix, after if after.startswith(prefix) else "")

    def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
        """All or nothing, at most 100 operations, each on its own record."""
        if not operations:
            return
        _check_operations(operations)
        self._agree()
        self._write(operations)

    @abstractmethod
    def close(self) -> None:
        """Release connections."""

    @abstractmethod
    def _prepare(self) -> None:
        """Make the store usable, once, before anything is read."""

    @abstractmethod
    def _read(self, kind: str, key: str) -> Record | None:
        """One record."""

    @abstractmethod
    def _read_many(self, kind: str, keys: Sequence[str]) -> Iterable[Record]:
        """Those of 1 to 100 different keys that there are, in any order."""

    @abstractmethod
    def _page(self, kind: str, prefix: str, after: str, limit: int) -> tuple[Sequence[Record], bool]:
        """At most `limit` records after `after` (empty, or starting with `prefix`), and whether there may be more."""

    @abstractmethod
    def _write(self, operations: Sequence[Put | VersionCheck]) -> None:
        """All or nothing."""

    def _pages(self, kind: str, prefix: str, after: str) -> Iterator[Record]:
        more = True
        while more:
            records, more = self._page(kind, prefix, after, self._page_size)
            if more and (not records or records[-1].key <= after):
                message = f"the ledger promised more {kind} records after {after!r} and did not give them"
                raise LedgerError(message)
            yield from records
            after = records[-1].key if records else after

    def _agree(self) -> None:
        """Refuse a store laid out by a newer Costguard; sign a new one. Once per store and process."""
        if self._agreed.is_set():
            return
        with self._agreeing:
            if self._agreed.is_set():
                return
            self._prepare()
            record = self._read(SCHEMA_KIND, SCHEMA_KEY)
            if record is None:
                record = self._sign()
            stored = record.body.get("schema")
            if not isinstance(stored, int) or isinstance(stored, bool) or stored < 1:
                message = f"the ledger's own schema record is unreadable: {stored!r} is no schema number"
                raise LedgerError(message)
            if stored > STORE_SCHEMA:
                message = (
                    f"the ledger has schema {stored}, this Costguard understands up to {STORE_SCHEMA}; "
                    "upgrade this Costguard, or point it at its own ledger"
                )
                raise NewerSchemaError(message)
            self._agreed.set()

    def _sign(self) -> Record:
        record = Record(SCHEMA_KIND, SCHEMA_KEY, {"schema": STORE_SCHEMA})
        try:
            self._write((Put(record, 0),))
        except VersionConflictError:  # another process signed first
            signed = self._read(SCHEMA_KIND, SCHEMA_KEY)
            if signed is None:
                raise
            return signed
        return record


def body_text(record: Record) -> str:
    """The body as ASCII JSON: the same bytes in every store, safe for NUL and lone surrogates.

    Raises:
        LedgerError: the body is not plain JSON (NaN, a set, a Decimal).
    """
    try:
        return json.dumps(record.body, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as err:
        message = f"record {record.kind}/{record.key} is not plain JSON: {err}"
        raise LedgerError(message) from err


def record_from(kind: str, key: str, version: int, schema: int, text: str) -> Record:
    """A record as stored.

    Raises:
        LedgerError: the stored body is not a JSON object.
    """
    try:
        body: Any = json.loads(text)
    except (ValueError, RecursionError) as err:
        message = f"record {kind}/{key} is damaged: {err}"
        raise LedgerError(message) from err
    if not isinstance(body, dict):
        message = f"record {kind}/{key} is damaged: its body is no JSON object"
        raise LedgerError(message)
    return Record(kind, key, body, version=version, schema=schema)


def conflict(kind: str, key: str, expect_version: int) -> VersionConflictError:
    """The error for an expectation that failed, naming it."""
    return VersionConflictError(f"record {kind}/{key} is no longer at version {expect_version}")


def target_of(operation: Put | VersionCheck) -> tuple[str, str, int]:
    """Kind, key and expected version of an operation."""
    if isinstance(operation, Put):
        return operation.record.kind, operation.record.key, operation.expect_version
    return operation.kind, operation.key, operation.version


def _check_operations(operations: Sequence[Put | VersionCheck]) -> None:
    if len(operations) > MAX_OPERATIONS:
        message = f"a transaction takes at most {MAX_OPERATIONS} operations, not {len(operations)}"
        raise LedgerError(message)
    seen: set[tuple[str, str]] = set()
    for operation in operations:
        kind, key, version = target_of(operation)
        _check_name(kind, key)
        if version < 0:
            message = f"record {kind}/{key}: {version} is no version to expect"
            raise LedgerError(message)
        if (kind, key) in seen:
            message = f"a transaction may name record {kind}/{key} only once"
            raise LedgerError(message)
        seen.add((kind, key))


def _check_name(kind: str, key: str) -> None:
    for what, name in (("kind", kind), ("key", key)):
        try:
            size = len(name.encode())
        except UnicodeEncodeError as err:
            message = f"the {what} {name!r} of a record is not valid Unicode"
            raise LedgerError(message) from err
        if not 0 < size <= MAX_NAME_BYTES or "\0" in name:
            message = f"the {what} {name[:80]!r} of a record must have 1 to {MAX_NAME_BYTES} bytes and no NUL"
            raise LedgerError(message)
