"""From an element of DescribeInstances to an `Instance`, and who keeps it: pure, apart from any request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from costguard.domain.errors import ProviderError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Accelerator, Billing, Instance, InstanceState, Keeper, ManagedBy
from costguard.providers.kit.core.calls import Lists
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named, part, tag_value, text, texts, whole
from costguard.providers.tencent.compute.instance_types import disks_of, is_local
from costguard.providers.tencent.core.errors import UNSUPPORTED
from costguard.providers.tencent.core.products import moment, tags_of, told

INSTANCE_STORE_ROOT = "instance_store_root"
TERMINATION_PROTECTION = "termination_protection"
STOP, TERMINATE = "StopInstances", "TerminateInstances"
POSTPAID, SPOT, PREPAID = "POSTPAID_BY_HOUR", "SPOTPAID", "PREPAID"

_STATES = {
    "PENDING": InstanceState.PENDING,
    "STARTING": InstanceState.PENDING,
    "REBOOTING": InstanceState.PENDING,
    "RUNNING": InstanceState.RUNNING,
    "STOPPING": InstanceState.STOPPING,
    "STOPPED": InstanceState.STOPPED,
    "TERMINATING": InstanceState.TERMINATING,
    # SHUTDOWN is the recycle bin: neither gone nor to be touched, as one more terminate destroys what is in it.
    # That, failed launches, rescue modes and migrations are UNKNOWN, which nothing is done to.
}
_BILLING = {
    PREPAID: Billing.PREPAID,
    POSTPAID: Billing.ON_DEMAND,
    SPOT: Billing.SPOT,
    "CDHPAID": Billing.RESERVED,
    "CDCPAID": Billing.RESERVED,
    "UNDERWRITE": Billing.RESERVED,
}
_RENEWALS = {
    "NOTIFY_AND_AUTO_RENEW": True,  # for a month each time it ends, says ModifyInstancesRenewFlag
    "NOTIFY_AND_MANUAL_RENEW": False,
    "DISABLE_NOTIFY_AND_MANUAL_RENEW": False,
}
_NULLABLE = (
    "RenewFlag",
    "PublicIpAddresses",
    "LatestOperation",
    "LatestOperationState",
    "LatestOperationRequestId",
    "DedicatedClusterId",
    "InstanceName",
    "OsName",
)


def to_instance(shard: Shard, described: Fields, accelerator: Accelerator, local_disk_gib: float | None) -> Instance:
    """One instance as DescribeInstances saw it.

    The cloud tells no start of a run, only the machine's creation: `launched_at` is that earlier moment.
    Whether its public address is an EIP is not told here either: see `source.py`.
    """
    known = told(described, *_NULLABLE)
    tags = tags_of(described, "Tags")
    name = text(known, "InstanceName")
    state = state_of(known)
    placement = told(part(known, "Placement"), "HostId", "DedicatedResourcePackIds", "DedicatedResourcePackTenancy")
    created_at = moment(known, "CreatedTime")
    run_epoch, stopped_by = run_of(known, state)
    billing = _billing(known, placement)
    return Instance(
        ref=ResourceRef(shard.cloud, shard.account, shard.region, "instance", named(known, "InstanceId")),
        instance_type=text(known, "InstanceType"),
        accelerator=accelerator,
        state=state,
        billing=billing,
        run_epoch=run_epoch,
        launched_at=created_at,
        name=name,
        zone=text(placement, "Zone"),
        created_at=created_at,
        tags=tags,
        managed_by=keeper_of(tags, name),
        cannot_stop=_cannot_stop(known),
        local_disk_gib=local_disk_gib,
        public_ip=_public_ip(known),
        protected_by=(TERMINATION_PROTECTION,) if flag(known, "DisableApiTermination") else (),
        operating_system="windows" if "windows" in text(known, "OsName").lower() else "linux",
        tenancy="host" if text(placement, "HostId") else "default",
        billed_while_stopped=state is InstanceState.STOPPED and text(known, "StopChargingMode") != "STOP_CHARGING",
        stopped_by=stopped_by,
        paid_until=moment(known, "ExpiredTime") if billing is Billing.PREPAID else None,
        auto_renew=_RENEWALS.get(text(known, "RenewFlag")) if billing is Billing.PREPAID else None,
        resource_group=_project(placement),
    )


def state_of(described: Fields) -> InstanceState:
    """Where the machine is in its life; one that the cloud has isolated (unpaid, expired, unsafe) is UNKNOWN.

    LatestOperationState does not count: it was recorded as SUCCESS while a machine was still STOPPING.
    """
    if text(described, "RestrictState") not in {"", "NORMAL"}:
        return InstanceState.UNKNOWN
    return _STATES.get(named(described, "InstanceState"), InstanceState.UNKNOWN)


def run_of(described: Fields, state: InstanceState) -> tuple[str, str]:
    """The run epoch, and the request that stopped the machine.

    The only trace of a start is the id of the latest request; while a machine is stopped or ended, that is the
    request which did it, and the run is not told. Of a machine that runs it is taken as it is: changing an
    attribute changes it too, and a case is then closed for nothing, which harms nobody.
    """
    latest, request = text(described, "LatestOperation"), text(described, "LatestOperationRequestId")
    runs = state in {InstanceState.RUNNING, InstanceState.PENDING}
    if latest == STOP and not runs:
        return "", request
    return ("" if latest == TERMINATE and not runs else request), ""


def attached_disk_ids(described: Fields) -> frozenset[str]:
    """The cloud disks that DescribeInstances says are attached; local ones are no volumes."""
    return frozenset(named(disk, "DiskId") for disk in disks_of(described) if not is_local(disk))


def _billing(described: Fields, placement: Fields) -> Billing:
    found = _BILLING.get(text(described, "InstanceChargeType"), Billing.UNKNOWN)
    committed = (
        text(placement, "HostId")
        or text(described, "DedicatedClusterId")
        or text(placement, "DedicatedResourcePackTenancy")
        or placement.get("DedicatedResourcePackIds")
    )
    return Billing.RESERVED if committed and found in {Billing.ON_DEMAND, Billing.SPOT} else found


def _cannot_stop(described: Fields) -> str:
    """A system disk of the host's own cannot be copied, and no such machine stops without charges."""
    system = part(told(described, "SystemDisk"), "SystemDisk")
    return INSTANCE_STORE_ROOT if is_local(system) else ""


def _project(placement: Fields) -> str:
    """The id of its project, 0 for the default one; empty where none is told."""
    return str(whole(placement, "ProjectId")) if "ProjectId" in placement else ""


def _public_ip(described: Fields) -> str:
    found = texts(described, "PublicIpAddresses")
    return found[0] if found else ""


# Who keeps an instance: scaling groups and clusters as their own APIs list them, others by the tags they set.
#
# An instance of theirs is shown and never touched: they would replace it, or their work would suffer.

# tag name or `prefix*` → keeper; the first match wins, so Kubernetes goes before the group it scales with.
# The name is the tag's value, or what follows the prefix.
_TAGS: tuple[tuple[str, Keeper], ...] = (
    ("costguard:component", Keeper.COSTGUARD),
    ("tencentcloud:tke-clusterId", Keeper.KUBERNETES),
    ("tke-clusterId", Keeper.KUBERNETES),
    ("kubernetes.io/cluster/*", Keeper.KUBERNETES),
    ("k8s.io/cluster/*", Keeper.KUBERNETES),
    ("sigs.k8s.io/cluster-api-provider-tencent/cluster/*", Keeper.KUBERNETES),
    ("karpenter.sh/*", Keeper.KUBERNETES),
    ("tencentcloud:autoscaling:auto-scaling-group-id", Keeper.AUTOSCALING),
)

# Names that these services give the machines they make; owners can change them, and the lists above then tell.
# Of EMR and Batch nothing else tells: their ids in front of the name are all there is.
_NAMES: tuple[tuple[re.Pattern[str], Keeper], ...] = (
    (re.compile(r"tke_(cls-[0-9a-z]+)_.*"), Keeper.KUBERNETES),
    (re.compile(r"(?:as-)?tke-(np-[0-9a-z]+).*"), Keeper.KUBERNETES),
    (re.compile(r"(emr-[0-9a-z]{8})(?:\W.*|_.*)?"), Keeper.CLOUD_SERVICE),
    (re.compile(r"(env-[0-9a-z]{8})(?:\W.*|_.*)?"), Keeper.CLOUD_SERVICE),
)


def keeper_of(tags: Mapping[str, str], name: str) -> ManagedBy | None:
    """The controller that an instance with these tags and this name gives away, or None."""
    for pattern, keeper in _TAGS:
        found = tag_value(pattern, tags)
        if found is not None:
            return ManagedBy(keeper, found)
    for form, keeper in _NAMES:
        matched = form.fullmatch(name)
        if matched is not None:
            return ManagedBy(keeper, matched[1])
    return None


def read_memberships(session: Lists, shard: Shard) -> Mapping[str, ManagedBy]:
    """Every machine of the shard that a cluster or a scaling group lists as its own, by id; clusters go first.

    Raises:
        ProviderError: one of them could not be read. Then nothing says who keeps what.

    API: AS DescribeAutoScalingInstances; TKE DescribeClusters, and DescribeClusterInstances for each cluster.
    """
    found: dict[str, ManagedBy] = {}
    for item in _items(session, shard, "as", "DescribeAutoScalingInstances", "AutoScalingInstanceSet"):
        with as_documented("as:DescribeAutoScalingInstances"):
            group = text(item, "AutoScalingGroupName") or named(item, "AutoScalingGroupId")
            found[named(item, "InstanceId")] = ManagedBy(Keeper.AUTOSCALING, group)
    for cluster in _items(session, shard, "tke", "DescribeClusters", "Clusters"):
        with as_documented("tke:DescribeClusters"):
            cluster_id = named(cluster, "ClusterId")
            name = text(cluster, "ClusterName") or cluster_id
        for item in _items(session, shard, "tke", "DescribeClusterInstances", "InstanceSet", ClusterId=cluster_id):
            with as_documented("tke:DescribeClusterInstances"):
                found[named(item, "InstanceId")] = ManagedBy(Keeper.KUBERNETES, name)
    return found


def _items(session: Lists, shard: Shard, service: str, action: str, key: str, **asked: Any) -> Iterator[Any]:
    try:
        for page in session.pages(shard, service, action, key, **asked):
            yield from page
    except ProviderError as err:
        if err.code != UNSUPPORTED:  # a stand-in without the product has no groups and no clusters
            raise
