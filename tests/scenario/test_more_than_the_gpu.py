"""What a rule does not look at: its owner reads so, use of it closes no case, and a contradiction stops nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine

from cloudstand.world import workload
from costguard.cases import CaseStatus
from costguard.domain.reasons import ReasonCode
from costguard.guards.rules.idle import SHIPPED_BOUNDS

WORKS_ON_CPU = replace(workload.IDLE, gpu_percent=1.0, cpu_percent=80.0)
UNLOOKED = "Not looked at: CPU, network. Use that the rule does not measure does not close the case."


@pytest.fixture
def stages() -> Iterator[list[Stage]]:
    opened: list[Stage] = []
    yield opened
    for stage in opened:
        stage.close()


def told(stage: Stage) -> str:
    return "\n".join(
        f"{name}: {value}"
        for message in stage.mailbox.messages
        for part in message.parts
        for name, value in (*message.fields, *part.fields)
    )


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_notice_of_a_rule_for_the_gpu_alone_says_what_was_not_looked_at(
    tmp_path: Path, stages: list[Stage], cloud: str
) -> None:
    stages.append(stage := Stage(tmp_path, idle_machine(cloud=cloud)))

    stage.day(0)

    assert UNLOOKED in told(stage)
    assert "read beside it: CPU ≤ " in told(stage)


def test_the_notice_of_a_rule_that_names_cpu_and_network_says_nothing_of_it(
    tmp_path: Path, stages: list[Stage]
) -> None:
    stages.append(stage := Stage(tmp_path, idle_machine(), under=policy(rule(idle=SHIPPED_BOUNDS))))

    stage.day(0)

    assert "Why: Idle" in told(stage)
    assert "Not looked at" not in told(stage)


def test_use_that_the_rule_does_not_measure_closes_no_case(tmp_path: Path, stages: list[Stage]) -> None:
    """As the notice said: it is stopped. Under the shipped bounds the same use ends the case."""
    does = workload.idle().then(START + timedelta(hours=1), WORKS_ON_CPU)
    stages.append(alone := Stage(tmp_path, idle_machine(does=does)))
    alone.days((0, 1))
    assert alone.verbs() == ["stop"]

    ledger = f"sqlite:///{tmp_path}/shipped.sqlite3"
    under = policy(rule(idle=SHIPPED_BOUNDS))
    stages.append(whole := Stage(tmp_path, idle_machine(does=does), under=under, ledger=ledger))
    whole.days((0, 1))
    assert whole.verbs() == []


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_case_is_held_while_its_zero_is_contradicted(tmp_path: Path, stages: list[Stage], cloud: str) -> None:
    """Told of on the first day; then work begins and the exporter sticks at 0."""
    does = workload.idle().then(START + timedelta(hours=2), workload.STUCK_AT_0)
    stages.append(stage := Stage(tmp_path, idle_machine(cloud=cloud, does=does)))

    stage.day(0)
    stage.at(DAY)

    assert stage.verbs() == []
    case = stage.case()
    assert (case.status, case.reason.code) == (CaseStatus.HELD, ReasonCode.UNMEASURED)
    assert case.reason.facts["cause"] == "contradicted"
