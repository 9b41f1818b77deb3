"""What ends a case, with the words people are told; and what must not end it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, finding, instance, rule, seen

from costguard.cases import (
    Case,
    CaseStatus,
    CaseStep,
    ClimbedRung,
    Phase,
    SubjectSnapshot,
    advance,
    claimed,
    confirming,
)
from costguard.domain.actions import Verb
from costguard.domain.findings import Verdict
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.resources import InstanceState
from costguard.guards.rules.common import Mode

GONE = {"instance": None, "finding": None}
BUSY = finding(verdict=Verdict.COMPLIANT, reason=Reason(ReasonCode.BUSY, {"maximum": 87.0}))
PROTECTED = finding(verdict=Verdict.EXEMPT, reason=Reason(ReasonCode.PROTECTED_TAG, {"tag": "keep"}))


def over(before: Case, code: ReasonCode, facts: dict[str, FactValue] | None = None) -> CaseStep:
    """The step that closes `before` now and changes nothing else."""
    ended = replace(before, status=CaseStatus.CLOSED, phase=Phase.WAITING, reason=Reason(code, facts or {}))
    return CaseStep(replace(ended, closed_at=NOW))


def stopped_by_costguard(**changes: Any) -> Case:
    return case(rung=3, climbed=(ClimbedRung(Verb.WARN, NOW - 3 * DAY), ClimbedRung(Verb.STOP, NOW - DAY)), **changes)


def under_way(verb: Verb) -> Case:
    """An action called in an earlier run, its effect not yet seen."""
    before = {Verb.WARN: case(rung=0), Verb.STOP: case(rung=1), Verb.TERMINATE: stopped_by_costguard()}[verb]
    return confirming(claimed(replace(before, rung=4) if verb is Verb.TERMINATE else before, NOW))


@pytest.mark.parametrize(
    ("changes", "code", "facts"),
    [
        ({"rule": None}, ReasonCode.RULE_GONE, {"rule": "research"}),
        ({"rule": rule(mode=Mode.WARN)}, ReasonCode.MODE_CHANGED, {"mode": "warn"}),
        ({"finding": BUSY}, ReasonCode.RECOVERED, {"maximum": 87.0}),
        ({"finding": PROTECTED}, ReasonCode.PROTECTED_TAG, {"tag": "keep"}),
        ({"account_closed": True}, ReasonCode.VANISHED, {"account": "111122223333"}),
        (GONE, ReasonCode.VANISHED, {}),
        ({"instance": instance(state=InstanceState.TERMINATED)}, ReasonCode.VANISHED, {}),
        ({"instance": instance(run_epoch="epoch-2")}, ReasonCode.RESTARTED, {}),
        ({"instance": instance(state=InstanceState.STOPPING)}, ReasonCode.STOPPED_BY_OTHERS, {}),
    ],
)
def test_an_ending_says_why_and_when(changes: dict[str, Any], code: ReasonCode, facts: dict[str, FactValue]) -> None:
    before = case(snoozed_until=NOW, status=CaseStatus.HELD)
    assert advance(before, seen(**changes)) == over(before, code, facts)


@pytest.mark.parametrize("last", [GONE, {"instance": instance(state=InstanceState.TERMINATED), "finding": None}])
def test_a_machine_gone_after_our_terminate_was_terminated(last: dict[str, Any]) -> None:
    assert advance(under_way(Verb.TERMINATE), seen(**last)) == over(under_way(Verb.TERMINATE), ReasonCode.TERMINATED)


@pytest.mark.parametrize("last", [GONE, {"instance": instance(state=InstanceState.TERMINATED), "finding": None}])
def test_a_machine_gone_before_our_terminate_vanished(last: dict[str, Any]) -> None:
    assert advance(under_way(Verb.STOP), seen(**last)) == over(under_way(Verb.STOP), ReasonCode.VANISHED)


@pytest.mark.parametrize("state", [InstanceState.RUNNING, InstanceState.PENDING])
def test_a_start_by_its_owner_ends_even_a_claimed_case(state: InstanceState) -> None:
    started = instance(state=state)
    assert advance(under_way(Verb.TERMINATE), seen(started)) == over(under_way(Verb.TERMINATE), ReasonCode.RESTARTED)


@pytest.mark.parametrize("state", [InstanceState.STOPPED, InstanceState.STOPPING])
def test_a_stop_while_our_notice_was_on_its_way_is_somebody_elses(state: InstanceState) -> None:
    told = under_way(Verb.WARN)
    assert advance(told, seen(instance(state=state))) == over(told, ReasonCode.STOPPED_BY_OTHERS)


def test_a_terminating_machine_may_pass_through_stopping() -> None:
    """Of a machine that cannot stop, the terminate is the only thing Costguard did."""
    spot = instance(cannot_stop="one_time_spot", state=InstanceState.STOPPING)
    allowed = rule(limits=replace(rule().limits, unstoppable_may_terminate=True))
    terms_of = advance(None, seen(instance(cannot_stop="one_time_spot"), rule=allowed)).case
    assert terms_of is not None
    called = confirming(claimed(replace(terms_of, rung=2), NOW))
    after = advance(called, seen(spot, rule=allowed)).case
    assert after is not None
    assert after.status is not CaseStatus.CLOSED


@pytest.mark.parametrize(
    "changes",
    [
        {"rule": None},
        {"rule": rule(mode=Mode.OBSERVE)},
        {"finding": BUSY},
        {"finding": PROTECTED},
    ],
)
def test_a_call_under_way_is_settled_before_anything_is_concluded(changes: dict[str, Any]) -> None:
    """Closing it would forget a stop that may yet take effect."""
    after = advance(under_way(Verb.STOP), seen(**changes)).case
    assert after is not None
    assert (after.status is CaseStatus.CLOSED, after.phase) == (False, Phase.CONFIRMING)


def test_a_call_under_way_whose_rule_is_gone_waits_for_a_person() -> None:
    called = under_way(Verb.STOP)
    expected = replace(called, status=CaseStatus.HELD, reason=Reason(ReasonCode.OUTCOME_UNKNOWN))
    assert advance(called, seen(rule=None)) == CaseStep(expected)


@pytest.mark.parametrize("found", [BUSY, PROTECTED])
def test_half_a_reading_ends_nothing(found: object) -> None:
    """What an incomplete listing says of a machine may be about another."""
    after = advance(case(), seen(finding=found, shard_complete=False)).case
    assert after is not None
    assert (after.status, after.reason.code) == (CaseStatus.HELD, ReasonCode.SHARD_INCOMPLETE)


@pytest.mark.parametrize("unread", [{"shard_read": False}, {"shard_complete": False}])
def test_absence_from_what_was_not_read_proves_nothing(unread: dict[str, Any]) -> None:
    after = advance(case(), seen(**GONE, **unread)).case
    assert after is not None
    assert after.status is CaseStatus.HELD


def test_a_stopped_machine_is_not_called_recovered() -> None:
    """A machine that Costguard stopped is no longer idle; that is no reason to let it go."""
    halted = instance(state=InstanceState.STOPPED)
    quiet: SubjectSnapshot = seen(halted, finding=finding(halted, Verdict.COMPLIANT))
    after = advance(stopped_by_costguard(), quiet).case
    assert after is not None
    assert after.status is CaseStatus.OPEN
