"""What Costguard stopped is started again by `undo`, once, and only where it is still as it was left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.scenario.stage import CLOUDS, DAY, Stage, idle_machine

from cloudstand.world.kinds import InstanceState
from costguard.domain.actions import Outcome, Verb
from costguard.domain.errors import InvalidInputError, StalePlanError
from costguard.engine.answers.undo import Undoers, Undone, undo, undoing_of


@pytest.fixture(params=CLOUDS)
def stopped(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """A notebook that was told of on day 0, stopped on day 1 and seen stopped on day 2."""
    stage = Stage(tmp_path, idle_machine(cloud=request.param))
    stage.days(range(3))
    yield stage
    stage.close()


def machine_of(stage: Stage) -> InstanceState:
    (machine,) = stage.cloud.machines.values()
    stage.cloud.tick(stage.clock.now())
    return machine.state


def stop_of(stage: Stage) -> str:
    return next(action.action_id for action in stage.executor.calls if action.verb is Verb.STOP)


def taken_back(stage: Stage) -> Undone:
    (cloud,) = stage.clouds
    by = Undoers({cloud: stage.inventory}, {cloud: lambda: stage.executor}, {})
    back = undoing_of(stage.memory, stop_of(stage))
    return undo(stage.memory, back, by, "vision", "the deadline moved", stage.clock.now(), paused=False)


def test_it_runs_again_and_is_left_alone(stopped: Stage) -> None:
    assert machine_of(stopped) is InstanceState.STOPPED
    assert taken_back(stopped).outcome is Outcome.ACCEPTED
    stopped.days(range(3, 20))
    assert machine_of(stopped) is InstanceState.RUNNING
    assert [action.verb for action in stopped.executor.calls] == [Verb.STOP, Verb.START]
    with pytest.raises(InvalidInputError, match="once is enough"):
        taken_back(stopped)


def test_what_runs_already_is_not_started(stopped: Stage) -> None:
    (machine,) = stopped.cloud.machines
    stopped.cloud.start(machine, "owner")
    stopped.clock.advance(DAY)
    with pytest.raises(StalePlanError, match="nothing to start"):
        taken_back(stopped)
    assert [action.verb for action in stopped.executor.calls] == [Verb.STOP]
