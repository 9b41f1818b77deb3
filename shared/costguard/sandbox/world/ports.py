"""The ports over a world, without any wire: what fast scenario tests and simulations run on."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from math import nan
from typing import Protocol

from typing_extensions import assert_never

from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.errors import NotFoundError, RefusedError
from costguard.domain.money import HOURS_PER_MONTH, HourlyRate, Money
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import (
    Billing,
    Instance,
    InstanceDetail,
    InstanceState,
    Inventory,
    Snapshot,
    Volume,
)
from costguard.domain.signals import SignalHistory, SignalReading, floor_hour
from costguard.ports import Discovery, SignalReport, Target
from costguard.sandbox.world.cloud import World
from costguard.sandbox.world.records import Machine, Refusal, WorldRefusalError
from costguard.sandbox.world.sensors import Sensor, sensors_of
from costguard.sandbox.world.workload import HOUR_SECONDS

DOCUMENTED_DELAY = timedelta(minutes=5)
SPOT_SHARE = Decimal("0.4")  # what a spot hour costs of an on-demand hour here
DISK_GIB_MONTH = Decimal("0.08")
SNAPSHOT_GIB_MONTH = Decimal("0.05")
ADDRESS_HOUR = Decimal("0.005")


class MovingTime(Protocol):
    """The part of a clock that reading needs."""

    def now(self) -> datetime:
        """The present moment, aware, UTC."""


class _OverWorld:
    """Brings the world up to the clock before it is looked at."""

    def __init__(self, world: World, clock: MovingTime) -> None:
        self._world = world
        self._clock = clock

    def _current(self) -> World:
        self._world.tick(self._clock.now())
        return self._world


class WorldInventory(_OverWorld):
    """`InventorySource` over a world."""

    def discover(self, target: Target) -> Discovery:
        """The shards of a target in which anything stands; an organisation is every account of that cloud."""
        shards = {spec.shard for spec in self._world.fleet if spec.cloud == target.cloud}
        accounts = {shard.account for shard in shards} if target.organisation or not target.account else set[str]()
        wanted = accounts | {target.account}
        regions = target.regions
        found = (shard for shard in shards if shard.account in wanted and (regions is None or shard.region in regions))
        return Discovery(tuple(sorted(found)))

    def read(self, shard: Shard) -> Inventory:
        """Every machine of the shard that the cloud still lists."""
        world = self._current()
        here = [machine for machine in world.machines.values() if machine.spec.shard == shard]
        listed = tuple(_instance(world, machine) for machine in here if world.is_listed(machine))
        return Inventory(shard, listed, instances_seen=len(listed))

    def details(self, refs: Sequence[ResourceRef]) -> Mapping[ResourceRef, InstanceDetail]:
        """These machines anew, with disks, copies, addresses and protections; gone ones are absent."""
        world = self._current()
        machines = (world.machines.get(ref.native_id) for ref in refs)
        listed = (machine for machine in machines if machine is not None and world.is_listed(machine))
        return {machine.spec.ref: _detail(world, machine) for machine in listed}


class WorldSignals(_OverWorld):
    """`SignalSource` over a world; undisturbed hours cost one hash, not sixty samples."""

    def read(self, instances: Sequence[Instance], since: datetime, until: datetime) -> SignalReport:
        """Hourly histories of every series that has a sample in the time asked for."""
        world = self._current()
        until = min(until, world.now)
        readings = {}
        for instance in instances:
            machine = world.machines[instance.ref.native_id]
            seen = (sensor for sensor in sensors_of(machine) if sensor.has_samples(since, until))
            histories = tuple(_history(sensor, since, until) for sensor in seen)
            readings[instance.ref] = SignalReading(histories, DOCUMENTED_DELAY)
        return SignalReport(readings)


class WorldPrices:
    """`PriceSource` over a world: what its machines quote."""

    def __init__(self, world: World, currency: str = "USD") -> None:
        self._world = world
        self._currency = currency

    def rates(self, instances: Sequence[Instance]) -> Mapping[ResourceRef, HourlyRate]:
        """The quoted price an hour; machines without one are absent."""
        found = {}
        for instance in instances:
            spec = self._world.machines[instance.ref.native_id].spec
            if spec.hourly is not None:
                money = spec.hourly.times(SPOT_SHARE) if spec.billing is Billing.SPOT else spec.hourly
                found[instance.ref] = HourlyRate(money, "world", self._world.now.date().isoformat())
        return found

    def kept_hourly(self, detail: InstanceDetail) -> Sequence[tuple[str, Money | None]]:
        """Every disk and kept address goes on billing after a stop."""
        disks = [("volume", self._monthly(volume, DISK_GIB_MONTH)) for volume in detail.volumes]
        addresses = [("public_address", Money(ADDRESS_HOUR, self._currency)) for _ in detail.kept_addresses]
        return [*disks, *addresses]

    def snapshot_hourly(self, volume: Volume) -> Money | None:
        """A full copy, an hour."""
        return self._monthly(volume, SNAPSHOT_GIB_MONTH)

    def _monthly(self, volume: Volume, gib_month: Decimal) -> Money:
        return Money(Decimal(str(volume.size_gib)) * gib_month / HOURS_PER_MONTH, self._currency)


class WorldExecutor(_OverWorld):
    """`ActionExecutor` over a world."""

    def __init__(self, world: World, clock: MovingTime) -> None:
        super().__init__(world, clock)
        self._requests = 0

    def execute(self, action: Action) -> Receipt:
        """Do it in the world; it is accepted, not done.

        Raises:
            NotFoundError: no such machine or volume.
            RefusedError: the cloud refused; nothing changed.
        """
        world = self._current()
        native_id = action.resource.native_id
        self._requests += 1
        request_id = f"request-{self._requests}"
        try:
            if action.verb is Verb.STOP:
                world.stop(native_id, "costguard")
            elif action.verb is Verb.START:
                world.start(native_id, "costguard")
            elif action.verb is Verb.TERMINATE:
                world.terminate(native_id, "costguard")
            elif action.verb is Verb.SNAPSHOT:
                snapshot = world.create_snapshot(native_id, "costguard", decision_id=action.decision_id)
                return Receipt(request_id, snapshot.native_id)
            elif action.verb is Verb.WARN:
                raise RefusedError("a warning is a notice, not a call", operation="world:warn")
            else:
                assert_never(action.verb)
        except WorldRefusalError as err:
            kind = NotFoundError if err.refusal is Refusal.NOT_FOUND else RefusedError
            raise kind(str(err), operation=f"world:{action.verb.value}", code=err.refusal.value) from err
        return Receipt(request_id)


def _instance(world: World, machine: Machine) -> Instance:
    spec = machine.spec
    kept = bool(world.addresses_of(machine.native_id))
    return Instance(
        ref=spec.ref,
        instance_type=spec.instance_type,
        accelerator=spec.accelerator,
        state=machine.state,
        billing=spec.billing,
        run_epoch=machine.launched_at.isoformat(),
        launched_at=machine.launched_at,
        name=spec.name,
        zone=spec.zone,
        created_at=spec.launched_at,
        stopped_at=machine.stop_requested_at if machine.state is InstanceState.STOPPED else None,
        tags=dict(machine.tags),
        managed_by=spec.managed_by,
        cannot_stop="one_time_spot" if spec.one_time_spot else "",
        local_disk_gib=spec.local_disk_gib,
        public_ip_is_kept=kept,
    )


def _detail(world: World, machine: Machine) -> InstanceDetail:
    ref = machine.spec.ref
    volumes = world.volumes_of(machine.native_id)
    attached = {volume.native_id for volume in volumes}
    return InstanceDetail(
        instance=_instance(world, machine),
        volumes=tuple(
            Volume(
                ref=ref.sibling("volume", volume.native_id),
                size_gib=float(volume.disk.size_gib),
                volume_type=volume.disk.volume_type,
                device=volume.disk.device,
                deleted_with_instance=volume.disk.deleted_with_instance,
            )
            for volume in volumes
        ),
        snapshots=tuple(_snapshots(world, ref, attached)),
        kept_addresses=tuple(
            ref.sibling("public_address", address.native_id) for address in world.addresses_of(machine.native_id)
        ),
        protected_by=tuple(sorted(machine.protections)),
    )


def _snapshots(world: World, ref: ResourceRef, volumes: set[str]) -> Iterable[Snapshot]:
    for copy in world.snapshots.values():
        if copy.volume in volumes:
            yield Snapshot(
                ref=ref.sibling("snapshot", copy.native_id),
                volume=ref.sibling("volume", copy.volume),
                state=copy.state,
                started_at=copy.started_at,
                decision_id=copy.decision_id,
            )


def _history(sensor: Sensor, since: datetime, until: datetime) -> SignalHistory:
    start = floor_hour(since)
    maxima, samples = array("d"), array("q")
    for hour in range(int(start.timestamp()), int(until.timestamp()), HOUR_SECONDS):
        peak, count = sensor.peak(hour, hour + HOUR_SECONDS, until)
        maxima.append(nan if peak is None else peak)
        samples.append(count)
    return SignalHistory(sensor.signal, sensor.device, start, maxima, samples, "world")
