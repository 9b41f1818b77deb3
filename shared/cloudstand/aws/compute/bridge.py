"""Keeps moto showing the world.

The world is the truth. Nothing writes to moto's instances but `Bridge.refresh`, which runs before every request and
copies what changed; calls that change something go to the world (see `gaps`). One direction only, so the two
cannot disagree for longer than it takes to ask.
"""

from __future__ import annotations

from typing import Any

from moto.ec2.models import EC2Backend
from moto.ec2.models.elastic_block_store import Snapshot
from moto.ec2.models.instances import Instance, MetadataOptions, StateReason

from cloudstand.aws.core.seeding import attach_volumes, backend_of, keep_address, seed_machine
from cloudstand.clock import Clock
from cloudstand.world.cloud import World
from cloudstand.world.kinds import InstanceState, SnapshotState
from cloudstand.world.records import Machine, WorldSnapshot

STATE_CODES = {
    InstanceState.PENDING: (0, "pending"),
    InstanceState.RUNNING: (16, "running"),
    InstanceState.STOPPING: (64, "stopping"),
    InstanceState.STOPPED: (80, "stopped"),
    InstanceState.TERMINATING: (32, "shutting-down"),
    InstanceState.TERMINATED: (48, "terminated"),
}
_SNAPSHOT_STATES = {
    SnapshotState.PENDING: "pending",
    SnapshotState.COMPLETED: "completed",
    SnapshotState.FAILED: "error",
}


class TimedSnapshot(Snapshot):
    """A moto snapshot with a progress of its own; moto's always says 100 %."""

    progress_percent = 0

    @property
    def progress(self) -> str:
        """As EC2 writes it."""
        return f"{self.progress_percent}%"


class Bridge:
    """The one place where the world is copied into moto."""

    def __init__(self, world: World, clock: Clock) -> None:
        self.world = world
        self._clock = clock
        self._seen: tuple[int, int, int] | None = None
        self._instances: dict[str, Instance] = {
            machine.native_id: seed_machine(world, machine) for machine in self._machines()
        }

    def _machines(self) -> list[Machine]:
        """Those of AWS; the world may hold other clouds as well."""
        return [machine for machine in self.world.machines.values() if machine.ref.provider == "aws"]

    def refresh(self) -> None:
        """Bring the world to the clock and moto to the world; cheap when nothing changed."""
        self.world.tick(self._clock.now())
        networks = self.world.networks
        seen = (self.world.revision, id(networks), len(networks.history))
        if seen != self._seen:
            for machine in self._machines():
                self._copy(machine, self._instances[machine.native_id])
            for snapshot in self.world.snapshots.values():
                if snapshot.machine in self._instances:
                    self._copy_snapshot(snapshot)
            self._seen = seen
        for machine in self._machines():
            if not self.world.is_listed(machine):
                self._forget(machine)

    def instance(self, native_id: str) -> Instance:
        """The moto instance of a machine, for rendering."""
        return self._instances[native_id]

    def snapshot(self, snapshot: WorldSnapshot) -> Snapshot:
        """The moto snapshot of a copy, for rendering."""
        self.refresh()
        return self._backend(snapshot.machine).snapshots[snapshot.native_id]

    def _backend(self, native_id: str) -> EC2Backend:
        return backend_of(self.world.machines[native_id])

    def _copy(self, machine: Machine, instance: Instance) -> None:
        backend = backend_of(machine)
        if machine.state is InstanceState.TERMINATED and instance.state != "terminated":
            for address in [kept for kept in vars(backend)["addresses"] if kept.instance is instance]:
                backend.disassociate_address(address=address.public_ip)
            instance.terminate()
        elif machine.state is InstanceState.STOPPED and instance.state != "stopped":
            instance.stop()
        elif machine.state in (InstanceState.PENDING, InstanceState.RUNNING) and instance.state == "stopped":
            instance.start()
        instance.instance_state.code, instance.instance_state.name = STATE_CODES[machine.state]
        instance.launch_time = machine.launched_at
        instance.disable_api_termination = "termination_protection" in machine.protections
        instance.disable_api_stop = "stop_protection" in machine.protections
        backend.tags[machine.native_id] = dict(machine.tags)
        self._copy_reason(machine, instance)
        self._copy_address(machine, instance, backend)
        vars(instance)["metadata_options"] = self._metadata_options(machine)
        if machine.state is not InstanceState.TERMINATED:
            attach_volumes(backend, self.world, machine, instance)
        for volume in self.world.volumes_of(machine.native_id):
            backend.tags[volume.native_id] = dict(volume.tags)

    def _copy_address(self, machine: Machine, instance: Any, backend: EC2Backend) -> None:
        """The public address as the world has it: kept ones move between machines, and moto forgets them in a stop."""
        card, there = instance.nics[0], vars(backend)["addresses"]
        told = self.world.networks.of(machine.ref.shard).interfaces
        if told or machine.spec.public_ip or card.public_ip in {each.public_ip for each in there}:
            card.public_ip = machine.public_ip or None  # else it is one that moto lends
        for address in self.world.addresses_of(machine.native_id):
            kept = next((each for each in there if each.allocation_id == address.native_id), None)
            card.public_ip = (kept or keep_address(backend, address.native_id, machine.public_ip)).public_ip

    def _metadata_options(self, machine: Machine) -> MetadataOptions | None:
        """None, and so nothing in the answer, where the world does not say."""
        answers_all = self.world.networks.imds_v1.get(machine.ref)
        if answers_all is None:
            return None
        return MetadataOptions({"HttpTokens": "optional" if answers_all else "required"})

    def _copy_reason(self, machine: Machine, instance: Any) -> None:
        asked = machine.terminate_requested_at or machine.stop_requested_at
        if asked is None:
            instance._reason, instance.state_reason = "", StateReason()  # noqa: SLF001 - moto has no setter
            return
        instance._reason = f"User initiated ({asked:%Y-%m-%d %H:%M:%S} GMT)"  # noqa: SLF001 - moto has no setter
        instance.state_reason = StateReason(
            "Client.UserInitiatedShutdown: User initiated shutdown", "Client.UserInitiatedShutdown"
        )

    def _copy_snapshot(self, snapshot: WorldSnapshot) -> None:
        backend = self._backend(snapshot.machine)
        shown = backend.snapshots.get(snapshot.native_id)
        if shown is None:
            volume = backend.get_volume(snapshot.volume)
            shown = TimedSnapshot(backend, snapshot.native_id, volume, snapshot.description, encrypted=volume.encrypted)
            shown.start_time = snapshot.started_at
            backend.snapshots[snapshot.native_id] = shown
        shown.status = _SNAPSHOT_STATES[snapshot.state]
        if isinstance(shown, TimedSnapshot):
            shown.progress_percent = 100 if snapshot.state is SnapshotState.COMPLETED else 0
        backend.tags[snapshot.native_id] = dict(snapshot.tags)

    def _forget(self, machine: Machine) -> None:
        reservations = backend_of(machine).reservations
        for reservation_id, reservation in list(reservations.items()):
            if any(instance.id == machine.native_id for instance in reservation.instances):
                del reservations[reservation_id]
