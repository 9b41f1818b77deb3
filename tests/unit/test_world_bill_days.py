"""The days of a world's bill are its cloud's own, whole, wherever a reading begins."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from tests.scenario.stage import idle_machine
from tests.world_ports.spend import WorldSpend

from cloudstand.world.cloud import World
from costguard.domain.money import SpendScope
from costguard.ports import Target

MARCH = datetime(2026, 3, 1, tzinfo=timezone.utc)
DAY = timedelta(days=1)


class Clock:
    """The sixth of March, noon."""

    def now(self) -> datetime:
        return MARCH + 5 * DAY + timedelta(hours=12)


@pytest.mark.parametrize(("cloud", "hours_before"), [("aws", 0), ("alibaba", 8), ("tencent", 8)])
def test_the_day_in_which_a_reading_begins_is_told_whole(cloud: str, hours_before: int) -> None:
    world = World([idle_machine("one", cloud=cloud, launched_at=MARCH - 9 * DAY)], Clock().now())
    everything = SpendScope()
    report = WorldSpend(world, Clock()).read(Target(cloud), [everything], MARCH, Clock().now())[everything]
    first = min(line.charge_period_start for line in report.lines)
    assert first == MARCH - timedelta(hours=hours_before)
    lengths = {line.charge_period_end - line.charge_period_start for line in report.lines}
    assert max(lengths) == DAY
    assert sum(line.charge_period_start == first for line in report.lines) >= 1
    assert all(line.effective_cost.amount > Decimal(0) for line in report.lines)
