"""Every AWS operation Costguard may call, the IAM permissions it needs, and policies made from them.

This table is the whole reach of the program: an operation that is not listed never leaves the
process, and one that changes something only leaves a session made for acting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from costguard.guards.rules import Protection
from costguard.providers.operations import Feature, Operation


def _reads(feature: Feature, *names: str) -> Iterable[Operation]:
    return (Operation(name, feature, (name,)) for name in names)


_OPERATIONS = (
    Operation("sts:GetCallerIdentity", Feature.IDENTITY, ()),
    # issued by the SDK's own credential providers when a profile or a web identity says so; they change nothing
    Operation("sts:AssumeRoleWithWebIdentity", Feature.IDENTITY, ()),
    Operation("sso:GetRoleCredentials", Feature.IDENTITY, ()),
    Operation("sso-oidc:CreateToken", Feature.IDENTITY, ()),
    Operation("signin:CreateOAuth2Token", Feature.IDENTITY, ()),
    *_reads(Feature.MEMBERS, "sts:AssumeRole"),
    *_reads(Feature.ORGANISATION, "organizations:ListAccounts"),
    *_reads(
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
    *_reads(Feature.METRICS, "cloudwatch:ListMetrics", "cloudwatch:GetMetricData", "cloudwatch:GetMetricStatistics"),
    *_reads(Feature.PRICES, "pricing:GetProducts", "ec2:DescribeSpotPriceHistory"),
    *_reads(Feature.BILLING, "ce:GetCostAndUsage", "ce:ListCostAllocationTags", "organizations:DescribeOrganization"),
    Operation("budgets:DescribeBudgets", Feature.BILLING, ("budgets:ViewBudget",)),
    Operation("budgets:DescribeBudgetNotificationsForAccount", Feature.BILLING, ("budgets:ViewBudget",)),
    Operation("ec2:StopInstances", Feature.STOP, ("ec2:StopInstances",), changes_something=True),
    Operation("ec2:StartInstances", Feature.START, ("ec2:StartInstances",), changes_something=True),
    Operation("ec2:TerminateInstances", Feature.TERMINATE, ("ec2:TerminateInstances",), changes_something=True),
    Operation("ec2:CreateSnapshot", Feature.SNAPSHOT, ("ec2:CreateSnapshot", "ec2:CreateTags"), changes_something=True),
    # a mail as it is written counts as raw
    Operation("sesv2:SendEmail", Feature.MAIL, ("ses:SendEmail", "ses:SendRawEmail"), changes_something=True),
)

_FREEZING = (
    *_reads(Feature.FREEZE, "organizations:ListPoliciesForTarget", "iam:ListAttachedGroupPolicies"),
    *(
        Operation(name, Feature.FREEZE, (name,), changes_something=True)
        for name in (
            "organizations:AttachPolicy",
            "organizations:DetachPolicy",
            "iam:AttachGroupPolicy",
            "iam:DetachGroupPolicy",
        )
    ),
)

_KEYS = (
    *_reads(
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

_ROTATING = tuple(
    Operation(name, Feature.ROTATE, (name,), changes_something=True)
    for name in ("kms:EnableKeyRotation", "kms:RotateKeyOnDemand")
)

OPERATIONS = {
    operation.name: operation for operation in (*_KEYS, *_OPERATIONS) if operation.feature is not Feature.MAIL
}

# assuming a role: a profile of the SDK may say that its credentials are a role's
_MAILING = frozenset({Feature.IDENTITY, Feature.MEMBERS, Feature.MAIL})
MAIL_OPERATIONS = {operation.name: operation for operation in _OPERATIONS if operation.feature in _MAILING}
"""The whole reach of a session that sends mail: it can change no machine, and those that can send no mail."""

FREEZE_OPERATIONS = {
    operation.name: operation
    for operation in (*_OPERATIONS, *_FREEZING)
    if operation.feature in {Feature.IDENTITY, Feature.MEMBERS, Feature.FREEZE}
}
"""The whole reach of a session that freezes launches: it can touch no machine, and no other can touch a policy.

What its role needs is narrower than these names: see freeze_policy.py.
"""

ROTATION_OPERATIONS = {
    operation.name: operation
    for operation in (*_OPERATIONS, *_KEYS, *_ROTATING)
    if operation.feature in {Feature.IDENTITY, Feature.MEMBERS, Feature.KEYS, Feature.ROTATE}
}
"""The whole reach of a session that rotates keys: nothing that disables, deletes or imports one is in any table."""

_ALL = {**OPERATIONS, **MAIL_OPERATIONS, **FREEZE_OPERATIONS, **ROTATION_OPERATIONS}


def permission_for(operation: str) -> str:
    """The permissions `operation` needs, for people; the operation's own name where it is not listed."""
    known = _ALL.get(operation)
    return operation if known is None else " and ".join(known.permissions)


def policy_document(
    features: Collection[Feature],
    *,
    partition: str = "aws",
    role_arns: Collection[str] = (),
    spot_may_terminate: bool = False,
    protected_tags: Collection[str] = Protection().tag_names,
) -> dict[str, Any]:
    """An IAM policy that allows exactly what `features` call, and denies acting on what is protected.

    `role_arns` are the member roles that `MEMBERS` may assume: without any, assuming is not granted.
    Denials hold whatever else is attached: Spot (unless allowed), machines that an AWS service operates,
    autoscaled and EKS nodes, and any instance or volume with a protection tag. IAM compares tag names
    without case, but not spelling variants beyond `-` and `_`: costguard's own rails cover those.
    """
    wanted = [operation for operation in (*_OPERATIONS, *_KEYS, *_ROTATING) if operation.feature in features]
    reads = sorted(
        {
            permission
            for operation in wanted
            if not operation.changes_something and operation.feature is not Feature.MEMBERS
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
    of_their_own = {Feature.MAIL, Feature.ROTATE}
    changes = sorted({one.name for one in wanted if one.changes_something and one.feature not in of_their_own})
    if changes:
        statements += _allow_changes(changes, partition)
        statements += _deny_protected(changes, partition, protected_tags, spot_may_terminate=spot_may_terminate)
    return {"Version": "2012-10-17", "Statement": statements}


def _arns(partition: str, *kinds: str) -> list[str]:
    # a snapshot's ARN has no account: an empty field, which `*` matches as well
    return [f"arn:{partition}:ec2:*:*:{kind}/*" for kind in kinds]


def _allow_changes(changes: list[str], partition: str) -> Iterable[dict[str, Any]]:
    instances = [name for name in changes if name != "ec2:CreateSnapshot"]
    if instances:
        yield {
            "Sid": "ActOnInstances",
            "Effect": "Allow",
            "Action": instances,
            "Resource": _arns(partition, "instance"),
        }
    if "ec2:CreateSnapshot" in changes:
        yield {
            "Sid": "SnapshotVolumes",
            "Effect": "Allow",
            "Action": "ec2:CreateSnapshot",
            "Resource": _arns(partition, "volume", "snapshot"),
        }
        yield {
            "Sid": "TagOwnSnapshots",
            "Effect": "Allow",
            "Action": "ec2:CreateTags",
            "Resource": _arns(partition, "snapshot"),
            "Condition": {"StringEquals": {"ec2:CreateAction": "CreateSnapshot"}},
        }


def _deny_protected(
    changes: list[str], partition: str, protected_tags: Collection[str], *, spot_may_terminate: bool
) -> Iterable[dict[str, Any]]:
    harmful = [name for name in changes if name in {"ec2:StopInstances", "ec2:TerminateInstances"}]
    if not harmful:
        return
    spot = [name for name in harmful if not (spot_may_terminate and name == "ec2:TerminateInstances")]
    if spot:
        yield _deny("Spot", spot, partition, {"StringEquals": {"ec2:InstanceMarketType": "spot"}})
    yield _deny("ManagedByAService", harmful, partition, {"Null": {"ec2:ManagedResourceOperator": "false"}})
    keepers = ("aws:autoscaling:groupName", "aws:eks:cluster-name", "eks:cluster-name")
    names = [*keepers, *sorted({form for tag in protected_tags for form in (tag, tag.replace("-", "_"))})]
    for name in names:
        sid = "Tag" + "".join(part.capitalize() for part in name.replace(":", "-").replace("_", "-us-").split("-"))
        yield _deny(sid, harmful, partition, {"Null": {f"aws:ResourceTag/{name}": "false"}})


def _deny(sid: str, actions: list[str], partition: str, condition: dict[str, Any]) -> dict[str, Any]:
    return {
        "Sid": f"Never{sid}",
        "Effect": "Deny",
        "Action": actions,
        "Resource": _arns(partition, "instance"),
        "Condition": condition,
    }
