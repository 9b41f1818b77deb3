"""Launch freezes on Alibaba Cloud: a control policy on a part of the resource directory, or a policy on a RAM group."""

from __future__ import annotations

from typing_extensions import assert_never

from costguard.domain.actions import FreezeVia, LaunchFreeze, Receipt
from costguard.domain.errors import TruncatedReadError
from costguard.domain.refs import Shard
from costguard.providers.alibaba.core.fields import structures_in
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named
from costguard.providers.kit.iam.freeze import WayIn, own_keys_only, require_fit, require_policies, shard_of
from costguard.providers.kit.iam.purposes import Purpose, require_purpose

_CUSTOM = "Custom"
_OF_TARGET = "resourcedirectory:ListControlPolicyAttachmentsForTarget"
_OF_GROUP = "ram:ListPoliciesForGroup"
_ENABLE = "enable the control policy feature of the resource directory"


class AlibabaFreeze:
    """`FreezeControl` for one site of Alibaba Cloud, from a session that can do nothing else.

    `ways_in` tells the target whose role leads into an account; without one the caller's own keys are used.
    A control policy does not bind the resource directory's management account.
    """

    def __init__(self, session: AlibabaSession, ways_in: WayIn = own_keys_only) -> None:
        """Take a session made for freezing.

        Raises:
            InvalidInputError: it can do more than that.
        """
        require_purpose(session, Purpose.FREEZE)
        self._session = session
        self._ways_in = ways_in

    def attached(self, freeze: LaunchFreeze) -> tuple[str, ...]:
        """The ids (of a group: the names) of every policy attached to the target itself; not of those it inherits.

        The vendor's own policies of a group stand there as `System:Name`: a policy that people wrote may be called so.

        Raises:
            RefusedError: the freeze does not fit this cloud, or the directory has no control policies.
            ProviderError: not read in full.

        API: ListControlPolicyAttachmentsForTarget, ListPoliciesForGroup; either is one answer without pages.
        """
        shard = self._shard(freeze)
        if freeze.via is FreezeVia.ORGANISATION:
            return self._of_target(shard, freeze)
        if freeze.via is FreezeVia.GROUP:
            return self._of_group(shard, freeze)
        assert_never(freeze.via)

    def attach(self, freeze: LaunchFreeze) -> Receipt:
        """Attach the freeze's policy to its target, once.

        Raises:
            OutcomeUnknownError: it may be attached; read `attached` before anything else.
            AccessDeniedError: the role lacks the permission, or this is not the policy it may attach.
            RefusedError: Alibaba Cloud refused (a target holds ten control policies); nothing changed.
            ThrottledError: rejected before execution, or the directory is being changed by somebody; not repeated.

        API: AttachControlPolicy, AttachPolicyToGroup with PolicyType Custom.
        """
        return self._change(freeze, "AttachControlPolicy", "AttachPolicyToGroup")

    def detach(self, freeze: LaunchFreeze) -> Receipt:
        """Detach the freeze's policy from its target, once; errors as `attach`.

        API: DetachControlPolicy, DetachPolicyFromGroup with PolicyType Custom.
        """
        return self._change(freeze, "DetachControlPolicy", "DetachPolicyFromGroup")

    def _shard(self, freeze: LaunchFreeze) -> Shard:
        require_fit(freeze, self._session.cloud)
        return shard_of(freeze, self._session, self._ways_in)

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

    def _change(self, freeze: LaunchFreeze, of_target: str, of_group: str) -> Receipt:
        shard = self._shard(freeze)
        if freeze.via is FreezeVia.ORGANISATION:
            service, operation = "resourcedirectory", of_target
            what = {"PolicyId": freeze.policy, "TargetId": freeze.target}
        elif freeze.via is FreezeVia.GROUP:
            service, operation = "ram", of_group
            what = {"PolicyType": _CUSTOM, "PolicyName": freeze.policy, "GroupName": freeze.target}
        else:
            assert_never(freeze.via)
        answer = self._session.call(shard, service, operation, **what)
        with after_sending(f"{service}:{operation}"):
            return Receipt(request_id=named(answer, "RequestId"))


def _name(policy: Fields) -> str:
    kind, name = named(policy, "PolicyType"), named(policy, "PolicyName")
    return name if kind == _CUSTOM else f"{kind}:{name}"
