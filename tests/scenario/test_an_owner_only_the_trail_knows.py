"""A machine without tags, in an account without an owner: the audit trail says who launched it, and they are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.builders import policy
from tests.scenario.stage import CLOUDS, Stage, idle_machine
from tests.world_ports.trail import WorldAuditLog

from cloudstand.world.records import Operation
from costguard.domain.resources import GapKind
from costguard.engine.run.run_context import RunContext
from costguard.guards.rules.common import Selector
from costguard.policy.model.policy import Owner

SPEECH = Owner("speech", Selector(resources=()), channel="slack:#gpu-speech", cloud_users=("*/speech-*",))


class TrailStage(Stage):
    """As every stage, with the trails of its clouds."""

    def __init__(self, folder: Path, cloud: str) -> None:
        machine = idle_machine(cloud=cloud, tags={"owner": ""}, launched_by="role/train/speech-lead")
        super().__init__(folder, machine, under=policy(owners=(SPEECH,)))
        self.trail = WorldAuditLog(self.cloud, self.clock)

    def world(self) -> RunContext:
        return replace(super().world(), trails=dict.fromkeys(self.clouds, self.trail))


@pytest.fixture(params=CLOUDS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TrailStage]:
    made = TrailStage(tmp_path, request.param)
    yield made
    made.close()


def test_who_launched_it_is_told_before_it_is_stopped_and_the_trail_asked_once(stage: TrailStage) -> None:
    stage.days(range(4))

    assert {message.channel for message in stage.mailbox.messages} == {"slack:#gpu-speech"}
    assert stage.case().owner == "speech"
    assert stage.state() in {"stopping", "stopped"}
    assert stage.trail.asked == [stage.ref().native_id]


def test_a_trail_that_may_not_be_read_stops_nothing_from_happening(stage: TrailStage) -> None:
    """The owner is then whom the policy falls back to, and every run says what it could not read."""
    ref = stage.ref()
    stage.cloud.deny(ref.cloud, ref.account, Operation.TRAIL)

    stage.days(range(4))

    assert {message.channel for message in stage.mailbox.messages} == {"slack:#gpu"}
    assert stage.state() in {"stopping", "stopped"}
    plan = stage.reports[0].plan
    assert plan is not None
    assert [(gap.what, gap.kind) for gap in plan.gaps] == [("launches", GapKind.DENIED)]


def test_a_preview_asks_and_keeps_nothing(stage: TrailStage) -> None:
    stage.clock.advance(timedelta(days=1))

    assert [finding.owner for finding in stage.plan().findings] == ["speech"]
    assert [finding.owner for finding in stage.plan().findings] == ["speech"]
    assert len(stage.trail.asked) == 2
