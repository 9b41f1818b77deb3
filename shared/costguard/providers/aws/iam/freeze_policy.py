"""The policies that a launch freeze on AWS rests on, for people to review and write: Costguard only attaches the first.

It writes none: who can write a policy can grant itself anything.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import assert_never

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.policy.budget.freeze_ids import APPROVED, APPROVED_TAG

ACCELERATED = ("p*", "g*", "inf*", "trn*", "dl*")
"""Globs of instance types: every family with these letters has accelerators, and new ones will."""

LIMITS: tuple[str, ...] = ("tag", "aws_managed", "aws_services", "existing", "platforms")
"""What the denial leaves open, as phrases of the report (`freeze_limit_…`)."""


def denying_policy(cloud: str) -> dict[str, Any]:
    """Denies launching machines with accelerators unless the request tags them as approved.

    The same document serves as service control policy and as IAM policy. A request without the tag has no such key, and
    `StringNotEquals` holds for a key that is not there (IAM guide, "Condition operators").
    """
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "NoNewAcceleratedMachines",
                "Effect": "Deny",
                "Action": "ec2:RunInstances",
                "Resource": f"arn:{cloud}:ec2:*:*:instance/*",
                "Condition": {
                    "StringLike": {"ec2:InstanceType": list(ACCELERATED)},
                    "StringNotEquals": {f"aws:RequestTag/{APPROVED_TAG}": APPROVED},
                },
            }
        ],
    }


def role_policy(freeze: LaunchFreeze) -> dict[str, Any]:
    """What the role needs that freezes: to look at this target, and to attach and detach this one policy there."""
    if freeze.via is FreezeVia.ORGANISATION:
        return {"Version": "2012-10-17", "Statement": _of_organisation(freeze)}
    if freeze.via is FreezeVia.GROUP:
        return {"Version": "2012-10-17", "Statement": _of_group(freeze)}
    assert_never(freeze.via)


def role_limits(_: LaunchFreeze) -> tuple[str, ...]:
    """What the role's policy cannot keep it from, as phrases of the report."""
    return ()


def _of_organisation(freeze: LaunchFreeze) -> list[dict[str, Any]]:
    base = f"arn:{freeze.cloud}:organizations::*"
    kind = {"r": "root", "o": "ou"}.get(freeze.target[:1], "account")
    target = f"{base}:{kind}/o-*/{freeze.target}"
    policy = f"{base}:policy/o-*/service_control_policy/{freeze.policy}"
    return [
        {
            "Sid": "LookAtTarget",
            "Effect": "Allow",
            "Action": "organizations:ListPoliciesForTarget",
            "Resource": target,
        },
        {
            "Sid": "AttachThisPolicyHere",
            "Effect": "Allow",
            "Action": ["organizations:AttachPolicy", "organizations:DetachPolicy"],
            "Resource": [policy, target],
        },
    ]


def _of_group(freeze: LaunchFreeze) -> list[dict[str, Any]]:
    """The group by its name in any path: the freeze names no path, and names are unique in an account."""
    account = freeze.policy.split(":")[4]
    groups = [f"arn:{freeze.cloud}:iam::{account}:group/{place}{freeze.target}" for place in ("", "*/")]
    return [
        {"Sid": "LookAtGroup", "Effect": "Allow", "Action": "iam:ListAttachedGroupPolicies", "Resource": groups},
        {
            "Sid": "AttachThisPolicyHere",
            "Effect": "Allow",
            "Action": ["iam:AttachGroupPolicy", "iam:DetachGroupPolicy"],
            "Resource": groups,
            "Condition": {"ArnEquals": {"iam:PolicyARN": freeze.policy}},
        },
    ]
