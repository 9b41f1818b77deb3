"""The answer to a stop was lost: nothing destructive follows on a guess, and people may start the machine again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.scenario.stage import DAY, START, Stage, idle_machine

from costguard.cases import CaseStatus
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.domain.actions import Outcome, Verb
from costguard.domain.errors import InvalidInputError, OutcomeUnknownError, StalePlanError
from costguard.domain.reasons import ReasonCode
from costguard.domain.savings import SavingCause
from costguard.engine.answers.undo import Undoers, Undone, undo, undoing_of
from costguard.engine.savings import savings_report

HOUR = timedelta(hours=1)
LOST = OutcomeUnknownError("the answer was lost", operation="StopInstances")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A machine of a cloud that names requests and tells no times, told of on day 0."""
    staged = Stage(tmp_path, idle_machine(cloud="tencent"))
    staged.day(0)
    yield staged
    staged.close()


def machine(stage: Stage) -> str:
    (name,) = stage.cloud.machines
    return name


def lose_the_stop(stage: Stage, *, took_effect: bool = True) -> str:
    """The stop of day 1, whose answer is lost; its action's id."""
    if took_effect:
        stage.executor.fails_after = LOST
    else:
        stage.executor.fails_before = LOST
    stage.day(1)
    stage.executor.fails_before = stage.executor.fails_after = None
    return stage.executor.calls[-1].action_id


def taken_back(stage: Stage, action_id: str) -> Undone:
    by = Undoers({"tencent": stage.inventory}, {"tencent": lambda: stage.executor}, {})
    back = undoing_of(stage.memory, action_id)
    assert back.is_uncertain
    return undo(stage.memory, back, by, "vision", "the deadline moved", stage.clock.now(), paused=False)


def test_the_case_is_closed_as_unknown_and_nothing_destructive_follows(stage: Stage) -> None:
    lose_the_stop(stage)
    stage.days(range(2, 20))
    case = stage.case()
    assert (case.status, case.reason.code) == (CaseStatus.CLOSED, ReasonCode.STOP_UNCERTAIN)
    assert (stage.verbs(), stage.state()) == (["stop"], "stopped")


def test_its_saving_is_attributed_to_nobody_and_in_no_total(stage: Stage) -> None:
    lose_the_stop(stage)
    stage.days(range(2, 10))
    report = savings_report(stage.memory, START, stage.clock.now(), stage.clock.now())
    assert [entry.cause for entry in report.entries] == [SavingCause.UNATTRIBUTED]
    assert report.totals == ()


def test_its_owner_is_told_what_is_unknown(stage: Stage) -> None:
    lose_the_stop(stage)
    stage.days((2, 3))
    assert "outcome unknown, probably ours" in stage.mailbox.titles[-1]


@pytest.mark.parametrize("days", [0, 1, 5])
def test_it_is_started_again_by_undo_whether_or_not_its_case_was_closed_yet(stage: Stage, days: int) -> None:
    action_id = lose_the_stop(stage)
    stage.days(range(2, 2 + days))
    stage.clock.advance(HOUR)
    assert taken_back(stage, action_id).outcome is Outcome.ACCEPTED
    stage.days(range(8, 12))
    assert stage.state() == "running"
    assert stage.verbs() == ["stop", "start"]


def test_people_are_shown_the_action_and_what_is_unknown_before_anything_is_done(
    stage: Stage, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    action_id = lose_the_stop(stage)
    stage.day(2)
    ledger = ("--ledger", f"sqlite:///{tmp_path / 'ledger.sqlite3'}")
    assert run(["why", str(stage.ref()), *ledger]) == Exit.OK
    assert f"action {action_id}" in capfd.readouterr().out
    assert run(["undo", action_id, *ledger]) == Exit.DUE
    out = capfd.readouterr().out
    assert out.index("that nobody else did is not proven") < out.index("Would take back")
    assert run(["undo", action_id, "--json", "--lang", "zh", *ledger]) == Exit.DUE
    assert json.loads(capfd.readouterr().out)["uncertain"] is True
    assert stage.verbs() == ["stop"]


def test_what_others_started_and_stopped_since_the_look_is_not_started(stage: Stage) -> None:
    """The look that closed the case saw one request; another one stops it now."""
    action_id = lose_the_stop(stage)
    stage.day(2)
    stage.cloud.start(machine(stage), "owner")
    stage.clock.advance(HOUR)
    stage.cloud.tick(stage.clock.now())
    stage.cloud.stop(machine(stage), "owner")
    stage.clock.advance(HOUR)
    with pytest.raises(StalePlanError, match="somebody else stopped it again"):
        taken_back(stage, action_id)
    assert [action.verb for action in stage.executor.calls] == [Verb.STOP]


def test_what_runs_is_not_started(stage: Stage) -> None:
    action_id = lose_the_stop(stage, took_effect=False)
    with pytest.raises(StalePlanError, match="nothing to start"):
        taken_back(stage, action_id)


def test_where_the_cloud_tells_another_time_the_stop_is_somebody_elses(tmp_path: Path) -> None:
    """The call was lost on its way; the owner stopped the machine half a day later, and the cloud says when."""
    stage = Stage(tmp_path, idle_machine())
    stage.day(0)
    action_id = lose_the_stop(stage, took_effect=False)
    stage.clock.advance(12 * HOUR)
    stage.cloud.tick(stage.clock.now())
    stage.cloud.stop(machine(stage), "owner")
    stage.clock.advance(HOUR)
    by = Undoers({"aws": stage.inventory}, {"aws": lambda: stage.executor}, {})
    with pytest.raises(StalePlanError, match="somebody else stopped it"):
        undo(stage.memory, undoing_of(stage.memory, action_id), by, "vision", "", stage.clock.now(), paused=False)
    assert stage.verbs() == ["stop"]
    stage.close()


def test_an_unknown_end_of_a_machine_is_not_taken_back(tmp_path: Path) -> None:
    stage = Stage(tmp_path, idle_machine())
    stage.days(range(12))
    stage.executor.fails_before = OutcomeUnknownError("the answer was lost", operation="ec2:TerminateInstances")
    stage.day(12)
    with pytest.raises(InvalidInputError, match="nobody knows yet what it did"):
        undoing_of(stage.memory, stage.executor.calls[-1].action_id)
    assert stage.clock.now() == START + 12 * DAY
    stage.close()
