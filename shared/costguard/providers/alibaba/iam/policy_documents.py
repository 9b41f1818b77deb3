"""The RAM policy documents of every purpose, made from the tables in permissions.py.

RAM compares tag names as they are written, so a denial stands for each spelling. The ledger is PostgreSQL, which asks
for no permission of RAM: `ledger` and `clicks` have no document.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.providers.alibaba.core.services import OBJECT_OPERATIONS
from costguard.providers.alibaba.iam.freeze_policy import role_policy
from costguard.providers.alibaba.iam.permissions import policy_document
from costguard.providers.kit.iam.operations import ACTING
from costguard.providers.kit.iam.policy_documents import (
    EVERYWHERE,
    PURPOSES,
    Document,
    Lists,
    Narrowing,
    Purpose,
    reads,
    spellings,
)

Statement = dict[str, Any]

WITHOUT = frozenset({"ledger", "clicks"})
_OF_PEOPLE = frozenset(
    {"bss:DescribeCostBudgetsSummary", "bssapi:DescribeCostBudgetsSummary"}
)  # no function asks for the console's budgets
_LISTED = {
    Lists.REGIONS: ("ecs:DescribeRegions",),
    Lists.MACHINES: ("ecs:DescribeInstanceTypes", "ecs:DescribeInstances", "ecs:DescribeRegions"),
}
_ON_INSTANCES = frozenset({"ecs:StartInstances", "ecs:StopInstances", "ecs:DeleteInstances"})
_REGIONAL = ("acs:ecs:*:", "acs:kms:*:")

# each is what a run has no business with; what Costguard does itself is not among it
_NEVER: Sequence[str] = (
    "actiontrail:Delete*",
    "actiontrail:Stop*",
    "ecs:CreateInstance",
    "ecs:DeleteDisk",
    "ecs:DeleteImage",
    "ecs:DeleteSecurityGroup",
    "ecs:DeleteSnapshot*",
    "ecs:DetachDisk",
    "ecs:ModifyInstanceAttribute",
    "ecs:ReInitDisk",
    "ecs:RemoveTags",
    "ecs:ReplaceSystemDisk",
    "ecs:ResetDisk",
    "ecs:RunInstances",
    "ecs:UntagResources",
    "kms:CancelKeyDeletion",
    "kms:Delete*",
    "kms:DisableKey",
    "kms:ImportKeyMaterial",
    "kms:PutSecretValue",
    "kms:ScheduleKeyDeletion",
    "kms:UpdateSecret*",
    "oss:Delete*",
    "oss:PutBucket*",
    "ram:Add*",
    "ram:AttachPolicyToRole",
    "ram:AttachPolicyToUser",
    "ram:Create*",
    "ram:Delete*",
    "ram:DetachPolicyFromRole",
    "ram:DetachPolicyFromUser",
    "ram:PassRole",
    "ram:Remove*",
    "ram:Set*",
    "ram:Update*",
    "resourcedirectory:Delete*",
    "resourcedirectory:Remove*",
    "resourcedirectory:Update*",
    "resourcemanager:Delete*",
    "resourcemanager:Remove*",
    "resourcemanager:Update*",
    "vpc:DeleteNetworkAcl",
    "vpc:DeleteRoute*",
    "vpc:DeleteVSwitch",
    "vpc:DeleteVpc",
)


def documents(narrow: Narrowing = EVERYWHERE) -> dict[str, Document]:
    """The document of every purpose that has one, by its name."""
    made = {name: _statements(purpose, narrow) for name, purpose in PURPOSES.items() if name not in WITHOUT}
    return {name: {"Version": "1", "Statement": statements} for name, statements in made.items()}


def _statements(purpose: Purpose, narrow: Narrowing) -> list[Statement]:
    if purpose.name in {"objects", "reports"}:
        return [_files(purpose, narrow)]
    if purpose.name == "secrets":
        secrets = [f"acs:kms:*:*:secret/{narrow.name}*"]
        return [{"Effect": "Allow", "Action": ["kms:GetSecretValue"], "Resource": secrets}]
    if purpose.name == "freeze":
        one = LaunchFreeze("", "alibaba", FreezeVia.GROUP, f"{narrow.name}-freeze*", "*", narrow.account)
        return list(role_policy(one)["Statement"])
    if purpose.name == "freeze-organisation":
        return list(role_policy(LaunchFreeze("", "alibaba", FreezeVia.ORGANISATION, "", ""))["Statement"])
    if purpose.name == "deny":
        return [*_protections(narrow), {"Effect": "Deny", "Action": list(_NEVER), "Resource": "*"}]
    return _allowed(purpose, narrow)


def _allowed(purpose: Purpose, narrow: Narrowing) -> list[Statement]:
    """What the features call, as permissions.py has it; the denials are `deny`'s."""
    # RAM's pages write the names of roles in small letters in ARNs, whatever the role is called
    roles = {f"acs:ram::*:role/{name}" for name in (narrow.member_role, narrow.member_role.lower())}
    whole = policy_document(purpose.features, role_arns=roles)["Statement"]
    allowed: list[Statement] = [one for one in whole if one["Effect"] == "Allow"]
    if purpose.is_of_parts:
        (read,) = allowed
        read["Action"] = reads(purpose, read["Action"], _OF_PEOPLE, _LISTED)
    return [_narrowed(one, narrow) for one in allowed]


def _narrowed(statement: Statement, narrow: Narrowing) -> Statement:
    """Regions stand in a resource's name; tags bind what is done to machines. What is on `*` stays so."""
    resources = statement["Resource"]
    if isinstance(resources, list):
        statement = {**statement, "Resource": [one for name in resources for one in _by_region(name, narrow.regions)]}
    if narrow.tags and _ON_INSTANCES.issuperset(statement["Action"]):
        wanted = {f"acs:ResourceTag/{key}": list(values) for key, values in narrow.tags.items()}
        statement = {**statement, "Condition": {"StringEquals": wanted}}
    return statement


def _by_region(resource: str, regions: Sequence[str]) -> Iterable[str]:
    begun = next((prefix for prefix in _REGIONAL if resource.startswith(prefix)), "")
    if not (begun and regions):
        return (resource,)
    return (begun.replace("*", region) + resource[len(begun) :] for region in regions)


def _files(purpose: Purpose, narrow: Narrowing) -> Statement:
    buckets = f"acs:oss:*:*:{narrow.name}*"
    if purpose.name == "objects":
        return {"Effect": "Allow", "Action": ["oss:GetObject"], "Resource": [f"{buckets}/*"]}
    return {"Effect": "Allow", "Action": sorted(OBJECT_OPERATIONS), "Resource": [f"{buckets}/reports/*"]}


def _protections(narrow: Narrowing) -> Iterable[Statement]:
    """Machines that nobody may touch, whoever is asked; expiry tags are not among them: RAM reads no dates in tags."""
    names = (*narrow.kept_tags, *(name.title() for name in narrow.kept_tags))
    whole = policy_document(ACTING, protected_tags=spellings(names))["Statement"]
    return (one for one in whole if one["Effect"] == "Deny")
