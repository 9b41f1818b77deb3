"""The audit trail of a world: who launched what, and what was done to it since."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cloudstand.world.cloud import World
from cloudstand.world.fleet import made_up_request_id
from cloudstand.world.records import Machine, TrailLook

REMEMBERS = timedelta(days=90)
"""How far back every cloud's trail can be asked."""

LAUNCH = "launch"
_KEPT = (LAUNCH, "stop", "start", "terminate")
_COSTGUARD = "role/costguard/costguard"


@dataclass(slots=True)
class TrailDesk:
    """What a test may set up of a wire's trail: `page` is how many events one answer has at most."""

    page: int = 50


@dataclass(frozen=True, slots=True)
class TrailEvent:
    """One call that the trail kept: `what` is `launch`, `stop`, `start` or `terminate`, `by` as in `MachineSpec`."""

    at: datetime
    by: str
    what: str
    machine: Machine

    @property
    def event_id(self) -> str:
        """The trail's own id, which always belongs to the same event."""
        return made_up_request_id("event", self.machine.native_id, self.what, self.at.isoformat())


def trail_of(world: World, cloud: str, account: str) -> Sequence[TrailEvent]:
    """What the trail of an account remembers now, in every region, the newest first."""
    kept = (
        event
        for event in _events(world)
        if (event.machine.spec.cloud, event.machine.spec.account) == (cloud, account)
        and world.now - REMEMBERS <= event.at <= world.now
    )
    return sorted(kept, key=lambda event: (event.at, event.machine.native_id), reverse=True)


def looks_at(world: World, cloud: str, account: str, region: str = "") -> Sequence[TrailLook]:
    """Who asked the trail of an account what, the newest first: in one region, or in all of them."""
    kept = (
        look
        for look in world.looks
        if (look.shard.cloud, look.shard.account) == (cloud, account)
        and region in {"", look.shard.region}
        and world.now - REMEMBERS <= look.at <= world.now
    )
    return sorted(kept, key=lambda look: look.at, reverse=True)


def _events(world: World) -> Iterator[TrailEvent]:
    for machine in world.machines.values():
        if machine.spec.launched_by:
            yield TrailEvent(machine.spec.launched_at, machine.spec.launched_by, LAUNCH, machine)
    for happening in world.history:
        machine_of = world.machines.get(happening.machine)
        if machine_of is not None and happening.what in _KEPT and happening.what != LAUNCH:
            by = _COSTGUARD if happening.by == "costguard" else f"user/{happening.by}"
            yield TrailEvent(happening.at, by, happening.what, machine_of)
