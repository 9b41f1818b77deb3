"""A case that waits says for what; nothing but that reason changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, detail, finding, instance, rule, seen, snapshot, volume

from costguard.cases import Case, CaseStatus, CaseStep, ClimbedRung, advance, decision_id, due_at
from costguard.domain.actions import Verb
from costguard.domain.findings import Verdict
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.resources import InstanceState
from costguard.guards.rules.common import Mode, Rung
from costguard.guards.rules.common import Step as Rule
from costguard.policy.model.terms import terms

STOPPED = instance(state=InstanceState.STOPPED)
QUIET = finding(STOPPED, Verdict.COMPLIANT)
WARNED = ClimbedRung(Verb.WARN, NOW - 10 * DAY)
HALTED = ClimbedRung(Verb.STOP, NOW - 9 * DAY)
UNTIL = datetime.fromisoformat("2026-03-12T09:05:59+00:00")


def waits(
    before: Case, code: ReasonCode, facts: dict[str, FactValue], status: CaseStatus = CaseStatus.HELD
) -> CaseStep:
    """`before` with a status and a reason, and nothing wanted."""
    return CaseStep(replace(before, status=status, reason=Reason(code, facts)))


@pytest.mark.parametrize(
    ("changes", "code", "facts"),
    [
        (
            {"shard_read": False, "shard_complete": False},
            ReasonCode.ACCOUNT_UNREAD,
            {"shard": "aws:111122223333:us-east-1"},
        ),
        ({"shard_complete": False}, ReasonCode.SHARD_INCOMPLETE, {"shard": "aws:111122223333:us-east-1"}),
        ({"instance": instance(state=InstanceState.UNKNOWN)}, ReasonCode.WAITING, {"state": "unknown"}),
        ({"instance": instance(state=InstanceState.PENDING)}, ReasonCode.WAITING, {"state": "pending"}),
        (
            {"finding": finding(verdict=Verdict.UNMEASURED, reason=Reason(ReasonCode.STALE, {"age_minutes": 90}))},
            ReasonCode.UNMEASURED,
            {"age_minutes": 90, "cause": "stale"},
        ),
        ({"finding": None}, ReasonCode.UNMEASURED, {"cause": ""}),
        ({"instance": instance(cannot_stop="one_time_spot")}, ReasonCode.CANNOT_STOP, {"cause": "one_time_spot"}),
    ],
)
def test_a_held_case_names_what_holds_it(
    changes: dict[str, Any], code: ReasonCode, facts: dict[str, FactValue]
) -> None:
    assert advance(case(), seen(**changes)) == waits(case(), code, facts)


def test_five_failures_in_a_row_wait_for_a_person_and_four_do_not() -> None:
    stuck = case(failures=5)
    assert advance(stuck, seen()) == waits(stuck, ReasonCode.NOT_TAKEN_EFFECT, {"failures": 5})
    assert advance(case(failures=4), seen()).wants is Verb.STOP


def test_a_wait_names_the_step_and_the_minute_it_is_due() -> None:
    early = case(since=NOW - timedelta(hours=23), status=CaseStatus.HELD)
    facts: dict[str, FactValue] = {"verb": "stop", "due": "2026-03-10T13:30+00:00"}
    assert advance(early, seen()) == waits(early, ReasonCode.WAITING, facts, CaseStatus.OPEN)


def test_a_due_step_is_wanted_under_its_own_decision() -> None:
    before = case(status=CaseStatus.HELD)
    ready = replace(before, status=CaseStatus.OPEN, reason=Reason(ReasonCode.WAITING, {"verb": "stop"}))
    assert advance(before, seen()) == CaseStep(replace(ready, decision_id=decision_id(before)), Verb.STOP)


def test_due_is_when_the_wait_since_the_last_step_is_over() -> None:
    assert due_at(case(since=NOW), Rung(Verb.STOP, DAY)) == NOW + DAY
    assert due_at(case(since=NOW), Rung(Verb.STOP, DAY), twice) == NOW + 2 * DAY


def twice(start: datetime, wait: timedelta, /, *, first_stop: bool = False) -> datetime:
    del first_stop
    return start + 2 * wait


def test_a_snooze_is_shown_with_its_end() -> None:
    expected = replace(
        case(),
        status=CaseStatus.SNOOZED,
        snoozed_until=UNTIL,
        reason=Reason(ReasonCode.SNOOZED, {"until": "2026-03-12T09:05+00:00"}),
    )
    assert advance(case(), seen(snoozed_until=UNTIL)) == CaseStep(expected)


def test_a_finished_ladder_is_open_not_held() -> None:
    """Nobody has to do anything about it."""
    ends_at_stop = rule(ladder=(Rule(Verb.STOP, DAY),))
    done = case(rung=2, climbed=(WARNED, HALTED), rule_digest=ends_at_stop.digest, terms=terms(ends_at_stop))
    done = replace(done, status=CaseStatus.HELD)
    after = advance(done, seen(STOPPED, finding=QUIET, rule=ends_at_stop))
    assert after == waits(done, ReasonCode.LADDER_DONE, {}, CaseStatus.OPEN)


def test_a_machine_that_cannot_stop_is_done_when_only_a_notice_was_asked_for() -> None:
    only_warn = rule(ladder=(Rule(Verb.WARN, timedelta(0)),))
    told = case(rung=1, climbed=(WARNED,), rule_digest=only_warn.digest, terms=terms(only_warn))
    after = advance(told, seen(instance(cannot_stop="one_time_spot"), rule=only_warn))
    assert after == waits(told, ReasonCode.LADDER_DONE, {}, CaseStatus.OPEN)


def test_a_ladder_without_a_stop_does_not_blame_a_machine_that_can() -> None:
    """Only what cannot stop is held as such."""
    done = case(rung=5, climbed=(WARNED, HALTED))
    after = advance(done, seen(STOPPED, finding=QUIET))
    assert after == waits(done, ReasonCode.LADDER_DONE, {}, CaseStatus.OPEN)


def test_a_volume_attached_late_is_copied_before_the_terminate() -> None:
    """The way back is to the last snapshot rung, under a new decision."""
    copies_twice = rule(
        ladder=(Rule(Verb.SNAPSHOT, DAY), Rule(Verb.STOP, DAY), Rule(Verb.TERMINATE, 7 * DAY)),
    )
    ready = case(
        rung=5,
        climbed=(WARNED, HALTED),
        rule_digest=copies_twice.digest,
        terms=terms(copies_twice),
        status=CaseStatus.HELD,
        decision_id="old",
        attempt=7,
    )
    late = detail(STOPPED, volumes=(volume("vol-1"), volume("vol-2")), snapshots=(snapshot(),))
    expected = replace(
        ready,
        status=CaseStatus.OPEN,
        rung=4,
        attempt=8,
        decision_id="",
        reason=Reason(ReasonCode.SNAPSHOT_MISSING),
    )
    after = advance(ready, seen(STOPPED, finding=QUIET, rule=copies_twice, detail=late))
    assert after == CaseStep(expected, Verb.SNAPSHOT)


def test_a_terminate_is_wanted_once_every_volume_is_copied() -> None:
    ready = case(rung=4, climbed=(WARNED, HALTED))
    copied = detail(STOPPED, snapshots=(snapshot(),))
    assert advance(ready, seen(STOPPED, finding=QUIET, detail=copied)).wants is Verb.TERMINATE


def test_a_missing_copy_is_no_reason_against_any_other_step() -> None:
    """A stop takes no disks away."""
    assert advance(case(), seen(detail=detail())).wants is Verb.STOP


def test_a_rehearsed_notice_leaves_no_decision_behind() -> None:
    """Nothing was sent, so there is nothing to approve or deliver."""
    watching = rule(mode=Mode.OBSERVE)
    quiet = case(rung=0, mode=Mode.OBSERVE, rule_digest=watching.digest, terms=terms(watching), failures=2, attempt=3)
    expected = replace(
        quiet,
        rung=1,
        climbed=(ClimbedRung(Verb.WARN, NOW),),
        since=NOW,
        attempt=4,
        failures=0,
        reason=Reason(ReasonCode.CONFIRMED, {"verb": "warn"}),
    )
    assert advance(quiet, seen(rule=watching)) == CaseStep(expected, Verb.WARN)
