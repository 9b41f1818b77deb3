"""Intents held against the audit: what was decided, what came of it, and that reading them keeps next to nothing."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.benchmarks.remembering import audit_records
from tests.builders import NOW
from tests.savings_builders import saving

from costguard.adapters.ledgers.sql import SqlLedger, sqlite_engine
from costguard.domain.actions import Outcome
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.ledger.intents import INTENT, IntentRepository
from costguard.ports import Put, Record, RecordStore

LEAST_KEPT = 2_000
ACTION = saving().action
KEY = f"{ACTION.case_id}/{ACTION.action_id}"


def decided(store: RecordStore, outcome: Outcome | None = Outcome.TOOK_EFFECT) -> RecordStore:
    intents = IntentRepository(store)
    assert intents.claim(ACTION, "undo-1", NOW)
    if outcome is not None:
        intents.settle(ACTION, outcome, NOW + timedelta(seconds=1), None, "", "undo-1")
    return store


@pytest.fixture
def store() -> Iterator[RecordStore]:
    with closing(SqlLedger(sqlite_engine(None), durable=False)) as opened:
        yield opened


def rewritten(store: RecordStore, **changes: Any) -> None:
    """The record of the intent as somebody with write access would leave it."""
    record = store.get(INTENT, KEY)
    assert record is not None
    store.transact([Put(replace(record, body={**record.body, **changes}), record.version)])


def problems(store: RecordStore) -> tuple[str, ...]:
    return verify(store).problems


def test_an_intent_that_the_audit_tells_of_is_right(store: RecordStore) -> None:
    assert problems(decided(store)) == ()


@pytest.mark.parametrize("name", ["decision_id", "run_epoch", "rule_digest"])
@pytest.mark.parametrize("other", ["other", ""])
def test_an_intent_that_decides_another_thing_than_its_entry_is_reported(
    store: RecordStore, name: str, other: str
) -> None:
    rewritten(decided(store), action={**_action(store), name: other})

    (problem,) = problems(store)
    assert problem.startswith(f"intent {ACTION.action_id}: is not the one that undo-1/")


@pytest.mark.parametrize(("name", "other"), [("verb", "terminate"), ("case_id", "case-other")])
def test_an_intent_of_another_verb_or_case_is_reported(store: RecordStore, name: str, other: str) -> None:
    rewritten(decided(store), action={**_action(store), name: other})

    assert any("it was changed" in problem for problem in problems(store))


def _action(store: RecordStore) -> dict[str, Any]:
    record = store.get(INTENT, KEY)
    assert record is not None
    return dict(record.body["action"])


@pytest.mark.parametrize("outcome", ["refused", "had_no_effect", "accepted"])
def test_an_outcome_that_no_entry_tells_of_is_reported(store: RecordStore, outcome: str) -> None:
    rewritten(decided(store), outcome=outcome)

    assert problems(store) == (
        f"intent {ACTION.action_id}: no entry tells of its outcome {outcome}: that was removed, or it was changed",
    )


def test_an_outcome_that_was_taken_back_is_reported(store: RecordStore) -> None:
    rewritten(decided(store), outcome=None)

    assert any("its outcome is None" in problem for problem in problems(store))


def test_of_two_entries_about_one_intent_the_later_counts(store: RecordStore) -> None:
    """A forged second entry is no way to make a changed intent right, nor to make a right one wrong unseen."""
    decided(store)
    forged = replace(ACTION, decision_id="other")
    with closing(SqlLedger(sqlite_engine(None), durable=False)) as elsewhere:
        assert IntentRepository(elsewhere).claim(forged, "undo-1", NOW)
        told = [Put(record, 0) for record in elsewhere.query("audit")]
    chain = told[0].record.key.rpartition("/")[0]
    moved = Record("audit", f"{chain}/00000003", told[0].record.body)
    store.transact([Put(moved, 0)])

    assert any("is not the one that" in problem for problem in problems(store))
    assert any("was moved" in problem or "one is missing" in problem for problem in problems(store))


class _Read:
    """A ledger of so many stops of which every record is read anew, as from a disk: nothing here keeps it."""

    def __init__(self, stops: int) -> None:
        self._texts = {(one.kind, one.key): (one.version, json.dumps(one.body)) for one in audit_records(stops)}
        self.durable = False

    def get(self, kind: str, key: str) -> Record | None:
        found = self._texts.get((kind, key))
        return None if found is None else Record(kind, key, json.loads(found[1]), found[0])

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        keys = sorted(key for its_kind, key in self._texts if its_kind == kind and key.startswith(prefix))
        return (record for key in keys if key > after and (record := self.get(kind, key)) is not None)


def _held(stops: int) -> int:
    store: Any = _Read(stops)
    tracemalloc.start()
    try:
        assert verify(store).problems == ()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_reading_a_stop_keeps_less_than_two_kilobytes() -> None:
    """Ten entries and an intent; an action by itself takes more, as it is read."""
    _held(1)  # what is kept from the first time on
    assert (_held(220) - _held(20)) / 200 < LEAST_KEPT
