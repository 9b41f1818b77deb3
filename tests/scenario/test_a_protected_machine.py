"""A machine that its cloud protects, day by day: stopped, its owner told, and never terminated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.builders import policy, rule
from tests.scenario.stage import CLOUDS, Stage, idle_machine

from costguard.cases import CaseStatus
from costguard.domain.reasons import ReasonCode
from costguard.guards.rules.common import Bars, Protection
from costguard.policy.model.policy import Policy
from costguard.report.words.sentences import Language

TERMINATION, STOP = "termination_protection", "stop_protection"


def terminate_alone() -> Policy:
    """The house reads termination protection as the clouds mean it."""
    return policy(
        rule(termination_protection_bars=Bars.TERMINATE),
        protection=Protection(termination_protection_bars=Bars.TERMINATE),
    )


@pytest.fixture(params=CLOUDS)
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Stage]:
    protected = idle_machine(cloud=request.param, protections=(TERMINATION,))
    made = Stage(tmp_path, protected, under=terminate_alone())
    yield made
    made.close()


def protect(stage: Stage, protection: str = TERMINATION, *, on: bool = True) -> None:
    stage.cloud.protect(stage.ref().native_id, protection, "owner", on=on)


def test_it_is_stopped_and_there_its_ladder_ends(stage: Stage) -> None:
    stage.day(0)
    (told,) = stage.mailbox.messages
    assert "will be stopped" in told.title
    assert "terminate: not before" not in told.text.lower()
    assert "terminate: barred by termination_protection, set at the cloud" in told.text.lower()
    stage.days((1, 2, 3))
    assert stage.state() == "stopped"
    assert stage.mailbox.titles[1:] == ["notebook was stopped"]
    assert "terminate: barred by termination_protection" in stage.mailbox.messages[-1].text.lower()
    stage.days(range(4, 20))
    assert stage.verbs() == ["stop"], "no copy that nothing would follow, and no terminate"
    assert len(stage.mailbox.messages) == 2, "nobody is told again and again"
    case = stage.case()
    assert (case.status, case.reason.code, case.rung) == (CaseStatus.HELD, ReasonCode.PROTECTED_BY_CLOUD, 2)
    assert stage.reports[-1].plan is not None
    assert [held.reason.code for held in stage.reports[-1].plan.held] == [ReasonCode.PROTECTED_BY_CLOUD]


def test_once_the_protection_is_lifted_a_notice_and_the_whole_quarantine_come_first(stage: Stage) -> None:
    stage.days(range(15))
    protect(stage, on=False)
    stage.days(range(15, 22))
    assert "it will be terminated on 2026-03-24" in stage.mailbox.titles[-1]
    assert stage.verbs() == ["stop"]
    stage.days(range(22, 26))
    assert stage.verbs() == ["stop", "snapshot", "terminate"]


def test_protection_set_during_the_quarantine_bars_the_end_and_is_told(stage: Stage) -> None:
    protect(stage, on=False)
    stage.days(range(4))
    assert "will be terminated" in stage.mailbox.titles[-1]
    protect(stage)
    stage.days(range(4, 20))
    assert stage.verbs() == ["stop"]
    assert "terminate: barred by termination_protection" in stage.mailbox.messages[-1].text.lower()
    protect(stage, on=False)
    stage.days(range(20, 27))
    assert stage.verbs() == ["stop"], "what was announced before the protection does not count any more"
    stage.days(range(27, 31))
    assert stage.verbs() == ["stop", "snapshot", "terminate"]


def test_protection_set_just_before_the_end_is_seen_in_the_last_look(stage: Stage) -> None:
    protect(stage, on=False)
    stage.days(range(12))
    assert stage.verbs() == ["stop", "snapshot"]
    read = stage.inventory.details

    def set_between(refs):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        if len(asked) == 1:
            protect(stage)
        asked.append(refs)
        return read(refs)

    asked: list[object] = []
    stage.inventory.details = set_between  # type: ignore[method-assign]
    stage.day(12)
    assert len(asked) == 2, "once for the plan, and once just before the call"
    assert stage.verbs() == ["stop", "snapshot"]
    assert stage.case().reason.code is ReasonCode.PROTECTED_BY_CLOUD


def test_under_the_strict_reading_nobody_touches_it(stage: Stage) -> None:
    stage.policy = policy()
    stage.days(range(15))
    assert stage.verbs() == []
    assert stage.mailbox.messages == []


def test_setting_the_key_begins_with_a_notice_and_the_full_grace(stage: Stage) -> None:
    """Also for a case that was told and stood at its stop when the protection was lifted and the key set."""
    stage.policy = policy()
    protect(stage, on=False)
    stage.day(0)
    assert stage.case().rung == 1
    stage.policy = terminate_alone()
    stage.day(1)
    assert stage.verbs() == [], "the wait of the day before counts no more"
    assert len(stage.mailbox.messages) == 2
    stage.day(2)
    assert stage.verbs() == ["stop"]


def test_chinese_readers_are_told_what_bars_the_end(stage: Stage) -> None:
    from dataclasses import replace

    stage.run_with(replace(stage.world(), language=Language.ZH.value))
    assert "受云上保护设置 termination_protection 阻止" in stage.mailbox.messages[0].text


@pytest.mark.parametrize("under", [policy(), terminate_alone()])
def test_stop_protection_of_aws_bars_the_stop_and_nobody_is_told_of_one(tmp_path: Path, under: Policy) -> None:
    stage = Stage(tmp_path, idle_machine(protections=(STOP,)), under=under)
    stage.days(range(5))
    assert stage.verbs() == []
    assert stage.mailbox.messages == []
    assert stage.case().reason.facts == {"protection": STOP}
    stage.cloud.protect(stage.ref().native_id, STOP, "owner", on=False)
    stage.days((5, 6))
    assert stage.verbs() == ["stop"]
    stage.close()


def test_stop_protection_set_after_the_notice_bars_the_stop_until_it_is_announced_anew(tmp_path: Path) -> None:
    stage = Stage(tmp_path, idle_machine(), under=terminate_alone())
    stage.day(0)
    protect(stage, STOP)
    stage.days((1, 2, 3))
    assert stage.verbs() == []
    protect(stage, STOP, on=False)
    stage.day(4)
    assert stage.verbs() == []
    assert len(stage.mailbox.messages) == 2
    stage.day(5)
    assert stage.verbs() == ["stop"]
    stage.close()


def test_stop_protection_set_in_the_quarantine_bars_the_end(tmp_path: Path) -> None:
    """EC2: stop protection also protects from termination."""
    stage = Stage(tmp_path, idle_machine(), under=terminate_alone())
    stage.days(range(4))
    protect(stage, STOP)
    stage.days(range(4, 20))
    assert stage.verbs() == ["stop"]
    stage.close()
