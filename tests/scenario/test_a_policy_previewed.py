"""A change of the policy, seen before it is made: what it would open, act on, take back and begin anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import jsonschema
import pytest
from tests.builders import policy, rule
from tests.scenario.stage import DAY, Stage, idle_machine

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.policy.recording import (
    plan_recorded,
    read_recording,
    recording_of,
    with_common_windows,
    write_recording,
)
from costguard.domain.actions import Verb
from costguard.domain.errors import InvalidInputError
from costguard.engine.answers.answers import snooze
from costguard.engine.run.run import plan_guard
from costguard.engine.run.scan import scan
from costguard.guards.rules.common import Mode, Selector
from costguard.guards.rules.idle import IdleBounds
from costguard.policy.model.policy import Policy
from costguard.report.policy.plan import PlanChange, Turn, plan_changes

SCHEMA = Path(__file__).parents[2] / "shared/costguard/report/schemas/policy_plan.schema.json"
RESEARCH = rule("research", applies_to=Selector(tags={"owner": "vision"}))
PRESENT = policy(RESEARCH)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    fleet = (idle_machine("notebook"), idle_machine("trainer", tags={"owner": "speech"}))
    made = Stage(tmp_path, *fleet, under=PRESENT)
    made.day(0)
    yield made
    made.close()


def previewed(stage: Stage, new: Policy, *, days: float = 0.5) -> dict[str, PlanChange]:
    """What differs half a day after the first notice, by the name of the machine."""
    stage.clock.advance(DAY * days)
    world = stage.world()
    before, after = plan_guard(world, "old").plan, plan_guard(replace(world, policy=new), "new").plan
    return {change.name: change for change in plan_changes(before, after)}


def test_a_wider_rule_opens_a_case(stage: Stage) -> None:
    changes = previewed(stage, policy(RESEARCH, rule("all", idle=IdleBounds(lasting=timedelta(hours=48)))))

    assert changes["trainer"].turn is Turn.OPENS
    assert changes["trainer"].hourly is not None


def test_a_shorter_wait_begins_the_wait_anew(stage: Stage) -> None:
    """It would be due at once; but its owner was told another date."""
    ladder = tuple(replace(step, wait=step.wait / 4) for step in RESEARCH.ladder)
    changes = previewed(stage, policy(rule("research", applies_to=RESEARCH.applies_to, ladder=ladder)))

    assert {name: change.turn for name, change in changes.items()} == {"notebook": Turn.RESTARTS}
    assert changes["notebook"].new.case is not None
    assert changes["notebook"].new.case.climbed == ()  # told again first


def test_another_mode_closes_the_case(stage: Stage) -> None:
    changes = previewed(stage, policy(rule("research", applies_to=RESEARCH.applies_to, mode=Mode.OBSERVE)))

    assert {name: change.turn for name, change in changes.items()} == {"notebook": Turn.CLOSES}


def test_a_smaller_cap_holds_what_is_due(stage: Stage) -> None:
    limits = replace(RESEARCH.limits, actions_per_day=0)
    changes = previewed(stage, policy(rule("research", applies_to=RESEARCH.applies_to, limits=limits)), days=1.5)

    assert {name: change.turn for name, change in changes.items()} == {"notebook": Turn.HOLDS}


def test_the_same_policy_changes_nothing_and_nothing_is_written(stage: Stage) -> None:
    cases = stage.memory.cases.all("idle_gpu")

    assert previewed(stage, PRESENT) == {}
    assert stage.memory.cases.all("idle_gpu") == cases
    assert len(stage.mailbox.messages) == 1


def test_a_recorded_fleet_remembers_a_keep_that_is_over(stage: Stage, tmp_path: Path) -> None:
    """It cancels the notice before it in the preview as in the run."""
    (case,) = stage.memory.cases.active("idle_gpu")
    stage.clock.advance(timedelta(hours=2))
    snooze(stage.memory, case.subject, timedelta(hours=1), "nlp", "a last look", stage.clock.now())
    stage.clock.advance(1.5 * DAY)
    world, path = stage.world(), tmp_path / "kept.json"
    write_recording(path, recording_of(world, scan(world.readings, world.targets, PRESENT.idle_gpu, world.clock)))

    for planned in (plan_recorded(read_recording(path, [PRESENT]), PRESENT), plan_guard(world, "now").plan):
        assert [action.verb for action in planned.due] == [Verb.WARN]


OLD = """\
version: 1
mode: enforce
notify: {default: "slack:#gpu"}
idle_gpu: [{name: research, applies_when_all: {tags: {owner: vision}}}]
"""


@pytest.fixture
def recorded(stage: Stage, tmp_path: Path) -> Path:
    stage.clock.advance(DAY / 2)
    world = stage.world()
    seen = scan(world.readings, world.targets, with_common_windows(world.policy.idle_gpu), world.clock)
    path = tmp_path / "fleet.json"
    write_recording(path, recording_of(world, seen))
    return path


def test_a_recording_gives_the_plan_that_the_cloud_gave(stage: Stage, recorded: Path) -> None:
    new = policy(RESEARCH, rule("all", idle=IdleBounds(lasting=timedelta(hours=48))))
    world = replace(stage.world(), policy=new)

    live, again = plan_guard(world, "policy-plan").plan, plan_recorded(read_recording(recorded, (new,)), new)

    assert (again.due, again.held, again.transitions) == (live.due, live.held, live.transitions)


def test_a_recording_is_planned_in_ci(recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(OLD, encoding="utf-8")
    new.write_text(OLD.replace(", applies_when_all: {tags: {owner: vision}}", ""), encoding="utf-8")
    command = ["policy", "plan", str(new), "--policy", str(old), "--recorded", str(recorded)]

    assert run([*command, "--json"]) == Exit.DUE
    told = json.loads(capfd.readouterr().out)
    jsonschema.validate(told, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert [(change["name"], change["turn"]) for change in told["changes"] if change["turn"] == "opens"] == [
        ("trainer", "opens")
    ]

    assert run([*command, "--markdown"]) == Exit.DUE
    assert "| opens a case | trainer |" in capfd.readouterr().out
    assert run([*command, "--lang", "zh"]) == Exit.DUE
    assert "新开案件" in capfd.readouterr().out
    assert run(["policy", "plan", str(old), "--policy", str(old), "--recorded", str(recorded)]) == Exit.OK


def test_what_was_not_looked_over_is_refused(recorded: Path) -> None:
    odd = policy(rule("odd", idle=IdleBounds(lasting=timedelta(hours=5))))

    with pytest.raises(InvalidInputError, match="recorded without the window 5h"):
        read_recording(recorded, (odd,))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2}', "not json"])
def test_what_is_no_recording_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "fleet.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InvalidInputError, match=r"record"):
        read_recording(path, ())
