"""Terminations have a cap of their own, over a whole ladder and at each call: bills end first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, Stage, idle_machine

from cloudstand.world import workload
from costguard.domain.actions import Verb
from costguard.domain.errors import RefusedError
from costguard.domain.money import Money
from costguard.domain.reasons import ReasonCode
from costguard.engine.run.run import carry_out
from costguard.guards.rules.common import Step
from costguard.planning import cap_of

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


@pytest.fixture(params=CLOUDS)
def ending(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """A machine whose termination is due on the day that comes, under a cap of ten stops and one termination."""
    limits = replace(rule().limits, terminations_per_day=1, fleet_share_per_day=Decimal(1))
    ladder = (Step(Verb.WARN, 0 * DAY), Step(Verb.STOP, DAY), Step(Verb.TERMINATE, DAY))
    fleet = [idle_machine(f"busy-{number}", cloud=request.param, does=workload.busy()) for number in range(4)]
    stage = Stage(tmp_path, idle_machine(cloud=request.param), *fleet, under=policy(rule(limits=limits, ladder=ladder)))
    while not any(action.verb is Verb.TERMINATE for action in stage.plan().due):
        stage.run_with(stage.world())
        stage.clock.advance(DAY)
    yield stage
    stage.close()


def ended(stage: Stage) -> int:
    return stage.memory.caps.usage("idle_gpu", cap_of("research", Verb.TERMINATE), stage.clock.now()).actions


def test_a_termination_that_another_run_made_meanwhile_is_seen_when_reserving(ending: Stage) -> None:
    """The plan saw room, and ten stops would have it."""
    plan = ending.plan()
    nothing, cap = Money(Decimal(0), "USD"), cap_of("research", Verb.TERMINATE)
    taken = ending.memory.caps.reserve(
        "idle_gpu", cap, "another", nothing, max_actions=1, max_hourly=_PLENTY, now=ending.clock.now()
    )
    assert taken is None
    carry_out(ending.world(), plan)
    assert "terminate" not in ending.verbs()
    assert ending.case().reason.code is ReasonCode.CAP_ACTIONS


def test_a_refused_termination_gives_its_cap_back(ending: Stage) -> None:
    ending.executor.fails_before = RefusedError("OperationNotPermitted")
    ending.run_with(ending.world())
    assert (ending.verbs()[-1], ended(ending)) == ("terminate", 0)


def test_a_termination_that_was_reserved_and_never_sent_is_given_back(ending: Stage) -> None:
    claim = ending.memory.intents.claim

    def dies(*_: object) -> bool:
        raise RuntimeError("the process died")

    ending.memory.intents.claim = dies  # type: ignore[method-assign, assignment]
    with pytest.raises(RuntimeError):
        ending.run_with(ending.world())
    ending.memory.intents.claim = claim  # type: ignore[method-assign]
    assert ended(ending) == 1
    for _ in range(3):
        ending.clock.advance(DAY / 12)
        ending.run_with(ending.world())
    assert ending.verbs().count("terminate") == 1
