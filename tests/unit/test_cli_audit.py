"""`costguard audit people`, `forget` and `prune`: nothing is erased without `--yes`, and the audit stays whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from cloudstand.clock import MovedClock
from costguard.adapters.ledgers.open import open_ledger
from costguard.bootstrap import run_function
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.engine.ledger.audit.audit import AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.memory import Memory
from costguard.settings import Secret, Settings, load_settings

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
OLD = NOW - timedelta(days=500)
Run = Callable[..., int]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    memory = Memory.over(open_ledger(url))
    with closing(memory.store):
        memory.switch.pause("Ana Test (slack:T1/U7)", "a private reason", NOW)
        memory.runs.begin("old", "idle_gpu", OLD)
        AuditTrail(memory.store).append(AuditEntry(OLD, "old", "a", AuditWhat.INTENT, {"action": "x"}))
        memory.runs.finish("old", {}, OLD)
    return Settings(ledger=Secret(url))


@pytest.fixture
def costguard(settings: Settings) -> Run:
    return lambda *arguments: run(arguments, program=Program(settings=lambda: settings, clock=MovedClock(NOW)))


def test_people_are_shown_shown_again_and_forgotten(costguard: Run, capfd: pytest.CaptureFixture[str]) -> None:
    assert costguard("audit", "people") == Exit.OK
    assert capfd.readouterr().out == "person:1  slack:T1/U7 Ana Test\n"

    assert costguard("audit", "forget", "U7") == Exit.DUE
    assert "Would forget person:1: slack:T1/U7 Ana Test." in capfd.readouterr().out
    assert costguard("audit", "forget", "U7", "--yes", "--json") == Exit.OK
    assert json.loads(capfd.readouterr().out) == {"schema": 1, "key": "person:1", "forgotten": True, "records": 2}

    assert costguard("audit", "people", "--lang", "zh") == Exit.OK
    assert capfd.readouterr().out == "person:1  已遗忘\n"
    assert costguard("audit", "verify") == Exit.OK
    assert costguard("audit", "forget", "U7", "--yes") == Exit.BAD_INPUT


def test_old_runs_are_pruned_only_when_asked_and_not_too_young(
    costguard: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    assert costguard("audit", "prune", "--older-than", "30d") == Exit.BAD_INPUT
    assert "90 days at least" in capfd.readouterr().err
    assert costguard("audit", "prune", "--older-than", "soon") == Exit.BAD_INPUT
    assert costguard("audit", "prune", "--older-than", "400d") == Exit.DUE
    assert "Would erase 1 entry in 1 chain" in capfd.readouterr().out
    assert costguard("audit", "prune", "--older-than", "400d", "--yes") == Exit.OK
    assert costguard("audit", "prune", "--older-than", "400d") == Exit.OK
    assert costguard("audit", "verify") == Exit.OK


def test_the_weekly_digest_prunes_by_itself_where_a_retention_is_set(settings: Settings) -> None:
    given = {"COSTGUARD_LEDGER": settings.ledger.reveal(), "COSTGUARD_AUDIT_DAYS": "400"}
    figures = run_function("digest", "run-1", None, load_settings(given), MovedClock(NOW))
    assert figures["audit_pruned"] == 1
