"""Fifty idle machines go down the whole ladder under a cap of five: bills end first, and no cap waits for another."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, Stage, idle_machine

from costguard.domain.actions import Verb
from costguard.domain.money import Money
from costguard.guards.rules import Step

_PLENTY = (Money(Decimal(10_000), "USD"),)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_all_are_stopped_within_the_days_that_the_cap_takes_and_none_waits_for_a_termination(
    cloud: str, tmp_path: Path
) -> None:
    limits = replace(
        rule().limits, actions_per_day=5, fleet_share_per_day=Decimal(1), hourly_cost_stopped_per_day=_PLENTY
    )
    ladder = (Step(Verb.WARN, 0 * DAY), Step(Verb.STOP, DAY), Step(Verb.TERMINATE, DAY))
    fleet = [idle_machine(f"box-{number:02}", cloud=cloud) for number in range(50)]
    stage = Stage(tmp_path, *fleet, under=policy(rule(limits=limits, ladder=ladder)))
    done: list[Counter[str]] = []
    for day in range(19):
        before = len(stage.executor.calls)
        stage.day(day)
        done.append(Counter(call.verb.value for call in stage.executor.calls[before:]))
    stage.close()

    assert [day["stop"] for day in done[:12]] == [0, *[5] * 10, 0]
    ended = [day["terminate"] for day in done]
    first = next(number for number, count in enumerate(ended) if count)
    assert first < 10, "terminations begin while machines still wait to be stopped"
    assert ended[first : first + 10] == [5] * 10
