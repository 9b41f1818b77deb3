"""What a person's look at a lost answer leaves of a case: the wait from its notice, and a stop that happened."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.builders import DAY, NOW, case, rule

from costguard.cases import Case, CaseStatus, ClimbedRung, claimed, decision_id, speaks_for
from costguard.cases.resolve import SETTLE, begun_anew, is_old
from costguard.domain.actions import Verb
from costguard.domain.reasons import Reason, ReasonCode
from costguard.guards.rules.common import Step
from costguard.policy.model.terms import terms

WARNED, STOPPED = ClimbedRung(Verb.WARN, NOW - 9 * DAY), ClimbedRung(Verb.STOP, NOW - 8 * DAY)
TOLD_AGAIN = ClimbedRung(Verb.WARN, NOW - 7 * DAY)
SECOND = timedelta(seconds=1)


def lost(rung: int, *climbed: ClimbedRung, of: str = terms(rule())) -> Case:
    """A call claimed a day ago, the third attempt after two failures."""
    return claimed(case(rung=rung, climbed=climbed, attempt=3, failures=2, terms=of), NOW - DAY)


def anew(of: Case, rung: int, *climbed: ClimbedRung) -> Case:
    reason = Reason(ReasonCode.NOT_TAKEN_EFFECT, {"failures": 3})
    waits = case(status=CaseStatus.HELD, rung=rung, climbed=climbed, attempt=4, since=NOW, reason=reason)
    return replace(waits, terms=of.terms)


def test_before_the_stop_everything_begins_again_with_its_notice() -> None:
    before = lost(1, WARNED)
    assert begun_anew(before, NOW) == anew(before, 0)


def test_a_stop_that_happened_stays_and_its_notice_is_made_anew() -> None:
    before = lost(4, WARNED, STOPPED, TOLD_AGAIN)
    assert begun_anew(before, NOW) == anew(before, 2, STOPPED)


def test_a_rule_that_has_no_stop_any_more_begins_with_its_first_rung() -> None:
    telling = terms(rule(ladder=(Step(Verb.WARN, timedelta(0)),)))
    before = lost(1, WARNED, STOPPED, of=telling)
    assert begun_anew(before, NOW) == anew(before, 0)


@pytest.mark.parametrize(("ago", "old"), [(SETTLE - SECOND, False), (SETTLE, True), (SETTLE + SECOND, True)])
def test_a_claim_is_old_when_its_effect_would_show(ago: timedelta, *, old: bool) -> None:
    assert is_old(claimed(case(), NOW - ago), NOW) is old


def test_what_was_never_claimed_is_not_old() -> None:
    assert not is_old(case(), NOW)


def test_the_decision_a_case_remembers_speaks_for_it_as_does_the_current_one() -> None:
    remembers = case(decision_id="decision-1")
    assert speaks_for("decision-1", remembers)
    assert speaks_for(decision_id(remembers), remembers)
    assert not speaks_for("", case())
