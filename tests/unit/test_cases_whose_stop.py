"""A machine is seen stopped: whether Costguard stopped it decides if its case goes on or ends.

What somebody else stopped is not to be snapshotted and terminated in the name of a call that may never
have arrived.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, finding, instance, seen

from costguard.cases import Case, CaseStatus, CaseStep, ClimbedRung, Phase, advance, claimed, held, same_run
from costguard.domain.actions import Outcome, Verb
from costguard.domain.findings import Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import Instance, InstanceState

HOUR = timedelta(hours=1)
MINUTES = timedelta(minutes=20)
SECOND = timedelta(seconds=1)
WARNED = ClimbedRung(Verb.WARN, NOW - 10 * DAY)
STOPPING = instance(state=InstanceState.STOPPING)


def called(**changes: Any) -> Case:
    """A stop claimed an hour ago and then held in doubt, the third attempt, one failure before."""
    ready = case(rung=1, climbed=(WARNED,), attempt=3, failures=1)
    return replace(held(claimed(ready, NOW - HOUR), Reason(ReasonCode.WAITING)), **changes)


def stopped(after_claim: timedelta | None = None) -> Instance:
    """Stopped so long after the claim of an hour ago; None where the cloud does not tell."""
    at = None if after_claim is None else NOW - HOUR + after_claim
    return instance(state=InstanceState.STOPPED, stopped_at=at)


def after(before: Case, subject: Instance, outcome: Outcome | None = None, *, sent: bool = True) -> CaseStep:
    quiet = finding(subject, Verdict.COMPLIANT)
    return advance(before, seen(subject, finding=quiet, intent_written=sent, last_outcome=outcome))


def ours(before: Case) -> CaseStep:
    """Confirmed: the machine counts as stopped from now on."""
    confirmed = replace(
        before,
        status=CaseStatus.OPEN,
        phase=Phase.WAITING,
        rung=2,
        climbed=(WARNED, ClimbedRung(Verb.STOP, NOW)),
        since=NOW,
        attempt=4,
        failures=0,
        decision_id="",
        claimed_at=None,
        reason=Reason(ReasonCode.CONFIRMED, {"verb": "stop"}),
    )
    return CaseStep(confirmed)


def somebody_elses(before: Case) -> CaseStep:
    over = replace(before, status=CaseStatus.CLOSED, phase=Phase.WAITING, closed_at=NOW)
    return CaseStep(replace(over, reason=Reason(ReasonCode.STOPPED_BY_OTHERS)))


def probably_ours(before: Case, request: str = "") -> CaseStep:
    """Closed, so that nothing is done on a guess; the request that was seen is kept for whoever starts it again."""
    over = replace(before, status=CaseStatus.CLOSED, phase=Phase.WAITING, closed_at=NOW, stop_request=request)
    return CaseStep(replace(over, reason=Reason(ReasonCode.STOP_UNCERTAIN)))


def awaited(before: Case) -> CaseStep:
    going = replace(before, status=CaseStatus.OPEN, phase=Phase.CONFIRMING)
    return CaseStep(replace(going, reason=Reason(ReasonCode.CONFIRMING)))


@pytest.mark.parametrize("outcome", [Outcome.ACCEPTED, Outcome.TOOK_EFFECT])
@pytest.mark.parametrize("when", [None, timedelta(0), 3 * HOUR])
def test_an_accepted_stop_is_ours_whenever_the_cloud_says_it_happened(outcome: Outcome, when: timedelta | None) -> None:
    assert after(called(), stopped(when), outcome) == ours(called())


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.HAD_NO_EFFECT])
def test_a_refused_stop_is_never_ours(outcome: Outcome) -> None:
    assert after(called(), stopped(timedelta(0)), outcome) == somebody_elses(called())


@pytest.mark.parametrize("outcome", [None, Outcome.UNKNOWN])
@pytest.mark.parametrize("when", [timedelta(0), MINUTES, -MINUTES])
def test_an_unanswered_stop_is_ours_if_it_happened_around_the_call(outcome: Outcome | None, when: timedelta) -> None:
    assert after(called(), stopped(when), outcome) == ours(called())


@pytest.mark.parametrize("outcome", [None, Outcome.UNKNOWN])
@pytest.mark.parametrize("when", [MINUTES + SECOND, -MINUTES - SECOND])
def test_an_unanswered_stop_is_not_ours_where_the_time_speaks_against_it(
    outcome: Outcome | None, when: timedelta
) -> None:
    assert after(called(), stopped(when), outcome) == somebody_elses(called())


@pytest.mark.parametrize("outcome", [None, Outcome.UNKNOWN])
def test_an_unanswered_stop_of_no_told_time_is_probably_ours_and_ends_the_case(outcome: Outcome | None) -> None:
    """Nobody can say whose it was: nothing destructive follows, and it is not called somebody else's either."""
    assert after(called(), stopped(None), outcome) == probably_ours(called())


def test_a_stop_that_was_never_sent_is_not_ours() -> None:
    assert after(called(), stopped(timedelta(0)), sent=False) == somebody_elses(called())
    assert after(called(), STOPPING, sent=False) == somebody_elses(called())


def test_a_stop_claimed_at_no_time_is_not_ours() -> None:
    undated = called(claimed_at=None)
    assert after(undated, stopped(timedelta(0)), Outcome.ACCEPTED) == somebody_elses(undated)


@pytest.mark.parametrize("outcome", [None, Outcome.UNKNOWN, Outcome.ACCEPTED, Outcome.REFUSED])
def test_a_machine_that_is_stopping_after_our_call_is_awaited(outcome: Outcome | None) -> None:
    """What is on its way now is judged when it has happened."""
    assert after(called(), STOPPING, outcome) == awaited(called())


def test_a_fresh_call_is_left_to_the_run_that_made_it() -> None:
    """That run may be about to write what the cloud answered."""
    fresh = called(claimed_at=NOW - HOUR + SECOND)
    assert after(fresh, stopped(None)) == CaseStep(fresh)
    assert after(fresh, stopped(None), sent=False) == CaseStep(fresh)
    assert after(fresh, STOPPING, sent=False) == awaited(fresh)


def test_a_fresh_call_that_was_accepted_is_confirmed_at_once() -> None:
    fresh = called(claimed_at=NOW - SECOND)
    assert after(fresh, stopped(None), Outcome.ACCEPTED) == ours(fresh)


def named(request: str) -> Instance:
    """Stopped, at a cloud that tells no run of what is stopped, but the request that stopped it."""
    return instance(state=InstanceState.STOPPED, run_epoch="", stopped_by=request)


@pytest.mark.parametrize("outcome", [Outcome.ACCEPTED, Outcome.TOOK_EFFECT])
def test_a_stop_that_the_cloud_names_is_ours_when_it_names_our_request(outcome: Outcome) -> None:
    before = called()
    told = seen(named("req-1"), finding=None, intent_written=True, last_outcome=outcome, last_request="req-1")
    step = advance(before, told)
    assert step == CaseStep(replace(ours(before).case or before, stop_request="req-1"))


@pytest.mark.parametrize(
    ("outcome", "request_id"),
    [(Outcome.ACCEPTED, "req-1"), (Outcome.REFUSED, ""), (Outcome.HAD_NO_EFFECT, "")],
)
def test_a_stop_that_the_cloud_names_otherwise_is_somebody_elses(outcome: Outcome | None, request_id: str) -> None:
    before = called()
    told = seen(named("req-2"), finding=None, intent_written=True, last_outcome=outcome, last_request=request_id)
    assert advance(before, told) == somebody_elses(before)


@pytest.mark.parametrize("outcome", [None, Outcome.UNKNOWN])
@pytest.mark.parametrize("state", [InstanceState.STOPPED, InstanceState.STOPPING])
def test_a_request_that_a_lost_answer_cannot_be_held_against_is_probably_ours(
    outcome: Outcome | None, state: InstanceState
) -> None:
    before = called()
    told = seen(replace(named("req-2"), state=state), finding=None, intent_written=True, last_outcome=outcome)
    assert advance(before, told) == probably_ours(before, "req-2")


def test_what_somebody_started_and_stopped_again_is_not_ours_any_more() -> None:
    """The quarantine runs; the cloud shows a stopped machine as before, by another request."""
    quarantined = replace(ours(called()).case or called(), stop_request="req-1")
    still = advance(quarantined, seen(named("req-1"), finding=None)).case
    assert still is not None
    assert still.status is not CaseStatus.CLOSED
    assert advance(quarantined, seen(named("req-2"), finding=None)) == somebody_elses(quarantined)
    assert not same_run(quarantined, named("req-2"))
    assert same_run(quarantined, named("req-1"))


def test_a_running_machine_whose_run_is_not_told_is_not_the_same_run() -> None:
    """Somebody's stop is under way: the last look before a call must not take it for the run it knows."""
    running = instance(state=InstanceState.RUNNING, run_epoch="", stopped_by="req-9")
    assert not same_run(called(), running)
    assert not same_run(called(), instance(run_epoch=""))
