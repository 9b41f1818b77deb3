"""What stands in a world, how to find it quickly, and how time passes over it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from heapq import heappop, heappush

from cloudstand.world.fleet import Disk, MachineSpec, made_up_address, made_up_id
from cloudstand.world.keys import Keys
from cloudstand.world.kinds import InstanceState, SnapshotState
from cloudstand.world.network.networks import Networks
from cloudstand.world.network.parts import PublicAddress
from cloudstand.world.places import Place, Ref
from cloudstand.world.records import (
    STOPPING_OPERATION,
    Happening,
    Machine,
    OtherCharge,
    Refusal,
    TrailLook,
    WorldAddress,
    WorldRefusalError,
    WorldSnapshot,
    WorldVolume,
)
from cloudstand.world.vendors import billed_when_stopped, bin_keeps, vendor_of

CLOUD = "cloud"  # who did what completed by itself
_RUNS = (InstanceState.PENDING, InstanceState.RUNNING)


class Estate:
    """Machines, disks, copies and addresses, indexed by what they belong to; and all that ever happened to them."""

    def __init__(self, fleet: Iterable[MachineSpec], now: datetime) -> None:
        self.now = now
        self.fleet: tuple[MachineSpec, ...] = tuple(fleet)
        self.machines: dict[str, Machine] = {}
        self.volumes: dict[str, WorldVolume] = {}
        self.snapshots: dict[str, WorldSnapshot] = {}
        self.addresses: dict[str, WorldAddress] = {}
        self.other_charges: list[OtherCharge] = []
        self.keys = Keys()
        self.networks = Networks()
        self.history: list[Happening] = []
        self.looks: list[TrailLook] = []
        self.revision = 0  # grows with every change, so that a wire knows when to look again
        self._due: list[tuple[datetime, str]] = []  # a heap; what was overtaken meanwhile is passed over
        self._in_shard: dict[Place, list[Machine]] = {}
        self._attached: dict[str, list[WorldVolume]] = {}
        self._copies: dict[str, list[WorldSnapshot]] = {}
        self._pointing: dict[str, list[WorldAddress]] = {}
        self._ever_attached: dict[str, list[WorldVolume]] = {}
        for spec in self.fleet:
            self._place(spec)

    def tick(self, now: datetime) -> None:
        """Let time pass to `now`; whatever was due by then happens, in order.

        Raises:
            ValueError: time would run backwards.
        """
        if now < self.now:
            message = f"the world is at {self.now.isoformat()} and cannot go back to {now.isoformat()}"
            raise ValueError(message)
        while self._due and self._due[0][0] <= now:
            at, native_id = heappop(self._due)
            machine, copy = self.machines.get(native_id), self.snapshots.get(native_id)
            if machine is not None and machine.changes_at == at:
                self.now = at
                self._complete(machine)
            elif copy is not None and copy.state is SnapshotState.PENDING:
                self.now = at
                self._end(copy)
        self.now = now
        self.keys.tick(now)

    def _end(self, copy: WorldSnapshot) -> None:
        copy.state = SnapshotState.FAILED if copy.fails else SnapshotState.COMPLETED
        self._record(CLOUD, f"snapshot_{copy.state.value}", copy.native_id, copy.machine)
        if copy.fails and copy.set_id:
            for other in self.snapshots.values():
                if other.set_id == copy.set_id and other.state is not SnapshotState.FAILED:
                    other.state = SnapshotState.FAILED
                    self._record(CLOUD, "snapshot_failed", other.native_id, other.machine)

    @property
    def networks(self) -> Networks:
        """What lies between the machines and the internet."""
        return self._networks

    @networks.setter
    def networks(self, networks: Networks) -> None:
        self._networks = networks
        networks.tell_estate = self._address_moved
        for address in networks.addresses():
            self._address_moved(address, address.bound_to)

    @property
    def shards(self) -> Collection[Place]:
        """Every region of an account in which anything ever stood."""
        return self._in_shard.keys()

    def machines_in(self, shard: Place) -> Sequence[Machine]:
        """The machines of a shard that its cloud lists now, in the order in which they came."""
        return [machine for machine in self._in_shard.get(shard, ()) if self.is_listed(machine)]

    def is_listed(self, machine: Machine) -> bool:
        """Whether the cloud still shows the machine: on AWS terminated ones fade after an hour, elsewhere at once."""
        ended = machine.terminated_at
        return ended is None or self.now - ended < machine.vendor.terminated_shown_for

    def volumes_of(self, native_id: str) -> Sequence[WorldVolume]:
        """The disks attached to a machine now."""
        return [*self._attached.get(native_id, ())]

    def volumes_ever_of(self, native_id: str) -> Sequence[WorldVolume]:
        """The disks once attached to a machine, wherever they are now."""
        return [*self._ever_attached.get(native_id, ())]

    def snapshots_of(self, volume_id: str) -> Sequence[WorldSnapshot]:
        """The copies of one volume that exist, oldest first."""
        return [*self._copies.get(volume_id, ())]

    def addresses_of(self, native_id: str) -> Sequence[WorldAddress]:
        """The kept public addresses that point at a machine now."""
        return [*self._pointing.get(native_id, ())]

    def _place(self, spec: MachineSpec) -> Machine:
        if spec.native_id in self.machines:
            message = f"there is a machine {spec.native_id} already"
            raise ValueError(message)
        runs = spec.state in _RUNS
        ended = spec.launched_at if runs else (spec.stopped_since or self.now)
        machine = Machine(
            spec=spec,
            ref=spec.ref,
            shard=spec.shard,
            vendor=vendor_of(spec.cloud),
            state=spec.state,
            launched_at=spec.launched_at,
            workload=spec.workload,
            tags=dict(spec.tags),
            protections=set(spec.protections),
            runs=[(spec.launched_at, None if runs else ended)],
            public_ip=spec.public_ip,
            stop_requested_at=ended if spec.state is InstanceState.STOPPED else None,
            local_disk_is_empty=not runs,
            latest_operation="RunInstances" if runs else STOPPING_OPERATION,
        )
        self.machines[spec.native_id] = machine
        self._in_shard.setdefault(machine.shard, []).append(machine)
        for disk in spec.disks:
            volume_id = made_up_id(spec.cloud, "volume", spec.native_id, disk.device)
            self._attach(machine, disk, volume_id, spec.launched_at)
        if spec.kept_address:
            address_id = made_up_id(spec.cloud, "address", spec.native_id)
            address = WorldAddress(address_id, spec.native_id)
            self.addresses[address_id] = address
            self._pointing[spec.native_id] = [address]
        return machine

    def _attach(self, machine: Machine, disk: Disk, volume_id: str, created_at: datetime) -> None:
        volume = WorldVolume(
            native_id=volume_id,
            disk=disk,
            machine=machine.native_id,
            snapshots_fail=disk.snapshots_fail,
            cloud=machine.spec.cloud,
            created_at=created_at,
        )
        self.volumes[volume_id] = volume
        self._ever_attached.setdefault(machine.native_id, []).append(volume)
        self._attached.setdefault(machine.native_id, []).append(volume)

    def _machine(self, native_id: str) -> Machine:
        machine = self.machines.get(native_id)
        if machine is None:
            raise WorldRefusalError(Refusal.NOT_FOUND, native_id)
        return machine

    def _volume(self, volume_id: str) -> WorldVolume:
        volume = self.volumes.get(volume_id)
        if volume is None or volume.deleted_at is not None:
            raise WorldRefusalError(Refusal.NOT_FOUND, volume_id)
        return volume

    def _move(self, machine: Machine, state: InstanceState, takes: timedelta) -> None:
        machine.state = state
        machine.changes_at = self.now + takes
        heappush(self._due, (machine.changes_at, machine.native_id))

    def _complete(self, machine: Machine) -> None:
        machine.changes_at = None
        state, native_id = machine.state, machine.native_id
        if state is InstanceState.PENDING:
            machine.state = InstanceState.RUNNING
            self._record(CLOUD, "running", native_id, native_id)
        elif state is InstanceState.STOPPING:
            machine.state = InstanceState.STOPPED
            self._record(CLOUD, "stopped", native_id, native_id)
            self._lose_local_disk(machine)
            if billed_when_stopped(machine.spec):
                self._record(CLOUD, "billed_while_stopped", native_id, native_id)
            else:
                self._release_public_ip(machine)
        elif state is InstanceState.UNKNOWN:
            self._destroy(machine, CLOUD, "destroyed")  # the recycle bin was emptied
        else:
            kept_for = bin_keeps(machine.spec)
            if kept_for is None:
                self._destroy(machine, CLOUD, "terminated")
            else:
                machine.recycled_at = self.now
                self._move(machine, InstanceState.UNKNOWN, kept_for)
                self._record(CLOUD, "recycled", native_id, native_id)
                self._lose_local_disk(machine)

    def _destroy(self, machine: Machine, by: str, what: str) -> None:
        """The machine is gone for good, with the disks that go with it; others and addresses stay, and bill."""
        machine.state = InstanceState.TERMINATED
        machine.changes_at = None
        machine.terminated_at = self.now
        self._record(by, what, machine.native_id, machine.native_id)
        self._lose_local_disk(machine)
        for volume in self._attached.pop(machine.native_id, ()):
            volume.machine = ""
            volume.deleted_at = self.now if volume.disk.deleted_with_instance else None
        self._release_public_ip(machine)
        for address in self._pointing.pop(machine.native_id, ()):
            address.machine = ""
        self._networks.instance_gone(machine.ref)

    def _end_run(self, machine: Machine) -> None:
        started, ended = machine.runs[-1]
        machine.runs[-1] = (started, ended or self.now)

    def _lose_local_disk(self, machine: Machine) -> None:
        """What local disks held is gone with the run; a size that the cloud does not tell counts as some."""
        size = machine.spec.local_disk_gib
        if machine.local_disk_is_empty or (size is not None and size <= 0):
            return
        machine.local_disk_is_empty = True
        self._record(CLOUD, "local_disk_lost", machine.native_id, machine.native_id)

    def _release_public_ip(self, machine: Machine) -> None:
        if machine.public_ip and not self._pointing.get(machine.native_id):
            machine.public_ip = None if machine.vendor.drops_ip_at_once else ""
            self._networks.public_ip_changed(machine.ref, "")
            self._record(CLOUD, "public_ip_released", machine.native_id, machine.native_id)

    def _address_moved(self, address: PublicAddress, to: Ref | None) -> None:
        """A kept address was taken off a machine or bound to one: both sides say so."""
        native_id = address.ref.native_id
        kept = self.addresses.get(native_id)
        before = self.machines.get(kept.machine) if kept is not None else None
        if kept is not None and before is not None:
            self._pointing[before.native_id].remove(kept)
            kept.machine = ""
            before.public_ip = None if before.vendor.drops_ip_at_once else ""
        if all(each.ref != address.ref for each in self._networks.of(address.ref.shard).addresses):
            self.addresses.pop(native_id, None)  # released
            return
        machine = self.machines.get(to.native_id) if to is not None else None
        if machine is not None:
            kept = self.addresses.setdefault(native_id, WorldAddress(native_id, ""))
            kept.machine = machine.native_id
            self._pointing.setdefault(machine.native_id, []).append(kept)
            machine.public_ip = address.ip

    def _operate(self, machine: Machine, operation: str) -> None:
        machine.operations += 1
        machine.latest_operation = operation

    def _begin_run(self, machine: Machine) -> None:
        self._operate(machine, "StartInstances")
        machine.launched_at = self.now
        machine.runs.append((self.now, None))
        machine.stop_requested_at = None
        machine.local_disk_is_empty = False
        if machine.spec.public_ip and not machine.public_ip:  # another one than before
            machine.public_ip = made_up_address(machine.native_id, str(machine.operations))
            self._networks.public_ip_changed(machine.ref, machine.public_ip)

    def _record(self, by: str, what: str, native_id: str, machine: str) -> None:
        self.history.append(Happening(self.now, by, what, native_id, machine))
        self.revision += 1
