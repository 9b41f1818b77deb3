"""Whose disks and addresses they are, also once their machine is gone: the world only knows what is attached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec, made_up_id
from cloudstand.world.places import Place
from cloudstand.world.records import WorldAddress, WorldSnapshot, WorldVolume


@dataclass(frozen=True, slots=True)
class Origin:
    """The machine that something came with."""

    shard: Place
    machine: str
    zone: str


class Ownership:
    """An index over one cloud of a world, brought up to date before it is asked."""

    def __init__(self, world: World, cloud: str) -> None:
        self._world = world
        self._cloud = cloud
        self._of_volume: dict[str, Origin] = {}
        self._of_address: dict[str, Origin] = {}
        self._volumes: dict[Place, list[str]] = {}
        self._addresses: dict[Place, list[str]] = {}
        self._seen_machines = self._seen_happenings = 0

    def volumes(self, shard: Place) -> Iterator[tuple[WorldVolume, Origin]]:
        """The disks of a region that exist, attached or not, in the order in which they came."""
        self._refresh()
        for volume_id in self._volumes.get(shard, ()):
            volume = self._world.volumes[volume_id]
            if volume.deleted_at is None:
                yield volume, self._of_volume[volume_id]

    def volume(self, volume_id: str) -> tuple[WorldVolume, Origin] | None:
        """One disk that exists."""
        self._refresh()
        volume, origin = self._world.volumes.get(volume_id), self._of_volume.get(volume_id)
        return (volume, origin) if volume and origin and volume.deleted_at is None else None

    def snapshots(self, shard: Place) -> Iterator[WorldSnapshot]:
        """The copies in a region, newest first; also those of disks that are gone."""
        self._refresh()
        copies = (copy for volume_id in self._volumes.get(shard, ()) for copy in self._world.snapshots_of(volume_id))
        yield from sorted(copies, key=lambda copy: copy.started_at, reverse=True)

    def origin_of_snapshot(self, snapshot: WorldSnapshot) -> Origin | None:
        """Where a copy is kept."""
        self._refresh()
        return self._of_volume.get(snapshot.volume)

    def addresses(self, shard: Place) -> Iterator[tuple[WorldAddress, Origin]]:
        """The kept public addresses of a region, bound or not."""
        self._refresh()
        for address_id in self._addresses.get(shard, ()):
            address = self._world.addresses.get(address_id)
            if address is not None:
                yield address, self._of_address[address_id]

    def _refresh(self) -> None:
        fleet = self._world.fleet
        for spec in fleet[self._seen_machines :]:
            if spec.cloud == self._cloud:
                self._add(spec)
        self._seen_machines = len(fleet)
        history = self._world.history
        for happening in history[self._seen_happenings :]:
            machine = self._world.machines.get(happening.machine)
            if happening.what == "attach" and machine is not None and machine.spec.cloud == self._cloud:
                self._add_volume(happening.native_id, _origin(machine.spec))
        self._seen_happenings = len(history)

    def _add(self, spec: MachineSpec) -> None:
        origin = _origin(spec)
        for disk in spec.disks:
            self._add_volume(made_up_id(spec.cloud, "volume", spec.native_id, disk.device), origin)
        if spec.kept_address:
            address_id = made_up_id(spec.cloud, "address", spec.native_id)
            self._of_address[address_id] = origin
            self._addresses.setdefault(origin.shard, []).append(address_id)

    def _add_volume(self, volume_id: str, origin: Origin) -> None:
        if volume_id not in self._of_volume:
            self._of_volume[volume_id] = origin
            self._volumes.setdefault(origin.shard, []).append(volume_id)


def _origin(spec: MachineSpec) -> Origin:
    return Origin(spec.shard, spec.native_id, spec.zone)
