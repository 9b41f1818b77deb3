"""The audit trail of a world: who launched what, and what was done to it since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from costguard.domain.deployments import Deployment, deployments_in
from costguard.domain.errors import AccessDeniedError
from costguard.domain.refs import Shard
from costguard.domain.resources import Instance, Launch
from costguard.ports import LaunchReport
from costguard.sandbox.world.cloud import World
from costguard.sandbox.world.fleet import made_up_request_id
from costguard.sandbox.world.ports import MovingTime
from costguard.sandbox.world.records import Machine, Operation, TrailLook, WorldRefusalError

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


class WorldTrail:
    """`LaunchTrail` over a world, without any wire."""

    def __init__(self, world: World, clock: MovingTime, mark: str = "") -> None:
        self._world = world
        self._clock = clock
        self._mark = mark
        self.asked: list[str] = []

    def launches(self, instances: Sequence[Instance]) -> LaunchReport:
        """Who launched these, as far as the trail remembers.

        Raises:
            AccessDeniedError: the role may not read the trail.
        """
        self._world.tick(self._clock.now())
        found = {}
        for shard in {instance.ref.shard for instance in instances}:
            self._require(shard)
            told = {
                event.machine.ref: Launch(event.by, event.at, event.event_id)
                for event in trail_of(self._world, shard.cloud, shard.account)
                if event.what == LAUNCH
            }
            found.update({each.ref: told[each.ref] for each in instances if each.ref in told})
        self.asked += [instance.ref.native_id for instance in instances]
        return LaunchReport(found)

    def deployments(self, shard: Shard, since: datetime) -> Mapping[Deployment, datetime]:
        """Whose marks the questions to the trail of this shard carry; this one is recorded with ours.

        Raises:
            AccessDeniedError: the role may not read the trail.
        """
        self._world.tick(self._clock.now())
        self._require(shard)
        looks = looks_at(self._world, shard.cloud, shard.account, shard.region)
        found = {each: look.at for look in reversed(looks) if look.at >= since for each in deployments_in(look.session)}
        self._world.looks.append(TrailLook(self._world.now, shard, self._mark))
        return found

    def _require(self, shard: Shard) -> None:
        try:
            self._world.require(shard.cloud, shard.account, Operation.TRAIL)
        except WorldRefusalError as err:
            raise AccessDeniedError(str(err), operation="world:trail", code=err.refusal.value) from err
