"""From an element of DescribeInstances to an `Instance`, and who keeps it: pure, apart from any request."""

from __future__ import annotations

from collections.abc import Mapping

from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Accelerator, Billing, Instance, InstanceState, Keeper, ManagedBy
from costguard.providers.alibaba.core.products import items_in, structures_in, tags_of, time_of
from costguard.providers.kit.core.fields import Fields, flag, named, part, tag_value, text

API = "ecs:DescribeInstances"
TERMINATION_PROTECTION = "termination_protection"
METADATA = ("META_OPTIONS",)
"""What DescribeInstances has to be asked for besides, to tell how metadata answers."""

_STATES = {
    "Pending": InstanceState.PENDING,
    "Starting": InstanceState.PENDING,
    "Running": InstanceState.RUNNING,
    "Stopping": InstanceState.STOPPING,
    "Stopped": InstanceState.STOPPED,
}
_SPOT = frozenset({"SpotWithPriceLimit", "SpotAsPriceGo"})
_BILLS_ON = frozenset({"KeepCharging", "Not-applicable"})
"""What StoppedMode says of a stopped machine whose billing goes on: a stop in economical mode is ignored in silence
for machines with local disks, of family gn5, prepaid ones and those of the classic network."""


def to_instance(shard: Shard, described: Fields, accelerator: Accelerator, local_disk_gib: float | None) -> Instance:
    """One instance as DescribeInstances saw it. Its times are told to the minute, rounded down."""
    tags = tags_of(described, API)
    state = _STATES.get(text(described, "Status"), InstanceState.UNKNOWN)
    public_ip, kept = _public_ip(described)
    billing = _billing(described)
    mode = text(described, "StoppedMode")
    return Instance(
        ref=ResourceRef(shard.cloud, shard.account, shard.region, "instance", named(described, "InstanceId")),
        instance_type=text(described, "InstanceType"),
        accelerator=accelerator,
        state=state,
        billing=billing,
        run_epoch=text(described, "StartTime"),
        launched_at=time_of(described, "StartTime"),
        name=text(described, "InstanceName"),
        zone=text(described, "ZoneId"),
        created_at=time_of(described, "CreationTime"),
        tags=tags,
        managed_by=keeper_of(tags),
        local_disk_gib=local_disk_gib,
        public_ip=public_ip,
        public_ip_is_kept=kept,
        protected_by=_protections(described),
        operating_system="windows" if text(described, "OSType").lower() == "windows" else "linux",
        tenancy=text(part(described, "DedicatedInstanceAttribute"), "Tenancy") or "default",
        billed_while_stopped=state is InstanceState.STOPPED and mode in _BILLS_ON,
        paid_until=time_of(described, "ExpiredTime") if billing is Billing.PREPAID else None,
        imds_v1=imds_v1(described),
        resource_group=text(described, "ResourceGroupId"),
    )


def imds_v1(described: Fields) -> bool | None:
    """Whether metadata answers without a session token; None where it is not told, as without `METADATA` asked for."""
    options = part(described, "MetadataOptions")
    endpoint, tokens = text(options, "HttpEndpoint"), text(options, "HttpTokens")
    if endpoint == "disabled" or tokens == "required":
        return False
    return True if (endpoint, tokens) == ("enabled", "optional") else None


def _billing(described: Fields) -> Billing:
    charge, strategy = text(described, "InstanceChargeType"), text(described, "SpotStrategy") or "NoSpot"
    if charge == "PrePaid":
        return Billing.PREPAID
    if charge != "PostPaid":
        return Billing.UNKNOWN
    committed = text(part(described, "DedicatedHostAttribute"), "DedicatedHostId") or text(
        part(described, "EcsCapacityReservationAttr"), "CapacityReservationId"
    )
    if committed:
        return Billing.RESERVED
    if strategy in _SPOT:
        return Billing.SPOT
    return Billing.ON_DEMAND if strategy == "NoSpot" else Billing.UNKNOWN


def _public_ip(described: Fields) -> tuple[str, bool]:
    """The public address, and whether it outlives a stop: an elastic one does, a plain one goes in economical mode."""
    elastic = text(part(described, "EipAddress"), "IpAddress")
    if elastic:
        return elastic, True
    plain = items_in(described, "PublicIpAddress.IpAddress", API)
    if not all(isinstance(address, str) for address in plain):
        message = "PublicIpAddress is no list of texts"
        raise TypeError(message)
    return (plain[0], False) if plain else ("", False)


def _protections(described: Fields) -> tuple[str, ...]:
    """Deletion protection, and every lock: while one is held the cloud refuses, or does other than it was told.

    Of a machine locked for security even the disks are deleted that were to be kept.
    """
    locks = structures_in(described, "OperationLocks.LockReason", API)
    held = {f"locked_{named(lock, 'LockReason').lower()}" for lock in locks}
    if flag(described, "DeletionProtection"):
        held.add(TERMINATION_PROTECTION)
    return tuple(sorted(held))


def elastic_address(described: Fields) -> str:
    """The id of the elastic address bound to the machine itself; empty without one."""
    return text(part(described, "EipAddress"), "AllocationId")


def secondary_interfaces(described: Fields) -> list[str]:
    """Further network interfaces, which may have elastic addresses that DescribeInstances does not tell."""
    interfaces = structures_in(described, "NetworkInterfaces.NetworkInterface", API)
    return [named(each, "NetworkInterfaceId") for each in interfaces if text(each, "Type") == "Secondary"]


# Who keeps an instance: the controllers that give themselves away by tags.
#
# An instance of theirs is shown and never touched: they would replace it, or their work would suffer. Tags that begin
# with `acs:` are set by the cloud's own services only, so one that is not known here counts as a service's.

# tag name or `prefix*` → keeper; the first match wins, so Kubernetes goes before the group it scales with.
# The name is the tag's value, or what follows the prefix.
_TAGS: tuple[tuple[str, Keeper], ...] = (
    ("costguard:component", Keeper.COSTGUARD),
    ("ack.aliyun.com", Keeper.KUBERNETES),
    ("ack.alibabacloud.com/*", Keeper.KUBERNETES),
    ("ack.aliyun.com/*", Keeper.KUBERNETES),
    ("alibabacloud.com/nodepool-id", Keeper.KUBERNETES),
    ("kubernetes.io/cluster/*", Keeper.KUBERNETES),
    ("k8s.io/cluster/*", Keeper.KUBERNETES),
    ("k8s.io/cluster-autoscaler/*", Keeper.KUBERNETES),
    ("k8s.io/role/*", Keeper.KUBERNETES),
    ("k8s.aliyun.com", Keeper.KUBERNETES),
    ("k8s.aliyun.com/*", Keeper.KUBERNETES),
    ("karpenter.sh/nodepool", Keeper.KUBERNETES),
    ("karpenter.sh/*", Keeper.KUBERNETES),
    ("acs:emr:clusterId", Keeper.CLOUD_SERVICE),
    ("acs:emr:*", Keeper.CLOUD_SERVICE),
    ("acs:ehpc:*", Keeper.CLOUD_SERVICE),
    ("acs:pai:*", Keeper.CLOUD_SERVICE),
    ("acs:autoscaling:scalingGroupId", Keeper.AUTOSCALING),
    ("acs:autoscaling:*", Keeper.AUTOSCALING),
)
_OF_PEOPLE = ("acs:rm:", "acs:tag:", "acs:ros:")
"""Set by the cloud for whoever made it: resource group, creator, and the stack of a template."""


def keeper_of(tags: Mapping[str, str]) -> ManagedBy | None:
    """The controller of an instance with these tags, or None."""
    for pattern, keeper in _TAGS:
        name = tag_value(pattern, tags)
        if name is not None:
            return ManagedBy(keeper, name)
    unknown = sorted(tag for tag in tags if tag.startswith("acs:") and not tag.startswith(_OF_PEOPLE))
    return ManagedBy(Keeper.CLOUD_SERVICE, unknown[0]) if unknown else None
