"""The one door to a world that several wires show: brought up to the clock, and open to one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from cloudstand.clock import Clock
from cloudstand.world.cloud import World


class WorldDoor:
    """A world is not thread-safe; whoever reads or changes it does so in here, or holds `lock`."""

    def __init__(self, world: World, clock: Clock) -> None:
        self.clock = clock
        self._world = world
        self.lock = RLock()

    @contextmanager
    def opened(self) -> Iterator[World]:
        """The world at the present moment, until the block ends."""
        with self.lock:
            self._world.tick(self.clock.now())
            yield self._world
