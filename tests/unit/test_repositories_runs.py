"""Runs: a duplicated event is known, and audit heads are anchored."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest
from tests.contract.ledger_fakes import InterferingStore

from costguard.adapters.ledgers import open_ledger
from costguard.domain.errors import LedgerError
from costguard.engine.ledger.audit.audit import AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.runs import RunRecord, RunRepository
from costguard.ports import RecordStore

NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


@pytest.fixture
def store() -> Iterator[RecordStore]:
    ledger = open_ledger("memory:")
    yield ledger
    ledger.close()


@pytest.fixture
def runs(store: RecordStore) -> RunRepository:
    return RunRepository(store)


def test_a_run_begins_once_it_is_finished_never_again(runs: RunRepository) -> None:
    assert runs.begin("run-1", "idle_gpu", NOW)
    runs.finish("run-1", {"due": 2}, NOW + HOUR)

    assert not runs.begin("run-1", "idle_gpu", NOW + 2 * HOUR)
    assert runs.latest("idle_gpu") == RunRecord("run-1", "idle_gpu", NOW, NOW + HOUR, {"due": 2})


def test_a_run_cut_off_may_begin_again(runs: RunRepository) -> None:
    assert runs.begin("run-1", "idle_gpu", NOW)
    assert runs.begin("run-1", "idle_gpu", NOW + HOUR)

    assert runs.get("run-1") == RunRecord("run-1", "idle_gpu", NOW)


def test_the_first_to_finish_is_remembered(runs: RunRepository) -> None:
    runs.begin("run-1", "idle_gpu", NOW)
    runs.finish("run-1", {"due": 2}, NOW + HOUR)
    runs.finish("run-1", {"due": 3}, NOW + 2 * HOUR)

    run = runs.get("run-1")
    assert run is not None
    assert run.summary == {"due": 2}


def test_a_run_that_never_began_cannot_finish(runs: RunRepository) -> None:
    with pytest.raises(LedgerError, match="never began"):
        runs.finish("run-1", {}, NOW)


def test_the_latest_run_is_per_guard_and_by_its_beginning(runs: RunRepository) -> None:
    assert runs.latest("idle_gpu") is None
    runs.begin("run-2", "idle_gpu", NOW + HOUR)
    runs.begin("run-1", "idle_gpu", NOW)  # a late duplicate of an older event
    runs.begin("run-3", "budget", NOW + 2 * HOUR)

    latest = runs.latest("idle_gpu")
    assert latest is not None
    assert latest.run_id == "run-2"


def test_twins_that_begin_together_both_go_on(store: RecordStore) -> None:
    interfering = InterferingStore(store)
    interfering.before_writes.append(lambda: RunRepository(store).begin("run-1", "idle_gpu", NOW))

    assert RunRepository(interfering).begin("run-1", "idle_gpu", NOW)


def test_a_finished_run_anchors_the_heads_of_its_chains(store: RecordStore, runs: RunRepository) -> None:
    runs.begin("run-1", "idle_gpu", NOW)
    trail = AuditTrail(store)
    for shard in ("a", "a", "b"):
        trail.append(AuditEntry(NOW, "run-1", shard, AuditWhat.INTENT))

    runs.finish("run-1", {}, NOW)

    run = runs.get("run-1")
    assert run is not None
    assert run.heads == trail.heads("run-1")
    assert {shard: head.entries for shard, head in run.heads.items()} == {"a": 2, "b": 1}
