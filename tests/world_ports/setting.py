"""Where the demo's story happens without wires: a world, and a clock that both follow."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from cloudstand.clock import MovedClock
from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec
from cloudstand.world.workload import BUSY
from costguard.cli.sandbox.running import machine_of
from costguard.domain.refs import ResourceRef


class BareWorld:
    """A sandbox without wires: what the story needs of one."""

    def __init__(self, fleet: Iterable[MachineSpec], at: datetime) -> None:
        self.clock = MovedClock(at)
        self.world = World(fleet, at)

    def advance(self, step: timedelta) -> datetime:
        """Let time pass; returns the new moment."""
        now = self.clock.advance(step)
        self.world.tick(now)
        return now

    def machine(self, name: str) -> ResourceRef:
        """The machine of this name."""
        return machine_of(self.world, name)

    def work_on(self, machine: ResourceRef) -> None:
        """Its owner works on it, from now on and whenever it runs."""
        self.world.work(machine.native_id, BUSY)
