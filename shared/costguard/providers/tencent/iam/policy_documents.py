"""The CAM policy documents of every purpose, made from the tables in permissions.py.

A resource without an account is of the account that the policy is written in (CAM, "Resource Description Method").
The ledger is PostgreSQL and mail goes by SMTP, which ask for no permission of CAM, and no key has an alias that could
be moved: `ledger`, `clicks`, `mail` and `succeed` have no document.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.providers.kit.iam.operations import Feature
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
from costguard.providers.tencent.core.services import OBJECT_OPERATIONS
from costguard.providers.tencent.iam.freeze_policy import role_policy
from costguard.providers.tencent.iam.permissions import ALSO_USED, policy_document

Statement = dict[str, Any]

WITHOUT = frozenset({"ledger", "clicks", "mail", "succeed"})
_OF_PEOPLE = frozenset({"finance:DescribeBudget"})  # no function asks for the console's budgets
_LISTED = {
    Lists.REGIONS: ("region:DescribeRegions",),
    Lists.MACHINES: (
        "as:DescribeAutoScalingInstances",
        "cvm:DescribeInstanceTypeConfigs",
        "cvm:DescribeInstances",
        "cvm:DescribeZoneInstanceConfigInfos",
        "region:DescribeRegions",
        "tke:DescribeClusterInstances",
        "tke:DescribeClusters",
    ),
}
_ON_INSTANCES = frozenset({"cvm:StartInstances", "cvm:StopInstances", "cvm:TerminateInstances"})
_SAID_OF_A_KEPT_TAG = ("", "1", "on", "true", "yes")

# each is what a run has no business with; what Costguard does itself is not among it
_NEVER: Sequence[str] = (
    "cam:Add*",
    "cam:AttachRolePolicies",
    "cam:AttachRolePolicy",
    "cam:AttachUserPolicies",
    "cam:AttachUserPolicy",
    "cam:Create*",
    "cam:Delete*",
    "cam:DetachRolePolicies",
    "cam:DetachRolePolicy",
    "cam:DetachUserPolicies",
    "cam:DetachUserPolicy",
    "cam:PassRole",
    "cam:Put*",
    "cam:Remove*",
    "cam:Set*",
    "cam:Update*",
    "cbs:ApplySnapshot*",
    "cbs:DeleteSnapshot*",
    "cbs:DetachDisks",
    "cbs:TerminateDisks",
    "cloudaudit:Delete*",
    "cloudaudit:StopLogging",
    "cvm:DeleteImages",
    "cvm:ModifyInstancesAttribute",
    "cvm:ResetInstance",
    "cvm:RunInstances",
    "kms:ArchiveKey",
    "kms:DeleteImportedKeyMaterial",
    "kms:DisableKey",
    "kms:DisableKeyRotation",
    "kms:DisableKeys",
    "kms:ImportKeyMaterial",
    "kms:ScheduleKeyDeletion",
    "name/cos:Delete*",
    "name/cos:PutBucket*",
    "organization:Create*",
    "organization:Delete*",
    "organization:Update*",
    "ssm:DeleteSecret*",
    "ssm:PutSecretValue",
    "ssm:UpdateSecret",
    "tag:DeleteResourceTag",
    "tag:ModifyResourceTags",
    "tag:UnTagResources",
    "vpc:DeleteRoute*",
    "vpc:DeleteSecurityGroup",
    "vpc:DeleteSubnet",
    "vpc:DeleteVpc",
)


def documents(narrow: Narrowing = EVERYWHERE) -> dict[str, Document]:
    """The document of every purpose that has one, by its name."""
    made = {name: _statements(purpose, narrow) for name, purpose in PURPOSES.items() if name not in WITHOUT}
    return {name: {"version": "2.0", "statement": statements} for name, statements in made.items()}


def _statements(purpose: Purpose, narrow: Narrowing) -> list[Statement]:
    if purpose.name in {"objects", "reports"}:
        return [_files(purpose, narrow)]
    if purpose.name == "secrets":
        secrets = [f"qcs::ssm::{_owner(narrow)}:secret/creatorUin/*/{narrow.name}*"]
        return [{"effect": "allow", "action": ["ssm:GetSecretValue"], "resource": secrets}]
    if purpose.name == "freeze":
        return list(role_policy(LaunchFreeze("", "tencent", FreezeVia.GROUP, "", ""))["statement"])
    if purpose.name == "freeze-organisation":
        return list(role_policy(LaunchFreeze("", "tencent", FreezeVia.ORGANISATION, "", ""))["statement"])
    if purpose.name == "deny":
        return [_protection(narrow), {"effect": "deny", "action": list(_NEVER), "resource": ["*"]}]
    return _allowed(purpose, narrow)


def _allowed(purpose: Purpose, narrow: Narrowing) -> list[Statement]:
    """What the features call, as permissions.py has it. Whoever acts has what scans as well, so it has no reads."""
    role = f"qcs::cam::uin/*:roleName/{narrow.member_role}"
    whole: list[Statement] = policy_document(purpose.features, account=_ANY, role_arns=[role])["statement"]
    looks = {name for feature in purpose.features for name in ALSO_USED.get(feature, ())}
    if purpose.features & _CHANGING:
        whole = [one for one in whole if not looks.issuperset(one["action"])]
    if purpose.is_of_parts:
        (read,) = whole
        read["action"] = reads(purpose, read["action"], _OF_PEOPLE, _LISTED)
    return [_narrowed(one, narrow) for one in whole]


_ANY = "*"
_CHANGING = frozenset(
    {
        Feature.STOP,
        Feature.START,
        Feature.SNAPSHOT,
        Feature.TERMINATE,
        Feature.ROTATE,
        Feature.FIX_NETWORK,
        Feature.KEEP_TAG,
    }
)


def _narrowed(statement: Statement, narrow: Narrowing) -> Statement:
    """Regions stand in a resource's name; tags bind what is done to machines. What is on `*` stays so."""
    said = [one for name in statement["resource"] for one in _by_region(name, narrow)]
    statement = {**statement, "resource": said}
    if narrow.tags and _ON_INSTANCES.issuperset(statement["action"]):
        wanted = [f"{key}&{value}" for key, values in narrow.tags.items() for value in values]
        statement["condition"] = {"for_any_value:string_equal": {"qcs:resource_tag": wanted}}
    return statement


def _by_region(resource: str, narrow: Narrowing) -> Iterable[str]:
    head, own, tail = resource.partition(f"::uin/{_ANY}:")
    if not own or resource.startswith("qcs::cam:"):
        return (resource,)
    return (f"{head}:{region}:{_owner(narrow)}:{tail}" for region in narrow.regions or ("",))


def _owner(narrow: Narrowing) -> str:
    return f"uin/{narrow.account}" if narrow.account else ""


def _files(purpose: Purpose, narrow: Narrowing) -> Statement:
    buckets = f"qcs::cos:::{narrow.name}*"  # its owner is named by APPID, so left to be the policy's account
    if purpose.name == "objects":
        return {"effect": "allow", "action": ["name/cos:GetObject"], "resource": [f"{buckets}/*"]}
    actions = [f"name/{name}" for name in sorted(OBJECT_OPERATIONS)]
    return {"effect": "allow", "action": actions, "resource": [f"{buckets}/reports/*"]}


def _protection(narrow: Narrowing) -> Statement:
    """Kept machines by what such a tag usually says: CAM compares a tag with its value, so this is no whole lock."""
    names = spellings((*narrow.kept_tags, *(name.title() for name in narrow.kept_tags)))
    tags = [f"{name}&{value}" for name in names for value in _SAID_OF_A_KEPT_TAG]
    return {
        "effect": "deny",
        "action": ["cvm:StopInstances", "cvm:TerminateInstances"],
        "resource": [f"qcs::cvm::{_owner(narrow)}:instance/*"],
        "condition": {"for_any_value:string_equal": {"qcs:resource_tag": tags}},
    }
