"""`CloudAuditLog` over a world, without any wire: what scenario tests and simulations ask who launched what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from tests.world_ports.translate import to_product, to_world

from cloudstand.clock import Clock
from cloudstand.world.cloud import World
from cloudstand.world.records import Operation, TrailLook, WorldRefusalError
from cloudstand.world.trail import LAUNCH, looks_at, trail_of
from costguard.domain.errors import AccessDeniedError
from costguard.domain.refs import Deployment, Shard, deployments_in
from costguard.domain.resources import Instance, Launch
from costguard.ports import LaunchReport


class WorldAuditLog:
    """`CloudAuditLog` over a world, without any wire."""

    def __init__(self, world: World, clock: Clock, mark: str = "") -> None:
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
                to_product(event.machine.ref): Launch(event.by, event.at, event.event_id)
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
        self._world.looks.append(TrailLook(self._world.now, to_world(shard), self._mark))
        return found

    def _require(self, shard: Shard) -> None:
        try:
            self._world.require(shard.cloud, shard.account, Operation.TRAIL)
        except WorldRefusalError as err:
            raise AccessDeniedError(str(err), operation="world:trail", code=err.refusal.value) from err
