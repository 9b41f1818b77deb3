"""What was scanned is judged once, and the findings are passed on; whoever looks again judges again."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from tests.builders import policy, rule
from tests.scenario.budget_stage import BudgetStage, machine, research
from tests.scenario.stage import DAY, Stage, idle_machine
from tests.unit.test_key_look import Place as KeyPlace
from tests.unit.test_network_look import Place as NetworkPlace

from costguard.domain.actions import Verb
from costguard.guards.budget import judge as budget
from costguard.guards.idle import judge as idle
from costguard.guards.keys import judge as keys
from costguard.guards.network import judge as network


@contextmanager
def counted(*functions: Callable[..., Any]) -> Iterator[Counter[str]]:
    """How often each of these is called meanwhile in this thread, by its name."""
    codes: dict[CodeType, str] = {one.__code__: one.__name__ for one in functions}
    calls: Counter[str] = Counter()

    def heard(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in codes:
            calls[codes[frame.f_code]] += 1

    before = sys.getprofile()
    sys.setprofile(heard)
    try:
        yield calls
    finally:
        sys.setprofile(before)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, idle_machine("one"), idle_machine("two"), under=policy(rule()))
    yield made
    made.close()


def test_a_run_judges_each_machine_once(stage: Stage) -> None:
    """Warned, looked at closely, and warned of: by one verdict each."""
    with counted(idle.judge_instance) as calls:
        report = stage.day(0)
    assert report.plan is not None
    assert [action.verb for action in report.plan.due] == [Verb.WARN, Verb.WARN]
    assert calls["judge_instance"] == 2


def test_the_last_look_judges_again_what_is_stopped(stage: Stage) -> None:
    stage.day(0)
    with counted(idle.judge_instance) as calls:
        report = stage.day(1)
    assert [result.action.verb for result in report.results] == [Verb.STOP, Verb.STOP]
    assert calls["judge_instance"] == 2 + 2


def test_a_run_that_waits_for_what_is_due_in_minutes_judges_again_at_the_moment_it_goes_on(stage: Stage) -> None:
    """What was measured is older by then, and may be too old for a notice."""
    stage.day(0)
    with counted(idle.judge_instance) as calls:
        stage.at(DAY - timedelta(minutes=2))
    assert stage.verbs() == ["stop", "stop"]
    assert calls["judge_instance"] == 2 + 2 + 2  # both plans, and the last looks


def test_a_run_judges_each_budget_once_and_each_machine_once_for_its_steps(tmp_path: Path) -> None:
    """Who is idle is measured beside that for the words of the notice, by all steps whether they are reached or not."""
    stage = BudgetStage(tmp_path, machine(), under=replace(policy(), idle_gpu=(), budgets=(research(),)))
    with counted(budget.judge, idle.judge_instance) as calls:
        stage.hour()
    assert calls["judge"] == 1
    assert calls["judge_instance"] <= 2
    stage.close()


def test_a_run_judges_each_key_once() -> None:
    place = KeyPlace()
    with counted(keys.gentlest) as calls:
        done = place.run()
    assert done.look is not None
    assert calls["gentlest"] == len(done.look.keys) > 0
    place.memory.store.close()


def test_a_run_judges_all_networks_once() -> None:
    place = NetworkPlace()
    with counted(network.judge) as calls:
        place.run()
    assert calls["judge"] == 1
    place.memory.store.close()
