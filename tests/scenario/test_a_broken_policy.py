"""An invalid policy means the last good one for at most seven days, then nothing; people are told either way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.builders import DAY, NOW
from tests.scenario.stage import CLOUDS, START, Stage, idle_machine

from costguard.adapters.ledgers.open import open_ledger
from costguard.domain.errors import InvalidInputError
from costguard.domain.reasons import ReasonCode
from costguard.engine.ledger.memory import Memory
from costguard.engine.policy.in_force import policy_in_force, tell_of_broken_policy
from costguard.policy.documents.loader import load_policy
from costguard.ports import PolicyText

GOOD = """
version: 1
mode: enforce
notify: {default: "slack:#gpu"}
idle_gpu:
  - name: all
    idle_when_all: {lasting: 24h, every_gpu_max_below: 5%}
    then: [warn, stop]
"""
BROKEN = GOOD.replace("5%", "500%")
TO_THE_END = GOOD.replace("[warn, stop]", "[warn, {stop: {wait: 24h}}, {terminate: {wait: 7d}}]")


class Source:
    def __init__(self, text: str) -> None:
        self.text = text

    def read(self) -> PolicyText:
        return PolicyText({"costguard.yaml": self.text}, "revision", "test")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    made = Memory.over(open_ledger(f"sqlite:///{tmp_path / 'ledger.sqlite3'}"))
    yield made
    made.store.close()


def test_a_good_policy_is_remembered(memory: Memory) -> None:
    found = policy_in_force(Source(GOOD), memory, NOW)
    assert (found.problem, found.error, found.policy.idle_gpu[0].name) == (None, "", "all")


def test_a_broken_policy_never_becomes_an_empty_one(memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match=r"costguard\.yaml:7"):
        policy_in_force(Source(BROKEN), memory, NOW)


def test_the_last_good_policy_decides_for_seven_days(memory: Memory) -> None:
    policy_in_force(Source(GOOD), memory, NOW)
    found = policy_in_force(Source(BROKEN), memory, NOW + 7 * DAY)
    assert found.problem is None
    assert "costguard.yaml" in found.error
    late = policy_in_force(Source(BROKEN), memory, NOW + 7 * DAY + timedelta(minutes=1))
    assert late.problem is not None
    assert late.problem.code is ReasonCode.POLICY_STALE


def test_people_are_told_once_a_day(memory: Memory) -> None:
    policy_in_force(Source(GOOD), memory, NOW)
    for hour in (1, 2, 24):
        now = NOW + timedelta(hours=hour)
        tell_of_broken_policy(memory, policy_in_force(Source(BROKEN), memory, now), "en", now)
    due = memory.outbox.due(NOW + 2 * DAY)
    assert [notice.channel for notice in due] == ["slack:#gpu"] * 2
    assert "policy" in due[0].title.lower()


@pytest.fixture(params=CLOUDS)
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    made = Stage(tmp_path, idle_machine(cloud=request.param), under=load_policy(Source(TO_THE_END).read()))
    yield made
    made.close()


def by(source: Source, stage: Stage, days: Iterable[int]) -> None:
    """Each morning's run, by whatever policy is then in force."""
    for day in days:
        stage.clock.advance(START + day * DAY - stage.clock.now())
        found = policy_in_force(source, stage.memory, stage.clock.now())
        stage.policy = found.policy
        stage.run_with(replace(stage.world(), policy_problem=found.problem))


def test_a_machine_outlives_a_policy_that_nobody_mends(stage: Stage) -> None:
    """What was begun under the last good policy goes on for a week, and no further than that."""
    source = Source(TO_THE_END)
    by(source, stage, [0])
    source.text = source.text.replace("5%", "500%")
    by(source, stage, [1, 2, 3, 7])
    assert stage.verbs() == ["stop"], "by the last good one"
    by(source, stage, [8, 10, 12, 20])
    assert stage.verbs() == ["stop"], "the quarantine ended on day 10, and nobody may say so"
    assert stage.state() == "stopped"
    assert stage.case().reason.code is ReasonCode.POLICY_STALE


def test_a_mended_policy_goes_on_where_it_was(stage: Stage) -> None:
    source = Source(TO_THE_END)
    by(source, stage, [0])
    source.text = source.text.replace("5%", "500%")
    by(source, stage, [1, 2, 3, 10])
    source.text = TO_THE_END
    by(source, stage, range(15, 20))
    assert stage.verbs() == ["stop", "snapshot", "terminate"]
