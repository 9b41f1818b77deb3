"""Stop now and approve: whose word it takes, how many, for what, and until when."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.builders import DAY, NOW, STOP_THEN_TERMINATE, case, ref, rule, usd

from costguard.cases import Case, CaseStatus, ClimbedRung, Phase, decision_id
from costguard.cases.answering import (
    Accepted,
    AnswerContext,
    AnsweredNotice,
    Refused,
    Role,
    Vote,
    Weighed,
    enough,
    live_votes,
    weigh,
    with_vote,
)
from costguard.domain.actions import Verb
from costguard.domain.answers import Answer, AnswerCode, AnswerKind, AnswerRef, Person
from costguard.domain.money import Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.guards.rules.common import Mode
from costguard.policy.model.policy import AnswerTerms
from costguard.policy.model.terms import terms

ANA = Person("slack", "U-ANA", "T-1")
LEAD = Person("slack", "U-LEAD", "T-1")
STRANGER = Person("slack", "U-BEN", "T-1")
OPERATOR = Person("cli", "root")
MAILED = Person("link", "ana@example.com")
TERMS = AnswerTerms(slack_team="T-1", approvers=("U-LEAD",), two_above=(usd("10"),))
CHEAP, DEAR, PRICELESS = (AnsweredNotice("slack:#gpu", "C-GPU", hourly) for hourly in (usd("1.00"), usd("98.00"), None))
NAMED = {"resource": str(ref()), "name": "notebook", "owner": "nlp"}
WARNED, HALTED = ClimbedRung(Verb.WARN, NOW - DAY), ClimbedRung(Verb.STOP, NOW - DAY)
NOTICED = case(owner="nlp", climbed=(WARNED,))
NEEDED = Reason(ReasonCode.APPROVAL_NEEDED)
ASKING = case(owner="nlp", status=CaseStatus.HELD, reason=NEEDED, decision_id="decision1", climbed=(WARNED,))


def ground(of: Case = NOTICED, **changes: Any) -> AnswerContext:
    ordinary = {"told": (CHEAP,), "terms": TERMS, "now": NOW, "came_through": "C-GPU", "people": ("U-ANA",)}
    return AnswerContext(of, **{**ordinary, **changes})


def stop(by: Person = ANA, of: Case = NOTICED, decision: str | None = None, **changes: Any) -> Weighed:
    """Bound to the decision that the case now waits to make, if no other is named."""
    about = AnswerRef(of.case_id, decision_id(of) if decision is None else decision)
    return weigh(Answer(AnswerKind.STOP_NOW, about, by, NOW), ground(of, **changes))


def approve(by: Person = LEAD, of: Case = ASKING, decision: str = "decision1", **changes: Any) -> Weighed:
    about = AnswerRef(of.case_id, decision)
    return weigh(Answer(AnswerKind.APPROVE, about, by, NOW), ground(of, **changes))


def vote(by: Person, at: datetime = NOW, *, asked: bool = False, role: Role = Role.UNLISTED) -> Vote:
    return Vote(str(by), at, at + timedelta(hours=24), asked, role)


# --- votes


def test_a_vote_counts_until_it_expires_and_no_longer() -> None:
    one = vote(ANA, NOW - timedelta(hours=24))
    assert live_votes((one,), NOW - timedelta(seconds=1)) == (one,)
    assert live_votes((one,), NOW) == ()


def test_two_people_are_two_different_people() -> None:
    twice = (vote(ANA), vote(ANA, NOW - timedelta(hours=1)))
    assert enough(twice, 1, NOW)
    assert not enough(twice, 2, NOW)
    assert enough((*twice, vote(LEAD)), 2, NOW)
    assert not enough((vote(ANA), vote(LEAD, NOW - DAY)), 2, NOW)


def test_nobody_agrees_with_nothing() -> None:
    assert not enough((), 0, NOW)


def test_those_who_asked_for_it_are_never_enough_among_themselves() -> None:
    assert not enough((vote(ANA, asked=True), vote(LEAD, asked=True)), 2, NOW)
    assert enough((vote(ANA, asked=True), vote(LEAD)), 2, NOW)


def test_a_word_that_names_no_request_is_of_somebody_who_did_not_ask() -> None:
    assert enough((Vote("cli:root", NOW, NOW + DAY),), 1, NOW)


def test_a_second_vote_of_one_person_adds_nothing() -> None:
    first, again, other = vote(ANA), vote(ANA, NOW + timedelta(hours=1)), vote(LEAD)
    old = vote(STRANGER, NOW - DAY)
    assert with_vote((old, first), again, NOW) == (first,)
    assert with_vote((old, first), other, NOW) == (first, other)
    assert with_vote((old,), vote(STRANGER), NOW) == (vote(STRANGER),)


# --- stop now: whose word


@pytest.mark.parametrize("by", [ANA, LEAD, OPERATOR])
def test_owners_approvers_and_operators_may_have_a_machine_stopped_now(by: Person) -> None:
    assert stop(by) == Accepted(AnswerCode.STOP_ASKED, NAMED, needed=1)


@pytest.mark.parametrize(
    ("by", "through"), [(STRANGER, "C-GPU"), (MAILED, "slack:#gpu"), (replace(MAILED, id="U-ANA"), "slack:#gpu")]
)
def test_nobody_else_may_and_no_link_ever_can(by: Person, through: str) -> None:
    assert stop(by, came_through=through) == Refused(AnswerCode.NOT_AMONG_OWNERS, NAMED)


# --- stop now: for what


def barred(of: Case = NOTICED, decision: str | None = None, **changes: Any) -> AnswerCode:
    answered = stop(ANA, of, decision, **changes)
    assert isinstance(answered, Refused)
    return answered.code


def test_nothing_is_stopped_early_while_the_policy_is_too_old_to_act_on() -> None:
    assert barred(policy_usable=False) is AnswerCode.POLICY_BROKEN


def test_only_machines_can_be_stopped() -> None:
    assert barred(replace(NOTICED, guard="kms_rotation", terms="{}")) is AnswerCode.NOTHING_TO_STOP
    assert stop(of=replace(NOTICED, guard="budget")).code is AnswerCode.STOP_ASKED


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.WARN])
def test_what_is_only_rehearsed_is_not_stopped_because_somebody_asks(mode: Mode) -> None:
    assert barred(replace(NOTICED, mode=mode)) is AnswerCode.ONLY_REHEARSED


def test_a_keep_beats_a_stop_for_as_long_as_it_lasts() -> None:
    stands = {**NAMED, "until": "2026-03-10T12:31+00:00"}
    assert stop(kept_until=NOW + timedelta(minutes=1)) == Refused(AnswerCode.IS_KEPT, stands)
    assert stop(kept_until=NOW).code is AnswerCode.STOP_ASKED


def test_an_old_notice_stops_nothing_any_more() -> None:
    assert barred(decision="decisionofyesterday") is AnswerCode.OUTDATED
    assert barred(replace(NOTICED, status=CaseStatus.SNOOZED)) is AnswerCode.OUTDATED


def test_a_stop_comes_right_behind_a_delivered_notice_or_not_at_all() -> None:
    assert barred(replace(NOTICED, climbed=())) is AnswerCode.NOTHING_TO_STOP
    assert barred(replace(NOTICED, climbed=(WARNED, HALTED))) is AnswerCode.NOTHING_TO_STOP
    assert stop(of=replace(NOTICED, climbed=(HALTED, WARNED))).code is AnswerCode.STOP_ASKED


@pytest.mark.parametrize("rung", [0, 2, 3, 4, 5])
def test_no_other_step_than_the_stop_is_ever_hastened(rung: int) -> None:
    assert barred(replace(NOTICED, rung=rung)) is AnswerCode.NOTHING_TO_STOP


def test_a_notice_may_be_answered_while_its_delivery_is_being_noted() -> None:
    """People are quicker than the run that writes down what the channel said."""
    sent = case(owner="nlp", rung=0, phase=Phase.CLAIMED)
    assert stop(of=sent).code is AnswerCode.STOP_ASKED
    assert stop(of=replace(sent, phase=Phase.CONFIRMING)).code is AnswerCode.STOP_ASKED
    assert stop(of=replace(sent, decision_id=decision_id(sent))).code is AnswerCode.STOP_ASKED


def test_of_two_notices_only_the_one_being_delivered_may_be_answered() -> None:
    sent = case(owner="nlp", rung=0, phase=Phase.CLAIMED, decision_id="decision0")
    assert stop(of=sent, decision="decision0").code is AnswerCode.STOP_ASKED
    assert barred(sent) is AnswerCode.NOTHING_TO_STOP


def test_a_notice_that_no_stop_follows_cannot_be_answered_with_a_stop() -> None:
    only_told = terms(rule(ladder=STOP_THEN_TERMINATE[:1]))
    assert barred(case(terms=only_told, rung=0, phase=Phase.CLAIMED)) is AnswerCode.NOTHING_TO_STOP
    assert barred(case(rung=2, phase=Phase.CLAIMED)) is AnswerCode.NOTHING_TO_STOP


@pytest.mark.parametrize("phase", [Phase.CLAIMED, Phase.CONFIRMING])
def test_a_stop_under_way_needs_nobody_to_ask_for_it(phase: Phase) -> None:
    assert barred(replace(NOTICED, phase=phase)) is AnswerCode.UNDER_WAY


def test_where_an_approval_is_missing_asking_again_is_none() -> None:
    assert barred(replace(NOTICED, status=CaseStatus.HELD, reason=NEEDED)) is AnswerCode.WAITS_FOR_APPROVAL
    capped = replace(NOTICED, status=CaseStatus.HELD, reason=Reason(ReasonCode.CAP_ACTIONS))
    assert stop(of=capped).code is AnswerCode.STOP_ASKED
    assert stop(of=replace(NOTICED, reason=NEEDED)).code is AnswerCode.STOP_ASKED


# --- stop now: how many


@pytest.mark.parametrize("told", [(DEAR,), (CHEAP, DEAR), (PRICELESS, CHEAP), ()])
def test_what_is_dear_or_of_unknown_price_takes_two_to_stop(told: tuple[AnsweredNotice, ...]) -> None:
    """Told nowhere: nobody can say what it costs."""
    assert stop(OPERATOR, told=told) == Accepted(AnswerCode.STOP_NEEDS_ANOTHER, NAMED, needed=2)
    second = stop(OPERATOR, told=told, votes=(vote(LEAD),))
    assert second == Accepted(AnswerCode.STOP_ASKED, NAMED, needed=2)


def test_a_vote_of_yesterday_is_no_second_one() -> None:
    assert stop(told=(DEAR,), votes=(vote(LEAD, NOW - DAY),)).code is AnswerCode.STOP_NEEDS_ANOTHER
    barely = vote(LEAD, NOW - DAY + timedelta(seconds=1))
    assert stop(told=(DEAR,), votes=(barely,)).code is AnswerCode.STOP_ASKED


def test_whoever_asked_before_waits_for_another() -> None:
    assert stop(told=(DEAR,), votes=(vote(ANA),)) == Refused(AnswerCode.STOP_WAITS, NAMED)
    assert stop(told=(DEAR,), votes=(vote(ANA, NOW - DAY),)).code is AnswerCode.STOP_NEEDS_ANOTHER


def test_what_enough_people_asked_for_stands() -> None:
    assert stop(votes=(vote(LEAD),)) == Refused(AnswerCode.STOP_STANDS, NAMED)
    assert stop(told=(DEAR,), votes=(vote(LEAD), vote(ANA))) == Refused(AnswerCode.STOP_STANDS, NAMED)


# --- approve

VALID = {**NAMED, "until": "2026-03-11T12:30+00:00"}


@pytest.mark.parametrize(("by", "role"), [(ANA, Role.OWNER), (LEAD, Role.APPROVER), (OPERATOR, Role.UNLISTED)])
def test_its_owner_or_an_approver_lets_the_waiting_decision_pass_for_a_day(by: Person, role: Role) -> None:
    assert approve(by) == Accepted(AnswerCode.APPROVED, VALID, needed=1, role=role)


@pytest.mark.parametrize(
    ("by", "through"),
    [
        (STRANGER, "C-GPU"),
        (MAILED, "slack:#gpu"),
        (replace(MAILED, id="U-LEAD"), "slack:#gpu"),
        (replace(MAILED, id="U-ANA"), "slack:#gpu"),
    ],
)
def test_nobody_else_approves_anything_and_no_link_ever_can(by: Person, through: str) -> None:
    assert approve(by, came_through=through) == Refused(AnswerCode.NOT_AMONG_OWNERS, NAMED)


def test_whoever_owns_another_machine_approves_nothing_here() -> None:
    assert approve(ANA, people=("U-OTHER",)) == Refused(AnswerCode.NOT_AMONG_OWNERS, NAMED)


def test_an_owner_whom_somebody_disowned_approves_no_more() -> None:
    """It was said a moment ago, and no run has told the next in line yet."""
    assert approve(ANA, disowned=frozenset({"nlp"})) == Refused(AnswerCode.NOT_AMONG_OWNERS, NAMED)
    assert approve(LEAD, disowned=frozenset({"nlp"})).code is AnswerCode.APPROVED


def test_an_owner_who_asked_for_the_stop_cannot_approve_its_loss_alone() -> None:
    assert approve(ANA, asked=frozenset({str(ANA)})) == Refused(AnswerCode.ASKED_BY_THEMSELVES, NAMED)


def above(amount: str, **changes: Any) -> Case:
    """Waiting under a rule that leaves this much an hour to its owner."""
    limits = replace(rule().limits, local_disk_approver_above=(usd(amount),))
    return replace(ASKING, terms=terms(rule(limits=limits)), **changes)


CLOSE = AnsweredNotice("slack:#gpu", "C-GPU", usd("9.00"))
OTHER = Person("slack", "U-OTTO", "T-1")
BOTH: dict[str, Any] = {"people": ("U-ANA", "U-OTTO", "U-LEAD"), "told": (CLOSE,)}


@pytest.mark.parametrize(("amount", "code"), [("9.00", "approved"), ("8.99", "approval_needs_approver")])
def test_above_the_amount_its_owners_word_waits_for_an_approvers(amount: str, code: str) -> None:
    assert approve(ANA, of=above(amount), told=(CLOSE,)).code.value == code


@pytest.mark.parametrize(
    "told", [(PRICELESS,), (AnsweredNotice("slack:#gpu", "C-GPU", Money(usd("1").amount, "CNY")),)]
)
def test_what_nobody_can_compare_with_the_amount_is_above_it(told: tuple[AnsweredNotice, ...]) -> None:
    terms_ = AnswerTerms(slack_team="T-1", approvers=("U-LEAD",))
    assert approve(ANA, of=above("99"), told=told, terms=terms_).code is AnswerCode.APPROVAL_NEEDS_APPROVER
    assert approve(OPERATOR, of=above("99"), told=(), terms=terms_).code is AnswerCode.APPROVAL_NEEDS_APPROVER


def test_above_the_amount_owners_are_never_enough_however_many_agree() -> None:
    said = approve(OTHER, of=above("1"), votes=(vote(ANA, role=Role.OWNER),), **BOTH)
    assert said.code is AnswerCode.APPROVAL_NEEDS_APPROVER


def test_above_the_amount_an_approver_apart_from_the_owner_is_enough() -> None:
    assert approve(LEAD, of=above("1"), told=(CLOSE,)).code is AnswerCode.APPROVED
    assert approve(LEAD, of=above("1"), told=(CLOSE,), votes=(vote(ANA, role=Role.OWNER),)).code is AnswerCode.APPROVED


def test_above_the_amount_an_approver_who_owns_it_needs_another_person() -> None:
    assert approve(LEAD, of=above("1"), **BOTH).code is AnswerCode.APPROVAL_NEEDS_APPROVER
    assert approve(LEAD, of=above("1"), votes=(vote(ANA, role=Role.OWNER),), **BOTH).code is AnswerCode.APPROVED


def test_above_the_amount_the_same_person_at_the_command_line_is_no_other_person() -> None:
    once = (vote(LEAD, role=Role.BOTH),)
    again = approve(Person("cli", "U-LEAD"), of=above("1"), votes=once, **BOTH)
    assert again.code is AnswerCode.APPROVAL_NEEDS_APPROVER


def test_above_the_amount_whoever_asked_is_never_enough_and_no_approver() -> None:
    asked = frozenset({str(LEAD)})
    assert approve(LEAD, of=above("1"), told=(CLOSE,), asked=asked).code is AnswerCode.APPROVAL_NEEDS_APPROVER
    with_owner = approve(LEAD, of=above("1"), told=(CLOSE,), asked=asked, votes=(vote(ANA, role=Role.OWNER),))
    assert with_owner.code is AnswerCode.APPROVAL_NEEDS_APPROVER


def test_above_the_amount_a_name_at_the_command_line_counts_as_the_policy_lists_it() -> None:
    assert approve(OPERATOR, of=above("1"), told=(CLOSE,)).code is AnswerCode.APPROVAL_NEEDS_APPROVER
    assert approve(Person("cli", "U-LEAD"), of=above("1"), told=(CLOSE,)).code is AnswerCode.APPROVED


def test_where_two_are_needed_they_are_never_owners_alone() -> None:
    people: dict[str, Any] = {"people": ("U-ANA", "U-OTTO"), "told": (DEAR,)}
    assert approve(ANA, **people).code is AnswerCode.APPROVAL_NEEDS_APPROVER
    assert approve(OTHER, votes=(vote(ANA, role=Role.OWNER),), **people).code is AnswerCode.APPROVAL_NEEDS_APPROVER
    assert approve(LEAD, votes=(vote(ANA, role=Role.OWNER),), **people).code is AnswerCode.APPROVED


def test_nothing_is_approved_under_a_policy_too_old_to_act_on() -> None:
    assert approve(policy_usable=False) == Refused(AnswerCode.POLICY_BROKEN, NAMED)


def test_a_keep_beats_an_approval_for_as_long_as_it_lasts() -> None:
    stands = {**NAMED, "until": "2026-03-10T12:31+00:00"}
    assert approve(kept_until=NOW + timedelta(minutes=1)) == Refused(AnswerCode.IS_KEPT, stands)
    assert approve(kept_until=NOW).code is AnswerCode.APPROVED


@pytest.mark.parametrize(
    ("of", "decision", "code"),
    [
        (ASKING, "decision0", AnswerCode.OUTDATED),
        (replace(ASKING, status=CaseStatus.OPEN), "decision1", AnswerCode.NOTHING_TO_APPROVE),
        (replace(ASKING, status=CaseStatus.OPEN), "decision0", AnswerCode.OUTDATED),
        (replace(ASKING, reason=Reason(ReasonCode.CAP_ACTIONS)), "decision1", AnswerCode.NOTHING_TO_APPROVE),
        (replace(ASKING, decision_id=""), "", AnswerCode.NOTHING_TO_APPROVE),
        (replace(ASKING, decision_id=""), "decision1", AnswerCode.OUTDATED),
    ],
)
def test_only_the_decision_that_waits_for_it_is_approved(of: Case, decision: str, code: AnswerCode) -> None:
    assert approve(of=of, decision=decision) == Refused(code, NAMED)


def test_what_is_dear_takes_two_approvers() -> None:
    first = approve(told=(DEAR,))
    assert first == Accepted(AnswerCode.APPROVAL_NEEDS_ANOTHER, VALID, needed=2, role=Role.APPROVER)
    second = approve(told=(DEAR,), votes=(vote(OPERATOR),))
    assert second == Accepted(AnswerCode.APPROVED, VALID, needed=2, role=Role.APPROVER)
    assert approve(told=(DEAR,), votes=(vote(LEAD),)) == Refused(AnswerCode.APPROVAL_WAITS, NAMED)
    both = (vote(LEAD), vote(OPERATOR))
    assert approve(told=(DEAR,), votes=both) == Refused(AnswerCode.APPROVAL_STANDS, NAMED)


def test_nobody_approves_what_they_asked_for_alone() -> None:
    own = frozenset({str(LEAD)})
    assert approve(asked=own) == Refused(AnswerCode.ASKED_BY_THEMSELVES, NAMED)
    assert approve(asked=frozenset({str(ANA)})).code is AnswerCode.APPROVED


def test_whoever_asked_may_be_one_of_two_approvers() -> None:
    own = frozenset({str(LEAD)})
    waits = Accepted(AnswerCode.APPROVAL_NEEDS_ANOTHER, VALID, needed=2, asked=True, role=Role.APPROVER)
    assert approve(told=(DEAR,), asked=own) == waits
    assert approve(told=(DEAR,), asked=own, votes=(vote(OPERATOR, asked=True),)) == waits
    passed = Accepted(AnswerCode.APPROVED, VALID, needed=2, asked=True, role=Role.APPROVER)
    assert approve(told=(DEAR,), asked=own, votes=(vote(OPERATOR),)) == passed
