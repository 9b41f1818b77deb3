"""A run reads the savings that go on, not all that ended; what an older version recorded is seen all the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.builders import NOW, ref
from tests.contract.ledger_fakes import InterferingStore, WeighingStore
from tests.savings_builders import DAY, HOUR, ended, saving, sighting
from tests.scenario.stage import Stage, idle_machine

from costguard.adapters.ledgers import open_ledger
from costguard.domain.actions import Verb
from costguard.domain.resources import InstanceState
from costguard.domain.savings import RecordedSaving, SavingChange, SavingStanding
from costguard.engine.ledger.codec import SAVING, record_of
from costguard.engine.ledger.listing import lists_are_whole
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.runs import RunRecord
from costguard.engine.run.settlement import settle_observed
from costguard.planning import Plan
from costguard.ports import Put, RecordStore

GUARD = "idle_gpu"


@pytest.fixture
def store() -> Iterator[RecordStore]:
    ledger = open_ledger("memory:")
    yield ledger
    ledger.close()


@pytest.fixture
def memory(store: RecordStore) -> Memory:
    made = Memory.over(store)
    made.runs.begin("run-0", GUARD, NOW)
    return made


def as_before(store: RecordStore, *savings: RecordedSaving) -> None:
    """What the version without lists writes of savings."""
    puts = [Put(record_of(SAVING, f"{one.action.case_id}/{one.action.action_id}", one), 0) for one in savings]
    for at in range(0, len(puts), 100):
        store.transact(puts[at : at + 100])


def listed(store: RecordStore) -> list[str]:
    return sorted(name for record in store.query("saving_open") for name in record.body["names"])


def read_by_a_run(folder: Path, ended_savings: int) -> dict[str, int]:
    """How many records a run reads where so many savings have ended."""
    store = WeighingStore(open_ledger("memory:"))
    stage = Stage(folder, idle_machine("notebook"), idle_machine("other"), store=store)
    stage.days(range(2))
    gone = (saving(f"i-gone-{number:05}") for number in range(ended_savings))
    as_before(store, *(ended(one, SavingStanding.RESTARTED, NOW) for one in gone))
    stage.day(2)
    store.given.clear()
    stage.day(3)
    given = dict(store.given)
    assert len(listed(store)) == 2
    stage.close()
    return given


def test_what_a_run_reads_does_not_grow_with_savings_that_ended(tmp_path: Path) -> None:
    assert read_by_a_run(tmp_path, 5_000) == read_by_a_run(tmp_path, 10)


def test_a_stop_is_listed_until_it_ends_and_a_termination_for_good(store: RecordStore, memory: Memory) -> None:
    address = saving("i-3", subject=ref("eipalloc-1", "address"), verb=Verb.MEND)
    memory.savings.record(saving("i-1"), saving("i-2"), saving("i-2", verb=Verb.TERMINATE), address)
    assert listed(store) == ["case-i-1/case-i-1-stop", "case-i-2/case-i-2-stop", "case-i-2/case-i-2-terminate"]

    for one in (saving("i-1"), saving("i-2", verb=Verb.TERMINATE)):
        memory.savings.change(one, SavingChange(SavingStanding.UNSEEN, NOW))
        memory.savings.change(one, SavingChange(SavingStanding.REPLACED, NOW, ref("i-9")))

    assert listed(store) == ["case-i-2/case-i-2-stop", "case-i-2/case-i-2-terminate"]
    assert [memory.savings.took_part(ref(name)) for name in ("i-1", "i-2", "i-8", "i-9")] == [True, True, False, True]
    assert {one.action.subject for one in memory.savings.current([])} == {ref("i-2")}
    assert {one.action.subject for one in memory.savings.current([ref("i-1"), ref("i-8")])} == {ref("i-1"), ref("i-2")}


def test_many_savings_are_recorded_at_once_and_each_only_once(store: RecordStore, memory: Memory) -> None:
    """Two runs record some of the same; both say which they were first to record."""
    many = [saving(f"i-{number:03}") for number in range(60)]
    interfering = InterferingStore(store)
    interfering.before_writes += [lambda: None, lambda: memory.savings.record(*many[20:40])]

    mine = Memory.over(interfering).savings.record(*many)

    assert [one for one in many if one not in mine] == many[25:40]
    assert list(memory.savings.all()) == many
    assert len(listed(store)) == 60
    assert memory.savings.record(*many) == ()


def test_what_nothing_can_change_any_more_leaves_the_list_once(store: RecordStore, memory: Memory) -> None:
    memory.savings.record(saving("i-1", NOW), saving("i-2", NOW + 100 * DAY))
    for day in (179, 180, 181):
        shown = (sighting("i-1"), sighting("i-2"))
        made = Plan(GUARD, "run", NOW + day * DAY, "digest", (), (), (), (), (), ())
        settle_observed(memory, replace(made, sightings=shown, looked=(ref().shard,)))
        assert len(listed(store)) == (2 if day < 180 else 1)
    memory.savings.unlist([saving("i-1", NOW)])
    versions = {record.version for record in store.query("saving_open")}
    assert versions == {1, 2}


def test_what_an_older_version_recorded_is_read_and_listed_two_days_after_its_last_run(store: RecordStore) -> None:
    run = RunRecord("old", GUARD, NOW)
    store.transact([Put(record_of("run", "old", run), 0), Put(record_of("run_latest", GUARD, run), 0)])
    replaced = replace(saving("i-1"), changes=(SavingChange(SavingStanding.REPLACED, NOW, ref("i-9")),))
    as_before(store, replaced, saving("i-2"), saving("i-2", verb=Verb.TERMINATE, at=NOW + HOUR))
    memory = Memory.over(store)

    memory.runs.begin("run-1", GUARD, NOW + DAY)
    assert len(memory.savings.current([])) == 3
    as_before(store, saving("i-3"))  # its run goes on beside ours
    assert len(memory.savings.current([])) == 4

    memory.runs.begin("run-2", GUARD, NOW + timedelta(days=2))
    assert lists_are_whole(store)
    assert [one.action.action_id for one in memory.savings.current([])] == [
        "case-i-2-stop",
        "case-i-2-terminate",
        "case-i-3-stop",
    ]
    assert len(memory.savings.current([ref("i-1")])) == 4
    assert all(memory.savings.took_part(ref(name)) for name in ("i-1", "i-2", "i-3", "i-9"))
    assert not memory.savings.took_part(ref("i-4"))


def test_a_machine_that_took_part_long_ago_replaces_none(memory: Memory) -> None:
    """It was stopped and came back; another stops, just as it starts once more."""
    memory.savings.record(saving("i-1", NOW - 300 * DAY))
    memory.savings.change(saving("i-1"), SavingChange(SavingStanding.RESTARTED, NOW - 299 * DAY))
    memory.savings.record(saving("i-2", NOW))
    again = sighting("i-1", state=InstanceState.RUNNING, run_epoch="e", launched_at=NOW + HOUR)
    new = replace(again, ref=ref("i-9"), launched_at=NOW + 2 * HOUR)
    for at, shown in ((NOW + DAY, (again,)), (NOW + 2 * DAY, (again, new))):
        made = Plan(GUARD, "run", at, "digest", (), (), (), (), (), ())
        settle_observed(memory, replace(made, sightings=(sighting("i-2"), *shown), looked=(ref().shard,)))
        (last,) = (one.last for one in memory.savings.all() if one.action.subject == ref("i-2"))
        assert (last.other if last is not None else None) == (None if len(shown) == 1 else ref("i-9"))
