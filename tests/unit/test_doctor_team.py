"""`doctor --owner TEAM`: of one team its machines, channel, mode, exceptions, and what would be told to whom."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from tests.builders import policy
from tests.scenario.stage import START, Stage, idle_machine

from costguard.engine.doctor.team import examine_team, team_seen
from costguard.engine.run.scan import scan
from costguard.guards.rules.common import Mode, Selector
from costguard.policy.model.policy import Owner, Policy, RolloutEntry, RolloutStep
from costguard.ports import Target
from costguard.report.doctor.checks import Code, Diagnosis, DoctorCheck, Health
from costguard.report.doctor.views import check_lines, doctor_json
from costguard.report.words.sentences import Language

SLACK = frozenset({"slack"})
VISION = Owner("vision", Selector(tags={"owner": "vision"}), "slack:#vision")


def asked(folder: Path, owner: str, of: Policy, *, proving: frozenset[str] = SLACK) -> dict[Code, DoctorCheck]:
    kept = idle_machine("kept", tags={"do-not-stop": "true"})
    stage = Stage(folder, idle_machine(), kept, idle_machine("theirs", tags={"owner": "nlp"}), under=of)
    seen = scan({"aws": stage.reading}, (Target("aws", organisation=True),), of.idle_gpu, stage.clock)
    team = team_seen(owner, of, seen, stage.memory, START)
    found = tuple(examine_team(team, of, seen, proving, START))
    stage.close()
    assert doctor_json(Diagnosis(START, found))["checks"]
    assert all("phrases." not in line for check in found for line in check_lines(check, Language.ZH))
    return {check.code: check for check in found}


def test_a_team_is_shown_with_its_own_machines_channel_and_mode(tmp_path: Path) -> None:
    found = asked(tmp_path, "vision", policy(owners=(VISION,)))
    assert found[Code.TEAM_MACHINES].facts == {"owner": "vision", "machines": 2, "idle": 1}
    assert all("(owners.yaml)" in detail.where for detail in found[Code.TEAM_MACHINES].details)
    assert found[Code.TEAM_CHANNEL].facts == {"owner": "vision", "channel": "slack:#vision"}
    assert found[Code.TEAM_MODE].facts["mode"] == "enforce"
    (spared,) = found[Code.TEAM_SPARED].details
    assert "kept" in spared.where
    (told,) = found[Code.TEAM_TOLD].details
    assert "notebook" in told.where


def test_a_team_that_the_rollout_observes_is_told_of_nothing(tmp_path: Path) -> None:
    steps = (RolloutStep(Mode.WARN, date(2026, 12, 7)),)
    found = asked(tmp_path, "vision", policy(owners=(VISION,), rollout=(RolloutEntry("vision", steps=steps),)))
    assert found[Code.TEAM_MODE].facts["mode"] == "observe"
    assert Code.TEAM_TOLD_NOTHING in found
    lines = " ".join(check_lines(found[Code.TEAM_MODE]))
    assert "2026-12-07" in lines


@pytest.mark.parametrize("proving", [frozenset(), frozenset({"mailto"})])
def test_a_channel_that_is_not_set_up_bars(tmp_path: Path, proving: frozenset[str]) -> None:
    found = asked(tmp_path, "vision", policy(owners=(VISION,)), proving=proving)
    assert found[Code.TEAM_NO_CHANNEL].health is Health.BARS


def test_a_team_without_a_channel_of_its_own_is_told_by_the_default(tmp_path: Path) -> None:
    found = asked(tmp_path, "nlp", policy(owners=(VISION, replace(VISION, name="nlp", channel=""))))
    assert found[Code.TEAM_CHANNEL].facts["default"] == "notify.default"


def test_an_unknown_team_is_said_with_the_nearest_name(tmp_path: Path) -> None:
    found = asked(tmp_path, "visoin", policy(owners=(VISION,)))
    assert list(found) == [Code.TEAM_UNKNOWN]
    assert found[Code.TEAM_UNKNOWN].facts["near"] == "vision"


def test_a_team_known_by_name_without_machines(tmp_path: Path) -> None:
    empty = Owner("speech", Selector(tags={"owner": "speech"}), "slack:#s")
    found = asked(tmp_path, "speech", policy(owners=(VISION, empty)))
    assert found[Code.TEAM_NONE].health is Health.WARNING
    assert Code.TEAM_MODE not in found
