"""From an element of DescribeInstances to an `Instance`, and who keeps it: pure, apart from any request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Accelerator, Billing, Instance, InstanceState, Keeper, ManagedBy
from costguard.providers.kit.core.fields import flag, moment, named, part, parts, tag_value, tags_of, text

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


# Who keeps an instance: the controllers that give themselves away by tags or as its operator.
#
# An instance of theirs is shown and never touched: they would replace it, or their work would suffer.
#
# Only tags are here that the controller itself publishes:
#
# * Databricks: Clusters API, `default_tags` (`Vendor: Databricks`, and the `ClusterId`, which alone is anybody's).
# * Anyscale: the IAM policies of its Terraform module for AWS, by `aws:ResourceTag/anyscale-cloud-id`.
# * Ray: python/ray/autoscaler/tags.py. SkyPilot: sky/provision/constants.py and aws/instance.py (sets Ray's as well).
# * Spot.io: Elastigroup's `spotinst:aws:ec2:group:id`. CAST AI: the IAM policy of its EKS role, by `cast:cluster-id`.
# * AWS PCS: user guide, "Tags", `aws:pcs:cluster-id`, `aws:pcs:compute-node-group-id`.
# * kOps: `kops.k8s.io/instancegroup`, with the tags of any cluster of Kubernetes.
# * GitHub runners (github-aws-runners/terraform-aws-github-runner): control-plane/src/aws/runners.ts, `ghr:*`.
# * MGN and DRS: their AWS managed policies, by `AWSApplicationMigrationServiceManaged` (replication and conversion
#   servers, and what is launched for a test or cutover) and `AWSElasticDisasterRecoveryManaged`.
# * Image Builder: user guide, "Tag Image Builder output resources"; its service-linked role, by `CreatedBy`.
# * RES (Research and Engineering Studio on AWS): user guide, `res:EnvironmentName`.
# * Determined: provisioner/aws/aws.go, `determined-resource-pool`, `determined-master-address`.
# * Deadline: the AWS managed policies of its resource tracker, by `DeadlineTrackedAWSResource`. Fleets of Deadline
#   Cloud that a customer manages are autoscaling groups; the others run in an account of AWS.
# * dstack: core/backends/aws/compute.py, `dstack_project` (`owner: dstack` alone is anybody's).
# * SageMaker HyperPod publishes no tag of its own: its nodes run in an account of AWS, and whatever shows in one's own
#   is known by `Operator`.

_IMAGE_BUILDER, _DATABRICKS = "EC2 Image Builder", "Databricks"

# tag name or `prefix*` → keeper; the first match wins, so Kubernetes goes before the group it scales with.
# The name is the tag's value, or what follows the prefix.
_TAGS: tuple[tuple[str, Keeper], ...] = (
    ("costguard:component", Keeper.COSTGUARD),
    ("aws:eks:cluster-name", Keeper.KUBERNETES),
    ("eks:cluster-name", Keeper.KUBERNETES),
    ("eks:eks-cluster-name", Keeper.KUBERNETES),
    ("alpha.eksctl.io/cluster-name", Keeper.KUBERNETES),
    ("kubernetes.io/cluster/*", Keeper.KUBERNETES),
    ("k8s.io/cluster/*", Keeper.KUBERNETES),
    ("sigs.k8s.io/cluster-api-provider-aws/cluster/*", Keeper.KUBERNETES),
    ("KubernetesCluster", Keeper.KUBERNETES),
    ("eks:nodegroup-name", Keeper.KUBERNETES),
    ("karpenter.sh/nodepool", Keeper.KUBERNETES),
    ("karpenter.sh/provisioner-name", Keeper.KUBERNETES),
    ("karpenter.sh/*", Keeper.KUBERNETES),
    ("kops.k8s.io/instancegroup", Keeper.KUBERNETES),
    ("kops.k8s.io/*", Keeper.KUBERNETES),
    ("cast:cluster-id", Keeper.KUBERNETES),
    ("k8s.io/cluster-autoscaler/*", Keeper.KUBERNETES),
    ("k8s.io/role/*", Keeper.KUBERNETES),
    ("aws:elasticmapreduce:job-flow-id", Keeper.CLOUD_SERVICE),
    ("AWSBatchServiceTag", Keeper.CLOUD_SERVICE),
    ("aws:batch:*", Keeper.CLOUD_SERVICE),
    ("aws:sagemaker:*", Keeper.CLOUD_SERVICE),
    ("sagemaker:*", Keeper.CLOUD_SERVICE),
    ("parallelcluster:cluster-name", Keeper.CLOUD_SERVICE),
    ("aws-parallelcluster-node-type", Keeper.CLOUD_SERVICE),
    ("aws:ecs:*", Keeper.CLOUD_SERVICE),
    ("AmazonECSManaged", Keeper.CLOUD_SERVICE),
    ("aws:cloud9:environment", Keeper.CLOUD_SERVICE),
    ("elasticbeanstalk:environment-name", Keeper.CLOUD_SERVICE),
    ("aws:gamelift:*", Keeper.CLOUD_SERVICE),
    ("aws:pcs:cluster-id", Keeper.CLOUD_SERVICE),
    ("aws:pcs:compute-node-group-id", Keeper.CLOUD_SERVICE),
    ("aws:pcs:*", Keeper.CLOUD_SERVICE),
    ("AWSApplicationMigrationServiceManaged", Keeper.CLOUD_SERVICE),
    ("AWSElasticDisasterRecoveryManaged", Keeper.CLOUD_SERVICE),
    ("Ec2ImageBuilderArn", Keeper.CLOUD_SERVICE),
    ("anyscale-cloud-id", Keeper.CLOUD_SERVICE),
    ("spotinst:aws:ec2:group:id", Keeper.AUTOSCALING),
    ("spotinst:*", Keeper.AUTOSCALING),
    ("skypilot-cluster-name", Keeper.CONTROLLER),
    ("ray-cluster-name", Keeper.CONTROLLER),
    ("ray-node-type", Keeper.CONTROLLER),
    ("dstack_project", Keeper.CONTROLLER),
    ("determined-resource-pool", Keeper.CONTROLLER),
    ("determined-master-address", Keeper.CONTROLLER),
    ("DeadlineTrackedAWSResource", Keeper.CONTROLLER),
    ("res:EnvironmentName", Keeper.CONTROLLER),
    ("ghr:Application", Keeper.CONTROLLER),
    ("ghr:*", Keeper.CONTROLLER),
    ("aws:autoscaling:groupName", Keeper.AUTOSCALING),
    ("aws:ec2:fleet-id", Keeper.AUTOSCALING),
    ("aws:ec2spot:fleet-request-id", Keeper.AUTOSCALING),
)

# beginning of a tag's name → whose it is, for names that do not tell
_TOOLS = {
    "aws:pcs:": "AWS PCS",
    "anyscale-": "Anyscale",
    "spotinst:": "Spot.io",
    "cast:": "CAST AI",
    "skypilot-": "SkyPilot",
    "ray-": "Ray",
    "dstack_": "dstack",
    "determined-": "Determined",
    "Deadline": "Deadline",
    "res:": "RES",
    "ghr:": "GitHub runners",
}

CONTROLLER_KEYS = tuple(pattern for pattern, _ in _TAGS if not pattern.endswith("*"))
"""The tags that give a controller away by their name alone; one that only begins so IAM cannot compare."""

CONTROLLER_VALUES = {"Vendor": _DATABRICKS, "CreatedBy": _IMAGE_BUILDER}
"""Tags that do so by what they say: their names are anybody's."""


def keeper_of(tags: Mapping[str, str], operator: Mapping[str, Any] | None) -> ManagedBy | None:
    """The controller of an instance with these tags and this `Operator`, or None.

    An operator that says `Managed` counts whatever the tags say: EC2 refuses to stop its machines.
    """
    for pattern, keeper in _TAGS:
        name = tag_value(pattern, tags)
        if name is not None:
            tool = next((tool for start, tool in _TOOLS.items() if pattern.startswith(start)), "")
            return ManagedBy(keeper, f"{tool} {name}".strip())
    for key, value in CONTROLLER_VALUES.items():
        if tags.get(key, "").casefold() == value.casefold():
            cluster = tags.get("ClusterId", "") if value == _DATABRICKS else ""
            return ManagedBy(Keeper.CLOUD_SERVICE, f"{value} {cluster}".strip())
    if operator and flag(operator, "Managed"):
        principal = text(operator, "Principal") or "aws"
        keeper = Keeper.KUBERNETES if principal.startswith("eks.") else Keeper.CLOUD_SERVICE
        return ManagedBy(keeper, principal)
    return None
