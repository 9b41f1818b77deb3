"""Stops come before terminations, which have a cap of their own; a share is of the fleet as the 24 hours began."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import DAY, NOW, case, detail, fact, instance, policy, ref, rule, shard_facts, snapshot, usd

from costguard.cases import ClimbedRung
from costguard.domain.actions import Verb
from costguard.domain.findings import InstanceFact
from costguard.domain.money import HourlyRate
from costguard.domain.reasons import ReasonCode
from costguard.domain.resources import InstanceState
from costguard.planning import CapUse, Plan, PlanInputs, build_plan, cap_of
from costguard.planning.rails import rule_limit

ENDING = cap_of("research", Verb.TERMINATE)


def running(number: int, hourly: str = "1.00") -> InstanceFact:
    return fact(instance(f"i-run-{number:02}"), rate=HourlyRate(usd(hourly), "test", "2026-01-01"))


def stopped(number: int, hourly: str = "40.00") -> InstanceFact:
    machine = instance(f"i-stopped-{number:02}", state=InstanceState.STOPPED)
    return fact(machine, rate=HourlyRate(usd(hourly), "test", "2026-01-01"))


def planned(*fleet: InstanceFact, caps: dict[str, CapUse] | None = None, **limits: Any) -> Plan:
    """Whoever runs was noticed a day ago; whoever is stopped has copies and may be terminated."""
    applied = rule(limits=replace(rule().limits, **limits))
    cases, details = [], {}
    for each in fleet:
        name = each.instance.ref.native_id
        mine = case(case_id=f"case-{name}", subject=ref(name), rule_digest=applied.digest)
        details[ref(name)] = detail(each.instance)
        if each.instance.state is InstanceState.STOPPED:
            climbed = ((Verb.WARN, 10), (Verb.STOP, 9), (Verb.WARN, 9), (Verb.SNAPSHOT, 1))
            mine = replace(
                mine,
                rung=4,
                climbed=tuple(ClimbedRung(verb, NOW - days * DAY) for verb, days in climbed),
                since=NOW - timedelta(hours=1),
            )
            details[ref(name)] = replace(details[ref(name)], snapshots=(snapshot(),))
        cases.append(mine)
    given = PlanInputs("idle_gpu", "run-1", NOW, policy(applied), (shard_facts(*fleet),), details=details)
    return build_plan(replace(given, cases=tuple(cases), caps=caps or {}))


def due(plan: Plan) -> list[Verb]:
    return [action.verb for action in plan.due]


def test_stops_come_before_terminations_however_much_those_cost() -> None:
    plan = planned(stopped(1), running(1), stopped(2), running(2))
    assert due(plan) == [Verb.STOP] * 2 + [Verb.TERMINATE] * 2


def test_terminations_use_up_nothing_that_stops_need() -> None:
    fleet = [*(stopped(n) for n in range(15)), *(running(n) for n in range(15))]
    plan = planned(*fleet, actions_per_day=10, fleet_share_per_day=Decimal(1))
    assert (due(plan).count(Verb.STOP), due(plan).count(Verb.TERMINATE)) == (10, 10)


@pytest.mark.parametrize(("cap", "verb"), [(ENDING, Verb.STOP), ("research", Verb.TERMINATE)])
def test_what_one_of_the_two_caps_has_used_leaves_the_other_whole(cap: str, verb: Verb) -> None:
    plan = planned(stopped(1), running(1), caps={cap: CapUse(10)})
    assert due(plan) == [verb]
    assert [held.reason.code for held in plan.held] == [ReasonCode.CAP_ACTIONS]


@pytest.mark.parametrize(("written", "allowed"), [(None, 3), (1, 1), (0, 0), (9, 6)])
def test_terminations_have_their_own_number_and_the_one_of_stops_where_none_is_written(
    written: int | None, allowed: int
) -> None:
    fleet = [stopped(n) for n in range(6)]
    plan = planned(*fleet, actions_per_day=3, terminations_per_day=written, fleet_share_per_day=Decimal(1))
    assert due(plan) == [Verb.TERMINATE] * allowed


def test_a_share_counts_what_was_terminated_in_the_window_as_fleet() -> None:
    """Twenty when the day began; ten are gone, and nothing less may be stopped for that."""
    gone = CapUse(10, subjects=frozenset(str(ref(f"i-gone-{n}")) for n in range(10)))
    fleet = [running(n) for n in range(10)]
    assert due(planned(*fleet, fleet_share_per_day=Decimal("0.2"))) == [Verb.STOP] * 2
    plan = planned(*fleet, fleet_share_per_day=Decimal("0.2"), caps={ENDING: gone})
    assert due(plan) == [Verb.STOP] * 4
    assert [limit.seen for limit in plan.limits] == [20]


def test_a_machine_that_is_still_listed_after_its_end_counts_once() -> None:
    fleet = [running(n) for n in range(10)]
    listed = CapUse(1, subjects=frozenset({str(fleet[0].instance.ref)}))
    assert [limit.seen for limit in planned(*fleet, caps={ENDING: listed}).limits] == [10]


def test_the_limits_of_both_are_numbers_of_the_same_rule() -> None:
    limits = replace(rule().limits, actions_per_day=5, terminations_per_day=2, fleet_share_per_day=Decimal(1))
    both = [rule_limit(rule(limits=limits), 50, verb).max_actions for verb in (Verb.STOP, Verb.TERMINATE)]
    assert both == [5, 2]
