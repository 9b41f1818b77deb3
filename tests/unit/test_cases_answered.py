"""What people's answers do to a case: a stop that need not wait, and an owner who was never told."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, detail, finding, instance, rule, seen, snapshot

from costguard.cases import Case, ClimbedRung, advance, claimed, confirming, decision_id, speaks_for
from costguard.cases.case import climbed
from costguard.domain.actions import Verb
from costguard.domain.findings import Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import InstanceState, SnapshotState
from costguard.guards.rules.common import Mode

HOUR = timedelta(hours=1)
WARNED = ClimbedRung(Verb.WARN, NOW - HOUR)
HALTED = ClimbedRung(Verb.STOP, NOW - HOUR)


def told(**changes: Any) -> Case:
    """Warned an hour ago, with 23 hours left to wait."""
    return case(rung=1, climbed=(WARNED,), since=NOW - HOUR, **changes)


def test_stop_now_ends_the_wait_for_a_stop() -> None:
    assert advance(told(), seen()).wants is None
    assert advance(told(), seen(hastened=True)).wants is Verb.STOP


def test_stop_now_is_nothing_before_the_notice_has_arrived() -> None:
    untold = case(rung=1, climbed=(), since=NOW - HOUR)

    assert advance(untold, seen(hastened=True)).wants is None


def test_stop_now_never_hastens_what_comes_after_the_stop() -> None:
    halted = instance(state=InstanceState.STOPPED)
    quarantined = case(rung=3, climbed=(WARNED, HALTED, WARNED), since=NOW - HOUR)

    step = advance(quarantined, seen(halted, finding=finding(halted, Verdict.COMPLIANT), hastened=True))

    assert step.wants is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"snoozed_until": NOW + DAY}, "a snooze beats it"),
        ({"finding": finding(verdict=Verdict.UNMEASURED)}, "nobody knows whether it is idle"),
        ({"finding": finding(verdict=Verdict.COMPLIANT)}, "it is in use again"),
        ({"shard_complete": False}, "not everything was read"),
    ],
)
def test_stop_now_lifts_no_rail(changes: dict[str, Any], why: str) -> None:
    assert advance(told(), seen(hastened=True, **changes)).wants is None, why


def test_a_rule_that_only_warns_stops_nothing_however_asked() -> None:
    gentle = rule(mode=Mode.WARN)

    assert advance(told(mode=Mode.WARN), seen(rule=gentle, hastened=True)).wants is None


def test_a_new_owner_is_told_and_given_the_whole_grace() -> None:
    step = advance(told(owner="nlp"), seen(finding=replace(finding(), owner="vision")))

    assert step.wants is Verb.WARN
    assert step.case is not None
    assert (step.case.owner, step.case.rung, step.case.since) == ("vision", 0, NOW)


def test_an_owner_named_before_anybody_was_told_changes_nothing_else() -> None:
    opened = case(rung=0, climbed=(), since=NOW - HOUR, owner="")

    step = advance(opened, seen(finding=replace(finding(), owner="vision")))

    assert step.case is not None
    assert (step.case.owner, step.case.since, step.case.attempt) == ("vision", opened.since, opened.attempt)


def test_a_new_owner_of_a_stopped_machine_does_not_start_its_ladder_over() -> None:
    halted = instance(state=InstanceState.STOPPED)
    stopped = case(rung=3, climbed=(WARNED, HALTED, WARNED), since=NOW - HOUR, owner="nlp")
    theirs = replace(finding(halted, Verdict.COMPLIANT), owner="vision")

    step = advance(stopped, seen(halted, finding=theirs))

    assert step.wants is Verb.WARN
    assert step.case is not None
    assert [rung.verb for rung in step.case.climbed] == [Verb.STOP]


def test_a_notice_speaks_for_its_rung_and_the_wait_after_it() -> None:
    opened = case(rung=0, climbed=(), since=NOW)
    decision = decision_id(opened)
    waiting = climbed(opened, Verb.WARN, NOW)

    assert speaks_for(decision, opened)
    assert speaks_for(decision, waiting)
    assert not speaks_for(decision, climbed(waiting, Verb.STOP, NOW))


@pytest.mark.parametrize(
    "changes", [{"attempt": 5}, {"rule_digest": "other"}, {"run_epoch": "e-2"}, {"case_id": "c-2"}]
)
def test_a_notice_of_another_case_try_or_rule_speaks_no_more(changes: dict[str, Any]) -> None:
    opened = case(rung=0, climbed=(), since=NOW)

    assert not speaks_for(decision_id(opened), replace(climbed(opened, Verb.WARN, NOW), **changes))


def test_a_new_owner_is_told_before_anything_is_counted_against_them() -> None:
    failed = told(owner="nlp", failures=3)
    step = advance(failed, seen(finding=replace(finding(), owner="vision")))

    assert step.case is not None
    assert step.case.reason == Reason(ReasonCode.WAITING, {"verb": "warn"})
    assert (step.case.failures, step.case.attempt) == (0, failed.attempt + 1)


def test_a_snooze_that_ends_while_copies_are_made_begins_the_wait_anew() -> None:
    """Copies of large disks take days: whoever kept the machine meanwhile is told before anything else is done."""
    halted = instance(state=InstanceState.STOPPED)
    quiet = finding(halted, Verdict.COMPLIANT)
    stop, late = ClimbedRung(Verb.STOP, NOW - 2 * DAY), NOW + DAY
    copying = confirming(claimed(case(rung=3, climbed=(WARNED, stop, WARNED), since=NOW - 2 * DAY), NOW - 2 * HOUR))
    under_way = detail(halted, snapshots=(snapshot(state=SnapshotState.PENDING, decision_id=copying.decision_id),))

    kept = advance(copying, seen(halted, finding=quiet, detail=under_way, snoozed_until=NOW + HOUR)).case
    assert kept is not None
    done = detail(halted, snapshots=(snapshot(decision_id=copying.decision_id),))
    resolved = advance(kept, replace(seen(halted, finding=quiet, detail=done), now=late)).case
    assert resolved is not None
    step = advance(resolved, replace(seen(halted, finding=quiet, detail=done), now=late + HOUR))

    assert step.wants is Verb.WARN
    assert step.case is not None
    assert [rung.verb for rung in step.case.climbed] == [Verb.STOP]


@pytest.mark.parametrize("looks", [0, 1, 2])
def test_a_snooze_that_ended_is_remembered_for_as_long_as_an_action_is_under_way(looks: int) -> None:
    """However often somebody looks meanwhile: else the copies end in a termination that nobody expects any more."""
    halted = instance(state=InstanceState.STOPPED)
    quiet = finding(halted, Verdict.COMPLIANT)
    stop = ClimbedRung(Verb.STOP, NOW - 2 * DAY)
    of = case(rung=3, climbed=(WARNED, stop, WARNED), since=NOW - 2 * DAY, snoozed_until=NOW - HOUR)
    copying = confirming(claimed(of, NOW - 2 * HOUR))
    pending = detail(halted, snapshots=(snapshot(state=SnapshotState.PENDING, decision_id=copying.decision_id),))
    for _ in range(looks):
        looked = advance(copying, seen(halted, finding=quiet, detail=pending)).case
        assert looked is not None
        copying = looked
    done = detail(halted, snapshots=(snapshot(decision_id=copying.decision_id),))

    resolved = advance(copying, seen(halted, finding=quiet, detail=done)).case
    step = advance(resolved, replace(seen(halted, finding=quiet, detail=done), now=NOW + HOUR))

    assert step.wants is Verb.WARN
