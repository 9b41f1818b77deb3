"""A type that may not start again once stopped: its owner is asked, or it is never stopped, or it is as any other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.builders import T4, instance, policy, rule
from tests.scenario.stage import DAY, Stage, idle_machine

from costguard.cases.case import CaseStatus
from costguard.domain.reasons import ReasonCode
from costguard.engine.answers import answers
from costguard.guards.rules.common import SCARCE_MODELS, SHIPPED, Limits, Scarce
from costguard.policy.model.terms import rule_from_terms, terms

TYPE, HOUR = "g5g.xlarge", timedelta(hours=1)


@pytest.fixture
def stage_of(tmp_path: Path) -> Callable[..., Stage]:
    def made(**limits: Any) -> Stage:
        limited = replace(rule().limits, **limits)
        return Stage(tmp_path, idle_machine(), under=policy(rule(limits=limited)))

    return made


def test_its_owner_is_asked_and_one_yes_stops_it_once(stage_of: Callable[..., Stage]) -> None:
    stage = stage_of(scarce_types=(TYPE,))
    stage.days(range(3))
    assert stage.verbs() == []
    assert stage.case().status is CaseStatus.HELD
    assert stage.case().reason.code is ReasonCode.APPROVAL_NEEDED
    warned, asked = stage.mailbox.messages
    assert f"because {TYPE} may not start again" in warned.text
    assert "not before" not in warned.text, "what waits for leave has no date"
    assert f"{TYPE} may not start again once stopped" in asked.text
    answers.approve(stage.memory, "idle_gpu", str(stage.ref()), "vision", stage.clock.now())
    stage.at(2 * DAY + HOUR)
    assert stage.verbs() == ["stop"]
    stage.close()


def test_where_it_holds_nobody_is_asked_and_nothing_is_stopped(stage_of: Callable[..., Stage]) -> None:
    stage = stage_of(scarce_types=(TYPE,), scarce=Scarce.HOLD)
    stage.days(range(4))
    assert (stage.verbs(), stage.case().reason.code) == ([], ReasonCode.SCARCE_TYPE)
    stage.close()


@pytest.mark.parametrize("limits", [{"scarce_types": (TYPE,), "scarce": Scarce.STOP}, {"scarce_types": ("p5*",)}, {}])
def test_what_is_not_on_the_list_or_may_be_stopped_is_stopped(
    stage_of: Callable[..., Stage], limits: dict[str, Any]
) -> None:
    stage = stage_of(**limits)
    stage.days(range(2))
    assert stage.verbs() == ["stop"]
    stage.close()


def test_one_word_is_asked_for_the_disk_and_the_place(tmp_path: Path) -> None:
    limited = replace(rule().limits, scarce_types=("g4dn.*",))
    stage = Stage(tmp_path, idle_machine(kind="g4dn.xlarge"), under=policy(rule(limits=limited)))
    stage.days(range(2))
    facts = stage.case().reason.facts
    assert ("local_disk_gib" in facts, facts.get("scarce")) == (True, "g4dn.xlarge")
    answers.approve(stage.memory, "idle_gpu", str(stage.ref()), "vision", stage.clock.now())
    stage.at(DAY + HOUR)
    assert stage.verbs() == ["stop"]
    stage.close()


@pytest.mark.parametrize("model", SCARCE_MODELS)
def test_a_list_extends_the_shipped_one_or_takes_its_place(model: str) -> None:
    machine = instance(accelerator=replace(T4, model=f"NVIDIA {model}"))
    assert Limits().is_scarce(machine)
    assert Limits(scarce_types=(SHIPPED, "p5.*")).is_scarce(machine)
    assert not Limits(scarce_types=("p5.*",)).is_scarce(machine)
    assert Limits(scarce_types=(TYPE.upper(),)).is_scarce(machine)
    assert not Limits(scarce_types=()).is_scarce(machine), "an empty list is none, and not all"


def test_a_type_whose_card_is_told_by_another_name_is_on_the_list() -> None:
    masked = instance(instance_type="ecs.gn7e-c16g1.4xlarge", accelerator=replace(T4, model="GPU H"))
    assert Limits().is_scarce(masked)


def test_a_rule_that_says_nothing_of_it_keeps_its_digest_and_is_read_back() -> None:
    assert "scarce" not in terms(rule())
    said = rule(limits=replace(rule().limits, scarce=Scarce.HOLD, scarce_types=("H100",)))
    back = rule_from_terms(terms(said)).limits
    assert (back.scarce, back.scarce_types) == (Scarce.HOLD, ("H100",))
