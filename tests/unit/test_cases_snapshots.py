"""A snapshot rung is climbed when every volume has its copy; what fails or hangs is told apart."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, detail, finding, instance, rule, seen, snapshot, volume

from costguard.cases import (
    Case,
    CaseStatus,
    CaseStep,
    ClimbedRung,
    Phase,
    advance,
    claimed,
    copied_at_once,
    decision_id,
    held,
    uncopied,
)
from costguard.domain.actions import Verb
from costguard.domain.findings import Verdict
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.resources import Instance, InstanceDetail, InstanceState, Snapshot, SnapshotState, Volume
from costguard.policy.model.terms import terms

HOUR = timedelta(hours=1)
STOPPED = instance(state=InstanceState.STOPPED)
QUIET = finding(STOPPED, Verdict.COMPLIANT)
WARNED = ClimbedRung(Verb.WARN, NOW - 10 * DAY)
HALTED = ClimbedRung(Verb.STOP, NOW - 9 * DAY)
ONE, TWO = volume("vol-1"), volume("vol-2")


def copying(failures: int = 1, **changes: Any) -> Case:
    """Copies were asked for an hour ago; then held in doubt."""
    ready = case(rung=3, climbed=(WARNED, HALTED), attempt=3, failures=failures)
    return replace(held(claimed(ready, NOW - HOUR), Reason(ReasonCode.WAITING)), **changes)


def copy(of: Volume, state: SnapshotState, **changes: Any) -> Snapshot:
    return replace(snapshot(of, state=state, decision_id=copying().decision_id), **changes)


def holding(*snapshots: Snapshot) -> InstanceDetail:
    return detail(STOPPED, volumes=(ONE, TWO), snapshots=snapshots)


def after(before: Case, found: InstanceDetail | None, subject: Instance = STOPPED) -> CaseStep:
    return advance(before, seen(subject, finding=QUIET, detail=found, intent_written=True))


def stays(before: Case, code: ReasonCode, facts: dict[str, FactValue] | None = None) -> CaseStep:
    return CaseStep(replace(before, status=CaseStatus.HELD, reason=Reason(code, facts or {})))


def tried_again(before: Case, code: ReasonCode) -> CaseStep:
    free = replace(before, phase=Phase.WAITING, attempt=4, failures=before.failures + 1, decision_id="")
    return CaseStep(replace(free, claimed_at=None, reason=Reason(code, {"failures": before.failures + 1})))


def awaited(before: Case, missing: int) -> CaseStep:
    going = replace(before, status=CaseStatus.OPEN, phase=Phase.CONFIRMING)
    return CaseStep(replace(going, reason=Reason(ReasonCode.CONFIRMING, {"volumes": missing})))


DONE_ONE, DONE_TWO = copy(ONE, SnapshotState.COMPLETED), copy(TWO, SnapshotState.COMPLETED)


def test_the_rung_is_climbed_when_every_volume_is_copied() -> None:
    before = copying()
    expected = replace(
        before,
        status=CaseStatus.OPEN,
        phase=Phase.WAITING,
        rung=4,
        climbed=(WARNED, HALTED, ClimbedRung(Verb.SNAPSHOT, NOW)),
        since=NOW,
        attempt=4,
        failures=0,
        decision_id="",
        claimed_at=None,
        reason=Reason(ReasonCode.CONFIRMED, {"verb": "snapshot"}),
    )
    assert after(before, holding(DONE_ONE, DONE_TWO)) == CaseStep(expected)


def test_what_was_not_looked_at_closely_stays_in_doubt() -> None:
    assert after(copying(), None) == stays(copying(), ReasonCode.DETAIL_UNREAD)
    assert after(copying(), detail(STOPPED, volumes=())) == stays(copying(), ReasonCode.NO_VOLUMES)


def test_a_copy_on_its_way_is_awaited_however_long() -> None:
    """A first snapshot of a large disk takes a day."""
    going = holding(DONE_ONE, copy(TWO, SnapshotState.PENDING))
    assert after(copying(), going) == awaited(copying(), 1)
    assert after(copying(claimed_at=NOW - 3 * DAY), going) == awaited(copying(claimed_at=NOW - 3 * DAY), 1)


def test_a_copy_on_its_way_is_awaited_before_a_failed_one_is_tried_again() -> None:
    """Trying again now would copy the pending volume twice."""
    mixed = holding(copy(ONE, SnapshotState.FAILED), copy(TWO, SnapshotState.PENDING))
    assert after(copying(), mixed) == awaited(copying(), 2)


def test_a_failed_copy_is_tried_again_under_a_new_decision() -> None:
    found = holding(DONE_ONE, copy(TWO, SnapshotState.FAILED))
    assert after(copying(), found) == tried_again(copying(), ReasonCode.SNAPSHOT_FAILED)


def test_the_fifth_failed_copy_waits_for_a_person() -> None:
    found = holding(DONE_ONE, copy(TWO, SnapshotState.FAILED))
    assert after(copying(3), found) == tried_again(copying(3), ReasonCode.SNAPSHOT_FAILED)
    assert after(copying(4), found) == stays(copying(4), ReasonCode.SNAPSHOT_FAILED, {"volumes": 1})


def test_a_failure_of_an_earlier_decision_is_not_this_ones() -> None:
    """The new copies may be about to appear."""
    old = copy(TWO, SnapshotState.FAILED, decision_id="an earlier one")
    fresh = copying(claimed_at=NOW - HOUR + timedelta(seconds=1))
    assert after(fresh, holding(DONE_ONE, old)) == CaseStep(fresh)


def test_a_copy_that_hangs_from_an_earlier_decision_is_not_waited_for() -> None:
    old = copy(TWO, SnapshotState.PENDING, decision_id="an earlier one")
    assert after(copying(), holding(DONE_ONE, old)) == tried_again(copying(), ReasonCode.NOT_TAKEN_EFFECT)


def test_copies_that_never_appear_are_given_up_after_an_hour() -> None:
    assert after(copying(), holding(DONE_ONE)) == tried_again(copying(), ReasonCode.NOT_TAKEN_EFFECT)
    fresh = copying(claimed_at=NOW - HOUR + timedelta(seconds=1))
    assert after(fresh, holding(DONE_ONE)) == CaseStep(fresh)


def test_what_cannot_stop_is_copied_on_its_second_rung() -> None:
    spot = instance(cannot_stop="one_time_spot")
    allowed = rule(limits=replace(rule().limits, unstoppable_may_terminate=True))
    ready = case(rung=1, climbed=(WARNED,), rule_digest=allowed.digest, terms=terms(allowed))
    found = detail(spot, volumes=(ONE,), snapshots=(snapshot(ONE),))
    step = advance(claimed(ready, NOW), seen(spot, rule=allowed, detail=found, intent_written=True)).case
    assert step is not None
    assert (step.rung, step.climbed[-1]) == (2, ClimbedRung(Verb.SNAPSHOT, NOW))


def due_to_copy() -> Case:
    """Stopped, its quarantine over, the snapshots not asked for yet."""
    return case(rung=3, climbed=(WARNED, HALTED), since=NOW - 8 * DAY, attempt=3, status=CaseStatus.HELD)


def test_copies_made_before_the_wait_began_anew_are_not_made_again() -> None:
    """A snooze or a changed rule sent the case back; the disks were copied after the stop all the same."""
    step = after(due_to_copy(), holding(DONE_ONE, DONE_TWO))
    expected = replace(
        due_to_copy(),
        status=CaseStatus.OPEN,
        rung=4,
        climbed=(WARNED, HALTED, ClimbedRung(Verb.SNAPSHOT, NOW)),
        since=NOW,
        attempt=4,
        reason=Reason(ReasonCode.CONFIRMED, {"verb": "snapshot"}),
    )
    assert step == CaseStep(expected)


@pytest.mark.parametrize("found", [None, holding(DONE_ONE), detail(STOPPED, volumes=())])
def test_copies_that_are_not_all_there_are_asked_for(found: InstanceDetail | None) -> None:
    """Also where nobody looked, or no volume is listed: absence of a volume is not a copy of it."""
    assert after(due_to_copy(), found).wants is Verb.SNAPSHOT


def test_other_steps_do_not_wait_for_copies() -> None:
    """Only the snapshot rung is climbed by copies that are there."""
    second_notice = replace(due_to_copy(), rung=2)
    assert after(second_notice, holding(DONE_ONE, DONE_TWO)).wants is Verb.WARN


SPOT = instance(cannot_stop="one_time_spot")
ENDS = rule(limits=replace(rule().limits, unstoppable_may_terminate=True))


def on_its_second_rung(failures: int = 1) -> Case:
    """A machine that cannot stop: its copies were asked for an hour ago, while it runs."""
    ready = case(rung=1, climbed=(WARNED,), rule_digest=ENDS.digest, terms=terms(ENDS), attempt=2, failures=failures)
    return claimed(ready, NOW - HOUR)


def in_one_set(of: Volume, state: SnapshotState = SnapshotState.COMPLETED, decision: str = "") -> Snapshot:
    made = snapshot(of, state=state, decision_id=decision or on_its_second_rung().decision_id)
    return replace(made, ref=replace(made.ref, native_id=f"{made.ref.native_id}-{made.decision_id}"))


def running(*snapshots: Snapshot, together: bool = True) -> InstanceDetail:
    return detail(SPOT, volumes=(ONE, TWO), snapshots=snapshots, copied_together=together)


def after_running(before: Case, found: InstanceDetail) -> Case:
    step = advance(before, seen(SPOT, rule=ENDS, finding=finding(SPOT), detail=found, intent_written=True))
    assert step.case is not None
    return step.case


def test_a_running_machines_copies_count_as_one_set_or_not_at_all() -> None:
    """Copies of two decisions were made at two moments: what spans both disks is torn between them."""
    one, other = in_one_set(ONE), in_one_set(TWO, decision="an earlier decision")
    whole = running(one, in_one_set(TWO))
    torn = running(one, other)
    assert uncopied(on_its_second_rung(), whole) == ()
    assert uncopied(on_its_second_rung(), torn) == (ONE, TWO)
    assert uncopied(on_its_second_rung(), running(one)) == (ONE, TWO)
    assert uncopied(on_its_second_rung(), running(one, other, together=False)) == ()


def test_a_set_made_earlier_counts_as_a_whole() -> None:
    """After a snooze began the wait anew, as of single copies."""
    earlier = running(*(in_one_set(each, decision="an earlier decision") for each in (ONE, TWO)))
    assert uncopied(on_its_second_rung(), earlier) == ()


def test_a_volume_attached_since_makes_the_set_too_small() -> None:
    three = volume("vol-3")
    found = replace(running(in_one_set(ONE), in_one_set(TWO)), volumes=(ONE, TWO, three))
    assert uncopied(on_its_second_rung(), found) == (ONE, TWO, three)


def test_behind_a_stop_every_volume_is_copied_by_itself() -> None:
    """Nothing runs: copies made one after the other are consistent all the same."""
    stopped = replace(holding(DONE_ONE), copied_together=True)
    assert uncopied(copying(), stopped) == (TWO,)
    assert copied_at_once(copying(), stopped) == ()


def test_what_one_call_copies_is_every_volume_of_a_running_machine_in_one_order() -> None:
    found = running()
    assert copied_at_once(on_its_second_rung(), found) == (ONE.ref, TWO.ref)
    assert copied_at_once(on_its_second_rung(), replace(found, volumes=(TWO, ONE))) == (ONE.ref, TWO.ref)
    assert copied_at_once(on_its_second_rung(), replace(found, copied_together=False)) == ()


def test_a_single_volume_is_its_own_set() -> None:
    single = replace(running(), volumes=(ONE,))
    assert copied_at_once(on_its_second_rung(), single) == ()
    assert uncopied(on_its_second_rung(), replace(single, snapshots=(in_one_set(ONE),))) == ()


def test_a_set_is_climbed_once_every_volume_of_it_is_seen_complete() -> None:
    half = running(in_one_set(ONE), in_one_set(TWO, SnapshotState.PENDING))
    whole = running(in_one_set(ONE), in_one_set(TWO))
    assert after_running(on_its_second_rung(), half).phase is Phase.CONFIRMING
    assert after_running(on_its_second_rung(), whole).climbed[-1] == ClimbedRung(Verb.SNAPSHOT, NOW)


def test_a_failed_set_is_made_anew_as_a_whole_and_the_fifth_waits_for_a_person() -> None:
    failed = running(in_one_set(ONE, SnapshotState.FAILED), in_one_set(TWO))
    again = after_running(on_its_second_rung(), failed)
    assert (again.reason.code, again.phase, again.failures) == (ReasonCode.SNAPSHOT_FAILED, Phase.WAITING, 2)
    assert decision_id(again) != on_its_second_rung().decision_id
    given_up = after_running(on_its_second_rung(failures=4), failed)
    assert (given_up.status, given_up.reason.code) == (CaseStatus.HELD, ReasonCode.SNAPSHOT_FAILED)


def test_a_set_that_stays_partial_is_waited_for_and_then_made_anew() -> None:
    """Where the answer was lost, and what was made has no copy of a volume: nothing is added to that set."""
    partial = running(in_one_set(ONE))
    fresh = replace(on_its_second_rung(), claimed_at=NOW - HOUR + timedelta(seconds=1))
    assert after_running(fresh, partial) == fresh
    again = after_running(on_its_second_rung(), partial)
    assert (again.reason.code, again.phase) == (ReasonCode.NOT_TAKEN_EFFECT, Phase.WAITING)
