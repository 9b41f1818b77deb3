"""What a budget asks for holds as long as the look it was decided by: not over the month's end, nor for hours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.builders import policy
from tests.scenario.budget_stage import HOUR, STOP_IDLE, BudgetStage, machine, research
from tests.scenario.stage import DAY

from costguard.engine.guards.budgets.look import look
from costguard.engine.guards.budgets.run import LOOK_HOLDS, under_budgets


@pytest.fixture
def month(tmp_path: Path) -> Iterator[BudgetStage]:
    under = replace(policy(), idle_gpu=(), budgets=(research("100", steps=(STOP_IDLE,)),))
    stage = BudgetStage(tmp_path, machine(), under=under)
    yield stage
    stage.close()


def asked_after(month: BudgetStage, at: timedelta, wait: timedelta) -> tuple[int, int]:
    """How many rules for machines there are by a look at this time after the start, and `wait` later."""
    month.clock.advance(at)
    surroundings = month.surroundings()
    under = under_budgets(surroundings, look(surroundings))
    month.clock.advance(wait)
    return len(under.policy.idle_gpu), len(under.policy_now().idle_gpu)


def test_it_holds_while_a_run_goes_on(month: BudgetStage) -> None:
    assert asked_after(month, 10 * DAY, LOOK_HOLDS) == (1, 1)


def test_a_process_that_stood_still_has_to_look_again(month: BudgetStage) -> None:
    assert asked_after(month, 10 * DAY, LOOK_HOLDS + timedelta(seconds=1)) == (1, 0)


def test_a_month_that_is_over_asks_for_nothing_in_the_next(month: BudgetStage) -> None:
    assert asked_after(month, 29 * DAY + 14 * HOUR + timedelta(minutes=50), timedelta(minutes=15)) == (1, 0)
