"""From a ledger's address to the ledger; an adapter and its driver are imported only when asked for."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from costguard.domain.errors import InvalidInputError
from costguard.ports import RecordStore

_ACCEPTED = (
    "accepted are sqlite:///FILE (relative) or sqlite:////FILE (absolute), memory:, "
    "postgresql://USER@HOST/DATABASE, dynamodb://TABLE?region=REGION"
)


def open_ledger(url: str) -> RecordStore:
    """Open the ledger at `url`. Nothing is read or written before its first use, but for making a SQLite file.

    Raises:
        InvalidInputError: not an address of a ledger; the message never repeats it, as it may hold a password.
        LedgerError: the SQLite file cannot be made.
    """
    try:
        opened = _opened(url)
    except ModuleNotFoundError as err:
        if (err.name or "").partition(".")[0] != "sqlalchemy":
            raise
        message = "no SQL ledger is in this bundle: set COSTGUARD_LEDGER to dynamodb://…, or bundle with --ledger sql"
        raise InvalidInputError(message) from err
    return opened


def _opened(url: str) -> RecordStore:
    scheme = url.partition(":")[0].lower()
    if url == "memory:":
        return _memory()
    if scheme == "sqlite":
        return _sqlite(url)
    if scheme == "postgresql":
        return _postgresql(url)
    message = f"not a ledger address (scheme {scheme[:20]!r}); {_ACCEPTED}"
    raise InvalidInputError(message)


def _memory() -> RecordStore:
    from costguard.adapters.ledgers.sql import SqlLedger, sqlite_engine

    return SqlLedger(sqlite_engine(None), durable=False)


def _sqlite(url: str) -> RecordStore:
    parts = urlsplit(url)
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc or parts.query or parts.fragment or not path or path.startswith(":") or path.endswith("/"):
        message = f"a SQLite ledger is named sqlite:///FILE; {_ACCEPTED}"
        raise InvalidInputError(message)
    from costguard.adapters.ledgers.sql import SqlLedger, sqlite_engine

    return SqlLedger(sqlite_engine(Path(path)), durable=True)


def _postgresql(url: str) -> RecordStore:
    import sqlalchemy as sa

    from costguard.adapters.ledgers.sql import SqlLedger, postgresql_engine

    try:
        parsed = sa.make_url(url)
        if not parsed.database:
            message = f"the PostgreSQL ledger's address names no database; {_ACCEPTED}"
            raise InvalidInputError(message)
        engine = postgresql_engine(parsed.set(drivername="postgresql+psycopg"))
    except (sa.exc.ArgumentError, ValueError) as err:
        message = f"the PostgreSQL ledger's address cannot be read; {_ACCEPTED}"
        raise InvalidInputError(message) from err
    except ImportError as err:
        message = "a PostgreSQL ledger needs the driver psycopg: pip install 'gpu-costguard[postgres]'"
        raise InvalidInputError(message) from err
    return SqlLedger(engine, durable=True)
