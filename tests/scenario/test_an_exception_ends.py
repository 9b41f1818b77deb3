"""An exception that ends: its owner is told a week before, once, and afterwards its machine is judged as any other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.builders import policy
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine

from costguard.guards.rules.common import Mode, Selector
from costguard.policy.model.policy import Exemption, Policy

ENDS = START + 10 * DAY


def excepted(stage: Stage, until: datetime = ENDS, *, mode: Mode | None = None) -> Policy:
    shipped = policy()
    rules = tuple(replace(rule, mode=rule.mode if mode is None else mode) for rule in shipped.idle_gpu)
    native = stage.ref().native_id
    made = Exemption(Selector(resources=(native,)), "vision", "evaluation", "finops", until)
    return replace(shipped, idle_gpu=rules, exemptions=(made,))


@pytest.fixture(params=CLOUDS)
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    made = Stage(tmp_path, idle_machine(cloud=request.param))
    yield made
    made.close()


def told(stage: Stage) -> list[str]:
    return [title for title in stage.mailbox.titles if title.startswith("The exception of ")]


def test_a_week_before_its_owner_is_told_once_and_then_it_is_judged(stage: Stage) -> None:
    stage.policy = excepted(stage)
    stage.days(range(3))
    assert told(stage) == [], "eight days before"
    stage.days(range(3, 10))
    assert len(told(stage)) == 1
    assert stage.verbs() == []
    stage.days(range(10, 14))
    assert len(told(stage)) == 1
    assert "stop" in stage.verbs()


def test_one_that_is_renewed_is_not_said_to_end(stage: Stage) -> None:
    first = excepted(stage)
    stage.policy = replace(
        first, exemptions=(*first.exemptions, *excepted(stage, ENDS + timedelta(days=60)).exemptions)
    )
    stage.days(range(12))
    assert told(stage) == []


def test_while_everything_is_only_observed_nobody_is_told(stage: Stage) -> None:
    stage.policy = excepted(stage, mode=Mode.OBSERVE)
    stage.days(range(10))
    assert told(stage) == []


def test_one_by_tags_is_told_of_as_well(stage: Stage) -> None:
    """What is chosen by tags cannot be a key, and once ended every run of such a policy."""
    stage.policy = excepted(stage)
    by_tags = replace(stage.policy.exemptions[0], owns=Selector(tags={"owner": "vision"}))
    stage.policy = replace(stage.policy, exemptions=(by_tags, *stage.policy.exemptions))
    stage.days(range(10))
    assert len(told(stage)) == 2
    assert stage.verbs() == []
