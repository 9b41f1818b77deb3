"""Who spends a budget: what runs in it, the dearest first, and which of it nobody would miss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.builders import NOW, fact, instance, policy, ref, shard_facts, usd

from costguard.domain.findings import InstanceFact
from costguard.domain.money import HourlyRate, Money, SpendScope
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import InstanceState
from costguard.planning import Spender, dearest, least_harm, spenders

RESEARCH = SpendScope(tags=(("team", "research"),))


def machine(native_id: str = "i-1", hourly: Money | None = None, **changes: Any) -> InstanceFact:
    """Runs for research at two dollars an hour."""
    ordinary = {"tags": {"team": "research", "owner": "nlp"}, "state": InstanceState.RUNNING, **changes}
    rate = HourlyRate(hourly or usd("2"), "aws-pricing", "2026-03-02")
    return replace(fact(instance(native_id, **ordinary)), rate=rate)


def told(*facts: InstanceFact, idle: tuple[ResourceRef, ...] = (), scope: SpendScope = RESEARCH) -> tuple[Spender, ...]:
    return spenders((shard_facts(*facts),), scope, policy(), idle, NOW)


def named(found: tuple[Spender, ...]) -> list[str]:
    return [one.ref.native_id for one in found]


def test_a_spender_has_its_name_owner_type_and_price() -> None:
    one = machine(name="trainer", instance_type="p5.48xlarge", hourly=usd("98.32"))

    (found,) = told(one)

    assert (found.ref, found.name, found.owner) == (ref("i-1"), "trainer", "nlp")
    assert (found.instance_type, found.hourly, found.idle) == ("p5.48xlarge", usd("98.32"), False)


def test_the_dearest_comes_first_and_of_equals_the_first_by_id() -> None:
    found = told(machine("i-3"), machine("i-2", usd("9")), machine("i-1"))

    assert named(found) == ["i-2", "i-1", "i-3"]


def test_currencies_are_never_compared() -> None:
    """By number the yuan would come first."""
    found = told(machine("i-1", usd("1")), machine("i-2", Money(usd("50").amount, "CNY")), machine("i-3", usd("2")))

    assert [(one.hourly.currency, one.ref.native_id) for one in found] == [
        ("CNY", "i-2"),
        ("USD", "i-3"),
        ("USD", "i-1"),
    ]


def test_every_shard_is_looked_at() -> None:
    away = Shard("aws", "111122223333", "eu-west-1")
    there = machine("i-2")
    moved = replace(there, instance=replace(there.instance, ref=ref("i-2", shard=away)))

    found = spenders((shard_facts(machine()), shard_facts(moved, shard=away)), RESEARCH, policy(), (), NOW)

    assert sorted(named(found)) == ["i-1", "i-2"]


@pytest.mark.parametrize("state", [state for state in InstanceState if state is not InstanceState.RUNNING])
def test_what_does_not_run_spends_nothing(state: InstanceState) -> None:
    assert told(machine(state=state)) == ()


def test_what_has_no_price_is_not_ranked() -> None:
    assert told(replace(machine(), rate=None)) == ()


@pytest.mark.parametrize(
    ("scope", "inside"),
    [
        (SpendScope(), True),
        (SpendScope(clouds=("aws",), accounts=("111122223333",), regions=("us-east-1",)), True),
        (SpendScope(clouds=("alibaba",)), False),
        (SpendScope(accounts=("999999999999",)), False),
        (SpendScope(regions=("us-west-2",)), False),
        (SpendScope(tags=(("team", "vision"),)), False),
    ],
)
def test_only_what_is_in_the_scope_is_told(scope: SpendScope, inside: bool) -> None:  # noqa: FBT001
    assert bool(told(machine(), scope=scope)) is inside


def test_idle_is_what_was_seen_idle_and_is_not_protected() -> None:
    kept = machine("i-2", tags={"team": "research", "costguard-protect": ""})

    found = told(machine("i-1"), kept, machine("i-3"), idle=(ref("i-1"), ref("i-2")))

    assert [one.idle for one in found] == [True, False, False]
    assert named(least_harm(found)) == ["i-1"]


def test_a_protection_that_is_over_protects_no_more() -> None:
    until = [machine(f"i-{year}", tags={"team": "research", "keep-until": f"{year}-01-01"}) for year in (2020, 2031)]

    found = told(*until, idle=tuple(one.instance.ref for one in until))

    assert [one.idle for one in found] == [True, False]


def test_five_are_named_of_the_dearest_and_of_the_idle() -> None:
    """Every second machine is idle; the dearest idle ones are told."""
    facts = [machine(f"i-{number:02}", usd(str(100 - number))) for number in range(14)]
    idle = tuple(fact.instance.ref for fact in facts[::2])

    found = told(*facts, idle=idle)

    assert named(dearest(found)) == ["i-00", "i-01", "i-02", "i-03", "i-04"]
    assert named(least_harm(found)) == ["i-00", "i-02", "i-04", "i-06", "i-08"]
    assert dearest(()) == least_harm(()) == ()
