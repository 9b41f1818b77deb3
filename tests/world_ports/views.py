"""Machines of a world as the ports show them."""

from __future__ import annotations

from tests.world_ports.translate import to_product

from cloudstand.world.cloud import World
from cloudstand.world.kinds import InstanceState
from cloudstand.world.records import Machine
from cloudstand.world.vendors import told_time
from costguard.domain import resources
from costguard.domain.resources import Instance, InstanceDetail, Snapshot, Volume

_PROTECTIONS = ("termination_protection", "stop_protection")


def instance_of(world: World, machine: Machine) -> Instance:
    """What DescribeInstances tells of a machine, in neutral words."""
    spec, vendor = machine.spec, machine.vendor
    told_stop = vendor.tells_stop_time and machine.state is InstanceState.STOPPED
    return Instance(
        ref=to_product(machine.ref),
        instance_type=spec.instance_type,
        accelerator=to_product(spec.accelerator),
        state=resources.InstanceState(machine.state.value),
        billing=resources.Billing(spec.billing.value),
        run_epoch=machine.run_epoch,
        launched_at=told_time(vendor, machine.launched_at if vendor.epoch is not None else spec.launched_at),
        name=spec.name,
        zone=spec.zone,
        created_at=told_time(vendor, spec.launched_at),
        stopped_at=machine.stop_requested_at if told_stop else None,
        tags=dict(machine.tags),
        managed_by=to_product(spec.managed_by),
        cannot_stop="one_time_spot" if spec.one_time_spot else "",
        local_disk_gib=spec.local_disk_gib,
        public_ip=machine.public_ip or "",
        public_ip_is_kept=bool(world.addresses_of(machine.native_id)),
        protected_by=_protections(machine) if vendor.lists_protection and machine.protections else (),
        billed_while_stopped=machine.billed_while_stopped,
        stopped_by=machine.stopped_by,
        paid_until=told_time(vendor, spec.prepaid_until) if spec.prepaid_until is not None else None,
        imds_v1=world.networks.imds_v1.get(machine.ref),
        resource_group=spec.resource_group or ("0" if machine.ref.provider == "tencent" else ""),  # its default project
    )


def detail_of(world: World, machine: Machine) -> InstanceDetail:
    """What the closer read tells: disks, their copies, kept addresses, protections."""
    ref, volumes, snapshots = to_product(machine.ref), [], []
    for volume in world.volumes_of(machine.native_id):
        volume_ref = ref.sibling("volume", volume.native_id)
        volumes.append(
            Volume(
                ref=volume_ref,
                size_gib=float(volume.disk.size_gib),
                volume_type=volume.disk.volume_type,
                device=volume.disk.device,
                deleted_with_instance=volume.disk.deleted_with_instance,
            )
        )
        for copy in world.snapshots_of(volume.native_id):
            snapshots.append(  # noqa: PERF401 - two lists grow in one loop
                Snapshot(
                    ref=ref.sibling("snapshot", copy.native_id),
                    volume=volume_ref,
                    state=resources.SnapshotState(copy.state.value),
                    started_at=copy.started_at,
                    decision_id=copy.decision_id,
                )
            )
    addresses = world.addresses_of(machine.native_id)
    gone = machine.state is InstanceState.TERMINATED
    return InstanceDetail(
        instance=instance_of(world, machine),
        volumes=tuple(volumes),
        snapshots=tuple(snapshots),
        kept_addresses=tuple(ref.sibling("public_address", address.native_id) for address in addresses),
        protected_by=_protections(machine) if machine.vendor.lists_protection else (),
        copied_together=1 < len(volumes) <= machine.vendor.copied_at_once,
        unread_protections=() if machine.vendor.lists_protection or gone else _PROTECTIONS,
    )


def _protections(machine: Machine) -> tuple[str, ...]:
    return tuple(sorted(machine.protections))
