"""From an element of DescribeInstances to an `Instance`: pure, apart from any request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Accelerator, Billing, Instance, InstanceState
from costguard.providers.aws.managed import keeper_of

ONE_TIME_SPOT = "one_time_spot"
INSTANCE_STORE_ROOT = "instance_store_root"

_STATES = {
    "pending": InstanceState.PENDING,
    "running": InstanceState.RUNNING,
    "shutting-down": InstanceState.TERMINATING,
    "terminated": InstanceState.TERMINATED,
    "stopping": InstanceState.STOPPING,
    "stopped": InstanceState.STOPPED,
}
_LIFECYCLES = {
    "spot": Billing.SPOT,
    "scheduled": Billing.RESERVED,
    "capacity-block": Billing.RESERVED,
    "interruptible-capacity-reservation": Billing.RESERVED,
}
# AWS writes: User initiated (2026-01-02 03:04:05 GMT)
_STOPPED_AT = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)", re.ASCII)


def to_instance(
    shard: Shard, described: Mapping[str, Any], accelerator: Accelerator, local_disk_gib: float | None
) -> Instance:
    """One instance as DescribeInstances saw it.

    A Spot instance counts as one-time until its request has been read, an on-demand one as not reserved
    until the account's Reserved Instances have: see `commitments.py`.
    """
    tags = {str(tag["Key"]): str(tag.get("Value", "")) for tag in described.get("Tags") or ()}
    launched_at = described.get("LaunchTime")
    state = _STATES.get((described.get("State") or {}).get("Name", ""), InstanceState.UNKNOWN)
    placement = described.get("Placement") or {}
    billing = _billing(described, placement)
    public_ip, kept = _public_ip(described)
    return Instance(
        ref=ResourceRef(shard.cloud, shard.account, shard.region, "instance", described["InstanceId"]),
        instance_type=str(described.get("InstanceType", "")),
        accelerator=accelerator,
        state=state,
        billing=billing,
        run_epoch="" if launched_at is None else launched_at.isoformat(),
        launched_at=launched_at,
        name=tags.get("Name", ""),
        zone=str(placement.get("AvailabilityZone", "")),
        created_at=_created_at(described),
        stopped_at=_stopped_at(described) if state is InstanceState.STOPPED else None,
        tags=tags,
        managed_by=keeper_of(tags, described.get("Operator")),
        cannot_stop=_cannot_stop(described, billing),
        local_disk_gib=local_disk_gib,
        public_ip=public_ip,
        public_ip_is_kept=kept,
        operating_system="windows" if "windows" in str(described.get("PlatformDetails", "")).lower() else "linux",
        tenancy=str(placement.get("Tenancy") or "default"),
    )


def volume_ids(described: Mapping[str, Any]) -> Iterator[str]:
    """The volumes that DescribeInstances says are attached."""
    for mapping in described.get("BlockDeviceMappings") or ():
        volume = (mapping.get("Ebs") or {}).get("VolumeId")
        if volume:
            yield volume


def volumes_deleted_with(described: Mapping[str, Any]) -> frozenset[str]:
    """Those of its volumes that go when the instance is terminated."""
    disks = [mapping.get("Ebs") or {} for mapping in described.get("BlockDeviceMappings") or ()]
    return frozenset(disk["VolumeId"] for disk in disks if disk.get("VolumeId") and disk.get("DeleteOnTermination"))


def _billing(described: Mapping[str, Any], placement: Mapping[str, Any]) -> Billing:
    lifecycle = described.get("InstanceLifecycle")
    if lifecycle:
        return _LIFECYCLES.get(lifecycle, Billing.UNKNOWN)
    committed = (
        described.get("CapacityReservationId")
        or described.get("CapacityBlockId")
        or placement.get("HostId")
        or placement.get("Tenancy") == "host"
    )
    return Billing.RESERVED if committed else Billing.ON_DEMAND


def _cannot_stop(described: Mapping[str, Any], billing: Billing) -> str:
    if described.get("RootDeviceType") == "instance-store":
        return INSTANCE_STORE_ROOT
    return ONE_TIME_SPOT if billing is Billing.SPOT else ""


def _created_at(described: Mapping[str, Any]) -> datetime | None:
    """When the first network interface was attached: at creation, for good (LaunchTime moves with each start)."""
    for interface in described.get("NetworkInterfaces") or ():
        attachment = interface.get("Attachment") or {}
        if attachment.get("DeviceIndex") == 0:
            attached_at: datetime | None = attachment.get("AttachTime")
            return attached_at
    return None


def _stopped_at(described: Mapping[str, Any]) -> datetime | None:
    found = _STOPPED_AT.search(str(described.get("StateTransitionReason", "")))
    if found is None:
        return None
    try:
        moment = datetime.strptime(found[1] + "+0000", "%Y-%m-%d %H:%M:%S%z")
    except ValueError:
        return None
    return moment.astimezone(timezone.utc)


def _public_ip(described: Mapping[str, Any]) -> tuple[str, bool]:
    """The public address, and whether it outlives a stop: Elastic IPs are not owned by `amazon`."""
    address = str(described.get("PublicIpAddress") or "")
    for interface in described.get("NetworkInterfaces") or ():
        association = interface.get("Association") or {}
        if address and association.get("PublicIp") == address:
            return address, association.get("IpOwnerId", "amazon") != "amazon"
    return address, False
