"""What a later look says of a machine that was stopped: still so, started, gone, or replaced."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests.builders import ref
from tests.savings_builders import DAY, HOUR, MIDNIGHT, ended, saving, sighting

from costguard.domain.actions import Verb
from costguard.domain.resources import InstanceState
from costguard.domain.savings import RecordedSaving, SavingChange, SavingStanding, Sighting
from costguard.planning.observed import observed, replacement

BEFORE, NOW = MIDNIGHT + DAY, MIDNIGHT + 2 * DAY
RUNS = sighting(state=InstanceState.RUNNING, run_epoch="epoch-2", launched_at=MIDNIGHT + 30 * HOUR)


def change(seen: Sighting | None, what: RecordedSaving | None = None, **more: datetime) -> SavingChange | None:
    return observed(what or saving(), seen, BEFORE, NOW, more.get("undone_at"))


def test_what_is_still_stopped_changes_nothing() -> None:
    assert change(sighting()) is None
    assert change(sighting(state=InstanceState.STOPPING)) is None


def test_a_start_ends_it_at_the_moment_the_cloud_tells() -> None:
    assert change(RUNS) == SavingChange(SavingStanding.RESTARTED, MIDNIGHT + 30 * HOUR)


@pytest.mark.parametrize("told", [None, MIDNIGHT - DAY, NOW + HOUR])
def test_a_start_that_no_cloud_tells_of_ends_it_at_the_last_look(told: datetime | None) -> None:
    assert change(replace(RUNS, launched_at=told)) == SavingChange(SavingStanding.RESTARTED, BEFORE)


def test_what_runs_in_the_run_that_was_stopped_was_never_stopped_for_long() -> None:
    runs_still = sighting(state=InstanceState.RUNNING, launched_at=MIDNIGHT + 30 * HOUR)
    assert change(runs_still) == SavingChange(SavingStanding.RESTARTED, BEFORE)


def test_a_start_that_people_asked_costguard_for_is_told_as_such() -> None:
    asked = MIDNIGHT + 29 * HOUR
    assert change(RUNS, undone_at=asked) == SavingChange(SavingStanding.UNDONE, asked)
    assert change(RUNS, undone_at=MIDNIGHT - DAY) == SavingChange(SavingStanding.RESTARTED, MIDNIGHT + 30 * HOUR)


def test_what_was_started_and_stopped_between_two_looks_ends_at_the_first() -> None:
    assert change(sighting(run_epoch="epoch-2")) == SavingChange(SavingStanding.RESTARTED, BEFORE)


def test_a_cloud_that_forgets_runs_is_asked_who_stopped_it() -> None:
    forgets = sighting(run_epoch="", stopped_by="request-1")
    assert change(forgets, saving(stop_request="request-1")) is None
    assert change(forgets, saving(stop_request="request-0")) == SavingChange(SavingStanding.RESTARTED, BEFORE)
    assert change(forgets, saving()) is None, "written by an older Costguard"


@pytest.mark.parametrize(
    "seen", [None, *(sighting(state=s) for s in (InstanceState.TERMINATED, InstanceState.TERMINATING))]
)
def test_what_another_hand_removed_counts_to_the_last_look(seen: Sighting | None) -> None:
    assert change(seen) == SavingChange(SavingStanding.GONE, BEFORE)


def test_what_bills_on_although_stopped_saved_nothing_since_the_last_look() -> None:
    bills = sighting(billed_while_stopped=True)
    assert change(bills) == SavingChange(SavingStanding.BILLED_ON, BEFORE)
    assert change(bills, saving(billed_on=True)) is None, "known from the first moment"


def test_an_unclear_state_proves_nothing_until_it_is_clear_again() -> None:
    unclear = sighting(state=InstanceState.UNKNOWN)
    assert change(unclear) == SavingChange(SavingStanding.UNSEEN, BEFORE)
    since = ended(saving(), SavingStanding.UNSEEN, MIDNIGHT + HOUR)
    assert change(unclear, since) is None
    assert change(sighting(), since) == SavingChange(SavingStanding.STOPPED, NOW)
    assert change(None, since) == SavingChange(SavingStanding.GONE, MIDNIGHT + HOUR)


def test_without_a_look_before_nothing_is_proven() -> None:
    assert observed(saving(), None, None, NOW) == SavingChange(SavingStanding.GONE, MIDNIGHT)


def test_what_has_ended_and_what_was_terminated_changes_no_more() -> None:
    assert change(RUNS, ended(saving(), SavingStanding.GONE, BEFORE)) is None
    assert change(None, saving(verb=Verb.TERMINATE)) is None


def other(native_id: str = "i-9", **changes: object) -> Sighting:
    """A second machine alike in everything, started eight hours after the stop."""
    ordinary = replace(
        RUNS, ref=ref(native_id), run_epoch="epoch-9", launched_at=MIDNIGHT + 8 * HOUR, name="notebook-2"
    )
    return replace(ordinary, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mine", "theirs", "how"),
    [
        ({}, {"alike": "tags-2"}, "name"),
        ({}, {"name": "elsewhere"}, "tags"),
        ({"name": "a"}, {"name": "b", "alike": "tags-2"}, ""),
        ({"name": "", "alike": ""}, {"name": "", "alike": ""}, ""),
        ({}, {"owner": "nlp"}, ""),
        ({"owner": ""}, {"owner": ""}, ""),
        ({"owner": "", "group": "autoscaling:a"}, {"owner": "nlp", "group": "autoscaling:a"}, "group"),
        ({"launched_by": "user/vision"}, {"owner": "nlp", "launched_by": "user/vision"}, "launcher"),
    ],
)
def test_a_replacement_is_known_by_group_launcher_name_or_tags(mine: object, theirs: object, how: str) -> None:
    what = saving(machine=sighting(**mine))  # type: ignore[arg-type]
    found = replacement(what, [other(**theirs)], frozenset())  # type: ignore[arg-type]
    assert (found.how if found is not None else "") == how


@pytest.mark.parametrize(
    "unlike",
    [
        {"instance_type": "p5.48xlarge"},
        {"state": InstanceState.STOPPED},
        {"launched_at": None},
        {"launched_at": MIDNIGHT - timedelta(hours=25)},
        {"launched_at": MIDNIGHT + timedelta(days=8)},
        {"ref": ref("i-1")},
        {"ref": replace(ref("i-9"), cloud="aws-cn")},
    ],
)
def test_what_is_of_another_kind_or_time_replaces_nothing(unlike: object) -> None:
    assert replacement(saving(), [other(**unlike)], frozenset()) is None  # type: ignore[arg-type]


def test_it_counts_as_replaced_from_the_others_start_and_never_before_the_stop() -> None:
    later, before = other(), other("i-8", launched_at=MIDNIGHT - HOUR)
    assert replacement(saving(), [later], frozenset()) == SavingChange(
        SavingStanding.REPLACED, MIDNIGHT + 8 * HOUR, ref("i-9"), "name"
    )
    assert replacement(saving(), [later, before], frozenset()) == SavingChange(
        SavingStanding.REPLACED, MIDNIGHT, ref("i-8"), "name"
    )


def test_one_machine_replaces_one() -> None:
    assert replacement(saving(), [other()], {ref("i-9")}) is None


def test_what_is_terminated_may_be_replaced_too_and_an_address_never() -> None:
    assert replacement(saving(verb=Verb.TERMINATE), [other()], frozenset()) is not None
    assert replacement(saving(verb=Verb.MEND), [other()], frozenset()) is None
    assert replacement(saving(machine=None), [other()], frozenset()) is None
    assert replacement(ended(saving(), SavingStanding.GONE, NOW), [other()], frozenset()) is None
