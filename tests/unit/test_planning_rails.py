"""The rails in their order, each with the facts that people are told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, detail, instance, rule, snapshot, volume

from costguard.cases import Case, ClimbedRung
from costguard.domain.actions import Verb
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.resources import Instance, InstanceDetail, InstanceState
from costguard.guards.rules.common import Consent, Mode, Step
from costguard.planning import world_rail
from costguard.planning.rails import mode_rail

STOPPED = instance(state=InstanceState.STOPPED)
SPOT = instance(cannot_stop="one_time_spot")
HALTED = case(climbed=(ClimbedRung(Verb.STOP, NOW - 9 * DAY),))
COPIED = detail(STOPPED, snapshots=(snapshot(started_at=NOW - DAY),))
CHANGES = [Verb.STOP, Verb.SNAPSHOT, Verb.TERMINATE]


def rail(
    verb: Verb,
    subject: Instance | None = None,
    found: InstanceDetail | None = None,
    *,
    on: Case | None = None,
    approved: bool = False,
    **limits: Any,
) -> Reason | None:
    subject = subject or instance()
    applied = rule(limits=replace(rule().limits, **limits))
    return world_rail(verb, on or case(), applied, subject, found or detail(subject), approved=approved)


def held(code: ReasonCode, **facts: FactValue) -> Reason:
    return Reason(code, facts)


def test_nothing_holds_an_ordinary_stop() -> None:
    assert rail(Verb.STOP) is None


@pytest.mark.parametrize("verb", CHANGES)
def test_what_was_not_read_closely_is_not_changed(verb: Verb) -> None:
    assert world_rail(verb, case(), rule(), instance(), None, approved=False) == held(ReasonCode.DETAIL_UNREAD)


def test_a_notice_needs_no_close_read() -> None:
    assert world_rail(Verb.WARN, case(), rule(), instance(), None, approved=False) is None


@pytest.mark.parametrize("verb", [Verb.WARN, *CHANGES])
def test_a_protection_by_the_cloud_holds_everything_and_is_named_once(verb: Verb) -> None:
    guarded = instance(protected_by=("stop_protection",))
    found = detail(guarded, protected_by=("termination_protection", "stop_protection"))
    expected = held(ReasonCode.PROTECTED_BY_CLOUD, protection="stop_protection, termination_protection")
    assert rail(verb, guarded, found) == expected


def test_a_protection_seen_in_either_read_holds() -> None:
    """The listing and the close read are moments apart."""
    guarded = instance(protected_by=("stop_protection",))
    expected = held(ReasonCode.PROTECTED_BY_CLOUD, protection="stop_protection")
    assert rail(Verb.STOP, guarded, detail()) == expected
    assert rail(Verb.STOP, instance(), detail(protected_by=("stop_protection",))) == expected


def test_what_cannot_stop_is_not_stopped() -> None:
    assert rail(Verb.STOP, SPOT) == held(ReasonCode.CANNOT_STOP, cause="one_time_spot")


@pytest.mark.parametrize("verb", [Verb.WARN, Verb.SNAPSHOT])
def test_what_cannot_stop_may_still_be_warned_about_and_copied(verb: Verb) -> None:
    assert rail(verb, SPOT) is None


@pytest.mark.parametrize("verb", [Verb.SNAPSHOT, Verb.TERMINATE])
def test_no_volumes_listed_is_a_gap_not_an_empty_machine(verb: Verb) -> None:
    assert rail(verb, STOPPED, detail(STOPPED, volumes=()), on=HALTED) == held(ReasonCode.NO_VOLUMES)


def test_a_stop_needs_no_volumes() -> None:
    assert rail(Verb.STOP, found=detail(volumes=())) is None


@pytest.mark.parametrize(("size", "shown"), [(125.0, 125.0), (0.5, 0.5), (None, -1.0)])
def test_a_local_disk_needs_its_owners_word_and_unknown_counts_as_one(size: float | None, shown: float) -> None:
    machine = instance(local_disk_gib=size)
    assert rail(Verb.STOP, machine) == held(ReasonCode.APPROVAL_NEEDED, local_disk_gib=shown)
    assert rail(Verb.STOP, machine, approved=True) is None
    assert rail(Verb.STOP, machine, local_disk=Consent.LOSE) is None
    assert rail(Verb.STOP, machine, local_disk=Consent.KEEP) == held(ReasonCode.LOCAL_DISK, local_disk_gib=shown)


def test_no_approval_passes_a_rule_that_keeps_local_disks() -> None:
    machine = instance(local_disk_gib=125.0)
    kept = held(ReasonCode.LOCAL_DISK, local_disk_gib=125.0)
    assert rail(Verb.STOP, machine, approved=True, local_disk=Consent.KEEP) == kept


@pytest.mark.parametrize("size", [0.0, -1.0])
def test_a_machine_without_local_disk_needs_no_leave(size: float) -> None:
    assert rail(Verb.STOP, instance(local_disk_gib=size), local_disk=Consent.KEEP) is None


@pytest.mark.parametrize("verb", [Verb.WARN, Verb.SNAPSHOT])
def test_a_local_disk_is_no_reason_against_what_does_not_lose_it(verb: Verb) -> None:
    assert rail(verb, instance(local_disk_gib=125.0), local_disk=Consent.KEEP) is None


def test_a_local_disk_already_lost_with_the_stop_is_not_asked_about_again() -> None:
    machine = replace(STOPPED, local_disk_gib=125.0)
    assert rail(Verb.TERMINATE, machine, replace(COPIED, instance=machine), on=HALTED) is None


def test_a_running_spot_machine_is_asked_about_its_local_disk_before_the_terminate() -> None:
    machine = replace(SPOT, local_disk_gib=125.0)
    found = detail(machine, snapshots=(snapshot(),))
    assert rail(Verb.TERMINATE, machine, found) == held(ReasonCode.APPROVAL_NEEDED, local_disk_gib=125.0)


def test_a_terminate_needs_a_stop_that_was_seen() -> None:
    assert rail(Verb.TERMINATE, STOPPED, COPIED) == held(ReasonCode.NOT_STOPPED, state="stopped")


def test_a_terminate_needs_the_machine_to_be_stopped_still() -> None:
    running = instance()
    expected = held(ReasonCode.NOT_STOPPED, state="running")
    assert rail(Verb.TERMINATE, running, replace(COPIED, instance=running), on=HALTED) == expected


def test_what_cannot_stop_is_terminated_as_it_runs() -> None:
    assert rail(Verb.TERMINATE, SPOT, detail(SPOT, snapshots=(snapshot(),))) is None


def test_a_terminate_needs_a_copy_of_every_volume() -> None:
    found = replace(COPIED, volumes=(volume("vol-1"), volume("vol-2"), volume("vol-3")))
    assert rail(Verb.TERMINATE, STOPPED, found, on=HALTED) == held(ReasonCode.SNAPSHOT_MISSING, volumes=2)
    assert rail(Verb.TERMINATE, STOPPED, COPIED, on=HALTED) is None


def test_a_snapshot_needs_no_copy_before_it() -> None:
    assert rail(Verb.SNAPSHOT, STOPPED, detail(STOPPED), on=HALTED) is None


@pytest.mark.parametrize("verb", [Verb.WARN, *CHANGES])
def test_what_each_mode_lets_through(verb: Verb) -> None:
    assert mode_rail(verb, Mode.OBSERVE) == held(ReasonCode.MODE_OBSERVE)
    assert mode_rail(verb, Mode.WARN) == (None if verb is Verb.WARN else held(ReasonCode.MODE_WARN))
    assert mode_rail(verb, Mode.ENFORCE) is None


@pytest.mark.parametrize(
    ("consent", "code"), [(Consent.KEEP, ReasonCode.LOCAL_DISK), (Consent.ASK, ReasonCode.APPROVAL_NEEDED)]
)
def test_no_copy_is_made_for_an_end_that_a_local_disk_forbids(consent: Consent, code: ReasonCode) -> None:
    """Its notice names no date, as nothing would follow: so nothing does, and no copies are paid for."""
    spot = instance(cannot_stop="one_time_spot", local_disk_gib=125.0)
    assert rail(Verb.SNAPSHOT, spot, local_disk=consent) == held(code, local_disk_gib=125.0)
    assert rail(Verb.SNAPSHOT, spot, local_disk=Consent.LOSE) is None
    assert rail(Verb.SNAPSHOT, spot, local_disk=Consent.ASK, approved=True) is None


def test_a_copy_for_its_own_sake_loses_no_local_disk() -> None:
    running = instance(local_disk_gib=125.0)
    assert rail(Verb.SNAPSHOT, running, local_disk=Consent.KEEP) is None


def test_a_copy_of_a_spot_machine_that_leads_to_no_end_loses_no_local_disk() -> None:
    spot = instance(cannot_stop="one_time_spot", local_disk_gib=125.0)
    applied = rule(
        ladder=(Step(Verb.WARN, DAY), Step(Verb.SNAPSHOT, DAY)), limits=replace(rule().limits, local_disk=Consent.KEEP)
    )
    assert world_rail(Verb.SNAPSHOT, case(), applied, spot, detail(spot), approved=False) is None
