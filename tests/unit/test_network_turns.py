"""Two runs at once never each close a way in, counting on the one that the other closes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.scenario.test_a_networks_week import NetworkStage, closing

from costguard.cases import Case
from costguard.domain.actions import Action
from costguard.domain.errors import OutcomeUnknownError
from costguard.domain.reasons import Reason, ReasonCode
from costguard.engine.guards.networks.run import TURN, NetworkHandler
from costguard.engine.run.run import plan_guard
from costguard.engine.run.run_context import PrecheckResult
from costguard.planning import PlanIndex

HOUR = timedelta(hours=1)


class Due:
    """A shard with one rule that is due to be revoked, and the hands of several runs before it."""

    def __init__(self, folder: Path) -> None:
        self.stage = NetworkStage(folder, "aws", closing("aws", 8888))
        self.stage.look(timedelta(0))
        self.stage.clock.advance(25 * HOUR)
        plan = plan_guard(self.stage.surroundings(), "due").plan
        (self.action,) = plan.due
        self.case: Case = PlanIndex.of(plan).case_of(self.action)

    def hand(self) -> NetworkHandler:
        return NetworkHandler(self.stage.surroundings())

    def looks(self, hand: NetworkHandler, action: Action | None = None) -> Reason | PrecheckResult:
        return hand.last_look(
            self.case, action or self.action, self.stage.policy, self.stage.clock.now(), self.stage.memory
        )


@pytest.fixture
def due(tmp_path: Path) -> Iterator[Due]:
    made = Due(tmp_path)
    yield made
    made.stage.memory.store.close()


def test_while_one_run_may_close_a_way_in_another_waits_for_its_turn(due: Due) -> None:
    first, second = due.hand(), due.hand()
    assert isinstance(due.looks(first), PrecheckResult)
    assert isinstance(due.looks(first), PrecheckResult), "the same run goes on"
    refused = due.looks(second)
    assert isinstance(refused, Reason)
    assert refused.code is ReasonCode.CHANGED_SINCE_PLAN
    due.stage.clock.advance(TURN + timedelta(seconds=1))
    assert isinstance(due.looks(second), PrecheckResult)


def test_a_way_is_closed_only_once_people_were_told_and_the_whole_wait_is_over(due: Due) -> None:
    stage, hand, kept = due.stage, due.hand(), due.case
    due.case = replace(kept, climbed=(replace(kept.climbed[0], notice="nothing"),))
    untold = due.looks(hand)
    due.case = replace(kept, rung=0)
    other_rung = due.looks(hand)
    due.case = kept
    stage.policy = replace(stage.policy, observe_new_accounts_for=30 * 24 * HOUR)
    new = due.looks(hand)
    codes = [found.code for found in (untold, other_rung, new) if isinstance(found, Reason)]
    assert codes == [ReasonCode.NOTICE_UNDELIVERED, ReasonCode.CHANGED_SINCE_PLAN, ReasonCode.ACCOUNT_NEW]


def test_a_run_that_lost_its_turn_meanwhile_writes_no_intent(due: Due) -> None:
    first, second = due.hand(), due.hand()
    cleared = due.looks(first)
    assert isinstance(cleared, PrecheckResult)
    due.stage.clock.advance(TURN + timedelta(seconds=1))
    assert isinstance(due.looks(second), PrecheckResult)
    intents = due.stage.memory.intents
    assert not intents.claim(due.action, "frozen", due.stage.clock.now(), None, cleared.unchanged)


def test_a_read_that_does_not_show_what_this_run_sent_is_not_relied_on(due: Due) -> None:
    hand = due.hand()
    cleared = due.looks(hand)
    assert isinstance(cleared, PrecheckResult)
    due.stage.remediator.fails_before = OutcomeUnknownError("the answer got lost", operation="RevokeSecurityGroup")
    with pytest.raises(OutcomeUnknownError):
        hand.call(replace(due.action, before=cleared.before))
    refused = due.looks(hand)
    assert isinstance(refused, Reason)
    assert refused.code is ReasonCode.DETAIL_UNREAD
