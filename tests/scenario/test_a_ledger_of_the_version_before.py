"""A ledger that an older version wrote is opened, believed, and gone on with: see tests/ledgers/README.md."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.contract.ledger_servers import dynamodb_server, dynamodb_test_client
from tests.scenario.stage import DAY, START, Stage, idle_machine

from costguard.cases import CaseStatus
from costguard.cli.main import run
from costguard.domain.savings import RecordedSaving
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.ledger.listing import lists_are_whole
from costguard.ports import RecordStore
from costguard.providers.aws.core.store import DynamoDbLedger

LEDGERS = sorted((Path(__file__).parents[1] / "ledgers").glob("*.sql"))


@pytest.fixture(params=LEDGERS, ids=lambda path: path.stem)
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a ledger with what the file says in it."""
    file = tmp_path / "ledger.sqlite3"
    with sqlite3.connect(file) as database:
        database.executescript(request.param.read_text("utf-8"))
    database.close()
    return f"sqlite:///{file}"


@pytest.fixture
def stage(ledger: str, tmp_path: Path) -> Stage:
    return on_day_one(tmp_path, ledger)


@pytest.fixture(params=LEDGERS, ids=lambda path: path.stem)
def table(request: pytest.FixtureRequest) -> Iterator[RecordStore]:
    """A DynamoDB table with what the file says in it, each record where the older version had it: under its kind."""
    rows = sqlite3.connect(":memory:")
    rows.executescript(request.param.read_text("utf-8"))
    with dynamodb_server() as (_, url):
        client = dynamodb_test_client(url)
        ledger = DynamoDbLedger(client, "costguard-ledger")
        ledger.create_table()
        for kind, key, version, schema, body in rows.execute("SELECT * FROM costguard_records"):
            names = {"kind": {"S": kind}, "key": {"S": key}, "body": {"S": body}, "write": {"S": "before"}}
            numbers = {"version": {"N": str(version)}, "schema": {"N": str(schema)}}
            client.put_item(TableName="costguard-ledger", Item={**names, **numbers})
        yield ledger
        ledger.close()
    rows.close()


def on_day_one(folder: Path, ledger: str = "", store: RecordStore | None = None) -> Stage:
    """The world on the evening of day 1, as the older version left it: what it asked the cloud for was done there."""
    young = idle_machine("young", launched_at=START - timedelta(hours=12))
    stage = Stage(folder, idle_machine("notebook"), idle_machine("kept"), young, ledger=ledger, store=store)
    stage.clock.advance(DAY)
    for name in ("notebook", "kept", "young"):
        for intent in stage.memory.intents.for_case(stage.case(name).case_id):
            stage.executor.inner.execute(intent.action)
    return stage


def test_what_it_told_and_did_stands_and_its_waits_go_on(stage: Stage) -> None:
    """No machine is warned again, no call made twice: one stop is seen done, the next comes on the old notice."""
    stage.day(2)
    assert (stage.verbs(), stage.state("notebook"), stage.state("young")) == (["stop"], "stopped", "stopping")
    assert stage.executor.calls[0].subject == stage.ref("young")
    assert not any("will be stopped" in title for title in stage.mailbox.titles)
    assert (stage.case("kept").status, stage.state("kept")) == (CaseStatus.SNOOZED, "running")

    stage.days(range(3, 11))
    saved: list[RecordedSaving] = list(stage.memory.savings.all())
    assert {one.action.subject for one in saved} == {stage.ref("notebook"), stage.ref("young")}
    assert verify(stage.memory.store).problems == ()
    stage.close()


def test_a_table_goes_on_likewise(table: RecordStore, tmp_path: Path) -> None:
    stage = on_day_one(tmp_path, store=table)
    stage.day(2)
    assert (stage.verbs(), stage.state("notebook"), stage.state("young")) == (["stop"], "stopped", "stopping")
    assert (stage.case("kept").status, stage.state("kept")) == (CaseStatus.SNOOZED, "running")
    stage.days(range(3, 5))
    assert {saving.action.subject for saving in stage.memory.savings.all()} == {
        stage.ref("notebook"),
        stage.ref("young"),
    }
    assert verify(table).problems == ()


def test_its_open_cases_are_read_as_before_and_listed_once_it_cannot_be_at_work_any_more(stage: Stage) -> None:
    store, cases = stage.memory.store, stage.memory.cases
    every = {stage.ref(name) for name in ("notebook", "kept", "young")}
    assert {case.subject for case in cases.active("idle_gpu")} == every
    stage.day(2)
    assert not lists_are_whole(store)
    assert {case.subject for case in cases.active("idle_gpu")} == every

    stage.day(3)
    assert lists_are_whole(store)
    assert {case.subject for case in cases.active("idle_gpu")} == every
    stage.close()


def test_commands_read_it(ledger: str, stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    subject = str(stage.ref("notebook"))
    stage.close()
    for words in (["cases"], ["why", subject], ["savings"], ["outbox"]):
        assert run([*words, "--ledger", ledger]) == 0, words
    assert run(["audit", "verify", "--ledger", ledger]) == 0
    assert "notebook" in capsys.readouterr().out
