"""The IAM policy documents of every purpose, made from the tables in permissions.py.

Tag keys compare without case in IAM (`aws:ResourceTag/Keep` is `aws:ResourceTag/keep`), values with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from costguard.guards.rules.common import KEEP_TAG
from costguard.providers.aws.core.services import OBJECT_OPERATIONS
from costguard.providers.aws.iam.permissions import SNAPSHOTTING, policy_document
from costguard.providers.kit.iam.operations import ACTING, Feature
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

_LEDGER = (
    "dynamodb:BatchGetItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
)
_OF_PEOPLE = frozenset({"budgets:ViewBudget"})  # no function asks for the console's budgets
_LISTED = {
    Lists.REGIONS: ("ec2:DescribeRegions",),
    Lists.MACHINES: (
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeInstances",
        "ec2:DescribeRegions",
        "ec2:DescribeReservedInstances",
        "ec2:DescribeSpotInstanceRequests",
    ),
}
_KINDS = (
    ("ReadAttributes", "ec2:*:*:instance/*", ("ec2:DescribeInstanceAttribute",)),
    ("ReadPrefixLists", "ec2:*:*:prefix-list/*", ("ec2:GetManagedPrefixListEntries",)),
    (
        "ReadKeys",
        "kms:*:*:key/*",
        ("kms:DescribeKey", "kms:GetKeyRotationStatus", "kms:ListKeyRotations", "kms:ListResourceTags"),
    ),
    ("ReadBudgets", "budgets::*:budget/*", ("budgets:ViewBudget",)),
)
_BY_REGION = frozenset({"ec2", "kms", "logs"})  # what answers in the region that it changes something in
_ON_INSTANCES = frozenset({"ec2:CreateSnapshots", "ec2:StartInstances", "ec2:StopInstances", "ec2:TerminateInstances"})

# each names what a run has no business with; what Costguard does itself is in none
_NEVER: Sequence[tuple[str, tuple[str, ...]]] = (
    (
        "NeverHarmKeys",
        (
            "kms:CancelKeyDeletion",
            "kms:Delete*",
            "kms:Disable*",
            "kms:ImportKeyMaterial",
            "kms:ScheduleKeyDeletion",
        ),
    ),
    (
        "NeverLoseWhatIsKept",
        (
            "dynamodb:Delete*",
            "ec2:DeleteSnapshot",
            "ec2:DeleteTags",
            "ec2:DeleteVolume",
            "ec2:DeregisterImage",
            "ec2:DetachVolume",
            "ec2:ModifyInstanceAttribute",
            "ec2:ModifySnapshotAttribute",
            "s3:Delete*",
            "s3:PutBucket*",
            "s3:PutLifecycleConfiguration",
            "s3:PutObjectAcl",
            "secretsmanager:Delete*",
            "secretsmanager:Put*",
            "secretsmanager:Update*",
        ),
    ),
    (
        "NeverRebuildNetworks",
        (
            "ec2:DeleteNetworkAcl*",  # its interfaces a function in a VPC takes away itself
            "ec2:DeleteRoute*",
            "ec2:DeleteSecurityGroup",
            "ec2:DeleteSubnet",
            "ec2:DeleteVpc*",
            "ec2:ModifySecurityGroupRules",
        ),
    ),
    ("NeverLaunch", ("ec2:CreateFleet", "ec2:RequestSpot*", "ec2:RunInstances")),
    (
        "NeverChangeWhoMayDoWhat",
        (
            "account:*",
            "iam:Add*",
            "iam:AttachRolePolicy",
            "iam:AttachUserPolicy",
            "iam:Create*",
            "iam:Deactivate*",
            "iam:Delete*",
            "iam:DetachRolePolicy",
            "iam:DetachUserPolicy",
            "iam:Put*",
            "iam:Remove*",
            "iam:Set*",
            "iam:Tag*",
            "iam:Untag*",
            "iam:Update*",
            "iam:Upload*",
            "organizations:Create*",
            "organizations:Delete*",
            "organizations:Disable*",
            "organizations:Enable*",
            "organizations:LeaveOrganization",
            "organizations:MoveAccount",
            "organizations:Remove*",
            "organizations:Update*",
        ),
    ),
    ("NeverBlindTheTrail", ("cloudtrail:Delete*", "cloudtrail:PutEventSelectors", "cloudtrail:StopLogging")),
)


def documents(narrow: Narrowing = EVERYWHERE) -> dict[str, Document]:
    """The document of every purpose, by its name."""
    made = {name: _statements(purpose, narrow) for name, purpose in PURPOSES.items()}
    return {name: {"Version": "2012-10-17", "Statement": statements} for name, statements in made.items()}


def _statements(purpose: Purpose, narrow: Narrowing) -> list[Statement]:
    if purpose.name in {"ledger", "clicks"}:
        tables = [f"arn:{narrow.partition}:dynamodb:*:*:table/{narrow.name}*"]
        return [_allow("KeepAnswers" if purpose.name == "clicks" else "KeepTheLedger", _LEDGER, tables)]
    if purpose.name in {"objects", "reports"}:
        return _files(purpose, narrow)
    if purpose.name == "secrets":
        secrets = [f"arn:{narrow.partition}:secretsmanager:*:*:secret:{narrow.name}*"]
        return [_allow("ReadOwnSecrets", ["secretsmanager:GetSecretValue"], secrets)]
    if purpose.name == "freeze":
        return _freezes_of_groups(narrow)
    if purpose.name == "freeze-organisation":
        return _freezes_of_organisation(narrow)
    if purpose.name == "deny":
        return [*_protections(narrow), *_refusals(narrow)]
    return _allowed(purpose, narrow)


def _allowed(purpose: Purpose, narrow: Narrowing) -> list[Statement]:
    """What the features call, as permissions.py has it; the denials are `deny`'s."""
    role = f"arn:{narrow.partition}:iam::*:role/{narrow.member_role}"
    made = policy_document(
        purpose.features, partition=narrow.partition, role_arns=[role], flow_log_roles=narrow.flow_log_roles
    )["Statement"]
    allowed: list[Statement] = [one for one in made if one["Effect"] == "Allow"]
    if purpose.is_of_parts:
        (read,) = allowed
        read["Action"] = reads(purpose, read["Action"], _OF_PEOPLE, _LISTED)
    if narrow.organisation:
        # IAM guide, "AWS global condition context keys": told of resources of accounts in an organisation, and
        # withheld of some actions, but not of sts:AssumeRole
        owned = {"StringEquals": {"aws:ResourceOrgID": narrow.organisation}}
        allowed = [{**one, "Condition": owned} if one["Sid"] == "Assume" else one for one in allowed]
    return [_narrowed(one, narrow) for whole in allowed for one in _by_kind(whole, narrow)]


def _by_kind(statement: Statement, narrow: Narrowing) -> Iterable[Statement]:
    """Reads on what they are about, as far as IAM knows it; the rest on everything."""
    if statement["Sid"] != "Read":
        return [statement]
    found = []
    named = {name for _, _, names in _KINDS for name in names}
    if rest := [name for name in statement["Action"] if name not in named]:
        found.append({**statement, "Action": rest})
    for sid, arn, names in _KINDS:
        if actions := [name for name in statement["Action"] if name in names]:
            found.append(_allow(sid, actions, [f"arn:{narrow.partition}:{arn}"]))
    return found


def _narrowed(statement: Statement, narrow: Narrowing) -> Statement:
    """Regions bind what changes something: in which ones is read, policies say; tags bind what is done to machines."""
    actions = [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
    wanted: dict[str, list[str]] = {}
    if (
        narrow.regions
        and not statement["Sid"].startswith("Read")
        and {name.split(":")[0] for name in actions} <= _BY_REGION
    ):
        wanted["aws:RequestedRegion"] = list(narrow.regions)
    if _ON_INSTANCES.issuperset(actions):
        wanted |= {f"aws:ResourceTag/{key}": list(values) for key, values in narrow.tags.items()}
    if not wanted:
        return statement
    condition = statement.get("Condition", {})
    return {**statement, "Condition": {**condition, "StringEquals": {**condition.get("StringEquals", {}), **wanted}}}


def _files(purpose: Purpose, narrow: Narrowing) -> list[Statement]:
    buckets = f"arn:{narrow.partition}:s3:::{narrow.name}*"
    if purpose.name == "objects":
        return [_allow("ReadPublishedPolicies", ["s3:GetObject"], [f"{buckets}/*"])]
    both = sorted(name for name, one in OBJECT_OPERATIONS.items() if one.feature is Feature.OBJECTS)
    return [_allow("KeepReports", both, [f"{buckets}/reports/*"])]


def _freezes_of_groups(narrow: Narrowing) -> list[Statement]:
    groups = [f"arn:{narrow.partition}:iam::*:group/*"]
    policy = f"arn:{narrow.partition}:iam::*:policy/{narrow.name}-freeze*"
    changes = ["iam:AttachGroupPolicy", "iam:DetachGroupPolicy"]
    return [
        _allow("LookAtGroups", ["iam:ListAttachedGroupPolicies"], groups),
        {**_allow("AttachTheFreezeAlone", changes, groups), "Condition": {"ArnLike": {"iam:PolicyARN": policy}}},
    ]


def _freezes_of_organisation(narrow: Narrowing) -> list[Statement]:
    targets, policies = _organisation(narrow)
    changes = ["organizations:AttachPolicy", "organizations:DetachPolicy"]
    return [
        _allow("LookAtTargets", ["organizations:ListPoliciesForTarget"], targets),
        _allow("AttachTheFreezeAlone", changes, [*policies, *targets]),
    ]


def _organisation(narrow: Narrowing) -> tuple[list[str], list[str]]:
    """What a policy is attached to, and those that may be: both are asked about, so without any nothing is allowed.

    Organizations chooses the ids (API CreatePolicy): none can stand here before the policy does.
    """
    base = f"arn:{narrow.partition}:organizations::*"
    named = [f"{base}:policy/o-*/service_control_policy/{policy}" for policy in narrow.freezing_policies]
    return [f"{base}:{kind}/o-*/*" for kind in ("account", "ou", "root")], named


def _protections(narrow: Narrowing) -> Iterable[Statement]:
    """Machines that nobody may touch, whoever is asked; expiry tags are not among them: IAM compares no dates."""
    whole = policy_document(
        ACTING,
        partition=narrow.partition,
        spot_may_terminate=narrow.spot_may_end,
        protected_tags=spellings(narrow.kept_tags),
    )["Statement"]
    return (one for one in whole if one["Effect"] == "Deny")


def _refusals(narrow: Narrowing) -> Iterable[Statement]:
    for sid, actions in _NEVER:
        yield {"Sid": sid, "Effect": "Deny", "Action": list(actions), "Resource": "*"}
    yield {
        "Sid": "NeverTagButOwnSnapshots",
        "Effect": "Deny",
        "Action": "ec2:CreateTags",
        "Resource": "*",
        "Condition": {
            "StringNotEquals": {"ec2:CreateAction": list(SNAPSHOTTING)},
            "ForAnyValue:StringNotEquals": {"aws:TagKeys": [KEEP_TAG]},
        },
    }
    yield {  # for any value of none holds nothing (IAM guide, "Set operators")
        "Sid": "NeverTagUntold",
        "Effect": "Deny",
        "Action": "ec2:CreateTags",
        "Resource": "*",
        "Condition": {
            "StringNotEquals": {"ec2:CreateAction": list(SNAPSHOTTING)},
            "Null": {"aws:TagKeys": "true"},
        },
    }
    yield {
        "Sid": "NeverPassRolesButToFlowLogs",
        "Effect": "Deny",
        "Action": "iam:PassRole",
        "Resource": "*",
        "Condition": {"StringNotEquals": {"iam:PassedToService": "vpc-flow-logs.amazonaws.com"}},
    }
    yield {
        "Sid": "NeverAttachToGroupsButTheFreeze",
        "Effect": "Deny",
        "Action": ["iam:AttachGroupPolicy", "iam:DetachGroupPolicy"],
        "Resource": "*",
        "Condition": {"ArnNotLike": {"iam:PolicyARN": f"arn:{narrow.partition}:iam::*:policy/{narrow.name}-freeze*"}},
    }
    targets, policies = _organisation(narrow)
    yield {
        "Sid": "NeverAttachInTheOrganisationButTheFreeze",
        "Effect": "Deny",
        "Action": ["organizations:AttachPolicy", "organizations:DetachPolicy"],
        "NotResource": [*policies, *targets],
    }


def _allow(sid: str, actions: Iterable[str], resources: list[str]) -> Statement:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": resources}
