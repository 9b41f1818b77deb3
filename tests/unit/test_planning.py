"""Plans: what is due, what a rail holds, what is only rehearsed. NEVER rules of the house, one test each."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import (
    DAY,
    NOW,
    SHARD,
    case,
    detail,
    fact,
    history,
    instance,
    policy,
    rule,
    shard_facts,
    snapshot,
    usd,
    volume,
)

from costguard.cases import ClimbedRung, claimed, confirming
from costguard.domain.actions import Outcome, Verb
from costguard.domain.findings import InstanceFact, Verdict
from costguard.domain.money import HourlyRate, Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import Gap, GapKind, InstanceState
from costguard.guards.rules.common import Consent, Mode, Protection, Selector
from costguard.planning import CapUse, ClaimView, Plan, PlanInputs, build_plan, subjects_to_examine
from costguard.policy.model.policy import Account, Exemption, Policy
from costguard.policy.model.terms import terms

IDLE = instance()
INVENTORY_GAP = Gap(SHARD, "inventory", GapKind.DENIED, "ec2:DescribeInstances denied")


def inputs(*facts: InstanceFact, **changes: Any) -> PlanInputs:
    facts = facts or (fact(IDLE),)
    details = {f.instance.ref: detail(f.instance) for f in facts}
    ordinary = PlanInputs("idle_gpu", "run-1", NOW, policy(), (shard_facts(*facts),), details=details)
    return replace(ordinary, **changes)


def waiting_to_stop(*facts: InstanceFact, **changes: Any) -> PlanInputs:
    """Every given machine was noticed a day ago; its stop is due."""
    facts = facts or (fact(IDLE),)
    cases = tuple(case(case_id=f"case-{f.instance.ref.native_id}", subject=f.instance.ref) for f in facts)
    return inputs(*facts, cases=cases, **changes)


def with_limits(**limits: Any) -> Policy:
    return policy(rule(limits=replace(rule().limits, **limits)))


def under(new_policy: Policy, given: PlanInputs) -> PlanInputs:
    """The same case under a policy whose rule it was opened with."""
    applied = new_policy.idle_gpu[0]
    cases = tuple(replace(c, rule_digest=applied.digest) for c in given.cases)
    return replace(given, policy=new_policy, cases=cases)


def verbs(plan: Plan) -> list[Verb]:
    return [action.verb for action in plan.due]


def only_reason(plan: Plan) -> ReasonCode:
    assert not plan.due
    return plan.held[0].reason.code


def test_a_new_violation_is_warned_about() -> None:
    plan = build_plan(inputs())
    assert verbs(plan) == [Verb.WARN]
    assert plan.transitions[0].before is None


def test_a_noticed_machine_is_stopped_after_the_grace() -> None:
    plan = build_plan(waiting_to_stop())
    assert verbs(plan) == [Verb.STOP]
    assert plan.due[0].saving is not None
    assert plan.due[0].saving.stops_billing == usd("1.00")


def test_observe_changes_nothing() -> None:
    watching = policy(rule(mode=Mode.OBSERVE))
    plan = build_plan(inputs(policy=watching))
    assert not plan.due
    assert plan.rehearsed[0].reason.code is ReasonCode.MODE_OBSERVE


def test_warn_mode_tells_and_never_stops() -> None:
    warning = policy(rule(mode=Mode.WARN))
    assert verbs(build_plan(inputs(policy=warning))) == [Verb.WARN]
    given = replace(
        waiting_to_stop(policy=warning), cases=(case(mode=Mode.WARN, rule_digest=warning.idle_gpu[0].digest),)
    )
    plan = build_plan(given)
    assert not plan.due
    assert plan.rehearsed[0].reason.code is ReasonCode.MODE_WARN


def test_unmeasured_never_acts() -> None:
    silent = fact(IDLE, history(missing=range(25)))
    plan = build_plan(waiting_to_stop(silent))
    assert plan.findings[0].verdict is Verdict.UNMEASURED
    assert only_reason(plan) is ReasonCode.UNMEASURED


def test_an_instance_absent_from_the_metrics_answer_never_acts() -> None:
    """A famous tool selected it as idle under `not`."""
    plan = build_plan(waiting_to_stop(fact(IDLE, unread=True)))
    assert only_reason(plan) is ReasonCode.UNMEASURED


def test_nothing_is_done_in_a_shard_with_an_inventory_gap() -> None:
    given = waiting_to_stop()
    facts = tuple(replace(shard, gaps=(INVENTORY_GAP,)) for shard in given.facts)
    plan = build_plan(replace(given, facts=facts))
    assert only_reason(plan) is ReasonCode.SHARD_INCOMPLETE
    assert plan.gaps == (INVENTORY_GAP,)


def test_a_case_in_a_shard_that_was_not_read_is_kept() -> None:
    plan = build_plan(replace(waiting_to_stop(), facts=()))
    assert not plan.due
    assert plan.transitions[0].after.status.value == "held"


def test_only_the_organisations_listing_closes_a_gone_accounts_cases() -> None:
    plan = build_plan(replace(waiting_to_stop(), facts=(), closed_accounts=frozenset({SHARD.account})))
    assert plan.transitions[0].after.status.value == "closed"


@pytest.mark.parametrize(
    ("new_policy", "changes", "code"),
    [
        (policy(), {"tags": {"Costguard_Protect": "true"}}, ReasonCode.PROTECTED_TAG),
        (policy(), {"tags": {"KEEP.UNTIL": "next Tuesday or so"}}, ReasonCode.PROTECTED_TAG),
        (policy(protection=Protection(accounts=(SHARD.account,))), {}, ReasonCode.PROTECTED_ACCOUNT),
        (policy(accounts=(Account("aws", SHARD.account, None, protected=True),)), {}, ReasonCode.PROTECTED_ACCOUNT),
        (
            policy(exemptions=(Exemption(Selector(resources=("i-1",)), "nlp", "demo", "finops", NOW + DAY),)),
            {},
            ReasonCode.EXCEPTION,
        ),
    ],
)
def test_what_is_protected_is_shown_and_never_touched(
    new_policy: Policy, changes: dict[str, Any], code: ReasonCode
) -> None:
    plan = build_plan(waiting_to_stop(fact(replace(IDLE, **changes)), policy=new_policy))
    assert not plan.due
    finding = plan.findings[0]
    assert (finding.verdict, finding.reason.code) == (Verdict.EXEMPT, code)
    assert finding.reason.facts["utilisation"] == "idle"


def test_an_expired_exception_protects_no_longer() -> None:
    over = policy(exemptions=(Exemption(Selector(resources=("i-1",)), "nlp", "demo", "finops", NOW),))
    assert verbs(build_plan(waiting_to_stop(policy=over))) == [Verb.STOP]


def test_protection_seen_only_up_close_holds() -> None:
    given = waiting_to_stop(details={IDLE.ref: detail(protected_by=("termination_protection",))})
    assert only_reason(build_plan(given)) is ReasonCode.PROTECTED_BY_CLOUD


def test_without_a_close_read_nothing_is_done() -> None:
    given = waiting_to_stop(details={})
    assert subjects_to_examine(given) == (IDLE,)
    assert only_reason(build_plan(given)) is ReasonCode.DETAIL_UNREAD


def test_zero_cap_holds_every_stop() -> None:
    """A famous tool read 0 as unlimited."""
    assert only_reason(build_plan(under(with_limits(actions_per_day=0), waiting_to_stop()))) is ReasonCode.CAP_ACTIONS


def test_zero_share_holds_every_stop() -> None:
    given = under(with_limits(fleet_share_per_day=Decimal(0)), waiting_to_stop())
    assert only_reason(build_plan(given)) is ReasonCode.CAP_ACTIONS


def test_a_small_share_still_allows_one() -> None:
    fleet = [fact(instance(f"i-{n}")) for n in range(5)]
    plan = build_plan(under(with_limits(fleet_share_per_day=Decimal("0.1")), waiting_to_stop(*fleet)))
    assert verbs(plan) == [Verb.STOP]
    assert [item.reason.code for item in plan.held] == [ReasonCode.CAP_ACTIONS] * 4


def test_a_share_is_rounded_down() -> None:
    fleet = [fact(instance(f"i-{n:02}")) for n in range(19)]
    plan = build_plan(under(with_limits(fleet_share_per_day=Decimal("0.1")), waiting_to_stop(*fleet)))
    assert len(plan.due) == 1


def test_what_was_done_in_the_last_day_counts() -> None:
    given = under(with_limits(actions_per_day=3), waiting_to_stop(caps={"research": CapUse(3)}))
    assert only_reason(build_plan(given)) is ReasonCode.CAP_ACTIONS


def test_money_caps_are_per_currency() -> None:
    capped = with_limits(hourly_cost_stopped_per_day=(usd("0.99"),))
    assert only_reason(build_plan(under(capped, waiting_to_stop()))) is ReasonCode.CAP_MONEY
    other = with_limits(hourly_cost_stopped_per_day=(Money(Decimal(9), "CNY"),))
    assert only_reason(build_plan(under(other, waiting_to_stop()))) is ReasonCode.CURRENCY_UNCAPPED
    none = with_limits(hourly_cost_stopped_per_day=())
    assert only_reason(build_plan(under(none, waiting_to_stop()))) is ReasonCode.CURRENCY_UNCAPPED


def test_an_unknown_price_is_held() -> None:
    assert only_reason(build_plan(waiting_to_stop(fact(IDLE, rate=None)))) is ReasonCode.PRICE_UNKNOWN


@pytest.mark.parametrize("size", [None, 125.0])
def test_a_local_disk_is_never_lost_without_leave(size: float | None) -> None:
    machine = fact(replace(IDLE, local_disk_gib=size))
    keep = under(with_limits(local_disk=Consent.KEEP), waiting_to_stop(machine))
    assert only_reason(build_plan(keep)) is ReasonCode.LOCAL_DISK
    ask = waiting_to_stop(machine)
    plan = build_plan(ask)
    assert only_reason(plan) is ReasonCode.APPROVAL_NEEDED
    approved = build_plan(replace(ask, approved=frozenset({plan.held[0].action.decision_id})))
    assert verbs(approved) == [Verb.STOP]
    lose = under(with_limits(local_disk=Consent.LOSE), waiting_to_stop(machine))
    assert verbs(build_plan(lose)) == [Verb.STOP]


def test_an_approval_passes_no_other_rail() -> None:
    machine = fact(replace(IDLE, local_disk_gib=9.0))
    wanted = build_plan(waiting_to_stop(machine)).held[0].action.decision_id
    given = waiting_to_stop(machine, approved=frozenset({wanted}), caps={"research": CapUse(10)})
    assert only_reason(build_plan(given)) is ReasonCode.CAP_ACTIONS


def test_a_stop_all_reason_holds_everything() -> None:
    paused = build_plan(inputs(stop_all=Reason(ReasonCode.KILL_SWITCH)))
    assert only_reason(paused) is ReasonCode.KILL_SWITCH


def test_a_snoozed_machine_is_left_alone() -> None:
    plan = build_plan(waiting_to_stop(snoozes={str(IDLE.ref): NOW + DAY}))
    assert not plan.due
    assert plan.transitions[0].after.status.value == "snoozed"


STOPPED = replace(IDLE, state=InstanceState.STOPPED)
AT_TERMINATE = replace(
    case(rung=4, since=NOW - DAY),
    climbed=(ClimbedRung(Verb.STOP, NOW - 9 * DAY), ClimbedRung(Verb.SNAPSHOT, NOW - DAY)),
)


def test_terminate_needs_a_completed_snapshot_of_every_volume() -> None:
    copied = detail(STOPPED, snapshots=(snapshot(started_at=NOW - 2 * DAY),))
    given = inputs(fact(STOPPED), cases=(AT_TERMINATE,), details={STOPPED.ref: copied})
    assert verbs(build_plan(given)) == [Verb.TERMINATE]
    two = replace(copied, volumes=(volume(), volume("vol-2")))
    plan = build_plan(replace(given, details={STOPPED.ref: two}))
    assert [(a.verb, a.resource.native_id) for a in plan.due] == [(Verb.SNAPSHOT, "vol-2")]


def test_no_volumes_listed_is_a_gap() -> None:
    empty = detail(STOPPED, volumes=())
    plan = build_plan(inputs(fact(STOPPED), cases=(AT_TERMINATE,), details={STOPPED.ref: empty}))
    assert only_reason(plan) is ReasonCode.NO_VOLUMES


def test_a_snapshot_rung_is_one_action_a_volume() -> None:
    quarantined = replace(AT_TERMINATE, rung=3, since=NOW - 8 * DAY)
    two = detail(STOPPED, volumes=(volume("vol-1"), volume("vol-2")))
    plan = build_plan(inputs(fact(STOPPED), cases=(quarantined,), details={STOPPED.ref: two}))
    assert [action.resource.native_id for action in plan.due] == ["vol-1", "vol-2"]
    assert len({action.action_id for action in plan.due}) == 2


SPOT = replace(IDLE, cannot_stop="one_time_spot")
ENDS = rule(limits=replace(rule().limits, unstoppable_may_terminate=True))
TWO = (volume("vol-2"), volume("vol-1"))


def spot_due_to_be_copied(**changes: Any) -> Plan:
    """Of a machine that cannot stop, told of its end ten days ago."""
    told = replace(case(rung=1, since=NOW - 10 * DAY), climbed=(ClimbedRung(Verb.WARN, NOW - 10 * DAY),))
    told = replace(told, rule_digest=ENDS.digest, terms=terms(ENDS))
    found = replace(detail(SPOT, volumes=TWO, copied_together=True), **changes)
    return build_plan(inputs(fact(SPOT), cases=(told,), policy=policy(ENDS), details={SPOT.ref: found}))


def test_the_volumes_of_a_running_machine_are_one_action_where_one_call_copies_them() -> None:
    (action,) = spot_due_to_be_copied().due
    assert (action.verb, action.resource, action.action_id) == (Verb.SNAPSHOT, SPOT.ref, action.decision_id)
    assert [each.native_id for each in action.copies] == ["vol-1", "vol-2"]


def test_elsewhere_and_for_a_single_volume_it_stays_one_action_a_volume() -> None:
    apart = spot_due_to_be_copied(copied_together=False)
    assert [(each.resource.native_id, each.copies) for each in apart.due] == [("vol-2", ()), ("vol-1", ())]
    alone = spot_due_to_be_copied(volumes=TWO[:1])
    assert [(each.resource.native_id, each.copies) for each in alone.due] == [("vol-2", ())]


def test_a_plan_names_the_machines_that_cannot_stop() -> None:
    assert spot_due_to_be_copied().unstoppable == (SPOT.ref,)
    assert build_plan(waiting_to_stop()).unstoppable == ()


def test_an_action_under_way_is_looked_at_closely_and_not_repeated() -> None:
    called = confirming(claimed(case(), NOW - timedelta(minutes=5)))
    given = replace(waiting_to_stop(), cases=(called,), claims={called.decision_id: ClaimView(None, "")})
    assert subjects_to_examine(given) == (IDLE,)
    assert not build_plan(given).due


@pytest.mark.parametrize(("request_id", "code"), [("req-1", ReasonCode.CONFIRMED), ("", ReasonCode.STOPPED_BY_OTHERS)])
def test_a_stop_that_the_cloud_names_is_ours_by_the_id_of_our_call(request_id: str, code: ReasonCode) -> None:
    called = confirming(claimed(case(), NOW - timedelta(hours=2)))
    named = replace(STOPPED, run_epoch="", stopped_by="req-1")
    claims = {called.decision_id: ClaimView(Outcome.ACCEPTED, request_id)}
    (step,) = build_plan(inputs(fact(named), cases=(called,), claims=claims)).transitions
    assert step.after.reason.code is code


def test_the_same_inputs_give_the_same_plan() -> None:
    fleet = [fact(instance(f"i-{n}")) for n in range(6)]
    forwards, backwards = waiting_to_stop(*fleet), waiting_to_stop(*reversed(fleet))
    assert [a.action_id for a in build_plan(forwards).due] == [a.action_id for a in build_plan(backwards).due]


@given(
    prices=st.lists(st.decimals("0.01", "50", places=2), min_size=1, max_size=12),
    actions=st.integers(0, 6),
    share=st.decimals("0", "1", places=2),
    money=st.decimals("0", "120", places=2),
    used=st.integers(0, 3),
)
def test_no_plan_exceeds_any_cap(
    prices: list[Decimal], actions: int, share: Decimal, money: Decimal, used: int
) -> None:
    """Property: count, share and money together, whatever was used before."""
    rates = [HourlyRate(Money(price, "USD"), "test", "2026-01-01") for price in prices]
    fleet = [fact(instance(f"i-{n:02}"), rate=rate) for n, rate in enumerate(rates)]
    capped = with_limits(
        actions_per_day=actions, fleet_share_per_day=share, hourly_cost_stopped_per_day=(Money(money, "USD"),)
    )
    before = CapUse(used, (usd("1"),) if used else ())
    plan = build_plan(under(capped, waiting_to_stop(*fleet, caps={"research": before})))
    by_share = max(1, int(share * len(fleet))) if share else 0
    assert len(plan.due) + used <= max(used, min(actions, by_share))
    billing = [a.saving.stops_billing for a in plan.due if a.saving is not None]
    stopped = sum((saved.amount for saved in billing if saved is not None), Decimal(0))
    assert not plan.due or stopped + (1 if used else 0) <= money


def test_nobody_is_warned_of_a_stop_that_the_cloud_forbids() -> None:
    given = inputs(details={IDLE.ref: detail(protected_by=("termination_protection",))})
    assert only_reason(build_plan(given)) is ReasonCode.PROTECTED_BY_CLOUD


def test_a_notice_says_what_the_stop_would_save() -> None:
    saving = build_plan(inputs()).due[0].saving
    assert saving is not None
    assert saving.stops_billing == usd("1.00")
