"""Every Tencent Cloud operation Costguard may call, the CAM permissions it needs, and policies made from them.

This table is the whole reach of the program: an operation that is not listed never leaves the
process, and one that changes something only leaves a session made for acting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from costguard.providers.kit.iam.operations import Feature, Operation, changes, reads
from costguard.providers.kit.iam.purposes import Purpose, known, reaches


def _finance(*actions: str) -> Iterable[Operation]:
    return (Operation(f"billing:{action}", Feature.BILLING, (f"finance:{action}",)) for action in actions)


_OPERATIONS = (
    Operation("sts:GetCallerIdentity", Feature.IDENTITY, ()),
    *reads(Feature.MEMBERS, "sts:AssumeRole"),
    *reads(Feature.ORGANISATION, "organization:DescribeOrganizationMembers"),
    *reads(
        Feature.INVENTORY,
        "region:DescribeRegions",
        "cvm:DescribeInstances",
        "cvm:DescribeZoneInstanceConfigInfos",
        "cvm:DescribeInstanceTypeConfigs",
        "as:DescribeAutoScalingInstances",
        "tke:DescribeClusters",
        "tke:DescribeClusterInstances",
        "cbs:DescribeDisks",
        "cbs:DescribeSnapshots",
        "vpc:DescribeAddresses",
    ),
    *reads(Feature.METRICS, "monitor:DescribeBaseMetrics", "monitor:GetMonitorData"),
    *reads(Feature.PRICES, "cbs:InquiryPriceCreateDisks"),
    *reads(Feature.TRAIL, "cloudaudit:DescribeEvents"),
    *reads(
        Feature.KEYS,
        "kms:GetRegions",
        "kms:GetServiceStatus",
        "kms:ListKeyDetail",
        "tag:DescribeResourceTagsByResourceIds",
    ),
    # vpc:DescribeAddresses is above: kept addresses are a part of the inventory
    *reads(
        Feature.NETWORK,
        "vpc:DescribeVpcs",
        "vpc:DescribeSubnets",
        "vpc:DescribeRouteTables",
        "vpc:DescribeSecurityGroups",
        "vpc:DescribeSecurityGroupAssociationStatistics",
        "vpc:DescribeSecurityGroupPolicies",
        "vpc:DescribeAddressTemplates",
        "vpc:DescribeAddressTemplateGroups",
        "vpc:DescribeServiceTemplates",
        "vpc:DescribeServiceTemplateGroups",
        "vpc:DescribeNetworkAcls",
        "vpc:DescribeNetworkAclQuintupleEntries",
        "vpc:DescribeNetworkInterfaces",
        "vpc:DescribeNatGateways",
        "vpc:DescribeNatGatewayDestinationIpPortTranslationNatRules",
        "vpc:DescribeFlowLogs",
        "vpc:DescribeVpcPeeringConnections",
        "vpc:InquiryPriceAllocateAddresses",
    ),
    # the bill's actions stand under `finance` in CAM ("Granting Billing-related CAM Access")
    *_finance(
        "DescribeBillDetail",
        "DescribeBillDetailForOrganization",
        "DescribeBillSummaryByProduct",
        "DescribeBillSummaryByRegion",
        "DescribeBillSummaryByTag",
        "DescribeBillSummaryForOrganization",
        "DescribeCostExplorerSummary",
        "DescribeBudget",
    ),
    *changes(Feature.STOP, "cvm:StopInstances"),
    *changes(Feature.START, "cvm:StartInstances"),
    *changes(Feature.TERMINATE, "cvm:TerminateInstances"),
    *changes(Feature.SNAPSHOT, "cbs:CreateSnapshot"),
)

_KEEPING = (*changes(Feature.KEEP_TAG, "tag:TagResources"),)

_FREEZING = (
    *reads(Feature.FREEZE, "organization:ListPoliciesForTarget", "cam:ListAttachedGroupPolicies"),
    *changes(
        Feature.FREEZE,
        "organization:AttachPolicy",
        "organization:DetachPolicy",
        "cam:AttachGroupPolicy",
        "cam:DetachGroupPolicy",
    ),
)

_ROTATING = changes(Feature.ROTATE, "kms:EnableKeyRotation", "kms:RotateKey")

_MENDING = tuple(
    changes(
        Feature.FIX_NETWORK,
        "vpc:ReleaseAddresses",
        "vpc:DisassociateAddress",
        "vpc:AssociateAddress",
        "vpc:CreateSecurityGroupPolicies",
        "vpc:ReplaceSecurityGroupPolicy",
        "vpc:DeleteSecurityGroupPolicies",
        "vpc:CreateFlowLog",
        "vpc:DeleteFlowLog",
    )
)

_SECRETS = reads(Feature.SECRETS, "ssm:GetSecretValue")

REACH = reaches(
    *_OPERATIONS,
    *_KEEPING,
    *_FREEZING,
    *_ROTATING,
    *_MENDING,
    *_SECRETS,
    also={Purpose.ROTATE: ("cbs:DescribeDisks",), Purpose.MEND: ("vpc:DescribeAddresses",)},
)
OPERATIONS = REACH[Purpose.GUARD]
KNOWN_OPERATIONS = known(REACH)

ALSO_USED = {
    Feature.PRICES: ("cvm:DescribeZoneInstanceConfigInfos",),
    Feature.TERMINATE: ("cvm:DescribeInstances",),
    Feature.SNAPSHOT: ("cbs:DescribeSnapshots",),
    Feature.KEYS: ("cbs:DescribeDisks",),
    Feature.NETWORK: ("vpc:DescribeAddresses",),
    Feature.FIX_NETWORK: (
        "vpc:DescribeAddresses",
        "vpc:DescribeFlowLogs",
        "vpc:DescribeNetworkInterfaces",
        "vpc:DescribeSecurityGroupPolicies",
    ),
}
"""Operations listed for another feature that this one calls as well: who changes looks first, and keys have users."""


def permission_for(operation: str) -> str:
    """The permissions `operation` needs, for people; the operation's own name where it is not listed."""
    known = KNOWN_OPERATIONS.get(operation)
    return operation if known is None else " and ".join(known.permissions)


def policy_document(
    features: Collection[Feature], *, account: str = "", role_arns: Collection[str] = ()
) -> dict[str, Any]:
    """A CAM policy that allows exactly what `features` call.

    `role_arns` are the member roles that `MEMBERS` may assume: without any, assuming is not granted. With an
    `account` (the number of its owner, the uin), what changes something is limited to that account's machines.
    CAM knows tags by key and value only, so a tag that protects whatever its value cannot be written as a
    denial: Costguard's own rails are the only lock there.
    """
    wanted = [
        operation for operation in (*_OPERATIONS, *_ROTATING, *_MENDING, *_KEEPING) if operation.feature in features
    ]
    reads = {
        permission
        for operation in wanted
        if not operation.changes_something and operation.feature is not Feature.MEMBERS
        for permission in operation.permissions
    }
    reads |= {name for feature in features for name in ALSO_USED.get(feature, ())}
    statements: list[dict[str, Any]] = []
    if reads:
        statements.append({"effect": "allow", "action": sorted(reads), "resource": ["*"]})
    if Feature.MEMBERS in features and role_arns:
        statements.append({"effect": "allow", "action": ["sts:AssumeRole"], "resource": sorted(role_arns)})
    changes = sorted(operation.name for operation in wanted if operation.changes_something)
    machines = [name for name in changes if name.startswith("cvm:")]
    if machines:
        resource = f"qcs::cvm::uin/{account}:instance/*" if account else "*"
        statements.append({"effect": "allow", "action": machines, "resource": [resource]})
    if "cbs:CreateSnapshot" in changes:
        # of a disk, but a snapshot has no id yet and CAM's pages name no resource for it
        statements.append({"effect": "allow", "action": ["cbs:CreateSnapshot"], "resource": ["*"]})
    rotations = [name for name in changes if name.startswith("kms:")]
    if rotations:
        resource = f"qcs::kms::uin/{account}:key/*" if account else "*"
        statements.append({"effect": "allow", "action": rotations, "resource": [resource]})
    if Feature.KEEP_TAG in features:
        # CAM compares tags of a request by key and value ("Condition Keys and Condition Operators"), and each Keep's
        # value is its own: which tag is written, the session's reach alone narrows
        resource = f"qcs::cvm::uin/{account}:instance/*" if account else "*"
        statements.append({"effect": "allow", "action": ["tag:TagResources"], "resource": [resource]})
    groups = [name for name in changes if name.endswith(("SecurityGroupPolicies", "SecurityGroupPolicy"))]
    if groups:
        resource = f"qcs::vpc::uin/{account}:sg/*" if account else "*"
        statements.append({"effect": "allow", "action": groups, "resource": [resource]})
    networks = [name for name in changes if name.startswith("vpc:") and name not in groups]
    if networks:
        # of an address, what it is bound to, and a log that has no id yet: CAM's pages name each differently
        statements.append({"effect": "allow", "action": networks, "resource": ["*"]})
    return {"version": "2.0", "statement": statements}
