"""The CAM policy documents of every purpose, made from the table in permissions.py.

A resource without an account is of the account that the policy is written in (CAM, "Resource Description Method").
The ledger is PostgreSQL and mail goes by SMTP, which ask for no permission of CAM, and no key has an alias that could
be moved: `ledger`, `clicks`, `mail` and `succeed` have no document.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.providers.kit.iam.permissions import ACTING, Feature, names
from costguard.providers.kit.iam.policy_documents import (
    Lists,
    Maker,
    Narrowing,
    Statement,
    read_permissions,
    spellings,
)
from costguard.providers.tencent.core.services import OBJECT_OPERATIONS
from costguard.providers.tencent.iam.freeze import role_policy
from costguard.providers.tencent.iam.permissions import TABLE

_CHANGING = ACTING | {Feature.ROTATE, Feature.FIX_NETWORK, Feature.KEEP_TAG}
_ALSO_USED = {
    Feature.PRICES: names("cvm: DescribeZoneInstanceConfigInfos"),
    Feature.TERMINATE: names("cvm: DescribeInstances"),
    Feature.SNAPSHOT: names("cbs: DescribeSnapshots"),
    Feature.KEYS: names("cbs: DescribeDisks"),
    Feature.NETWORK: names("vpc: DescribeAddresses"),
    Feature.FIX_NETWORK: names(
        "vpc: DescribeAddresses DescribeFlowLogs DescribeNetworkInterfaces DescribeSecurityGroupPolicies"
    ),
}
"""Operations listed for another feature that this one calls as well: who changes looks first, and keys have users."""


def policy_document(
    features: Collection[Feature], *, account: str = "", role_arns: Collection[str] = ()
) -> dict[str, Any]:
    """A CAM policy that allows exactly what `features` call.

    `role_arns` are the member roles that `MEMBERS` may assume: without any, assuming is not granted. With an
    `account` (the number of its owner, the uin), what changes something is limited to that account's machines.
    CAM knows tags by key and value only, so a tag that protects whatever its value cannot be written as a
    denial: Costguard's own rails are the only lock there.
    """

    def own(product: str, kind: str) -> list[str]:
        return [f"qcs::{product}::uin/{account}:{kind}/*" if account else "*"]

    read = {*read_permissions(TABLE, features), *(name for each in features for name in _ALSO_USED.get(each, ()))}
    wanted = [one for one in TABLE if one.changes_something and one.feature in _CHANGING.intersection(features)]
    changes = sorted(one.name for one in wanted if one.feature is not Feature.KEEP_TAG)
    rules = [name for name in changes if name.endswith(("SecurityGroupPolicies", "SecurityGroupPolicy"))]
    groups = (
        (sorted(read), ["*"]),
        (["sts:AssumeRole"] if Feature.MEMBERS in features and role_arns else [], sorted(role_arns)),
        ([name for name in changes if name.startswith("cvm:")], own("cvm", "instance")),
        # of a disk, but a snapshot has no id yet and CAM's pages name no resource for it
        ([name for name in changes if name.startswith("cbs:")], ["*"]),
        ([name for name in changes if name.startswith("kms:")], own("kms", "key")),
        # CAM compares tags of a request by key and value ("Condition Keys and Condition Operators"), and each Keep's
        # value is its own: which tag is written, the session's reach alone narrows
        (["tag:TagResources"] if Feature.KEEP_TAG in features else [], own("cvm", "instance")),
        (rules, own("vpc", "sg")),
        # of an address, what it is bound to, and a log that has no id yet: CAM's pages name each differently
        ([name for name in changes if name.startswith("vpc:") and name not in rules], ["*"]),
    )
    return {"version": "2.0", "statement": [_allow(actions, on) for actions, on in groups if actions]}


def _allow(actions: Iterable[str], resource: list[str]) -> Statement:
    return {"effect": "allow", "action": list(actions), "resource": resource}


# the documents of purposes

WITHOUT = frozenset({"ledger", "clicks", "mail", "succeed"})
_ANY = "*"
_ON_INSTANCES = frozenset(names("cvm: StartInstances StopInstances TerminateInstances"))
_SAID_OF_A_KEPT_TAG = ("", "1", "on", "true", "yes")

# each is what a run has no business with; what Costguard does itself is not among it
_NEVER = names(
    "cam: Add* AttachRolePolicies AttachRolePolicy AttachUserPolicies AttachUserPolicy Create* Delete*",
    "cam: DetachRolePolicies DetachRolePolicy DetachUserPolicies DetachUserPolicy PassRole Put* Remove* Set* Update*",
    "cbs: ApplySnapshot* DeleteSnapshot* DetachDisks TerminateDisks",
    "cloudaudit: Delete* StopLogging",
    "cvm: DeleteImages ModifyInstancesAttribute ResetInstance RunInstances",
    "kms: ArchiveKey DeleteImportedKeyMaterial DisableKey DisableKeyRotation DisableKeys ImportKeyMaterial",
    "kms: ScheduleKeyDeletion",
    "name/cos: Delete* PutBucket*",
    "organization: Create* Delete* Update*",
    "ssm: DeleteSecret* PutSecretValue UpdateSecret",
    "tag: DeleteResourceTag ModifyResourceTags UnTagResources",
    "vpc: DeleteRoute* DeleteSecurityGroup DeleteSubnet DeleteVpc",
)


def _granted(features: frozenset[Feature], narrow: Narrowing) -> list[Statement]:
    """Whoever acts has what scans as well, so it has no reads."""
    role = f"qcs::cam::uin/*:roleName/{narrow.member_role}"
    whole: list[Statement] = policy_document(features, account=_ANY, role_arns=[role])["statement"]
    looks = {name for feature in features for name in _ALSO_USED.get(feature, ())}
    return [one for one in whole if not (features & _CHANGING and looks.issuperset(one["action"]))]


def _narrowed(statement: Statement, narrow: Narrowing) -> Iterator[Statement]:
    """Regions stand in a resource's name; tags bind what is done to machines. What is on `*` stays so."""
    said = [one for name in statement["resource"] for one in _by_region(name, narrow)]
    statement = {**statement, "resource": said}
    if narrow.tags and _ON_INSTANCES.issuperset(statement["action"]):
        wanted = [f"{key}&{value}" for key, values in narrow.tags.items() for value in values]
        statement["condition"] = {"for_any_value:string_equal": {"qcs:resource_tag": wanted}}
    yield statement


def _by_region(resource: str, narrow: Narrowing) -> Iterable[str]:
    head, own, tail = resource.partition(f"::uin/{_ANY}:")
    if not own or resource.startswith("qcs::cam:"):
        return (resource,)
    return (f"{head}:{region}:{_owner(narrow)}:{tail}" for region in narrow.regions or ("",))


def _owner(narrow: Narrowing) -> str:
    return f"uin/{narrow.account}" if narrow.account else ""


def _secrets(narrow: Narrowing) -> list[Statement]:
    return [_allow(["ssm:GetSecretValue"], [f"qcs::ssm::{_owner(narrow)}:secret/creatorUin/*/{narrow.name}*"])]


def _policies(narrow: Narrowing) -> list[Statement]:
    """Of buckets, whose owner is named by APPID: so it is left to be the policy's account."""
    return [_allow(["name/cos:GetObject"], [f"qcs::cos:::{narrow.name}*/*"])]


def _reports(narrow: Narrowing) -> list[Statement]:
    return [_allow((f"name/{name}" for name in sorted(OBJECT_OPERATIONS)), [f"qcs::cos:::{narrow.name}*/reports/*"])]


def _freezes(via: FreezeVia) -> list[Statement]:
    return list(role_policy(LaunchFreeze("", "tencent", via, "", ""))["statement"])


def _denials(narrow: Narrowing) -> Iterator[Statement]:
    """Kept machines by what such a tag usually says: CAM compares a tag with its value, so this is no whole lock."""
    kept = spellings((*narrow.kept_tags, *(name.title() for name in narrow.kept_tags)))
    tags = [f"{name}&{value}" for name in kept for value in _SAID_OF_A_KEPT_TAG]
    yield {
        **_allow(names("cvm: StopInstances TerminateInstances"), [f"qcs::cvm::{_owner(narrow)}:instance/*"]),
        "effect": "deny",
        "condition": {"for_any_value:string_equal": {"qcs:resource_tag": tags}},
    }
    yield {**_allow(_NEVER, ["*"]), "effect": "deny"}


documents = Maker(
    "2.0",
    _granted,
    _narrowed,
    own={
        "objects": _policies,
        "reports": _reports,
        "secrets": _secrets,
        "freeze": lambda _: _freezes(FreezeVia.GROUP),
        "freeze-organisation": lambda _: _freezes(FreezeVia.ORGANISATION),
        "deny": _denials,
    },
    of_people=names("finance: DescribeBudget"),  # no function asks for the console's budgets
    listed={
        Lists.REGIONS: names("region: DescribeRegions"),
        Lists.MACHINES: names(
            "as: DescribeAutoScalingInstances",
            "cvm: DescribeInstanceTypeConfigs DescribeInstances DescribeZoneInstanceConfigInfos",
            "region: DescribeRegions",
            "tke: DescribeClusterInstances DescribeClusters",
        ),
    },
    without=WITHOUT,
    small=True,
).documents
"""The document of every purpose that has one, by its name."""
