"""Asking for an exception in Slack: a window, a question that approvers get by a message each, and their button."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.builders import NOW
from tests.slack_rig import (
    ANOTHER,
    APPROVE,
    APPROVER,
    EXCEPT,
    HOUR,
    OWNER,
    POLICY,
    SECOND,
    STRANGER,
    Office,
    Rig,
    stopping_case,
)

from costguard.adapters.notifiers.router import NotifierRouter
from costguard.cases import CaseStatus
from costguard.cases.excepting import AskPhase
from costguard.engine.notify.choices import choices_for
from costguard.engine.notify.delivery import deliver_due
from costguard.report.words.sentences import Language

SUBJECT = str(stopping_case().subject)


@pytest.fixture(scope="module")
def office() -> Iterator[Office]:
    shared = Office()
    yield shared
    shared.slack.close()


@pytest.fixture
def rig(tmp_path: Path, office: Office) -> Iterator[Rig]:
    made = Rig(tmp_path, office.tidied())
    yield made
    made.close()


def asked(rig: Rig, user: str = OWNER, until: str = "2026-04-30", because: str = "release tests") -> dict[str, Any]:
    """Told, asked by the window, and delivered to approvers: what the window says then."""
    rig.press(rig.told(stopping_case()), EXCEPT, user)
    view = rig.slack.views[-1]
    answer = rig.send(rig.slack.submit_view(view.view_id, {"until": until, "because": because}, user))
    router = NotifierRouter({"slack": rig.office.notifier}, default="slack")
    deliver_due(rig.memory.outbox, router, rig.clock, max_wait=timedelta(0), language=Language(rig.language))
    document: dict[str, Any] = json.loads(answer.body)
    return document


def agreed(rig: Rig, user: str, channel: str = "#gpu-costs", **more: str) -> str:
    posted = next(one for one in reversed(rig.slack.posted) if one.channel == channel)
    assert rig.press(posted.ts, APPROVE, user, **more).status == 200
    return rig.said()


def test_the_window_asks_and_approvers_are_told_each_by_a_message_but_nothing_is_held(rig: Rig) -> None:
    shown = asked(rig)
    assert rig.slack.views[-1].view["title"]["text"] == "Ask for an exception"
    assert "Nothing is held before an approver agrees" in shown["view"]["blocks"][0]["text"]["text"]
    (question,) = rig.memory.exceptions.all()
    assert (question.ref_text, question.reason, question.until.isoformat()) == (
        SUBJECT,
        "release tests",
        "2026-05-01T00:00:00+00:00",
    )
    assert [one.channel for one in rig.slack.posted][1:] == ["#gpu-costs", f"#{APPROVER}", f"#{SECOND}"]
    assert rig.memory.snoozes.active(NOW) == {}


@pytest.mark.parametrize("channel", ["#gpu-costs", f"#{APPROVER}"])
def test_an_approvers_button_makes_it_hold_and_the_messages_say_so(rig: Rig, channel: str) -> None:
    asked(rig)
    assert "is left alone until 2026-05-01 00:00 UTC" in agreed(rig, APPROVER, channel)
    kept = rig.memory.snoozes.active(NOW)[SUBJECT]
    assert APPROVER in kept.approver
    assert OWNER in kept.by
    assert {one.status for one in rig.memory.outbox.beginning_with("exception-asked")} == {f"Agreed by {kept.approver}"}
    assert "was agreed to already" in agreed(rig, SECOND)


@pytest.mark.parametrize(
    ("user", "more", "said"),
    [
        (OWNER, {}, "Only approvers"),
        (STRANGER, {}, "Only approvers"),
        (APPROVER, {"team": "T0ELSEWHERE"}, "workspace"),
    ],
)
def test_a_strangers_button_changes_nothing(rig: Rig, user: str, more: dict[str, str], said: str) -> None:
    asked(rig)
    before = rig.records()
    assert said in agreed(rig, user, **more)
    assert rig.records() == before


def test_a_message_copied_to_another_channel_changes_nothing(rig: Rig) -> None:
    asked(rig)
    before = rig.records()
    rig.slack.posted[1] = replace(rig.slack.posted[1], channel="#elsewhere")
    assert "channel" in agreed(rig, APPROVER, "#elsewhere")
    assert rig.records() == before


def test_an_approver_who_asked_agrees_to_nothing(rig: Rig) -> None:
    asked(rig, APPROVER)
    assert [one.channel for one in rig.slack.posted][1:] == ["#gpu-costs", f"#{SECOND}"]
    assert "somebody else has to agree" in agreed(rig, APPROVER)
    assert rig.memory.snoozes.active(NOW) == {}
    assert "is left alone" in agreed(rig, SECOND)


def test_asking_twice_is_one_question(rig: Rig) -> None:
    asked(rig)
    posted = len(rig.slack.posted)
    rig.press(rig.slack.posted[0].ts, EXCEPT, ANOTHER)
    sent = {"until": "2026-05-30", "because": "more"}
    answer = rig.send(rig.slack.submit_view(rig.slack.views[-1].view_id, sent, ANOTHER))
    assert "was asked for already" in json.loads(answer.body)["view"]["blocks"][0]["text"]["text"]
    assert len(list(rig.memory.exceptions.all())) == 1
    assert len(rig.slack.posted) == posted


def test_a_case_that_went_on_takes_neither_question_nor_agreement(rig: Rig) -> None:
    asked(rig)
    case = rig.memory.cases.get(stopping_case().key)
    assert case is not None
    rig.memory.cases.commit(case, replace(case, status=CaseStatus.CLOSED))
    assert "is over" in agreed(rig, APPROVER)
    assert rig.memory.snoozes.active(NOW) == {}
    views = len(rig.slack.views)
    rig.press(rig.slack.posted[0].ts, EXCEPT)
    assert len(rig.slack.views) == views, "no window for what would not count"


def test_an_agreement_that_comes_late_changes_nothing(rig: Rig) -> None:
    asked(rig)
    rig.clock.at = NOW + 24 * 7 * HOUR
    assert "is over" in agreed(rig, APPROVER)
    (question,) = rig.memory.exceptions.all()
    assert question.phase is AskPhase.WAITING


def test_longer_than_the_policy_allows_is_said_in_the_window(rig: Rig) -> None:
    document = asked(rig, until="2026-12-30")
    assert "at most 180 days" in document["errors"]["until"]
    assert not list(rig.memory.exceptions.all())


def test_chinese_is_spoken_where_the_deployment_speaks_it(rig: Rig) -> None:
    rig.language = "zh"
    assert "不作任何保留" in asked(rig)["view"]["blocks"][0]["text"]["text"]
    assert rig.slack.views[-1].view["title"]["text"] == "申请例外"


@pytest.mark.parametrize(("approvers", "offered"), [(f"[{APPROVER}, {SECOND}]", True), ("[]", False)])
def test_the_button_stands_where_somebody_could_agree(approvers: str, *, offered: bool) -> None:
    from tests.slack_rig import compiled

    text = POLICY.replace(f"approvers: [{APPROVER}, {SECOND}], two_approvers_above: [20 USD, 140 CNY]", "APPROVERS")
    text = text.replace("APPROVERS", f"approvers: {approvers}" if offered else "approvers: []")
    policy = compiled(text if offered else text.replace(", approvers: []", ""))
    found = [one.kind.value for one in choices_for(stopping_case(), policy, "slack:#nlp", Language.EN)]
    assert ("except" in found) is offered
    elsewhere = [one.kind.value for one in choices_for(stopping_case(), policy, "feishu:gpu", Language.EN)]
    assert "except" not in elsewhere
