"""Where races are held: real SQLite files, a real PostgreSQL server, moto's DynamoDB behind a socket."""

from __future__ import annotations

import sqlite3
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from costguard.adapters.ledgers import open_ledger
from costguard.ports import RecordStore

if TYPE_CHECKING:  # boto3 takes half a second, in each of the processes
    from costguard.providers.aws.core.store import DynamoDbLedger

_DYNAMODB = "moto:"  # an address that only these races know: TABLE@URL


class NoPlaceError(Exception):
    """This machine cannot hold the races asked for."""


class Place(ABC):
    """Makes new ledgers, each at an address that every process can open."""

    versions: str

    @abstractmethod
    def new_ledger(self) -> str:
        """The address of a ledger that nobody has used."""


class SqlitePlace(Place):
    """Files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.versions = f"SQLite {sqlite3.sqlite_version}, write-ahead log, synchronous full"

    def new_ledger(self) -> str:
        return f"sqlite:///{self._folder / uuid.uuid4().hex}.db"


class PostgresqlPlace(Place):
    """Databases of one server; `url` is an address of it."""

    def __init__(self, url: str) -> None:
        import sqlalchemy as sa

        self._server = sa.make_url(url).set(drivername="postgresql+psycopg")
        self._run = sa.create_engine(self._server, isolation_level="AUTOCOMMIT", poolclass=sa.pool.NullPool)
        with self._run.connect() as connection:
            number = connection.exec_driver_sql("SHOW server_version").scalar_one()
        self.versions = f"PostgreSQL {number}, psycopg {version('psycopg')}, fsync off"

    def new_ledger(self) -> str:
        name = f"races_{uuid.uuid4().hex}"
        with self._run.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        url = self._server.set(drivername="postgresql", database=name)
        return url.render_as_string(hide_password=False)


class DynamoDbPlace(Place):
    """Tables of moto's server at `url`, which answers one request at a time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.versions = f"moto {version('moto')}, boto3 {version('boto3')}, one request at a time"

    def new_ledger(self) -> str:
        table = f"races-{uuid.uuid4().hex}"
        ledger = _dynamodb(table, self._url)
        ledger.create_table()
        ledger.close()
        return f"{_DYNAMODB}{table}@{self._url}"


def open_store(address: str) -> RecordStore:
    """A store at an address, as another process opens it."""
    if address.startswith(_DYNAMODB):
        table, _, url = address.removeprefix(_DYNAMODB).partition("@")
        return _dynamodb(table, url)
    return open_ledger(address)


@contextmanager
def place_for(store: str, folder: Path) -> Iterator[Place]:
    """The place for `sqlite`, `postgresql` or `dynamodb`; its server, if it has one, ends with it.

    Raises:
        NoPlaceError: PostgreSQL is not installed.
    """
    if store == "sqlite":
        yield SqlitePlace(folder)
        return
    from tests.contract import ledger_servers as servers  # moto alone takes a second to import

    if store == "postgresql":
        binaries = servers.postgresql_binaries()
        if binaries is None:
            raise NoPlaceError(servers.NO_POSTGRESQL)
        with servers.postgresql_server(binaries) as url:
            yield PostgresqlPlace(url)
        return
    with servers.dynamodb_server() as (_, url):
        yield DynamoDbPlace(url)


def _dynamodb(table: str, url: str) -> DynamoDbLedger:
    """A ledger on moto; the made-up credentials are those of the contract suite."""
    import boto3

    from costguard.providers.aws.core.store import DynamoDbLedger

    client = boto3.session.Session().client(
        "dynamodb",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )
    return DynamoDbLedger(client, table)
