"""Every move of a case is a new value that differs in what the move is about and in nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import DAY, NOW, case, detail, snapshot, volume

from costguard.cases import (
    Case,
    CaseStatus,
    ClimbedRung,
    Phase,
    claimed,
    confirming,
    decision_id,
    held,
    noticed,
    refused,
    unclaimed,
    uncopied,
)
from costguard.domain.actions import Verb
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import Snapshot

WARNED = ClimbedRung(Verb.WARN, NOW - 2 * DAY)
DENIED = Reason(ReasonCode.PERMISSION_MISSING, {"permission": "ec2:StopInstances"})


def waiting() -> Case:
    """Held, tried before."""
    return case(status=CaseStatus.HELD, climbed=(WARNED,), attempt=3, failures=2)


def test_a_claim_takes_the_current_decision() -> None:
    expected = replace(waiting(), status=CaseStatus.OPEN, phase=Phase.CLAIMED, claimed_at=NOW)
    assert claimed(waiting(), NOW) == replace(expected, decision_id=decision_id(waiting()))


def test_a_claim_given_up_keeps_its_decision() -> None:
    given_up = unclaimed(claimed(waiting(), NOW), DENIED)
    assert given_up == replace(waiting(), reason=DENIED, decision_id=decision_id(waiting()))


def test_a_refusal_is_counted_and_needs_a_new_decision() -> None:
    after = refused(claimed(waiting(), NOW), DENIED, NOW)
    assert after == replace(waiting(), reason=DENIED, attempt=4, failures=3, refusal=DENIED, refused_at=NOW)
    assert (noticed(after, NOW).refusal, noticed(after, NOW).refused_at) == (None, None)


def test_what_was_not_sent_is_no_refusal_of_the_cloud() -> None:
    late = Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "time"})
    assert refused(claimed(waiting(), NOW), late, NOW).refusal is None


def test_an_accepted_call_is_awaited() -> None:
    called = claimed(waiting(), NOW)
    assert confirming(called) == replace(called, phase=Phase.CONFIRMING, reason=Reason(ReasonCode.CONFIRMING))


def test_a_delivered_notice_starts_the_next_wait_at_its_delivery() -> None:
    """The grace runs from when people could know, not from when we wrote."""
    delivered, told = NOW - DAY / 2, claimed(replace(waiting(), rung=0), NOW)
    rung = ClimbedRung(Verb.WARN, delivered, told.decision_id)
    expected = replace(
        case(rung=1, climbed=(WARNED, rung), since=delivered, attempt=4),
        reason=Reason(ReasonCode.CONFIRMED, {"verb": "warn"}),
    )
    assert noticed(told, delivered) == expected


def test_a_hold_changes_the_reason_alone() -> None:
    called = claimed(waiting(), NOW)
    assert held(called, DENIED) == replace(called, status=CaseStatus.HELD, reason=DENIED)


def test_a_step_climbed_twice_counts_from_the_last_time() -> None:
    later = ClimbedRung(Verb.WARN, NOW)
    assert case(climbed=(WARNED, later)).climbed_at(Verb.WARN) == NOW
    assert case(climbed=(WARNED, later)).climbed_at(Verb.STOP) is None


def test_a_machine_has_one_open_case_for_each_check() -> None:
    assert case().key == "idle_gpu/idle/aws:111122223333:us-east-1:instance:i-1"


def test_a_ledger_written_by_any_version_is_read() -> None:
    """These words stand in records; another word for the same thing would lose the case."""
    assert [each.value for each in CaseStatus] == ["open", "held", "snoozed", "closed"]
    assert [each.value for each in Phase] == ["waiting", "claimed", "confirming"]


STOPPED_AT = NOW - 5 * DAY


@pytest.mark.parametrize(
    ("climbed", "counts_from"),
    [
        ((WARNED, ClimbedRung(Verb.STOP, STOPPED_AT)), STOPPED_AT),
        ((ClimbedRung(Verb.STOP, STOPPED_AT), WARNED), STOPPED_AT),
        ((WARNED,), WARNED.at),
        ((), NOW - 20 * DAY),
    ],
)
def test_a_copy_counts_from_the_stop_else_the_notice_else_the_opening(
    climbed: tuple[ClimbedRung, ...], counts_from: object
) -> None:
    """A machine that cannot stop is copied while it runs, but not before people were told."""
    stood = case(climbed=climbed, opened_at=NOW - 20 * DAY)
    just = snapshot(started_at=counts_from)
    early = replace(just, started_at=just.started_at - DAY / 86400)
    assert uncopied(stood, detail(snapshots=(just,))) == ()
    assert uncopied(stood, detail(snapshots=(early,))) == (volume(),)


@pytest.mark.parametrize("other", [snapshot(volume("vol-2")), snapshot(decision_id="")])
def test_only_our_own_copy_of_this_volume_counts(other: Snapshot) -> None:
    """Somebody's backup may be of another day, and be deleted tomorrow."""
    assert uncopied(case(), detail(snapshots=(other,))) == (volume(),)


def test_a_copy_made_for_an_earlier_decision_still_counts() -> None:
    """Complete is complete: a second copy would only cost."""
    earlier = snapshot(decision_id="an earlier one")
    assert uncopied(case(decision_id="now"), detail(snapshots=(earlier,))) == ()
