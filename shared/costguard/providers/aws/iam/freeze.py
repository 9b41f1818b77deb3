"""Launch freezes on AWS: a service control policy on a part of the organisation, or a policy on an IAM group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costguard.domain.actions import LaunchFreeze
from costguard.domain.errors import TruncatedReadError
from costguard.domain.refs import Shard
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
