"""With a calendar no machine is stopped for the first time when nobody is there to see it, or just before that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from pathlib import Path

import pytest
from tests.builders import case, policy, rule
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine

from costguard.cases import CaseStatus, due_at
from costguard.cases.advance import not_yet
from costguard.cases.answering import Vote
from costguard.cases.case import ClimbedRung
from costguard.domain.actions import Verb
from costguard.domain.answers import AnswerRef
from costguard.domain.reasons import ReasonCode
from costguard.guards.rules.common import Rung, Step
from costguard.policy.model.working_time import WorkingCalendar
from costguard.report.words.sentences import Language, phrase, sentence

HOUR = timedelta(hours=1)
WORKING = WorkingCalendar("UTC", frozenset({0, 1, 2, 3, 4}), time(9), time(17))
THREE_HOURS = rule(ladder=(Step(Verb.WARN, 0 * HOUR), Step(Verb.STOP, 3 * HOUR), Step(Verb.TERMINATE, 7 * DAY)))


@pytest.fixture(params=CLOUDS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, idle_machine(cloud=request.param), under=policy(THREE_HOURS, calendar=WORKING))
    yield made
    made.close()


def told_at(stage: Stage, moment: timedelta) -> datetime:
    """A notice at this time after Monday 09:00, and when it says that the machine stops at the earliest."""
    stage.at(moment)
    stop = stage.case().announced_for(Verb.STOP)
    assert stop is not None
    assert f"{stop:%Y-%m-%d %H:%M}" in str(stage.mailbox.messages[-1])
    return stop


def test_a_notice_of_friday_leads_to_no_stop_before_monday(stage: Stage) -> None:
    friday = 4 * DAY
    stop = told_at(stage, friday)

    assert stop == START + 7 * DAY
    assert phrase("first_stop_moved") in str(stage.mailbox.messages[-1])
    for hours in (3, 5, 9, 20, 28, 52, 70):
        stage.at(friday + hours * HOUR)
        assert stage.verbs() == [], hours
    held = [each.reason.code for each in stage.plan().held]
    assert held == [ReasonCode.FIRST_STOP_WAITS]
    assert (stage.case().status, stage.case().reason.code) == (CaseStatus.HELD, ReasonCode.FIRST_STOP_WAITS)
    stage.at(7 * DAY)
    assert stage.verbs() == ["stop"]


def test_a_stop_that_a_failure_put_off_into_the_weekend_waits_for_monday(stage: Stage) -> None:
    """Due since Thursday; the runs of Friday did not come."""
    assert told_at(stage, 3 * DAY) == START + 3 * DAY + 3 * HOUR

    for hours in (4 * 24 + 4, 5 * 24, 6 * 24, 7 * 24 - 1):
        stage.at(hours * HOUR)
        assert stage.verbs() == []
    stage.at(7 * DAY)
    assert stage.verbs() == ["stop"]


def test_nothing_is_stopped_on_the_working_day_before_a_holiday(stage: Stage) -> None:
    stage.policy = replace(stage.policy, calendar=replace(WORKING, exceptions={date(2026, 3, 5): False}))

    assert told_at(stage, 1 * DAY + 7 * HOUR) == START + 4 * DAY  # the wait is over on Wednesday; Thursday is free
    for hours in (2 * 24 + 2, 2 * 24 + 5, 3 * 24, 4 * 24 - 1):
        stage.at(hours * HOUR)
        assert stage.verbs() == []
    stage.at(4 * DAY)
    assert stage.verbs() == ["stop"]


def test_friday_morning_and_a_worked_saturday_are_fit(stage: Stage) -> None:
    assert told_at(stage, 3 * DAY + 6 * HOUR) == START + 4 * DAY + HOUR
    stage.at(4 * DAY + HOUR)
    assert stage.verbs() == ["stop"]


def test_what_comes_after_the_stop_waits_for_no_weekday() -> None:
    saturday = START + 5 * DAY
    stopped = case(since=saturday - HOUR, climbed=(ClimbedRung(Verb.WARN, START), ClimbedRung(Verb.STOP, START)))

    assert due_at(stopped, Rung(Verb.TERMINATE, HOUR), at_any_hour) == saturday
    assert not_yet(stopped, Verb.TERMINATE, saturday, saturday, at_any_hour) is None
    unstoppable = replace(stopped, climbed=stopped.climbed[:1])
    waits = not_yet(unstoppable, Verb.TERMINATE, saturday, saturday, at_any_hour)
    assert waits is not None
    assert waits.code is ReasonCode.FIRST_STOP_WAITS


def at_any_hour(start: datetime, duration: timedelta, /, *, first_stop: bool = False) -> datetime:
    """Every hour counts, and first stops come on Mondays."""
    return START + 7 * DAY if first_stop else start + duration


def test_people_may_stop_it_now_all_the_same(stage: Stage) -> None:
    stage.policy = replace(stage.policy, calendar=WORKING)
    told_at(stage, 4 * DAY)
    now = stage.clock.now()
    notice = next(each for each in stage.reports[-1].notices if each.decision_id)
    stage.memory.haste.vote(
        AnswerRef(stage.case().case_id, notice.decision_id), Vote("slack:T1/U1", now, now + DAY), 1, now
    )

    stage.at(4 * DAY + 6 * HOUR)
    assert stage.verbs() == ["stop"]


@pytest.mark.parametrize("language", Language)
def test_the_reason_says_when_it_may_be(language: Language, stage: Stage) -> None:
    told_at(stage, 4 * DAY)
    stage.at(5 * DAY)

    assert "2026-03-09" in sentence(stage.case().reason, language)
