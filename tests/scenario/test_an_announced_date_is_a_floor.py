"""What people were told is the earliest: a calendar, a wait or holidays that change bring no step forward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine

from costguard.domain.actions import Verb
from costguard.guards.rules.common import Step
from costguard.policy.model.working_time import WorkingCalendar

HOUR = timedelta(hours=1)
WORKING = WorkingCalendar("UTC", frozenset({0, 1, 2, 3, 4}), time(9), time(17))


@pytest.fixture(params=CLOUDS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, idle_machine(cloud=request.param), under=policy(calendar=WORKING))
    yield made
    made.close()


def announced(stage: Stage) -> datetime:
    """When the machine stops at the earliest, by the notice that its owner read."""
    stop = stage.case().announced_for(Verb.STOP)
    assert stop is not None
    assert f"{stop:%Y-%m-%d %H:%M}" in str(stage.mailbox.messages[0])
    return stop


def reaches(stage: Stage, end: datetime) -> None:
    """Runs every few hours up to a moment, none of which stops it."""
    while stage.clock.now() + 5 * HOUR < end:
        stage.at(stage.clock.now() + 5 * HOUR - START)
        assert stage.verbs() == [], stage.clock.now()


def test_a_calendar_that_is_taken_out_brings_no_stop_forward(stage: Stage) -> None:
    stage.day(0)
    stop = announced(stage)
    assert stop > START + 2 * DAY

    stage.policy = replace(stage.policy, calendar=None)
    reaches(stage, stop)
    stage.at(stop - START)
    assert stage.verbs() == ["stop"]


def test_a_holiday_that_is_taken_out_brings_no_stop_forward(stage: Stage) -> None:
    stage.policy = replace(stage.policy, calendar=replace(WORKING, exceptions={date(2026, 3, 3): False}))
    stage.day(0)
    stop = announced(stage)

    stage.policy = replace(stage.policy, calendar=WORKING)
    reaches(stage, stop)
    stage.at(stop - START)
    assert stage.verbs() == ["stop"]


def test_a_calendar_that_comes_later_puts_the_stop_off(stage: Stage) -> None:
    """A floor is no ceiling: what was announced may come later."""
    stage.policy = replace(stage.policy, calendar=None)
    stage.day(0)
    stop = announced(stage)

    stage.policy = replace(stage.policy, calendar=WORKING)
    stage.at(stop - START)
    assert stage.verbs() == []


def test_a_shorter_wait_is_announced_anew_with_its_whole_grace(stage: Stage) -> None:
    stage.policy = policy()
    stage.day(0)
    hour = rule(ladder=(Step(Verb.WARN, 0 * HOUR), Step(Verb.STOP, HOUR), Step(Verb.TERMINATE, 7 * DAY)))
    stage.policy = policy(hour)
    stage.at(2 * HOUR)
    assert (stage.verbs(), len(stage.mailbox.messages)) == ([], 2)
    stage.at(3 * HOUR)
    assert stage.verbs() == ["stop"]
