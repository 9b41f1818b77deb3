"""Who is next when something due gives its room in a cap back, and who comes behind all others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.builders import NOW, case, detail, fact, instance, policy, ref, rule, shard_facts, usd

from costguard.cases import Case, CaseStatus
from costguard.domain.actions import Verb
from costguard.domain.findings import InstanceFact
from costguard.domain.money import HourlyRate
from costguard.domain.reasons import Reason, ReasonCode
from costguard.guards.rules.common import Mode
from costguard.guards.rules.idle import IdleRule
from costguard.planning import Plan, PlanInputs, build_plan
from costguard.planning.rails import HELD_BY_A_CAP
from costguard.policy.model.terms import terms, with_digest


def costing(native_id: str, amount: str, **changes: Any) -> InstanceFact:
    return fact(instance(native_id, **changes), rate=HourlyRate(usd(amount), "test", "2026-01-01"))


FLEET = (costing("i-1", "3.00"), costing("i-2", "2.00"), costing("i-3", "1.00"))
ONE_A_DAY = rule(limits=replace(rule().limits, actions_per_day=1))


def planned(*fleet: InstanceFact, of: IdleRule = ONE_A_DAY, **changes: Any) -> Plan:
    """Every machine was noticed a day ago and is read closely, but for the cases in `changes`."""
    fleet = fleet or FLEET
    cases = tuple(noticed(each.instance.ref.native_id, of) for each in fleet)
    details = {each.instance.ref: detail(each.instance) for each in fleet}
    given = PlanInputs("idle_gpu", "run-1", NOW, policy(of), (shard_facts(*fleet),), cases=cases, details=details)
    return build_plan(replace(given, **changes))


def noticed(native_id: str, of: IdleRule = ONE_A_DAY, **changes: Any) -> Case:
    ordinary = case(case_id=f"case-{native_id}", subject=ref(native_id), mode=of.mode)
    return replace(ordinary, rule_digest=of.digest, terms=terms(of), **changes)


def due(plan: Plan) -> list[str]:
    return [action.subject.native_id for action in plan.due]


def in_line(plan: Plan) -> list[tuple[Verb, str]]:
    return [(action.verb, action.subject.native_id) for action in plan.next_in_line]


def test_only_room_in_a_cap_is_what_a_step_can_wait_in_line_for() -> None:
    assert {ReasonCode.CAP_ACTIONS, ReasonCode.CAP_MONEY} == HELD_BY_A_CAP


def test_whom_a_cap_alone_holds_stands_in_line_in_the_order_of_the_plan() -> None:
    plan = planned()
    assert due(plan) == ["i-1"]
    assert in_line(plan) == [(Verb.STOP, "i-2"), (Verb.STOP, "i-3")]
    assert plan.next_in_line == tuple(held.action for held in plan.held)


def test_whom_a_cap_of_money_holds_stands_in_line_too() -> None:
    short = rule(limits=replace(rule().limits, hourly_cost_stopped_per_day=(usd("3"),)))
    assert in_line(planned(of=short)) == [(Verb.STOP, "i-2"), (Verb.STOP, "i-3")]


def test_what_anything_else_holds_is_not_in_line() -> None:
    """Room in a cap would not help it: its turn would only hold up the next."""
    disk = costing("i-2", "2.00", local_disk_gib=125.0)
    plan = planned(FLEET[0], disk, FLEET[2])
    assert [held.reason.code for held in plan.held] == [ReasonCode.APPROVAL_NEEDED, ReasonCode.CAP_ACTIONS]
    assert in_line(plan) == [(Verb.STOP, "i-3")]


def test_a_rehearsal_has_nobody_in_line() -> None:
    watching = with_digest(replace(ONE_A_DAY, mode=Mode.OBSERVE, limits=replace(rule().limits, actions_per_day=0)))
    plan = planned(of=watching)
    assert [held.reason.code for held in plan.held] == [ReasonCode.CAP_ACTIONS] * 3
    assert in_line(plan) == []


# what the cloud was seen to protect


def test_what_was_last_seen_protected_comes_behind_cheaper_machines() -> None:
    """Its protection is read again only when its turn comes: else it would take the room of others run after run."""
    protected = Reason(ReasonCode.PROTECTED_BY_CLOUD, {"protection": "stop_protection"})
    waits = noticed("i-1", status=CaseStatus.HELD, reason=protected)
    plan = planned(cases=(waits, noticed("i-2"), noticed("i-3")))
    assert due(plan) == ["i-2"]
    assert in_line(plan) == [(Verb.STOP, "i-3"), (Verb.STOP, "i-1")]
