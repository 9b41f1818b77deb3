"""Who keeps an instance: the controllers that give themselves away by tags.

An instance of theirs is shown and never touched: they would replace it, or their work would suffer. Tags that begin
with `acs:` are set by the cloud's own services only, so one that is not known here counts as a service's.
"""

from __future__ import annotations

from collections.abc import Mapping

from costguard.domain.resources import Keeper, ManagedBy
from costguard.providers.kit.compute.instances import tag_value

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
