"""What was done is in the ledger and in its audit: emptying either, or taking one entry out, shows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.scenario.stage import DAY, Stage, idle_machine
from tests.scenario.test_a_stop_taken_back import taken_back

from cloudstand.world.fleet import MachineSpec
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.domain.actions import Outcome
from costguard.domain.errors import OutcomeUnknownError
from costguard.engine.ledger.audit.audit import hash_of
from costguard.engine.ledger.audit.forget import prune
from costguard.engine.ledger.audit.verify import verify

AUDITED = ("audit", "audit_head", "audit_words", "audit_person", "run", "run_heads", "run_latest")


class Kept(Stage):
    """A stage whose ledger is a file that a forger finds."""

    def __init__(self, folder: Path, *fleet: MachineSpec) -> None:
        super().__init__(folder, *fleet)
        self.file = folder / "ledger.sqlite3"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Kept]:
    """A machine told of, stopped, copied and terminated."""
    staged = Kept(tmp_path, idle_machine())
    staged.days(range(14))
    assert {"stop", "snapshot", "terminate"} <= set(staged.verbs())
    yield staged
    staged.close()


def problems(stage: Kept) -> tuple[str, ...]:
    return verify(stage.memory.store).problems


def forge(stage: Kept, statement: str, *values: Any) -> int:
    """Straight in the database, past every repository."""
    with closing(sqlite3.connect(stage.file)) as connection, connection:
        return connection.execute(statement, values).rowcount


def of_kind(stage: Kept, kind: str) -> list[tuple[str, dict[str, Any]]]:
    return [(record.key, dict(record.body)) for record in stage.memory.store.query(kind)]


def remove(stage: Kept, kind: str, key: str) -> None:
    assert forge(stage, "DELETE FROM costguard_records WHERE kind = ? AND key = ?", kind, key) == 1


def rewrite(stage: Kept, kind: str, key: str, change: Callable[[dict[str, Any]], Any]) -> None:
    record = stage.memory.store.get(kind, key)
    assert record is not None
    body = json.loads(json.dumps(record.body))
    change(body)
    forge(stage, "UPDATE costguard_records SET body = ? WHERE kind = ? AND key = ?", json.dumps(body), kind, key)


def test_a_whole_audit_tells_of_every_intent_and_outcome(stage: Kept) -> None:
    found = verify(stage.memory.store)
    assert (found.problems, found.intents) == ((), len(of_kind(stage, "intent")))
    assert found.intents >= 3


def test_what_people_took_back_is_part_of_a_whole_audit(tmp_path: Path) -> None:
    """Its chain is of no run; the intent that it tells of is what makes it known."""
    staged = Kept(tmp_path, idle_machine())
    staged.days(range(3))
    assert taken_back(staged).outcome is Outcome.ACCEPTED
    assert problems(staged) == ()
    (undone,) = (key for key, body in of_kind(staged, "intent") if body["run_id"].startswith("undo-"))
    remove(staged, "intent", undone)
    assert any("has chains and no record" in problem for problem in problems(staged))
    staged.close()


def test_an_emptied_audit_shows_although_its_heads_and_runs_are_gone_too(stage: Kept) -> None:
    for kind in AUDITED:
        forge(stage, "DELETE FROM costguard_records WHERE kind = ?", kind)
    said = problems(stage)
    intents = [body["action"]["action_id"] for _, body in of_kind(stage, "intent")]
    assert [one for one in intents if not any(one in problem for problem in said)] == []
    assert "the audit is empty, and the ledger has cases: it was removed" in said


def test_an_audit_emptied_before_anything_was_done_shows(tmp_path: Path) -> None:
    staged = Kept(tmp_path, idle_machine())
    staged.day(0)
    for kind in AUDITED:
        forge(staged, "DELETE FROM costguard_records WHERE kind = ?", kind)
    assert problems(staged) == ("the audit is empty, and the ledger has cases: it was removed",)
    staged.close()


def chain_without(stage: Kept, place: Callable[[dict[str, Any]], bool]) -> str:
    """Takes one entry out of its chain, and makes the rest, the head and the anchor fit: the best a forger can do."""
    key, body = next((key, body) for key, body in of_kind(stage, "audit") if place(body))
    chain = key.rpartition("/")[0]
    run_id, _, shard = chain.partition("/")
    rest = [one for other, one in of_kind(stage, "audit") if other.rpartition("/")[0] == chain and other != key]
    forge(stage, "DELETE FROM costguard_records WHERE kind = 'audit' AND key LIKE ?", f"{chain}/%")
    last = ""
    for seq, one in enumerate(rest, start=1):
        one.update(seq=seq, previous=last)
        one["hash"] = last = hash_of(one)
        add(stage, "audit", f"{chain}/{seq:08}", one)
    head = {"entries": len(rest), "hash": last}
    if rest:
        rewrite(stage, "audit_head", chain, lambda body: body.update(head))
        forge(stage, "UPDATE costguard_records SET version = 1 WHERE kind = 'audit_head' AND key = ?", chain)
        rewrite(stage, "run", run_id, lambda run: run["heads"].update({shard: head}))
    else:
        remove(stage, "audit_head", chain)
        rewrite(stage, "run", run_id, lambda run: run["heads"].pop(shard))
    facts = body["facts"]
    return str(facts["action"]["action_id"] if "action" in facts else facts["action_id"])


def add(stage: Kept, kind: str, key: str, body: dict[str, Any]) -> None:
    columns = "INSERT INTO costguard_records (kind, key, version, schema, body) VALUES (?, ?, 1, 1, ?)"
    forge(stage, columns, kind, key, json.dumps(body))


def test_an_intent_taken_out_of_a_chain_that_was_made_to_fit_shows(stage: Kept) -> None:
    action_id = chain_without(stage, lambda body: body["what"] == "intent")
    assert [problem for problem in problems(stage) if not problem.startswith(f"intent {action_id}: no entry")] == []
    assert problems(stage)


def test_an_outcome_taken_out_of_a_chain_that_was_made_to_fit_shows(stage: Kept) -> None:
    ended = [body["action"]["action_id"] for _, body in of_kind(stage, "intent") if body["outcome"] == "took_effect"]
    action_id = chain_without(
        stage, lambda body: body["what"] == "outcome" and body["facts"]["outcome"] == "took_effect"
    )
    assert action_id in ended
    (said,) = problems(stage)
    assert said.startswith(f"intent {action_id}: no entry tells of its outcome took_effect")


def test_a_removed_intent_shows(stage: Kept) -> None:
    key, body = of_kind(stage, "intent")[0]
    remove(stage, "intent", key)
    (said,) = problems(stage)
    assert said.startswith(f"intent {body['action']['action_id']}: ")
    assert "it is not in the ledger: it was removed" in said


@pytest.mark.parametrize("name", ["case_id", "decision_id", "verb", "run_epoch", "rule_digest"])
def test_a_changed_intent_shows(stage: Kept, name: str) -> None:
    key, _ = of_kind(stage, "intent")[0]
    other = "warn" if name == "verb" else "another"
    rewrite(stage, "intent", key, lambda body: body["action"].update({name: other}))
    assert any("it was changed" in problem for problem in problems(stage))


@pytest.mark.parametrize("outcome", [None, "unknown", "accepted", "refused", "had_no_effect"])
def test_an_outcome_turned_into_another_shows(stage: Kept, outcome: str | None) -> None:
    key, body = next((key, body) for key, body in of_kind(stage, "intent") if body["outcome"] == "took_effect")
    rewrite(stage, "intent", key, lambda body: body.update(outcome=outcome))
    (said,) = problems(stage)
    assert body["action"]["action_id"] in said


def test_an_unreadable_intent_shows(stage: Kept) -> None:
    key, _ = of_kind(stage, "intent")[0]
    rewrite(stage, "intent", key, lambda body: body.update(claimed_at="yesterday"))
    assert any(f"intent {key}: cannot be read" in problem for problem in problems(stage))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(OutcomeUnknownError("lost", operation="StopInstances"), "unknown"), (RuntimeError("the process died"), None)],
)
def test_a_lost_answer_and_a_crash_are_no_disagreement(tmp_path: Path, error: Exception, outcome: str | None) -> None:
    """An intent without any outcome is what a crash leaves; an unknown one is told as such."""
    staged = Kept(tmp_path, idle_machine())
    staged.day(0)
    staged.executor.fails_after = error
    with suppress(RuntimeError):
        staged.day(1)
    assert [body["outcome"] for _, body in of_kind(staged, "intent")] == [outcome]
    assert problems(staged) == ()
    staged.close()


def test_pruned_chains_tell_of_nothing_and_what_came_after_them_does(stage: Kept) -> None:
    stage.clock.advance(200 * DAY)
    assert prune(stage.memory.store, 100 * DAY, stage.clock.now()).chains > 0
    assert problems(stage) == ()


def test_the_command_says_how_many_intents_it_held_against_the_audit(
    stage: Kept, capfd: pytest.CaptureFixture[str]
) -> None:
    ledger = ("--ledger", f"sqlite:///{stage.file}")
    count = len(of_kind(stage, "intent"))
    assert run(["audit", "verify", "--json", *ledger]) == Exit.OK
    assert json.loads(capfd.readouterr().out)["intents"] == count
    assert run(["audit", "verify", *ledger]) == Exit.OK
    assert f"{count} intents" in capfd.readouterr().out
    forge(stage, "DELETE FROM costguard_records WHERE kind = 'audit'")
    assert run(["audit", "verify", "--json", *ledger]) == Exit.BROKEN
    assert json.loads(capfd.readouterr().out)["whole"] is False
