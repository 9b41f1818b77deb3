"""The last look before a call: the case's own step, its mode, its rung, its notice and its grace."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, ref

from costguard.cases import Announced, Case, CaseStatus, ClimbedRung, Phase, decision_id
from costguard.domain.actions import Action, Verb
from costguard.domain.answers import AnswerRef
from costguard.domain.reasons import Reason, ReasonCode
from costguard.guards.rules.common import Mode, Rung
from costguard.planning.last_look import CaseStanding, asked_for, grace_ends, not_its_step, not_its_turn

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
RUNGS = (
    Rung(Verb.WARN, HOUR),
    Rung(Verb.STOP, 24 * HOUR),
    Rung(Verb.WARN, 2 * HOUR),
    Rung(Verb.SNAPSHOT, 3 * HOUR),
    Rung(Verb.TERMINATE, 7 * DAY),
)
UNTOLD_BEHIND = (RUNGS[0], RUNGS[1], RUNGS[4])
NOT_ITS_CASE = Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "case"})
NOT_ITS_STEP = Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "step"})
UNDELIVERED = Reason(ReasonCode.NOTICE_UNDELIVERED)


def climbed(*verbs: Verb, at: datetime = NOW - 9 * DAY) -> tuple[ClimbedRung, ...]:
    return tuple(ClimbedRung(verb, at + number * HOUR) for number, verb in enumerate(verbs))


WARNED = case(climbed=climbed(Verb.WARN))
STOPPED = case(rung=4, climbed=climbed(Verb.WARN, Verb.STOP, Verb.WARN, Verb.SNAPSHOT))


def action(of: Case, **changes: Any) -> Action:
    ordinary = Action(
        action_id=decision_id(of),
        decision_id=decision_id(of),
        verb=Verb.STOP,
        subject=of.subject,
        resource=of.subject,
        run_epoch=of.run_epoch,
        case_id=of.case_id,
        rung=of.rung,
        rule=of.rule,
        rule_digest=of.rule_digest,
    )
    return replace(ordinary, **changes)


def standing(**changes: Any) -> CaseStanding:
    """Told eight days ago: every wait is over."""
    return replace(CaseStanding(NOW, Mode.ENFORCE, RUNGS, NOW - 8 * DAY), **changes)


def copies(of: Case) -> list[Action]:
    volumes = [ref(name, "volume") for name in ("vol-1", "vol-2")]
    decision = decision_id(of)
    return [
        action(of, verb=Verb.SNAPSHOT, resource=volume, action_id=f"{decision}-{volume.native_id}")
        for volume in volumes
    ]


def test_the_step_a_case_waits_for_is_its_step() -> None:
    assert not_its_step(WARNED, [action(WARNED)]) is None
    assert not_its_step(WARNED, copies(WARNED)) is None


@pytest.mark.parametrize("changes", [{"status": CaseStatus.HELD}, {"phase": Phase.CLAIMED}])
def test_a_case_that_does_not_wait_takes_no_step(changes: dict[str, Any]) -> None:
    other = replace(WARNED, **changes)
    assert not_its_step(other, [action(other)]) == NOT_ITS_CASE


def test_what_is_drawn_may_be_held_by_a_cap_and_by_nothing_else() -> None:
    full = replace(WARNED, status=CaseStatus.HELD, reason=Reason(ReasonCode.CAP_ACTIONS))
    assert not_its_step(full, [action(full)], drawn=True) is None
    assert not_its_step(full, [action(full)]) == NOT_ITS_CASE
    for other in (ReasonCode.PROTECTED_BY_CLOUD, ReasonCode.PRICE_UNKNOWN, ReasonCode.NOTICE_UNDELIVERED):
        held = replace(full, reason=Reason(other))
        assert not_its_step(held, [action(held)], drawn=True) == NOT_ITS_CASE


@pytest.mark.parametrize(
    "changes",
    [
        {"case_id": "case-2"},
        {"subject": ref("i-2")},
        {"run_epoch": "epoch-2"},
        {"rule": "other"},
        {"rule_digest": "other"},
        {"rung": 2},
        {"decision_id": "other"},
        {"action_id": "other"},
        {"action_id": f"{decision_id(WARNED)}-i-2"},
    ],
)
def test_an_action_of_another_step_is_told(changes: dict[str, Any]) -> None:
    assert not_its_step(WARNED, [action(WARNED, **changes)]) == NOT_ITS_STEP
    assert not_its_step(WARNED, [action(WARNED), action(WARNED, **changes)]) == NOT_ITS_STEP


def test_one_step_is_of_one_verb() -> None:
    first, second = copies(WARNED)
    assert not_its_step(WARNED, [first, replace(second, verb=Verb.STOP)]) == NOT_ITS_STEP


def test_a_stop_whose_wait_is_over_may_go() -> None:
    assert not_its_turn(WARNED, Verb.STOP, standing()) is None


@pytest.mark.parametrize(
    ("of_case", "in_force", "code"),
    [
        (Mode.OBSERVE, Mode.ENFORCE, ReasonCode.MODE_OBSERVE),
        (Mode.ENFORCE, Mode.OBSERVE, ReasonCode.MODE_OBSERVE),
        (Mode.WARN, Mode.ENFORCE, ReasonCode.MODE_WARN),
        (Mode.ENFORCE, Mode.WARN, ReasonCode.MODE_WARN),
    ],
)
def test_the_gentler_mode_of_case_and_rule_counts(of_case: Mode, in_force: Mode, code: ReasonCode) -> None:
    found = not_its_turn(replace(WARNED, mode=of_case), Verb.STOP, standing(mode=in_force))
    assert found == Reason(code)


def test_a_notice_may_go_where_the_mode_is_to_warn() -> None:
    assert not_its_turn(case(rung=0, mode=Mode.WARN), Verb.WARN, standing()) is None


@pytest.mark.parametrize("mode", list(Mode))
def test_in_a_new_account_nothing_goes(mode: Mode) -> None:
    until = NOW + DAY
    there = {"aws:111122223333": until}
    found = not_its_turn(replace(WARNED, mode=mode), Verb.STOP, standing(observing=there))
    facts = {"account": "111122223333", "until": until.isoformat(timespec="minutes")}
    assert found == Reason(ReasonCode.ACCOUNT_NEW, facts)


def test_another_account_that_is_new_holds_nothing_here() -> None:
    assert not_its_turn(WARNED, Verb.STOP, standing(observing={"aws:444455556666": NOW + DAY})) is None


def test_a_rung_that_the_ladder_has_not_is_no_step() -> None:
    assert not_its_turn(replace(WARNED, rung=1), Verb.STOP, standing(rungs=RUNGS[:1])) == NOT_ITS_STEP
    assert not_its_turn(WARNED, Verb.TERMINATE, standing()) == NOT_ITS_STEP


def test_an_end_behind_the_stop_and_its_notice_may_go() -> None:
    assert not_its_turn(STOPPED, Verb.TERMINATE, standing()) is None


@pytest.mark.parametrize(
    "verbs",
    [
        (),
        (Verb.WARN,),
        (Verb.WARN, Verb.STOP),
        (Verb.WARN, Verb.STOP, Verb.SNAPSHOT),
        (Verb.STOP, Verb.WARN, Verb.STOP, Verb.SNAPSHOT),
    ],
)
def test_an_end_without_the_stop_and_a_notice_behind_it_is_no_step(verbs: tuple[Verb, ...]) -> None:
    skipped = replace(STOPPED, climbed=climbed(*verbs))
    assert not_its_turn(skipped, Verb.TERMINATE, standing()) == NOT_ITS_STEP


def test_a_ladder_that_tells_nobody_behind_the_stop_asks_for_no_notice_there() -> None:
    quiet = case(rung=2, climbed=climbed(Verb.WARN, Verb.STOP))
    long_ago = standing(rungs=UNTOLD_BEHIND, told_at=NOW - 30 * DAY)
    assert not_its_turn(quiet, Verb.TERMINATE, long_ago) is None
    assert not_its_turn(replace(quiet, climbed=climbed(Verb.WARN)), Verb.TERMINATE, long_ago) == NOT_ITS_STEP


def test_without_a_delivered_notice_nothing_goes() -> None:
    assert not_its_turn(WARNED, Verb.STOP, standing(told_at=None)) == UNDELIVERED


def test_a_notice_from_before_the_stop_is_no_notice_of_the_end() -> None:
    """Twenty minutes are left to two clocks."""
    stopped_at = NOW - 9 * DAY + HOUR
    early = stopped_at - 20 * MINUTE
    assert not_its_turn(STOPPED, Verb.TERMINATE, standing(told_at=early)) is None
    earlier = standing(told_at=early - timedelta(seconds=1))
    assert not_its_turn(STOPPED, Verb.TERMINATE, earlier) == UNDELIVERED


def test_a_stop_of_a_run_before_does_not_date_the_notice_of_the_next_stop() -> None:
    again = case(rung=1, climbed=climbed(Verb.STOP, at=NOW - HOUR))
    assert not_its_turn(again, Verb.STOP, standing(told_at=NOW - 2 * DAY)) is None


def test_nothing_goes_before_its_grace_is_over() -> None:
    told_at = NOW - 24 * HOUR
    assert not_its_turn(WARNED, Verb.STOP, standing(told_at=told_at)) is None
    found = not_its_turn(WARNED, Verb.STOP, standing(told_at=told_at + MINUTE))
    due = (NOW + MINUTE).isoformat(timespec="minutes")
    assert found == Reason(ReasonCode.WAITING, {"verb": "stop", "due": due})


def test_grace_runs_by_the_calendar() -> None:
    def doubled(start: datetime, wait: timedelta, /, *, first_stop: bool = False) -> datetime:
        del first_stop
        return start + 2 * wait

    told = standing(told_at=NOW - 47 * HOUR, grace_end=doubled)
    due = (NOW + HOUR).isoformat(timespec="minutes")
    assert not_its_turn(WARNED, Verb.STOP, told) == Reason(ReasonCode.WAITING, {"verb": "stop", "due": due})


def test_only_a_stop_behind_its_notice_may_be_hastened() -> None:
    now = standing(told_at=NOW - 2 * MINUTE, hastened=True)
    assert not_its_turn(WARNED, Verb.STOP, now) is None
    untold = not_its_turn(replace(WARNED, climbed=()), Verb.STOP, now)
    stopped_just_now = replace(STOPPED, climbed=climbed(Verb.WARN, Verb.STOP, Verb.WARN, at=NOW - 2 * HOUR))
    end = not_its_turn(stopped_just_now, Verb.TERMINATE, now)
    assert [each and each.code for each in (untold, end)] == [ReasonCode.WAITING] * 2


def test_every_wait_behind_the_last_notice_counts() -> None:
    told_at = NOW - 3 * DAY
    uncopied = replace(STOPPED, climbed=STOPPED.climbed[:3])
    assert grace_ends(uncopied, RUNGS, told_at) == told_at + 3 * HOUR + 7 * DAY


@pytest.mark.parametrize(("behind", "waited"), [(-HOUR, 0), (timedelta(0), 0), (HOUR, 3)])
def test_what_was_confirmed_before_the_notice_is_not_waited_for_again(behind: timedelta, waited: int) -> None:
    told_at = NOW - 3 * DAY
    copied = replace(STOPPED, climbed=(*STOPPED.climbed[:3], ClimbedRung(Verb.SNAPSHOT, told_at + behind)))
    assert grace_ends(copied, RUNGS, told_at) == told_at + waited * HOUR + 7 * DAY


def test_what_the_last_notice_named_comes_no_earlier() -> None:
    """Whatever the calendar says now; and a moment for another step, or of an earlier notice, puts nothing off."""
    named = (Announced(Verb.STOP, NOW + HOUR), Announced(Verb.TERMINATE, NOW + 9 * DAY))
    told = replace(WARNED, climbed=(replace(WARNED.climbed[0], announced=named),))
    due = (NOW + HOUR).isoformat(timespec="minutes")
    assert not_its_turn(told, Verb.STOP, standing()) == Reason(ReasonCode.WAITING, {"verb": "stop", "due": due})
    assert not_its_turn(told, Verb.STOP, standing(now=NOW + HOUR)) is None
    first, *rest = STOPPED.climbed
    told_twice = replace(STOPPED, climbed=(replace(first, announced=named), *rest))
    assert not_its_turn(told_twice, Verb.TERMINATE, standing()) is None


def test_a_stop_that_people_asked_for_now_needs_not_wait_for_what_was_announced() -> None:
    told = replace(WARNED, climbed=(replace(WARNED.climbed[0], announced=(Announced(Verb.STOP, NOW + HOUR),)),))
    assert not_its_turn(told, Verb.STOP, standing(hastened=True)) is None


def test_the_rung_itself_is_waited_for_though_its_kind_was_climbed_before() -> None:
    stopped_before = case(rung=1, climbed=climbed(Verb.STOP))
    assert grace_ends(stopped_before, RUNGS, NOW) == NOW + 24 * HOUR


def test_a_ladder_without_a_notice_is_waited_for_from_its_first_rung() -> None:
    assert grace_ends(case(rung=0), RUNGS[1:2], NOW) == NOW + 24 * HOUR
    assert grace_ends(case(rung=1), RUNGS[3:], NOW) == NOW + 3 * HOUR + 7 * DAY


def test_an_answer_asks_for_the_step_it_was_given_to() -> None:
    mine = AnswerRef(WARNED.case_id, decision_id(WARNED))
    assert asked_for(WARNED, [AnswerRef("case-2", "other"), mine])
    assert not asked_for(WARNED, [replace(mine, case_id="case-2")])
    assert not asked_for(WARNED, [replace(mine, decision_id="other")])
    assert not asked_for(WARNED, [])
