"""What people say of launch freezes at the command line, and what they are shown: a ledger file, and no cloud."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import NOW
from tests.unit.test_cli_answers import Still

from costguard.adapters.ledgers.open import open_ledger
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.domain.refs import CLOUDS
from costguard.engine.ledger.audit.audit import AuditWhat
from costguard.engine.ledger.audit.people import told_again
from costguard.engine.ledger.memory import Memory
from costguard.planning.freeze import FreezePhase, FreezeState
from costguard.report.budget.freeze_views import freeze_lines, freezes_json, freezes_table, phase_words
from costguard.report.tables import Tone
from costguard.report.words.sentences import Language
from costguard.settings import Secret, Settings

FREEZE = LaunchFreeze("no-new-gpus", "aws", FreezeVia.ORGANISATION, "p-a1b2c3d4", "111122223333")
MAIN = """
version: 1
mode: enforce
launch_freezes:
  - {name: no-new-gpus, cloud: aws, via: organisation, policy: p-a1b2c3d4, target: "111122223333"}
  - {name: unused, cloud: tencent, via: group, policy: "77", target: "98"}
budgets:
  - {name: research, monthly: 5000 USD, at: {120%: [{freeze: {of: [no-new-gpus]}}]}}
"""
YEARLY = "  - {name: company, yearly: 60000 USD, at: {120%: [{freeze: {of: [no-new-gpus]}}]}}\n"


@dataclass(frozen=True)
class Desk:
    """A command line over one policy and one ledger file."""

    folder: Path

    def run(self, *arguments: str) -> int:
        settings = Settings(ledger=Secret(self.url), policy=str(self.folder / "costguard.yaml"))
        return run(arguments, program=Program(settings=lambda: settings, clock=Still()))

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'ledger.db'}"

    def write(self, text: str) -> None:
        (self.folder / "costguard.yaml").write_text(text, encoding="utf-8")

    def begun(self, phase: FreezePhase, **changes: Any) -> None:
        """The ledger remembers the freeze in this phase."""
        state = replace(FreezeState(FREEZE.name, phase, "research", "2026-03", NOW, of=FREEZE), **changes)
        with closing((memory := self.memory()).store):
            memory.freezes.move(FreezeState(FREEZE.name), state, AuditWhat.TRANSITION, {}, "run", NOW)

    def memory(self) -> Memory:
        return Memory.over(open_ledger(self.url))

    def released(self) -> str | None:
        with closing((memory := self.memory()).store):
            found = memory.freezes.released(FREEZE.name)
        return None if found is None else found.period


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.write(MAIN)
    with closing(made.memory().store):
        return made


def thaw(desk: Desk, *more: str) -> int:
    return desk.run("budgets", "thaw", "no-new-gpus", "--reason", "deadline", "--by", "operator", *more)


def test_a_freeze_in_force_is_released_for_its_period(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    desk.begun(FreezePhase.ON)
    assert thaw(desk) == Exit.OK
    assert desk.released() == "2026-03"
    said = "no-new-gpus is released for 2026-03, says operator: deadline. The next run takes it off."
    assert " ".join(capfd.readouterr().out.split()) == said


def test_one_that_never_began_is_kept_from_beginning(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    assert thaw(desk, "--json") == Exit.OK
    told = json.loads(capfd.readouterr().out)
    assert told == {
        "schema": 1,
        "name": "no-new-gpus",
        "period": "2026-03",
        "phase": "off",
        "by": "operator",
        "reason": "deadline",
    }
    assert desk.released() == "2026-03"


def test_what_somebody_else_attached_is_said_to_stay(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    desk.begun(FreezePhase.FOREIGN)
    assert thaw(desk) == Exit.OK
    assert "only they take it off" in " ".join(capfd.readouterr().out.split())


def test_the_period_is_the_present_one_of_the_budget_that_began_it(desk: Desk) -> None:
    desk.write(MAIN + YEARLY)
    desk.begun(FreezePhase.RELEASED, budget="company", period="2025")
    assert thaw(desk) == Exit.OK
    assert desk.released() == "2026"


def test_a_freeze_whose_budget_is_gone_is_released_for_the_period_it_was_begun_in(desk: Desk) -> None:
    desk.begun(FreezePhase.ON, budget="gone", period="2026-Q1")
    assert thaw(desk) == Exit.OK
    assert desk.released() == "2026-Q1"


def test_two_budgets_with_different_periods_are_not_guessed_between(
    desk: Desk, capfd: pytest.CaptureFixture[str]
) -> None:
    desk.write(MAIN + YEARLY)
    assert thaw(desk) == Exit.BAD_INPUT
    assert "company and research ask for no-new-gpus over different periods" in capfd.readouterr().err
    assert desk.released() is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nobody", "there is no launch freeze 'nobody'; there is no-new-gpus, unused"),
        ("unused", "no budget of the policy"),
    ],
)
def test_what_cannot_be_released_is_said(desk: Desk, name: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert desk.run("budgets", "thaw", name, "--reason", "r") == Exit.BAD_INPUT
    assert said in capfd.readouterr().err


def test_a_release_is_in_the_audit(desk: Desk) -> None:
    thaw(desk)
    with closing((memory := desk.memory()).store):
        entries = [told_again(memory.store, record) for record in memory.store.query("audit")]
    assert any("deadline" in str(entry) and "operator" in str(entry) for entry in entries)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_denying_policy_stands_alone_on_standard_output(
    desk: Desk, cloud: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert desk.run("budgets", "freeze-policy", cloud) == Exit.OK
    told = capfd.readouterr()
    assert "costguard-approved" in json.dumps(json.loads(told.out))
    assert "What this policy leaves open:" in told.err


def test_as_json_the_limits_stand_beside_it(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    assert desk.run("budgets", "freeze-policy", "alibaba", "--json", "--lang", "zh") == Exit.OK
    told = capfd.readouterr()
    found = json.loads(told.out)
    assert (found["schema"], found["document"]["Version"], told.err) == (1, "1", "")
    assert any("DryRun" in limit for limit in found["limits"])


def test_a_role_is_printed_for_a_freeze_of_the_policy(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    assert desk.run("budgets", "freeze-role", "no-new-gpus") == Exit.OK
    told = capfd.readouterr()
    assert "p-a1b2c3d4" in json.dumps(json.loads(told.out))
    assert told.err == "", "AWS can narrow it all"
    assert desk.run("budgets", "freeze-role", "unused") == Exit.OK
    assert "it may attach and detach any" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("freeze-policy", "gcp"), "'gcp' is no cloud"), (("freeze-role", "nobody"), "there is no-new-gpus, unused")],
)
def test_unknown_names_are_refused(
    desk: Desk, arguments: tuple[str, ...], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert desk.run("budgets", *arguments) == Exit.BAD_INPUT
    assert said in capfd.readouterr().err


def test_the_table_has_the_policys_freezes_and_those_that_have_not_ended() -> None:
    moved = replace(FREEZE, target="444455556666")
    on = FreezeState(FREEZE.name, FreezePhase.ON, "research", "2026-03", NOW, before=("p-FullAWSAccess",), of=FREEZE)
    gone = replace(on, name="gone", of=replace(FREEZE, name="gone"))
    ended = replace(gone, name="ended", phase=FreezePhase.OFF)
    other = replace(FREEZE, name="other")
    lines = freeze_lines([moved, other], [on, gone, ended])
    assert [(line.freeze.name, line.freeze.target) for line in lines] == [
        ("gone", "111122223333"),
        ("no-new-gpus", "111122223333"),
        ("other", "111122223333"),
    ]
    table = freezes_table(lines)
    assert table.rows[1] == (
        "no-new-gpus",
        "in force",
        "2026-03-10 12:30 UTC",
        "research",
        "aws 111122223333",
        "p-a1b2c3d4",
    )
    assert table.tones == (Tone.BAD, Tone.BAD, Tone.GOOD)
    assert [each["phase"] for each in freezes_json(lines)] == ["on", "on", "off"]
    assert freezes_json(lines)[1]["before"] == ["p-FullAWSAccess"]


@pytest.mark.parametrize("language", list(Language))
@pytest.mark.parametrize("phase", list(FreezePhase))
def test_every_phase_has_words(phase: FreezePhase, language: Language) -> None:
    assert phase_words(FreezeState("a", phase, period="2026-03"), language)
