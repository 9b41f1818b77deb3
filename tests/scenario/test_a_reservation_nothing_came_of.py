"""A process died between reserving a cap and writing its intent: what it held is given back, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import DAY, START, Stage, idle_machine

from costguard.domain.errors import OutcomeUnknownError
from costguard.domain.reasons import ReasonCode
from costguard.engine.ledger.caps import Claim, Reservation
from costguard.engine.run.run import run_guard

HOUR = timedelta(hours=1)
ONE_A_DAY = policy(rule(limits=replace(rule().limits, actions_per_day=1)))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Two machines under a cap of one, both told of on day 0."""
    older = START - timedelta(days=12)
    staged = Stage(tmp_path, idle_machine("first"), idle_machine("second", launched_at=older), under=ONE_A_DAY)
    staged.day(0)
    yield staged
    staged.close()


def used(stage: Stage) -> int:
    return stage.memory.caps.usage("idle_gpu", "research", stage.clock.now()).actions


def dies_before_its_intent(stage: Stage) -> None:
    claim = stage.memory.intents.claim

    def dies(*_: object) -> bool:
        raise RuntimeError("the process died")

    stage.memory.intents.claim = dies  # type: ignore[method-assign, assignment]
    with pytest.raises(RuntimeError):
        stage.day(1)
    stage.memory.intents.claim = claim  # type: ignore[method-assign]


def test_it_is_given_back_as_soon_as_its_claim_is_past(stage: Stage) -> None:
    """Within three hours, not a day: the claim is past after one, and the run after that acts."""
    dies_before_its_intent(stage)
    assert used(stage) == 1
    stage.at(DAY + 2 * HOUR)
    assert used(stage) == 0
    stage.at(DAY + 3 * HOUR)
    assert stage.verbs() == ["stop"]


def test_while_the_claim_stands_it_is_kept(stage: Stage) -> None:
    """Its process may only be slow: it still may write its intent and call."""
    dies_before_its_intent(stage)
    report = stage.at(DAY + HOUR / 2)
    assert report.plan is not None
    assert [held.reason.code for held in report.plan.held] == [ReasonCode.CAP_ACTIONS]
    assert (used(stage), stage.verbs()) == (1, [])


@pytest.mark.parametrize("moment", ["fails_before", "fails_after"])
@pytest.mark.parametrize("error", [OutcomeUnknownError("lost", operation="StopInstances"), RuntimeError("died")])
def test_a_call_that_may_have_gone_out_goes_on_counting(stage: Stage, moment: str, error: Exception) -> None:
    setattr(stage.executor, moment, error)
    if isinstance(error, RuntimeError):
        with pytest.raises(RuntimeError):
            stage.day(1)
    else:
        stage.day(1)
    setattr(stage.executor, moment, None)
    for hours in (2, 4, 6, 23):
        stage.at(DAY + hours * HOUR)
        assert (used(stage), stage.verbs()) == (1, ["stop"])


def test_a_frozen_process_whose_reservation_was_given_back_does_not_call(stage: Stage) -> None:
    """It wakes up between its reservation and its intent; two runs have passed meanwhile."""
    claim = stage.memory.intents.claim

    def frozen(*given: Any) -> bool:
        stage.memory.intents.claim = claim  # type: ignore[method-assign]
        stage.clock.advance(2 * HOUR)
        run_guard(stage.world(), "the run that gives it back")
        assert used(stage) == 0
        return claim(*given)

    stage.memory.intents.claim = frozen  # type: ignore[method-assign, assignment]
    report = stage.day(1)
    assert [result.reason.code for result in report.results if result.reason] == [ReasonCode.CHANGED_SINCE_PLAN]
    cases = stage.memory.cases.all("idle_gpu")
    assert [intent for case in cases for intent in stage.memory.intents.for_case(case.case_id)] == []
    assert (stage.verbs(), used(stage)) == ([], 0)


def test_a_reservation_made_anew_for_a_later_claim_stays(stage: Stage) -> None:
    """What was read as past may have been reserved again before it is given back."""
    caps, now = stage.memory.caps, stage.clock.now()
    limits: dict[str, Any] = {"max_actions": 1, "max_hourly": rule().limits.hourly_cost_stopped_per_day, "now": now}
    price = limits["max_hourly"][0]
    old, new = Claim("case", "key", 3), Claim("case", "key", 7)
    assert caps.reserve("idle_gpu", "research", "decision", price, claim=old, **limits) is None
    (seen,) = caps.reservations("idle_gpu", "research", now)
    assert caps.reserve("idle_gpu", "research", "decision", price, claim=new, **limits) is None
    caps.release_unsent("idle_gpu", "research", [seen])
    assert caps.reservations("idle_gpu", "research", now) == (Reservation("decision", now, price, new),)


def test_a_reservation_of_an_older_costguard_counts_for_its_day(stage: Stage) -> None:
    """It names no claim, so nothing proves that no intent can follow."""
    stage.clock.advance(DAY)
    limits: dict[str, Any] = {"max_actions": 1, "max_hourly": rule().limits.hourly_cost_stopped_per_day}
    now = stage.clock.now()
    assert stage.memory.caps.reserve("idle_gpu", "research", "old", limits["max_hourly"][0], now=now, **limits) is None
    stage.at(DAY + 2 * HOUR)
    stage.at(DAY + 4 * HOUR)
    assert (used(stage), stage.verbs()) == (1, [])
