"""What came of a call is found out by looking: a terminate, a notice, a call without effect."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, finding, instance, rule, seen

from costguard.cases import Case, CaseStatus, CaseStep, ClimbedRung, Phase, advance, claimed, held
from costguard.domain.actions import Outcome, Verb
from costguard.domain.findings import Verdict
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.resources import Instance, InstanceState
from costguard.guards.rules.common import Step as Rule
from costguard.policy.model.terms import terms

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
STOPPED = instance(state=InstanceState.STOPPED)
WARNED = ClimbedRung(Verb.WARN, NOW - 10 * DAY)
HALTED = ClimbedRung(Verb.STOP, NOW - 9 * DAY)
ACCEPTED: dict[str, Any] = {"intent_written": True, "last_outcome": Outcome.ACCEPTED}
DOUBT = Reason(ReasonCode.WAITING)


def called(rung: int, **changes: Any) -> Case:
    """Claimed an hour ago and then held in doubt, the third attempt, one failure before."""
    behind_stop = (WARNED, HALTED) if rung > 1 else (WARNED,) if rung else ()
    ready = case(rung=rung, climbed=behind_stop, attempt=3, failures=1)
    return replace(held(claimed(ready, NOW - HOUR), DOUBT), **changes)


def after(before: Case, subject: Instance | None = None, **changes: Any) -> CaseStep:
    """One step on; a machine that does not run is idle no longer, the verdict on it says so."""
    idle = subject is None or subject.state is InstanceState.RUNNING
    verdict = Verdict.VIOLATION if idle else Verdict.COMPLIANT
    return advance(before, seen(subject, **{"finding": finding(subject, verdict), **changes}))


def climbed(before: Case, verb: Verb) -> CaseStep:
    confirmed = replace(
        before,
        status=CaseStatus.OPEN,
        phase=Phase.WAITING,
        rung=before.rung + 1,
        climbed=(*before.climbed, ClimbedRung(verb, NOW)),
        since=NOW,
        attempt=4,
        failures=0,
        decision_id="",
        claimed_at=None,
        reason=Reason(ReasonCode.CONFIRMED, {"verb": verb.value}),
    )
    return CaseStep(confirmed)


def failed(before: Case, code: ReasonCode, failures: int = 2) -> CaseStep:
    """Known to have changed nothing: a new decision may be made."""
    free = replace(before, status=CaseStatus.HELD, phase=Phase.WAITING, attempt=4, failures=failures)
    return CaseStep(replace(free, decision_id="", claimed_at=None, reason=Reason(code, {"failures": 2})))


def awaited(before: Case) -> CaseStep:
    seen_going = replace(before, status=CaseStatus.OPEN, phase=Phase.CONFIRMING)
    return CaseStep(replace(seen_going, reason=Reason(ReasonCode.CONFIRMING)))


def in_doubt(before: Case, code: ReasonCode, facts: dict[str, FactValue] | None = None) -> CaseStep:
    return CaseStep(replace(before, status=CaseStatus.HELD, reason=Reason(code, facts or {})))


def test_a_stop_without_effect_is_given_up_after_an_hour() -> None:
    assert after(called(1), intent_written=True) == failed(called(1), ReasonCode.NOT_TAKEN_EFFECT)
    fresh = called(1, claimed_at=NOW - HOUR + SECOND)
    assert after(fresh, intent_written=True) == CaseStep(fresh), "another run may be at work on it"


def test_a_machine_seen_terminating_is_awaited() -> None:
    assert after(called(4), instance(state=InstanceState.TERMINATING)) == awaited(called(4))


@pytest.mark.parametrize("nothing_sent", [{}, {"intent_written": True, "last_outcome": Outcome.REFUSED}])
def test_a_terminate_that_was_surely_not_done_may_be_decided_anew(nothing_sent: dict[str, Any]) -> None:
    assert after(called(4), STOPPED, **nothing_sent) == failed(called(4), ReasonCode.NOT_TAKEN_EFFECT)
    fresh = called(4, claimed_at=NOW - HOUR + SECOND)
    assert after(fresh, STOPPED, **nothing_sent) == CaseStep(fresh)


@pytest.mark.parametrize("outcome", [None, Outcome.UNKNOWN, Outcome.ACCEPTED, Outcome.HAD_NO_EFFECT])
def test_a_terminate_that_may_have_been_done_is_left_to_a_person(outcome: Outcome | None) -> None:
    """A second call destroys what the first may have put in a recycle bin."""
    asked = {"intent_written": True, "last_outcome": outcome}
    expected = in_doubt(called(4), ReasonCode.OUTCOME_UNKNOWN, {"verb": "terminate"})
    assert after(called(4), STOPPED, **asked) == expected
    fresh = called(4, claimed_at=NOW - HOUR + SECOND)
    assert after(fresh, STOPPED, **asked) == CaseStep(fresh)


def test_a_claim_without_a_time_is_not_taken_for_a_fresh_one() -> None:
    undated = called(1, claimed_at=None)
    assert after(undated, intent_written=True) == failed(undated, ReasonCode.NOT_TAKEN_EFFECT)


def test_use_while_a_stop_was_in_doubt_ends_the_case_once_it_is_settled() -> None:
    """What speaks for the owner waits for the call, not for another round of it."""
    busy = finding(verdict=Verdict.COMPLIANT, reason=Reason(ReasonCode.BUSY, {"maximum": 87.0}))
    settled = failed(called(1), ReasonCode.NOT_TAKEN_EFFECT).case
    assert settled is not None
    recovered = Reason(ReasonCode.RECOVERED, {"maximum": 87.0})
    expected = replace(settled, status=CaseStatus.CLOSED, reason=recovered, closed_at=NOW)
    assert after(called(1), finding=busy, intent_written=True) == CaseStep(expected)


def test_a_snooze_while_a_call_was_in_doubt_counts_once_it_is_settled() -> None:
    until = NOW + DAY
    settled = climbed(called(1), Verb.STOP).case
    assert settled is not None
    paused = replace(settled, status=CaseStatus.SNOOZED, snoozed_until=until)
    expected = replace(paused, reason=Reason(ReasonCode.SNOOZED, {"until": "2026-03-11T12:30+00:00"}))
    assert after(called(1), STOPPED, **ACCEPTED, snoozed_until=until) == CaseStep(expected)


def test_a_snooze_does_not_hide_a_call_still_in_doubt() -> None:
    """Somebody must find out what came of it, snoozed or not; that it was is remembered."""
    asked = {"intent_written": True, "snoozed_until": NOW + DAY}
    doubt = in_doubt(called(4), ReasonCode.OUTCOME_UNKNOWN, {"verb": "terminate"}).case
    assert doubt is not None
    assert after(called(4), STOPPED, **asked) == CaseStep(replace(doubt, snoozed_until=NOW + DAY))


def told(**changes: Any) -> Case:
    return called(0, **changes)


def notice(before: Case, **changes: Any) -> CaseStep:
    return advance(before, seen(**changes))


def test_a_notice_counts_from_its_delivery() -> None:
    delivered = NOW - timedelta(minutes=20)
    step = notice(told(), intent_written=True, notice_delivered_at=delivered).case
    assert step is not None
    climbed = ClimbedRung(Verb.WARN, delivered, told().decision_id)
    assert (step.rung, step.since, step.climbed) == (1, delivered, (climbed,))


def test_a_notice_that_was_never_handed_over_is_decided_anew() -> None:
    assert notice(told()) == failed(told(), ReasonCode.NOTICE_UNDELIVERED)
    fresh = told(claimed_at=NOW - HOUR + SECOND)
    assert notice(fresh) == CaseStep(fresh), "its own run may still be writing it"


@pytest.mark.parametrize("dead", [False, True])
def test_an_undelivered_notice_is_shown_as_waiting_or_rejected(dead: bool) -> None:  # noqa: FBT001 - a case of two
    expected = in_doubt(told(), ReasonCode.NOTICE_UNDELIVERED, {"dead": int(dead)})
    assert notice(told(), intent_written=True, notice_dead=dead) == expected


def test_a_rejected_notice_is_shown_at_once() -> None:
    """Its own run has finished with it: nothing more can come of it."""
    fresh = told(claimed_at=NOW - SECOND)
    expected = in_doubt(fresh, ReasonCode.NOTICE_UNDELIVERED, {"dead": 1})
    assert notice(fresh, intent_written=True, notice_dead=True) == expected


def test_a_rejected_notice_is_tried_again_after_a_day_without_counting() -> None:
    """A revoked token is no failure of the machine's owner, nor of the rung."""
    rejected = {"intent_written": True, "notice_dead": True}
    day_old = told(claimed_at=NOW - DAY)
    assert notice(day_old, **rejected) == failed(day_old, ReasonCode.NOTICE_UNDELIVERED, failures=0)
    younger = told(claimed_at=NOW - DAY + SECOND)
    assert notice(younger, **rejected) == in_doubt(younger, ReasonCode.NOTICE_UNDELIVERED, {"dead": 1})
    undated = told(claimed_at=None)
    assert notice(undated, **rejected) == in_doubt(undated, ReasonCode.NOTICE_UNDELIVERED, {"dead": 1})


def test_a_notice_too_late_for_the_dates_it_names_is_written_anew_at_once() -> None:
    """Told of a stop that was due yesterday, nobody has a grace; no failure of the rung."""
    fresh = told(claimed_at=NOW - SECOND)
    expected = failed(fresh, ReasonCode.NOTICE_UNDELIVERED, failures=0)
    assert notice(fresh, intent_written=True, notice_late=True) == expected


def test_a_notice_that_arrived_is_never_too_late() -> None:
    step = notice(told(), intent_written=True, notice_late=True, notice_delivered_at=NOW - HOUR).case
    assert step is not None
    assert (step.rung, step.since) == (1, NOW - HOUR)


def test_a_pending_notice_is_waited_for_however_long() -> None:
    """Telling people twice of one stop is worse than telling them late."""
    old = told(claimed_at=NOW - 30 * DAY)
    assert notice(old, intent_written=True) == in_doubt(old, ReasonCode.NOTICE_UNDELIVERED, {"dead": 0})


def test_a_claim_of_a_rung_that_the_machine_has_not_is_left_to_a_person() -> None:
    """It could be stopped when the stop was called and cannot be any more."""
    turned = instance(cannot_stop="one_time_spot")
    assert after(called(1), turned) == in_doubt(called(1), ReasonCode.OUTCOME_UNKNOWN)


def test_a_claim_is_settled_by_the_rule_it_was_made_under() -> None:
    """Today's rule may have another step in that place."""
    other = rule(ladder=(Rule(Verb.SNAPSHOT, DAY), Rule(Verb.STOP, DAY)))
    assert after(called(1), STOPPED, **ACCEPTED, rule=other) == climbed(called(1), Verb.STOP)


def test_a_start_is_nobodys_rung() -> None:
    """No policy can write it; a ledger that says so is not acted on."""
    starts = rule(ladder=(Rule(Verb.START, DAY),))
    odd = called(1, terms=terms(starts))
    assert after(odd) == in_doubt(odd, ReasonCode.OUTCOME_UNKNOWN)
