"""Launch freezes on Alibaba Cloud: a control policy on a part of the resource directory, or a policy on a RAM group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import assert_never

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.domain.errors import TruncatedReadError
from costguard.domain.refs import Shard
from costguard.policy.budget.freeze_ids import APPROVED, APPROVED_TAG
from costguard.providers.alibaba.core.products import structures_in
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named
from costguard.providers.kit.iam.freeze import Freeze, require_policies

_CUSTOM = "Custom"
_OF_TARGET = "resourcedirectory:ListControlPolicyAttachmentsForTarget"
_OF_GROUP = "ram:ListPoliciesForGroup"
_ENABLE = "enable the control policy feature of the resource directory"


class AlibabaFreeze(Freeze[AlibabaSession]):
    """For one site of Alibaba Cloud: the ids of policies, of a group their names.

    The vendor's own policies of a group stand there as `System:Name`: a policy that people wrote may be called so.
    A control policy does not bind the resource directory's management account; a target holds ten.

    API: ResourceDirectoryMaster ListControlPolicyAttachmentsForTarget, AttachControlPolicy, DetachControlPolicy; RAM
    ListPoliciesForGroup, AttachPolicyToGroup, DetachPolicyFromGroup with PolicyType Custom. Either list is one answer
    without pages.
    """

    def _of_target(self, shard: Shard, freeze: LaunchFreeze) -> tuple[str, ...]:
        answer = self._session.call(
            shard, "resourcedirectory", "ListControlPolicyAttachmentsForTarget", TargetId=freeze.target
        )
        with as_documented(_OF_TARGET):
            listed = structures_in(answer, "ControlPolicyAttachments.ControlPolicyAttachment", _OF_TARGET)
            found = tuple(named(item, "PolicyId") for item in listed)
        require_policies(bool(found), freeze, _OF_TARGET, _ENABLE)
        return found

    def _of_group(self, shard: Shard, freeze: LaunchFreeze) -> tuple[str, ...]:
        answer = self._session.call(shard, "ram", "ListPoliciesForGroup", GroupName=freeze.target)
        with as_documented(_OF_GROUP):
            found = tuple(_name(item) for item in structures_in(answer, "Policies.Policy", _OF_GROUP))
            more = flag(answer, "IsTruncated")
        if more:  # not documented of this list, as it is of RAM's others
            message = f"{_OF_GROUP}: there are more than the {len(found)} policies listed"
            raise TruncatedReadError(message, operation=_OF_GROUP, code="Truncated")
        return found

    def _on_target(self, freeze: LaunchFreeze, verb: str) -> tuple[str, str, Mapping[str, Any]]:
        return "resourcedirectory", f"{verb}ControlPolicy", {"PolicyId": freeze.policy, "TargetId": freeze.target}

    def _on_group(self, freeze: LaunchFreeze, verb: str) -> tuple[str, str, Mapping[str, Any]]:
        operation = f"{verb}Policy{'To' if verb == 'Attach' else 'From'}Group"
        return "ram", operation, {"PolicyType": _CUSTOM, "PolicyName": freeze.policy, "GroupName": freeze.target}


def _name(policy: Fields) -> str:
    kind, name = named(policy, "PolicyType"), named(policy, "PolicyName")
    return name if kind == _CUSTOM else f"{kind}:{name}"


# the policies that a freeze rests on, for people to review and write: Costguard attaches the first and writes none

ACCELERATED = ("ecs.*gn*", "ecs.ga*", "ecs.ebmga*", "ecs.gp*", "ecs.ebmgp*")
"""Globs of instance types and of families alike: `ecs.ebmgn7e.32xlarge` is of `ecs.ebmgn7e`."""

LIMITS: tuple[str, ...] = ("tag", "alibaba_keys", "alibaba_absent", "alibaba_managed", "existing", "platforms")
"""What the denial leaves open, as phrases of the report (`freeze_limit_…`)."""

_LAUNCHES = ["ecs:RunInstances", "ecs:CreateInstance"]
_KEYS = ("ecs:InstanceType", "ecs:InstanceTypeFamily")


def denying_policy(_: str) -> dict[str, Any]:
    """Denies launching machines with GPUs unless the request tags them as approved.

    The same document serves as control policy and as RAM policy. ECS documents two keys for what is launched, and
    a statement for each denies where either is told.
    """
    return {
        "Version": "1",
        "Statement": [
            {
                "Effect": "Deny",
                "Action": _LAUNCHES,
                "Resource": "*",
                "Condition": {
                    "StringLike": {key: list(ACCELERATED)},
                    "StringNotEquals": {f"acs:RequestTag/{APPROVED_TAG}": [APPROVED]},
                },
            }
            for key in _KEYS
        ],
    }


def role_policy(freeze: LaunchFreeze) -> dict[str, Any]:
    """What the role needs that freezes. RAM narrows a group and its policy; of control policies no resource is told."""
    if freeze.via is FreezeVia.ORGANISATION:
        names = ("ListControlPolicyAttachmentsForTarget", "AttachControlPolicy", "DetachControlPolicy")
        # the documents of the two products name the permissions differently
        actions = [f"{product}:{name}" for name in names for product in ("resourcemanager", "resourcedirectory")]
        return {"Version": "1", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
    if freeze.via is FreezeVia.GROUP:
        return {"Version": "1", "Statement": _of_group(freeze)}
    assert_never(freeze.via)


def role_limits(freeze: LaunchFreeze) -> tuple[str, ...]:
    """What the role's policy cannot keep it from, as phrases of the report."""
    return ("alibaba_role",) if freeze.via is FreezeVia.ORGANISATION else ()


def _of_group(freeze: LaunchFreeze) -> list[dict[str, Any]]:
    """RAM asks for both the group and the policy (its guide, "RAM authorization"), so both are named."""
    account = freeze.account or "*"
    group, policy = f"acs:ram:*:{account}:group/{freeze.target}", f"acs:ram:*:{account}:policy/{freeze.policy}"
    changes = ["ram:AttachPolicyToGroup", "ram:DetachPolicyFromGroup"]
    return [
        {"Effect": "Allow", "Action": ["ram:ListPoliciesForGroup"], "Resource": [group]},
        {"Effect": "Allow", "Action": changes, "Resource": [group, policy]},
    ]
