"""Under which names the use of caps is kept in the ledger, and of which machine a kept use was."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from tests.builders import NOW, STOP_THEN_TERMINATE, case, fact, instance, policy, ref, rule, shard_facts

from costguard.cases import subject_in
from costguard.domain.actions import Verb
from costguard.planning import PlanInputs, build_plan, cap_of, caps_of


def test_terminations_count_under_a_name_of_their_own_and_all_else_under_the_rules() -> None:
    """The names are in the ledger: with others, what was used before an update would count for nothing."""
    assert cap_of("research", Verb.TERMINATE) == "research/terminate"
    assert cap_of("research", Verb.START) == "research/start"
    of_their_own = {Verb.TERMINATE, Verb.START}
    assert {cap_of("research", verb) for verb in Verb if verb not in of_their_own} == {"research"}


def test_only_a_ladder_that_ends_machines_has_a_cap_for_it() -> None:
    ending, stopping = rule("research"), rule("nights", ladder=STOP_THEN_TERMINATE[:2])
    assert list(caps_of((stopping, ending))) == ["nights", "research", "research/terminate"]


@pytest.mark.parametrize("native_id", ["i-1", "gateway/of/parts"])
def test_the_subject_of_a_case_is_read_back_from_its_key_whole(native_id: str) -> None:
    """Else a share of the fleet would be taken of machines that there never were."""
    subject = ref(native_id)
    assert subject_in(case(subject=subject).key) == str(subject)


def test_a_plan_tells_how_many_stops_a_rule_allows() -> None:
    limits = replace(rule().limits, actions_per_day=5, terminations_per_day=2, fleet_share_per_day=Decimal(1))
    fleet = shard_facts(*(fact(instance(f"i-{n}")) for n in range(6)))
    plan = build_plan(PlanInputs("idle_gpu", "run-1", NOW, policy(rule(limits=limits)), (fleet,)))
    assert [(limit.rule, limit.max_actions, limit.seen) for limit in plan.limits] == [("research", 5, 6)]
