"""The IAM policy documents of every purpose, made from the table in permissions.py.

Tag keys compare without case in IAM (`aws:ResourceTag/Keep` is `aws:ResourceTag/keep`), values with it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from costguard.guards.keys.judge import SUCCESSOR_OF
from costguard.guards.rules.common import KEEP_TAG, TAGS_DENIED_BY_ROLE
from costguard.providers.aws.compute.instances import CONTROLLER_KEYS, CONTROLLER_VALUES
from costguard.providers.aws.core.services import OBJECT_OPERATIONS
from costguard.providers.aws.iam.permissions import SNAPSHOTTING, TABLE
from costguard.providers.kit.iam.permissions import ACTING, Feature, names
from costguard.providers.kit.iam.policy_documents import (
    Lists,
    Maker,
    Narrowing,
    Statement,
    read_permissions,
    spellings,
)
from costguard.providers.kit.kms.rotation import CONTEXT

_HARMFUL = frozenset({"ec2:StopInstances", "ec2:TerminateInstances"})

# in the grant, not in a denial each: a managed policy holds 6,144 characters, and conditions in a statement are "and".
_UNLESS_CONTROLLED = {
    "Null": {f"aws:ResourceTag/{key}": "true" for key in CONTROLLER_KEYS},
    "StringNotEquals": {f"aws:ResourceTag/{key}": value for key, value in CONTROLLER_VALUES.items()},
}
_FIXES = (
    (
        "MendAddresses",
        "ec2: AssociateAddress DisassociateAddress ReleaseAddress",
        ("elastic-ip", "instance", "network-interface"),
    ),
    (
        "MendRules",
        "ec2: AuthorizeSecurityGroupIngress RevokeSecurityGroupIngress",
        ("security-group", "security-group-rule"),
    ),
    ("MendFlowLogs", "ec2: CreateFlowLogs DeleteFlowLogs", ("vpc-flow-log", "vpc", "subnet", "network-interface")),
    ("MendMetadataOptions", "ec2: ModifyInstanceMetadataOptions", ("instance",)),
)


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
    statements: list[Statement] = []
    if read := read_permissions(TABLE, features):
        statements.append(_allow("Read", read, "*"))
    if Feature.MEMBERS in features and role_arns:
        statements.append(_allow("Assume", "sts:AssumeRole", sorted(role_arns)))
    if Feature.MAIL in features:
        senders = f"arn:{partition}:ses:*:*:identity/*"
        statements.append(_allow("SendMail", names("ses: SendEmail SendRawEmail"), [senders]))
    if Feature.ROTATE in features:
        keys = f"arn:{partition}:kms:*:*:key/*"
        statements.append(_allow("RotateKeys", names("kms: EnableKeyRotation RotateKeyOnDemand"), [keys]))
    if Feature.SUCCEED in features:
        statements += _allow_succession(partition)
    if Feature.FIX_NETWORK in features:
        statements += _allow_fixes(partition, flow_log_roles)
    if Feature.KEEP_TAG in features:
        # "for all values" also holds where no tag is named (IAM guide, "Set operators"): so one has to be
        only = {"Null": {"aws:TagKeys": "false"}, "ForAllValues:StringEquals": {"aws:TagKeys": [KEEP_TAG]}}
        statements.append(_allow("WriteKeeps", "ec2:CreateTags", _arns(partition, "instance"), only))
    acting = ACTING.intersection(features)
    changes = sorted(one.name for one in TABLE if one.changes_something and one.feature in acting)
    statements += _allow_changes(changes, partition)
    statements += _deny_protected(changes, partition, protected_tags, spot_may_terminate=spot_may_terminate)
    return {"Version": "2012-10-17", "Statement": statements}


def _allow(
    sid: str, actions: str | Iterable[str], resource: str | list[str], condition: Mapping[str, Any] | None = None
) -> Statement:
    wanted = actions if isinstance(actions, str) else list(actions)
    only = {} if condition is None else {"Condition": condition}
    return {"Sid": sid, "Effect": "Allow", "Action": wanted, "Resource": resource, **only}


def _deny(
    sid: str, actions: str | Iterable[str], resource: str | list[str], condition: Mapping[str, Any] | None = None
) -> Statement:
    return {**_allow(f"Never{sid}", actions, resource, condition), "Effect": "Deny"}


def _arns(partition: str, *kinds: str) -> list[str]:
    # a snapshot's ARN has no account: an empty field, which `*` matches as well
    return [f"arn:{partition}:ec2:*:*:{kind}/*" for kind in kinds]


def _allow_succession(partition: str) -> Iterator[Statement]:
    """To decrypt canaries and nothing else; made and tagged is only what says whose successor it is."""
    keys, aliases = (f"arn:{partition}:kms:*:*:{kind}/*" for kind in ("key", "alias"))
    told = {"Null": {f"aws:RequestTag/{SUCCESSOR_OF}": "false"}}
    canaries = {"StringEquals": {f"kms:EncryptionContext:{name}": value for name, value in CONTEXT.items()}}
    ours = {
        **told,
        "StringEquals": {"kms:KeyOrigin": "AWS_KMS"},
        "BoolIfExists": {"kms:MultiRegion": "false", "kms:BypassPolicyLockoutSafetyCheck": "false"},
    }
    yield _allow("ReadKeyPolicies", "kms:GetKeyPolicy", [keys])
    yield _allow("MakeSuccessors", "kms:CreateKey", "*", ours)  # there is no key yet
    yield _allow("TagSuccessors", "kms:TagResource", [keys], told)
    yield _allow("MoveAliases", "kms:UpdateAlias", [aliases, keys])
    yield _allow("EncryptCanaries", names("kms: Decrypt Encrypt"), [keys], canaries)
    # a signature has no context: give this only for keys that the rule names
    yield _allow("SignCanaries", names("kms: Sign Verify"), [keys])


def _allow_fixes(partition: str, flow_log_roles: Collection[str]) -> Iterator[Statement]:
    for sid, actions, kinds in _FIXES:
        yield _allow(sid, names(actions), _arns(partition, *kinds))
    # of the bucket itself nothing: with s3:PutBucketPolicy AWS would overwrite the policy it has
    yield _allow("DeliverFlowLogs", names("logs: CreateLogDelivery DeleteLogDelivery"), "*")
    if flow_log_roles:
        to_logs = {"StringEquals": {"iam:PassedToService": "vpc-flow-logs.amazonaws.com"}}
        yield _allow("PassFlowLogRole", "iam:PassRole", sorted(flow_log_roles), to_logs)


def _allow_changes(changes: list[str], partition: str) -> Iterator[Statement]:
    machines = _arns(partition, "instance")
    if "ec2:StartInstances" in changes:
        yield _allow("StartInstances", ["ec2:StartInstances"], machines)
    if harmful := [name for name in changes if name in _HARMFUL]:
        yield _allow("ActOnInstances", harmful, machines, _UNLESS_CONTROLLED)
    if "ec2:CreateSnapshot" in changes:
        volumes, copies = _arns(partition, "volume", "snapshot")
        making = {"StringEquals": {"ec2:CreateAction": list(SNAPSHOTTING)}}
        # service authorization reference: CreateSnapshots is asked of the instance, each volume and each snapshot
        yield _allow("SnapshotVolumes", (f"ec2:{one}" for one in SNAPSHOTTING), [volumes, copies])
        yield _allow("SnapshotSets", ["ec2:CreateSnapshots"], machines)
        yield _allow("TagOwnSnapshots", "ec2:CreateTags", [copies], making)


def _deny_protected(
    changes: list[str], partition: str, protected_tags: Collection[str], *, spot_may_terminate: bool
) -> Iterator[Statement]:
    machines = _arns(partition, "instance")
    harmful = [name for name in changes if name in _HARMFUL]
    if not harmful:
        return
    spot = [name for name in harmful if not (spot_may_terminate and name == "ec2:TerminateInstances")]
    if spot:
        yield _deny("Spot", spot, machines, {"StringEquals": {"ec2:InstanceMarketType": "spot"}})
    yield _deny("ManagedByAService", harmful, machines, {"Null": {"ec2:ManagedResourceOperator": "false"}})
    keepers = ("aws:autoscaling:groupName", "aws:eks:cluster-name", "eks:cluster-name")
    for name in (*keepers, *sorted({form for tag in protected_tags for form in (tag, tag.replace("-", "_"))})):
        words = re.split("[^A-Za-z0-9]+", name.replace("_", "-us-"))
        sid = "Tag" + "".join(word.capitalize() for word in words)
        yield _deny(sid, harmful, machines, {"Null": {f"aws:ResourceTag/{name}": "false"}})


# the documents of purposes

_KINDS = (
    ("ReadAttributes", "ec2:*:*:instance/*", names("ec2: DescribeInstanceAttribute")),
    ("ReadPrefixLists", "ec2:*:*:prefix-list/*", names("ec2: GetManagedPrefixListEntries")),
    (
        "ReadKeys",
        "kms:*:*:key/*",
        names("kms: DescribeKey GetKeyRotationStatus ListKeyRotations ListResourceTags"),
    ),
    ("ReadBudgets", "budgets::*:budget/*", names("budgets: ViewBudget")),
)
_BY_REGION = frozenset({"ec2", "kms", "logs"})  # what answers in the region that it changes something in
_ON_INSTANCES = frozenset(names("ec2: CreateSnapshots StartInstances StopInstances TerminateInstances"))

# each names what a run has no business with; what Costguard does itself is in none
_NEVER = {
    "HarmKeys": names("kms: CancelKeyDeletion Delete* Disable* ImportKeyMaterial ScheduleKeyDeletion"),
    "LoseWhatIsKept": names(
        "dynamodb: Delete*",
        "ec2: DeleteSnapshot DeleteTags DeleteVolume DeregisterImage DetachVolume ModifyInstanceAttribute",
        "ec2: ModifySnapshotAttribute",
        "s3: Delete* PutBucket* PutLifecycleConfiguration PutObjectAcl",
        "secretsmanager: Delete* Put* Update*",
    ),
    # a function in a VPC takes its own interfaces away itself
    "RebuildNetworks": names(
        "ec2: DeleteNetworkAcl* DeleteRoute* DeleteSecurityGroup DeleteSubnet DeleteVpc* ModifySecurityGroupRules"
    ),
    "Launch": names("ec2: CreateFleet RequestSpot* RunInstances"),
    "ChangeWhoMayDoWhat": names(
        "account: *",
        "iam: Add* AttachRolePolicy AttachUserPolicy Create* Deactivate* Delete* DetachRolePolicy DetachUserPolicy",
        "iam: Put* Remove* Set* Tag* Untag* Update* Upload*",
        "organizations: Create* Delete* Disable* Enable* LeaveOrganization MoveAccount Remove* Update*",
    ),
    "BlindTheTrail": names("cloudtrail: Delete* PutEventSelectors StopLogging"),
}


def _granted(features: frozenset[Feature], narrow: Narrowing) -> list[Statement]:
    role = f"arn:{narrow.partition}:iam::*:role/{narrow.member_role}"
    made = policy_document(
        features, partition=narrow.partition, role_arns=[role], flow_log_roles=narrow.flow_log_roles
    )["Statement"]
    return [one for one in made if one["Effect"] == "Allow"]


def _narrowed(statement: Statement, narrow: Narrowing) -> Iterator[Statement]:
    """Regions bind what changes something: in which ones is read, policies say; tags bind what is done to machines."""
    if statement["Sid"] == "Assume" and narrow.organisation:
        # IAM guide, "AWS global condition context keys": told of resources of accounts in an organisation, and
        # withheld of some actions, but not of sts:AssumeRole
        owned = {"StringEquals": {"aws:ResourceOrgID": narrow.organisation}}
        statement = {**statement, "Condition": owned}
    for one in _by_kind(statement, narrow):
        actions = [one["Action"]] if isinstance(one["Action"], str) else one["Action"]
        wanted: dict[str, list[str]] = {}
        changes = not one["Sid"].startswith("Read")
        if narrow.regions and changes and {name.split(":")[0] for name in actions} <= _BY_REGION:
            wanted["aws:RequestedRegion"] = list(narrow.regions)
        if _ON_INSTANCES.issuperset(actions):
            wanted |= {f"aws:ResourceTag/{key}": list(values) for key, values in narrow.tags.items()}
        if wanted:
            known = one.get("Condition", {})
            one = {**one, "Condition": {**known, "StringEquals": {**known.get("StringEquals", {}), **wanted}}}  # noqa: PLW2901
        yield one


def _by_kind(statement: Statement, narrow: Narrowing) -> Iterator[Statement]:
    """Reads on what they are about, as far as IAM knows it; the rest on everything."""
    if statement["Sid"] != "Read":
        yield statement
        return
    of_kinds = {name for _, _, actions in _KINDS for name in actions}
    if rest := [name for name in statement["Action"] if name not in of_kinds]:
        yield {**statement, "Action": rest}
    for sid, arn, actions in _KINDS:
        if found := [name for name in statement["Action"] if name in actions]:
            yield _allow(sid, found, [f"arn:{narrow.partition}:{arn}"])


def _records(sid: str, narrow: Narrowing) -> list[Statement]:
    tables = [f"arn:{narrow.partition}:dynamodb:*:*:table/{narrow.name}*"]
    return [_allow(sid, names("dynamodb: BatchGetItem ConditionCheckItem GetItem PutItem Query"), tables)]


def _policies(narrow: Narrowing) -> list[Statement]:
    return [_allow("ReadPublishedPolicies", ["s3:GetObject"], [f"arn:{narrow.partition}:s3:::{narrow.name}*/*"])]


def _reports(narrow: Narrowing) -> list[Statement]:
    both = sorted(name for name, one in OBJECT_OPERATIONS.items() if one.feature is Feature.OBJECTS)
    return [_allow("KeepReports", both, [f"arn:{narrow.partition}:s3:::{narrow.name}*/reports/*"])]


def _secrets(narrow: Narrowing) -> list[Statement]:
    secrets = [f"arn:{narrow.partition}:secretsmanager:*:*:secret:{narrow.name}*"]
    return [_allow("ReadOwnSecrets", ["secretsmanager:GetSecretValue"], secrets)]


_ON_GROUPS = names("iam: AttachGroupPolicy DetachGroupPolicy")
_ON_TARGETS = names("organizations: AttachPolicy DetachPolicy")


def _freezes_of_groups(narrow: Narrowing) -> list[Statement]:
    groups = [f"arn:{narrow.partition}:iam::*:group/*"]
    alone = {"ArnLike": {"iam:PolicyARN": _freezing(narrow)}}
    return [
        _allow("LookAtGroups", ["iam:ListAttachedGroupPolicies"], groups),
        _allow("AttachTheFreezeAlone", _ON_GROUPS, groups, alone),
    ]


def _freezing(narrow: Narrowing) -> str:
    return f"arn:{narrow.partition}:iam::*:policy/{narrow.name}-freeze*"


def _freezes_of_organisation(narrow: Narrowing) -> list[Statement]:
    targets, policies = _organisation(narrow)
    return [
        _allow("LookAtTargets", ["organizations:ListPoliciesForTarget"], targets),
        _allow("AttachTheFreezeAlone", _ON_TARGETS, [*policies, *targets]),
    ]


def _organisation(narrow: Narrowing) -> tuple[list[str], list[str]]:
    """What a policy is attached to, and those that may be: both are asked about, so without any nothing is allowed.

    Organizations chooses the ids (API CreatePolicy): none can stand here before the policy does.
    """
    base = f"arn:{narrow.partition}:organizations::*"
    own = [f"{base}:policy/o-*/service_control_policy/{policy}" for policy in narrow.freezing_policies]
    return [f"{base}:{kind}/o-*/*" for kind in ("account", "ou", "root")], own


def _denials(narrow: Narrowing) -> Iterator[Statement]:
    """Machines that nobody may touch, whoever is asked, and what no run has business with.

    Expiry tags are not among them: IAM compares no dates.
    """
    whole = policy_document(
        ACTING,
        partition=narrow.partition,
        spot_may_terminate=narrow.spot_may_end,
        protected_tags=spellings(narrow.kept_tags),
    )["Statement"]
    yield from (one for one in whole if one["Effect"] == "Deny")
    for sid, actions in _NEVER.items():
        yield _deny(sid, actions, "*")
    elsewhere = {"StringNotEquals": {"ec2:CreateAction": list(SNAPSHOTTING)}}
    other = {**elsewhere, "ForAnyValue:StringNotEquals": {"aws:TagKeys": [KEEP_TAG]}}
    yield _deny("TagButOwnSnapshots", "ec2:CreateTags", "*", other)
    # for any value of none holds nothing (IAM guide, "Set operators")
    yield _deny("TagUntold", "ec2:CreateTags", "*", {**elsewhere, "Null": {"aws:TagKeys": "true"}})
    to_others = {"StringNotEquals": {"iam:PassedToService": "vpc-flow-logs.amazonaws.com"}}
    yield _deny("PassRolesButToFlowLogs", "iam:PassRole", "*", to_others)
    yield _deny("AttachToGroupsButTheFreeze", _ON_GROUPS, "*", {"ArnNotLike": {"iam:PolicyARN": _freezing(narrow)}})
    targets, policies = _organisation(narrow)
    yield {
        "Sid": "NeverAttachInTheOrganisationButTheFreeze",
        "Effect": "Deny",
        "Action": list(_ON_TARGETS),
        "NotResource": [*policies, *targets],
    }


documents = Maker(
    "2012-10-17",
    _granted,
    _narrowed,
    own={
        "ledger": lambda narrow: _records("KeepTheLedger", narrow),
        "clicks": lambda narrow: _records("KeepAnswers", narrow),
        "objects": _policies,
        "reports": _reports,
        "secrets": _secrets,
        "freeze": _freezes_of_groups,
        "freeze-organisation": _freezes_of_organisation,
        "deny": _denials,
    },
    of_people=names("budgets: ViewBudget"),  # no function asks for the console's budgets
    listed={
        Lists.REGIONS: names("ec2: DescribeRegions"),
        Lists.MACHINES: names(
            "ec2: DescribeInstanceTypes DescribeInstances DescribeRegions DescribeReservedInstances",
            "ec2: DescribeSpotInstanceRequests",
        ),
    },
).documents
"""The document of every purpose, by its name."""
