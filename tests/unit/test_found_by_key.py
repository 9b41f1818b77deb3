"""What people ask about one machine, or about lately, is read by key: not all cases and notices that ever were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.builders import NOW, ref
from tests.contract.ledger_fakes import InterferingStore, WeighingStore
from tests.savings_builders import saving
from tests.unit.test_open_cases_listed import (
    begin,
    begin_as_before,
    closed,
    open_as_before,
    opened,
)

from cloudstand.clock import MovedClock
from costguard.adapters.ledgers import open_ledger
from costguard.cases import Case
from costguard.cli.decide.guards import guard_of
from costguard.cli.look.known import known_of
from costguard.cli.program import CliContext
from costguard.domain.actions import Outcome
from costguard.domain.errors import InvalidInputError
from costguard.engine.answers.answers import find_case
from costguard.engine.digest import report_facts
from costguard.engine.ledger.cases import CaseRepository
from costguard.engine.ledger.codec import record_of
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import NoticeState, OutboxNotice
from costguard.ports import Put, Record, RecordStore
from costguard.report.plan.case_history import History
from costguard.settings import load_settings

DAY = timedelta(days=1)
GUARD = "idle_gpu"


@pytest.fixture
def store() -> Iterator[RecordStore]:
    ledger = open_ledger("memory:")
    begin(ledger, NOW)
    yield ledger
    ledger.close()


def told(of: Case, notice_id: str) -> OutboxNotice:
    return OutboxNotice(
        notice_id=notice_id,
        decision_id="",
        case_key=of.key,
        channel="slack:#gpu",
        title="idle",
        text="",
        created_at=of.opened_at,
        state=NoticeState.DELIVERED,
        delivered_at=of.opened_at,
        case_id=of.case_id,
    )


def ended(store: RecordStore, native_id: str, case_id: str, **changes: object) -> Case:
    """A case that was opened, told of and closed."""
    cases = CaseRepository(store)
    first = cases.commit(None, opened(native_id, case_id=case_id, **changes))
    Memory.over(store).outbox.enqueue(told(first, f"notice-{case_id}"))
    return cases.commit(first, replace(closed(first), closed_at=NOW))


def why(store: RecordStore, resource: str) -> History:
    memory = Memory.over(store)
    here = CliContext(load_settings({}), MovedClock(NOW + DAY))
    return known_of(here, memory, guard_of(memory, "", resource), resource, None)


def read_by_why(resource: str, others: int) -> dict[str, int]:
    """How many records `why` reads of one machine, where so many cases of others are over."""
    ledger = open_ledger("memory:")
    begin(ledger, NOW)
    ended(ledger, "i-1", "case-1")
    for number in range(others):
        ended(ledger, f"i-other-{number}", f"case-other-{number}")
    store = WeighingStore(ledger)
    history = why(store, resource)
    assert (history.case is not None, len(history.happened)) == (True, 3)
    ledger.close()
    return store.given


@pytest.mark.parametrize("resource", ["i-1", str(ref("i-1")), "case-1"])
def test_what_why_reads_does_not_grow_with_other_cases(resource: str) -> None:
    few = read_by_why(resource, 10)
    assert few == read_by_why(resource, 250)
    assert sum(few.values()) < 40


def read_by_report(long_over: int) -> dict[str, int]:
    """How many records a report reads of cases, where so many were closed before its time."""
    ledger = open_ledger("memory:")
    begin(ledger, NOW)
    cases = CaseRepository(ledger)
    for number in range(long_over):
        first = cases.commit(None, opened(f"i-{number}", case_id=f"long-over-{number}"))
        cases.commit(first, replace(closed(first), closed_at=NOW - 60 * DAY))
    lately = cases.commit(None, opened("i-lately", case_id="lately"))
    memory = Memory.over(ledger)
    action = saving("i-lately", case_id="lately").action
    memory.intents.claim(action, "run-1", NOW)
    memory.intents.settle(action, Outcome.REFUSED, NOW, None, "no", "run-1")
    cases.commit(lately, closed(lately))
    store = WeighingStore(ledger)
    facts = report_facts(Memory.over(store), NOW - 30 * DAY, NOW + DAY)
    assert len(facts.refusals) == 1
    ledger.close()
    return store.given


def test_what_a_report_reads_does_not_grow_with_what_ended_before_its_time() -> None:
    few, many = read_by_report(10), read_by_report(250)
    assert max(few.pop("case_open"), many.pop("case_open")) <= 128  # lists, however many cases there were
    assert few == many
    assert few["case_closed"] == 1


def test_a_machine_whose_name_begins_like_another_has_a_past_of_its_own(store: RecordStore) -> None:
    ended(store, "i-1", "case-1")
    ended(store, "i-10", "case-10")
    Memory.over(store).cases.commit(None, opened("i-10", case_id="case-11"))
    assert why(store, "i-1").earlier == ()


def test_a_vendors_id_of_two_accounts_is_ambiguous_though_one_case_is_over(store: RecordStore) -> None:
    """Whose machine is meant is never guessed: what is said at the command line is heard by these ids too."""
    ended(store, "i-1", "case-1")
    elsewhere = replace(ref("i-1"), account="444455556666")
    CaseRepository(store).commit(None, replace(opened(case_id="case-2"), subject=elsewhere))
    with pytest.raises(InvalidInputError, match="ambiguous"):
        find_case(Memory.over(store), GUARD, "i-1")
    assert find_case(Memory.over(store), GUARD, str(elsewhere)).case_id == "case-2"


def test_an_id_with_colons_of_its_own_is_found_by_either_name(store: RecordStore) -> None:
    key = "arn:aws:kms:us-east-1:111122223333:key/1"
    CaseRepository(store).commit(None, opened(key))
    for name in (key, str(ref(key))):
        assert find_case(Memory.over(store), GUARD, name).subject.native_id == key


def test_what_an_older_version_opened_and_told_is_found(store: RecordStore) -> None:
    begin_as_before(store, NOW)
    old = replace(opened("i-old", case_id="case-old"), version=1)
    over = replace(closed(old), version=2)
    store.transact([Put(record_of("case", old.key, over), 0), Put(record_of("case_closed", f"{old.key}/x", over), 0)])
    store.transact([Put(record_of("notice", "n-old", told(old, "n-old")), 0)])
    memory = Memory.over(store)

    for at in (NOW + DAY, NOW + 2 * DAY, NOW + 5 * DAY):  # beside it, when the lists are filled, and after
        begin(store, at)
        assert len(why(store, "i-old").happened) == 3
        assert [one.case_id for one in memory.cases.ended(NOW - DAY, GUARD)] == ["case-old"]
    fresh = replace(opened("i-new", case_id="case-new"), opened_at=NOW + 5 * DAY)
    CaseRepository(store).commit(None, fresh)
    memory.outbox.enqueue(told(fresh, "n-new"))
    assert [one.notice_id for one in memory.outbox.of_case(fresh.key, fresh.opened_at)] == ["n-new"]


def test_a_case_that_an_older_version_opened_is_found_when_this_one_opens_it_again(store: RecordStore) -> None:
    known = open_as_before(store, opened("i-1", case_id="first"))
    cases = CaseRepository(store)
    over = cases.commit(known, closed(known))
    again = cases.commit(None, opened("i-1", case_id="second"))
    assert over.version < again.version
    assert [one.case_id for one in cases.named("second", GUARD)] == ["second"]
    assert cases.commit(again, closed(again)).case_id == "second"


def test_a_case_that_is_closed_twice_is_told_once(store: RecordStore) -> None:
    cases = CaseRepository(store)
    for _ in range(2):
        first = cases.commit(None, opened())
        cases.commit(first, closed(first))
    assert [one.case_id for one in cases.ended(NOW - DAY, GUARD)] == ["case-1"]


def test_names_that_somebody_else_wrote_meanwhile_are_no_reason_to_fail(store: RecordStore) -> None:
    """Two runs fill at once: one of them is first."""
    begin_as_before(store, NOW)
    open_as_before(store, opened("i-old"))
    interfering = InterferingStore(store)
    interfering.before_writes += [lambda: None, lambda: CaseRepository(store).fill_lists()]
    begin(interfering, NOW + 3 * DAY)
    assert [one.subject.native_id for one in CaseRepository(store).named("i-old", GUARD)] == ["i-old"]


def test_where_a_named_case_is_gone_nothing_is_found(store: RecordStore) -> None:
    CaseRepository(store).commit(None, opened("i-1"))
    store.transact([Put(Record("case_named", "0/1", {"key": "idle_gpu/idle/gone"}), 0)])
    assert CaseRepository(store).named("i-2", GUARD) == ()


def test_a_ledger_file_answers_why_by_key(tmp_path: Path) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db")
    begin(ledger, NOW)
    ended(ledger, "i-1", "case-1")
    assert why(ledger, "i-1").case is not None
    ledger.close()
