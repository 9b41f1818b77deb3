"""Every Alibaba Cloud operation Costguard may call, the RAM permissions it needs, and policies made from them.

This table is the whole reach of the program: an operation that is not listed never leaves the process, and one that
changes something only leaves a session made for acting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from costguard.guards.rules.common import KEEP_TAG, TAGS_DENIED_BY_ROLE
from costguard.providers.kit.iam.operations import Feature, Operation, changes, reads
from costguard.providers.kit.iam.purposes import Purpose, known, reaches

_OPERATIONS = (
    Operation("sts:GetCallerIdentity", Feature.IDENTITY, ()),
    *reads(Feature.MEMBERS, "sts:AssumeRole"),
    # the documents of the two products that list members name the permission differently
    Operation(
        "resourcedirectory:ListAccounts",
        Feature.ORGANISATION,
        ("resourcemanager:ListAccounts", "resourcedirectory:ListAccounts"),
    ),
    *reads(
        Feature.INVENTORY,
        "ecs:DescribeRegions",
        "ecs:DescribeInstances",
        "ecs:DescribeInstanceTypes",
        "ecs:DescribeDisks",
        "ecs:DescribeSnapshots",
        "vpc:DescribeEipAddresses",
    ),
    # CloudMonitor's documents name both; which one decides is not told
    Operation("cms:DescribeMetricList", Feature.METRICS, ("cms:DescribeMetricList", "cms:QueryMetricList")),
    *reads(Feature.PRICES, "ecs:DescribePrice"),
    *reads(Feature.TRAIL, "actiontrail:LookupEvents"),
    # either `bssapi:` with the operation's name, or a name of the console's, `bss:` (BSS documents, "API calling
    # authorization"); the operations' own pages name one of them, not all the same one: all are granted
    Operation("bss:DescribeInstanceBill", Feature.BILLING, ("bssapi:DescribeInstanceBill", "bss:DescribeBillList")),
    Operation("bss:QueryBillOverview", Feature.BILLING, ("bss:DescribeBillList", "bssapi:QueryBillOverview")),
    Operation(
        "bss:DescribeCostBudgetsSummary",
        Feature.BILLING,
        ("bss:DescribeCostBudgetsSummary", "bssapi:DescribeCostBudgetsSummary"),
    ),
    *changes(Feature.STOP, "ecs:StopInstances"),
    *changes(Feature.START, "ecs:StartInstances"),
    *changes(Feature.TERMINATE, "ecs:DeleteInstances"),
    # tags set while creating are authorised by the creating call, except where a policy demands ecs:TagResources
    Operation(
        "ecs:CreateSnapshot", Feature.SNAPSHOT, ("ecs:CreateSnapshot", "ecs:TagResources"), changes_something=True
    ),
    *changes(Feature.MAIL, "dm:SingleSendMail"),
)

_KEEPING = (*changes(Feature.KEEP_TAG, "ecs:TagResources"),)

_FREEZING = (
    *(
        # as with the list of members, the documents of two products name the permission differently
        Operation(
            f"resourcedirectory:{name}",
            Feature.FREEZE,
            (f"resourcemanager:{name}", f"resourcedirectory:{name}"),
            changes_something=not name.startswith("List"),
        )
        for name in ("ListControlPolicyAttachmentsForTarget", "AttachControlPolicy", "DetachControlPolicy")
    ),
    *reads(Feature.FREEZE, "ram:ListPoliciesForGroup"),
    *changes(Feature.FREEZE, "ram:AttachPolicyToGroup", "ram:DetachPolicyFromGroup"),
)

_KEYS = (
    *reads(
        Feature.KEYS,
        "kms:ListKeys",
        "kms:ListAliases",
        "kms:DescribeKey",
        "kms:ListTagResources",
        "kms:DescribeAccountKmsStatus",
        "ecs:DescribeDisks",  # which disks a key is used by
    ),
    Operation("kms:DescribeRegions", Feature.KEYS, ()),  # asks for no permission, by its documents
)
_ROTATING = changes(Feature.ROTATE, "kms:UpdateRotationPolicy", "kms:CreateKeyVersion")

_SUCCEEDING = (
    *reads(Feature.SUCCEED, "kms:GetKeyPolicy", "kms:Encrypt", "kms:Decrypt"),
    Operation("kms:CreateKey", Feature.SUCCEED, ("kms:CreateKey", "kms:TagResource"), changes_something=True),
    *changes(Feature.SUCCEED, "kms:UpdateAlias"),
)

_NETWORK = (
    *reads(
        Feature.NETWORK,
        "vpc:DescribeVpcs",
        "vpc:DescribeVSwitches",
        "vpc:DescribeRouteTableList",
        "vpc:DescribeRouteEntryList",
        "vpc:DescribeNetworkAcls",
        "vpc:DescribeNetworkAclAttributes",
        "vpc:DescribeEipAddresses",
        "vpc:DescribeNatGateways",
        "vpc:DescribeForwardTableEntries",
        "vpc:DescribeFlowLogs",
        "vpc:ListIpv4Gateways",
        "vpc:DescribeIpv6Addresses",
        "ecs:DescribeSecurityGroups",
        "ecs:DescribeSecurityGroupAttribute",
        "ecs:DescribeSecurityGroupReferences",
        "ecs:DescribeNetworkInterfaces",
        "ecs:DescribePrefixListAttributes",
        "ecs:DescribePortRangeListEntries",
        "ecs:DescribeInstances",  # which plain public address is whose, and whether metadata answers without a token
    ),
    Operation("vpcpeer:ListVpcPeerConnections", Feature.NETWORK, ("vpc:ListVpcPeerConnections",)),
    # what addresses and gateways cost; named as bills are, and on the page of DescribePricingModule in a third way
    Operation("bss:GetPayAsYouGoPrice", Feature.NETWORK, ("bss:DescribePrice", "bssapi:GetPayAsYouGoPrice")),
    Operation(
        "bss:DescribePricingModule",
        Feature.NETWORK,
        ("bss:DescribeProduct", "bss:DescribePricingModule", "bssapi:DescribePricingModule"),
    ),
)
_MENDING = tuple(
    changes(
        Feature.FIX_NETWORK,
        "vpc:ReleaseEipAddress",
        "vpc:UnassociateEipAddress",
        "vpc:AssociateEipAddress",
        "vpc:CreateFlowLog",
        "vpc:DeleteFlowLog",
        "ecs:RevokeSecurityGroup",
        "ecs:AuthorizeSecurityGroup",
        "ecs:ModifyInstanceMetadataOptions",
    )
)

_SECRETS = reads(Feature.SECRETS, "kms:GetSecretValue")

REACH = reaches(*_NETWORK, *_KEYS, *_OPERATIONS, *_KEEPING, *_FREEZING, *_ROTATING, *_SUCCEEDING, *_MENDING, *_SECRETS)
OPERATIONS = REACH[Purpose.GUARD]
KNOWN_OPERATIONS = known(REACH)

_KEEPERS = ("acs:autoscaling:scalingGroupId", "ack.aliyun.com")
_KINDS = {"ecs:CreateSnapshot": ("disk", "snapshot"), "ecs:TagResources": ("snapshot",)}
_ON_INSTANCES = ("instance",)
_ANY_KEY = "acs:kms:*:*:key/*"
# decrypting cannot be narrowed to canaries: RAM has no test for what a ciphertext was encrypted with
_SUCCEEDED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    ("*", ("kms:CreateKey",)),  # there is no key yet
    ([_ANY_KEY], ("kms:Decrypt", "kms:Encrypt", "kms:GetKeyPolicy", "kms:TagResource")),
    (["acs:kms:*:*:alias/*", _ANY_KEY], ("kms:UpdateAlias",)),
)
_MENDED = {
    "acs:ecs:*:*:securitygroup/*": ("ecs:AuthorizeSecurityGroup", "ecs:RevokeSecurityGroup"),
    "acs:ecs:*:*:instance/*": ("ecs:ModifyInstanceMetadataOptions",),
    # the documents name a further resource for some of these (the VPC of a flow log, what an address is bound to)
    "*": (
        "vpc:AssociateEipAddress",
        "vpc:CreateFlowLog",
        "vpc:DeleteFlowLog",
        "vpc:ReleaseEipAddress",
        "vpc:UnassociateEipAddress",
    ),
}
_GRANTED_APART = frozenset({Feature.MAIL, Feature.ROTATE, Feature.SUCCEED, Feature.FIX_NETWORK, Feature.KEEP_TAG})


def permission_for(operation: str) -> str:
    """The permissions `operation` needs, for people; the operation's own name where it is not listed."""
    known = KNOWN_OPERATIONS.get(operation)
    return operation if known is None else " and ".join(known.permissions)


def policy_document(
    features: Collection[Feature],
    *,
    role_arns: Collection[str] = (),
    protected_tags: Collection[str] = TAGS_DENIED_BY_ROLE,
) -> dict[str, Any]:
    """A RAM policy that allows exactly what `features` call, and denies acting on what is protected.

    `role_arns` are the member roles that `MEMBERS` may assume: without any, assuming is not granted. Denials hold
    whatever else is attached: nodes of scaling groups and Kubernetes clusters, and any instance with a protection
    tag. RAM cannot tell spot or prepaid machines apart, and compares tag names as they are written: Costguard's own
    rails cover those.
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
        statements.append({"Effect": "Allow", "Action": reads, "Resource": "*"})
    if Feature.MEMBERS in features and role_arns:
        statements.append({"Effect": "Allow", "Action": ["sts:AssumeRole"], "Resource": sorted(role_arns)})
    if Feature.MAIL in features:  # RAM knows no resources here
        statements.append({"Effect": "Allow", "Action": ["dm:SingleSendMail"], "Resource": "*"})
    if Feature.ROTATE in features:
        names = sorted(operation.name for operation in _ROTATING)
        statements.append({"Effect": "Allow", "Action": names, "Resource": [_ANY_KEY]})
    if Feature.SUCCEED in features:
        statements += [{"Effect": "Allow", "Action": list(names), "Resource": on} for on, names in _SUCCEEDED]
    if Feature.FIX_NETWORK in features:
        for resource, actions in _MENDED.items():
            statements.append({"Effect": "Allow", "Action": list(actions), "Resource": [resource]})
    if Feature.KEEP_TAG in features:
        # ECS API, "RAM authorization": a tag of the request can be asked for; that there be no other cannot
        told = {"StringLike": {f"acs:RequestTag/{KEEP_TAG}": ["*"]}}
        keeping = {"Effect": "Allow", "Action": ["ecs:TagResources"], "Resource": _arns("instance")}
        statements.append({**keeping, "Condition": told})
    acting = [one for one in wanted if one.changes_something and one.feature not in _GRANTED_APART]
    changes = sorted({permission for one in acting for permission in one.permissions})
    statements += _allow_changes(changes)
    statements += _deny_protected(changes, protected_tags)
    return {"Version": "1", "Statement": statements}


def _allow_changes(changes: Collection[str]) -> Iterator[dict[str, Any]]:
    by_kinds: dict[tuple[str, ...], list[str]] = {}
    for name in changes:
        by_kinds.setdefault(_KINDS.get(name, _ON_INSTANCES), []).append(name)
    for kinds, names in sorted(by_kinds.items()):
        yield {"Effect": "Allow", "Action": names, "Resource": _arns(*kinds)}


def _deny_protected(changes: Collection[str], protected_tags: Collection[str]) -> Iterator[dict[str, Any]]:
    """RAM has no test for an absent key: a tag that is there matches `*`, whatever its value."""
    harmful = [name for name in changes if name in {"ecs:StopInstances", "ecs:DeleteInstances"}]
    if not harmful:
        return
    for name in (*_KEEPERS, *sorted({form for tag in protected_tags for form in (tag, tag.replace("-", "_"))})):
        condition = {"StringLike": {f"acs:ResourceTag/{name}": ["*"]}}
        yield {"Effect": "Deny", "Action": harmful, "Resource": _arns("instance"), "Condition": condition}


def _arns(*kinds: str) -> list[str]:
    return [f"acs:ecs:*:*:{kind}/*" for kind in kinds]
