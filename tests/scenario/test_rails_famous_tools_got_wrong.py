"""Mistakes that well-known tools made with other people's machines, each told as a story that ends well here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine

from cloudstand.slack.stand_in import SlackStandIn
from cloudstand.world import workload
from cloudstand.world.fleet import MachineSpec
from costguard.adapters.notifiers.router import NotifierRouter
from costguard.adapters.notifiers.slack.notifier import SlackNotifier
from costguard.cases import CaseStatus
from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.errors import ThrottledError, UnavailableError
from costguard.domain.findings import Verdict
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import Shard
from costguard.domain.resources import GapKind, Instance, Inventory
from costguard.guards.rules.common import Limits
from costguard.ports import SignalReport

FORTNIGHT = range(14)
LIMITS = rule().limits


class Place:
    """The cloud a story happens on."""

    def __init__(self, cloud: str, folder: Path) -> None:
        self.cloud = cloud
        self._folder = folder
        self._stages: list[Stage] = []

    def machine(self, name: str = "notebook", **more: Any) -> MachineSpec:
        """An idle one."""
        return idle_machine(name, cloud=self.cloud, **more)

    def stage(self, *fleet: MachineSpec, **options: Any) -> Stage:
        """With these machines, or one that is idle."""
        self._stages.append(Stage(self._folder, *(fleet or (self.machine(),)), **options))
        return self._stages[-1]

    def close(self) -> None:
        for stage in self._stages:
            stage.close()


@pytest.fixture(params=CLOUDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Every stage a story sets up is taken down."""
    made = Place(request.param, tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("none", [replace(LIMITS, actions_per_day=0), replace(LIMITS, fleet_share_per_day=Decimal(0))])
def test_a_limit_of_zero_is_a_limit(place: Place, none: Limits) -> None:
    """`if self.percent:` made a limit of 0 unlimited."""
    stage = place.stage(under=policy(rule(limits=none)))
    stage.days(FORTNIGHT)
    assert stage.verbs() == []
    assert stage.case().reason.code is ReasonCode.CAP_ACTIONS, "and it says so"


def test_what_was_done_counts_against_the_limit(place: Place) -> None:
    """A counter of marked resources was never counted up, so that its limit never held."""
    fleet = [place.machine(f"notebook-{n}") for n in range(4)]
    stage = place.stage(*fleet, under=policy(rule(limits=replace(LIMITS, actions_per_day=1))))
    stage.day(0)
    stage.day(1)
    stage.at(DAY + timedelta(hours=6))
    assert stage.verbs() == ["stop"], "one in 24 hours, whatever the number of runs"
    stage.day(2)
    assert stage.verbs() == ["stop", "stop"]


def test_one_datapoint_is_not_a_window(place: Place) -> None:
    """One datapoint of 336 was averaged and called idle."""
    lone = place.machine(does=workload.idle())
    stage = place.stage(lone)
    native_id = stage.ref().native_id
    stage.cloud.silence(native_id, START - 10 * DAY, START - timedelta(minutes=3))
    stage.day(0)
    plan = stage.reports[-1].plan
    assert plan is not None
    assert [finding.verdict for finding in plan.findings] == [Verdict.UNMEASURED]
    assert (stage.mailbox.messages, stage.verbs()) == ([], [])


def test_a_machine_missing_from_the_metrics_answer_is_not_idle(place: Place) -> None:
    """Under a negation, instances absent from the answer were selected."""

    class Forgetful:
        def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
            del instances, since, until
            return SignalReport({})

    stage = place.stage()
    stage.reading = replace(stage.reading, signals=Forgetful())
    stage.days(FORTNIGHT)
    plan = stage.reports[-1].plan
    assert plan is not None
    assert [finding.reason.code for finding in plan.findings] == [ReasonCode.SIGNALS_UNREAD]
    assert (stage.mailbox.messages, stage.verbs()) == ([], [])


def test_a_throttled_snapshot_terminates_nothing(place: Place) -> None:
    """A throttled snapshot was a warning in a log, and everything was terminated."""
    stage = place.stage()
    calls = stage.executor.inner

    class Throttled:
        def execute(self, action: Action) -> Receipt:
            if action.verb is Verb.SNAPSHOT:
                raise ThrottledError("snapshots are asked for too often", operation="CreateSnapshot")
            return calls.execute(action)

    stage.executor.inner = Throttled()
    stage.days(range(30))
    assert "terminate" not in stage.verbs()
    assert stage.state() == "stopped"
    assert stage.case().status is CaseStatus.HELD, "a person is asked to look"


def test_a_protection_date_nobody_can_read_protects(place: Place) -> None:
    """An unparsable expiry was skipped, and with it the protection."""
    dates = ("next tuesday", "2026-13-45", "", "31/12/2030", "2031-01-01T00:00:00")
    kept = [place.machine(f"kept-{n}", tags={"costguard-keep-until": until}) for n, until in enumerate(dates)]
    stage = place.stage(*kept)
    stage.days(FORTNIGHT)
    assert (stage.verbs(), stage.mailbox.messages) == ([], [])
    plan = stage.reports[-1].plan
    assert plan is not None
    assert [finding.reason.code for finding in plan.findings] == [ReasonCode.PROTECTED_TAG] * len(dates)


def test_a_rate_limited_notice_is_sent_after_the_wait(place: Place) -> None:
    """A 429 was slept on, and the message never sent; the machine was stopped all the same."""
    stage = place.stage()
    with SlackStandIn(stage.clock) as slack:
        slack.faults.rate_limits, slack.faults.retry_after = 1, "7"
        slack_app = SlackNotifier(slack.token, base_url=slack.base_url)
        told_by = replace(stage.world(), notifier=NotifierRouter({"slack": slack_app}, default="slack"))
        before = stage.clock.now()
        stage.run_with(told_by)
        assert [message.channel for message in slack.posted] == ["#gpu"]
        assert stage.clock.now() - before >= timedelta(seconds=7)
    assert stage.case().rung == 1, "told, and the grace runs from then"


def test_a_region_that_cannot_be_read_is_not_an_empty_one(place: Place) -> None:
    """The error of an unreadable region went to a log, and the report said that nothing was found."""
    stage = place.stage()
    stage.days((0, 1, 2))
    inventory = stage.inventory

    class Unreadable:
        discover, details, protections = inventory.discover, inventory.details, inventory.protections

        def read(self, shard: Shard) -> Inventory:
            message = f"{shard} does not answer"
            raise UnavailableError(message, operation="DescribeInstances")

    stage.reading = replace(stage.reading, inventory=Unreadable())
    report = stage.day(3)
    assert report.plan is not None
    assert [(gap.what, gap.kind) for gap in report.plan.gaps] == [("inventory", GapKind.UNAVAILABLE)]
    assert stage.case().status is CaseStatus.HELD, "the stopped machine is not forgotten"
    assert stage.verbs() == ["stop"]
