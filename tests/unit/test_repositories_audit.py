"""The audit shows every entry edited, removed, moved, cut off or added; and says nothing when all is well."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.contract.ledger_fakes import CountingStore, InterferingStore, fail

from costguard.adapters.ledgers.sql import SqlLedger, sqlite_engine
from costguard.domain.errors import LedgerError, VersionConflictError
from costguard.engine.ledger.audit.audit import AuditEntry, AuditTrail, AuditWhat, ChainHead, entry_key, hash_of
from costguard.engine.ledger.audit.verify import AuditVerdict, verify
from costguard.engine.ledger.codec import record_of
from costguard.engine.ledger.runs import RunRepository
from costguard.ports import Put, Record, RecordStore, VersionCheck

NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
SHARD = "aws:111122223333:us-east-1"
CHAIN = f"run-1/{SHARD}"


class Tamperer:
    """Somebody with write access to the database, past every repository."""

    def __init__(self, engine: sa.Engine) -> None:
        self.store = SqlLedger(engine, durable=False)
        self._engine = engine

    def get(self, kind: str, key: str) -> Record:
        record = self.store.get(kind, key)
        assert record is not None
        return record

    def remove(self, kind: str, key: str) -> None:
        with self._engine.begin() as connection:
            done = connection.execute(
                sa.text("DELETE FROM costguard_records WHERE kind = :kind AND key = :key"), {"kind": kind, "key": key}
            )
            assert done.rowcount == 1

    def write(self, kind: str, key: str, body: Any) -> None:
        """Replace a body and leave the version as it is, or add a record."""
        if self.store.get(kind, key) is None:
            self.store.put(Record(kind, key, body), 0)
            return
        with self._engine.begin() as connection:
            connection.execute(
                sa.text("UPDATE costguard_records SET body = :body WHERE kind = :kind AND key = :key"),
                {"kind": kind, "key": key, "body": json.dumps(body)},
            )


@pytest.fixture
def tamperer() -> Iterator[Tamperer]:
    engine = sqlite_engine(None)
    yield Tamperer(engine)
    engine.dispose()


@pytest.fixture
def store(tamperer: Tamperer) -> RecordStore:
    """Two chains in a finished run, one of five entries, and one chain in a run not finished."""
    store = tamperer.store
    runs = RunRepository(store)
    runs.begin("run-1", "idle_gpu", NOW)
    for number in range(5):
        append(store, number)
    append(store, 0, shard="aws:111122223333:eu-west-1")
    runs.finish("run-1", {}, NOW)
    runs.begin("run-2", "idle_gpu", NOW)
    append(store, 0, run_id="run-2")
    append(store, 1, run_id="run-2")
    return store


def entry(number: int, **changes: Any) -> AuditEntry:
    plain = AuditEntry(NOW + timedelta(seconds=number), "run-1", SHARD, AuditWhat.INTENT, {"number": number, "é": None})
    return replace(plain, **changes)


def append(store: RecordStore, number: int, **changes: Any) -> None:
    AuditTrail(store).append(entry(number, **changes))


def key(seq: int, chain: str = CHAIN) -> str:
    return entry_key(chain, seq)


def test_an_empty_ledger_has_nothing_wrong(tamperer: Tamperer) -> None:
    assert verify(tamperer.store) == AuditVerdict(0, 0, ())


def test_an_untouched_audit_has_nothing_wrong(store: RecordStore) -> None:
    assert verify(store) == AuditVerdict(8, 3, ())


def test_an_edited_fact_is_found(store: RecordStore, tamperer: Tamperer) -> None:
    body = tamperer.get("audit", key(3)).body
    tamperer.write("audit", key(3), {**body, "facts": {"number": 99}})

    assert verify(store).problems == (f"{key(3)}: its content does not match its hash: it was changed",)


@pytest.mark.parametrize("name", ["at", "what", "previous"])
def test_any_edited_field_is_found(store: RecordStore, tamperer: Tamperer, name: str) -> None:
    body = tamperer.get("audit", key(3)).body
    tamperer.write("audit", key(3), {**body, name: "2020-01-01T00:00:00Z"})

    assert any("was changed" in problem for problem in verify(store).problems)


def test_an_entry_edited_with_its_hash_is_found(store: RecordStore, tamperer: Tamperer) -> None:
    body = {**tamperer.get("audit", key(3)).body, "facts": {"number": 99}}
    tamperer.write("audit", key(3), {**body, "hash": hash_of(body)})

    assert verify(store).problems == (f"{key(4)}: does not follow the entry before it",)


def test_a_last_entry_edited_with_its_hash_is_found(store: RecordStore, tamperer: Tamperer) -> None:
    body = {**tamperer.get("audit", key(5)).body, "facts": {"number": 99}}
    tamperer.write("audit", key(5), {**body, "hash": hash_of(body)})

    assert verify(store).problems == (f"{key(5)}: is not the entry that the chain's head or its run names",)


@pytest.mark.parametrize("seq", [1, 2, 4])
def test_a_removed_entry_is_found(store: RecordStore, tamperer: Tamperer, seq: int) -> None:
    tamperer.remove("audit", key(seq))

    problems = verify(store).problems
    assert any(f"expected entry {seq} here" in problem for problem in problems)
    assert any("does not follow" in problem for problem in problems)


def test_entries_in_another_order_are_found(store: RecordStore, tamperer: Tamperer) -> None:
    second, third = tamperer.get("audit", key(2)).body, tamperer.get("audit", key(3)).body
    tamperer.write("audit", key(2), third)
    tamperer.write("audit", key(3), second)

    problems = verify(store).problems
    assert any(problem.startswith(key(2)) and "it was moved" in problem for problem in problems)
    assert any(problem.startswith(key(3)) and "it was moved" in problem for problem in problems)


def test_a_chain_cut_short_is_found(store: RecordStore, tamperer: Tamperer) -> None:
    tamperer.remove("audit", key(4))
    tamperer.remove("audit", key(5))

    assert verify(store).problems == (f"{CHAIN}: entry 5 and what follows it are missing",)


def test_a_chain_cut_short_with_its_head_is_found_by_the_anchor_in_its_run(
    store: RecordStore, tamperer: Tamperer
) -> None:
    tamperer.remove("audit", key(5))
    fourth = tamperer.get("audit", key(4)).body["hash"]
    tamperer.write("audit_head", CHAIN, record_of("audit_head", CHAIN, ChainHead(4, fourth)).body)

    assert f"{CHAIN}: entry 5 and what follows it are missing" in verify(store).problems


def test_a_chain_rewritten_with_its_head_is_found_by_the_anchor_in_its_run(
    store: RecordStore, tamperer: Tamperer
) -> None:
    body = {**tamperer.get("audit", key(5)).body, "facts": {"number": 99}}
    tamperer.write("audit", key(5), {**body, "hash": hash_of(body)})
    tamperer.write("audit_head", CHAIN, record_of("audit_head", CHAIN, ChainHead(5, hash_of(body))).body)

    assert f"{CHAIN}: its head and the anchor in its run disagree on entry 5" in verify(store).problems


def test_a_whole_chain_removed_is_found(store: RecordStore, tamperer: Tamperer) -> None:
    for seq in range(1, 6):
        tamperer.remove("audit", key(seq))
    tamperer.remove("audit_head", CHAIN)

    assert verify(store).problems == (
        f"{CHAIN}: entry 5 and what follows it are missing",
        f"{CHAIN}: has no head: it was removed, or the chain was added",
    )


def test_an_entry_added_at_the_end_is_found(store: RecordStore, tamperer: Tamperer) -> None:
    body = {**tamperer.get("audit", key(5)).body, "seq": 6, "previous": tamperer.get("audit", key(5)).body["hash"]}
    tamperer.write("audit", key(6), {**body, "hash": hash_of(body)})

    assert verify(store).problems == (f"{CHAIN}: has 6 entries, its head says 5: one was added",)


def test_an_entry_added_between_is_found(store: RecordStore, tamperer: Tamperer) -> None:
    tamperer.write("audit", f"{key(2)}a", tamperer.get("audit", key(2)).body)

    assert any(problem.startswith(f"{key(2)}a: expected entry 3") for problem in verify(store).problems)


def test_an_entry_of_another_chain_is_found(store: RecordStore, tamperer: Tamperer) -> None:
    other = tamperer.get("audit", key(2, f"run-2/{SHARD}")).body
    tamperer.write("audit", key(2), other)

    assert any("belongs to another chain" in problem for problem in verify(store).problems)


def test_a_chain_without_a_head_is_found(store: RecordStore, tamperer: Tamperer) -> None:
    tamperer.remove("audit_head", f"run-2/{SHARD}")

    assert any("has no head" in problem for problem in verify(store).problems)


@pytest.mark.parametrize("kind", ["audit_head", "run"])
def test_a_head_or_anchor_that_cannot_be_read_is_found(store: RecordStore, tamperer: Tamperer, kind: str) -> None:
    tamperer.write(kind, CHAIN if kind == "audit_head" else "run-1", {"entries": "many"})

    assert any("cannot be read" in problem for problem in verify(store).problems)


def test_a_chain_may_go_on_after_its_run_finished(store: RecordStore) -> None:
    append(store, 5)

    assert verify(store) == AuditVerdict(9, 3, ())


def test_operations_compose_with_what_they_tell_of(store: RecordStore) -> None:
    trail = AuditTrail(store)
    twice = trail.operations(entry(5), entry(6), entry(0, shard="elsewhere"))

    store.transact([Put(Record("case", "a", {}), 0), *twice])

    assert verify(store) == AuditVerdict(11, 4, ())
    assert trail.heads("run-1")[SHARD].entries == 7


def test_a_failed_expectation_appends_nothing(store: RecordStore) -> None:
    with pytest.raises(VersionConflictError):
        AuditTrail(store).commit([VersionCheck("case", "absent", 1)], entry(5))

    assert verify(store).entries == 8


def test_the_head_of_a_runs_chain_is_read_once_by_who_writes_it(store: RecordStore) -> None:
    counting = CountingStore(store)
    trail = AuditTrail(counting)

    for number in range(5, 8):
        trail.append(entry(number))

    assert [what for what, _ in counting.asked] == ["get", "transact", "transact", "transact"]
    assert verify(store) == AuditVerdict(11, 3, ())


def test_an_entry_of_somebody_else_in_a_runs_chain_is_seen_in_time(store: RecordStore) -> None:
    """Two processes may write one run: a duplicate event. Neither entry is lost, and the chain stays whole."""
    interfering = InterferingStore(store)
    trail = AuditTrail(interfering)
    trail.append(entry(5))
    interfering.before_writes.append(lambda: append(store, 6))

    trail.append(entry(7))
    trail.append(entry(8))

    assert verify(store) == AuditVerdict(12, 3, ())


def test_a_chain_stays_whole_where_an_answer_was_lost(store: RecordStore) -> None:
    """The write got through and nobody said so: what was written last is not known any more, and read again."""

    class AnswerLost(CountingStore):
        lost = False

        def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
            super().transact(operations)
            if self.lost:
                self.lost = False
                fail()

    losing = AnswerLost(store)
    trail = AuditTrail(losing)
    trail.append(entry(5))
    losing.lost = True
    with pytest.raises(LedgerError, match="out of reach"):
        trail.append(entry(6))
    losing.asked.clear()
    trail.append(entry(7))

    assert [what for what, _ in losing.asked] == ["get", "transact"]
    assert verify(store) == AuditVerdict(11, 3, ())


def test_chains_that_belong_to_no_run_are_read_each_time(store: RecordStore) -> None:
    """Many processes write those."""
    counting = CountingStore(store)
    trail = AuditTrail(counting)

    for number in range(2):
        trail.append(entry(number, run_id="operator", shard="switch", what=AuditWhat.SWITCH))

    assert [what for what, _ in counting.asked] == ["get", "transact"] * 2


def test_a_refused_expectation_leaves_a_remembered_head_true(store: RecordStore) -> None:
    trail = AuditTrail(store)
    trail.append(entry(5))
    with pytest.raises(VersionConflictError):
        trail.commit([VersionCheck("case", "absent", 1)], entry(6))
    trail.append(entry(7))

    assert verify(store) == AuditVerdict(10, 3, ())


def test_a_run_whose_id_begins_like_another_has_its_own_heads(store: RecordStore) -> None:
    append(store, 0, run_id="run-1x")

    assert set(AuditTrail(store).heads("run-1")) == {SHARD, "aws:111122223333:eu-west-1"}


def test_threads_share_a_chain_and_a_reader_beside_them_sees_no_problem(tmp_path: Path) -> None:
    store = SqlLedger(sqlite_engine(tmp_path / "ledger.db"), durable=True)
    RunRepository(store).begin("run-1", "idle_gpu", NOW)

    def write(writer: int) -> None:
        for number in range(10):
            append(store, 100 * writer + number)

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(write, writer) for writer in range(3)]
        while not all(writer.done() for writer in writers):
            assert verify(store).problems == ()
        for writer in writers:
            writer.result()

    assert verify(store) == AuditVerdict(30, 1, ())
    store.close()
