"""Durable memory, and what every adapter of it and of whole files shares: names and bodies checked, pages joined."""

from __future__ import annotations

import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from costguard.domain.errors import (
    InvalidInputError,
    LedgerError,
    NewerSchemaError,
    ProviderError,
    VersionConflictError,
)


@dataclass(frozen=True, slots=True)
class Record:
    """One remembered thing: `kind` and `key` name it, `version` counts its writes from 1.

    `body` is plain JSON (str, int, float, bool, None, list, dict); decimals and times travel as strings.
    """

    kind: str
    key: str
    body: Mapping[str, Any]
    version: int = 0
    schema: int = 1


@dataclass(frozen=True, slots=True)
class Put:
    """Write `record`; `expect_version` 0 means it must not exist yet."""

    record: Record
    expect_version: int


@dataclass(frozen=True, slots=True)
class VersionCheck:
    """Fail the transaction unless the record is at `version` (0: absent)."""

    kind: str
    key: str
    version: int


class RecordStore(Protocol):
    """Durable memory with compare-and-set. Keys sort as UTF-8 bytes; a store serves many threads."""

    @property
    def durable(self) -> bool:
        """Whether records outlive the process; enforcing refuses a store that does not."""

    def get(self, kind: str, key: str) -> Record | None:
        """The current record, strongly consistent, or None."""

    def get_many(self, kind: str, keys: Iterable[str]) -> Mapping[str, Record]:
        """Those of these records that there are, by key, a hundred a request; each as `get`, together no snapshot."""

    def get_each(self, names: Iterable[Name]) -> Mapping[Name, Record]:
        """The same of records of several kinds, each named by its kind and key."""

    def put(self, record: Record, expect_version: int) -> Record:
        """Write if the stored version is `expect_version` (0: absent); returns it with its new version.

        Raises:
            VersionConflictError: someone else wrote first; nothing was changed.
        """

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        """Records of `kind` whose key starts with `prefix` and sorts after `after`, in key order, all pages."""

    def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
        """All or nothing, at most 100 operations.

        Raises:
            VersionConflictError: at least one expectation failed; nothing was changed.
        """

    def close(self) -> None:
        """Release connections; the store is not used afterwards."""


class SecretStore(Protocol):
    """Where a host keeps secrets, in one region: read with the host's own role, and never written."""

    def read(self, name: str, version: str = "") -> str:
        """The text kept under `name`, as its current version; `version` where the vendor asks for one.

        Raises:
            AccessDeniedError: it may not be read.
            NotFoundError: nothing is kept there.
            RefusedError: it is binary, empty, or not to be had now.
            ProviderError: it could not be read.
        """

    def fix_for(self, error: ProviderError) -> str:
        """What a person can do about `error`; empty where that is not known."""


class ObjectStore(Protocol):
    """A place for whole files: a bucket, or a folder. Objects are private; nothing here makes one public."""

    def put(self, name: str, body: bytes, content_type: str) -> str:
        """Keep `body` under `name` (`digests/2026-W03.html`), in the place of what was there; its address for people.

        Raises:
            ProviderError: not kept, or not known to be.
        """

    def get(self, name: str) -> bytes:
        """What is kept under `name`.

        Raises:
            NotFoundError: nothing is.
            ProviderError: it could not be read, or is longer than 64 MiB.
        """


STORE_SCHEMA = 1
"""The layout of the store as a whole. A store that says more was set up by a newer Costguard and is refused."""

Name = tuple[str, str]  # a record's kind and key
SCHEMA_KIND, SCHEMA_KEY = "ledger", "schema"
MAX_NAME_BYTES = 1024  # the shortest limit among the adapters: a DynamoDB sort key
MAX_OPERATIONS = MAX_KEYS = 100  # the shortest limits among the adapters: DynamoDB TransactWriteItems, BatchGetItem
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
        """Those of these records that there are, by key."""
        return {key: record for (_, key), record in self.get_each((kind, key) for key in keys).items()}

    def get_each(self, names: Iterable[Name]) -> Mapping[Name, Record]:
        """The same of several kinds: each record strongly consistent, the whole no snapshot."""
        wanted = list(dict.fromkeys(names))
        for kind, key in wanted:
            _check_name(kind, key)
        found: dict[Name, Record] = {}
        for at in range(0, len(wanted), MAX_KEYS):
            self._agree()
            found.update(((one.kind, one.key), one) for one in self._read_many(wanted[at : at + MAX_KEYS]))
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
    def _read_many(self, names: Sequence[Name]) -> Iterable[Record]:
        """Those of 1 to 100 different records that there are, in any order."""

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
            record = signed
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


MOST_BYTES = 64 * 1024 * 1024  # of one object: nothing that Costguard keeps comes near it

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*", re.ASCII)
_LONGEST_NAME = 512  # of 1,024 bytes that every vendor allows, the rest is for the prefix
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)  # the rule of all three vendors
_REGION = re.compile(r"[a-z]{2,10}(?:-[a-z0-9]{1,20}){1,4}", re.ASCII)


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """Where objects are kept: `scheme://BUCKET/PREFIX?region=REGION`. The prefix ends with `/` or is empty."""

    scheme: str
    bucket: str
    region: str
    prefix: str = ""

    def key(self, name: str) -> str:
        """The whole key of an object.

        Raises:
            InvalidInputError: not a name.
        """
        return self.prefix + object_name(name)

    def of(self, name: str) -> str:
        """The address of an object, for people and the vendors' own tools."""
        return f"{self.scheme}://{self.bucket}/{self.key(name)}"


def object_name(name: str) -> str:
    """The name, where it is one: parts of letters, digits, `.`, `_` and `-`, none beginning with a dot, joined by `/`.

    Raises:
        InvalidInputError: it is none; nothing that leads out of its place is.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        message = f"{name[:80]!r} is no name of an object; expected such as digests/2026-W03.html"
        raise InvalidInputError(message)
    return name


def bucket_address(url: str, schemes: Collection[str]) -> BucketAddress:
    """Read `s3://BUCKET/PREFIX?region=REGION`, and the same with another of `schemes`.

    Raises:
        InvalidInputError: not such an address; names what is wrong.
    """
    try:
        parts = urlsplit(url)
        named = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError as err:
        message = f"COSTGUARD_REPORTS cannot be read: {err}"
        raise InvalidInputError(message) from err
    options, prefix = dict(named), parts.path.strip("/")
    wrong = (
        (parts.scheme not in schemes, f"expected {' or '.join(f'{one}://' for one in sorted(schemes))}"),
        (not _BUCKET.fullmatch(parts.netloc), "a bucket's name has 3 to 63 small letters, digits, dots and hyphens"),
        (set(options) != {"region"} or len(named) != 1, "expected ?region=REGION and nothing else"),
        (not _REGION.fullmatch(options.get("region", "")), "that is no name of a region"),
        (bool(parts.fragment), "it ends in a fragment"),
        (prefix and not _NAME.fullmatch(prefix), "its prefix has letters that no name of ours has"),
    )
    found = next((what for is_wrong, what in wrong if is_wrong), "")
    if found:
        message = f"COSTGUARD_REPORTS is no address of a bucket: {found}; for example s3://acme-reports/costguard?region=us-east-1"
        raise InvalidInputError(message)
    return BucketAddress(parts.scheme, parts.netloc, options["region"], f"{prefix}/" if prefix else "")
