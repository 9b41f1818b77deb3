"""Disks come and go, and are copied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from heapq import heappush

from cloudstand.world.conditions import Conditions
from cloudstand.world.fleet import Disk, MachineSpec, made_up_id
from cloudstand.world.kinds import InstanceState, SnapshotState
from cloudstand.world.records import ENDED, Refusal, WorldRefusalError, WorldSnapshot
from cloudstand.world.vendors import vendor_of

SNAPSHOT_TAKES_AT_LEAST = timedelta(minutes=2)
SNAPSHOT_GIB_PER_MINUTE = 10  # 100 GiB in 12 minutes, 2 TiB in three and a half hours


class Storage(Conditions):
    """An estate whose disks can be changed and copied."""

    def __init__(self, fleet: Iterable[MachineSpec], now: datetime) -> None:
        super().__init__(fleet, now)
        self._made = 0

    def attach(self, native_id: str, disk: Disk, by: str) -> str:
        """Make a new disk and attach it; returns its id.

        Raises:
            WorldRefusalError: NOT_FOUND or WRONG_STATE.
        """
        machine = self._machine(native_id)
        if machine.state in ENDED:
            raise WorldRefusalError(Refusal.WRONG_STATE, native_id)
        volume_id = made_up_id(machine.spec.cloud, "volume", native_id, disk.device, str(len(self.volumes)))
        self._attach(machine, disk, volume_id, self.now)
        self._record(by, "attach", volume_id, native_id)
        return volume_id

    def detach(self, volume_id: str, by: str) -> None:
        """Take a disk off its machine; it stays, and bills. The first disk only comes off a stopped machine.

        Raises:
            WorldRefusalError: NOT_FOUND or WRONG_STATE.
        """
        volume = self._volume(volume_id)
        if not volume.machine:
            raise WorldRefusalError(Refusal.WRONG_STATE, volume_id)
        machine = self.machines[volume.machine]
        root = bool(machine.spec.disks) and volume.disk is machine.spec.disks[0]
        if root and machine.state is not InstanceState.STOPPED:
            raise WorldRefusalError(Refusal.WRONG_STATE, volume_id)
        self._attached[volume.machine].remove(volume)
        volume.machine = ""
        self._record(by, "detach", volume_id, machine.native_id)

    def create_snapshot(
        self,
        volume_id: str,
        by: str,
        *,
        decision_id: str = "",
        tags: Mapping[str, str] | None = None,
        description: str = "",
        set_id: str = "",
    ) -> WorldSnapshot:
        """Begin a copy of one volume; it is pending for minutes to hours, by size.

        Raises:
            WorldRefusalError: NOT_FOUND, or COPY_UNDER_WAY on Alibaba and Tencent.
        """
        volume = self._volume(volume_id)
        copies = self._copies.setdefault(volume_id, [])
        pending = any(copy.state is SnapshotState.PENDING for copy in copies)
        if pending and vendor_of(volume.cloud).one_copy_at_a_time:
            raise WorldRefusalError(Refusal.COPY_UNDER_WAY, volume_id)
        native_id = made_up_id(volume.cloud, "snapshot", volume_id, str(self._made))
        self._made += 1
        takes = volume.disk.snapshot_takes
        if takes is None:
            takes = SNAPSHOT_TAKES_AT_LEAST + timedelta(minutes=volume.disk.size_gib / SNAPSHOT_GIB_PER_MINUTE)
        snapshot = WorldSnapshot(
            native_id=native_id,
            volume=volume_id,
            machine=volume.machine,
            size_gib=volume.disk.size_gib,
            started_at=self.now,
            completes_at=self.now + takes,
            state=SnapshotState.PENDING,
            fails=volume.snapshots_fail,
            decision_id=decision_id,
            tags=dict(tags or {}),
            description=description,
            set_id=set_id,
        )
        self.snapshots[native_id] = snapshot
        copies.append(snapshot)
        heappush(self._due, (snapshot.completes_at, native_id))
        self._record(by, "create_snapshot", native_id, volume.machine)
        return snapshot

    def create_snapshots(
        self,
        native_id: str,
        by: str,
        *,
        decision_id: str = "",
        tags: Mapping[str, Mapping[str, str]] | None = None,
        description: str = "",
    ) -> list[WorldSnapshot]:
        """Begin copies of the attached disks of a machine, all as they are now.

        `tags` are those of the copy by its volume: only those named are copied. None means all of them.

        Raises:
            WorldRefusalError: NOT_FOUND; WRONG_STATE of a machine that is gone, or on a cloud without such a call.
        """
        machine = self._machine(native_id)
        volumes = self.volumes_of(native_id)
        if machine.state in ENDED or len(volumes) > vendor_of(machine.spec.cloud).copied_at_once:
            raise WorldRefusalError(Refusal.WRONG_STATE, native_id)
        wanted = {volume.native_id: dict[str, str]() for volume in volumes} if tags is None else tags
        set_id = f"set-{native_id}-{self._made}"
        return [
            self.create_snapshot(
                volume.native_id,
                by,
                decision_id=decision_id,
                tags=wanted[volume.native_id],
                description=description,
                set_id=set_id,
            )
            for volume in volumes
            if volume.native_id in wanted
        ]

    def delete_snapshot(self, snapshot_id: str, by: str) -> None:
        """Remove a copy, pending or not.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        snapshot = self.snapshots.pop(snapshot_id, None)
        if snapshot is None:
            raise WorldRefusalError(Refusal.NOT_FOUND, snapshot_id)
        self._copies[snapshot.volume].remove(snapshot)
        self._record(by, "delete_snapshot", snapshot_id, snapshot.machine)
