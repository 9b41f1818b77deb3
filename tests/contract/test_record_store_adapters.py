"""What is particular to one adapter of `RecordStore`: addresses, limits, faults of its wire."""

from __future__ import annotations

import json
import sqlite3
import stat
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from botocore.exceptions import ClientError
from tests.contract.ledger_servers import (
    NO_POSTGRESQL,
    SerialDynamoDb,
    dynamodb_server,
    dynamodb_test_client,
    postgresql_binaries,
    postgresql_server,
)

from costguard.adapters.ledgers.sql import SqlLedger, postgresql_engine, sqlite_engine
from costguard.bootstrap import open_store as open_ledger
from costguard.domain.errors import InvalidInputError, LedgerError, VersionConflictError
from costguard.engine.ledger.audit.audit import OPERATOR, AuditEntry, AuditTrail, AuditWhat, hash_of
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.ledger.codec import to_body
from costguard.engine.ledger.runs import RunRepository
from costguard.ports import Put, Record, RecordStore, VersionCheck
from costguard.providers.aws.core.store import DynamoDbLedger

NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def test_a_relative_and_an_absolute_sqlite_address_open_files(tmp_path: Path) -> None:
    path = tmp_path / "made" / "ledger 1.db"
    ledger = open_ledger(f"sqlite:///{str(path).replace(' ', '%20')}")
    ledger.put(Record("case", "a", {}), 0)
    ledger.close()

    assert ledger.durable
    assert path.exists()


def test_a_new_sqlite_file_is_its_owners_only(tmp_path: Path) -> None:
    open_ledger(f"sqlite:///{tmp_path}/ledger.db").close()

    assert stat.S_IMODE((tmp_path / "ledger.db").stat().st_mode) == 0o600


def test_sqlite_is_set_up_for_power_cuts_and_many_readers(tmp_path: Path) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db")
    assert isinstance(ledger, SqlLedger)

    with ledger._engine.connect() as connection:  # noqa: SLF001 - these settings show nowhere else
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "busy_timeout")
        }
    ledger.close()

    assert found == {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 30_000}


def test_the_first_users_of_a_new_sqlite_file_do_not_fail_each_other(tmp_path: Path) -> None:
    """Of several that switch a file to WAL at once, SQLite refuses all but one without waiting."""
    for number in range(25):
        ledgers = [open_ledger(f"sqlite:///{tmp_path}/{number}.db") for _ in range(4)]
        line = threading.Barrier(4)

        def use(ledger: RecordStore, line: threading.Barrier = line) -> None:
            line.wait()
            assert ledger.get("case", "a") is None

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(use, ledgers))
        for ledger in ledgers:
            ledger.close()


def test_a_file_that_is_no_database_is_a_ledger_error(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_text("not a database, but long enough to look like one" * 100)
    ledger = open_ledger(f"sqlite:///{path}")

    with pytest.raises(LedgerError, match="not a database"):
        ledger.get("case", "a")
    ledger.close()


def test_a_place_where_no_file_can_be_is_a_ledger_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(LedgerError, match="cannot be written"):
        open_ledger(f"sqlite:///{tmp_path}/file/ledger.db")


def test_sqlite_finds_records_of_several_kinds_by_its_index(tmp_path: Path) -> None:
    """`(kind, key) IN (…)` would read the whole table, however many records it has."""
    engine = sqlite_engine(tmp_path / "ledger.db")
    ledger = SqlLedger(engine, durable=True)
    asked: list[tuple[str, Any]] = []

    def keep(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        del connection, cursor
        if statement.startswith("SELECT"):
            asked.append((statement, parameters))

    ledger.put(Record("case", "a", {}), 0)
    sa.event.listen(engine, "before_cursor_execute", keep)
    assert ledger.get_each([("case", "a"), ("case", "b"), ("switch", "all")])
    sa.event.remove(engine, "before_cursor_execute", keep)
    with engine.connect() as connection:
        for statement, parameters in asked:
            steps = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            assert not [step for step in steps if str(step[-1]).startswith("SCAN")], steps
    ledger.close()
    assert len(asked) == 1


def test_a_damaged_body_is_a_ledger_error_not_an_absence(tmp_path: Path) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.put(Record("case", "a", {}), 0)
    for damage in ("{", "[]", ""):
        connection = sqlite3.connect(tmp_path / "ledger.db")
        connection.execute("UPDATE costguard_records SET body = ? WHERE kind = 'case'", [damage])
        connection.commit()
        connection.close()

        with pytest.raises(LedgerError, match="damaged"):
            ledger.get("case", "a")
    ledger.close()


def test_memory_is_shared_by_all_threads_and_says_that_it_does_not_last() -> None:
    ledger = open_ledger("memory:")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: ledger.put(Record("case", f"{n:02}", {}), 0), range(40)))

    assert len(list(ledger.query("case"))) == 40
    assert not ledger.durable
    ledger.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ledger.db",
        "/var/lib/ledger.db",
        "mysql://host/db",
        "memory:/x",
        "sqlite://",
        "sqlite:///",
        "sqlite:///folder/",
        "sqlite://host/file",
        "sqlite:///:memory:",
        "sqlite:///ledger.db?mode=ro",
        "postgresql://",
        "postgresql://host",
        "postgresql://user:secret@host:port/db",
        "postgresql://user:secret@host",
        "dynamodb://",
        "dynamodb://ab?region=us-east-1",
        "dynamodb://table/more?region=us-east-1",
        "dynamodb://table?regoin=us-east-1",
        "dynamodb://table?region=",
        "dynamodb://table?region=us-east-1&region=us-west-2",
        "dynamodb://table?region=us-east-1&endpoint_url=nonsense",
        "dynamodb://table?region=not%20a%20region",
    ],
)
def test_an_address_that_names_no_ledger_is_refused_with_what_is_accepted(url: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        open_ledger(url)

    assert "dynamodb://TABLE" in str(caught.value) or "DynamoDB ledger cannot be reached" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_password_shows_in_no_error() -> None:
    ledger = open_ledger("postgresql://user:secret@127.0.0.1:1/db")

    with pytest.raises(LedgerError) as caught:
        ledger.get("case", "a")
    ledger.close()

    assert "secret" not in str(caught.value)


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    binaries = postgresql_binaries()
    if binaries is None:
        pytest.skip(NO_POSTGRESQL)
    with postgresql_server(binaries) as url:
        yield url


def test_a_postgresql_address_opens_as_it_is(postgresql: str) -> None:
    ledger = open_ledger(postgresql)
    ledger.put(Record("address", "a", {}), 0)
    ledger.close()

    assert ledger.durable


def test_postgresql_is_found_again_after_it_hung_up(postgresql: str) -> None:
    url = sa.make_url(postgresql).set(drivername="postgresql+psycopg")
    ledger = SqlLedger(postgresql_engine(url), durable=True)
    ledger.put(Record("hang-up", "a", {}), 0)
    admin = sa.create_engine(url)
    with admin.connect() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    admin.dispose()

    assert ledger.get("hang-up", "a") is not None
    ledger.close()


def test_a_postgresql_database_in_another_encoding_is_refused(postgresql: str) -> None:
    url = sa.make_url(postgresql).set(drivername="postgresql+psycopg")
    admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(
            "CREATE DATABASE latin ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0"
        )
    admin.dispose()
    ledger = SqlLedger(postgresql_engine(url.set(database="latin")), durable=True)

    with pytest.raises(LedgerError, match="UTF8"):
        ledger.get("case", "a")
    ledger.close()


@pytest.fixture(scope="module")
def moto() -> Iterator[tuple[SerialDynamoDb, str]]:
    with dynamodb_server() as server:
        yield server


@pytest.fixture
def dynamodb(moto: tuple[SerialDynamoDb, str]) -> Iterator[DynamoDbLedger]:
    ledger = DynamoDbLedger(dynamodb_test_client(moto[1]), f"ledger-{uuid.uuid4().hex}")
    ledger.create_table()
    yield ledger
    ledger.close()


def test_a_dynamodb_address_names_table_region_and_endpoint(moto: tuple[SerialDynamoDb, str]) -> None:
    ledger = open_ledger(f"dynamodb://a-table?region=eu-west-1&endpoint_url={moto[1]}")
    assert isinstance(ledger, DynamoDbLedger)
    client, table = ledger._client, ledger._table  # noqa: SLF001 - what an address became shows nowhere else
    ledger.close()

    assert (client.meta.region_name, client.meta.endpoint_url, table) == ("eu-west-1", moto[1], "a-table")


def test_a_missing_dynamodb_table_is_an_error_and_is_not_made(moto: tuple[SerialDynamoDb, str]) -> None:
    ledger = DynamoDbLedger(dynamodb_test_client(moto[1]), "never-made")

    for _ in range(2):
        with pytest.raises(LedgerError, match="never-made does not exist in us-east-1"):
            ledger.get("case", "a")
    ledger.close()


def test_an_item_over_400_kb_is_refused_with_its_size(dynamodb: DynamoDbLedger) -> None:
    with pytest.raises(LedgerError, match=r"plan/big has 41\d,\d{3} bytes; DynamoDB stores at most 409,600"):
        dynamodb.put(Record("plan", "big", {"x": "y" * 410_000}), 0)

    assert dynamodb.get("plan", "big") is None


def test_a_lost_answer_to_a_put_is_no_conflict_with_oneself(
    dynamodb: DynamoDbLedger, moto: tuple[SerialDynamoDb, str]
) -> None:
    dynamodb.put(Record("case", "a", {"n": 1}), 0)
    moto[0].lose_answers_to(1)

    stored = dynamodb.put(Record("case", "a", {"n": 2}), 1)

    assert dynamodb.get("case", "a") == stored


def test_a_lost_answer_hides_no_true_conflict(dynamodb: DynamoDbLedger, moto: tuple[SerialDynamoDb, str]) -> None:
    dynamodb.put(Record("case", "a", {"n": 1}), 0)
    moto[0].lose_answers_to(1)

    with pytest.raises(VersionConflictError):
        dynamodb.put(Record("case", "a", {"n": 2}), 0)


class CancellingClient:
    """Answers every transaction with one cancellation."""

    def __init__(self, client: Any, *codes: str) -> None:
        self._client = client
        self._codes = codes

    def transact_write_items(self, **_: Any) -> None:
        raise ClientError(
            {
                "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
                "CancellationReasons": [{"Code": code} for code in self._codes],
            },
            "TransactWriteItems",
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (("None", "ConditionalCheckFailed"), VersionConflictError),
        (("TransactionConflict", "None"), VersionConflictError),
        (("ThrottlingError", "ConditionalCheckFailed"), VersionConflictError),
        (("ThrottlingError", "None"), LedgerError),
        (("None", "ValidationError"), LedgerError),
    ],
)
def test_only_a_failed_condition_or_a_rival_transaction_is_a_conflict(
    dynamodb: DynamoDbLedger, codes: tuple[str, str], expected: type[LedgerError]
) -> None:
    client: Any = CancellingClient(dynamodb._client, *codes)  # noqa: SLF001 - the same table through a failing client
    cancelled = DynamoDbLedger(client, dynamodb._table)  # noqa: SLF001 - as above

    with pytest.raises(LedgerError) as caught:
        cancelled.transact([Put(Record("case", "a", {}), 0), VersionCheck("case", "b", 0)])

    assert caught.type is expected


class FewAtOnceClient:
    """Answers a batch as DynamoDB does one over 16 MB: with some of its items, and the keys of the others."""

    def __init__(self, client: Any, most: int) -> None:
        self._client = client
        self._most = most
        self.asked: list[int] = []

    def batch_get_item(self, *, RequestItems: dict[str, Any]) -> dict[str, Any]:  # noqa: N803 - the API's own word
        ((table, wanted),) = RequestItems.items()
        keys = wanted["Keys"]
        self.asked.append(len(keys))
        now, later = keys[: self._most], keys[self._most :]
        answer = self._client.batch_get_item(RequestItems={table: {**wanted, "Keys": now}}) if now else {}
        unread = {table: {**wanted, "Keys": later}} if later else {}
        return {"Responses": answer.get("Responses", {}), "UnprocessedKeys": unread}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


@pytest.mark.parametrize(("most", "asked"), [(7, [16, 9, 2]), (0, [16])])
def test_what_a_batch_leaves_unread_is_asked_again_and_never_taken_for_absent(
    dynamodb: DynamoDbLedger, most: int, asked: list[int]
) -> None:
    dynamodb.transact([Put(Record("case", f"{n:02}", {"n": n}), 0) for n in range(15)])
    client: Any = FewAtOnceClient(dynamodb._client, most)  # noqa: SLF001 - the same table through a slow client
    slow = DynamoDbLedger(client, dynamodb._table)  # noqa: SLF001 - as above
    keys = [f"{n:02}" for n in range(16)]

    if most:
        assert sorted(slow.get_many("case", keys)) == keys[:15]
    else:
        with pytest.raises(LedgerError, match="read none of 16 items"):
            slow.get_many("case", keys)

    assert client.asked == asked


class Before:
    """The table as an older version writes and reads it: each record under its kind alone."""

    def __init__(self, ledger: DynamoDbLedger) -> None:
        self._client, self._table = ledger._client, ledger._table  # noqa: SLF001 - the same table
        self.client: Any = self._client

    def put(self, kind: str, key: str, version: int, body: dict[str, Any]) -> None:
        named = {"kind": {"S": kind}, "key": {"S": key}, "body": {"S": json.dumps(body)}, "write": {"S": "before"}}
        item = {**named, "version": {"N": str(version)}, "schema": {"N": "1"}}
        self._client.put_item(TableName=self._table, Item=item)

    def body(self, kind: str, key: str) -> dict[str, Any] | None:
        found = self._client.get_item(TableName=self._table, Key={"kind": {"S": kind}, "key": {"S": key}}).get("Item")
        return None if found is None else json.loads(found["body"]["S"])

    def partitions(self) -> Counter[str]:
        """How many records lie under each partition key."""
        pages = self.client.get_paginator("scan").paginate(TableName=self._table)
        return Counter(item["kind"]["S"] for page in pages for item in page["Items"])


def test_no_partition_takes_the_audit_of_more_than_some_chains(dynamodb: DynamoDbLedger) -> None:
    trail = AuditTrail(dynamodb)
    for shard in range(64):
        trail.append(*(AuditEntry(NOW, "run-1", f"shard-{shard}", AuditWhat.INTENT) for _ in range(3)))

    found = Before(dynamodb).partitions()
    for kind, written in (("audit", 192), ("audit_head", 64)):
        takes = [number for place, number in found.items() if place.partition("#")[0] == kind]
        assert (len(takes), sum(takes)) == (8, written)
        assert max(takes) <= written / 4
        assert kind not in found


@pytest.mark.parametrize("kind", ["case", "cap", "intent", "intent_case", "engaged", "notice", "snooze", "approval"])
def test_what_gates_an_action_lies_where_every_version_looks(dynamodb: DynamoDbLedger, kind: str) -> None:
    """Two places for a cap would be two caps."""
    dynamodb.put(Record(kind, "a/b/c", {"by": "this one"}), 0)

    assert Before(dynamodb).body(kind, "a/b/c") == {"by": "this one"}


def test_chains_that_every_version_appends_to_lie_where_every_version_looks(dynamodb: DynamoDbLedger) -> None:
    AuditTrail(dynamodb).append(AuditEntry(NOW, OPERATOR, "snooze", AuditWhat.SNOOZE))
    before = Before(dynamodb)
    assert before.body("audit_head", "operator/snooze") is not None

    entry = AuditEntry(NOW, "outbox", "2026-03", AuditWhat.NOTICE)
    body = {**to_body(entry), "seq": 1, "previous": ""}
    before.put("audit", "outbox/2026-03/00000001", 1, {**body, "hash": hash_of(body)})
    before.put("audit_head", "outbox/2026-03", 1, {"entries": 1, "hash": hash_of(body)})
    AuditTrail(dynamodb).append(entry)

    assert before.body("audit", "outbox/2026-03/00000002") is not None
    assert verify(dynamodb).problems == ()


def test_a_chain_that_an_older_version_began_is_gone_on_with_and_read_as_one(dynamodb: DynamoDbLedger) -> None:
    """As where a run that was killed begins again after an upgrade; what lies under the kind alone stays there."""
    RunRepository(dynamodb).begin("run-1", "idle_gpu", NOW)
    entry, before = AuditEntry(NOW, "run-1", "a-shard", AuditWhat.TRANSITION), Before(dynamodb)
    body = {**to_body(entry), "seq": 1, "previous": ""}
    before.put("audit", "run-1/a-shard/00000001", 1, {**body, "hash": hash_of(body)})
    before.put("audit_head", "run-1/a-shard", 1, {"entries": 1, "hash": hash_of(body)})

    trail = AuditTrail(dynamodb)
    trail.append(entry, entry)
    trail.append(entry)

    assert before.body("audit_head", "run-1/a-shard") == to_body(trail.heads("run-1")["a-shard"])
    assert [record.key[-1] for record in dynamodb.query("audit", "run-1/a-shard/")] == ["1", "2", "3", "4"]
    assert [record.key[-1] for record in dynamodb.query("audit")] == ["1", "2", "3", "4"]
    RunRepository(dynamodb).finish("run-1", {}, NOW)
    assert verify(dynamodb).problems == ()


def test_an_entry_that_an_older_version_wrote_is_changed_where_it_is(dynamodb: DynamoDbLedger) -> None:
    before = Before(dynamodb)
    before.put("audit", "run-1/a-shard/00000001", 1, {"facts": {}})

    dynamodb.put(Record("audit", "run-1/a-shard/00000001", {"pruned": True}), 1)
    with pytest.raises(VersionConflictError):
        dynamodb.put(Record("audit", "run-1/a-shard/00000001", {"pruned": False}), 1)
    dynamodb.transact([VersionCheck("audit", "run-1/a-shard/00000001", 2), Put(Record("case", "a", {}), 0)])

    assert before.body("audit", "run-1/a-shard/00000001") == {"pruned": True}
    assert [record.version for record in dynamodb.query("audit")] == [2]
    assert before.partitions() == {"audit": 1, "case": 1, "ledger": 1}


def test_the_audit_of_an_older_version_is_verified_beside_that_of_this_one(dynamodb: DynamoDbLedger) -> None:
    entry, before = AuditEntry(NOW, "run-0", "a-shard", AuditWhat.TRANSITION), Before(dynamodb)
    body = {**to_body(entry), "seq": 1, "previous": ""}
    before.put("audit", "run-0/a-shard/00000001", 1, {**body, "hash": hash_of(body)})
    before.put("audit_head", "run-0/a-shard", 1, {"entries": 1, "hash": hash_of(body)})
    runs = RunRepository(dynamodb)
    for run in ("run-0", "run-1"):
        runs.begin(run, "idle_gpu", NOW)
    AuditTrail(dynamodb).append(replace(entry, run_id="run-1"))
    for run in ("run-0", "run-1"):
        runs.finish(run, {}, NOW)

    verdict = verify(dynamodb)
    assert (verdict.entries, verdict.chains, verdict.problems) == (2, 2, ())
    before.put("audit", "run-0/a-shard/00000001", 2, {**body, "hash": "0" * 64})
    assert verify(dynamodb).problems != ()
