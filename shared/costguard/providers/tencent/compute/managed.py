"""Who keeps an instance: scaling groups and clusters as their own APIs list them, others by the tags they set.

An instance of theirs is shown and never touched: they would replace it, or their work would suffer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from costguard.domain.errors import ProviderError
from costguard.domain.refs import Shard
from costguard.domain.resources import Keeper, ManagedBy
from costguard.providers.kit.compute.instances import tag_value
from costguard.providers.kit.core.calls import Lists
from costguard.providers.kit.core.fields import as_documented, named, text
from costguard.providers.tencent.core.errors import UNSUPPORTED

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
