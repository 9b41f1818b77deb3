"""A launch freeze begins and ends on certain figures only, and people's hands stand above it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import DAY, NOW

from costguard.planning.freeze import FreezePhase, FreezeSeen, FreezeState, FreezeWants, advance_freeze

MINE, THEIRS = "p-freeze", "p-full-access"
HOUR = timedelta(hours=1)
OFF = FreezeState("research")
ANNOUNCED = replace(OFF, phase=FreezePhase.ANNOUNCED, budget="research", period="2026-03", attempt=1)
ON = replace(ANNOUNCED, phase=FreezePhase.ON, before=(THEIRS,))


def seen(**changes: Any) -> FreezeSeen:
    """Asked for by a budget that is spent; told five hours ago, to begin after four; not attached."""
    ordinary = FreezeSeen(NOW, True, "research", "2026-03", 4 * HOUR, MINE, (THEIRS,), NOW - 5 * HOUR)  # noqa: FBT003
    return replace(ordinary, **changes)


def phase(state: FreezeState, **changes: Any) -> tuple[FreezePhase, FreezeWants | None]:
    after, wants = advance_freeze(state, seen(**changes))
    return after.phase, wants


def test_a_freeze_is_announced_before_anything_else() -> None:
    assert phase(OFF) == (FreezePhase.ANNOUNCED, FreezeWants.ANNOUNCE)


@pytest.mark.parametrize("asked", [False, None])
def test_what_is_not_surely_asked_for_does_not_begin(asked: Any) -> None:
    assert phase(OFF, asked=asked) == (FreezePhase.OFF, None)


def test_it_is_attached_when_the_announcement_was_delivered_and_the_wait_is_over() -> None:
    after, wants = advance_freeze(ANNOUNCED, seen())
    assert (after.phase, wants, after.before) == (FreezePhase.ATTACHING, FreezeWants.ATTACH, (THEIRS,))


@pytest.mark.parametrize(
    "changes",
    [
        {"delivered_at": None},
        {"delivered_at": NOW - 4 * HOUR + timedelta(seconds=1)},
        {"asked": None},
        {"attached": None},
    ],
)
def test_it_waits_for_delivery_grace_certainty_and_a_look(changes: dict[str, Any]) -> None:
    assert phase(ANNOUNCED, **changes) == (FreezePhase.ANNOUNCED, None)


def test_a_raised_budget_calls_it_off() -> None:
    assert phase(ANNOUNCED, asked=False) == (FreezePhase.OFF, None)


def test_a_new_period_calls_it_off() -> None:
    assert phase(ANNOUNCED, period="2026-04") == (FreezePhase.OFF, None)


def test_an_attachment_that_was_there_is_somebody_elses() -> None:
    after, _ = advance_freeze(ANNOUNCED, seen(attached=(THEIRS, MINE)))
    assert after.phase is FreezePhase.FOREIGN
    assert phase(after, asked=False, attached=(THEIRS, MINE)) == (FreezePhase.OFF, None)


def test_what_came_of_the_call_is_seen_and_never_guessed() -> None:
    attaching = replace(ANNOUNCED, phase=FreezePhase.ATTACHING)
    assert phase(attaching, attached=None) == (FreezePhase.ATTACHING, None)
    assert phase(attaching, attached=(THEIRS, MINE)) == (FreezePhase.ON, None)
    assert phase(attaching) == (FreezePhase.ANNOUNCED, None)


def test_it_stays_while_asked_for_and_while_nobody_knows() -> None:
    assert phase(ON, attached=(THEIRS, MINE)) == (FreezePhase.ON, None)
    assert phase(ON, attached=(THEIRS, MINE), asked=None) == (FreezePhase.ON, None)


@pytest.mark.parametrize("changes", [{"asked": False}, {"period": "2026-04"}, {"released": True}])
def test_it_thaws_on_a_raise_at_the_end_of_the_period_and_on_command(changes: dict[str, Any]) -> None:
    after, wants = advance_freeze(ON, seen(attached=(THEIRS, MINE), **changes))
    assert (after.phase, wants) == (FreezePhase.DETACHING, FreezeWants.DETACH)
    still, again = advance_freeze(after, seen(attached=(THEIRS, MINE), **changes))
    assert (still.phase, again) == (FreezePhase.ON, None)
    gone, _ = advance_freeze(after, seen(**changes))
    assert gone.phase in {FreezePhase.OFF, FreezePhase.RELEASED}


def test_what_somebody_took_off_by_hand_is_not_attached_again_in_this_period() -> None:
    after, _ = advance_freeze(ON, seen())
    assert after.phase is FreezePhase.RELEASED
    assert phase(after) == (FreezePhase.RELEASED, None)
    assert phase(after, period="2026-04") == (FreezePhase.OFF, None)


def test_a_release_keeps_it_from_beginning() -> None:
    assert phase(OFF, released=True) == (FreezePhase.OFF, None)
    assert phase(ANNOUNCED, released=True) == (FreezePhase.RELEASED, None)


LOOKS = st.builds(
    seen,
    asked=st.sampled_from([True, False, None]),
    period=st.sampled_from(["2026-03", "2026-04"]),
    attached=st.sampled_from([None, (), (THEIRS,), (THEIRS, MINE)]),
    delivered_at=st.sampled_from([None, NOW - DAY, NOW]),
    released=st.booleans(),
)


@given(st.lists(LOOKS, max_size=12))
def test_whatever_is_seen_it_attaches_only_what_is_asked_for_and_detaches_only_its_own(looks: list[FreezeSeen]) -> None:
    state, ours = OFF, False
    for look in looks:
        state, wants = advance_freeze(state, look)
        if wants is FreezeWants.ATTACH:
            assert look.asked
            assert look.delivered_at == NOW - DAY
            assert look.attached is not None
            assert MINE not in look.attached
            ours = True
        if wants is FreezeWants.DETACH:
            assert ours
            assert look.attached is not None


def test_what_begins_is_remembered_with_its_budget_and_period_and_counts_its_attempts() -> None:
    """Nothing of the freeze before it is left."""
    again = replace(OFF, budget="old", period="2026-02", attempt=3, before=("p-old",))

    after, _ = advance_freeze(again, seen())

    assert (after.budget, after.period, after.attempt, after.before, after.since) == (
        "research",
        "2026-03",
        4,
        (),
        NOW,
    )


def test_what_goes_on_keeps_the_budget_and_period_it_was_begun_under() -> None:
    attaching, _ = advance_freeze(ANNOUNCED, seen(budget="other"))
    on, _ = advance_freeze(attaching, seen(budget="other", period="2026-04", attached=(MINE,)))
    detaching, _ = advance_freeze(on, seen(budget="other", period="2026-04", attached=(MINE,)))
    off, _ = advance_freeze(detaching, seen(budget="other", period="2026-04"))

    phases = [FreezePhase.ATTACHING, FreezePhase.ON, FreezePhase.DETACHING, FreezePhase.OFF]
    assert [each.phase for each in (attaching, on, detaching, off)] == phases
    for each in (attaching, on, detaching, off):
        assert (each.budget, each.period, each.since, each.before, each.attempt) == (
            "research",
            "2026-03",
            NOW,
            (THEIRS,),
            1,
        )


def test_a_failed_attachment_is_announced_no_second_time_and_keeps_its_period() -> None:
    attaching = replace(ANNOUNCED, phase=FreezePhase.ATTACHING)

    after, wants = advance_freeze(attaching, seen(budget="other", period="2026-04"))

    assert (after.phase, after.budget, after.period, wants) == (FreezePhase.ANNOUNCED, "research", "2026-03", None)


def test_it_is_attached_from_the_moment_the_wait_is_over() -> None:
    assert phase(ANNOUNCED, delivered_at=NOW - 4 * HOUR) == (FreezePhase.ATTACHING, FreezeWants.ATTACH)


def test_nothing_seen_of_the_target_changes_nothing_even_when_it_is_to_end() -> None:
    for state in (ON, replace(ON, phase=FreezePhase.DETACHING), replace(ON, phase=FreezePhase.ATTACHING)):
        assert advance_freeze(state, seen(attached=None, asked=False)) == (state, None)


def test_when_it_is_gone_it_is_off_or_released_as_it_was_ended() -> None:
    detaching = replace(ON, phase=FreezePhase.DETACHING)

    assert phase(detaching, asked=False) == (FreezePhase.OFF, None)
    assert phase(detaching, released=True) == (FreezePhase.RELEASED, None)


@pytest.mark.parametrize(
    ("changes", "ends"),
    [
        ({"asked": False}, FreezePhase.OFF),
        ({"period": "2026-04"}, FreezePhase.OFF),
        ({"asked": False, "released": True}, FreezePhase.RELEASED),
        ({"released": True}, FreezePhase.RELEASED),
        ({"asked": None}, FreezePhase.RELEASED),
    ],
)
def test_taken_off_by_hand_it_is_over_and_said_no_to_unless_it_was_to_end_anyway(
    changes: dict[str, Any], ends: FreezePhase
) -> None:
    assert phase(ON, **changes) == (ends, None)


def test_a_release_holds_for_the_period_it_was_said_in() -> None:
    """Even where it was announced in the one before."""
    after, _ = advance_freeze(ANNOUNCED, seen(released=True, period="2026-04", budget="other"))

    assert (after.phase, after.period, after.budget) == (FreezePhase.RELEASED, "2026-04", "research")
    assert advance_freeze(after, seen(period="2026-04", asked=False)) == (after, None)
    off, wants = advance_freeze(after, seen(period="2026-05"))
    assert (off.phase, off.period, wants) == (FreezePhase.OFF, "2026-04", None)


@pytest.mark.parametrize("asked", [True, None])
def test_somebody_elses_attachment_is_let_be_as_long_as_nobody_surely_needs_none(asked: Any) -> None:
    foreign = replace(ANNOUNCED, phase=FreezePhase.FOREIGN)

    assert advance_freeze(foreign, seen(asked=asked, attached=(MINE,))) == (foreign, None)


def test_the_words_of_a_ledger_stay_what_they_are() -> None:
    """A state written by an older version is read by this one."""
    phases = {"off", "announced", "attaching", "on", "detaching", "released", "foreign"}

    assert {each.value for each in FreezePhase} == phases
    assert all(FreezePhase(word).name == word.upper() for word in phases)
    assert {each.name: each.value for each in FreezeWants} == {
        "ANNOUNCE": "announce",
        "ATTACH": "attach",
        "DETACH": "detach",
    }
    assert FreezeState("research") == FreezeState("research", FreezePhase.OFF, "", "", None, "", (), 0, None, 0)


def test_a_phase_nobody_knows_is_no_silent_nothing() -> None:
    unheard_of: Any = "melting"

    with pytest.raises(AssertionError, match="melting"):
        advance_freeze(replace(OFF, phase=unheard_of), seen())
