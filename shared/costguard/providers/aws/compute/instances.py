"""From an element of DescribeInstances to an `Instance`: pure, apart from any request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Accelerator, Billing, Instance, InstanceState
from costguard.providers.aws.compute.managed import keeper_of
from costguard.providers.kit.core.fields import flag, moment, named, part, parts, tags_of, text

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

    Raises:
        TypeError, ValueError: a field is not of its documented type: see `kit/core/fields.py`.
    """
    tags = tags_of(described)
    launched_at = moment(described, "LaunchTime")
    state = _STATES.get(text(part(described, "State"), "Name"), InstanceState.UNKNOWN)
    placement = part(described, "Placement")
    billing = _billing(described, placement)
    public_ip, kept = _public_ip(described)
    return Instance(
        ref=ResourceRef(shard.cloud, shard.account, shard.region, "instance", named(described, "InstanceId")),
        instance_type=text(described, "InstanceType"),
        accelerator=accelerator,
        state=state,
        billing=billing,
        run_epoch="" if launched_at is None else launched_at.isoformat(),
        launched_at=launched_at,
        name=tags.get("Name", ""),
        zone=text(placement, "AvailabilityZone"),
        created_at=_created_at(described),
        stopped_at=_stopped_at(described) if state is InstanceState.STOPPED else None,
        tags=tags,
        managed_by=keeper_of(tags, part(described, "Operator")),
        cannot_stop=_cannot_stop(described, billing),
        local_disk_gib=local_disk_gib,
        public_ip=public_ip,
        public_ip_is_kept=kept,
        operating_system="windows" if "windows" in text(described, "PlatformDetails").lower() else "linux",
        tenancy=text(placement, "Tenancy") or "default",
        imds_v1=imds_v1(part(described, "MetadataOptions")),
    )


def volume_ids(described: Mapping[str, Any]) -> Iterator[str]:
    """The volumes that DescribeInstances says are attached."""
    for mapping in parts(described, "BlockDeviceMappings"):
        volume = text(part(mapping, "Ebs"), "VolumeId")
        if volume:
            yield volume


def volumes_deleted_with(described: Mapping[str, Any]) -> frozenset[str]:
    """Those of its volumes that go when the instance is terminated."""
    disks = [part(mapping, "Ebs") for mapping in parts(described, "BlockDeviceMappings")]
    return frozenset(named(disk, "VolumeId") for disk in disks if flag(disk, "DeleteOnTermination"))


def _billing(described: Mapping[str, Any], placement: Mapping[str, Any]) -> Billing:
    lifecycle = text(described, "InstanceLifecycle")
    if lifecycle:
        return _LIFECYCLES.get(lifecycle, Billing.UNKNOWN)
    committed = (
        text(described, "CapacityReservationId")
        or text(described, "CapacityBlockId")
        or text(placement, "HostId")
        or text(placement, "Tenancy") == "host"
    )
    return Billing.RESERVED if committed else Billing.ON_DEMAND


def _cannot_stop(described: Mapping[str, Any], billing: Billing) -> str:
    if text(described, "RootDeviceType") == "instance-store":
        return INSTANCE_STORE_ROOT
    return ONE_TIME_SPOT if billing is Billing.SPOT else ""


def _created_at(described: Mapping[str, Any]) -> datetime | None:
    """When the first network interface was attached: at creation, for good (LaunchTime moves with each start)."""
    for interface in parts(described, "NetworkInterfaces"):
        attachment = part(interface, "Attachment")
        if attachment.get("DeviceIndex") == 0:
            return moment(attachment, "AttachTime")
    return None


def _stopped_at(described: Mapping[str, Any]) -> datetime | None:
    found = _STOPPED_AT.search(text(described, "StateTransitionReason"))
    if found is None:
        return None
    try:
        stopped_at = datetime.strptime(found[1] + "+0000", "%Y-%m-%d %H:%M:%S%z")
    except ValueError:
        return None
    return stopped_at.astimezone(timezone.utc)


def imds_v1(options: Mapping[str, Any]) -> bool | None:
    """Whether metadata answers without a session token; None where AWS does not say."""
    if text(options, "HttpEndpoint") == "disabled":
        return False
    return {"optional": True, "required": False}.get(text(options, "HttpTokens"))


def _public_ip(described: Mapping[str, Any]) -> tuple[str, bool]:
    """The public address, and whether it outlives a stop: Elastic IPs are not owned by `amazon`."""
    address = text(described, "PublicIpAddress")
    for interface in parts(described, "NetworkInterfaces"):
        association = part(interface, "Association")
        if address and text(association, "PublicIp") == address:
            return address, (text(association, "IpOwnerId") or "amazon") != "amazon"
    return address, False
