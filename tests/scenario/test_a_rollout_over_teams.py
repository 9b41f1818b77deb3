"""A rollout over teams: each is observed, then told, then enforced, and every step is announced before it is taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine

from costguard.domain.reasons import ReasonCode
from costguard.engine.run.run_context import out_of_turn
from costguard.guards.rules.common import Mode
from costguard.policy.model.policy import Policy, RolloutEntry, RolloutStep, Shadows

TODAY = START.date()
WARN, ENFORCE = RolloutStep(Mode.WARN, TODAY + 8 * DAY), RolloutStep(Mode.ENFORCE, TODAY + 15 * DAY)


def rolled_out(*steps: RolloutStep, team: str = "vision") -> Policy:
    return policy(rollout=(RolloutEntry(team, steps=steps),))


@pytest.fixture(params=CLOUDS)
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    made = Stage(tmp_path, idle_machine(cloud=request.param), under=rolled_out(WARN, ENFORCE))
    yield made
    made.close()


def test_four_weeks_from_observing_to_the_first_stop(stage: Stage) -> None:
    stage.days(range(1))
    assert stage.mailbox.titles == [], "eight days ahead nobody is told yet"
    stage.days(range(1, 8))
    assert stage.mailbox.titles == ["From 2026-03-10 00:00 UTC on the owners of idle machines are told: vision"]
    plan = stage.reports[-1].plan
    assert plan is not None
    assert {item.reason.code for item in plan.rehearsed} == {ReasonCode.ROLLOUT}
    stage.days(range(8, 15))
    assert len(stage.mailbox.titles) == 3, "the next step, and the notice of its machine"
    assert stage.verbs() == []
    stage.days((15, 16))
    assert stage.verbs() == [], "a machine has its notice and full grace after the step"
    assert len(stage.mailbox.titles) == 4
    stage.days((17,))
    assert stage.verbs() == ["stop"]


def test_a_team_that_the_rollout_does_not_name_is_never_acted_on(tmp_path: Path) -> None:
    stage = Stage(tmp_path, idle_machine(), under=rolled_out(WARN, ENFORCE, team="nlp"))
    stage.days(range(30))
    assert stage.verbs() == []
    assert {title.rpartition(": ")[2] for title in stage.mailbox.titles} == {"nlp"}
    stage.close()


def test_while_the_announcement_does_not_arrive_nothing_begins(stage: Stage) -> None:
    stage.mailbox.down = True
    stage.days(range(30))
    stage.mailbox.down = False
    stage.days(range(30, 37))
    announced = [title for title in stage.mailbox.titles if title.startswith("From ")]
    assert len(announced) == 2, "late, but each once and in its order"
    assert stage.verbs() == ["stop"]


def test_a_channel_that_proves_nothing_lets_no_step_begin(stage: Stage) -> None:
    stage.mailbox.silent = True
    stage.days(range(30))
    assert stage.verbs() == []
    assert stage.case().mode is Mode.OBSERVE


def test_a_condition_that_nobody_measures_holds_the_step_back(stage: Stage) -> None:
    asks = replace(ENFORCE, regret_below=Decimal("0.1"), in_shadow="sooner", of_at_least=1)
    stage.policy = replace(rolled_out(WARN, asks), shadows=Shadows((rule(name="sooner"),)))
    stage.days(range(30))
    assert stage.verbs() == []
    assert stage.case().mode is Mode.WARN


def test_a_step_taken_out_of_the_policy_counts_at_the_last_look(tmp_path: Path) -> None:
    """Between plan and call the policy may have become gentler; the call asks again."""
    stage = Stage(tmp_path, idle_machine(), under=rolled_out(WARN, ENFORCE))
    stage.days(range(17))
    case = stage.case()
    assert case.mode is Mode.ENFORCE
    now = START + 17 * DAY + timedelta(hours=1)
    in_force = rule()
    rungs = in_force.rungs(stoppable=True)
    before = rolled_out(WARN, ENFORCE)
    verb = rungs[case.rung].verb
    assert out_of_turn(stage.memory, case, verb, Mode.ENFORCE, rungs, before, now) is None
    reason = out_of_turn(stage.memory, case, verb, Mode.ENFORCE, rungs, rolled_out(WARN), now)
    assert reason is not None
    assert reason.code is ReasonCode.ROLLOUT
    stage.close()
