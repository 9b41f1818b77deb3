"""Launch freezes on AWS: a service control policy on a part of the organisation, or a policy on an IAM group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import assert_never

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.domain.errors import TruncatedReadError
from costguard.domain.refs import Shard
from costguard.policy.budget.freeze_ids import APPROVED, APPROVED_TAG
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.kit.core.calls import by_token
from costguard.providers.kit.core.fields import as_documented, flag, named
from costguard.providers.kit.iam.freeze import Freeze, require_policies

_SCP = "SERVICE_CONTROL_POLICY"
_OF_TARGET = "organizations:ListPoliciesForTarget"
_OF_GROUP = "iam:ListAttachedGroupPolicies"
_ENABLE = "enable service control policies in AWS Organizations, with all features"


class AwsFreeze(Freeze[AwsSession]):
    """For one partition of AWS: the ids of policies, of a group their ARNs.

    A service control policy binds neither the organisation's management account nor service-linked roles. To attach one
    again is refused by Organizations, not by IAM. A target holds five policies of an organisation, a group ten.

    API: Organizations ListPoliciesForTarget, AttachPolicy, DetachPolicy; IAM ListAttachedGroupPolicies,
    AttachGroupPolicy, DetachGroupPolicy. Both lists come in pages.
    """

    def _of_target(self, shard: Shard, freeze: LaunchFreeze) -> tuple[str, ...]:
        pages = self._session.pages(
            shard, "organizations", "ListPoliciesForTarget", "Policies", TargetId=freeze.target, Filter=_SCP
        )
        found: list[str] = []
        for page in pages:
            with as_documented(_OF_TARGET):
                found += [named(item, "Id") for item in page]
        require_policies(bool(found), freeze, _OF_TARGET, _ENABLE)
        return tuple(found)

    def _of_group(self, shard: Shard, freeze: LaunchFreeze) -> tuple[str, ...]:
        def ask(page: dict[str, str]) -> dict[str, Any]:
            more = {"Marker": page["NextToken"]} if page else {}
            return self._session.call(shard, "iam", "ListAttachedGroupPolicies", GroupName=freeze.target, **more)

        found: list[str] = []
        for page in by_token(_OF_GROUP, ask, _policies_in, _marker_in):
            with as_documented(_OF_GROUP):
                found += [named(item, "PolicyArn") for item in page]
        return tuple(found)

    def _on_target(self, freeze: LaunchFreeze, verb: str) -> tuple[str, str, Mapping[str, Any]]:
        return "organizations", f"{verb}Policy", {"PolicyId": freeze.policy, "TargetId": freeze.target}

    def _on_group(self, freeze: LaunchFreeze, verb: str) -> tuple[str, str, Mapping[str, Any]]:
        return "iam", f"{verb}GroupPolicy", {"PolicyArn": freeze.policy, "GroupName": freeze.target}


def _policies_in(answer: dict[str, Any]) -> list[Any]:
    found = answer.get("AttachedPolicies")
    if isinstance(found, list):
        return found
    message = f"{_OF_GROUP}: answered without AttachedPolicies: not as documented"
    raise TruncatedReadError(message, operation=_OF_GROUP, code="MissingResult")


def _marker_in(answer: dict[str, Any]) -> str:
    return named(answer, "Marker") if flag(answer, "IsTruncated") else ""


# the policies that a freeze rests on, for people to review and write: Costguard attaches the first and writes none

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
