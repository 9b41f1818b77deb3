"""The policies that a launch freeze on Alibaba Cloud rests on, for people to review and write: none is written here."""

from __future__ import annotations

from typing import Any

from typing_extensions import assert_never

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.policy.budget.freeze_ids import APPROVED, APPROVED_TAG

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
