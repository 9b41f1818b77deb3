"""How far the copies ahead of a machine can be relied on is told with the notice, and not where none are ahead."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import DAY, NOW, SHARD, case, detail, fact, instance, policy, rule, shard_facts, snapshot, volume

from costguard.cases import Case, ClimbedRung
from costguard.domain.actions import Verb
from costguard.domain.reasons import ReasonCode
from costguard.domain.resources import Gap, GapKind, Instance, InstanceDetail
from costguard.planning import Plan, PlanInputs, build_plan
from costguard.policy.model.terms import terms

SPOT = instance(cannot_stop="one_time_spot")
ENDS = rule(limits=replace(rule().limits, unstoppable_may_terminate=True))
TWO = detail(SPOT, volumes=(volume("vol-1"), volume("vol-2")))


def plan_of(machine: Instance, found: InstanceDetail, *cases: Case) -> Plan:
    given = PlanInputs("idle_gpu", "run-1", NOW, policy(ENDS), (shard_facts(fact(machine)),), cases=cases)
    return build_plan(replace(given, details={machine.ref: found}))


def risks(plan: Plan) -> tuple[Verb, tuple[str, ...]]:
    (action,) = plan.due
    assert action.saving is not None
    return action.verb, action.saving.risks


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (detail(SPOT), "crash_consistent"),
        (TWO, "crash_consistent_each"),
        (replace(TWO, copied_together=True), "crash_consistent_together"),
    ],
)
def test_a_notice_says_how_far_copies_of_a_running_machine_can_be_relied_on(found: InstanceDetail, said: str) -> None:
    assert risks(plan_of(SPOT, found)) == (Verb.WARN, (said,))


def test_what_may_be_lost_besides_is_told_too() -> None:
    addressed = replace(SPOT, public_ip="203.0.113.7")
    assert risks(plan_of(addressed, detail(addressed))) == (Verb.WARN, ("public_ip_lost", "crash_consistent"))


def test_copies_that_follow_a_stop_need_no_such_word() -> None:
    assert risks(plan_of(instance(), replace(TWO, instance=instance()))) == (Verb.WARN, ())


def test_copies_that_are_made_already_are_no_risk_ahead() -> None:
    climbed = (ClimbedRung(Verb.WARN, NOW - 10 * DAY), ClimbedRung(Verb.SNAPSHOT, NOW - DAY))
    last = case(rung=2, climbed=climbed, since=NOW - DAY, rule_digest=ENDS.digest, terms=terms(ENDS))
    copied = detail(SPOT, snapshots=(snapshot(started_at=NOW - 2 * DAY),))
    assert risks(plan_of(SPOT, copied, last)) == (Verb.TERMINATE, ())


def test_a_held_case_shows_the_copies_that_are_missing_and_none_that_are_made() -> None:
    """All volumes at once or none: a set that is complete is not asked for again."""
    told = case(rung=1, climbed=(ClimbedRung(Verb.WARN, NOW - 10 * DAY),), rule_digest=ENDS.digest, terms=terms(ENDS))
    half_read = shard_facts(fact(SPOT), gaps=(Gap(SHARD, "inventory", GapKind.DENIED, "denied"),))
    given = PlanInputs("idle_gpu", "run-1", NOW, policy(ENDS), (half_read,), cases=(told,))
    together = replace(TWO, copied_together=True)
    made = replace(together, snapshots=tuple(snapshot(each, started_at=NOW - DAY) for each in TWO.volumes))
    missing, complete = (build_plan(replace(given, details={SPOT.ref: found})) for found in (together, made))
    assert [held.action.copies for held in missing.held] == [tuple(each.ref for each in TWO.volumes)]
    assert complete.held == ()
    assert [move.after.reason.code for move in complete.transitions] == [ReasonCode.SHARD_INCOMPLETE]
