"""AS and TKE: which machines belong to a scaling group or to a cluster."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from cloudstand.tencent.core.asking import Answer, Asked, By, either, filtered, page
from cloudstand.tencent.core.errors import ApiError
from cloudstand.tencent.core.times import zulu
from cloudstand.world.kinds import InstanceState, Keeper
from cloudstand.world.records import Machine

_GROUP_FILTERS: By = {
    "instance-id": lambda entry: [entry["InstanceId"]],
    "auto-scaling-group-id": lambda entry: [entry["AutoScalingGroupId"]],
    "private-ip-address": None,
}
_CLUSTER_FILTERS: By = {
    "ClusterName": lambda entry: [entry["ClusterName"]],
    "ClusterType": lambda entry: [entry["ClusterType"]],
    "ClusterStatus": lambda entry: [entry["ClusterStatus"]],
    "vpc-id": None,
    "tag-key": lambda _: [],
    "Tags": lambda _: [],
    "tag:": lambda _: [],
}
_NODE_FILTERS: By = {
    "nodepool-id": lambda entry: [entry["NodePoolId"]],
    "nodepool-instance-type": lambda _: ["ALL", "MANUALLY_ADDED"],
}


def keeper_id(prefix: str, name: str) -> str:
    """A group's or cluster's id: its name where that has the form of one."""
    return name if name.startswith(f"{prefix}-") else f"{prefix}-{blake2b(name.encode(), digest_size=4).hexdigest()}"


def describe_auto_scaling_instances(asked: Asked) -> Answer:
    """DescribeAutoScalingInstances: only machines that belong to a group."""
    either(asked, "InstanceIds", "InvalidParameter.Conflict")
    entries = [_member(machine) for machine in _kept(asked, Keeper.AUTOSCALING)]
    ids = asked.get("InstanceIds")
    if ids:
        entries = [entry for entry in entries if entry["InstanceId"] in set(ids)]
    code = "InvalidParameterValue.InvalidFilter"
    found = filtered(asked.get("Filters", ()), entries, _GROUP_FILTERS, code=code)
    return {"TotalCount": len(found), "AutoScalingInstanceSet": page(asked, found)}


def describe_clusters(asked: Asked) -> Answer:
    """DescribeClusters."""
    nodes: dict[str, int] = {}
    for machine in _kept(asked, Keeper.KUBERNETES):
        name = _name(machine)
        nodes[name] = nodes.get(name, 0) + 1
    entries = [_cluster(name, count) for name, count in nodes.items()]
    ids = asked.get("ClusterIds")
    if ids:
        entries = [entry for entry in entries if entry["ClusterId"] in set(ids)]
    if asked.get("ClusterType"):
        entries = [entry for entry in entries if entry["ClusterType"] == asked.get("ClusterType")]
    found = filtered(asked.get("Filters", ()), entries, _CLUSTER_FILTERS, code="InvalidParameter.Param")
    return {"TotalCount": len(found), "Clusters": page(asked, found)}


def describe_cluster_instances(asked: Asked) -> Answer:
    """DescribeClusterInstances: workers, unless another role is asked for."""
    wanted = asked.parameters["ClusterId"]
    machines = [each for each in _kept(asked, Keeper.KUBERNETES) if keeper_id("cls", _name(each)) == wanted]
    if not machines:
        raise ApiError("InvalidParameter.ClusterNotFound", f"there is no cluster {wanted}.", f"集群`{wanted}`不存在。")
    entries = [_node(machine) for machine in machines]
    if asked.get("InstanceRole", "WORKER") not in {"WORKER", "ALL"}:
        entries = []
    ids = asked.get("InstanceIds")
    if ids:
        entries = [entry for entry in entries if entry["InstanceId"] in set(ids)]
    found = filtered(asked.get("Filters", ()), entries, _NODE_FILTERS, code="InvalidParameter.Param")
    return {"TotalCount": len(found), "InstanceSet": page(asked, found)}


def _kept(asked: Asked, keeper: Keeper) -> list[Machine]:
    machines = asked.world.machines_in(asked.shard)
    return [each for each in machines if each.spec.managed_by is not None and each.spec.managed_by.keeper is keeper]


def _name(machine: Machine) -> str:
    return "" if machine.spec.managed_by is None else machine.spec.managed_by.name


def _member(machine: Machine) -> dict[str, Any]:
    running = machine.state is InstanceState.RUNNING
    return {
        "InstanceId": machine.native_id,
        "AutoScalingGroupId": keeper_id("asg", _name(machine)),
        "AutoScalingGroupName": _name(machine),
        "LaunchConfigurationId": keeper_id("asc", _name(machine)),
        "LaunchConfigurationName": _name(machine),
        "LifeCycleState": "IN_SERVICE" if running else "STOPPED",
        "HealthStatus": "HEALTHY" if running else "UNHEALTHY",
        "ProtectedFromScaleIn": False,
        "Zone": machine.spec.zone,
        "CreationType": "AUTO_CREATION",
        "AddTime": zulu(machine.spec.launched_at),
        "InstanceType": machine.spec.instance_type,
        "VersionNumber": 1,
        "WarmupStatus": "NO_NEED_WARMUP",
        "DisasterRecoverGroupIds": [],
    }


def _cluster(name: str, nodes: int) -> dict[str, Any]:
    return {
        "ClusterId": keeper_id("cls", name),
        "ClusterName": name,
        "ClusterDescription": "",
        "ClusterVersion": "1.30.0",
        "ClusterOs": "tlinux3.1x86_64",
        "ClusterType": "MANAGED_CLUSTER",
        "ClusterStatus": "Running",
        "ClusterNodeNum": nodes,
        "ClusterMaterNodeNum": 0,
        "ClusterEtcdNodeNum": 0,
        "ProjectId": 0,
        "TagSpecification": None,
        "DeletionProtection": False,
        "ContainerRuntime": "containerd",
    }


def _node(machine: Machine) -> dict[str, Any]:
    return {
        "InstanceId": machine.native_id,
        "InstanceRole": "WORKER",
        "InstanceState": "running" if machine.state is InstanceState.RUNNING else "failed",
        "FailedReason": "=Ready:True",
        "DrainStatus": "",
        "LanIP": "",
        "NodePoolId": "",
        "AutoscalingGroupId": "",
        "CreatedTime": zulu(machine.spec.launched_at),
        "InstanceAdvancedSettings": {"MountTarget": "", "DockerGraphPath": "", "UserScript": "", "Unschedulable": 0},
    }
