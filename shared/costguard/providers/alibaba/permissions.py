"""Every Alibaba Cloud operation Costguard may call, the RAM permissions it needs, and policies made from them.

This table is the whole reach of the program: an operation that is not listed never leaves the process, and one that
changes something only leaves a session made for acting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from costguard.guards.rules import Protection
from costguard.providers.operations import Feature, Operation


def _reads(feature: Feature, *names: str) -> Iterable[Operation]:
    return (Operation(name, feature, (name,)) for name in names)


_OPERATIONS = (
    Operation("sts:GetCallerIdentity", Feature.IDENTITY, ()),
    *_reads(Feature.MEMBERS, "sts:AssumeRole"),
    # the documents of the two products that list members name the permission differently
    Operation(
        "resourcedirectory:ListAccounts",
        Feature.ORGANISATION,
        ("resourcemanager:ListAccounts", "resourcedirectory:ListAccounts"),
    ),
    *_reads(
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
    *_reads(Feature.PRICES, "ecs:DescribePrice"),
    # the documents of the two sites, and of different years, name the permission differently
    Operation("bss:DescribeInstanceBill", Feature.BILLING, ("bssapi:DescribeInstanceBill", "bss:DescribeBillList")),
    Operation("bss:QueryBillOverview", Feature.BILLING, ("bss:DescribeBillList", "bssapi:QueryBillOverview")),
    Operation(
        "bss:DescribeCostBudgetsSummary",
        Feature.BILLING,
        ("bss:DescribeCostBudgetsSummary", "bssapi:DescribeCostBudgetsSummary"),
    ),
    Operation("ecs:StopInstances", Feature.STOP, ("ecs:StopInstances",), changes_something=True),
    Operation("ecs:StartInstances", Feature.START, ("ecs:StartInstances",), changes_something=True),
    Operation("ecs:DeleteInstances", Feature.TERMINATE, ("ecs:DeleteInstances",), changes_something=True),
    # tags set while creating are authorised by the creating call, except where a policy demands ecs:TagResources
    Operation(
        "ecs:CreateSnapshot", Feature.SNAPSHOT, ("ecs:CreateSnapshot", "ecs:TagResources"), changes_something=True
    ),
    Operation("dm:SingleSendMail", Feature.MAIL, ("dm:SingleSendMail",), changes_something=True),
)

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
    *_reads(Feature.FREEZE, "ram:ListPoliciesForGroup"),
    *(
        Operation(name, Feature.FREEZE, (name,), changes_something=True)
        for name in ("ram:AttachPolicyToGroup", "ram:DetachPolicyFromGroup")
    ),
)

_KEYS = (
    *_reads(
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
_ROTATING = tuple(
    Operation(name, Feature.ROTATE, (name,), changes_something=True)
    for name in ("kms:UpdateRotationPolicy", "kms:CreateKeyVersion")
)

OPERATIONS = {
    operation.name: operation for operation in (*_KEYS, *_OPERATIONS) if operation.feature is not Feature.MAIL
}

_MAILING = frozenset({Feature.IDENTITY, Feature.MAIL})
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
"""The whole reach of a session that rotates keys: none can disable, delete or import one, and no other can rotate."""

KNOWN_OPERATIONS = {**OPERATIONS, **MAIL_OPERATIONS, **FREEZE_OPERATIONS, **ROTATION_OPERATIONS}
"""Of every kind of session."""

_KEEPERS = ("acs:autoscaling:scalingGroupId", "ack.aliyun.com")
_KINDS = {"ecs:CreateSnapshot": ("disk", "snapshot"), "ecs:TagResources": ("snapshot",)}
_ON_INSTANCES = ("instance",)
_ANY_KEY = "acs:kms:*:*:key/*"
_GRANTED_APART = frozenset({Feature.MAIL, Feature.ROTATE})


def permission_for(operation: str) -> str:
    """The permissions `operation` needs, for people; the operation's own name where it is not listed."""
    known = KNOWN_OPERATIONS.get(operation)
    return operation if known is None else " and ".join(known.permissions)


def policy_document(
    features: Collection[Feature],
    *,
    role_arns: Collection[str] = (),
    protected_tags: Collection[str] = Protection().tag_names,
) -> dict[str, Any]:
    """A RAM policy that allows exactly what `features` call, and denies acting on what is protected.

    `role_arns` are the member roles that `MEMBERS` may assume: without any, assuming is not granted. Denials hold
    whatever else is attached: nodes of scaling groups and Kubernetes clusters, and any instance with a protection
    tag. RAM cannot tell spot or prepaid machines apart, and compares tag names as they are written: Costguard's own
    rails cover those.
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
        statements.append({"Effect": "Allow", "Action": reads, "Resource": "*"})
    if Feature.MEMBERS in features and role_arns:
        statements.append({"Effect": "Allow", "Action": ["sts:AssumeRole"], "Resource": sorted(role_arns)})
    if Feature.MAIL in features:  # RAM knows no resources here
        statements.append({"Effect": "Allow", "Action": ["dm:SingleSendMail"], "Resource": "*"})
    if Feature.ROTATE in features:
        names = sorted(operation.name for operation in _ROTATING)
        statements.append({"Effect": "Allow", "Action": names, "Resource": [_ANY_KEY]})
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
