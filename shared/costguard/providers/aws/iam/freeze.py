"""Launch freezes on AWS: a service control policy on a part of the organisation, or a policy on an IAM group."""

from __future__ import annotations

from typing import Any

from typing_extensions import assert_never

from costguard.domain.actions import FreezeVia, LaunchFreeze, Receipt
from costguard.domain.errors import TruncatedReadError
from costguard.domain.refs import Shard
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import as_documented, flag, named, part, text
from costguard.providers.kit.core.paging import by_token
from costguard.providers.kit.iam.freeze import WayIn, own_keys_only, require_fit, require_policies, shard_of
from costguard.providers.kit.iam.purposes import Purpose, require_purpose

_SCP = "SERVICE_CONTROL_POLICY"
_OF_TARGET = "organizations:ListPoliciesForTarget"
_OF_GROUP = "iam:ListAttachedGroupPolicies"
_ENABLE = "enable service control policies in AWS Organizations, with all features"


class AwsFreeze:
    """`FreezeControl` for one partition of AWS, from a session that can do nothing else.

    `ways_in` tells the target whose role leads into an account; without one the caller's own keys are used.
    A service control policy binds neither the organisation's management account nor service-linked roles.
    """

    def __init__(self, session: AwsSession, ways_in: WayIn = own_keys_only) -> None:
        """Take a session made for freezing.

        Raises:
            InvalidInputError: it can do more than that.
        """
        require_purpose(session, Purpose.FREEZE)
        self._session = session
        self._ways_in = ways_in

    def attached(self, freeze: LaunchFreeze) -> tuple[str, ...]:
        """The ids (of a group: the ARNs) of every policy attached to the target itself; not of those it inherits.

        Raises:
            RefusedError: the freeze does not fit this cloud, or the organisation has no service control policies.
            ProviderError: not read in full.

        API: Organizations ListPoliciesForTarget, IAM ListAttachedGroupPolicies; both in pages.
        """
        shard = self._shard(freeze)
        if freeze.via is FreezeVia.ORGANISATION:
            found = self._of_target(shard, freeze)
            require_policies(bool(found), freeze, _OF_TARGET, _ENABLE)
            return found
        if freeze.via is FreezeVia.GROUP:
            return self._of_group(shard, freeze)
        assert_never(freeze.via)

    def attach(self, freeze: LaunchFreeze) -> Receipt:
        """Attach the freeze's policy to its target, once; to attach it again is refused by Organizations, not by IAM.

        Raises:
            OutcomeUnknownError: it may be attached; read `attached` before anything else.
            AccessDeniedError: the role lacks the permission, or this is not the policy it may attach.
            RefusedError: AWS refused (a target holds five policies of an organisation, a group ten); nothing changed.
            ThrottledError: rejected before execution, or the organisation is being changed by somebody; not repeated.

        API: Organizations AttachPolicy, IAM AttachGroupPolicy.
        """
        return self._change(freeze, "AttachPolicy", "AttachGroupPolicy")

    def detach(self, freeze: LaunchFreeze) -> Receipt:
        """Detach the freeze's policy from its target, once; errors as `attach`.

        API: Organizations DetachPolicy, IAM DetachGroupPolicy.
        """
        return self._change(freeze, "DetachPolicy", "DetachGroupPolicy")

    def _shard(self, freeze: LaunchFreeze) -> Shard:
        require_fit(freeze, self._session.cloud)
        return shard_of(freeze, self._session, self._ways_in)

    def _of_target(self, shard: Shard, freeze: LaunchFreeze) -> tuple[str, ...]:
        pages = self._session.pages(
            shard, "organizations", "ListPoliciesForTarget", "Policies", TargetId=freeze.target, Filter=_SCP
        )
        found: list[str] = []
        for page in pages:
            with as_documented(_OF_TARGET):
                found += [named(item, "Id") for item in page]
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

    def _change(self, freeze: LaunchFreeze, of_target: str, of_group: str) -> Receipt:
        shard = self._shard(freeze)
        if freeze.via is FreezeVia.ORGANISATION:
            service, operation = "organizations", of_target
            what = {"PolicyId": freeze.policy, "TargetId": freeze.target}
        elif freeze.via is FreezeVia.GROUP:
            service, operation = "iam", of_group
            what = {"PolicyArn": freeze.policy, "GroupName": freeze.target}
        else:
            assert_never(freeze.via)
        answer = self._session.call(shard, service, operation, **what)
        with after_sending(f"{service}:{operation}"):
            return Receipt(request_id=text(part(answer, "ResponseMetadata"), "RequestId"))


def _policies_in(answer: dict[str, Any]) -> list[Any]:
    found = answer.get("AttachedPolicies")
    if isinstance(found, list):
        return found
    message = f"{_OF_GROUP}: answered without AttachedPolicies: not as documented"
    raise TruncatedReadError(message, operation=_OF_GROUP, code="MissingResult")


def _marker_in(answer: dict[str, Any]) -> str:
    return named(answer, "Marker") if flag(answer, "IsTruncated") else ""
