"""One simulation over the wires: the same engine, people and oracle, with providers where ports were."""

from __future__ import annotations

from random import Random

from tests.simulation.clouds import FaultyPrices
from tests.simulation.faults import FaultPlan
from tests.simulation.hub import Process
from tests.simulation.oracle.judge import Violation
from tests.simulation.simulation import Simulation, Verdict
from tests.simulation.wires.clouds import Provider, WireExecutor, WireInventory, Wires, WireSignals
from tests.simulation.wires.stories import WireScenario

from costguard.engine.run.scan import CloudReaders
from costguard.ports import ActionExecutor, Target


class WireSimulation(Simulation):
    """Each process has ports of its own, as a function does."""

    def __init__(self, scenario: WireScenario, plan: FaultPlan | None = None, *, readable: bool = False) -> None:
        super().__init__(scenario, plan, readable=readable)
        self.wires = Wires(self.clouds, Random(scenario.seed * 3 + 4), self._complain)  # noqa: S311 - reproducible
        self.wires.ends_unanswered = scenario.ends_unanswered
        self._connected: dict[tuple[str, str], Provider] = {}

    def play(self) -> Verdict:
        """All of it, with the emulators open meanwhile."""
        with self.wires:
            return super().play()

    def _complain(self, rule: int, machine: str, what: str) -> None:
        self.judge.add(Violation(rule, self.hub.now, machine, what))

    def _provider(self, process: Process, cloud: str) -> Provider:
        key = process.name, cloud
        if key not in self._connected:
            self._connected[key] = self.wires.connect(cloud)
        return self._connected[key]

    def _target(self, cloud: str) -> Target:
        regions = {spec.region for spec in self.scenario.machines if spec.cloud == cloud}
        return Target(cloud, regions=tuple(sorted(regions)))

    def _executor(self, process: Process, cloud: str) -> ActionExecutor:
        return WireExecutor(self.clouds, process, self.wires, self._provider(process, cloud), cloud)

    def _reading(self, process: Process, cloud: str) -> CloudReaders:
        over = self.wires, self._provider(process, cloud), cloud
        inventory = WireInventory(self.clouds, process, *over)
        return CloudReaders(inventory, WireSignals(self.clouds, process, *over), FaultyPrices(self.clouds, process))
