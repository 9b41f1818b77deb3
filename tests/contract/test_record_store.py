"""The contract of `RecordStore`, on every adapter."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.contract.ledger_servers import (
    NO_POSTGRESQL,
    dynamodb_server,
    dynamodb_test_client,
    postgresql_binaries,
    postgresql_server,
)

from costguard.adapters.ledgers.sql import SqlLedger, postgresql_engine, sqlite_engine
from costguard.domain.errors import LedgerError, NewerSchemaError, VersionConflictError
from costguard.ports import Put, Record, RecordStore, VersionCheck
from costguard.ports.records import STORE_SCHEMA, Ledger
from costguard.providers.aws.core.store import DynamoDbLedger

PAGE = 3  # small pages, so that few records make many
ADAPTERS = ("sqlite_file", "sqlite_memory", "postgresql", "dynamodb")


@dataclass
class Place:
    """Somewhere records are kept; each `open` is what another process would open."""

    opener: Callable[[], Ledger]
    outlives_the_process: bool
    opened: list[Ledger] = field(default_factory=list)

    def open(self) -> Ledger:
        store = self.opener()
        self.opened.append(store)
        return store


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    binaries = postgresql_binaries()
    if binaries is None:
        pytest.skip(NO_POSTGRESQL)
    with postgresql_server(binaries) as url:
        yield url


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[str]:
    with dynamodb_server() as (_, url):
        yield url


@pytest.fixture(params=ADAPTERS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    engines: list[sa.Engine] = []
    if request.param == "sqlite_file":
        path = tmp_path / "ledger.db"
        place = Place(lambda: SqlLedger(sqlite_engine(path), durable=True, page_size=PAGE), outlives_the_process=True)
    elif request.param == "sqlite_memory":
        engine = sqlite_engine(None)
        place = Place(lambda: SqlLedger(engine, durable=False, page_size=PAGE), outlives_the_process=False)
    elif request.param == "postgresql":
        server = sa.make_url(request.getfixturevalue("postgresql")).set(drivername="postgresql+psycopg")
        database = f"ledger_{uuid.uuid4().hex}"
        admin = sa.create_engine(server, isolation_level="AUTOCOMMIT")
        engines.append(admin)
        with admin.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {database}")
        url = server.set(database=database)
        place = Place(
            lambda: SqlLedger(postgresql_engine(url), durable=True, page_size=PAGE), outlives_the_process=True
        )
    else:
        endpoint = request.getfixturevalue("dynamodb")
        table = f"ledger-{uuid.uuid4().hex}"
        place = Place(
            lambda: DynamoDbLedger(dynamodb_test_client(endpoint), table, page_size=PAGE), outlives_the_process=True
        )
        creator = DynamoDbLedger(dynamodb_test_client(endpoint), table)
        creator.create_table()
        creator.close()
    yield place
    for store in place.opened:
        store.close()
    for engine in engines:
        engine.dispose()


@pytest.fixture
def store(place: Place) -> RecordStore:
    return place.open()


def keys(store: RecordStore, prefix: str = "", after: str = "") -> list[str]:
    return [record.key for record in store.query("case", prefix, after)]


def test_an_absent_record_is_none(store: RecordStore) -> None:
    assert store.get("case", "a") is None


def test_what_was_put_is_got_with_its_version_and_schema(store: RecordStore) -> None:
    stored = store.put(Record("case", "a", {"rung": 1}, schema=7), 0)

    assert stored == Record("case", "a", {"rung": 1}, version=1, schema=7)
    assert store.get("case", "a") == stored


def test_versions_count_writes(store: RecordStore) -> None:
    for version in range(4):
        store.put(Record("case", "a", {"write": version}), version)

    assert store.get("case", "a") == Record("case", "a", {"write": 3}, version=4)


def test_the_same_key_of_another_kind_is_another_record(store: RecordStore) -> None:
    store.put(Record("case", "a", {"is": "case"}), 0)
    store.put(Record("notice", "a", {"is": "notice"}), 0)

    record = store.get("case", "a")
    assert record is not None
    assert record.body == {"is": "case"}


@pytest.mark.parametrize("expected", [0, 2, 7])
def test_a_write_expecting_another_version_conflicts_and_changes_nothing(store: RecordStore, expected: int) -> None:
    before = store.put(Record("case", "a", {"by": "first"}), 0)

    with pytest.raises(VersionConflictError):
        store.put(Record("case", "a", {"by": "second"}), expected)

    assert store.get("case", "a") == before


def test_a_write_expecting_a_record_where_there_is_none_conflicts(store: RecordStore) -> None:
    with pytest.raises(VersionConflictError):
        store.put(Record("case", "a", {}), 1)

    assert store.get("case", "a") is None


@pytest.mark.parametrize("version", [0, 1])
def test_of_two_threads_racing_for_one_key_exactly_one_wins(store: RecordStore, version: int) -> None:
    if version:
        store.put(Record("case", "a", {"by": "nobody"}), 0)
    line = threading.Barrier(2)

    def race(name: str) -> bool:
        line.wait()
        try:
            store.put(Record("case", "a", {"by": name}), version)
        except VersionConflictError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        won = dict(zip("xy", pool.map(race, "xy"), strict=True))

    record = store.get("case", "a")
    assert record is not None
    assert record.version == version + 1
    assert [name for name, did in won.items() if did] == [record.body["by"]]


def test_a_counter_kept_by_many_threads_loses_no_count(place: Place) -> None:
    """Half the threads come through another connection pool, as another process would."""
    stores = [place.open(), place.open()]

    def count(store: RecordStore) -> None:
        for _ in range(5):
            while True:
                record = store.get("cap", "n")
                try:
                    store.put(
                        Record("cap", "n", {"n": record.body["n"] + 1 if record else 1}),
                        record.version if record else 0,
                    )
                except VersionConflictError:
                    continue
                break

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, stores * 2))

    record = stores[0].get("cap", "n")
    assert record is not None
    assert (record.body["n"], record.version) == (20, 20)


def test_a_transaction_writes_everything(store: RecordStore) -> None:
    store.put(Record("switch", "all", {"paused": False}), 0)

    store.transact(
        [
            Put(Record("case", "a", {"n": 1}), 0),
            Put(Record("intent", "a", {"n": 2}), 0),
            VersionCheck("switch", "all", 1),
            VersionCheck("case", "absent", 0),
        ]
    )

    assert store.get("case", "a") == Record("case", "a", {"n": 1}, version=1)
    assert store.get("intent", "a") == Record("intent", "a", {"n": 2}, version=1)


@pytest.mark.parametrize(
    "failing",
    [
        VersionCheck("switch", "all", 2),
        VersionCheck("switch", "all", 0),
        VersionCheck("case", "absent", 1),
        Put(Record("switch", "all", {"paused": None}), 0),
        Put(Record("switch", "all", {"paused": None}), 2),
        Put(Record("case", "absent", {}), 1),
    ],
)
def test_one_failed_expectation_undoes_the_whole_transaction(store: RecordStore, failing: Put | VersionCheck) -> None:
    switch = store.put(Record("switch", "all", {"paused": True}), 0)

    with pytest.raises(VersionConflictError):
        store.transact([Put(Record("case", "a", {}), 0), failing, Put(Record("case", "b", {}), 0)])

    assert keys(store) == []
    assert store.get("switch", "all") == switch


def test_transactions_over_the_same_records_do_not_mix(place: Place) -> None:
    """Each moves one from x to y; whatever interleaves, the sum stays and every move is counted once."""
    stores = [place.open(), place.open()]
    stores[0].transact([Put(Record("sum", "x", {"n": 8}), 0), Put(Record("sum", "y", {"n": 0}), 0)])

    def move(store: RecordStore) -> None:
        for _ in range(4):
            while True:
                x, y = store.get("sum", "x"), store.get("sum", "y")
                assert x is not None
                assert y is not None
                moves = [
                    Put(Record("sum", "x", {"n": x.body["n"] - 1}), x.version),
                    Put(Record("sum", "y", {"n": y.body["n"] + 1}), y.version),
                ]
                try:
                    store.transact(moves)
                except VersionConflictError:
                    continue
                break

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(move, stores))

    assert [record.body["n"] for record in stores[0].query("sum")] == [0, 8]


def test_transactions_that_look_before_they_write_conflict_and_never_fail(place: Place) -> None:
    """A conflict is tried again, any other error would stop a run: losing a race must be told as a conflict."""
    stores = [place.open(), place.open()]

    def count(store: RecordStore) -> None:
        for _ in range(8):
            while True:
                record = store.get("cap", "n")
                n, version = (record.body["n"], record.version) if record is not None else (0, 0)
                try:
                    store.transact([VersionCheck("switch", "all", 0), Put(Record("cap", "n", {"n": n + 1}), version)])
                except VersionConflictError:
                    continue
                break

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, stores * 2))

    record = stores[0].get("cap", "n")
    assert record is not None
    assert record.body == {"n": 32}


def test_a_hundred_operations_fit_one_transaction_and_no_more(store: RecordStore) -> None:
    hundred = [Put(Record("case", f"{n:03}", {}), 0) for n in range(100)]

    with pytest.raises(LedgerError, match="at most 100"):
        store.transact([*hundred, VersionCheck("case", "absent", 0)])
    assert keys(store) == []

    store.transact(hundred)
    assert len(keys(store)) == 100


def test_a_transaction_of_nothing_does_nothing(store: RecordStore) -> None:
    store.transact([])


def test_a_transaction_names_each_record_once(store: RecordStore) -> None:
    with pytest.raises(LedgerError, match="only once"):
        store.transact([VersionCheck("case", "a", 0), Put(Record("case", "a", {}), 0)])


# In the order of their UTF-8 bytes, which neither a linguistic order nor UTF-16 order gives.
SORTED_KEYS = [
    "A",
    "B",
    "Z",
    "a",
    "a%b",
    "a/1",
    "a/10",
    "a/2",
    "a_b",
    "b",
    "zebra",
    "~",
    "Ä",
    "é",
    "ö/1",
    "实例",
    "实例/1",
    "\uff5e",
    "😀",
]


@pytest.fixture
def filled(store: RecordStore) -> RecordStore:
    store.transact([Put(Record("case", key, {"key": key}), 0) for key in reversed(SORTED_KEYS)])
    store.put(Record("cas", "a/1", {}), 0)
    store.put(Record("case_closed", "a/1", {}), 0)
    return store


def test_all_records_of_a_kind_come_in_byte_order_over_many_pages(filled: RecordStore) -> None:
    assert sorted(SORTED_KEYS, key=str.encode) == SORTED_KEYS
    assert keys(filled) == SORTED_KEYS
    assert [record.body["key"] for record in filled.query("case")] == SORTED_KEYS


def test_a_prefix_is_taken_literally(filled: RecordStore) -> None:
    prefixes = ["a", "a/", "A", "a%", "a_", "实例", "实", "ö/1", "z", "zz", "\U0010ffff", "é"]

    found = {prefix: keys(filled, prefix) for prefix in prefixes}

    assert found == {prefix: [key for key in SORTED_KEYS if key.startswith(prefix)] for prefix in prefixes}


def test_after_starts_behind_a_key_whether_or_not_it_exists(filled: RecordStore) -> None:
    afters = ["", "A", "Y", "a/1", "a/15", "aa", "ö/1", "\U0010ffff"]
    asked = [(prefix, after) for prefix in ("", "a", "a/", "实例") for after in afters]

    found = {(prefix, after): keys(filled, prefix, after) for prefix, after in asked}

    assert found == {
        (prefix, after): [key for key in SORTED_KEYS if key.startswith(prefix) and key.encode() > after.encode()]
        for prefix, after in asked
    }


@pytest.mark.parametrize("count", [PAGE - 1, PAGE, PAGE + 1, 2 * PAGE])
def test_a_last_page_of_any_length_ends_the_query(store: RecordStore, count: int) -> None:
    expected = [f"a/{n}" for n in range(count)]
    store.transact([Put(Record("case", key, {}), 0) for key in [*expected, "b", "c"]])

    assert keys(store, "a/") == expected


def test_records_may_be_written_while_a_query_is_read(filled: RecordStore) -> None:
    seen = []
    for record in filled.query("case"):
        filled.put(Record("case", record.key, {"key": "changed"}), record.version)
        seen.append(record.key)

    assert seen == SORTED_KEYS


CHAINS = [
    *(f"run-{run}/aws:1:region-{shard}" for run in range(3) for shard in range(4)),
    "operator/snooze",
    "outbox/2026-03",
]
ENTRIES = sorted(f"{chain}/{number:08d}" for chain in CHAINS for number in range(1, 6))


@pytest.fixture
def audited(store: RecordStore) -> RecordStore:
    """Chains of audit, which a store may lay in several places."""
    store.transact([Put(Record("audit", key, {"key": key}), 0) for key in reversed(ENTRIES)])
    store.transact([Put(Record("audit_head", chain, {"entries": 5}), 0) for chain in CHAINS])
    return store


@pytest.mark.parametrize(
    "prefix", ["", "run-1/", "run-1/aws:1:region-2", "run-1/aws:1:region-2/", "operator/", "o", "z/"]
)
def test_the_audit_comes_in_order_by_kind_run_and_chain(audited: RecordStore, prefix: str) -> None:
    for after in ("", "run-1/aws:1:region-2/00000003", "run-1/aws:1:region-20", "zz"):
        found = list(audited.query("audit", prefix, after))

        assert [record.key for record in found] == [key for key in ENTRIES if key.startswith(prefix) and key > after]
        assert all((record.kind, record.body["key"]) == ("audit", record.key) for record in found)
    heads = [record.key for record in audited.query("audit_head", prefix)]
    assert heads == [chain for chain in sorted(CHAINS) if chain.startswith(prefix)]


def test_the_head_of_a_chain_moves_only_from_the_version_that_was_read(audited: RecordStore) -> None:
    chain = CHAINS[0]
    moved = [Put(Record("audit", f"{chain}/00000006", {}), 0), Put(Record("audit_head", chain, {"entries": 6}), 1)]
    audited.transact([*moved, VersionCheck("audit_head", CHAINS[1], 1)])

    for late in (moved, [moved[1]], [VersionCheck("audit_head", chain, 1)]):
        with pytest.raises(VersionConflictError):
            audited.transact([*late, Put(Record("case", "a", {}), 0)])
    with pytest.raises(VersionConflictError):
        audited.put(moved[1].record, 1)
    with pytest.raises(VersionConflictError):
        audited.put(Record("audit_head", chain, {}), 0)
    head = audited.get("audit_head", chain)
    assert head is not None
    assert (head.kind, head.version, head.body) == ("audit_head", 2, {"entries": 6})
    assert audited.get("case", "a") is None
    assert audited.get("audit", f"{chain}/00000007") is None


def test_many_of_the_audit_are_read_at_once(audited: RecordStore) -> None:
    found = audited.get_many("audit", [*ENTRIES, *(f"none/at-all/{number}" for number in range(80))])

    assert sorted(found) == ENTRIES
    assert all(found[key].body == {"key": key} for key in ENTRIES)


def test_many_are_read_at_once_and_what_is_absent_is_left_out(store: RecordStore) -> None:
    """More than any adapter reads in one request; of another kind, and asked for twice, among them."""
    many = [f"{n:03}" for n in range(0, 250, 2)]
    for at in (0, 100):
        store.transact([Put(Record("case", key, {"key": key}, schema=3), 0) for key in many[at : at + 100]])
    store.transact([Put(Record("case", key, {"key": key, "again": True}, schema=3), 1) for key in many[:2]])
    store.put(Record("notice", "001", {}), 0)

    found = store.get_many("case", [*(f"{n:03}" for n in range(250)), "000", "实例", "absent"])

    assert sorted(found) == many
    assert all(found[key] == store.get("case", key) for key in ("000", "002", "004", "248"))
    assert store.get_many("case", ()) == {}
    assert store.get_many("unheard of", ["000"]) == {}


def test_records_of_several_kinds_are_read_together(store: RecordStore) -> None:
    """More than any store gives in one answer; a key of one kind is not that of another."""
    cases = [f"{n:03}" for n in range(150)]
    for at in range(0, 150, 75):
        store.transact([Put(Record("case", key, {"key": key}), 0) for key in cases[at : at + 75]])
    store.put(Record("switch", "all", {"paused": True}), 0)
    store.put(Record("switch", "all", {"paused": False}), 1)
    store.put(Record("notice", "实例", {}), 0)

    found = store.get_each(
        [*(("case", key) for key in cases), ("switch", "all"), ("switch", "000"), ("notice", "实例")]
    )

    assert sorted(found) == sorted([*(("case", key) for key in cases), ("switch", "all"), ("notice", "实例")])
    assert all(record == store.get(*name) for name, record in found.items())
    assert store.get_each(()) == {}


def test_an_unknown_kind_has_no_records(filled: RecordStore) -> None:
    assert list(filled.query("unheard of")) == []


def test_a_big_body_comes_back_whole(store: RecordStore) -> None:
    """300 kB, near DynamoDB's limit of 400 KB an item."""
    body = {"lines": [f"{n:05} " + "x" * 94 for n in range(2900)]}

    store.put(Record("plan", "big", body), 0)
    store.put(Record("plan", "bigger", body), 0)

    assert [record.body for record in store.query("plan")] == [body, body]


def test_json_comes_back_exactly(store: RecordStore) -> None:
    body = {
        "integers": [0, -1, 2**53 + 1, 10**30],
        "floats": [0.1, -0.0, 1e308, 5e-324, 1.0, 0.1 + 0.2],
        "strings": ["", " ", "实例 😀", "\x00\x1f\u2028", "\ud800", '"\\', "NULL", "0.10"],
        "constants": [True, False, None],
        "nested": {"": {"z": 1, "a": [[], {}, [{}]]}},
    }

    store.put(Record("case", "a", body), 0)

    record = store.get("case", "a")
    assert record is not None
    assert record.body == body
    assert repr(record.body) == repr(body)  # 1.0 is not 1, True is not 1, -0.0 is not 0.0, order is kept


def test_a_body_that_is_not_json_is_refused(store: RecordStore) -> None:
    for value in (float("nan"), {1, 2}, b"bytes"):
        with pytest.raises(LedgerError, match="not plain JSON"):
            store.put(Record("case", "a", {"value": value}), 0)

    assert store.get("case", "a") is None


@pytest.mark.parametrize("key", ["", "x" * 1025, "é" * 513, "a\0b", "\ud800"])
def test_a_key_that_some_store_could_not_hold_is_refused_by_all(store: RecordStore, key: str) -> None:
    with pytest.raises(LedgerError):
        store.put(Record("case", key, {}), 0)
    with pytest.raises(LedgerError):
        store.get("case", key)
    with pytest.raises(LedgerError):
        store.get_many("case", ["a", key])
    with pytest.raises(LedgerError):
        store.get_each([("case", "a"), ("case", key)])


def test_the_longest_key_is_accepted(store: RecordStore) -> None:
    store.put(Record("case", "实" * 341, {}), 0)

    assert keys(store) == ["实" * 341]


def test_durability_is_told_as_it_is(place: Place) -> None:
    assert place.open().durable is place.outlives_the_process


def test_another_process_finds_the_records(place: Place) -> None:
    first = place.open()
    first.put(Record("case", "a", {"n": 1}), 0)
    if place.outlives_the_process:
        first.close()

    second = place.open()

    assert second.get("case", "a") == Record("case", "a", {"n": 1}, version=1)
    with pytest.raises(VersionConflictError):
        second.put(Record("case", "a", {"n": 2}), 0)


def test_many_processes_may_open_a_new_store_at_once(place: Place) -> None:
    stores = [place.open() for _ in range(4)]
    line = threading.Barrier(4)

    def first_write(number: int) -> None:
        line.wait()
        stores[number].put(Record("case", f"{number}", {}), 0)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(first_write, range(4)))

    assert keys(place.open()) == ["0", "1", "2", "3"]


def test_a_store_laid_out_by_a_newer_costguard_is_refused(place: Place) -> None:
    store = place.open()
    store.put(Record("case", "a", {}), 0)
    store.put(Record("ledger", "schema", {"schema": STORE_SCHEMA + 1}), 1)
    older = place.open()

    with pytest.raises(NewerSchemaError, match="upgrade"):
        older.get("case", "a")
    with pytest.raises(NewerSchemaError):
        older.get_many("case", ["a"])
    with pytest.raises(NewerSchemaError):
        older.put(Record("case", "b", {}), 0)
    with pytest.raises(NewerSchemaError):
        older.transact([Put(Record("case", "b", {}), 0)])
    with pytest.raises(NewerSchemaError):
        list(older.query("case"))
    assert keys(store) == ["a"]


def test_a_store_whose_schema_cannot_be_read_is_refused(place: Place) -> None:
    store = place.open()
    assert store.get("case", "a") is None
    bodies: list[dict[str, object]] = [{}, {"schema": "1"}, {"schema": True}, {"schema": None}, {"schema": 0}]
    for version, damaged in enumerate(bodies, 1):
        store.put(Record("ledger", "schema", damaged), version)

        with pytest.raises(LedgerError, match="schema"):
            place.open().get("case", "a")
