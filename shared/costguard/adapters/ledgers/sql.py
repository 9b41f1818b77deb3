"""Records in one SQL table: SQLite for one machine, PostgreSQL for many.

Every write is a compare-and-set on the version in the WHERE clause, inside one transaction. SQLite takes
the write lock at its start (BEGIN IMMEDIATE), so a transaction that has begun cannot lose to another.
PostgreSQL takes a lock for every record a transaction names, also those it only checks and those that do not
exist yet: what was checked still holds when the transaction commits. SERIALIZABLE alone does not give that;
it puts transactions in some order, not in the order in which their callers were answered.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.pool import QueuePool

from costguard.domain.errors import LedgerError, VersionConflictError
from costguard.ports import Put, Record, VersionCheck
from costguard.ports.records import Ledger, Name, body_text, conflict, record_from, target_of

_Result = TypeVar("_Result")

_BUSY_SECONDS = 30  # a writer holds SQLite's lock for milliseconds; half a minute means it is stuck
_ASK_AGAIN = 20  # transactions given up in a row; each means that another got through
_GIVEN_UP = ("40001", "40P01")  # PostgreSQL: serialization_failure, deadlock_detected
_SURROGATES, _AFTER_SURROGATES = range(0xD800, 0xE000), 0xE000  # no text has them
_SETUP_LOCK = 7_311_042  # an arbitrary number shared by all Costguards: PostgreSQL has no safe concurrent CREATE TABLE

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")  # sorts as bytes, whatever the locale
_METADATA = sa.MetaData()
_RECORDS = sa.Table(
    "costguard_records",
    _METADATA,
    sa.Column("kind", _NAME, primary_key=True),
    sa.Column("key", _NAME, primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("schema", sa.Integer, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)

# built once: putting one together anew each time costs more than running it
_HERE = (_RECORDS.c.kind == sa.bindparam("of_kind"), _RECORDS.c.key == sa.bindparam("of_key"))
_GET = sa.select(_RECORDS).where(*_HERE)
_GET_VERSION = sa.select(_RECORDS.c.version).where(*_HERE)
_FROM = (_RECORDS.c.kind == sa.bindparam("of_kind"), _RECORDS.c.key >= sa.bindparam("first"))
_PAGE = sa.select(_RECORDS).where(*_FROM).order_by(_RECORDS.c.key).limit(sa.bindparam("most"))
_PAGE_WITHIN = _PAGE.where(_RECORDS.c.key < sa.bindparam("end"))
_INSERT = sa.insert(_RECORDS)
_UPDATE = sa.update(_RECORDS).where(*_HERE, _RECORDS.c.version == sa.bindparam("expected"))
_LIMIT_LOCKS = sa.text("SELECT set_config('lock_timeout', :limit, true)")
_LOCK = sa.text("SELECT pg_advisory_xact_lock(k) FROM unnest(CAST(:keys AS bigint[])) AS k")


def sqlite_engine(path: Path | None) -> sa.Engine:
    """An engine for a SQLite file, or for a store in memory (None) that all threads share through one connection.

    The file is made readable by its owner only; its folder must exist or be creatable.

    Raises:
        LedgerError: the folder or file cannot be made.
    """
    common: dict[str, Any] = {"hide_parameters": True, "poolclass": QueuePool, "pool_timeout": _BUSY_SECONDS}
    if path is None:
        url = sa.URL.create("sqlite")
        engine = sa.create_engine(url, pool_size=1, max_overflow=0, connect_args={"check_same_thread": False}, **common)
    else:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
        except OSError as err:
            message = f"the ledger {path} cannot be written: {err.strerror}"
            raise LedgerError(message) from err
        url = sa.URL.create("sqlite", database=str(path))
        engine = sa.create_engine(url, pool_size=8, max_overflow=-1, **common)
    sa.event.listen(engine, "connect", _set_up_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def postgresql_engine(url: sa.URL) -> sa.Engine:
    """An engine for a PostgreSQL server. `url` has the driver psycopg."""
    return sa.create_engine(
        url,
        isolation_level="READ COMMITTED",  # under the locks of `_lock`: each statement sees what was committed before
        hide_parameters=True,
        pool_pre_ping=True,  # functions are frozen between calls; servers hang up meanwhile
        # prepare_threshold: connection poolers lose prepared statements
        connect_args={"connect_timeout": 10, "client_encoding": "utf8", "prepare_threshold": None},
    )


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # Python must not begin transactions of its own
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000}")
        _use_write_ahead_log(cursor)
        cursor.execute("PRAGMA synchronous = FULL")  # an intent must survive a power cut; WAL alone may lose the last
    finally:
        cursor.close()


def _use_write_ahead_log(cursor: Any) -> None:
    """Switch the file to WAL; of several first users one does, and SQLite gives the others no busy_timeout here."""
    for _ in range(_ASK_AGAIN):
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            cursor.execute("BEGIN IMMEDIATE")  # waits, busy_timeout long, for whoever holds the file
            cursor.execute("COMMIT")
        else:
            return
    cursor.execute("PRAGMA journal_mode = WAL")


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("costguard_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


class SqlLedger(Ledger):
    """A `RecordStore` in the table `costguard_records`, which it creates where it is missing."""

    def __init__(self, engine: sa.Engine, *, durable: bool, page_size: int = 500) -> None:
        super().__init__(durable=durable, page_size=page_size)
        self._engine = engine
        self._is_postgresql = engine.dialect.name == "postgresql"
        # one SELECT needs no transaction
        self._reads = engine.execution_options(isolation_level="AUTOCOMMIT") if self._is_postgresql else engine
        self._writes = engine.execution_options(costguard_writes=True)

    def close(self) -> None:
        """Close pooled connections."""
        self._engine.dispose()

    def _prepare(self) -> None:
        with _as_ledger_errors(), self._engine.connect() as connection:
            if self._is_postgresql:
                encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
                if encoding != "UTF8":
                    message = f"the PostgreSQL database is encoded in {encoding}; the ledger needs UTF8"
                    raise LedgerError(message)
            exists = sa.inspect(connection).has_table(_RECORDS.name)
        if not exists:
            self._create_table()

    def _create_table(self) -> None:
        def create(connection: sa.Connection) -> None:
            if self._is_postgresql:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_SETUP_LOCK)))
            connection.execute(sa.schema.CreateTable(_RECORDS, if_not_exists=True))

        self._in_transaction(create)

    def _read(self, kind: str, key: str) -> Record | None:
        with _as_ledger_errors(), self._reads.connect() as connection:
            row = connection.execute(_GET, {"of_kind": kind, "of_key": key}).one_or_none()
        return None if row is None else record_from(*row)

    def _read_many(self, names: Sequence[Name]) -> Sequence[Record]:
        keys: dict[str, list[str]] = {}
        for kind, key in names:
            keys.setdefault(kind, []).append(key)
        # kind by kind: SQLite reads the whole table for `(kind, key) IN (…)`
        wanted = sa.or_(*(sa.and_(_RECORDS.c.kind == kind, _RECORDS.c.key.in_(its)) for kind, its in keys.items()))
        with _as_ledger_errors(), self._reads.connect() as connection:
            rows = connection.execute(sa.select(_RECORDS).where(wanted)).all()
        return [record_from(*row) for row in rows]

    def _page(self, kind: str, prefix: str, after: str, limit: int) -> tuple[Sequence[Record], bool]:
        # one lower bound: of two, SQLite seeks by the first and steps over all that the second leaves out. No key has
        # a NUL, so none lies between `after` and what comes first here
        asked = {"of_kind": kind, "first": f"{after}\x01" if after else prefix, "most": limit}
        end = _end_of(prefix)
        within = _PAGE if end is None else _PAGE_WITHIN
        with _as_ledger_errors(), self._reads.connect() as connection:
            rows = connection.execute(within, asked if end is None else {**asked, "end": end}).all()
        records = [record_from(*row) for row in rows]
        return records, len(records) == limit

    def _write(self, operations: Sequence[Put | VersionCheck]) -> None:
        def apply(connection: sa.Connection) -> None:
            if self._is_postgresql:
                _lock(connection, operations)
            for operation in operations:
                _apply(connection, operation)

        self._in_transaction(apply)

    def _in_transaction(self, work: Callable[[sa.Connection], _Result]) -> _Result:
        for _ in range(_ASK_AGAIN):
            try:
                with self._writes.connect() as connection, connection.begin():
                    return work(connection)
            except sa.exc.DBAPIError as err:
                if getattr(err.orig, "sqlstate", None) not in _GIVEN_UP:
                    raise _ledger_error(err) from err
            except sa.exc.SQLAlchemyError as err:
                raise _ledger_error(err) from err
        message = f"other writers got ahead {_ASK_AGAIN} times in a row; nothing was changed"
        raise VersionConflictError(message)


def _end_of(prefix: str) -> str | None:
    """What sorts right after every key with this prefix; None where only the end of the kind does."""
    whole = prefix.rstrip(chr(sys.maxunicode))
    if not whole:
        return None
    last = ord(whole[-1]) + 1
    return whole[:-1] + chr(_AFTER_SURROGATES if last in _SURROGATES else last)


def _lock(connection: sa.Connection, operations: Sequence[Put | VersionCheck]) -> None:
    """Hold every record that is named until the transaction ends; in one order everywhere, so that nobody deadlocks."""
    names = {target_of(operation)[:2] for operation in operations}
    keys = sorted(_lock_key(kind, key) for kind, key in names)
    connection.execute(_LIMIT_LOCKS, {"limit": f"{_BUSY_SECONDS}s"})
    connection.execute(_LOCK, {"keys": keys})


def _lock_key(kind: str, key: str) -> int:
    """64 bits of the name; two names that share them wait for each other and are none the worse for it."""
    return int.from_bytes(hashlib.sha256(f"{kind}\0{key}".encode()).digest()[:8], "big", signed=True)


def _apply(connection: sa.Connection, operation: Put | VersionCheck) -> None:
    kind, key, expected = target_of(operation)
    here = {"of_kind": kind, "of_key": key}
    if isinstance(operation, VersionCheck):
        found = connection.execute(_GET_VERSION, here).scalar_one_or_none()
        if (found or 0) != expected:
            raise conflict(kind, key, expected)
        return
    values = {"version": expected + 1, "schema": operation.record.schema, "body": body_text(operation.record)}
    if expected == 0:
        try:
            connection.execute(_INSERT, {"kind": kind, "key": key, **values})
        except sa.exc.IntegrityError as err:
            raise conflict(kind, key, expected) from err
        return
    written = connection.execute(_UPDATE, {**here, "expected": expected, **values})
    if written.rowcount != 1:
        raise conflict(kind, key, expected)


@contextmanager
def _as_ledger_errors() -> Iterator[None]:
    try:
        yield
    except sa.exc.SQLAlchemyError as err:
        raise _ledger_error(err) from err


def _ledger_error(err: sa.exc.SQLAlchemyError) -> LedgerError:
    cause = err.orig if isinstance(err, sa.exc.DBAPIError) else err
    return LedgerError(f"the ledger's database failed: {str(cause).strip()}")
