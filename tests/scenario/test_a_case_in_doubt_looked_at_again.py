"""Cases held because an answer was lost: a person has them looked at again, and they go on from what is seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import DAY, START, Stage, idle_machine
from tests.scenario.test_a_keys_month import BOTH, KeyStage, enforcing

from costguard.cases import CaseStatus, Phase
from costguard.domain.actions import Outcome, Verb
from costguard.domain.errors import OutcomeUnknownError
from costguard.domain.reasons import ReasonCode
from costguard.engine.answers.answers import Rechecked, RecheckResult, in_doubt, recheck
from costguard.engine.ledger.audit.people import told_again
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.run.run import plan_guard
from costguard.guards.rules.common import Selector

LOST = OutcomeUnknownError("the answer was lost", operation="TerminateInstances")


def doubtful(folder: Path, cloud: str, *, took_effect: bool = False) -> Stage:
    """The answer to the terminate of day 12 was lost; two days later it is held for people."""
    stage = Stage(folder, idle_machine(cloud=cloud))
    stage.days(range(12))
    setattr(stage.executor, "fails_after" if took_effect else "fails_before", LOST)
    stage.day(12)
    stage.executor.fails_before = stage.executor.fails_after = None
    if not took_effect:
        stage.days((13, 14))
        assert stage.case().reason.code is ReasonCode.OUTCOME_UNKNOWN
    return stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    staged = doubtful(tmp_path, "aws")
    yield staged
    staged.close()


def looked(stage: Stage) -> Rechecked:
    (done,) = recheck(stage.memory, stage.plan(), in_doubt(stage.memory, "idle_gpu"), "ops", stage.clock.now())
    return done


def held_terminates(stage: Stage) -> int:
    return stage.verbs().count("terminate")


def test_what_shows_no_effect_begins_its_wait_anew_and_is_announced_again(stage: Stage) -> None:
    told, calls = len(stage.mailbox.messages), list(stage.verbs())
    done = looked(stage)
    assert (done.found, done.state) == (RecheckResult.NO_EFFECT, "stopped")
    assert (done.case.phase, done.case.since) == (Phase.WAITING, stage.clock.now())
    assert [rung.verb for rung in done.case.climbed] == [Verb.STOP]
    stage.days(range(15, 20))
    assert len(stage.mailbox.messages) > told, "announced again"
    assert stage.verbs() == calls, "the whole quarantine runs again before anything is done"
    stage.days(range(20, 32))
    assert held_terminates(stage) == 2, "the lost one, and one under a decision of its own"
    assert len({action.decision_id for action in stage.executor.calls if action.verb is Verb.TERMINATE}) == 2


def test_a_look_calls_nothing(stage: Stage) -> None:
    before = list(stage.cloud.history)
    looked(stage)
    assert (list(stage.cloud.history), held_terminates(stage)) == (before, 1)


def test_who_asked_is_in_the_audit_which_stays_whole(stage: Stage) -> None:
    looked(stage)
    entries = list(stage.memory.store.query("audit", "operator/"))
    said = [told_again(stage.memory.store, entry) for entry in entries]
    assert [(one.get("outcome"), one.get("by")) for one in said] == [(None, "ops"), ("had_no_effect", "ops")]
    assert verify(stage.memory.store).problems == ()


def test_the_lost_call_is_settled_and_its_cap_stays_used(stage: Stage) -> None:
    used = stage.memory.caps.usage("idle_gpu", "research", stage.clock.now() - 2 * DAY + timedelta(hours=1))
    case = stage.case()
    looked(stage)
    (lost,) = (one for one in stage.memory.intents.for_case(case.case_id) if one.action.verb is Verb.TERMINATE)
    assert lost.outcome is Outcome.HAD_NO_EFFECT
    after = stage.memory.caps.usage("idle_gpu", "research", stage.clock.now() - 2 * DAY + timedelta(hours=1))
    assert after == used


def test_a_terminate_on_tencent_cloud_is_never_asked_for_again(tmp_path: Path) -> None:
    stage = doubtful(tmp_path, "tencent")
    before = stage.case()
    done = looked(stage)
    assert (done.found, done.state, done.case) == (RecheckResult.UNKNOWN, "stopped", before)
    stage.days(range(15, 40))
    assert held_terminates(stage) == 1
    assert stage.case().reason.code is ReasonCode.OUTCOME_UNKNOWN
    stage.close()


def test_what_cannot_be_seen_is_not_decided(stage: Stage) -> None:
    """Its region is not listed: that proves nothing."""
    plan = replace(stage.plan(), transitions=())
    before = stage.case()
    (done,) = recheck(stage.memory, plan, in_doubt(stage.memory, "idle_gpu"), "ops", stage.clock.now())
    assert (done.found, done.case, stage.case()) == (RecheckResult.UNSEEN, before, before)


def test_what_is_gone_took_effect(stage: Stage) -> None:
    """Somebody ended it by hand, or the cloud did at last: seen gone, the case is closed."""
    (name,) = stage.cloud.machines
    stage.cloud.terminate(name, "owner")
    stage.clock.advance(timedelta(hours=1))
    stage.cloud.tick(stage.clock.now())
    done = looked(stage)
    assert (done.found, done.case.status) == (RecheckResult.TOOK_EFFECT, CaseStatus.CLOSED)
    assert in_doubt(stage.memory, "idle_gpu") == ()


def test_a_case_that_a_run_moved_meanwhile_stands_as_it_is(stage: Stage) -> None:
    doubted, plan = in_doubt(stage.memory, "idle_gpu"), stage.plan()
    moved = stage.memory.cases.commit(doubted[0], replace(doubted[0], owner="nlp"))
    (done,) = recheck(stage.memory, plan, doubted, "ops", stage.clock.now())
    assert (done.found, stage.case()) == (RecheckResult.MOVED, moved)


def test_a_stop_whose_rule_went_meanwhile_and_which_runs_had_no_effect(tmp_path: Path) -> None:
    stage = Stage(tmp_path, idle_machine())
    stage.day(0)
    stage.executor.fails_before = LOST
    stage.day(1)
    stage.executor.fails_before = None
    stage.policy = policy(rule(name="others", applies_to=Selector(instance_types=("nothing.like-it",))))
    stage.day(2)
    assert stage.case().reason.code is ReasonCode.OUTCOME_UNKNOWN
    assert looked(stage).found is RecheckResult.NO_EFFECT
    stage.day(3)
    assert stage.case().reason.code is ReasonCode.RULE_GONE
    stage.close()


def test_a_stop_that_may_still_take_effect_is_not_decided(tmp_path: Path) -> None:
    """Its rule went within the hour: the case is held, and the call may be another process's, still on its way."""
    stage = Stage(tmp_path, idle_machine())
    stage.day(0)
    stage.executor.fails_before = LOST
    stage.day(1)
    stage.executor.fails_before = None
    stage.policy = policy(rule(name="others", applies_to=Selector(instance_types=("nothing.like-it",))))
    stage.at(DAY + timedelta(minutes=30))
    assert stage.case().reason.code is ReasonCode.OUTCOME_UNKNOWN
    assert looked(stage).found is RecheckResult.UNKNOWN
    stage.close()


def looked_at_keys(month: KeyStage) -> Rechecked:
    plan = plan_guard(month.surroundings(), "recheck").plan
    (done,) = recheck(month.memory, plan, in_doubt(month.memory, "kms_rotation"), "ops", month.clock.now())
    return done


def test_a_period_that_was_not_set_is_announced_anew_and_set(tmp_path: Path) -> None:
    month = KeyStage(tmp_path)
    key = month.key()
    month.rotator.fails_before = OutcomeUnknownError("no answer", operation="kms:EnableKeyRotation")
    month.every_day(0, 3)
    month.rotator.fails_before = None
    told = len(month.mailbox.messages)
    assert looked_at_keys(month).found is RecheckResult.NO_EFFECT
    month.every_day(4, 4)
    assert (len(month.mailbox.messages), len(month.rotator.calls)) == (told + 1, 1), (
        "announced, and the wait runs again"
    )
    month.every_day(5, 7)
    assert (key.period_days, len(month.rotator.calls)) == (90, 2)
    month.close()


def test_a_rotation_that_nobody_can_see_is_not_asked_for_again(tmp_path: Path) -> None:
    """Each makes new material: a second one cannot be taken back."""
    month = KeyStage(tmp_path, enforcing(means=BOTH))
    month.key(age=200, period_days=90, rotations=[START - 150 * DAY], period_since=START + 300 * DAY)
    month.rotator.fails_before = OutcomeUnknownError("no answer", operation="kms:RotateKeyOnDemand")
    month.every_day(0, 5)
    month.rotator.fails_before = None
    assert looked_at_keys(month).found is RecheckResult.UNKNOWN
    month.every_day(6, 20)
    assert len(month.rotator.calls) == 1
    month.close()
