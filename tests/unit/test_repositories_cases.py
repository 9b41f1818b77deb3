"""Cases in the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.builders import NOW, case, ref
from tests.contract.ledger_fakes import CountingStore, InterferingStore

from costguard.adapters.ledgers import open_ledger
from costguard.cases import Case, CaseStatus
from costguard.domain.errors import VersionConflictError
from costguard.engine.ledger.audit.audit import AuditTrail
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.ledger.cases import CaseRepository
from costguard.engine.ledger.memory import ReadTogether
from costguard.engine.ledger.runs import RunRepository
from costguard.engine.run.settlement import together
from costguard.planning import Transition
from costguard.ports import Put, Record, RecordStore


@pytest.fixture
def store() -> Iterator[RecordStore]:
    ledger = open_ledger("memory:")
    RunRepository(ledger).begin("run-1", "idle_gpu", NOW)
    yield ledger
    ledger.close()


@pytest.fixture
def repository(store: RecordStore) -> CaseRepository:
    return CaseRepository(store)


def opened(native_id: str = "i-1", **changes: object) -> Case:
    return replace(case(subject=ref(native_id)), version=0, **changes)  # type: ignore[arg-type]


def closed(one: Case) -> Case:
    return replace(one, status=CaseStatus.CLOSED, closed_at=NOW)


def test_an_opened_case_is_found_by_its_key(repository: CaseRepository) -> None:
    committed = repository.commit(None, opened())

    assert committed == replace(opened(), version=1)
    assert repository.get(opened().key) == committed
    assert repository.get(opened("i-2").key) is None


def test_a_case_moves_from_the_version_it_was_read_at(repository: CaseRepository) -> None:
    first = repository.commit(None, opened())
    second = repository.commit(first, replace(first, rung=1))

    assert (second.version, second.rung) == (2, 1)
    assert repository.get(first.key) == second
    with pytest.raises(VersionConflictError):
        repository.commit(first, replace(first, rung=2))
    assert repository.get(first.key) == second


def test_what_is_open_cannot_be_opened_again(repository: CaseRepository) -> None:
    first = repository.commit(None, opened())

    with pytest.raises(VersionConflictError):
        repository.commit(None, opened(case_id="another"))

    assert repository.get(first.key) == first


def test_a_new_case_takes_the_place_of_a_closed_one_which_is_kept(repository: CaseRepository) -> None:
    first = repository.commit(None, opened(case_id="first"))
    ended = repository.commit(first, closed(first))
    second = repository.commit(None, opened(case_id="second"))

    assert repository.get(first.key) == second
    assert second.version == 3
    assert list(repository.closed()) == [ended]


def test_every_case_ever_closed_is_kept(repository: CaseRepository) -> None:
    for number in range(3):
        one = repository.commit(None, opened(case_id=f"case-{number}"))
        repository.commit(one, closed(one))
    other = repository.commit(None, opened("i-2", case_id="other"))
    repository.commit(other, closed(other))

    assert [one.case_id for one in repository.closed(opened().key + "/")] == ["case-0", "case-1", "case-2"]
    assert len(list(repository.closed())) == 4
    assert list(repository.closed("network_audit/")) == []


def test_a_lost_race_closes_nothing(repository: CaseRepository) -> None:
    first = repository.commit(None, opened())
    repository.commit(first, replace(first, rung=1))

    with pytest.raises(VersionConflictError):
        repository.commit(first, closed(first))

    assert list(repository.closed()) == []


def test_active_cases_are_those_not_closed_of_that_guard(repository: CaseRepository) -> None:
    for number, status in enumerate(CaseStatus):
        repository.commit(None, opened(f"i-{number}", status=status))
    repository.commit(None, opened(guard="idle_gpu_2"))

    active = repository.active("idle_gpu")

    assert {one.status for one in active} == set(CaseStatus) - {CaseStatus.CLOSED}
    assert len(repository.all("idle_gpu")) == 4
    assert len(repository.all("idle_gpu_2")) == 1


def test_a_case_keeps_its_key(repository: CaseRepository) -> None:
    first = repository.commit(None, opened())

    with pytest.raises(ValueError, match="keeps its key"):
        repository.commit(first, replace(first, subject=ref("i-2")))


def test_a_move_is_audited_with_it(store: RecordStore, repository: CaseRepository) -> None:
    first = repository.commit(None, opened(), run_id="run-1", now=NOW)
    repository.commit(first, closed(first), run_id="run-1", now=NOW + timedelta(hours=1))

    entries = list(store.query("audit"))
    assert [entry.body["what"] for entry in entries] == ["transition", "transition"]
    assert entries[0].body["facts"]["from"] is None
    assert entries[1].body["facts"]["to"].startswith("closed")
    assert verify(store).problems == ()


def test_a_race_for_the_audit_alone_does_not_lose_the_move(store: RecordStore) -> None:
    """Another subject of the same shard moves in the same moment: the chain's head changes, the case does not."""
    interfering = InterferingStore(store)
    interfering.before_writes.append(lambda: CaseRepository(store).commit(None, opened("i-2"), run_id="run-1", now=NOW))

    CaseRepository(interfering).commit(None, opened("i-1"), run_id="run-1", now=NOW)

    assert len(CaseRepository(store).all("idle_gpu")) == 2
    assert AuditTrail(store).heads("run-1")[str(ref().shard)].entries == 2
    assert verify(store).problems == ()


def test_a_race_for_the_case_is_lost_even_with_an_audit(store: RecordStore) -> None:
    first = CaseRepository(store).commit(None, opened())
    interfering = InterferingStore(store)
    interfering.before_writes.append(lambda: CaseRepository(store).commit(first, replace(first, rung=1)))

    with pytest.raises(VersionConflictError):
        CaseRepository(interfering).commit(first, replace(first, rung=2), run_id="run-1", now=NOW)

    assert list(store.query("audit")) == []


def test_open_cases_move_together_or_not_at_all(store: RecordStore, repository: CaseRepository) -> None:
    first, second = (repository.commit(None, opened(name)) for name in ("i-1", "i-2"))
    steps = [(one, replace(one, rung=one.rung + 1)) for one in (first, second)]

    moved = repository.move(*steps, run_id="run-1", now=NOW)

    assert [one.version for one in moved] == [2, 2]
    assert [repository.get(one.key) for one in moved] == list(moved)
    with pytest.raises(VersionConflictError):
        repository.move(
            (moved[0], replace(moved[0], rung=7)), (second, replace(second, rung=7)), run_id="run-1", now=NOW
        )
    assert repository.get(first.key) == moved[0]
    assert [entry.body["what"] for entry in store.query("audit")] == ["transition"] * 2
    assert verify(store).problems == ()


def test_what_belongs_to_a_move_is_written_with_it(store: RecordStore, repository: CaseRepository) -> None:
    first = repository.commit(None, opened())
    beside = Put(Record("cap", "a", {}), 0)

    repository.move((first, replace(first, rung=1)), run_id="run-1", now=NOW, beside=[beside])

    assert store.get("cap", "a") == Record("cap", "a", {}, version=1)
    current = repository.get(first.key)
    assert current is not None
    with pytest.raises(VersionConflictError):
        repository.move((current, replace(current, rung=2)), run_id="run-1", now=NOW, beside=[beside])
    assert repository.get(first.key) == current


def test_cases_are_opened_and_closed_one_by_one(repository: CaseRepository) -> None:
    first = repository.commit(None, opened())
    with pytest.raises(ValueError, match="one by one"):
        repository.move((first, closed(first)), run_id="run-1", now=NOW)


def test_steps_of_one_case_and_of_closed_ones_are_not_written_together() -> None:
    """A transaction names a record once, and a case is closed with what is kept of it for ever."""
    one, two = opened("i-1"), opened("i-2")
    steps = [
        Transition(one, replace(one, rung=1)),
        Transition(two, replace(two, rung=1)),
        Transition(one, replace(one, rung=2)),
        Transition(two, closed(two)),
        Transition(None, two),
        Transition(one, replace(one, rung=3)),
    ]
    assert [len(some) for some in together(steps)] == [2, 1, 1, 1, 1]
    assert [step for some in together(steps) for step in some] == steps


def test_records_read_together_are_each_given_once(store: RecordStore) -> None:
    """A second question is one of a later moment, and so is one after a write."""
    for key in "abc":
        store.put(Record("case", key, {"n": 1}), 0)
    counting = CountingStore(store)
    read = ReadTogether(counting, [("case", "a"), ("case", "b"), ("case", "c"), ("switch", "all")])
    for key in "abc":
        store.put(Record("case", key, {"n": 2}), 1)
    counting.asked.clear()

    assert [(read.get("case", "a") or first_of(store)).version for _ in range(2)] == [1, 2]
    assert read.get("switch", "all") is None
    assert {key: one.version for key, one in read.get_many("case", ["b", "a"]).items()} == {"b": 1, "a": 2}
    read.transact([Put(Record("switch", "all", {}), 0)])
    assert (read.get("case", "c") or first_of(store)).version == 2
    assert [what for what, _ in counting.asked] == ["get", "get_each", "transact", "get"]


def first_of(store: RecordStore) -> Record:
    return next(iter(store.query("case")))
