"""Protections that cost a request each are read just before a step: which are needed, and of whom none is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import NOW, case, detail, fact, instance, policy, ref, rule, shard_facts

from costguard.cases import Case
from costguard.domain.actions import Verb
from costguard.domain.resources import Instance
from costguard.guards.rules.common import Bars, Protection
from costguard.guards.rules.idle import IdleRule
from costguard.planning import Plan, PlanInputs, build_plan
from costguard.planning.rails import unread_protections
from costguard.policy.model.terms import terms

TERMINATION, STOP = "termination_protection", "stop_protection"
LOOSE = rule(termination_protection_bars=Bars.TERMINATE)
SPOT = instance(cannot_stop="one_time_spot")


def needed(verb: Verb, rung: int, of: IdleRule = LOOSE, machine: Instance | None = None) -> tuple[str, ...]:
    found = detail(machine or instance(), unread_protections=(TERMINATION, STOP))
    return unread_protections(verb, case(rung=rung), of, found)


def test_a_notice_needs_whatever_would_bar_a_step_that_it_announces() -> None:
    assert needed(Verb.WARN, 0) == (TERMINATION, STOP)
    assert needed(Verb.WARN, 0, rule(ladder=LOOSE.ladder[:2], termination_protection_bars=Bars.TERMINATE)) == (STOP,)


def test_a_step_needs_what_would_bar_it_and_no_more() -> None:
    """What bars the end is asked when the end is near: each costs a request for each machine."""
    assert needed(Verb.STOP, 1) == (STOP,)
    assert needed(Verb.TERMINATE, 4) == (TERMINATION, STOP)


def test_a_copy_needs_what_would_bar_the_end_that_it_is_made_for() -> None:
    assert needed(Verb.SNAPSHOT, 3) == (TERMINATION, STOP)


@pytest.mark.parametrize(("verb", "rung"), [(Verb.WARN, 0), (Verb.STOP, 1)])
def test_where_termination_protection_bars_everything_every_step_needs_it(verb: Verb, rung: int) -> None:
    assert needed(verb, rung, rule()) == (TERMINATION, STOP)


def test_a_machine_that_cannot_stop_is_not_asked_what_would_bar_its_stop() -> None:
    """Its ladder is a notice and nothing more, which no protection bars."""
    assert needed(Verb.WARN, 0, LOOSE, SPOT) == ()


def test_what_was_looked_at_is_not_needed_again() -> None:
    assert unread_protections(Verb.STOP, case(), LOOSE, detail()) == ()


# what a plan says of it


def planned(told: Case, *unread: str, read: bool = True) -> Plan:
    """Under a rule by which termination protection bars the end alone."""
    machine = instance()
    house = policy(LOOSE, protection=Protection(termination_protection_bars=Bars.TERMINATE))
    found = {ref(): detail(machine, unread_protections=unread)} if read else {}
    told = replace(told, rule_digest=LOOSE.digest, terms=terms(LOOSE))
    given = PlanInputs("idle_gpu", "run-1", NOW, house, (shard_facts(fact(machine)),), cases=(told,))
    return build_plan(replace(given, details=found))


def test_a_plan_names_the_machines_of_whose_protections_nothing_is_known() -> None:
    assert planned(case(), TERMINATION, STOP).unread_protections == (ref(),)
    assert planned(case(), STOP).unread_protections == (ref(),)


def test_protections_that_would_not_bar_the_step_that_is_due_are_not_missed() -> None:
    assert planned(case(), TERMINATION).unread_protections == ()
    assert planned(case()).unread_protections == ()


def test_of_a_machine_that_nobody_read_closely_no_protection_is_known() -> None:
    assert planned(case(), read=False).unread_protections == (ref(),)


def test_a_machine_that_only_waits_misses_nothing() -> None:
    """Most machines wait in most runs, and nobody asks for their protections."""
    waiting = case(since=NOW)
    assert planned(waiting, TERMINATION, STOP).unread_protections == ()
    assert planned(waiting, read=False).unread_protections == ()
