"""What a plan hands to act, and who comes first when a cap is short."""

from __future__ import annotations

from dataclasses import replace
from datetime import time
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import (
    DAY,
    NOW,
    SHARD,
    case,
    detail,
    fact,
    instance,
    policy,
    ref,
    rule,
    shard_facts,
    snapshot,
    usd,
    volume,
)

from costguard.cases import Case, CaseStatus, ClimbedRung, Phase, claimed, confirming, decision_id
from costguard.domain.actions import Action, Saving, Verb
from costguard.domain.findings import InstanceFact
from costguard.domain.money import HourlyRate, Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind, InstanceState
from costguard.guards.rules.common import Mode, Selector
from costguard.planning import (
    CapUse,
    Plan,
    PlanIndex,
    PlanInputs,
    RuleLimit,
    Transition,
    build_plan,
    subjects_to_examine,
)
from costguard.policy.model.policy import Policy
from costguard.policy.model.working_time import WorkingCalendar

STOPPED = instance(state=InstanceState.STOPPED)
QUARANTINED = case(
    rung=3,
    climbed=(ClimbedRung(Verb.WARN, NOW - 10 * DAY), ClimbedRung(Verb.STOP, NOW - 9 * DAY)),
    since=NOW - 8 * DAY,
)
KEPT: tuple[tuple[str, Money | None], ...] = (("volume", usd("0.02")),)


def inputs(*facts: InstanceFact, **changes: Any) -> PlanInputs:
    """Machines that were noticed a day ago, each read closely."""
    facts = facts or (fact(),)
    subjects = [each.instance for each in facts]
    ordinary = PlanInputs("idle_gpu", "run-1", NOW, policy(), (shard_facts(*facts),))
    return replace(
        ordinary,
        **{
            "cases": tuple(of(each.ref.native_id) for each in subjects),
            "details": {each.ref: detail(each) for each in subjects},
            **changes,
        },
    )


def of(native_id: str, **changes: Any) -> Case:
    return case(case_id=f"case-{native_id}", subject=ref(native_id), **changes)


def costing(native_id: str, amount: str | None, currency: str = "USD", **changes: Any) -> InstanceFact:
    rate = HourlyRate(Money(Decimal(amount), currency), "test", "2026-01-01") if amount else None
    return fact(instance(native_id, **changes), rate=rate)


def capped(**limits: Any) -> tuple[Policy, dict[str, Any]]:
    """A policy with these limits, and what a case under it remembers of its rule."""
    applied = rule(limits=replace(rule().limits, **limits))
    return policy(applied), {"rule_digest": applied.digest}


def stopping(plan: Plan) -> list[str]:
    return [action.subject.native_id for action in plan.due]


def test_a_plan_says_what_it_was_made_of() -> None:
    other = Shard("aws", "444455556666", "eu-west-1")
    unread = Gap(SHARD, "signals", GapKind.DENIED, "cloudwatch:GetMetricData denied")
    throttled = Gap(other, "inventory", GapKind.THROTTLED, "slow down")
    shards = (shard_facts(fact(), gaps=(unread,), instances_seen=40), shard_facts(shard=other, instances_seen=2))
    plan = build_plan(inputs(facts=shards, gaps=(throttled,), kept={ref(): KEPT}))
    assert (plan.guard, plan.run_id, plan.planned_at) == ("idle_gpu", "run-1", NOW)
    assert plan.policy_digest == "policy-digest"
    assert plan.gaps == (throttled, unread)
    assert plan.kept == {ref(): KEPT}
    assert plan.instances_seen == 42


def test_a_plan_names_the_machines_that_are_billed_while_stopped() -> None:
    """A stop of those saves nothing, which the figures of a run must not claim."""
    fleet = [fact(instance("i-1", billed_while_stopped=True)), fact(instance("i-2"))]
    assert build_plan(inputs(*fleet)).billed_while_stopped == (ref("i-1"),)


def test_nothing_seen_is_counted_as_nothing() -> None:
    empty = build_plan(inputs(facts=(), cases=()))
    assert replace(empty, limits=()) == Plan(
        "idle_gpu", "run-1", NOW, "policy-digest", (), (), (), (), (), (), kept={}, instances_seen=0
    )
    assert Plan("idle_gpu", "run-1", NOW, "", (), (), (), (), (), ()).instances_seen == 0


def test_a_plan_names_the_limit_of_every_rule() -> None:
    """A share is of the machines that the rule applies to; a rule without any allows nothing."""
    day = rule("day", applies_to=Selector(instance_types=("g5g.*",)))
    night = rule("night", applies_to=Selector(instance_types=("p4d.*",)))
    fleet = [fact(instance(f"i-{n}")) for n in range(3)]
    foreign = fact(instance("i-9", instance_type="t3.nano"))
    plan = build_plan(inputs(*fleet, foreign, policy=policy(day, night), cases=()))
    assert plan.limits == (RuleLimit("day", 3, (usd("1000"),), seen=3), RuleLimit("night", 0, (usd("1000"),)))


def test_an_action_is_bound_to_its_decision_machine_and_rule() -> None:
    plan = build_plan(inputs(kept={ref(): KEPT}))
    decision = decision_id(of("i-1"))
    assert plan.due == (
        Action(
            action_id=decision,
            decision_id=decision,
            verb=Verb.STOP,
            subject=ref(),
            resource=ref(),
            run_epoch="epoch-1",
            case_id="case-i-1",
            rung=1,
            rule="research",
            rule_digest=rule().digest,
            saving=Saving(usd("1.00"), KEPT, price=HourlyRate(usd("1.00"), "test", "2026-01-01")),
        ),
    )


def test_a_snapshot_is_an_action_of_each_volume_without_a_copy() -> None:
    volumes = (volume("vol-1"), volume("vol-2"), volume("vol-3"))
    found = detail(STOPPED, volumes=volumes, snapshots=(snapshot(volumes[1]),))
    plan = build_plan(inputs(fact(STOPPED), cases=(QUARANTINED,), details={STOPPED.ref: found}))
    decision = decision_id(QUARANTINED)
    assert [(a.action_id, a.decision_id, a.resource, a.subject, a.saving) for a in plan.due] == [
        (f"{decision}-vol-1", decision, volumes[0].ref, STOPPED.ref, None),
        (f"{decision}-vol-3", decision, volumes[2].ref, STOPPED.ref, None),
    ]


def test_the_case_of_an_action_is_found_in_the_plan() -> None:
    plan = build_plan(inputs(fact(instance("i-1")), fact(instance("i-2"))))
    assert [PlanIndex.of(plan).case_of(action).case_id for action in plan.due] == ["case-i-1", "case-i-2"]


def test_every_machine_that_is_due_is_stopped() -> None:
    fleet = [costing(f"i-{n}", "1.00") for n in range(4)]
    assert stopping(build_plan(inputs(*fleet))) == ["i-0", "i-1", "i-2", "i-3"]


def test_the_most_expensive_machine_comes_first() -> None:
    """Where a cap lets one through, it is the one that costs most."""
    fleet = [costing("i-1", "2.00"), costing("i-2", "9.00"), costing("i-3", "5.00")]
    short, digest = capped(actions_per_day=1)
    cases = tuple(of(f"i-{n}", **digest) for n in (1, 2, 3))
    assert stopping(build_plan(inputs(*fleet, policy=short, cases=cases))) == ["i-2"]
    assert stopping(build_plan(inputs(*fleet))) == ["i-2", "i-3", "i-1"]


def test_prices_of_different_currencies_are_not_compared() -> None:
    fleet = [costing("i-1", "9.00", "USD"), costing("i-2", "5.00", "CNY")]
    both, digest = capped(hourly_cost_stopped_per_day=(usd("99"), Money(Decimal(99), "CNY")))
    cases = tuple(of(f"i-{n}", **digest) for n in (1, 2))
    assert stopping(build_plan(inputs(*fleet, policy=both, cases=cases))) == ["i-2", "i-1"]


def test_a_machine_of_unknown_price_comes_last() -> None:
    fleet = [costing(f"i-{n}", amount, state=InstanceState.STOPPED) for n, amount in ((1, None), (2, "0.10"))]
    one, digest = capped(actions_per_day=1)
    ready = [
        replace(QUARANTINED, case_id=f"case-{n}", subject=ref(f"i-{n}"), rung=4, since=NOW, **digest) for n in (1, 2)
    ]
    copied = {each.instance.ref: detail(each.instance, snapshots=(snapshot(),)) for each in fleet}
    plan = build_plan(inputs(*fleet, policy=one, cases=tuple(ready), details=copied))
    assert [(action.verb, action.subject.native_id) for action in plan.due] == [(Verb.TERMINATE, "i-2")]
    assert [(item.action.subject.native_id, item.reason.code) for item in plan.held] == [
        ("i-1", ReasonCode.CAP_ACTIONS)
    ]


def test_what_one_stop_uses_of_a_cap_the_next_one_lacks() -> None:
    fleet = [costing("i-1", "3.00"), costing("i-2", "3.00")]
    money, digest = capped(hourly_cost_stopped_per_day=(usd("5"),))
    cases = tuple(of(f"i-{n}", **digest) for n in (1, 2))
    plan = build_plan(inputs(*fleet, policy=money, cases=cases))
    assert stopping(plan) == ["i-1"]
    facts = {"allowed": "5", "used": "3.00", "wanted": "3.00", "currency": "USD"}
    assert [item.reason for item in plan.held] == [Reason(ReasonCode.CAP_MONEY, facts)]


def test_what_was_used_under_one_rule_is_not_taken_from_another() -> None:
    day = rule("day", applies_to=Selector(resources=("i-1",)), limits=replace(rule().limits, actions_per_day=1))
    night = rule("night", applies_to=Selector(resources=("i-2",)), limits=replace(rule().limits, actions_per_day=1))
    fleet = [fact(instance("i-1")), fact(instance("i-2"))]
    cases = (of("i-1", rule="day", rule_digest=day.digest), of("i-2", rule="night", rule_digest=night.digest))
    both = inputs(*fleet, policy=policy(day, night), cases=cases)
    assert stopping(build_plan(both)) == ["i-1", "i-2"]
    assert stopping(build_plan(replace(both, caps={"day": CapUse(1)}))) == ["i-2"]


def test_a_machine_that_waits_does_not_keep_the_next_one_waiting() -> None:
    fleet = [costing("i-1", "9.00"), costing("i-2", "1.00")]
    cases = (of("i-1", since=NOW), of("i-2"))
    plan = build_plan(inputs(*fleet, cases=cases))
    assert stopping(plan) == ["i-2"]
    assert [(move.before, move.after.case_id) for move in plan.transitions] == [
        (cases[0], "case-i-1"),
        (cases[1], "case-i-2"),
    ]


def test_a_plan_moves_each_case_from_the_record_it_was_read_from() -> None:
    """The commit is refused if another run has moved the record since."""
    plan = build_plan(inputs())
    after = plan.transitions[0].after
    assert plan.transitions == (Transition(of("i-1"), after),)
    assert (after.status, after.decision_id, after.phase) == (CaseStatus.OPEN, plan.due[0].decision_id, Phase.WAITING)


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.WARN])
def test_every_machine_is_rehearsed_and_no_cap_is_used(mode: Mode) -> None:
    gentle = rule(mode=mode, limits=replace(rule().limits, actions_per_day=1))
    cases = tuple(of(f"i-{n}", mode=mode, rule_digest=gentle.digest) for n in (1, 2))
    plan = build_plan(inputs(costing("i-1", "2.00"), costing("i-2", "1.00"), policy=policy(gentle), cases=cases))
    why = Reason(ReasonCode.MODE_OBSERVE if mode is Mode.OBSERVE else ReasonCode.MODE_WARN)
    assert [(item.action.verb, item.action.subject.native_id, item.reason) for item in plan.rehearsed] == [
        (Verb.STOP, "i-1", why),
        (Verb.STOP, "i-2", why),
    ]
    assert (plan.due, plan.held) == ((), ())
    assert [move.after.status for move in plan.transitions] == [CaseStatus.OPEN] * 2


def test_a_kill_switch_does_not_end_a_rehearsal() -> None:
    """It holds what would be done; nothing would be."""
    watching = rule(mode=Mode.OBSERVE)
    quiet = of("i-1", mode=Mode.OBSERVE, rule_digest=watching.digest)
    stopped = Reason(ReasonCode.KILL_SWITCH)
    plan = build_plan(inputs(policy=policy(watching), cases=(quiet,), stop_all=stopped))
    assert [item.reason.code for item in plan.rehearsed] == [ReasonCode.MODE_OBSERVE]


def test_a_grace_is_counted_in_the_policys_working_hours() -> None:
    week = WorkingCalendar("Asia/Shanghai", frozenset(range(5)), time(10), time(18))
    plan = build_plan(inputs(policy=policy(calendar=week)))
    assert plan.due == ()
    assert plan.transitions[0].after.reason.code is ReasonCode.WAITING


def test_only_what_wants_something_is_read_closely() -> None:
    """A close read is three calls a machine."""
    assert subjects_to_examine(inputs(cases=(of("i-1", since=NOW),))) == ()
    assert subjects_to_examine(inputs()) == (instance(),)


def test_what_was_not_seen_cannot_be_read_closely() -> None:
    called = confirming(claimed(of("i-1"), NOW))
    assert subjects_to_examine(inputs(facts=(), cases=(called,))) == ()
