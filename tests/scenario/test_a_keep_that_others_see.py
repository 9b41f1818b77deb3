"""A Keep that stands on the machine itself: whoever wrote it there, every deployment leaves the machine alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine

from costguard.cases import CaseStatus
from costguard.domain.reasons import ReasonCode
from costguard.engine.run import carry_out, make_plan
from costguard.guards.rules import KEEP_TAG


@pytest.fixture(params=CLOUDS)
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    made = Stage(tmp_path, idle_machine(cloud=request.param))
    yield made
    made.close()


def keep(stage: Stage, days: int, key: str = KEEP_TAG) -> None:
    """By hand, or by the script of a colleague."""
    stage.cloud.tag(stage.ref().native_id, key, f"{START + days * DAY:%Y-%m-%dT%H:%M:%SZ}", "colleague")


@pytest.mark.parametrize("key", [KEEP_TAG, "Costguard-Keep-Until", "COSTGUARD_KEEP_UNTIL"])
def test_a_machine_tagged_before_any_notice_is_left_alone(stage: Stage, key: str) -> None:
    keep(stage, 5, key)
    stage.days(range(5))
    assert (stage.verbs(), stage.mailbox.messages) == ([], [])
    plan = stage.reports[-1].plan
    assert plan is not None
    assert [finding.reason.code for finding in plan.findings] == [ReasonCode.KEPT_BY_TAG]


def test_a_tag_set_after_the_notice_waits_as_a_keep_does_and_then_tells_anew(stage: Stage) -> None:
    stage.day(0)
    keep(stage, 3)
    stage.days((1, 2))
    assert (stage.verbs(), stage.case().status) == ([], CaseStatus.SNOOZED)
    assert stage.case().reason.code is ReasonCode.KEPT_BY_TAG
    stage.days((3, 4))
    assert (stage.verbs(), len(stage.mailbox.messages)) == ([], 2), "a new notice, and the full grace again"
    stage.day(5)
    assert stage.verbs() == ["stop"]


def test_a_tag_set_behind_the_stop_delays_the_end_and_forgets_nothing(stage: Stage) -> None:
    stage.days((0, 1, 2))
    keep(stage, 20)
    stage.days(range(3, 20))
    assert (stage.verbs(), stage.case().status) == (["stop"], CaseStatus.SNOOZED)
    stage.days(range(21, 36))
    assert stage.verbs()[-1] == "terminate", "the case went on where it was, behind a notice of its own"


def test_a_tag_taken_away_ends_the_keep_with_a_notice(stage: Stage) -> None:
    stage.day(0)
    keep(stage, 30)
    stage.days((1, 2))
    stage.cloud.untag(stage.ref().native_id, KEEP_TAG, "colleague")
    stage.day(3)
    assert (stage.verbs(), len(stage.mailbox.messages)) == ([], 2)


def test_a_tag_set_between_plan_and_call_is_heeded(stage: Stage) -> None:
    stage.day(0)
    stage.clock.advance(DAY)
    plan = make_plan(stage.world(), "run-a")
    assert plan.due
    keep(stage, 5)
    carry_out(stage.world(), plan)
    assert (stage.verbs(), stage.case().reason.code) == ([], ReasonCode.KEPT_BY_TAG)


def test_a_tag_that_nobody_can_read_keeps(stage: Stage) -> None:
    stage.day(0)
    stage.cloud.tag(stage.ref().native_id, KEEP_TAG, "when the paper is out", "colleague")
    stage.days(range(1, 15))
    assert (stage.verbs(), stage.case().reason.code) == ([], ReasonCode.PROTECTED_TAG)
    assert stage.case().reason.facts["unread"] == KEEP_TAG
