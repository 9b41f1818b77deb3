"""Two guards, one machine: whose case stands in for the other's notice, and whose never does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.builders import NOW, case

from costguard.cases import Case, CaseStatus, ClimbedRung, Phase
from costguard.cases.advance import plain_time
from costguard.domain.actions import Verb
from costguard.domain.reasons import Reason, ReasonCode
from costguard.guards.rules import Rung
from costguard.planning.merging import merged

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
