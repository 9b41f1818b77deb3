"""A launch freeze over the vendors' own wires: attached once, looked for, and taken off when the month is over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.builders import NOW, policy, usd
from tests.contract.cloud_worlds import DENIED, LOST, THROTTLED
from tests.contract.freeze_rigs import FreezeRig
from tests.contract.freeze_worlds import FREEZES
from tests.scenario.stage import Mailbox
from tests.scenario.test_a_launch_freeze import STEP

from cloudstand.clock import MovedClock
from costguard.adapters.ledgers.open import open_ledger
from costguard.domain.actions import FreezeVia
from costguard.domain.errors import InvalidInputError
from costguard.domain.money import SpendScope
from costguard.domain.reasons import Reason, ReasonCode
from costguard.engine.guards.budgets.freeze import FreezeResult, freeze, thaw
from costguard.engine.ledger.memory import Memory
from costguard.engine.notify.delivery import deliver_due
from costguard.engine.run.run_context import RunContext
from costguard.estimates.spent import Spent
from costguard.guards.budget.judge import BudgetStatus
from costguard.guards.budget.rules import BudgetPeriod, BudgetRule, period_at
from costguard.guards.rules.common import Mode
from costguard.planning.freeze import FreezePhase
from costguard.ports import FreezeControl

NAME = STEP.freezes[0]
HOUR, ENOUGH = timedelta(hours=1), timedelta(seconds=1)
RULE = BudgetRule("research", Mode.ENFORCE, SpendScope(), BudgetPeriod(), usd("100"), steps=(STEP,))


@pytest.fixture(scope="module", params=sorted(FREEZES))
def provider(request: pytest.FixtureRequest) -> Iterator[FreezeRig]:
    with FREEZES[request.param]() as made:
        yield made


class Month:
    """One budget that is spent or is not, and what the engine does for it run by run, over one provider's stand-in."""

    def __init__(self, rig: FreezeRig) -> None:
        rig.reset()
        self.rig, self.spent = rig, "130"
        self.freeze = replace(rig.freeze(FreezeVia.ORGANISATION), name=NAME)
        self.policy = replace(policy(), budgets=(RULE,), launch_freezes=(self.freeze,), default_channel="slack:#a")
        self.clock, self.mailbox = MovedClock(NOW), Mailbox()
        self.memory = Memory.over(open_ledger("memory:"))
        self.open: Any = rig.control
        self.problem: Reason | None = None

    def opened(self) -> FreezeControl:
        control: FreezeControl = self.open()
        return control

    def run(self, times: int = 1) -> Sequence[FreezeResult]:
        """Runs an hour apart; notices are delivered after each."""
        told: Sequence[FreezeResult] = ()
        for _ in range(times):
            self.clock.advance(HOUR)
            told = freeze(self._surroundings(), self._statuses(), f"run-{self.clock.now():%d-%H}")
            deliver_due(self.memory.outbox, self.mailbox, self.clock, max_wait=ENOUGH)
        return told

    @property
    def phase(self) -> FreezePhase:
        return self.memory.freezes.get(NAME).phase

    @property
    def frozen(self) -> bool:
        return self.freeze.policy in self.rig.truth(self.freeze)

    @property
    def changes(self) -> list[str]:
        return [name for name in self.rig.requests() if not name.startswith("List")]

    def _surroundings(self) -> RunContext:
        return RunContext(
            guard="budget",
            policy=self.policy,
            targets=(),
            readings={},
            executors={},
            memory=self.memory,
            notifier=self.mailbox,
            clock=self.clock,
            policy_now=lambda: self.policy,
            policy_problem=self.problem,
            freezers={self.rig.cloud: self.opened},
        )

    def _statuses(self) -> tuple[BudgetStatus, ...]:
        now = self.clock.now()
        nothing = usd("0")
        figures = Spent(usd(self.spent), nothing, nothing, nothing, now)
        return tuple(
            BudgetStatus(rule, period_at(rule.period, now), spent=figures, burn_per_hour=nothing)
            for rule in self.policy.budgets
        )


@pytest.fixture
def month(provider: FreezeRig) -> Iterator[Month]:
    made = Month(provider)
    yield made
    made.memory.store.close()


@pytest.fixture(scope="module")
def one_provider() -> Iterator[FreezeRig]:
    """For what does not differ by vendor."""
    with FREEZES["alibaba"]() as made:
        yield made


@pytest.fixture
def story(one_provider: FreezeRig) -> Iterator[Month]:
    made = Month(one_provider)
    yield made
    made.memory.store.close()


def test_it_is_attached_once_and_leaves_what_was_there(month: Month) -> None:
    before = month.rig.everything()
    month.run(4)
    assert (month.phase, month.frozen) == (FreezePhase.ANNOUNCED, False)
    month.run(3)
    assert (month.phase, month.frozen) == (FreezePhase.ON, True)
    assert month.memory.freezes.get(NAME).before == tuple(before[month.freeze.target])
    month.clock.advance(timedelta(days=25))
    month.run(3)
    assert (month.phase, month.rig.everything()) == (FreezePhase.ANNOUNCED, before)  # the next month is spent as well
    assert len(month.changes) == 2


def test_it_is_taken_off_when_people_say_so_and_stays_off(story: Month) -> None:
    story.run(8)
    assert story.frozen
    done = thaw(story.memory, story.policy, NAME, "operator", "conference deadline", story.clock.now())
    assert done.period == "2026-03"
    story.run(24)
    assert (story.phase, story.frozen) == (FreezePhase.RELEASED, False)
    assert len(story.changes) == 2


def test_it_is_taken_off_where_it_was_begun_though_the_policy_no_longer_names_it(story: Month) -> None:
    story.run(8)
    story.policy = replace(story.policy, launch_freezes=(), budgets=())
    story.run(2)
    assert (story.phase, story.frozen) == (FreezePhase.OFF, False)


@pytest.mark.parametrize("operation", ["attach", "detach"])
def test_a_lost_answer_is_looked_for_and_the_call_not_repeated(month: Month, operation: str) -> None:
    month.rig.go_wrong(operation, LOST)
    month.run(8)
    assert (month.phase, month.frozen) == (FreezePhase.ON, True)
    month.spent = "1"
    month.run(2)
    assert (month.phase, month.frozen) == (FreezePhase.OFF, False)
    assert len(month.changes) == 2


@pytest.mark.parametrize("how", [DENIED, THROTTLED])
def test_what_is_rejected_is_asked_again_in_a_later_run(story: Month, how: str) -> None:
    story.rig.go_wrong("attach", how)
    failures = [told.failed for _ in range(9) for told in story.run()]
    assert story.frozen is False
    assert 1 < len(story.changes) == len([failed for failed in failures if failed]) < 4
    story.rig.reset()
    story.run(3)
    assert story.frozen


def test_an_organisation_without_policies_never_begins_one_and_says_why(story: Month) -> None:
    story.rig.switch_off()
    (told,) = story.run(8)
    assert story.changes == []
    assert "not enabled in this organisation" in told.failed


def test_a_policy_too_old_to_act_on_begins_nothing_and_ends_nothing_but_by_hand(story: Month) -> None:
    story.problem = Reason(ReasonCode.POLICY_STALE, {})
    story.run(8)
    assert (story.changes, story.mailbox.titles) == ([], [])
    story.problem = None
    story.run(8)
    assert story.frozen
    story.problem, story.spent = Reason(ReasonCode.POLICY_STALE, {}), "1"
    story.run(3)
    assert story.frozen
    thaw(story.memory, story.policy, NAME, "operator", "", story.clock.now())
    story.run(2)
    assert not story.frozen


def test_a_cloud_that_cannot_be_opened_keeps_nothing_else_from_running(story: Month) -> None:
    def unopened() -> FreezeControl:
        message = "the credentials belong to another partition"
        raise InvalidInputError(message)

    story.open = unopened
    (told,) = story.run(8)
    assert "another partition" in told.failed
    assert story.changes == []
