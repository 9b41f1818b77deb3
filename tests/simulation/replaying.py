"""One seed again, with every line of what happened."""

from __future__ import annotations

from tests.simulation.campaign import quietly
from tests.simulation.months import month
from tests.simulation.scenario import scenario
from tests.simulation.simulation import Simulation, Verdict


def replay(name: str) -> Verdict:
    """A seed by its number, one of budgets by `b` and its number, or an exhaustive try by its name.

    Raises:
        ValueError: neither.
    """
    with quietly():
        if name.isdigit():
            return Simulation(scenario(int(name)), readable=True).play()
        if name[:1] == "b" and name[1:].isdigit():
            return Simulation(month(int(name[1:])), readable=True).play()
        from tests.simulation.exhaustive import try_named

        return try_named(name)
