"""Saved plans, damaged: applied as they were made, or refused; the hash may be made to fit again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builders as b
from tests.fuzz.bounds import LONG, attempt, fuzz
from tests.fuzz.mutations import Mutated, json_junk, mutated

from costguard.cli.decide.plan_file import plan_hash, read_plan, write_plan
from costguard.domain.errors import InvalidInputError
from costguard.domain.findings import Verdict
from costguard.planning import Plan, PlanInputs, build_plan
from costguard.report.words.sentences import Language


def a_plan() -> Plan:
    """One stop due, one held, findings and a gap."""
    inputs = PlanInputs(
        guard="idle_gpu",
        run_id="cli-1",
        now=b.NOW,
        policy=b.policy(),
        facts=(b.shard_facts(b.fact(), b.fact(b.instance("i-2", local_disk_gib=100.0)), b.fact(b.instance("i-3"))),),
        cases=(
            b.case(),
            b.case(case_id="case-2", subject=b.ref("i-2")),
        ),
        details={b.ref(): b.detail(), b.ref("i-2"): b.detail(b.instance("i-2", local_disk_gib=100.0))},
    )
    return build_plan(inputs)


PLAN = a_plan()


@contextmanager
def written(folder: Path) -> Iterator[dict[str, Any]]:
    path = folder / "made.json"
    write_plan(path, PLAN, Language.EN)
    yield json.loads(path.read_text("utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plans")


@pytest.fixture(scope="module")
def document(folder: Path) -> dict[str, Any]:
    with written(folder) as made:
        return made


def read_bytes(folder: Path, raw: bytes, *, measure: bool = False) -> Plan | None:
    path = folder / "plan.json"
    path.write_bytes(raw)
    return attempt("plan file", lambda: read_plan(path), InvalidInputError, measure=measure)


def dumped(document: Any) -> bytes:
    return json.dumps(document, default=str).encode()


def test_the_plan_has_something_to_do(folder: Path, document: dict[str, Any]) -> None:
    plan = read_bytes(folder, dumped(document))
    assert plan == PLAN
    assert PLAN.due
    assert PLAN.held
    assert any(finding.verdict is Verdict.VIOLATION for finding in PLAN.findings)


@fuzz(quick=30)
@given(data=st.data())
def test_a_damaged_plan_is_the_plan_that_was_made_or_refused(
    folder: Path, document: dict[str, Any], data: st.DataObject
) -> None:
    damaged: Mutated = data.draw(mutated(document, json_junk()))
    plan = read_bytes(folder, dumped(damaged.document))
    assert plan is None or plan == PLAN


@fuzz(quick=30)
@given(data=st.data())
def test_a_plan_whose_hash_was_made_to_fit_shows_what_it_does_or_is_refused(
    folder: Path, document: dict[str, Any], data: st.DataObject
) -> None:
    """The hash is no signature: whoever changes the body can count it anew. Then the words beside it tell."""
    damaged: Mutated = data.draw(mutated(document["plan"], json_junk()))
    try:
        forged = {**document, "plan": damaged.document, "plan_hash": plan_hash(damaged.document)}
    except (ValueError, TypeError, RecursionError, AttributeError):
        forged = {**document, "plan": damaged.document}
    plan = read_bytes(folder, dumped(forged))
    if plan is not None:
        actions = [(str(action.resource), action.verb.value, action.decision_id) for action in plan.due]
        assert actions == [(each["id"], each["verb"], each["decision_id"]) for each in document["due"]]


@fuzz(quick=20)
@given(raw=st.one_of(st.binary(max_size=300), st.integers(0, 4000)))
def test_any_bytes_are_refused(folder: Path, document: dict[str, Any], raw: bytes | int) -> None:
    cut = dumped(document)[:raw] if isinstance(raw, int) else raw
    assert read_bytes(folder, cut) is None


def _with(key: str, value: str) -> bytes:
    return f'{{"language": "en", "plan_hash": "x", "{key}": {value}}}'.encode()


BOMBS = {
    "lists": b"[" * 60_000,
    "closed lists": b"[" * 30_000 + b"]" * 30_000,
    "body of lists": _with("plan", '{"a":' + "[" * 900 + "]" * 900 + "}"),
    "body of more lists": _with("plan", '{"a":' + "[" * 5_000 + "]" * 5_000 + "}"),
    "body of objects": _with("plan", '{"a":' * 5_000 + "1" + "}" * 5_000),
    "nan": _with("plan", '{"a": NaN}'),
    "infinity": _with("plan", '{"a": -Infinity}'),
    "half surrogate": _with("plan", '{"a": "\\ud800"}'),
    "half surrogate key": _with("plan", '{"\\ud800": 1}'),
    "integer": _with("plan", '{"a": ' + "9" * 60_000 + "}"),
    "integer of 4000 digits": _with("plan", '{"a": ' + "9" * 4_000 + "}"),
    "language is a list": b'{"language": [], "plan_hash": "x", "plan": {}}',
    "language is an object": b'{"language": {}, "plan_hash": "x", "plan": {}}',
    "utf-16": json.dumps({"plan": {}}).encode("utf-16"),
    "mark": b"\xef\xbb\xbf{}",
}


@pytest.mark.parametrize("name", sorted(BOMBS))
def test_a_bomb_is_refused(folder: Path, name: str) -> None:
    assert read_bytes(folder, BOMBS[name], measure=LONG) is None


AMOUNTS = [
    "1E+999999999",
    "1E+9999999",
    "-1E+400000",
    "1E-999999999",
    "NaN",
    "sNaN",
    "Infinity",
    "-Infinity",
    "9" * 60_000,
    "1_0",
]
TIMES = ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-03-10T12:30:00", "1e400"]


@pytest.mark.parametrize("amount", AMOUNTS)
def test_no_amount_of_money_is_a_bomb(folder: Path, document: dict[str, Any], amount: str) -> None:
    """`1E+999999999` is a fine decimal of one digit, and a gigabyte once it is written out."""
    body = json.loads(json.dumps(document["plan"]))
    body["due"][0]["saving"]["stops_billing"]["amount"] = amount
    forged = {**document, "plan": body, "plan_hash": plan_hash(body)}
    assert read_bytes(folder, dumped(forged), measure=True) is None


@pytest.mark.parametrize("stamp", TIMES)
@pytest.mark.parametrize("place", ["planned_at", "case", "finding"])
def test_no_time_is_a_bomb_or_without_its_offset(
    folder: Path, document: dict[str, Any], place: str, stamp: str
) -> None:
    body = json.loads(json.dumps(document["plan"]))
    if place == "planned_at":
        body["planned_at"] = stamp
    elif place == "case":
        body["transitions"][0]["after"]["since"] = stamp
    else:
        body["findings"][0]["evidence"]["since"] = stamp
    forged = {**document, "plan": body, "plan_hash": plan_hash(body)}
    assert read_bytes(folder, dumped(forged)) is None


def test_a_folder_and_nothing_are_refused(folder: Path) -> None:
    for path in (folder, folder / "nothing", folder / "a\x00b", Path("x" * 5000)):
        assert attempt("plan file", partial(read_plan, path), InvalidInputError) is None
    assert replace(PLAN, planned_at=b.NOW + timedelta(0)) == PLAN
