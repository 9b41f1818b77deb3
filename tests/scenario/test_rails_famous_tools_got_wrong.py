"""Mistakes that well-known tools made with other people's machines, each told as a story that ends well here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import DAY, START, Stage, idle_machine

from costguard.cases import CaseStatus
from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.errors import ThrottledError, UnavailableError
from costguard.domain.findings import Verdict
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import Shard
from costguard.domain.resources import GapKind, Instance, Inventory
from costguard.guards.rules import Limits
from costguard.notifiers.router import NotifierRouter
from costguard.notifiers.slack import SlackNotifier
from costguard.ports import SignalReport
from costguard.sandbox.slack import SlackStandIn
from costguard.sandbox.world import workload

FORTNIGHT = range(14)
LIMITS = rule().limits


@pytest.fixture
def stages() -> Iterator[list[Stage]]:
    """Every stage a story sets up is taken down."""
    made: list[Stage] = []
    yield made
    for stage in made:
        stage.close()


def staged(stages: list[Stage], folder: Path, *fleet: object, **options: object) -> Stage:
    stages.append(Stage(folder, *fleet, **options))  # type: ignore[arg-type]
    return stages[-1]


@pytest.mark.parametrize("none", [replace(LIMITS, actions_per_day=0), replace(LIMITS, fleet_share_per_day=Decimal(0))])
def test_a_limit_of_zero_is_a_limit(stages: list[Stage], tmp_path: Path, none: Limits) -> None:
    """`if self.percent:` made a limit of 0 unlimited."""
    stage = staged(stages, tmp_path, under=policy(rule(limits=none)))
    stage.days(FORTNIGHT)
    assert stage.verbs() == []
    assert stage.case().reason.code is ReasonCode.CAP_ACTIONS, "and it says so"


def test_what_was_done_counts_against_the_limit(stages: list[Stage], tmp_path: Path) -> None:
    """A counter of marked resources was never counted up, so that its limit never held."""
    fleet = [idle_machine(f"notebook-{n}") for n in range(4)]
    stage = staged(stages, tmp_path, *fleet, under=policy(rule(limits=replace(LIMITS, actions_per_day=1))))
    stage.day(0)
    stage.day(1)
    stage.at(DAY + timedelta(hours=6))
    assert stage.verbs() == ["stop"], "one in 24 hours, whatever the number of runs"
    stage.day(2)
    assert stage.verbs() == ["stop", "stop"]


def test_one_datapoint_is_not_a_window(stages: list[Stage], tmp_path: Path) -> None:
    """One datapoint of 336 was averaged and called idle."""
    lone = idle_machine(does=workload.idle())
    stage = staged(stages, tmp_path, lone)
    native_id = stage.ref().native_id
    stage.cloud.silence(native_id, START - 10 * DAY, START - timedelta(minutes=3))
    stage.day(0)
    plan = stage.reports[-1].plan
    assert plan is not None
    assert [finding.verdict for finding in plan.findings] == [Verdict.UNMEASURED]
    assert (stage.mailbox.messages, stage.verbs()) == ([], [])


def test_a_machine_missing_from_the_metrics_answer_is_not_idle(stages: list[Stage], tmp_path: Path) -> None:
    """Under a negation, instances absent from the answer were selected."""

    class Forgetful:
        def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
            del instances, since, until
            return SignalReport({})

    stage = staged(stages, tmp_path)
    stage.reading = replace(stage.reading, signals=Forgetful())
    stage.days(FORTNIGHT)
    plan = stage.reports[-1].plan
    assert plan is not None
    assert [finding.reason.code for finding in plan.findings] == [ReasonCode.SIGNALS_UNREAD]
    assert (stage.mailbox.messages, stage.verbs()) == ([], [])


def test_a_throttled_snapshot_terminates_nothing(stages: list[Stage], tmp_path: Path) -> None:
    """A throttled snapshot was a warning in a log, and everything was terminated."""
    stage = staged(stages, tmp_path)
    calls = stage.executor.inner

    class Throttled:
        def execute(self, action: Action) -> Receipt:
            if action.verb is Verb.SNAPSHOT:
                raise ThrottledError("SnapshotCreationPerVolumeRateExceeded", operation="ec2:CreateSnapshot")
            return calls.execute(action)

    stage.executor.inner = Throttled()
    stage.days(range(30))
    assert "terminate" not in stage.verbs()
    assert stage.state() == "stopped"
    assert stage.case().status is CaseStatus.HELD, "a person is asked to look"


@pytest.mark.parametrize("until", ["next tuesday", "2026-13-45", "", "31/12/2030", "2031-01-01T00:00:00"])
def test_a_protection_date_nobody_can_read_protects(stages: list[Stage], tmp_path: Path, until: str) -> None:
    """An unparsable expiry was skipped, and with it the protection."""
    stage = staged(stages, tmp_path, idle_machine(tags={"costguard-keep-until": until}))
    stage.days(FORTNIGHT)
    assert (stage.verbs(), stage.mailbox.messages) == ([], [])
    plan = stage.reports[-1].plan
    assert plan is not None
    assert [finding.reason.code for finding in plan.findings] == [ReasonCode.PROTECTED_TAG]


def test_a_rate_limited_notice_is_sent_after_the_wait(stages: list[Stage], tmp_path: Path) -> None:
    """A 429 was slept on, and the message never sent; the machine was stopped all the same."""
    stage = staged(stages, tmp_path)
    with SlackStandIn(stage.clock) as slack:
        slack.faults.rate_limits, slack.faults.retry_after = 1, "7"
        slack_app = SlackNotifier(slack.token, base_url=slack.base_url)
        told_by = replace(stage.world(), notifier=NotifierRouter({"slack": slack_app}, default="slack"))
        before = stage.clock.now()
        stage.run_with(told_by)
        assert [message.channel for message in slack.posted] == ["#gpu"]
        assert stage.clock.now() - before >= timedelta(seconds=7)
    assert stage.case().rung == 1, "told, and the grace runs from then"


def test_a_region_that_cannot_be_read_is_not_an_empty_one(stages: list[Stage], tmp_path: Path) -> None:
    """The error of an unreadable region went to a log, and the report said that nothing was found."""
    stage = staged(stages, tmp_path)
    stage.days((0, 1, 2))
    inventory = stage.inventory

    class Unreadable:
        discover, details = inventory.discover, inventory.details

        def read(self, shard: Shard) -> Inventory:
            message = f"{shard} does not answer"
            raise UnavailableError(message, operation="ec2:DescribeInstances")

    stage.reading = replace(stage.reading, inventory=Unreadable())
    report = stage.day(3)
    assert report.plan is not None
    assert [(gap.what, gap.kind) for gap in report.plan.gaps] == [("inventory", GapKind.UNAVAILABLE)]
    assert stage.case().status is CaseStatus.HELD, "the stopped machine is not forgotten"
    assert stage.verbs() == ["stop"]
