"""One seed again, with every line of what happened."""

from __future__ import annotations

from tests.simulation.campaign import quietly
from tests.simulation.months import month
from tests.simulation.scenario import scenario
from tests.simulation.settings_play import SettingsSimulation
from tests.simulation.settings_stories import settings_story
from tests.simulation.simulation import Simulation, Verdict


def replay(name: str) -> Verdict:
    """A seed by its number, with its family before it (see `played`), or an exhaustive try by its name.

    Raises:
        ValueError: neither.
    """
    with quietly():
        if name.lstrip("bsw").isdigit():
            return played(name, readable=True)
        from tests.simulation.exhaustive import try_named

        return try_named(name)


def played(name: str, *, readable: bool = False) -> Verdict:
    """A seed by its number, with `b` one of budgets, with `s` one of settings, with `w` one over the wires.

    Raises:
        ValueError: no number.
    """
    family, seed = name[:1], int(name.lstrip("bsw"))
    if family == "w":  # the SDKs and emulators are loaded by those alone who need them
        from tests.simulation.wires.play import WireSimulation
        from tests.simulation.wires.stories import wire_story

        return WireSimulation(wire_story(seed), readable=readable).play()
    if family == "s":
        return SettingsSimulation(settings_story(seed), readable=readable).play()
    return Simulation(month(seed) if family == "b" else scenario(seed), readable=readable).play()
