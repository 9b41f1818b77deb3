"""What counts as a tightening, and a rule remembered as it was applied."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costguard.domain.actions import Verb
from costguard.domain.errors import InvalidInputError, NewerSchemaError
from costguard.domain.money import Money
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Accelerator, AcceleratorKind, Billing, Instance, InstanceState
from costguard.guards.rules.common import Consent, Limits, Mode, Selector, Step
from costguard.guards.rules.idle import IdleBounds, IdleRule
from costguard.policy.diff.idle import loosens
from costguard.policy.model.terms import rule_digest, rule_from_terms, terms, with_digest

H = timedelta(hours=1)
BASE = with_digest(
    IdleRule(
        name="research",
        mode=Mode.WARN,
        applies_to=Selector(instance_types=("p4d.*", "p5.48xlarge"), tags={"team": "r*"}, billing=(Billing.ON_DEMAND,)),
        idle=IdleBounds(cpu_max_below_percent=10.0),
        ladder=(Step(Verb.WARN, 0 * H), Step(Verb.SNAPSHOT, 24 * H), Step(Verb.STOP, 24 * H)),
        limits=Limits(local_disk=Consent.ASK),
        digest="",
        except_for=(Selector(tags={"stage": "prod"}),),
    )
)
Change = Callable[[IdleRule], IdleRule]


def selector(**changes: Any) -> Change:
    return lambda rule: replace(rule, applies_to=replace(rule.applies_to, **changes))


def bounds(**changes: Any) -> Change:
    return lambda rule: replace(rule, idle=replace(rule.idle, **changes))


def limits(**changes: Any) -> Change:
    return lambda rule: replace(rule, limits=replace(rule.limits, **changes))


def ladder(*steps: tuple[Verb, timedelta]) -> Change:
    return lambda rule: replace(rule, ladder=tuple(Step(verb, wait) for verb, wait in steps))


TIGHTER: dict[str, Change] = {
    "nothing": lambda rule: rule,
    "gentler mode": lambda rule: replace(rule, mode=Mode.OBSERVE),
    "one type fewer": selector(instance_types=("p4d.*",)),
    "a type within a pattern": selector(instance_types=("p4d.24xlarge", "p5.48xlarge")),
    "a tag more": selector(tags={"team": "r*", "stage": "dev"}),
    "a tag value within a pattern": selector(tags={"team": "research"}),
    "a region": selector(regions=("us-east-1",)),
    "nothing matched": selector(instance_types=()),
    "another exception": lambda rule: replace(rule, except_for=(*rule.except_for, Selector(regions=("eu-west-1",)))),
    "a wider exception": lambda rule: replace(rule, except_for=(Selector(tags={"stage": "*"}),)),
    "longer window": bounds(lasting=48 * H),
    "lower bound": bounds(every_gpu_max_below_percent=4.0),
    "another signal": bounds(power_max_below_watts=80.0),
    "more coverage": bounds(min_coverage=0.99),
    "longer wait": ladder((Verb.WARN, 0 * H), (Verb.SNAPSHOT, 24 * H), (Verb.STOP, 48 * H)),
    "without the last step": ladder((Verb.WARN, 0 * H), (Verb.SNAPSHOT, 24 * H)),
    "fewer actions": limits(actions_per_day=0),
    "smaller share": limits(fleet_share_per_day=Decimal("0.05")),
    "a currency fewer": limits(hourly_cost_stopped_per_day=(Money(Decimal(200), "USD"),)),
    "lower cap": limits(hourly_cost_stopped_per_day=(Money(Decimal(100), "USD"), Money(Decimal(1400), "CNY"))),
    "disks kept": limits(local_disk=Consent.KEEP),
    "an approver for what is dear": limits(local_disk_approver_above=(Money(Decimal(20), "USD"),)),
}
LOOSER: dict[str, Change] = {
    "another name": lambda rule: replace(rule, name="other"),
    "harsher mode": lambda rule: replace(rule, mode=Mode.ENFORCE),
    "every type": selector(instance_types=None),
    "a type more": selector(instance_types=("p4d.*", "p5.48xlarge", "g5.*")),
    "a wider pattern": selector(instance_types=("p4*", "p5.48xlarge")),
    "a pattern not proved narrower": selector(instance_types=("p4d.2*", "p5.48xlarge")),
    "a tag fewer": selector(tags=None),
    "another tag value": selector(tags={"team": "*"}),
    "spot too": selector(billing=(Billing.ON_DEMAND, Billing.SPOT)),
    "an exception fewer": lambda rule: replace(rule, except_for=()),
    "a narrower exception": lambda rule: replace(rule, except_for=(Selector(tags={"stage": "prod", "a": "b"}),)),
    "an exception of nothing": lambda rule: replace(rule, except_for=(Selector(tags={}),)),
    "shorter window": bounds(lasting=12 * H),
    "higher bound": bounds(every_gpu_max_below_percent=6.0),
    "a signal fewer": bounds(cpu_max_below_percent=None),
    "less coverage": bounds(min_coverage=0.949),
    "shorter wait": ladder((Verb.WARN, 0 * H), (Verb.SNAPSHOT, 24 * H), (Verb.STOP, 23 * H)),
    "a middle step taken out": ladder((Verb.WARN, 0 * H), (Verb.STOP, 24 * H)),
    "a step more": ladder((Verb.WARN, 0 * H), (Verb.SNAPSHOT, 24 * H), (Verb.STOP, 24 * H), (Verb.TERMINATE, 168 * H)),
    "more actions": limits(actions_per_day=11),
    "larger share": limits(fleet_share_per_day=Decimal("0.11")),
    "another currency": limits(
        hourly_cost_stopped_per_day=(*BASE.limits.hourly_cost_stopped_per_day, Money(Decimal(1), "EUR"))
    ),
    "higher cap": limits(hourly_cost_stopped_per_day=(Money(Decimal(201), "USD"),)),
    "disks lost": limits(local_disk=Consent.LOSE),
    "unstoppable terminated": limits(unstoppable_may_terminate=True),
    "one tighter and one looser": lambda rule: bounds(lasting=48 * H)(limits(actions_per_day=11)(rule)),
}


ABOVE_20 = limits(local_disk_approver_above=(Money(Decimal(20), "USD"),))(BASE)


@pytest.mark.parametrize(
    ("above", "looser"), [(None, True), (("21", "USD"), True), (("20", "CNY"), True), (("19", "USD"), False)]
)
def test_a_local_disk_lost_by_fewer_people_restarts_the_wait(above: tuple[str, str] | None, looser: bool) -> None:  # noqa: FBT001
    amounts = None if above is None else (Money(Decimal(above[0]), above[1]),)
    assert loosens(ABOVE_20, limits(local_disk_approver_above=amounts)(BASE)) is looser


def test_a_rule_that_names_no_amount_has_the_terms_that_it_had_before_there_was_one() -> None:
    assert "local_disk_approver_above" not in terms(BASE)
    assert rule_from_terms(terms(with_digest(ABOVE_20))).limits == ABOVE_20.limits


@pytest.mark.parametrize("name", TIGHTER)
def test_a_tightening_applies_at_once(name: str) -> None:
    assert not loosens(BASE, TIGHTER[name](BASE))


@pytest.mark.parametrize("name", LOOSER)
def test_anything_else_restarts_the_wait(name: str) -> None:
    assert loosens(BASE, LOOSER[name](BASE))


@pytest.mark.parametrize("name", [*TIGHTER, *LOOSER])
def test_a_remembered_rule_is_the_rule(name: str) -> None:
    rule = with_digest({**TIGHTER, **LOOSER}[name](BASE))

    assert rule_from_terms(terms(rule)) == rule


def test_terms_do_not_depend_on_order_or_trailing_zeros() -> None:
    other = replace(
        BASE,
        applies_to=replace(BASE.applies_to, instance_types=("p5.48xlarge", "p4d.*", "p4d.*")),
        limits=replace(BASE.limits, fleet_share_per_day=Decimal("0.1000")),
        idle=replace(BASE.idle, every_gpu_max_below_percent=5),
    )

    assert terms(other) == terms(BASE)
    assert rule_digest(other) == BASE.digest


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", '{"schema": 1}', "not json", '{"schema":1,"name":"a","mode":"x"}', "[" * 100_000],
)
def test_damaged_terms_are_an_error(text: str) -> None:
    with pytest.raises(InvalidInputError, match="not the terms of a rule"):
        rule_from_terms(text)


def test_terms_of_a_newer_version_are_refused() -> None:
    body = {**json.loads(terms(BASE)), "schema": 2}

    with pytest.raises(NewerSchemaError, match="schema 2"):
        rule_from_terms(json.dumps(body))


PATTERNS = st.sampled_from(["a", "b", "ab", "a*", "*", "?", "[ab]", "b*"])
VALUES = st.sampled_from(["a", "b", "ab", "ba", "c"])
SELECTORS = st.builds(
    Selector,
    instance_types=st.none() | st.lists(PATTERNS, max_size=2).map(tuple),
    regions=st.none() | st.lists(PATTERNS, max_size=2).map(tuple),
    billing=st.none() | st.lists(st.sampled_from(Billing), max_size=2).map(tuple),
    tags=st.none() | st.dictionaries(st.sampled_from(["k", "l"]), PATTERNS, max_size=2),
    resources=st.none() | st.lists(st.sampled_from(["i-1", "i-2"]), max_size=2).map(tuple),
)
INSTANCES = st.builds(
    lambda kind, region, billing, tags, number: Instance(
        ref=ResourceRef("aws", "111122223333", region, "instance", number),
        instance_type=kind,
        accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "x", 1),
        state=InstanceState.RUNNING,
        billing=billing,
        run_epoch="1",
        launched_at=datetime(2026, 1, 1, tzinfo=timezone.utc),
        tags=tags,
    ),
    VALUES,
    VALUES,
    st.sampled_from(Billing),
    st.dictionaries(st.sampled_from(["k", "l"]), VALUES, max_size=2),
    st.sampled_from(["i-1", "i-2"]),
)


@given(old=SELECTORS, new=SELECTORS, kept=SELECTORS, now_kept=SELECTORS, instance=INSTANCES)
def test_a_tightened_rule_never_reaches_an_instance_it_did_not(
    old: Selector, new: Selector, kept: Selector, now_kept: Selector, instance: Instance
) -> None:
    before = replace(BASE, applies_to=old, except_for=(kept,))
    after = replace(BASE, applies_to=new, except_for=(now_kept,))

    if not loosens(before, after) and new.matches(instance) and not now_kept.matches(instance):
        assert old.matches(instance)
        assert not kept.matches(instance)


@given(selector=SELECTORS)
def test_an_unchanged_rule_is_no_loosening(selector: Selector) -> None:
    rule = replace(BASE, applies_to=selector, except_for=(selector,))

    assert not loosens(rule, rule)
