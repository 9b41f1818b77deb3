"""Who keeps an instance: the controllers that give themselves away by tags or as its operator.

An instance of theirs is shown and never touched: they would replace it, or their work would suffer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costguard.domain.resources import Keeper, ManagedBy
from costguard.providers.documented import flag, text
from costguard.providers.tags import tag_value

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
    ("aws:autoscaling:groupName", Keeper.AUTOSCALING),
    ("aws:ec2:fleet-id", Keeper.AUTOSCALING),
    ("aws:ec2spot:fleet-request-id", Keeper.AUTOSCALING),
)


def keeper_of(tags: Mapping[str, str], operator: Mapping[str, Any] | None) -> ManagedBy | None:
    """The controller of an instance with these tags and this `Operator`, or None.

    An operator that says `Managed` counts whatever the tags say: EC2 refuses to stop its machines.
    """
    for pattern, keeper in _TAGS:
        name = tag_value(pattern, tags)
        if name is not None:
            return ManagedBy(keeper, name)
    if operator and flag(operator, "Managed"):
        principal = text(operator, "Principal") or "aws"
        keeper = Keeper.KUBERNETES if principal.startswith("eks.") else Keeper.CLOUD_SERVICE
        return ManagedBy(keeper, principal)
    return None
