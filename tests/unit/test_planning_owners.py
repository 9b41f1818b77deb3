"""Whose machine a plan takes each to be, by its tags, by who started it and by who said that it is not theirs."""

from __future__ import annotations

from typing import Any

from tests.builders import NOW, fact, instance, policy, shard_facts

from costguard.domain.findings import Finding, Verdict
from costguard.domain.resources import Instance, Launch
from costguard.planning import PlanInputs, build_plan
from costguard.planning.build import judge_all

ANAS = instance("i-1", tags={"owner": "ana"})
NOBODYS = instance("i-2")


def planned(*machines: Instance, **changes: Any) -> dict[str, tuple[str, str]]:
    """By its id, who is named for each machine and what named them."""
    facts = (shard_facts(*(fact(each) for each in machines)),)
    return named(build_plan(PlanInputs("idle_gpu", "run-1", NOW, policy(), facts, **changes)).findings)


def named(findings: tuple[Finding, ...]) -> dict[str, tuple[str, str]]:
    return {str(each.subject).rpartition(":")[2]: (each.owner, each.owner_source) for each in findings}


def test_each_machine_has_its_own_owner() -> None:
    assert planned(ANAS, NOBODYS) == {"i-1": ("ana", "tag"), "i-2": ("", "none")}


def test_whoever_started_a_machine_owns_what_names_nobody() -> None:
    by_ben = {each.ref: Launch("user/ben", NOW, "event-1") for each in (ANAS, NOBODYS)}
    assert planned(ANAS, NOBODYS, launches=by_ben) == {"i-1": ("ana", "tag"), "i-2": ("ben", "launched")}


def test_who_started_another_machine_owns_no_other() -> None:
    assert planned(ANAS, NOBODYS, launches={ANAS.ref: Launch("user/ben", NOW, "event-1")})["i-2"] == ("", "none")


def test_whoever_said_that_a_machine_is_not_theirs_is_named_for_it_no_more() -> None:
    started = {ANAS.ref: Launch("user/ben", NOW, "event-1")}
    not_anas = {str(ANAS.ref): frozenset({"ana"})}
    assert planned(ANAS, launches=started, disowned=not_anas) == {"i-1": ("ben", "launched")}
    assert planned(ANAS, disowned=not_anas) == {"i-1": ("", "none")}


def test_a_machine_disowned_is_disowned_alone() -> None:
    assert planned(ANAS, disowned={str(NOBODYS.ref): frozenset({"ana"})}) == {"i-1": ("ana", "tag")}


def test_machines_are_judged_though_nothing_is_known_of_doubts_or_people() -> None:
    found = judge_all(policy(), (shard_facts(fact(ANAS), fact(NOBODYS)),), NOW)
    assert [each.verdict for each in found] == [Verdict.VIOLATION, Verdict.VIOLATION]
    assert named(found) == {"i-1": ("ana", "tag"), "i-2": ("", "none")}
