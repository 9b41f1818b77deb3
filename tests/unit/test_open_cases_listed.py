"""A run reads what is open, not all that ever was; what an older version opened is seen all the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.builders import NOW, case, ref
from tests.contract.ledger_fakes import InterferingStore, WeighingStore
from tests.scenario.stage import DAY, Stage, idle_machine

from costguard.adapters.ledgers import open_ledger
from costguard.cases import Case, CaseStatus
from costguard.domain.errors import LedgerError, VersionConflictError
from costguard.engine.ledger.cases import CaseRepository
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.runs import RunRecord, RunRepository
from costguard.ports import Put, RecordStore

GUARD = "idle_gpu"
TWO_DAYS = timedelta(days=2)


@pytest.fixture
def store() -> Iterator[RecordStore]:
    ledger = open_ledger("memory:")
    yield ledger
    ledger.close()


def opened(native_id: str = "i-1", **changes: object) -> Case:
    return replace(case(subject=ref(native_id)), version=0, **changes)  # type: ignore[arg-type]


def closed(one: Case) -> Case:
    return replace(one, status=CaseStatus.CLOSED, closed_at=NOW)


def begin(store: RecordStore, at: datetime, guard: str = GUARD) -> None:
    RunRepository(store).begin(f"{guard}-{at.isoformat()}", guard, at)


def begin_as_before(store: RecordStore, at: datetime, guard: str = GUARD) -> None:
    """What the version without lists writes when it begins a run."""
    run = RunRecord(f"old-{guard}-{at.isoformat()}", guard, at)
    latest = store.get("run_latest", guard)
    put = Put(record_of("run_latest", guard, run), latest.version if latest is not None else 0)
    store.transact([Put(record_of("run", run.run_id, run), 0), put])


def open_as_before(store: RecordStore, one: Case) -> Case:
    """What the version without lists writes when it opens a case."""
    stored = replace(one, version=1)
    store.put(record_of("case", one.key, stored), 0)
    return stored


def active_ids(store: RecordStore, *guards: str) -> list[str]:
    return [one.subject.native_id for one in CaseRepository(store).active(*(guards or (GUARD,)))]


def put_closed(store: RecordStore, number: int) -> None:
    """As many cases that are over, each as its machine left it."""
    puts = []
    for each in range(number):
        one = replace(closed(opened(f"i-gone-{each:06}")), version=1)
        puts.append(Put(record_of("case", one.key, one), 0))
        puts.append(Put(record_of("case_closed", f"{one.key}/{one.case_id}", one), 0))
    for at in range(0, len(puts), 100):
        store.transact(puts[at : at + 100])


def read_by_a_run(folder: Path, closed_cases: int) -> dict[str, int]:
    """How many records a run reads where so many cases are over."""
    store = WeighingStore(open_ledger("memory:"))
    stage = Stage(folder, idle_machine("notebook"), idle_machine("other"), store=store)
    stage.day(0)
    put_closed(store, closed_cases)
    store.given.clear()
    stage.day(1)
    stage.close()
    assert stage.verbs() == ["stop", "stop"]
    return store.given


def test_what_a_run_reads_does_not_grow_with_cases_that_are_over(tmp_path: Path) -> None:
    assert read_by_a_run(tmp_path, 5_000) == read_by_a_run(tmp_path, 10)


def test_open_cases_are_read_by_guard_in_the_order_of_their_keys(store: RecordStore) -> None:
    begin(store, NOW)
    cases = CaseRepository(store)
    for name in ("i-3", "i-1", "i-2"):
        cases.commit(None, opened(name))
    cases.commit(None, opened("i-9", guard="idle_gpu_2"))
    cases.commit(None, opened("i-0", guard="budget"))

    assert active_ids(store) == ["i-1", "i-2", "i-3"]
    assert active_ids(store, "idle_gpu_2", "budget") == ["i-9", "i-0"]
    assert list(cases.active()) == []


def test_a_case_leaves_the_list_with_its_end_and_comes_again_with_the_next(store: RecordStore) -> None:
    begin(store, NOW)
    cases = CaseRepository(store)
    first = cases.commit(None, opened())
    cases.commit(first, closed(first))
    assert active_ids(store) == []
    assert [record.body["names"] for record in store.query("case_open")] == [[]]

    cases.commit(None, opened(case_id="second"))
    assert active_ids(store) == ["i-1"]


def test_two_that_open_cases_of_one_list_at_once_both_list_theirs(store: RecordStore) -> None:
    """Whoever is second reads the list again; its case is opened once."""
    begin(store, NOW)
    names = [f"i-{number}" for number in range(400)]
    for name in names:
        CaseRepository(store).commit(None, opened(name))
    (one, other) = next(
        [key.rpartition(":")[2] for key in record.body["names"]][:2]
        for record in store.query("case_open")
        if len(record.body["names"]) > 1
    )
    again = open_ledger("memory:")
    begin(again, NOW)
    interfering = InterferingStore(again)
    interfering.before_writes.append(lambda: CaseRepository(again).commit(None, opened(other)))

    CaseRepository(interfering).commit(None, opened(one), run_id="run-1", now=NOW)

    assert sorted(active_ids(again)) == sorted([one, other])
    again.close()


def test_a_case_that_another_run_opened_first_is_refused_and_stays_listed(store: RecordStore) -> None:
    begin(store, NOW)
    interfering = InterferingStore(store)
    interfering.before_writes.append(lambda: CaseRepository(store).commit(None, opened(case_id="theirs")))

    with pytest.raises(VersionConflictError):
        CaseRepository(interfering).commit(None, opened(case_id="mine"))

    assert [one.case_id for one in CaseRepository(store).active(GUARD)] == ["theirs"]


def test_before_any_run_began_all_cases_are_read(store: RecordStore) -> None:
    open_as_before(store, opened())

    assert active_ids(store) == ["i-1"]


def test_what_an_older_version_opened_is_seen_while_it_is_at_work_and_after(store: RecordStore) -> None:
    begin_as_before(store, NOW)
    open_as_before(store, opened("i-1"))
    begin(store, NOW + DAY)
    assert active_ids(store) == ["i-1"]

    open_as_before(store, opened("i-2"))  # its run goes on beside ours
    CaseRepository(store).commit(None, opened("i-3"))
    assert active_ids(store) == ["i-1", "i-2", "i-3"]
    assert len(list(store.query("case_open"))) == 1

    begin(store, NOW + TWO_DAYS)
    assert active_ids(store) == ["i-1", "i-2", "i-3"]
    assert sum(len(record.body["names"]) for record in store.query("case_open")) == 3
    counted = WeighingStore(store)
    put_closed(store, 10)
    assert [one.subject.native_id for one in CaseRepository(counted).active(GUARD)] == ["i-1", "i-2", "i-3"]
    assert counted.given["case"] == 3


@pytest.mark.parametrize("guard", [GUARD, "budget"])
def test_an_older_version_that_comes_back_has_its_cases_seen(store: RecordStore, guard: str) -> None:
    """As after a rollback, or of one function that was not replaced."""
    begin(store, NOW)
    CaseRepository(store).commit(None, opened("i-1"))
    begin_as_before(store, NOW + 10 * DAY, guard)
    open_as_before(store, opened("i-2", guard=guard))
    assert active_ids(store, GUARD, guard)[-1] == "i-2"

    begin(store, NOW + 11 * DAY, guard)
    assert active_ids(store, guard)[-1] == "i-2"
    begin(store, NOW + 13 * DAY, guard)
    assert active_ids(store, guard)[-1] == "i-2"
    put_closed(store, 5)
    counted = WeighingStore(store)
    CaseRepository(counted).active(GUARD)
    assert counted.given["case"] == len(active_ids(store))


def test_a_version_that_began_while_the_lists_were_filled_keeps_them_from_being_believed(store: RecordStore) -> None:
    begin_as_before(store, NOW, "budget")
    open_as_before(store, opened("i-0", guard="budget"))
    begin(store, NOW)
    interfering = InterferingStore(store)
    interfering.before_writes += [lambda: None, lambda: None, lambda: begin_as_before(store, NOW + 3 * DAY, "budget")]

    RunRepository(interfering).begin("run-2", GUARD, NOW + 3 * DAY)
    open_as_before(store, opened("i-1", guard="budget"))

    assert active_ids(store, "budget") == ["i-0", "i-1"]


def test_what_closes_while_the_lists_are_filled_is_not_listed(store: RecordStore) -> None:
    begin_as_before(store, NOW)
    known = open_as_before(store, opened())
    interfering = InterferingStore(store)
    interfering.before_writes += [
        lambda: None,
        lambda: None,
        lambda: CaseRepository(store).commit(known, closed(known)),
    ]

    RunRepository(interfering).begin("run-2", GUARD, NOW + 3 * DAY)

    assert active_ids(store) == []
    assert [name for record in store.query("case_open") for name in record.body["names"]] == []


def test_a_case_that_an_older_version_closed_is_not_read_as_open(store: RecordStore) -> None:
    begin(store, NOW)
    first = CaseRepository(store).commit(None, opened())
    store.put(record_of("case", first.key, replace(closed(first), version=2)), 1)

    assert active_ids(store) == []


def test_an_older_version_reads_the_run_that_this_one_began(store: RecordStore) -> None:
    begin(store, NOW)
    latest = store.get("run_latest", GUARD)

    assert latest is not None
    assert value_of(RunRecord, latest).started_at == NOW


def test_lists_that_cannot_be_read_are_no_empty_lists(store: RecordStore) -> None:
    begin(store, NOW)
    CaseRepository(store).commit(None, opened())
    (record,) = store.query("case_open")
    store.put(replace(record, body={"names": "all"}), record.version)

    with pytest.raises(LedgerError):
        CaseRepository(store).active(GUARD)
