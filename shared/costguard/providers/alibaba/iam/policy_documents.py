"""The RAM policy documents of every purpose, made from the table in permissions.py.

RAM compares tag names as they are written, so a denial stands for each spelling. The ledger is PostgreSQL, which asks
for no permission of RAM: `ledger` and `clicks` have no document.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.guards.rules.common import KEEP_TAG, TAGS_DENIED_BY_ROLE
from costguard.providers.alibaba.core.services import OBJECT_OPERATIONS
from costguard.providers.alibaba.iam.freeze import role_policy
from costguard.providers.alibaba.iam.permissions import TABLE
from costguard.providers.kit.iam.permissions import ACTING, Feature, names
from costguard.providers.kit.iam.policy_documents import (
    Lists,
    Maker,
    Narrowing,
    Statement,
    read_permissions,
    spellings,
)

_KEEPERS = ("acs:autoscaling:scalingGroupId", "ack.aliyun.com")
_KINDS = {"ecs:CreateSnapshot": ("disk", "snapshot"), "ecs:TagResources": ("snapshot",)}
_ON_INSTANCES = ("instance",)
_ANY_KEY = "acs:kms:*:*:key/*"
# decrypting cannot be narrowed to canaries: RAM has no test for what a ciphertext was encrypted with
_SUCCEEDED: tuple[tuple[Any, str], ...] = (
    ("*", "kms: CreateKey"),  # there is no key yet
    ([_ANY_KEY], "kms: Decrypt Encrypt GetKeyPolicy TagResource"),
    (["acs:kms:*:*:alias/*", _ANY_KEY], "kms: UpdateAlias"),
)
_FIXES = {
    "acs:ecs:*:*:securitygroup/*": "ecs: AuthorizeSecurityGroup RevokeSecurityGroup",
    "acs:ecs:*:*:instance/*": "ecs: ModifyInstanceMetadataOptions",
    # the documents name a further resource for some of these (the VPC of a flow log, what an address is bound to)
    "*": "vpc: AssociateEipAddress CreateFlowLog DeleteFlowLog ReleaseEipAddress UnassociateEipAddress",
}


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
    statements: list[Statement] = []
    if read := read_permissions(TABLE, features):
        statements.append(_allow(read, "*"))
    if Feature.MEMBERS in features and role_arns:
        statements.append(_allow(["sts:AssumeRole"], sorted(role_arns)))
    if Feature.MAIL in features:  # RAM knows no resources here
        statements.append(_allow(["dm:SingleSendMail"], "*"))
    if Feature.ROTATE in features:
        statements.append(_allow(names("kms: CreateKeyVersion UpdateRotationPolicy"), [_ANY_KEY]))
    if Feature.SUCCEED in features:
        statements += [_allow(names(actions), on) for on, actions in _SUCCEEDED]
    if Feature.FIX_NETWORK in features:
        statements += [_allow(names(actions), [on]) for on, actions in _FIXES.items()]
    if Feature.KEEP_TAG in features:
        # ECS API, "RAM authorization": a tag of the request can be asked for; that there be no other cannot
        told = {"StringLike": {f"acs:RequestTag/{KEEP_TAG}": ["*"]}}
        statements.append(_allow(["ecs:TagResources"], _arns("instance"), told))
    acting = [one for one in TABLE if one.changes_something and one.feature in ACTING.intersection(features)]
    changes = sorted({permission for one in acting for permission in one.permissions})
    statements += _allow_changes(changes)
    statements += _deny_protected(changes, protected_tags)
    return {"Version": "1", "Statement": statements}


def _allow(actions: Iterable[str], resource: str | list[str], condition: Mapping[str, Any] | None = None) -> Statement:
    only = {} if condition is None else {"Condition": condition}
    return {"Effect": "Allow", "Action": list(actions), "Resource": resource, **only}


def _arns(*kinds: str) -> list[str]:
    return [f"acs:ecs:*:*:{kind}/*" for kind in kinds]


def _allow_changes(changes: Collection[str]) -> Iterator[Statement]:
    by_kinds: dict[tuple[str, ...], list[str]] = {}
    for name in changes:
        by_kinds.setdefault(_KINDS.get(name, _ON_INSTANCES), []).append(name)
    for kinds, actions in sorted(by_kinds.items()):
        yield _allow(actions, _arns(*kinds))


def _deny_protected(changes: Collection[str], protected_tags: Collection[str]) -> Iterator[Statement]:
    """RAM has no test for an absent key: a tag that is there matches `*`, whatever its value."""
    harmful = [name for name in changes if name in {"ecs:StopInstances", "ecs:DeleteInstances"}]
    if not harmful:
        return
    for name in (*_KEEPERS, *sorted({form for tag in protected_tags for form in (tag, tag.replace("-", "_"))})):
        condition = {"StringLike": {f"acs:ResourceTag/{name}": ["*"]}}
        yield {**_allow(harmful, _arns("instance"), condition), "Effect": "Deny"}


# the documents of purposes

WITHOUT = frozenset({"ledger", "clicks"})
_BOUND_BY_TAGS = frozenset(names("ecs: StartInstances StopInstances DeleteInstances"))
_REGIONAL = ("acs:ecs:*:", "acs:kms:*:")

# each is what a run has no business with; what Costguard does itself is not among it
_NEVER = names(
    "actiontrail: Delete* Stop*",
    "ecs: CreateInstance DeleteDisk DeleteImage DeleteSecurityGroup DeleteSnapshot* DetachDisk ModifyInstanceAttribute",
    "ecs: ReInitDisk RemoveTags ReplaceSystemDisk ResetDisk RunInstances UntagResources",
    "kms: CancelKeyDeletion Delete* DisableKey ImportKeyMaterial PutSecretValue ScheduleKeyDeletion UpdateSecret*",
    "oss: Delete* PutBucket*",
    "ram: Add* AttachPolicyToRole AttachPolicyToUser Create* Delete* DetachPolicyFromRole DetachPolicyFromUser",
    "ram: PassRole Remove* Set* Update*",
    "resourcedirectory: Delete* Remove* Update*",
    "resourcemanager: Delete* Remove* Update*",
    "vpc: DeleteNetworkAcl DeleteRoute* DeleteVSwitch DeleteVpc",
)


def _granted(features: frozenset[Feature], narrow: Narrowing) -> list[Statement]:
    # RAM's pages write the names of roles in small letters in ARNs, whatever the role is called
    roles = {f"acs:ram::*:role/{name}" for name in (narrow.member_role, narrow.member_role.lower())}
    made = policy_document(features, role_arns=roles)["Statement"]
    return [one for one in made if one["Effect"] == "Allow"]


def _narrowed(statement: Statement, narrow: Narrowing) -> Iterator[Statement]:
    """Regions stand in a resource's name; tags bind what is done to machines. What is on `*` stays so."""
    resources = statement["Resource"]
    if isinstance(resources, list):
        statement = {**statement, "Resource": [one for name in resources for one in _by_region(name, narrow.regions)]}
    if narrow.tags and _BOUND_BY_TAGS.issuperset(statement["Action"]):
        wanted = {f"acs:ResourceTag/{key}": list(values) for key, values in narrow.tags.items()}
        statement = {**statement, "Condition": {"StringEquals": wanted}}
    yield statement


def _by_region(resource: str, regions: Sequence[str]) -> Iterable[str]:
    begun = next((prefix for prefix in _REGIONAL if resource.startswith(prefix)), "")
    if not (begun and regions):
        return (resource,)
    return (begun.replace("*", region) + resource[len(begun) :] for region in regions)


def _freezes_of_groups(narrow: Narrowing) -> list[Statement]:
    one = LaunchFreeze("", "alibaba", FreezeVia.GROUP, f"{narrow.name}-freeze*", "*", narrow.account)
    return list(role_policy(one)["Statement"])


def _freezes_of_organisation(_: Narrowing) -> list[Statement]:
    return list(role_policy(LaunchFreeze("", "alibaba", FreezeVia.ORGANISATION, "", ""))["Statement"])


def _denials(narrow: Narrowing) -> Iterator[Statement]:
    """Machines that nobody may touch, whoever is asked; expiry tags are not among them: RAM reads no dates in tags."""
    kept = (*narrow.kept_tags, *(name.title() for name in narrow.kept_tags))
    made = policy_document(ACTING, protected_tags=spellings(kept))["Statement"]
    yield from (one for one in made if one["Effect"] == "Deny")
    yield {**_allow(_NEVER, "*"), "Effect": "Deny"}


documents = Maker(
    "1",
    _granted,
    _narrowed,
    own={
        "objects": lambda narrow: [_allow(["oss:GetObject"], [f"acs:oss:*:*:{narrow.name}*/*"])],
        "reports": lambda narrow: [_allow(sorted(OBJECT_OPERATIONS), [f"acs:oss:*:*:{narrow.name}*/reports/*"])],
        "secrets": lambda narrow: [_allow(["kms:GetSecretValue"], [f"acs:kms:*:*:secret/{narrow.name}*"])],
        "freeze": _freezes_of_groups,
        "freeze-organisation": _freezes_of_organisation,
        "deny": _denials,
    },
    # no function asks for the console's budgets
    of_people=names("bss: DescribeCostBudgetsSummary", "bssapi: DescribeCostBudgetsSummary"),
    listed={
        Lists.REGIONS: names("ecs: DescribeRegions"),
        Lists.MACHINES: names("ecs: DescribeInstanceTypes DescribeInstances DescribeRegions"),
    },
    without=WITHOUT,
).documents
"""The document of every purpose that has one, by its name."""
