"""The life of a case: one rung a run, and everything that speaks for the owner ends or pauses it."""

from __future__ import annotations

from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, detail, finding, instance, rule, seen, snapshot, volume

from costguard.cases import (
    Case,
    CaseStatus,
    ClimbedRung,
    Phase,
    SubjectSnapshot,
    advance,
    claimed,
    confirming,
    decision_id,
    refused,
    unclaimed,
)
from costguard.domain.actions import Outcome, Verb
from costguard.domain.findings import Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import InstanceState, Snapshot, SnapshotState
from costguard.guards.rules.common import Limits, Mode, Step
from costguard.guards.rules.idle import IdleBounds
from costguard.policy.model.terms import terms
from costguard.policy.model.working_time import WorkingCalendar

STOPPED = instance(state=InstanceState.STOPPED)
WARNED = ClimbedRung(Verb.WARN, NOW - DAY)
HALTED = ClimbedRung(Verb.STOP, NOW - DAY)


def stopped_case(rung: int = 3, **changes: Any) -> Case:
    """Stopped a day ago, noticed again, its quarantine over."""
    return case(rung=rung, climbed=(WARNED, HALTED), since=NOW - 8 * DAY, **changes)


def stopped_seen(**changes: Any) -> SubjectSnapshot:
    return seen(STOPPED, finding=finding(STOPPED, Verdict.COMPLIANT), **changes)


def test_a_violation_opens_a_case_and_wants_a_notice() -> None:
    step = advance(None, seen())
    assert step.wants is Verb.WARN
    assert step.case is not None
    assert (step.case.status, step.case.rung, step.case.decision_id) == (CaseStatus.OPEN, 0, decision_id(step.case))


@pytest.mark.parametrize(
    "changes",
    [
        {"finding": finding(verdict=Verdict.COMPLIANT)},
        {"finding": finding(verdict=Verdict.UNMEASURED)},
        {"finding": finding(verdict=Verdict.EXEMPT)},
        {"snoozed_until": NOW + DAY},
        {"shard_complete": False},
        {"rule": None},
    ],
)
def test_nothing_else_opens_a_case(changes: dict[str, Any]) -> None:
    assert advance(None, seen(**changes)).case is None


def test_the_stop_waits_for_the_full_grace() -> None:
    early = case(since=NOW - DAY + timedelta(seconds=1))
    assert advance(early, seen()).wants is None
    assert advance(case(), seen()).wants is Verb.STOP


def test_a_calendar_only_lengthens_the_grace() -> None:
    week = WorkingCalendar("Asia/Shanghai", frozenset(range(5)), time(10), time(18))
    assert advance(case(), seen(), week.after).wants is None


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"finding": finding(verdict=Verdict.COMPLIANT)}, ReasonCode.RECOVERED),
        (
            {"finding": finding(verdict=Verdict.EXEMPT, reason=Reason(ReasonCode.PROTECTED_TAG))},
            ReasonCode.PROTECTED_TAG,
        ),
        ({"instance": instance(run_epoch="epoch-2")}, ReasonCode.RESTARTED),
        ({"instance": STOPPED}, ReasonCode.STOPPED_BY_OTHERS),
        ({"instance": None, "finding": None}, ReasonCode.VANISHED),
        ({"instance": instance(state=InstanceState.TERMINATED)}, ReasonCode.VANISHED),
        ({"rule": None}, ReasonCode.RULE_GONE),
        ({"rule": rule(mode=Mode.WARN)}, ReasonCode.MODE_CHANGED),
        ({"instance": None, "shard_read": False, "account_closed": True}, ReasonCode.VANISHED),
    ],
)
def test_what_speaks_for_the_owner_closes_the_case(changes: dict[str, Any], code: ReasonCode) -> None:
    step = advance(case(), seen(**changes))
    assert step.wants is None
    assert step.case is not None
    assert (step.case.status, step.case.reason.code) == (CaseStatus.CLOSED, code)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"finding": finding(verdict=Verdict.UNMEASURED)}, ReasonCode.UNMEASURED),
        ({"shard_complete": False}, ReasonCode.SHARD_INCOMPLETE),
        ({"shard_complete": False, "instance": None, "finding": None}, ReasonCode.SHARD_INCOMPLETE),
        ({"shard_read": False, "instance": None, "finding": None}, ReasonCode.ACCOUNT_UNREAD),
        ({"instance": instance(state=InstanceState.UNKNOWN)}, ReasonCode.WAITING),
    ],
)
def test_what_cannot_be_seen_holds_the_case_where_it_is(changes: dict[str, Any], code: ReasonCode) -> None:
    step = advance(case(), seen(**changes))
    assert step.wants is None
    assert step.case is not None
    assert (step.case.status, step.case.reason.code, step.case.rung) == (CaseStatus.HELD, code, 1)


def test_a_snooze_pauses_and_then_starts_the_grace_anew() -> None:
    paused = advance(case(climbed=(WARNED,)), seen(snoozed_until=NOW + DAY)).case
    assert paused is not None
    assert paused.status is CaseStatus.SNOOZED
    after = advance(paused, seen(now=NOW + 2 * DAY))
    assert after.wants is Verb.WARN
    assert after.case is not None
    assert (after.case.rung, after.case.climbed) == (0, ())


@pytest.mark.parametrize("climbed", [(WARNED,), (WARNED, ClimbedRung(Verb.STOP, NOW - timedelta(hours=1)))])
def test_a_keep_that_no_run_saw_hold_cancels_the_notice_before_it(climbed: tuple[ClimbedRung, ...]) -> None:
    """It was said while a run was at work that died, or it was shorter than the time between two runs."""
    told = case(rung=len(climbed), climbed=climbed)
    machine = instance(state=InstanceState.STOPPED) if len(climbed) > 1 else instance()
    after = advance(told, seen(instance=machine, kept_at=WARNED.at + timedelta(minutes=1)))
    assert after.case is not None
    assert after.wants in {Verb.WARN, None}
    assert (after.case.climbed, after.case.since) == (climbed[1:], NOW)
    assert advance(told, seen(instance=machine, kept_at=WARNED.at - timedelta(hours=1))).case != after.case


def test_a_new_decision_never_reuses_an_old_id() -> None:
    """An approval or intent of an earlier round must not fit a later one."""
    first = advance(None, seen()).case
    assert first is not None
    again = advance(replace(first, status=CaseStatus.SNOOZED, snoozed_until=NOW), seen(now=NOW + DAY)).case
    assert again is not None
    assert again.decision_id != first.decision_id


def test_a_tightened_rule_applies_at_once() -> None:
    stricter = rule(ladder=(Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, timedelta(hours=30))))
    step = advance(case(since=NOW - timedelta(hours=29)), seen(rule=stricter))
    assert step.wants is None
    assert step.case is not None
    assert (step.case.rung, step.case.rule_digest) == (1, stricter.digest)


def test_a_loosened_rule_restarts_the_wait_with_a_new_notice() -> None:
    looser = rule(idle=IdleBounds(every_gpu_max_below_percent=20.0))
    step = advance(case(climbed=(WARNED,)), seen(rule=looser))
    assert step.wants is Verb.WARN
    assert step.case is not None
    assert (step.case.rung, step.case.since) == (0, NOW)


def test_a_notice_counts_only_when_delivered() -> None:
    sent = confirming(claimed(case(rung=0), NOW))
    assert advance(sent, seen(intent_written=True)).case == sent, "its own run may still be sending"
    waiting = advance(sent, seen(now=NOW + timedelta(hours=1), intent_written=True)).case
    assert waiting is not None
    assert (waiting.status, waiting.reason.code) == (CaseStatus.HELD, ReasonCode.NOTICE_UNDELIVERED)
    told = advance(waiting, seen(now=NOW + DAY, intent_written=True, notice_delivered_at=NOW + DAY)).case
    assert told is not None
    assert (told.rung, told.since, told.phase) == (1, NOW + DAY, Phase.WAITING)


def test_a_rejected_notice_is_tried_anew_after_a_day() -> None:
    sent = confirming(claimed(case(rung=0), NOW))
    rejected: dict[str, Any] = {"intent_written": True, "notice_dead": True}
    soon = advance(sent, seen(now=NOW + timedelta(hours=23), **rejected)).case
    assert soon is not None
    assert soon.phase is Phase.CONFIRMING
    later = advance(sent, seen(now=NOW + DAY, **rejected)).case
    assert later is not None
    assert (later.phase, later.failures) == (Phase.WAITING, 0)
    assert decision_id(later) != sent.decision_id


def test_a_stop_is_confirmed_only_by_seeing_it() -> None:
    called = confirming(claimed(case(), NOW))
    stopping = advance(called, seen(instance(state=InstanceState.STOPPING), intent_written=True)).case
    assert stopping is not None
    assert stopping.phase is Phase.CONFIRMING
    done = advance(stopping, stopped_seen(intent_written=True, last_outcome=Outcome.ACCEPTED)).case
    assert done is not None
    assert (done.rung, done.climbed[-1].verb) == (2, Verb.STOP)


def test_an_unknown_stop_is_described_not_repeated() -> None:
    called = confirming(claimed(case(), NOW - timedelta(minutes=10)))
    step = advance(called, seen(intent_written=True, last_outcome=Outcome.UNKNOWN))
    assert step.wants is None
    assert step.case is not None
    assert step.case.phase is Phase.CONFIRMING
    later = advance(called, seen(now=NOW + timedelta(hours=2), intent_written=True, last_outcome=Outcome.UNKNOWN)).case
    assert later is not None
    assert (later.phase, later.failures, later.decision_id) == (Phase.WAITING, 1, "")


def test_a_rung_that_keeps_failing_waits_for_a_person() -> None:
    step = advance(case(failures=5), seen())
    assert step.wants is None
    assert step.case is not None
    assert (step.case.status, step.case.reason.code) == (CaseStatus.HELD, ReasonCode.NOT_TAKEN_EFFECT)


def test_somebodys_start_ends_the_quarantine() -> None:
    step = advance(stopped_case(), seen(instance()))
    assert step.case is not None
    assert step.case.reason.code is ReasonCode.RESTARTED


def test_the_quarantine_is_waited_for() -> None:
    assert advance(replace(stopped_case(), since=NOW - 6 * DAY), stopped_seen()).wants is None
    assert advance(stopped_case(), stopped_seen()).wants is Verb.SNAPSHOT


def test_snapshots_are_confirmed_when_every_volume_has_one() -> None:
    two = (volume("vol-1"), volume("vol-2"))
    called = confirming(claimed(stopped_case(), NOW))
    one_done = detail(STOPPED, volumes=two, snapshots=(snapshot(two[0], decision_id=called.decision_id),))
    assert advance(called, stopped_seen(detail=one_done, intent_written=True)).case.rung == 3  # type: ignore[union-attr]
    both = replace(one_done, snapshots=(*one_done.snapshots, snapshot(two[1], decision_id=called.decision_id)))
    done = advance(called, stopped_seen(detail=both, intent_written=True)).case
    assert done is not None
    assert (done.rung, done.climbed[-1].verb) == (4, Verb.SNAPSHOT)


@pytest.mark.parametrize(
    "unfit",
    [
        snapshot(state=SnapshotState.PENDING),
        snapshot(state=SnapshotState.FAILED),
        snapshot(started_at=NOW - 2 * DAY),
        snapshot(decision_id=""),
    ],
)
def test_an_unfit_snapshot_does_not_count(unfit: Snapshot) -> None:
    """Pending, failed, begun before the stop was confirmed, or not ours."""
    called = confirming(claimed(stopped_case(), NOW))
    after = advance(called, stopped_seen(detail=detail(STOPPED, snapshots=(unfit,)), intent_written=True)).case
    assert after is not None
    assert after.rung == 3


def test_snapshots_without_detail_or_volumes_are_held() -> None:
    called = confirming(claimed(stopped_case(), NOW))
    unread = advance(called, stopped_seen(intent_written=True)).case
    assert unread is not None
    assert unread.reason.code is ReasonCode.DETAIL_UNREAD
    empty = advance(called, stopped_seen(detail=detail(STOPPED, volumes=()), intent_written=True)).case
    assert empty is not None
    assert empty.reason.code is ReasonCode.NO_VOLUMES


def test_a_volume_attached_late_goes_back_to_the_snapshot_rung() -> None:
    ready = stopped_case(rung=4)
    late = detail(STOPPED, volumes=(volume("vol-1"), volume("vol-2")), snapshots=(snapshot(),))
    step = advance(ready, stopped_seen(detail=late))
    assert step.wants is Verb.SNAPSHOT
    assert step.case is not None
    assert step.case.rung == 3


def test_an_unanswered_terminate_is_never_repeated() -> None:
    """On Tencent a second call destroys what the first recycled."""
    called = confirming(claimed(stopped_case(rung=4), NOW - DAY))
    for outcome in (None, Outcome.UNKNOWN, Outcome.ACCEPTED):
        step = advance(called, stopped_seen(now=NOW + 30 * DAY, intent_written=True, last_outcome=outcome))
        assert step.wants is None
        assert step.case is not None
        assert (step.case.status, step.case.reason.code) == (CaseStatus.HELD, ReasonCode.OUTCOME_UNKNOWN)


def test_a_terminated_machine_closes_its_case() -> None:
    called = confirming(claimed(stopped_case(rung=4), NOW))
    step = advance(called, seen(instance=None, finding=None, intent_written=True))
    assert step.case is not None
    assert (step.case.status, step.case.reason.code) == (CaseStatus.CLOSED, ReasonCode.TERMINATED)


def test_what_cannot_stop_gets_a_notice_and_no_more() -> None:
    spot = instance(cannot_stop="one_time_spot")
    step = advance(case(rung=1), seen(spot))
    assert step.wants is None
    assert step.case is not None
    assert step.case.reason.code is ReasonCode.CANNOT_STOP


def test_what_cannot_stop_is_terminated_only_after_both_waits_and_a_snapshot() -> None:
    allowed = rule(limits=replace(rule().limits, unstoppable_may_terminate=True))
    assert [rung.verb for rung in allowed.rungs(stoppable=False)] == [Verb.WARN, Verb.SNAPSHOT, Verb.TERMINATE]
    assert allowed.rungs(stoppable=False)[1].after == timedelta(hours=24) + timedelta(days=7)


def test_observe_rehearses_and_starts_no_grace() -> None:
    watching = rule(mode=Mode.OBSERVE)
    first = advance(None, seen(rule=watching))
    assert first.wants is Verb.WARN
    assert first.case is not None
    second = advance(first.case, seen(rule=watching, now=NOW + DAY))
    assert second.wants is Verb.STOP
    switched = advance(second.case, seen(rule=rule(), now=NOW + DAY)).case
    assert switched is not None
    assert switched.reason.code is ReasonCode.MODE_CHANGED


def test_a_ladder_of_warnings_warns_once() -> None:
    only_warn = rule(ladder=(Step(Verb.WARN, timedelta(0)),))
    told = case(rung=1, climbed=(WARNED,), rule_digest=only_warn.digest, terms=terms(only_warn))
    step = advance(told, seen(rule=only_warn))
    assert step.wants is None
    assert step.case is not None
    assert (step.case.status, step.case.reason.code) == (CaseStatus.OPEN, ReasonCode.LADDER_DONE)


def test_nothing_sent_keeps_the_decision_and_a_refusal_makes_a_new_one() -> None:
    ready = claimed(case(), NOW)
    assert decision_id(unclaimed(ready, Reason(ReasonCode.CAP_ACTIONS))) == ready.decision_id
    assert decision_id(refused(ready, Reason(ReasonCode.REFUSED_BY_CLOUD), NOW)) != ready.decision_id


def test_limits_default_to_asking_before_a_local_disk_is_lost() -> None:
    assert Limits().local_disk.value == "ask"
