"""Stored records, damaged: read as they were written, or refused by the ledger's own error."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builders as b
from tests.fuzz.bounds import attempt, fuzz
from tests.fuzz.mutations import Mutated, json_junk, mutated

from costguard.cases import Case
from costguard.domain.actions import Action, Verb
from costguard.domain.errors import LedgerError
from costguard.engine.ledger.codec import from_body, to_body, value_of
from costguard.engine.ledger.publications import GoodPolicy
from costguard.engine.ledger.runs import RunRecord
from costguard.engine.ledger.snoozes import Snooze, SwitchState
from costguard.ports import Record

ACTION = Action("d-1", "d-1", Verb.STOP, b.ref(), b.ref(), "epoch-1", "case-1", 1, "research", "digest")
VALUES: dict[str, Any] = {
    "case": b.case(),
    "action": ACTION,
    "run": RunRecord("run-1", "idle_gpu", b.NOW, b.NOW, {"due": 1}),
    "policy": GoodPolicy({"costguard.yaml": "version: 1\n"}, "r", "/policy", b.NOW),
    "snooze": Snooze(str(b.ref()), b.NOW, "nlp", "training", b.NOW),
    "switch": SwitchState(paused=True),
}
BODIES = {name: json.loads(json.dumps(to_body(value))) for name, value in VALUES.items()}


def read(kind: str, body: Any, schema: Any = 1) -> Any:
    record = Record(kind, "key", body, schema=schema)
    return attempt("records", lambda: value_of(type(VALUES[kind]), record), LedgerError)


@pytest.mark.parametrize("kind", sorted(VALUES))
def test_what_was_written_is_read_again(kind: str) -> None:
    assert read(kind, BODIES[kind]) == VALUES[kind]


@fuzz(quick=30)
@given(
    st.sampled_from(sorted(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), mutated(BODIES[kind], json_junk())))
)
def test_a_damaged_body_is_refused_or_says_what_it_says(case: tuple[str, Mutated]) -> None:
    """What is read can be written and read again, so nothing half understood stays in memory."""
    kind, damaged = case
    try:
        body = json.loads(json.dumps(damaged.document))  # a store keeps JSON
    except (ValueError, RecursionError):
        return
    found = read(kind, body)
    if found is not None:
        again = attempt("records", lambda: from_body(type(found), to_body(found)), LedgerError)
        assert again is None or again == found
    if kind == "switch" and found is not None:
        assert found.paused or str(body["paused"]).lower() in {"false", "0", "0.0", "-0.0", "off", "f", "no", "n"}


AMOUNTS = ["1E+999999999", "NaN", "sNaN"]


@pytest.mark.parametrize("schema", [2, 10**30])
def test_a_newer_schema_is_refused(schema: Any) -> None:
    assert read("case", BODIES["case"], schema) is None


def test_bodies_that_are_bombs_are_refused() -> None:
    deep: Any = 0
    for _ in range(900):
        deep = [deep]
    for kind, body in BODIES.items():
        for key in body:
            assert read(kind, {**body, key: deep}) is None or (kind, key) == ("run", "summary")
    assert isinstance(VALUES["case"], Case)
    assert isinstance(b.NOW, datetime)
    assert isinstance(Decimal(1), Decimal)
