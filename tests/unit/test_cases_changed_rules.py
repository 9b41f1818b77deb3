"""A rule that changes under a case: tightening applies at once, anything else starts the wait anew."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, finding, instance, rule, seen

from costguard.cases import Case, CaseStatus, CaseStep, ClimbedRung, SubjectSnapshot, advance, decision_id
from costguard.domain.actions import Verb
from costguard.domain.findings import Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import InstanceState
from costguard.guards.rules.common import Step as Rule
from costguard.guards.rules.idle import IdleBounds
from costguard.policy.model.terms import terms

STOPPED = instance(state=InstanceState.STOPPED)
QUIET = finding(STOPPED, Verdict.COMPLIANT)
WARNED = ClimbedRung(Verb.WARN, NOW - 10 * DAY)
HALTED = ClimbedRung(Verb.STOP, NOW - 9 * DAY)
TOLD_AGAIN = ClimbedRung(Verb.WARN, NOW - 8 * DAY)

LOOSER = rule(idle=IdleBounds(every_gpu_max_below_percent=20.0))
STRICTER = rule(ladder=(Rule(Verb.WARN, timedelta(0)), Rule(Verb.STOP, timedelta(hours=30))))
UNMEASURED = finding(verdict=Verdict.UNMEASURED)
HELD_UNMEASURED = Reason(ReasonCode.UNMEASURED, {"cause": "no_data"})


def quarantined(**changes: Any) -> Case:
    """Stopped nine days ago, told again a day later, in the middle of its quarantine."""
    return case(
        rung=3, climbed=(WARNED, HALTED, TOLD_AGAIN), since=NOW - 5 * DAY, attempt=4, decision_id="old", **changes
    )


def stopped_seen(**changes: Any) -> SubjectSnapshot:
    return seen(STOPPED, finding=QUIET, **changes)


def told_again(before: Case) -> CaseStep:
    """The wait behind the stop starts anew: with a new notice, under a new decision."""
    restarted = replace(
        before,
        status=CaseStatus.OPEN,
        rung=2,
        climbed=(HALTED,),
        since=NOW,
        attempt=5,
        failures=0,
        snoozed_until=None,
        reason=Reason(ReasonCode.WAITING, {"verb": "warn"}),
    )
    return CaseStep(replace(restarted, decision_id=decision_id(restarted)), Verb.WARN)


def test_a_tightened_rule_keeps_the_wait_and_voids_the_old_decision() -> None:
    before = case(climbed=(WARNED,), decision_id="old", status=CaseStatus.HELD)
    expected = replace(
        before,
        status=CaseStatus.OPEN,
        rule_digest=STRICTER.digest,
        terms=terms(STRICTER),
        decision_id="",
        reason=Reason(ReasonCode.WAITING, {"verb": "stop", "due": "2026-03-10T18:30+00:00"}),
    )
    assert advance(before, seen(rule=STRICTER)) == CaseStep(expected)


def test_a_loosened_rule_starts_from_a_new_notice() -> None:
    before = case(climbed=(WARNED,), decision_id="old", failures=3, attempt=4)
    restarted = replace(
        before,
        rule_digest=LOOSER.digest,
        terms=terms(LOOSER),
        rung=0,
        climbed=(),
        since=NOW,
        attempt=5,
        failures=0,
        reason=Reason(ReasonCode.WAITING, {"verb": "warn"}),
    )
    expected = replace(restarted, decision_id=decision_id(restarted))
    assert advance(before, seen(rule=LOOSER)) == CaseStep(expected, Verb.WARN)


def test_a_restarted_wait_that_cannot_be_judged_keeps_no_old_decision() -> None:
    """Whatever was approved for the old round must not fit the new one."""
    before = case(climbed=(WARNED,), decision_id="old", failures=3, attempt=4, snoozed_until=NOW)
    expected = replace(
        before,
        rule_digest=LOOSER.digest,
        terms=terms(LOOSER),
        status=CaseStatus.HELD,
        rung=0,
        climbed=(),
        since=NOW,
        attempt=5,
        failures=0,
        snoozed_until=None,
        decision_id="",
        reason=HELD_UNMEASURED,
    )
    assert advance(before, seen(rule=LOOSER, finding=UNMEASURED)) == CaseStep(expected)


def test_another_rule_of_the_same_content_counts_as_loosened() -> None:
    """Two rules may differ in more than they say: whose machines they are for."""
    renamed = rule("nights")
    after = advance(case(climbed=(WARNED,)), seen(rule=renamed)).case
    assert after is not None
    assert (after.rule, after.rule_digest, after.terms) == ("nights", renamed.digest, terms(renamed))
    assert (after.rung, after.since) == (0, NOW)


def test_a_rule_known_by_its_digest_under_another_name_is_another_rule() -> None:
    after = advance(case(rule="gone", climbed=(WARNED,)), seen()).case
    assert after is not None
    assert (after.rule, after.rung, after.since) == ("research", 0, NOW)


def test_an_unchanged_rule_changes_nothing() -> None:
    """Also what the case remembers of it stays as it was written."""
    kept = case(terms="as written by an older version")
    after = advance(kept, seen()).case
    assert after is not None
    assert after.terms == kept.terms


def test_a_loosened_rule_behind_a_stop_starts_from_the_second_notice() -> None:
    """The machine is stopped already: telling people of a stop would be wrong."""
    before = quarantined()
    changed = replace(before, rule_digest=LOOSER.digest, terms=terms(LOOSER))
    assert advance(before, stopped_seen(rule=LOOSER)) == told_again(changed)


def test_a_snooze_that_ends_behind_a_stop_starts_from_the_second_notice() -> None:
    before = quarantined(status=CaseStatus.SNOOZED, snoozed_until=NOW, failures=2)
    assert advance(before, stopped_seen()) == told_again(before)


def test_a_snooze_that_ends_before_a_stop_starts_from_the_first_notice() -> None:
    before = case(status=CaseStatus.SNOOZED, snoozed_until=NOW, climbed=(WARNED,), attempt=4, failures=2)
    restarted = replace(
        before,
        status=CaseStatus.OPEN,
        rung=0,
        climbed=(),
        since=NOW,
        attempt=5,
        failures=0,
        snoozed_until=None,
        reason=Reason(ReasonCode.WAITING, {"verb": "warn"}),
    )
    assert advance(before, seen()) == CaseStep(replace(restarted, decision_id=decision_id(restarted)), Verb.WARN)


def test_a_snooze_that_ends_unmeasured_keeps_no_old_decision() -> None:
    before = case(status=CaseStatus.SNOOZED, snoozed_until=NOW, decision_id="old", attempt=4)
    after = advance(before, seen(finding=UNMEASURED)).case
    assert after is not None
    assert (after.status, after.reason, after.decision_id) == (CaseStatus.HELD, HELD_UNMEASURED, "")
    assert (after.attempt, after.since, after.snoozed_until) == (5, NOW, None)


def test_a_snooze_that_ends_while_nothing_could_be_seen_still_gives_the_full_grace() -> None:
    """Held for another reason in between, the case remembers that it was asleep."""
    before = case(status=CaseStatus.HELD, snoozed_until=NOW - DAY, climbed=(WARNED,), attempt=4)
    step = advance(before, seen())
    assert step.wants is Verb.WARN
    assert step.case is not None
    assert (step.case.rung, step.case.since, step.case.attempt, step.case.snoozed_until) == (0, NOW, 5, None)


def test_a_rule_that_no_longer_stops_starts_from_its_first_notice() -> None:
    only_copies = rule(ladder=(Rule(Verb.SNAPSHOT, DAY),))
    after = advance(quarantined(), stopped_seen(rule=only_copies)).case
    assert after is not None
    assert (after.rung, after.climbed, after.since) == (0, (), NOW)


def test_a_stopped_machine_that_cannot_be_stopped_any_more_has_the_short_ladder() -> None:
    turned = instance(state=InstanceState.STOPPED, cannot_stop="instance_store_root")
    after = advance(quarantined(), seen(turned, finding=QUIET, rule=LOOSER)).case
    assert after is not None
    assert (after.rung, after.climbed) == (0, ())


@pytest.mark.parametrize("changed", [STRICTER, LOOSER])
def test_a_changed_rule_does_not_disturb_a_call_under_way(changed: object) -> None:
    called = case(phase=case().phase.CLAIMED, claimed_at=NOW, decision_id="old")
    after = advance(called, seen(rule=changed)).case
    assert after == called
