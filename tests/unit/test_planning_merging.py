"""Two guards, one machine: whose case stands in for the other's notice, and whose never does."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.builders import NOW, case

from costguard.cases import Case, CaseStatus, ClimbedRung, Phase
from costguard.cases.advance import plain_time
from costguard.domain.actions import Verb
from costguard.domain.reasons import Reason, ReasonCode
from costguard.guards.rules.common import Mode, Rung
from costguard.planning.plan import merged

IN_FOUR_HOURS = (Rung(Verb.WARN, timedelta(0)), Rung(Verb.STOP, timedelta(hours=4)))


def warned(**changes: Any) -> Case:
    """The idle guard's case, whose stop comes in an hour."""
    told = NOW - timedelta(hours=23)
    return case(**{"rung": 1, "since": told, "climbed": (ClimbedRung(Verb.WARN, told),), **changes})


def stands_in(other: Case, wants: Verb = Verb.WARN) -> bool:
    return merged(case(guard="budget"), wants, IN_FOUR_HOURS, (other,), NOW, plain_time) is not None


def test_a_case_whose_owner_was_told_of_an_earlier_stop_stands_in_for_a_notice() -> None:
    assert stands_in(warned())
    assert not stands_in(warned(), Verb.STOP)


@pytest.mark.parametrize("code", [ReasonCode.LOCAL_DISK, ReasonCode.UNMEASURED, ReasonCode.MERGED])
def test_a_case_that_is_held_stands_in_for_nothing_because_its_stop_may_never_come(code: ReasonCode) -> None:
    assert not stands_in(warned(status=CaseStatus.HELD, reason=Reason(code)))


@pytest.mark.parametrize("wants", [Verb.WARN, Verb.STOP])
def test_a_stop_under_way_stands_in_whatever_its_case_waits_for(wants: Verb) -> None:
    held = warned(status=CaseStatus.HELD, phase=Phase.CONFIRMING, reason=Reason(ReasonCode.OUTCOME_UNKNOWN))
    assert stands_in(held, wants)


def test_the_reason_names_the_guard_and_the_rule_that_stand_in() -> None:
    found = merged(case(guard="budget"), Verb.WARN, IN_FOUR_HOURS, (warned(rule="nights"),), NOW, plain_time)

    assert found == Reason(ReasonCode.MERGED, {"guard": "idle_gpu", "rule": "nights"})


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode is not Mode.ENFORCE])
@pytest.mark.parametrize("phase", [Phase.WAITING, Phase.CONFIRMING])
def test_a_case_that_only_watches_stands_in_for_nothing(mode: Mode, phase: Phase) -> None:
    assert not stands_in(warned(mode=mode, phase=phase))


@pytest.mark.parametrize("phase", [Phase.WAITING, Phase.CONFIRMING])
def test_nor_does_one_of_another_run_of_the_machine(phase: Phase) -> None:
    assert not stands_in(warned(run_epoch="epoch-2", phase=phase))


def test_one_that_does_not_stand_in_hides_none_that_does() -> None:
    others = (warned(mode=Mode.WARN), warned(run_epoch="epoch-2"), warned(status=CaseStatus.HELD), warned(rule="last"))

    found = merged(case(guard="budget"), Verb.WARN, IN_FOUR_HOURS, others, NOW, plain_time)

    assert found is not None
    assert found.facts["rule"] == "last"


@pytest.mark.parametrize(("seconds", "stands"), [(0, True), (1, False)])
def test_a_stop_that_comes_no_later_stands_in_and_one_that_comes_later_does_not(
    seconds: int,
    stands: bool,  # noqa: FBT001
) -> None:
    """Its wait of 24 hours is over in four."""
    told = NOW - timedelta(hours=20) + timedelta(seconds=seconds)

    assert stands_in(warned(since=told, climbed=(ClimbedRung(Verb.WARN, told),))) is stands


@pytest.mark.parametrize("phase", [Phase.WAITING, Phase.CONFIRMING])
def test_a_case_whose_owner_was_never_told_stands_in_for_nothing(phase: Phase) -> None:
    assert not stands_in(warned(climbed=(), phase=phase))


def test_where_either_of_them_has_no_stop_before_it_nothing_stands_in() -> None:
    warning_only = IN_FOUR_HOURS[:1]

    assert merged(case(guard="budget"), Verb.WARN, warning_only, (warned(),), NOW, plain_time) is None
    assert not stands_in(warned(rung=2))


def test_the_wait_of_both_is_counted_by_the_calendar() -> None:
    """By one that stands still for a day after each wait, both come a day later."""

    def a_day_later(since: datetime, wait: timedelta, /, *, first_stop: bool = False) -> datetime:
        if first_stop:
            return since
        return since + wait + timedelta(days=1)

    def at_once(since: datetime, wait: timedelta, /, *, first_stop: bool = False) -> datetime:
        del wait, first_stop
        return since

    late = warned(since=NOW - timedelta(hours=19), climbed=(ClimbedRung(Verb.WARN, NOW - timedelta(hours=19)),))
    assert merged(case(guard="budget"), Verb.WARN, IN_FOUR_HOURS, (late,), NOW, a_day_later) is None
    assert merged(case(guard="budget"), Verb.WARN, IN_FOUR_HOURS, (late,), NOW, at_once) is not None
