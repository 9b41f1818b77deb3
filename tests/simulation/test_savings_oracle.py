"""The savings ledger after simulated weeks with faults, held against what the world knows of every machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from tests.simulation.campaign import quietly
from tests.simulation.scenario import scenario
from tests.simulation.simulation import Simulation

from costguard.domain.actions import Outcome, Verb
from costguard.domain.refs import ResourceRef
from costguard.engine.savings import realised_now
from costguard.planning.realised import Realised

SEEDS = (8, 39, 321, 353, 366, 375, 404)  # stops, restarts, terminations, frozen processes, two stops of one case


@pytest.fixture(scope="module")
def played() -> list[Simulation]:
    with quietly():
        simulations = [Simulation(scenario(seed)) for seed in SEEDS]
        for one in simulations:
            assert one.play().violations == ()
    return simulations


def realised(simulation: Simulation) -> tuple[Realised, ...]:
    return realised_now(simulation.operator, simulation.hub.now)


def test_no_hour_counts_in_which_the_machine_ran(played: list[Simulation]) -> None:
    counted = timedelta(0)
    for simulation in played:
        for one in realised(simulation):
            counted += one.until - one.saving.confirmed_at
            assert _ran(simulation, one) == timedelta(0), simulation.scenario.seed
    assert counted > timedelta(days=10), "else these seeds show nothing"


def test_no_hour_of_a_machine_counts_twice(played: list[Simulation]) -> None:
    for simulation in played:
        spans: dict[ResourceRef, list[tuple[datetime, datetime]]] = defaultdict(list)
        for one in realised(simulation):
            if one.until > one.saving.confirmed_at:
                spans[one.saving.action.subject].append((one.saving.confirmed_at, one.until))
        for each in spans.values():
            assert all(before[1] <= after[0] for before, after in pairwise(sorted(each)))


def test_every_stop_and_termination_that_took_effect_is_in_the_ledger_by_its_case(played: list[Simulation]) -> None:
    for simulation in played:
        memory = simulation.operator
        known = {(one.action.case_id, one.action.verb) for one in memory.savings.all()}
        took_effect = {
            (case.case_id, intent.action.verb)
            for guard in simulation.scenario.guards
            for case in memory.cases.all(guard)
            for intent in memory.intents.for_case(case.case_id)
            if intent.action.verb in {Verb.STOP, Verb.TERMINATE} and intent.outcome is Outcome.TOOK_EFFECT
        }
        assert took_effect <= known


def _ran(simulation: Simulation, one: Realised) -> timedelta:
    return sum(_overlaps(simulation, one), timedelta(0))


def _overlaps(simulation: Simulation, one: Realised) -> Iterator[timedelta]:
    machine = simulation.world.machines[one.saving.action.subject.native_id]
    for began, ended in machine.runs:
        since, until = max(began, one.saving.confirmed_at), min(ended or simulation.hub.now, one.until)
        yield max(until - since, timedelta(0))
