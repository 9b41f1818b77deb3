"""What a spent budget makes of its steps: which machines, under which rule, and never on doubtful figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.builders import NOW, case, detail, fact, history, instance, policy, quiet, ref, rule, shard_facts, usd

from costguard.cases import Case, CaseStatus, ClimbedRung, Phase
from costguard.domain.actions import Verb
from costguard.domain.findings import InstanceFact, Verdict
from costguard.domain.money import SpendScope
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import InstanceState
from costguard.guards.budget.rules import BudgetPeriod, BudgetRule, BudgetStep, PriorityClass, StepKind
from costguard.guards.budget.steps import BudgetStanding, MachineRules, machine_rules, narrowed, selector_of
from costguard.guards.rules.common import Mode, Selector
from costguard.planning import Plan, PlanInputs, build_plan
from costguard.policy.diff.idle import loosens
from costguard.policy.model.terms import rule_from_terms, terms, with_digest

RESEARCH = SpendScope(tags=(("team", "research"),))
DEV = PriorityClass("dev", Selector(tags={"env": "dev"}))
STOP_IDLE = BudgetStep(Decimal(1), StepKind.STOP_IDLE, timedelta(hours=4))
STOP_DEV = BudgetStep(Decimal("1.1"), StepKind.STOP_CLASSES, timedelta(hours=8), classes=("dev",))
DOUBT = Reason(ReasonCode.BILL_STALE, {"age_hours": 70})


def budget(*steps: BudgetStep, **changes: Any) -> BudgetRule:
    ordinary = BudgetRule("research", Mode.ENFORCE, RESEARCH, BudgetPeriod(), usd("5000"), steps=steps or (STOP_IDLE,))
    return replace(ordinary, **changes)


def rules_at(share: str | None, *steps: BudgetStep, doubt: Reason | None = None, **changes: Any) -> MachineRules:
    known = None if share is None else Decimal(share)
    return machine_rules([BudgetStanding(budget(*steps, **changes), known, doubt)], [DEV])


def mine(native_id: str = "i-1", *, busy: bool = False, **tags: str) -> InstanceFact:
    machine = instance(native_id, tags={"team": "research", **tags})
    return fact(machine, *(quiet() if not busy else [history(value=90.0)]), lasting=timedelta(hours=1))


def planned(rules: MachineRules, *facts: InstanceFact, cases: Sequence[Case] = (), **changes: Any) -> Plan:
    details = {one.instance.ref: detail(one.instance) for one in facts}
    applied = replace(policy(), idle_gpu=tuple(with_digest(each) for each in rules.rules))
    inputs = PlanInputs("budget", "run-1", NOW, applied, (shard_facts(*facts),), tuple(cases), details)
    return build_plan(replace(inputs, doubts=rules.doubts, **changes))


def due(plan: Plan) -> list[tuple[Verb, str]]:
    return [(action.verb, action.subject.native_id) for action in plan.due]


def test_below_its_share_a_step_asks_for_nothing() -> None:
    assert rules_at("0.9999").rules == ()


def test_exactly_at_its_share_a_step_is_in_force() -> None:
    (made,) = rules_at("1").rules
    assert made.name == "research@100%"


def test_a_spent_budget_warns_the_owner_of_an_idle_machine_first() -> None:
    plan = planned(rules_at("1"), mine())
    assert due(plan) == [(Verb.WARN, "i-1")]
    (finding,) = plan.findings
    assert (finding.guard, finding.reason.code) == ("budget", ReasonCode.BUDGET_IDLE)
    assert finding.reason.facts["at_percent"] == "100"


def test_a_busy_machine_is_left_alone_while_only_idle_ones_are_asked_for() -> None:
    plan = planned(rules_at("1.05", STOP_IDLE, STOP_DEV), mine(busy=True, env="dev"))
    assert due(plan) == []
    assert plan.findings[0].verdict is Verdict.COMPLIANT


def test_a_class_of_work_is_asked_for_though_it_is_busy() -> None:
    plan = planned(rules_at("1.1", STOP_IDLE, STOP_DEV), mine("i-dev", busy=True, env="dev"), mine("i-prod", busy=True))
    assert due(plan) == [(Verb.WARN, "i-dev")]
    assert plan.findings[0].reason.code is ReasonCode.BUDGET_CLASS


def test_a_class_is_asked_for_without_any_metric_of_its_machines() -> None:
    unmeasured = fact(instance(tags={"team": "research", "env": "dev"}), unread=True)
    assert due(planned(rules_at("1.1", STOP_DEV), unmeasured)) == [(Verb.WARN, "i-1")]


def test_a_machine_of_another_scope_is_none_of_the_budgets_business() -> None:
    other = fact(instance(tags={"team": "product", "env": "dev"}), lasting=timedelta(hours=1))
    assert due(planned(rules_at("2", STOP_IDLE, STOP_DEV), other)) == []


def test_a_stopped_machine_is_no_violation_of_a_class_step() -> None:
    stopped = fact(instance(tags={"team": "research", "env": "dev"}, state=InstanceState.STOPPED))
    assert due(planned(rules_at("1.1", STOP_DEV), stopped)) == []


def test_doubtful_figures_stop_nothing_and_say_why() -> None:
    plan = planned(rules_at("3", STOP_IDLE, STOP_DEV, doubt=DOUBT), mine(), mine("i-2", env="dev"))
    assert due(plan) == []
    assert {finding.verdict for finding in plan.findings} == {Verdict.UNMEASURED}
    assert {finding.reason.code for finding in plan.findings} == {ReasonCode.BILL_STALE}


def noticed_under(rules: MachineRules) -> Case:
    """The budget's own case: its owner was told five hours ago, the stop comes after four."""
    (made,) = map(with_digest, rules.rules)
    told = NOW - timedelta(hours=5)
    return case(
        guard="budget",
        check="spent",
        rule=made.name,
        rule_digest=made.digest,
        terms=terms(made),
        since=told,
        climbed=(ClimbedRung(Verb.WARN, told),),
        owner="research",
    )


def warned_idle(**changes: Any) -> Case:
    """A case of the idle guard on the same machine: a day from notice to stop."""
    return case(climbed=(ClimbedRung(Verb.WARN, NOW - timedelta(hours=23)),), **changes)


def test_a_case_waits_while_the_figures_are_doubtful_and_goes_on_when_they_are_good() -> None:
    sure, unsure = rules_at("1"), rules_at("1", doubt=DOUBT)
    held = planned(unsure, mine(), cases=[noticed_under(sure)])
    assert due(held) == []
    assert held.transitions[0].after.status is CaseStatus.HELD
    assert due(planned(sure, mine(), cases=[noticed_under(sure)])) == [(Verb.STOP, "i-1")]


def test_what_nobody_knows_neither_begins_nor_ends_a_case() -> None:
    unknown = rules_at(None, doubt=Reason(ReasonCode.BILL_UNREAD))
    assert due(planned(unknown, mine())) == []
    going_on = planned(unknown, mine(), cases=[noticed_under(rules_at("1"))])
    assert due(going_on) == []
    assert going_on.transitions[0].after.status is CaseStatus.HELD


def test_a_raised_budget_closes_its_cases() -> None:
    lifted = planned(rules_at("0.5"), mine(), cases=[noticed_under(rules_at("1"))])
    (step,) = lifted.transitions
    assert (step.after.status, step.after.reason.code) == (CaseStatus.CLOSED, ReasonCode.BUDGET_LIFTED)


def test_an_idle_case_that_stops_sooner_stands_in_for_the_budgets() -> None:
    """Its owner was told of a stop in an hour; a second warning of one in four would only confuse."""
    soon = warned_idle(since=NOW - timedelta(hours=23))
    plan = planned(rules_at("1"), mine(), others={ref(): (soon,)})
    assert due(plan) == []
    assert plan.held[0].reason == Reason(ReasonCode.MERGED, {"guard": "idle_gpu", "rule": "research"})


def test_a_budget_that_stops_sooner_speaks_for_itself() -> None:
    late = warned_idle(since=NOW - timedelta(hours=2))
    assert due(planned(rules_at("1"), mine(), others={ref(): (late,)})) == [(Verb.WARN, "i-1")]


def test_a_stop_under_way_is_not_asked_for_twice() -> None:
    stopping = warned_idle(phase=Phase.CONFIRMING)
    plan = planned(rules_at("1"), mine(), cases=[noticed_under(rules_at("1"))], others={ref(): (stopping,)})
    assert due(plan) == []


@pytest.mark.parametrize("changes", [{"mode": Mode.OBSERVE}, {"run_epoch": "another"}])
def test_a_case_that_only_watches_or_is_of_another_run_stands_in_for_nothing(changes: dict[str, Any]) -> None:
    other = warned_idle(since=NOW - timedelta(hours=23), **changes)
    assert due(planned(rules_at("1"), mine(), others={ref(): (other,)})) == [(Verb.WARN, "i-1")]


def test_of_nested_budgets_the_gentlest_that_is_spent_decides_and_one_stop_is_asked_for() -> None:
    company = budget(
        BudgetStep(Decimal(1), StepKind.STOP_IDLE, timedelta(hours=2)), name="company", covers=SpendScope()
    )
    made = machine_rules([BudgetStanding(company, Decimal("1.2")), BudgetStanding(budget(), Decimal("1.5"))], [])
    plan = planned(made, mine())
    assert due(plan) == [(Verb.WARN, "i-1")]
    assert plan.due[0].rule == "research@100%"


def test_a_class_step_that_only_watches_takes_no_machine_from_an_enforced_idle_step() -> None:
    watching = budget(STOP_DEV, name="watching", mode=Mode.OBSERVE, covers=SpendScope(accounts=("nobody",)))
    made = machine_rules([BudgetStanding(watching, Decimal(2)), BudgetStanding(budget(), Decimal(2))], [DEV])
    assert due(planned(made, mine(env="dev"))) == [(Verb.WARN, "i-1")]


def test_words_of_a_scope_are_no_patterns() -> None:
    machine = instance(tags={"team": "research"})
    assert not selector_of(SpendScope(tags=(("team", "res*"),))).matches(machine)
    assert selector_of(SpendScope(tags=(("team", "[x]"),))).matches(replace(machine, tags={"team": "[x]"}))


def test_an_empty_list_in_a_scope_selects_nothing() -> None:
    assert not selector_of(SpendScope(accounts=())).matches(instance())
    assert narrowed(SpendScope(accounts=()), Selector()) is None


def test_a_class_outside_the_scope_makes_no_rule() -> None:
    assert narrowed(SpendScope(regions=("us-east-1",)), Selector(regions=("cn-*",))) is None
    assert narrowed(RESEARCH, Selector(tags={"team": "product"})) is None
    assert narrowed(RESEARCH, Selector(tags={})) is None


def test_scope_and_class_are_both_required() -> None:
    both = narrowed(RESEARCH, Selector(tags={"env": "dev"}, instance_types=("p4d.*",)))
    assert both == Selector(tags={"env": "dev", "team": "research"}, instance_types=("p4d.*",))


def test_a_rule_of_a_budget_survives_the_ledger() -> None:
    made = with_digest(rules_at("1.1", STOP_DEV).rules[0])
    assert rule_from_terms(terms(made)) == made


def test_a_rule_for_a_class_loosens_one_for_what_is_idle() -> None:
    idle = with_digest(replace(rules_at("1").rules[0], name="same"))
    by_class = with_digest(replace(rules_at("1.1", STOP_DEV).rules[0], name="same"))
    assert loosens(idle, by_class)
    assert loosens(with_digest(rule("same")), idle)
