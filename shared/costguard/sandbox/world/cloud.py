"""The clouds as a state machine in time: machines, disks, copies and addresses, and all that ever happened to them.

Everything that happens goes through here, whoever asks: a wire, a port, or an owner in a story. Calls take
effect at the time of the last `tick`; what takes time (a stop, a snapshot) completes in a later `tick`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from costguard.domain.actions import Verb
from costguard.domain.resources import InstanceState, SnapshotState
from costguard.sandbox.world.fleet import MachineSpec, made_up_id
from costguard.sandbox.world.records import (
    Happening,
    Machine,
    Refusal,
    WorldAddress,
    WorldRefusalError,
    WorldSnapshot,
    WorldVolume,
)
from costguard.sandbox.world.workload import Load

START_TAKES = timedelta(seconds=30)
STOP_TAKES = timedelta(seconds=60)
TERMINATE_TAKES = timedelta(seconds=45)
SNAPSHOT_TAKES_AT_LEAST = timedelta(minutes=2)
SNAPSHOT_GIB_PER_MINUTE = 10  # 100 GiB in 12 minutes, 2 TiB in three and a half hours
TERMINATED_SHOWN_FOR = timedelta(hours=1)  # EC2 lists a terminated instance for about an hour


_RUNS = (InstanceState.PENDING, InstanceState.RUNNING)
_NEXT = {
    InstanceState.PENDING: (InstanceState.RUNNING, "running"),
    InstanceState.STOPPING: (InstanceState.STOPPED, "stopped"),
    InstanceState.TERMINATING: (InstanceState.TERMINATED, "terminated"),
}


class World:
    """All clouds of one story. Not thread-safe: whoever serves threads puts a lock before it."""

    def __init__(self, fleet: Iterable[MachineSpec], now: datetime) -> None:
        self.now = now
        self.fleet = tuple(fleet)
        self.machines: dict[str, Machine] = {}
        self.volumes: dict[str, WorldVolume] = {}
        self.snapshots: dict[str, WorldSnapshot] = {}
        self.addresses: dict[str, WorldAddress] = {}
        self.history: list[Happening] = []
        self.revision = 0  # grows with every change, so that a wire knows when to look again
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
        while True:
            due = [(machine.changes_at, machine.native_id) for machine in self.machines.values() if machine.changes_at]
            copying = (copy for copy in self.snapshots.values() if copy.state is SnapshotState.PENDING)
            due += [(copy.completes_at, copy.native_id) for copy in copying]
            if not due or min(due)[0] > now:
                break
            at, native_id = min(due)
            self.now = at
            self._complete(native_id)
        self.now = now

    def stop(self, native_id: str, by: str) -> None:
        """Ask a machine to stop; one already stopped stays so.

        Raises:
            WorldRefusalError: NOT_FOUND, WRONG_STATE, CANNOT_STOP (one-time Spot) or STOP_PROTECTED.
        """
        machine = self._checked(Verb.STOP, native_id)
        if machine.state is InstanceState.RUNNING:
            self._end_run(machine)
            self._move(machine, InstanceState.STOPPING, STOP_TAKES)
            machine.stop_requested_at = self.now
            self._record(by, "stop", native_id, native_id)

    def start(self, native_id: str, by: str) -> None:
        """Start a stopped machine: a new run begins.

        Raises:
            WorldRefusalError: NOT_FOUND, WRONG_STATE or NO_CAPACITY.
        """
        machine = self._checked(Verb.START, native_id)
        if machine.state is InstanceState.STOPPED:
            machine.launched_at = self.now
            machine.runs.append((self.now, None))
            machine.stop_requested_at = None
            self._move(machine, InstanceState.PENDING, START_TAKES)
            self._record(by, "start", native_id, native_id)

    def terminate(self, native_id: str, by: str) -> None:
        """End a machine for good; one already ended stays so.

        Raises:
            WorldRefusalError: NOT_FOUND or TERMINATION_PROTECTED.
        """
        machine = self._checked(Verb.TERMINATE, native_id)
        if machine.state not in (InstanceState.TERMINATING, InstanceState.TERMINATED):
            self._end_run(machine)
            self._move(machine, InstanceState.TERMINATING, TERMINATE_TAKES)
            machine.terminate_requested_at = self.now
            self._record(by, "terminate", native_id, native_id)

    def create_snapshot(
        self,
        volume_id: str,
        by: str,
        *,
        decision_id: str = "",
        tags: Mapping[str, str] | None = None,
        description: str = "",
    ) -> WorldSnapshot:
        """Begin a copy of one volume; it is pending for minutes to hours, by size.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        volume = self.volumes.get(volume_id)
        if volume is None or volume.deleted_at is not None:
            raise WorldRefusalError(Refusal.NOT_FOUND, volume_id)
        cloud = self._cloud_of(volume.native_id)
        native_id = made_up_id(cloud, "snapshot", volume_id, str(len(self.snapshots)))
        takes = SNAPSHOT_TAKES_AT_LEAST + timedelta(minutes=volume.disk.size_gib / SNAPSHOT_GIB_PER_MINUTE)
        snapshot = WorldSnapshot(
            native_id=native_id,
            volume=volume_id,
            machine=volume.machine,
            size_gib=volume.disk.size_gib,
            started_at=self.now,
            completes_at=self.now + takes,
            state=SnapshotState.PENDING,
            fails=volume.disk.snapshots_fail,
            decision_id=decision_id,
            tags=dict(tags or {}),
            description=description,
        )
        self.snapshots[native_id] = snapshot
        self._record(by, "create_snapshot", native_id, volume.machine)
        return snapshot

    def tag(self, native_id: str, key: str, value: str, by: str) -> None:
        """Set one tag of a machine, volume or snapshot.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        self._tags_of(native_id)[key] = value
        self._record(by, f"tag {key}={value}", native_id, native_id)

    def untag(self, native_id: str, key: str, by: str) -> None:
        """Remove one tag; one that is not there is no error.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        self._tags_of(native_id).pop(key, None)
        self._record(by, f"untag {key}", native_id, native_id)

    def protect(self, native_id: str, protection: str, by: str, *, on: bool = True) -> None:
        """Set or lift one of the cloud's own protections.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        machine = self._machine(native_id)
        if on:
            machine.protections.add(protection)
        else:
            machine.protections.discard(protection)
        self._record(by, f"{'protect' if on else 'unprotect'} {protection}", native_id, native_id)

    def work(self, native_id: str, load: Load, by: str = "owner") -> None:
        """From now on the machine does this; what its sensors said before stays as it was."""
        machine = self._machine(native_id)
        machine.workload = machine.workload.then(self.now, load)
        self._record(by, f"work at {load.gpu_percent:.0f} % GPU", native_id, native_id)

    def refusal(self, verb: Verb, native_id: str) -> Refusal | None:
        """Why the cloud would refuse this now; None when it would not. Changes nothing."""
        machine = self.machines.get(native_id)
        if machine is None or not self.is_listed(machine):
            return Refusal.NOT_FOUND
        if verb is Verb.TERMINATE:
            protected = "termination_protection" in machine.protections
            return Refusal.TERMINATION_PROTECTED if protected else None
        ended = machine.state in (InstanceState.TERMINATING, InstanceState.TERMINATED)
        if verb is Verb.START:
            if ended or machine.state is InstanceState.STOPPING:
                return Refusal.WRONG_STATE
            short = machine.spec.no_capacity and machine.state is InstanceState.STOPPED
            return Refusal.NO_CAPACITY if short else None
        if ended or machine.state is InstanceState.PENDING:
            return Refusal.WRONG_STATE
        if machine.spec.one_time_spot:
            return Refusal.CANNOT_STOP
        return Refusal.STOP_PROTECTED if "stop_protection" in machine.protections else None

    def is_listed(self, machine: Machine) -> bool:
        """Whether the cloud still shows the machine: terminated ones fade after an hour."""
        return machine.terminated_at is None or self.now - machine.terminated_at < TERMINATED_SHOWN_FOR

    def volumes_of(self, native_id: str) -> Sequence[WorldVolume]:
        """The disks attached to a machine now."""
        attached = (volume for volume in self.volumes.values() if volume.machine == native_id)
        return [volume for volume in attached if volume.deleted_at is None]

    def addresses_of(self, native_id: str) -> Sequence[WorldAddress]:
        """The kept public addresses that point at a machine now."""
        return [address for address in self.addresses.values() if address.machine == native_id]

    def _place(self, spec: MachineSpec) -> None:
        ended = spec.launched_at if spec.state in _RUNS else (spec.stopped_since or self.now)
        self.machines[spec.native_id] = Machine(
            spec=spec,
            state=spec.state,
            launched_at=spec.launched_at,
            workload=spec.workload,
            tags=dict(spec.tags),
            protections=set(spec.protections),
            runs=[(spec.launched_at, None if spec.state in _RUNS else ended)],
            stop_requested_at=ended if spec.state is InstanceState.STOPPED else None,
        )
        for disk in spec.disks:
            volume_id = made_up_id(spec.cloud, "volume", spec.native_id, disk.device)
            self.volumes[volume_id] = WorldVolume(volume_id, disk, spec.native_id)
        if spec.kept_address:
            address_id = made_up_id(spec.cloud, "address", spec.native_id)
            self.addresses[address_id] = WorldAddress(address_id, spec.native_id)

    def _checked(self, verb: Verb, native_id: str) -> Machine:
        refusal = self.refusal(verb, native_id)
        if refusal is not None:
            raise WorldRefusalError(refusal, native_id)
        return self.machines[native_id]

    def _machine(self, native_id: str) -> Machine:
        if native_id not in self.machines:
            raise WorldRefusalError(Refusal.NOT_FOUND, native_id)
        return self.machines[native_id]

    def _tags_of(self, native_id: str) -> dict[str, str]:
        found = self.machines.get(native_id) or self.volumes.get(native_id) or self.snapshots.get(native_id)
        if found is None:
            raise WorldRefusalError(Refusal.NOT_FOUND, native_id)
        return found.tags

    def _cloud_of(self, volume_id: str) -> str:
        prefix = volume_id.split("-", 1)[0]
        return {"vol": "aws", "d": "alibaba", "disk": "tencent"}[prefix]

    def _move(self, machine: Machine, state: InstanceState, takes: timedelta) -> None:
        machine.state = state
        machine.changes_at = self.now + takes

    def _end_run(self, machine: Machine) -> None:
        started, ended = machine.runs[-1]
        machine.runs[-1] = (started, ended or self.now)

    def _complete(self, native_id: str) -> None:
        copy = self.snapshots.get(native_id)
        if copy is not None:
            copy.state = SnapshotState.FAILED if copy.fails else SnapshotState.COMPLETED
            self._record("cloud", f"snapshot_{copy.state.value}", native_id, copy.machine)
            return
        machine = self.machines[native_id]
        machine.state, what = _NEXT[machine.state]
        machine.changes_at = None
        self._record("cloud", what, native_id, native_id)
        if machine.state is InstanceState.TERMINATED:
            machine.terminated_at = self.now
            for volume in self.volumes_of(native_id):
                volume.machine = ""
                volume.deleted_at = self.now if volume.disk.deleted_with_instance else None
            for address in self.addresses_of(native_id):
                address.machine = ""

    def _record(self, by: str, what: str, native_id: str, machine: str) -> None:
        self.history.append(Happening(self.now, by, what, native_id, machine))
        self.revision += 1
