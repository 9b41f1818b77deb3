"""An alert that its channel refused for good is told again a day later, to whoever did not get it, until it arrives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.builders import policy
from tests.scenario.budget_stage import HOUR, BudgetStage, machine, research
from tests.scenario.stage import DAY

from cloudstand.world import workload as does
from costguard.domain.errors import RejectedNoticeError
from costguard.engine.run.run_context import RunContext
from costguard.ports import Delivery, Message

FINANCE, RESEARCH = "slack:#finance", "slack:#research"


class Refusing:
    """Takes everything but what goes to `finance` while that is closed."""

    def __init__(self) -> None:
        self.closed = True
        self.taken: list[str] = []

    def send(self, message: Message) -> Delivery:
        if self.closed and message.channel == FINANCE:
            raise RejectedNoticeError("channel_not_found")
        self.taken.append(message.channel)
        return Delivery(f"ts-{len(self.taken)}")

    def edit(self, receipt: str, message: Message) -> bool:  # noqa: ARG002 - nothing can be changed here
        return False

    def capacity(self, message: Message) -> int:
        return max(1, len(message.parts))


class Month(BudgetStage):
    """A month under one budget of 100 USD that is spent from the beginning."""

    def __init__(self, folder: Path) -> None:
        spent = research("100", forecast_alert_at=(), tell=(FINANCE, RESEARCH))
        under = replace(policy(), idle_gpu=(), budgets=(spent,))
        super().__init__(folder, machine(does=does.busy()), under=under)
        self.channel = Refusing()

    def surroundings(self) -> RunContext:
        return replace(super().surroundings(), notifier=self.channel)


@pytest.fixture
def month(tmp_path: Path) -> Iterator[Month]:
    stage = Month(tmp_path)
    stage.clock.advance(3 * DAY)
    yield stage
    stage.close()


def test_it_is_told_again_a_day_later_and_only_where_it_was_refused(month: Month) -> None:
    month.hour()
    month.channel.closed = False
    for _ in range(3):
        month.clock.advance(HOUR)
        month.hour()
    assert month.channel.taken == [RESEARCH]
    month.clock.advance(timedelta(hours=21))
    month.hour()
    assert month.channel.taken == [RESEARCH, FINANCE]


def test_it_is_tried_once_a_day_while_it_is_refused_and_never_once_it_arrived(month: Month) -> None:
    for _ in range(3):
        month.hour()
        month.clock.advance(DAY)
    assert len(month.memory.outbox.dead()) == 3
    month.channel.closed = False
    for _ in range(3):
        month.hour()
        month.clock.advance(DAY)
    assert month.channel.taken == [RESEARCH, FINANCE]
