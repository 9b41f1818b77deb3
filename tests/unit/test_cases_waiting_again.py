"""A wait that began anew goes over what was done before without doing it twice, and without standing still."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.builders import DAY, NOW, case, detail, finding, instance, seen, snapshot, volume

from costguard.cases import CaseStatus, ClimbedRung, advance
from costguard.cases.case import TWO_CLOCKS, kept_since_told
from costguard.domain.actions import Verb
from costguard.domain.findings import Verdict
from costguard.domain.resources import InstanceState

SECOND = timedelta(seconds=1)
STOPPED = instance(state=InstanceState.STOPPED)
HALTED = ClimbedRung(Verb.STOP, NOW - 20 * DAY)
AGAIN = case(rung=3, climbed=(HALTED, ClimbedRung(Verb.WARN, NOW - 8 * DAY)), since=NOW - 8 * DAY)


def test_snapshots_made_before_the_wait_began_anew_are_not_made_twice() -> None:
    """Snoozed after its snapshots were complete: the rung is climbed by what is there."""
    made = detail(STOPPED, snapshots=(snapshot(started_at=NOW - 10 * DAY),))
    step = advance(AGAIN, seen(STOPPED, finding=finding(STOPPED, Verdict.COMPLIANT), detail=made))
    assert step.wants is None
    assert step.case is not None
    assert (step.case.rung, step.case.climbed[-1].verb) == (4, Verb.SNAPSHOT)


def test_a_volume_attached_since_is_copied_first() -> None:
    added = detail(STOPPED, volumes=(volume(), volume("vol-2")), snapshots=(snapshot(started_at=NOW - 10 * DAY),))
    step = advance(AGAIN, seen(STOPPED, finding=finding(STOPPED, Verdict.COMPLIANT), detail=added))
    assert step.wants is Verb.SNAPSHOT


def test_no_volumes_is_not_everything_copied() -> None:
    none = detail(STOPPED, volumes=())
    step = advance(AGAIN, seen(STOPPED, finding=finding(STOPPED, Verdict.COMPLIANT), detail=none))
    assert step.wants is Verb.SNAPSHOT, "wanted, and held by the rail that says why"


def test_a_snooze_is_remembered_through_runs_that_saw_nothing() -> None:
    """Held for a shard that could not be read, the wait still begins anew when the snooze is over."""
    known = case(climbed=(ClimbedRung(Verb.WARN, NOW - DAY),))
    snoozed = advance(known, seen(snoozed_until=NOW + DAY)).case
    blind = advance(snoozed, seen(now=NOW + DAY, shard_read=False, shard_complete=False)).case
    assert blind is not None
    assert blind.status is CaseStatus.HELD
    again = advance(blind, seen(now=NOW + 2 * DAY))
    assert again.wants is Verb.WARN, "a new notice comes first"
    assert again.case is not None
    assert again.case.snoozed_until is None


@pytest.mark.parametrize(("before", "counts"), [(TWO_CLOCKS - SECOND, True), (TWO_CLOCKS, False)])
def test_a_keep_from_before_a_notice_counts_where_two_clocks_may_differ_by_so_much(
    before: timedelta, *, counts: bool
) -> None:
    told = case(climbed=(ClimbedRung(Verb.WARN, NOW - DAY),))
    assert kept_since_told(told, NOW - DAY - before) is counts
