"""Every AWS operation Costguard may call, the IAM permissions it needs, and policies made from them.

This table is the whole reach of the program: an operation that is not listed never leaves the
process, and one that changes something only leaves a session made for acting.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from costguard.guards.keys.succession import SUCCESSOR_OF
from costguard.guards.rules.common import KEEP_TAG, TAGS_DENIED_BY_ROLE
from costguard.providers.aws.compute.instances import CONTROLLER_KEYS, CONTROLLER_VALUES
from costguard.providers.kit.iam.operations import Feature, Operation, changes, reads
from costguard.providers.kit.iam.purposes import Purpose, known, reaches
from costguard.providers.kit.kms.successor import CONTEXT


def allow_succession(partition: str) -> Iterable[dict[str, Any]]:
    """To decrypt canaries and nothing else; made and tagged is only what says whose successor it is."""
    keys, aliases = (f"arn:{partition}:kms:*:*:{kind}/*" for kind in ("key", "alias"))
    told = {"Null": {f"aws:RequestTag/{SUCCESSOR_OF}": "false"}}
    canaries = {f"kms:EncryptionContext:{name}": value for name, value in CONTEXT.items()}
    yield {"Sid": "ReadKeyPolicies", "Effect": "Allow", "Action": "kms:GetKeyPolicy", "Resource": [keys]}
    yield {
        "Sid": "MakeSuccessors",
        "Effect": "Allow",
        "Action": "kms:CreateKey",
        "Resource": "*",  # there is no key yet
        "Condition": {
            **told,
            "StringEquals": {"kms:KeyOrigin": "AWS_KMS"},
            "BoolIfExists": {"kms:MultiRegion": "false", "kms:BypassPolicyLockoutSafetyCheck": "false"},
        },
    }
    tagging = {"Sid": "TagSuccessors", "Effect": "Allow", "Action": "kms:TagResource"}
    yield {**tagging, "Resource": [keys], "Condition": told}
    yield {"Sid": "MoveAliases", "Effect": "Allow", "Action": "kms:UpdateAlias", "Resource": [aliases, keys]}
    yield {
        "Sid": "EncryptCanaries",
        "Effect": "Allow",
        "Action": ["kms:Decrypt", "kms:Encrypt"],
        "Resource": [keys],
        "Condition": {"StringEquals": canaries},
    }
    # a signature has no context: give this only for keys that the rule names
    yield {"Sid": "SignCanaries", "Effect": "Allow", "Action": ["kms:Sign", "kms:Verify"], "Resource": [keys]}


def allow_keeps(partition: str) -> dict[str, Any]:
    """Tags of machines, and of those the Keep alone.

    "For all values" also holds where no tag is named (IAM guide, "Set operators"): so one has to be.
    """
    return {
        "Sid": "WriteKeeps",
        "Effect": "Allow",
        "Action": "ec2:CreateTags",
        "Resource": [f"arn:{partition}:ec2:*:*:instance/*"],
        "Condition": {"Null": {"aws:TagKeys": "false"}, "ForAllValues:StringEquals": {"aws:TagKeys": [KEEP_TAG]}},
    }


SNAPSHOTTING = ("CreateSnapshot", "CreateSnapshots")  # as `ec2:CreateAction` names them: tags are set in no other call

_OPERATIONS = (
    Operation("sts:GetCallerIdentity", Feature.IDENTITY, ()),
    # issued by the SDK's own credential providers when a profile or a web identity says so; they change nothing
    Operation("sts:AssumeRoleWithWebIdentity", Feature.IDENTITY, ()),
    Operation("sso:GetRoleCredentials", Feature.IDENTITY, ()),
    Operation("sso-oidc:CreateToken", Feature.IDENTITY, ()),
    Operation("signin:CreateOAuth2Token", Feature.IDENTITY, ()),
    *reads(Feature.MEMBERS, "sts:AssumeRole"),
    *reads(Feature.ORGANISATION, "organizations:ListAccounts"),
    *reads(
        Feature.INVENTORY,
        "ec2:DescribeRegions",
        "ec2:DescribeInstances",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeSpotInstanceRequests",
        "ec2:DescribeReservedInstances",
        "ec2:DescribeVolumes",
        "ec2:DescribeSnapshots",
        "ec2:DescribeAddresses",
        "ec2:DescribeInstanceAttribute",
    ),
    *reads(Feature.METRICS, "cloudwatch:ListMetrics", "cloudwatch:GetMetricData"),
    *reads(Feature.TRAIL, "cloudtrail:LookupEvents"),
    *reads(Feature.PRICES, "pricing:GetProducts", "ec2:DescribeSpotPriceHistory"),
    *reads(Feature.BILLING, "ce:GetCostAndUsage", "ce:ListCostAllocationTags", "organizations:DescribeOrganization"),
    Operation("budgets:DescribeBudgets", Feature.BILLING, ("budgets:ViewBudget",)),
    Operation("budgets:DescribeBudgetNotificationsForAccount", Feature.BILLING, ("budgets:ViewBudget",)),
    *changes(Feature.STOP, "ec2:StopInstances"),
    *changes(Feature.START, "ec2:StartInstances"),
    *changes(Feature.TERMINATE, "ec2:TerminateInstances"),
    *(
        Operation(f"ec2:{name}", Feature.SNAPSHOT, (f"ec2:{name}", "ec2:CreateTags"), changes_something=True)
        for name in SNAPSHOTTING
    ),
    # a mail as it is written counts as raw
    Operation("sesv2:SendEmail", Feature.MAIL, ("ses:SendEmail", "ses:SendRawEmail"), changes_something=True),
)

_KEEPING = (*changes(Feature.KEEP_TAG, "ec2:CreateTags"),)

_FREEZING = (
    *reads(Feature.FREEZE, "organizations:ListPoliciesForTarget", "iam:ListAttachedGroupPolicies"),
    *changes(
        Feature.FREEZE,
        "organizations:AttachPolicy",
        "organizations:DetachPolicy",
        "iam:AttachGroupPolicy",
        "iam:DetachGroupPolicy",
    ),
)

_KEYS = (
    *reads(
        Feature.KEYS,
        "kms:ListKeys",
        "kms:ListAliases",
        "kms:DescribeKey",
        "kms:GetKeyRotationStatus",
        "kms:ListKeyRotations",
        "kms:ListResourceTags",
        "ec2:DescribeVolumes",  # which disks a key is used by
    ),
)

_ROTATING = changes(Feature.ROTATE, "kms:EnableKeyRotation", "kms:RotateKeyOnDemand")

_SUCCEEDING = (
    *reads(Feature.SUCCEED, "kms:GetKeyPolicy", "kms:Encrypt", "kms:Decrypt", "kms:Sign", "kms:Verify"),
    Operation("kms:CreateKey", Feature.SUCCEED, ("kms:CreateKey", "kms:TagResource"), changes_something=True),
    *changes(Feature.SUCCEED, "kms:UpdateAlias"),
)

_NETWORK = (
    *reads(
        Feature.NETWORK,
        "ec2:DescribeVpcs",
        "ec2:DescribeSubnets",
        "ec2:DescribeRouteTables",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSecurityGroupRules",
        "ec2:DescribeNetworkAcls",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeAddresses",
        "ec2:DescribeNatGateways",
        "ec2:DescribeFlowLogs",
        "ec2:DescribeVpcPeeringConnections",
        "ec2:GetManagedPrefixListEntries",
        "ec2:DescribeInstances",  # whether their metadata answers without a token
        "pricing:GetProducts",  # what addresses and NAT gateways cost
    ),
)

_MENDING = (
    *changes(
        Feature.FIX_NETWORK,
        "ec2:ReleaseAddress",
        "ec2:DisassociateAddress",
        "ec2:AssociateAddress",
        "ec2:RevokeSecurityGroupIngress",
        "ec2:AuthorizeSecurityGroupIngress",
        "ec2:ModifyInstanceMetadataOptions",
    ),
    # passing a role only where records go to a log group, delivering only where they do not
    Operation(
        "ec2:CreateFlowLogs",
        Feature.FIX_NETWORK,
        ("ec2:CreateFlowLogs", "logs:CreateLogDelivery", "iam:PassRole"),
        changes_something=True,
    ),
    Operation(
        "ec2:DeleteFlowLogs",
        Feature.FIX_NETWORK,
        ("ec2:DeleteFlowLogs", "logs:DeleteLogDelivery"),
        changes_something=True,
    ),
)

_SECRETS = reads(Feature.SECRETS, "secretsmanager:GetSecretValue")

REACH = reaches(
    *(*_NETWORK, *_KEYS, *_OPERATIONS, *_KEEPING, *_FREEZING, *_ROTATING, *_SUCCEEDING, *_MENDING, *_SECRETS),
    by_sdk={Feature.IDENTITY, Feature.MEMBERS},  # a profile may say that its credentials are a role's
)
OPERATIONS = REACH[Purpose.GUARD]
KNOWN_OPERATIONS = known(REACH)


def permission_for(operation: str) -> str:
    """The permissions `operation` needs, for people; the operation's own name where it is not listed."""
    known = KNOWN_OPERATIONS.get(operation)
    return operation if known is None else " and ".join(known.permissions)


def policy_document(
    features: Collection[Feature],
    *,
    partition: str = "aws",
    role_arns: Collection[str] = (),
    flow_log_roles: Collection[str] = (),
    spot_may_terminate: bool = False,
    protected_tags: Collection[str] = TAGS_DENIED_BY_ROLE,
) -> dict[str, Any]:
    """An IAM policy that allows exactly what `features` call, and denies acting on what is protected.

    `role_arns` are the member roles that `MEMBERS` may assume: without any, assuming is not granted. `flow_log_roles`
    are those that `FIX_NETWORK` may hand to flow logs of a log group: without any, it hands over none.
    Stopping and terminating is not granted for machines with a controller's tag (`managed.py`), as far as IAM can name
    it: where only the beginning of a tag is known, the rails alone hold it.
    Denials hold whatever else is attached: Spot (unless allowed), machines that an AWS service operates,
    autoscaled and EKS nodes, and any instance or volume with a protection tag. IAM compares tag names
    without case, but not spelling variants beyond `-` and `_`: costguard's own rails cover those.
    """
    every = (*_OPERATIONS, *_KEYS, *_ROTATING, *_SUCCEEDING, *_NETWORK, *_MENDING, *_KEEPING)
    wanted = [operation for operation in every if operation.feature in features]
    reads = sorted(
        {
            permission
            for operation in wanted
            if not operation.changes_something and operation.feature not in {Feature.MEMBERS, Feature.SUCCEED}
            for permission in operation.permissions
        }
    )
    statements: list[dict[str, Any]] = []
    if reads:
        statements.append({"Sid": "Read", "Effect": "Allow", "Action": reads, "Resource": "*"})
    if Feature.MEMBERS in features and role_arns:
        statements.append(
            {"Sid": "Assume", "Effect": "Allow", "Action": "sts:AssumeRole", "Resource": sorted(role_arns)}
        )
    mails = sorted(
        {name for operation in wanted if operation.feature is Feature.MAIL for name in operation.permissions}
    )
    if mails:
        senders = f"arn:{partition}:ses:*:*:identity/*"
        statements.append({"Sid": "SendMail", "Effect": "Allow", "Action": mails, "Resource": [senders]})
    rotates = sorted({one.name for one in wanted if one.feature is Feature.ROTATE})
    if rotates:
        keys = f"arn:{partition}:kms:*:*:key/*"
        statements.append({"Sid": "RotateKeys", "Effect": "Allow", "Action": rotates, "Resource": [keys]})
    if Feature.SUCCEED in features:
        statements += allow_succession(partition)
    if Feature.FIX_NETWORK in features:
        statements += _allow_mends(partition, flow_log_roles)
    if Feature.KEEP_TAG in features:
        statements.append(allow_keeps(partition))
    of_their_own = {Feature.MAIL, Feature.ROTATE, Feature.SUCCEED, Feature.FIX_NETWORK, Feature.KEEP_TAG}
    changes = sorted({one.name for one in wanted if one.changes_something and one.feature not in of_their_own})
    if changes:
        statements += _allow_changes(changes, partition)
        statements += _deny_protected(changes, partition, protected_tags, spot_may_terminate=spot_may_terminate)
    return {"Version": "2012-10-17", "Statement": statements}


_HARMFUL = frozenset({"ec2:StopInstances", "ec2:TerminateInstances"})

# in the grant, not in a denial each: a managed policy holds 6,144 characters, and conditions in a statement are "and".
_UNLESS_CONTROLLED = {
    "Null": {f"aws:ResourceTag/{key}": "true" for key in CONTROLLER_KEYS},
    "StringNotEquals": {f"aws:ResourceTag/{key}": value for key, value in CONTROLLER_VALUES.items()},
}


def _arns(partition: str, *kinds: str) -> list[str]:
    # a snapshot's ARN has no account: an empty field, which `*` matches as well
    return [f"arn:{partition}:ec2:*:*:{kind}/*" for kind in kinds]


_MENDS = (
    (
        "MendAddresses",
        ("ec2:AssociateAddress", "ec2:DisassociateAddress", "ec2:ReleaseAddress"),
        ("elastic-ip", "instance", "network-interface"),
    ),
    (
        "MendRules",
        ("ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress"),
        ("security-group", "security-group-rule"),
    ),
    (
        "MendFlowLogs",
        ("ec2:CreateFlowLogs", "ec2:DeleteFlowLogs"),
        ("vpc-flow-log", "vpc", "subnet", "network-interface"),
    ),
    ("MendMetadataOptions", ("ec2:ModifyInstanceMetadataOptions",), ("instance",)),
)


def _allow_mends(partition: str, flow_log_roles: Collection[str]) -> Iterable[dict[str, Any]]:
    for sid, actions, kinds in _MENDS:
        yield {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": _arns(partition, *kinds)}
    # of the bucket itself nothing: with s3:PutBucketPolicy AWS would overwrite the policy it has
    deliveries = ["logs:CreateLogDelivery", "logs:DeleteLogDelivery"]
    yield {"Sid": "DeliverFlowLogs", "Effect": "Allow", "Action": deliveries, "Resource": "*"}
    if flow_log_roles:
        yield {
            "Sid": "PassFlowLogRole",
            "Effect": "Allow",
            "Action": "iam:PassRole",
            "Resource": sorted(flow_log_roles),
            "Condition": {"StringEquals": {"iam:PassedToService": "vpc-flow-logs.amazonaws.com"}},
        }


def _allow_changes(changes: list[str], partition: str) -> Iterable[dict[str, Any]]:
    machines = _arns(partition, "instance")
    if "ec2:StartInstances" in changes:
        yield {"Sid": "StartInstances", "Effect": "Allow", "Action": ["ec2:StartInstances"], "Resource": machines}
    harmful = [name for name in changes if name in _HARMFUL]
    if harmful:
        yield {
            "Sid": "ActOnInstances",
            "Effect": "Allow",
            "Action": harmful,
            "Resource": machines,
            "Condition": _UNLESS_CONTROLLED,
        }
    if "ec2:CreateSnapshot" in changes:
        both, volumes, copies = [f"ec2:{one}" for one in SNAPSHOTTING], *_arns(partition, "volume", "snapshot")
        making = {"StringEquals": {"ec2:CreateAction": list(SNAPSHOTTING)}}
        # service authorization reference: CreateSnapshots is asked of the instance, each volume and each snapshot
        yield {"Sid": "SnapshotVolumes", "Effect": "Allow", "Action": both, "Resource": [volumes, copies]}
        yield {"Sid": "SnapshotSets", "Effect": "Allow", "Action": ["ec2:CreateSnapshots"], "Resource": machines}
        tagging = {"Sid": "TagOwnSnapshots", "Effect": "Allow", "Action": "ec2:CreateTags", "Resource": [copies]}
        yield {**tagging, "Condition": making}


def _deny_protected(
    changes: list[str], partition: str, protected_tags: Collection[str], *, spot_may_terminate: bool
) -> Iterable[dict[str, Any]]:
    harmful = [name for name in changes if name in _HARMFUL]
    if not harmful:
        return
    spot = [name for name in harmful if not (spot_may_terminate and name == "ec2:TerminateInstances")]
    if spot:
        yield _deny("Spot", spot, partition, {"StringEquals": {"ec2:InstanceMarketType": "spot"}})
    yield _deny("ManagedByAService", harmful, partition, {"Null": {"ec2:ManagedResourceOperator": "false"}})
    keepers = ("aws:autoscaling:groupName", "aws:eks:cluster-name", "eks:cluster-name")
    names = [*keepers, *sorted({form for tag in protected_tags for form in (tag, tag.replace("-", "_"))})]
    for name in names:
        words = re.split("[^A-Za-z0-9]+", name.replace("_", "-us-"))
        sid = "Tag" + "".join(word.capitalize() for word in words)
        yield _deny(sid, harmful, partition, {"Null": {f"aws:ResourceTag/{name}": "false"}})


def _deny(sid: str, actions: list[str], partition: str, condition: dict[str, Any]) -> dict[str, Any]:
    return {
        "Sid": f"Never{sid}",
        "Effect": "Deny",
        "Action": actions,
        "Resource": _arns(partition, "instance"),
        "Condition": condition,
    }
