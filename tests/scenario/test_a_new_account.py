"""An account that was never seen before: every rule only observes there, for as long as the policy says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine
from tests.scenario.test_a_keys_month import KeyStage
from tests.scenario.test_a_networks_week import NetworkStage, closing

from cloudstand.world.records import Operation
from costguard.cases import CaseStatus
from costguard.domain.reasons import ReasonCode
from costguard.engine.ledger.learned import AccountRepository
from costguard.guards.rules.common import Mode
from costguard.planning.rails import observing

WEEK = 7 * DAY


@pytest.fixture(params=CLOUDS)
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    made = Stage(tmp_path, idle_machine(cloud=request.param), under=policy(observe_new_accounts_for=WEEK))
    yield made
    made.close()


def test_nothing_happens_and_nobody_is_told_until_the_account_is_known(stage: Stage) -> None:
    stage.days(range(7))
    assert (stage.verbs(), stage.mailbox.messages) == ([], [])
    plan = stage.reports[-1].plan
    assert plan is not None
    (rehearsed,) = plan.rehearsed
    assert (rehearsed.action.verb.value, rehearsed.reason.code) == ("stop", ReasonCode.ACCOUNT_NEW)
    assert rehearsed.reason.facts["until"] == (START + WEEK).isoformat(timespec="minutes")


def test_then_the_ladder_begins_with_a_notice_and_its_full_grace(stage: Stage) -> None:
    stage.days(range(8))
    assert stage.case().status is CaseStatus.CLOSED, "the rehearsal is over"
    assert stage.case().reason.code is ReasonCode.MODE_CHANGED
    stage.day(8)
    assert len(stage.mailbox.messages) == 1
    assert stage.verbs() == []
    stage.day(9)
    assert stage.verbs() == ["stop"]


def test_an_account_known_for_long_is_acted_on_when_the_policy_begins_to_ask(tmp_path: Path) -> None:
    """Naming `new_accounts` in a policy makes no account new that runs have read before."""
    stage = Stage(tmp_path, idle_machine(), under=policy(rule(mode=Mode.OBSERVE)))
    stage.days(range(8))
    stage.policy = policy(observe_new_accounts_for=WEEK)
    stage.days((8, 9, 10))
    assert stage.verbs() == ["stop"]
    stage.close()


def test_a_plan_by_hand_makes_no_account_known(tmp_path: Path) -> None:
    stage = Stage(tmp_path, idle_machine(), under=policy(observe_new_accounts_for=WEEK))
    plan = stage.plan()
    assert [item.reason.code for item in plan.rehearsed] == [ReasonCode.ACCOUNT_NEW]
    assert AccountRepository(stage.memory.store).first_seen() == {}
    stage.close()


def test_an_account_that_was_not_read_whole_is_not_known_yet(tmp_path: Path) -> None:
    stage = Stage(tmp_path, idle_machine(), under=policy(observe_new_accounts_for=WEEK))
    stage.cloud.deny(stage.ref().cloud, stage.ref().account, Operation.LIST)
    stage.day(0)
    assert AccountRepository(stage.memory.store).first_seen() == {}
    stage.close()


def test_without_a_wait_no_account_is_observed() -> None:
    assert observing(["aws:1"], {}, timedelta(0), START) == {}
    assert observing(["aws:1"], {}, DAY, START) == {"aws:1": START + DAY}
    assert observing(["aws:1", "aws:2"], {"aws:1": START - DAY}, DAY, START) == {"aws:2": START + DAY}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_key_there_is_only_watched_until_then(tmp_path: Path, cloud: str) -> None:
    month = KeyStage(tmp_path)
    month.policy = replace(month.policy, observe_new_accounts_for=WEEK)
    key = month.key(cloud=cloud)
    month.every_day(0, 6)
    assert (month.rotator.calls, month.mailbox.titles) == ([], [])
    report = month.look(6 * DAY + timedelta(hours=12)).report
    assert report is not None
    assert report.plan is not None
    assert {item.reason.code for item in report.plan.rehearsed} == {ReasonCode.ACCOUNT_NEW}
    month.every_day(7, 8)
    assert month.rotator.calls == []
    assert len(month.mailbox.titles) == 1, "its owner is told when the account is known"
    month.every_day(9, 10)
    assert month.rotator.calls == [(key.ref.native_id, "every 90")]
    month.close()


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_port_open_to_the_world_there_is_only_watched_until_then(tmp_path: Path, cloud: str) -> None:
    week = NetworkStage(tmp_path, cloud, closing(cloud, 8888))
    week.policy = replace(week.policy, observe_new_accounts_for=WEEK)
    week.every_day(0, 5)
    plan = week.plan_at(6 * DAY)
    assert {item.reason.code for item in plan.rehearsed} == {ReasonCode.ACCOUNT_NEW}
    assert (week.remediator.calls, week.mailbox.messages) == ([], [])
    week.every_day(7, 8)
    assert week.remediator.calls == []
    assert len(week.mailbox.messages) == 1
    week.every_day(9, 10)
    assert len(week.remediator.calls) == 1
    week.memory.store.close()
