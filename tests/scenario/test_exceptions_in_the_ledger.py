"""An exception where no repository is: asked for by anybody, held only once an approver agreed who did not ask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.builders import policy
from tests.scenario.stage import CLOUDS, DAY, START, Stage, idle_machine

from costguard.cases import Case, CaseStatus
from costguard.cases.answering import CLI, LINK, SLACK, Vote
from costguard.cases.excepting import ASK_VALID_FOR, ExceptionAsk
from costguard.domain.answers import Answer, AnswerCode, AnswerKind, AnswerRef, Person
from costguard.domain.errors import InvalidInputError
from costguard.domain.findings import Verdict
from costguard.domain.reasons import ReasonCode
from costguard.engine.answers import answers, excepting
from costguard.engine.ledger.audit.people import told_again
from costguard.engine.ledger.notices import NoticeState
from costguard.guards.rules.common import Selector
from costguard.policy.model.policy import AnswerTerms, Owner, Policy
from costguard.report.words.sentences import Language

HOUR = timedelta(hours=1)
TERMS = AnswerTerms("T01", ("U0KIM", "U0LEE"))
LEE, KIM, PAT = Person(CLI, "U0LEE"), Person(CLI, "U0KIM"), Person(CLI, "U0PAT")
MONTH = 30 * DAY


def under(**more: Any) -> Policy:
    owner = Owner("vision", Selector(tags={"owner": "vision"}), "slack:#vision", ("U0PAT",))
    ordinary: dict[str, Any] = {"answers": TERMS, "owners": (owner,), "default_channel": "slack:#finops"}
    return policy(**{**ordinary, **more})


@pytest.fixture(params=CLOUDS)
def told(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """A notebook whose owner was told on day 0 that it will be stopped."""
    stage = Stage(
        tmp_path, idle_machine(cloud=request.param), idle_machine("other", cloud=request.param), under=under()
    )
    stage.day(0)
    yield stage
    stage.close()


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Stage]:
    """The same on one cloud, where clouds do not differ."""
    stage = Stage(tmp_path, idle_machine(), idle_machine("other"), under=under())
    stage.day(0)
    yield stage
    stage.close()


def asked(
    stage: Stage, by: Person = LEE, *, until: datetime | None = None, case: Case | None = None, reason: str = "release"
) -> AnswerCode:
    case, now = case or stage.case(), stage.clock.now()
    of = AnswerRef(case.case_id, answers.notice_decision(case))
    said = Answer(AnswerKind.EXCEPT, of, by, now, (until or START + MONTH) - now, reason)
    return excepting.ask(stage.memory, stage.policy, said, now, case=case).code


def question(stage: Stage) -> ExceptionAsk:
    (found,) = stage.memory.exceptions.all()
    return found


def agreed(stage: Stage, by: Person = KIM, of: AnswerRef | None = None, *, policy_usable: bool = True) -> AnswerCode:
    of, now = of or question(stage).of, stage.clock.now()
    return excepting.agree(stage.memory, stage.policy, of, by, now, policy_usable=policy_usable).code


def ended(stage: Stage, resource: str) -> str:
    now = stage.clock.now()
    return excepting.end(stage.memory, stage.policy, resource, "lee", now, Language.EN).ref_text


def stops(stage: Stage) -> list[str]:
    return [call.subject.native_id for call in stage.executor.calls if call.verb.value == "stop"]


def test_what_was_asked_for_holds_nothing_before_an_approver_agreed(told: Stage) -> None:
    assert asked(told) is AnswerCode.EXCEPTION_ASKED
    told.days(range(1, 4))
    assert sorted(stops(told)) == sorted(told.ref(name).native_id for name in ("notebook", "other"))


def test_what_was_agreed_to_is_left_alone_until_its_end_and_judged_as_any_other_then(told: Stage) -> None:
    asked(told)
    assert agreed(told) is AnswerCode.EXCEPTION_AGREED
    told.days(range(1, 30))
    assert stops(told) == [told.ref("other").native_id], "another machine is not excepted by it"
    (shown,) = [one for one in told.plan().findings if one.subject == told.ref()]
    assert (shown.verdict, shown.reason.code) == (Verdict.EXEMPT, ReasonCode.EXCEPTION)
    assert shown.reason.facts["reason"] == "release"
    assert shown.reason.facts["approver"] == "U0KIM"
    assert told.case().status is CaseStatus.CLOSED
    warned = sum("will be stopped" in title for title in told.mailbox.titles)
    told.days(range(30, 34))
    assert told.ref().native_id in stops(told)
    assert sum("will be stopped" in title for title in told.mailbox.titles) == warned + 1, "with a notice of its own"


def test_its_owner_is_told_once_seven_days_before_it_ends(notebook: Stage) -> None:
    asked(notebook)
    agreed(notebook)
    ending = f"The exception of {notebook.ref()} ends on"
    notebook.days(range(1, 23))
    assert not [title for title in notebook.mailbox.titles if title.startswith(ending)]
    notebook.days(range(23, 30))
    (message,) = [one for one in notebook.mailbox.messages if one.title.startswith(ending)]
    assert message.channel == "slack:#vision"


def test_approvers_are_asked_each_by_a_message_of_their_own_and_not_who_asked(notebook: Stage) -> None:
    asked(notebook)
    asked(notebook)
    notebook.at(DAY)
    messages = [one for one in notebook.mailbox.messages if "asks for an exception" in one.title]
    assert sorted(one.channel for one in messages) == ["slack:#finops", "slack:U0KIM"]
    (choice,) = messages[0].parts[0].choices
    assert (choice.kind, choice.of) == (AnswerKind.APPROVE, question(notebook).of)


@pytest.mark.parametrize(
    ("by", "code"),
    [
        (LEE, AnswerCode.EXCEPTION_OWN),
        (Person(SLACK, "U0LEE", "T01"), AnswerCode.UNKNOWN),
        (PAT, AnswerCode.NOT_AMONG_APPROVERS),
        (Person(SLACK, "U0PAT", "T01"), AnswerCode.UNKNOWN),
        (Person(SLACK, "U0KIM", "T02"), AnswerCode.FOREIGN_TEAM),
        (Person(LINK, "slack:#finops"), AnswerCode.NOT_AMONG_APPROVERS),
    ],
)
def test_nobodys_word_counts_but_an_approvers_who_did_not_ask(notebook: Stage, by: Person, code: AnswerCode) -> None:
    asked(notebook)
    assert agreed(notebook, by) is code
    assert not notebook.memory.snoozes.active(notebook.clock.now())
    notebook.days(range(1, 3))
    assert len(stops(notebook)) == 2


def written(stage: Stage, by: str) -> None:
    """Asked by somebody of a channel, as the ledger has it."""
    case = stage.case()
    ref, until = str(stage.ref()), START + MONTH
    stage.memory.exceptions.ask(
        ExceptionAsk(ref, case.key, case.case_id, case.rule, "vision", by, "release", until, stage.clock.now())
    )


def test_whoever_asked_in_slack_does_not_agree_at_the_command_line(notebook: Stage) -> None:
    written(notebook, "lee (slack:T01/U0LEE)")
    assert agreed(notebook, LEE) is AnswerCode.EXCEPTION_OWN


def test_to_what_somebody_asked_for_who_was_erased_nobody_agrees(notebook: Stage) -> None:
    """Nobody could say any more whose own question it was."""
    written(notebook, "person:7")
    assert agreed(notebook, KIM) is AnswerCode.EXCEPTION_OVER


def test_of_a_group_that_was_sent_a_link_two_approvers_have_to_agree(notebook: Stage) -> None:
    """Nobody knows which of them asked: of two one at most did."""
    written(notebook, "link:feishu:gpu")
    assert agreed(notebook, KIM) is AnswerCode.EXCEPTION_NEEDS_ANOTHER
    assert agreed(notebook, KIM) is AnswerCode.APPROVAL_WAITS
    assert not notebook.memory.snoozes.active(notebook.clock.now())
    assert agreed(notebook, LEE) is AnswerCode.EXCEPTION_AGREED
    notebook.days(range(1, 4))
    assert stops(notebook) == [notebook.ref("other").native_id]


def test_twice_is_once(notebook: Stage) -> None:
    assert asked(notebook) is AnswerCode.EXCEPTION_ASKED
    first = question(notebook)
    assert asked(notebook) is AnswerCode.EXCEPTION_WAITS
    assert asked(notebook, PAT, until=START + 90 * DAY) is AnswerCode.EXCEPTION_WAITS
    assert question(notebook) == first
    assert agreed(notebook) is AnswerCode.EXCEPTION_AGREED
    assert agreed(notebook) is AnswerCode.EXCEPTION_STANDS
    (kept,) = notebook.memory.snoozes.active(notebook.clock.now()).values()
    assert (kept.by, kept.approver, kept.until) == ("U0LEE", "U0KIM", START + MONTH)


def test_what_was_agreed_to_once_is_used_up(notebook: Stage) -> None:
    """Once ended, the same word brings it back no more."""
    asked(notebook)
    agreed(notebook)
    ended(notebook, str(notebook.ref()))
    assert agreed(notebook, Person(CLI, "U0KIM")) is AnswerCode.EXCEPTION_STANDS
    assert not notebook.memory.snoozes.active(notebook.clock.now())


@pytest.mark.parametrize("later", [ASK_VALID_FOR, ASK_VALID_FOR + DAY])
def test_a_word_that_comes_late_changes_nothing(notebook: Stage, later: timedelta) -> None:
    asked(notebook)
    notebook.clock.advance(later)
    assert agreed(notebook) is AnswerCode.EXCEPTION_OVER
    assert not notebook.memory.snoozes.active(notebook.clock.now())


def test_a_word_for_a_case_that_went_on_changes_nothing(notebook: Stage) -> None:
    asked(notebook)
    notebook.policy = replace(notebook.policy, idle_gpu=())
    notebook.at(HOUR)
    assert notebook.case().status is CaseStatus.CLOSED
    assert agreed(notebook) is AnswerCode.EXCEPTION_OVER
    assert asked(notebook) is AnswerCode.OVER


def test_a_word_for_another_question_changes_nothing(notebook: Stage) -> None:
    asked(notebook)
    old = question(notebook)
    assert agreed(notebook, of=AnswerRef(old.case_id, "except0123456789abcdef01234567")) is AnswerCode.OUTDATED
    assert agreed(notebook, of=AnswerRef("nothing", old.of.decision_id)) is AnswerCode.UNKNOWN
    other = notebook.case("other")
    assert agreed(notebook, of=AnswerRef(other.case_id, old.of.decision_id)) is AnswerCode.UNKNOWN
    assert not notebook.memory.snoozes.active(notebook.clock.now())


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"answers": AnswerTerms("T01")}, AnswerCode.EXCEPTION_OFF),
        ({"answers": AnswerTerms("T01", ("U0LEE",))}, AnswerCode.EXCEPTION_OFF),
        ({"longest_exception": 7 * DAY}, AnswerCode.EXCEPTION_TOO_LONG),
    ],
)
def test_what_nobody_could_agree_to_is_not_taken(notebook: Stage, changed: dict[str, object], code: AnswerCode) -> None:
    notebook.policy = under(**changed)
    assert asked(notebook) is code
    assert not list(notebook.memory.exceptions.all())


def test_a_policy_that_allows_less_by_now_is_heeded(notebook: Stage) -> None:
    asked(notebook)
    notebook.policy = under(longest_exception=7 * DAY)
    assert agreed(notebook) is AnswerCode.EXCEPTION_TOO_LONG
    assert agreed(notebook, policy_usable=False) is AnswerCode.POLICY_BROKEN
    assert not notebook.memory.snoozes.active(notebook.clock.now())


def test_an_end_that_is_past_or_kept_for_longer_is_not_asked_for(notebook: Stage) -> None:
    assert asked(notebook, until=START) is AnswerCode.EXCEPTION_TOO_LONG
    answers.snooze(notebook.memory, notebook.ref(), 40 * DAY, "pat", "", notebook.clock.now())
    assert asked(notebook) is AnswerCode.KEPT_LONGER


def test_ending_it_starts_the_steps_anew_with_a_notice(notebook: Stage) -> None:
    asked(notebook)
    agreed(notebook)
    notebook.days(range(1, 3))
    with pytest.raises(InvalidInputError, match="is excepted until 2026-04-01"):
        answers.snooze(notebook.memory, notebook.ref(), HOUR, "pat", "", notebook.clock.now())
    assert ended(notebook, notebook.ref().native_id) == str(notebook.ref())
    with pytest.raises(InvalidInputError, match="has no exception in the ledger"):
        ended(notebook, notebook.ref().native_id)
    before = len(notebook.mailbox.titles)
    notebook.days(range(3, 6))
    assert notebook.ref().native_id in stops(notebook)
    told_anew = [part.title for one in notebook.mailbox.messages[before:] for part in one.parts]
    assert sum(title.startswith("notebook is idle and will be stopped") for title in told_anew) == 1


def test_what_was_taken_back_is_agreed_to_no_more(notebook: Stage) -> None:
    asked(notebook)
    notebook.at(HOUR)
    ended(notebook, str(notebook.ref()))
    assert agreed(notebook) is AnswerCode.EXCEPTION_OVER
    (message, *_) = notebook.memory.outbox.beginning_with("exception-asked")
    assert (message.state, message.status) == (NoticeState.DELIVERED, "Ended by lee")


def test_a_word_of_the_last_moment_is_heeded_by_a_plan_that_did_not_know_it(notebook: Stage) -> None:
    asked(notebook)

    class Agreeing:
        """Agrees to the exception of the notebook while the other one is stopped, before its turn."""

        def details(self, refs: object) -> object:
            if question(notebook).is_open(notebook.clock.now()) and notebook.clock.now() > START + DAY:
                agreed(notebook)
            return notebook.inventory.details(refs)  # type: ignore[arg-type]

        def __getattr__(self, name: str) -> object:
            return getattr(notebook.inventory, name)

    notebook.reading = replace(notebook.reading, inventory=Agreeing())  # type: ignore[arg-type]
    notebook.at(DAY + HOUR)
    assert notebook.ref().native_id not in stops(notebook)


def test_every_word_of_it_is_in_the_audit(notebook: Stage) -> None:
    asked(notebook)
    agreed(notebook)
    ended(notebook, str(notebook.ref()))
    store = notebook.memory.store
    facts = [told_again(store, record) for record in store.query("audit")]
    found = [one for one in facts if one.get("exception") == str(question(notebook).of)]
    assert [(one["did"], one["by"], one.get("approver")) for one in found] == [
        ("asked", "U0LEE", None),
        ("agreed", "U0LEE", "U0KIM"),
    ]
    (ending,) = [one for one in facts if one.get("reason") == "cleared"]
    assert (ending["resource"], ending["by"]) == (str(notebook.ref()), "lee")


def test_a_keep_that_nobody_agreed_to_is_no_exception(notebook: Stage) -> None:
    answers.snooze(notebook.memory, notebook.ref(), 40 * DAY, "pat", "", notebook.clock.now())
    notebook.day(1)
    assert notebook.case().status is CaseStatus.SNOOZED
    assert not [one for one in notebook.plan().findings if one.reason.code is ReasonCode.EXCEPTION]


def test_the_ledger_takes_no_agreement_of_who_asked(notebook: Stage) -> None:
    """Whoever calls it: their word is not even written."""
    asked(notebook)
    now = notebook.clock.now()
    after = notebook.memory.exceptions.agree(question(notebook), Vote("slack:T01/U0LEE", now, now + DAY), "lee", now)
    assert after == question(notebook)
    assert not after.votes
    assert not notebook.memory.snoozes.active(now)


def test_a_keep_that_came_at_the_last_moment_and_lasts_longer_is_not_cut_short(notebook: Stage) -> None:
    """It was said after the word was weighed: the owner was told that nothing is done before its end."""
    assert asked(notebook) is AnswerCode.EXCEPTION_ASKED
    now = notebook.clock.now()
    longer = answers.snooze(notebook.memory, notebook.ref(), 2 * MONTH, "pat", "release", now)

    after = notebook.memory.exceptions.agree(question(notebook), Vote("slack:T01/U0KIM", now, now + DAY), "kim", now)

    assert after is None
    assert notebook.memory.snoozes.active(now)[str(notebook.ref())].until == longer.until
