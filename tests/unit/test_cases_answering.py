"""Whose answer counts, and what a keep and a "not mine" come to: the whole result is compared, with what it says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.builders import DAY, NOW, STOP_THEN_TERMINATE, case, ref, rule, usd

from costguard.cases import Case, CaseStatus, ClimbedRung, Phase, decision_id
from costguard.cases.answering import Accepted, AnswerContext, AnsweredNotice, Refused, Weighed, takes_two, weigh
from costguard.domain.actions import Verb
from costguard.domain.answers import Answer, AnswerCode, AnswerKind, AnswerRef, Person
from costguard.domain.money import Money
from costguard.guards.rules.common import Mode
from costguard.policy.model.policy import AnswerTerms
from costguard.policy.model.terms import terms

OWNER = Person("slack", "U-ANA", "T-1")
APPROVER = Person("slack", "U-LEAD", "T-1")
STRANGER = Person("slack", "U-BEN", "T-1")
OPERATOR = Person("cli", "root")
MAILED = Person("link", "ana@example.com")
TERMS = AnswerTerms(slack_team="T-1", approvers=("U-LEAD",))
NOTICE = AnsweredNotice("slack:#gpu", "C-GPU", usd("1.00"))
NAMED = {"resource": str(ref()), "name": "notebook", "owner": "nlp"}
NOTICED = case(owner="nlp", climbed=(ClimbedRung(Verb.WARN, NOW - DAY),))


def ground(of: Case | None = NOTICED, **changes: Any) -> AnswerContext:
    """A notice in the owners' channel, answered from there."""
    ordinary = {"told": (NOTICE,), "terms": TERMS, "now": NOW, "came_through": "C-GPU", "people": ("U-ANA",)}
    return AnswerContext(of, **{**ordinary, **changes})


def said(kind: AnswerKind, by: Person = OWNER, of: Case = NOTICED, length: timedelta | None = None) -> Answer:
    return Answer(kind, AnswerRef(of.case_id, decision_id(of)), by, NOW, length)


def kept(by: Person = OWNER, length: timedelta | None = DAY, of: Case = NOTICED, **changes: Any) -> Weighed:
    return weigh(said(AnswerKind.KEEP, by, of, length), ground(of, **changes))


def disowned(by: Person = OWNER, of: Case = NOTICED, **changes: Any) -> Weighed:
    return weigh(said(AnswerKind.NOT_MINE, by, of), ground(of, **changes))


def test_scripts_read_the_code_of_an_answer_as_its_name_in_small_letters() -> None:
    assert [code.value for code in AnswerCode] == [code.name.lower() for code in AnswerCode]


# --- whose answer counts


@pytest.mark.parametrize(
    ("by", "changes", "code"),
    [
        (OWNER, {"terms": AnswerTerms()}, AnswerCode.NOT_SET_UP),
        (Person("slack", "U-ANA"), {"terms": AnswerTerms()}, AnswerCode.NOT_SET_UP),
        (Person("slack", "U-ANA", "T-2"), {}, AnswerCode.FOREIGN_TEAM),
        (Person("slack", "U-ANA"), {}, AnswerCode.FOREIGN_TEAM),
        (OWNER, {"of": None}, AnswerCode.UNKNOWN),
        (MAILED, {"of": None}, AnswerCode.UNKNOWN),
        (OPERATOR, {"of": None}, AnswerCode.UNKNOWN),
        (OWNER, {"came_through": "C-ALL"}, AnswerCode.FOREIGN_CHANNEL),
        (OWNER, {"came_through": "slack:#gpu"}, AnswerCode.FOREIGN_CHANNEL),
        (OWNER, {"came_through": "", "told": (AnsweredNotice("", "", None),)}, AnswerCode.FOREIGN_CHANNEL),
        (OWNER, {"told": ()}, AnswerCode.FOREIGN_CHANNEL),
        (MAILED, {"came_through": "C-GPU"}, AnswerCode.FOREIGN_CHANNEL),
        (STRANGER, {"came_through": "C-ALL", "anywhere": True}, AnswerCode.FOREIGN_CHANNEL),
    ],
)
def test_whoever_may_not_answer_learns_nothing_of_the_case(
    by: Person, changes: dict[str, Any], code: AnswerCode
) -> None:
    assert weigh(said(AnswerKind.KEEP, by, length=DAY), ground(**changes)) == Refused(code, {})


@pytest.mark.parametrize(
    ("by", "changes"),
    [
        (OWNER, {}),
        (STRANGER, {}),  # whoever sits in the channel of the notice may keep the machine
        (MAILED, {"came_through": "slack:#gpu", "terms": AnswerTerms()}),
        (OPERATOR, {"came_through": "", "told": (), "terms": AnswerTerms()}),
        (OWNER, {"came_through": "C-ALL", "anywhere": True}),
        (APPROVER, {"came_through": "C-ALL", "anywhere": True}),
        (OWNER, {"came_through": "C-ALL", "told": (AnsweredNotice("slack:#all", "C-ALL", None), NOTICE)}),
    ],
)
def test_an_answer_counts_from_where_it_was_asked_for(by: Person, changes: dict[str, Any]) -> None:
    assert kept(by, **changes).code is AnswerCode.KEPT


def test_an_answer_through_another_channel_counts_only_where_the_asker_says_so() -> None:
    elsewhere = AnswerContext(NOTICED, (NOTICE,), TERMS, NOW, "C-ALL", ("U-ANA",))
    assert weigh(said(AnswerKind.KEEP, length=DAY), elsewhere).code is AnswerCode.FOREIGN_CHANNEL


def test_an_answer_that_names_no_channel_counts_for_none() -> None:
    placeless = AnswerContext(NOTICED, (AnsweredNotice("XXXX", "XXXX", None), AnsweredNotice("", "", None)), TERMS, NOW)
    assert weigh(said(AnswerKind.KEEP, length=DAY), placeless).code is AnswerCode.FOREIGN_CHANNEL


def test_an_answer_to_another_case_or_a_closed_one_is_too_late() -> None:
    over = case(owner="nlp", status=CaseStatus.CLOSED)
    assert weigh(said(AnswerKind.KEEP, of=over, length=DAY), ground(over)) == Refused(AnswerCode.OVER, NAMED)
    other = case(case_id="case-2")
    assert weigh(said(AnswerKind.KEEP, of=other, length=DAY), ground()) == Refused(AnswerCode.OVER, NAMED)


# --- keep


def test_a_keep_ends_after_the_length_that_was_asked_for() -> None:
    until = {"until": "2026-03-11T12:30+00:00"}
    assert kept() == Accepted(AnswerCode.KEPT, {**NAMED, **until}, needed=1, until=NOW + DAY, asked=False)


@pytest.mark.parametrize("length", [None, timedelta(0), -DAY, 90 * DAY + timedelta(microseconds=1)])
def test_a_keep_of_no_length_or_of_more_than_ninety_days_is_refused(length: timedelta | None) -> None:
    assert kept(length=length) == Refused(AnswerCode.BAD_LENGTH, {**NAMED, "days": 90})


@pytest.mark.parametrize("length", [timedelta(microseconds=1), 90 * DAY])
def test_a_keep_may_be_of_any_length_up_to_ninety_days(length: timedelta) -> None:
    answered = kept(length=length)
    assert isinstance(answered, Accepted)
    assert answered.until == NOW + length


def test_a_keep_never_shortens_what_somebody_kept_for_longer() -> None:
    stands = {**NAMED, "until": "2026-03-12T12:30+00:00"}
    assert kept(kept_until=NOW + 2 * DAY) == Refused(AnswerCode.KEPT_LONGER, stands)
    assert kept(kept_until=NOW + DAY).code is AnswerCode.KEPT_LONGER
    assert kept(kept_until=NOW + DAY - timedelta(seconds=1)).code is AnswerCode.KEPT


@pytest.mark.parametrize(
    ("rung", "phase", "code"),
    [
        (0, Phase.WAITING, AnswerCode.KEPT),
        (0, Phase.CLAIMED, AnswerCode.KEPT),
        (1, Phase.WAITING, AnswerCode.KEPT),
        (1, Phase.CLAIMED, AnswerCode.KEPT_LATE),
        (1, Phase.CONFIRMING, AnswerCode.KEPT_LATE),
        (3, Phase.CLAIMED, AnswerCode.KEPT_LATE),
    ],
)
def test_a_keep_that_comes_while_a_call_is_under_way_is_called_late(rung: int, phase: Phase, code: AnswerCode) -> None:
    """A notice under way is no call that could come too early for anybody."""
    assert kept(of=case(rung=rung, phase=phase)).code is code


def test_a_keep_of_what_is_no_machine_is_late_as_soon_as_its_change_is_claimed() -> None:
    assert kept(of=case(guard="kms_rotation", terms="{}", rung=0, phase=Phase.CLAIMED)).code is AnswerCode.KEPT_LATE
    assert kept(of=case(guard="kms_rotation", terms="{}", rung=0)).code is AnswerCode.KEPT


def test_a_keep_counts_though_nobody_can_act_on_the_policy() -> None:
    assert kept(policy_usable=False).code is AnswerCode.KEPT


# --- not mine


def test_whoever_is_named_as_owner_may_disown_the_machine() -> None:
    assert disowned() == Accepted(AnswerCode.DISOWNED, NAMED)


@pytest.mark.parametrize(
    ("by", "changes", "code"),
    [
        (MAILED, {"came_through": "slack:#gpu", "people": ()}, AnswerCode.NOT_AMONG_OWNERS),
        (OWNER, {"of": case(owner="nlp", guard="kms_rotation", terms="{}")}, AnswerCode.NO_MACHINE),
        (OWNER, {"of": case(owner="")}, AnswerCode.NO_OWNER),
        (OWNER, {"disowned": frozenset({"nlp", "vision"})}, AnswerCode.DISOWNED_BEFORE),
        (STRANGER, {}, AnswerCode.NOT_AMONG_OWNERS),
        (OWNER, {"of": case(owner="nlp", phase=Phase.CLAIMED)}, AnswerCode.UNDER_WAY),
    ],
)
def test_a_machine_is_not_disowned(by: Person, changes: dict[str, Any], code: AnswerCode) -> None:
    facts = {**NAMED, "owner": changes.get("of", NOTICED).owner}
    assert disowned(by, **changes) == Refused(code, facts)


@pytest.mark.parametrize(
    ("by", "changes"),
    [
        (APPROVER, {}),
        (OPERATOR, {}),
        (STRANGER, {"people": ()}),  # the policy names nobody who may answer for this owner
        (OWNER, {"disowned": frozenset({"vision"})}),
        (OWNER, {"of": case(owner="nlp", guard="budget")}),
        (OWNER, {"of": case(owner="nlp", rung=0, phase=Phase.CLAIMED)}),
    ],
)
def test_a_machine_is_disowned_by_those_who_may(by: Person, changes: dict[str, Any]) -> None:
    assert disowned(by, **changes) == Accepted(AnswerCode.DISOWNED, NAMED)


# --- what takes two people

DOLLARS_AND_YUAN = AnswerTerms(two_above=(usd("10"), Money(usd("70").amount, "CNY")))


@pytest.mark.parametrize(
    ("hourly", "two"),
    [
        (usd("10"), False),
        (usd("10.01"), True),
        (Money(usd("70").amount, "CNY"), False),
        (Money(usd("71").amount, "CNY"), True),
        (Money(usd("1").amount, "EUR"), True),
        (None, True),
    ],
)
def test_what_costs_more_than_the_amount_or_has_no_known_price_takes_two(hourly: Money | None, two: bool) -> None:  # noqa: FBT001
    assert takes_two(hourly, DOLLARS_AND_YUAN) is two
    assert takes_two(hourly, AnswerTerms()) is False


ONLY_TOLD = terms(rule(ladder=STOP_THEN_TERMINATE[:1], mode=Mode.WARN))


def test_a_case_past_the_last_step_of_its_rule_is_kept_without_ado() -> None:
    assert kept(of=case(terms=ONLY_TOLD, rung=1, phase=Phase.CLAIMED)).code is AnswerCode.KEPT_LATE
    assert kept(of=case(terms=ONLY_TOLD, rung=1)).code is AnswerCode.KEPT
