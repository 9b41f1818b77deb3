"""Selections by resource group that can find nothing: EC2 tells of no instance which group it is in. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from costguard.domain.refs import CLOUDS, provider_of
from costguard.guards.rules.common import Selector
from costguard.policy.model.policy import Policy

_NOTHING = "resource_groups matches nothing on AWS, which tells none of an instance; select by tags there"


def group_remarks(policy: Policy) -> Iterator[tuple[str, str]]:
    """Place and message of every such selection; one in an exception protects nothing."""
    for where, selector in _selections(policy):
        if selector.resource_groups is not None and _reaches_aws_alone(selector, policy):
            yield where, _NOTHING


def _selections(policy: Policy) -> Iterator[tuple[str, Selector]]:
    for rule in policy.idle_gpu:
        for selector in (rule.applies_to, *rule.except_for):
            yield f"rule {rule.name}", selector
    for exemption in policy.exemptions:
        yield exemption.where or "exceptions", exemption.owns
    for owner in policy.owners:
        yield f"owner {owner.name}", owner.owns
    for priority_class in policy.priority_classes:
        yield f"priority class {priority_class.name}", priority_class.selects


def _reaches_aws_alone(selector: Selector, policy: Policy) -> bool:
    guarded = [(account.cloud, account.id) for account in policy.accounts] or [(cloud, "") for cloud in CLOUDS]
    reached = {
        cloud
        for cloud, account in guarded
        if _any(selector.clouds, cloud) and (not account or _any(selector.accounts, account))
    }
    return bool(reached) and all(provider_of(cloud) == "aws" for cloud in reached)


def _any(patterns: tuple[str, ...] | None, value: str) -> bool:
    return patterns is None or any(fnmatchcase(value, pattern) for pattern in patterns)
