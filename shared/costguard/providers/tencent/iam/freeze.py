"""Launch freezes on Tencent Cloud: a service control policy of the organisation, or a policy on a CAM group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from typing_extensions import assert_never

from costguard.domain.actions import FreezeVia, LaunchFreeze, Receipt
from costguard.domain.errors import TruncatedReadError
from costguard.domain.refs import Shard
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import Fields, as_documented, named, parts, whole
from costguard.providers.kit.iam.freeze import WayIn, own_keys_only, require_fit, require_policies, shard_of
from costguard.providers.kit.iam.purposes import Purpose, require_purpose
from costguard.providers.tencent.core.session import TencentSession

_SCP = "SERVICE_CONTROL_POLICY"
_TYPES = {"node": "NODE", "member": "MEMBER"}
_OF_TARGET = "organization:ListPoliciesForTarget"
_ENABLE = "enable service control policies in Tencent Cloud Organization"
_PAGE = 20  # what both lists give by default; only one of them says how many it gives at most
_MOST_PAGES = 200


class TencentFreeze:
    """`FreezeControl` for one site of Tencent Cloud, from a session that can do nothing else.

    `ways_in` tells the target whose role leads into an account; without one the caller's own keys are used.
    A service control policy binds neither the organisation's manager nor roles of services.
    """

    def __init__(self, session: TencentSession, ways_in: WayIn = own_keys_only) -> None:
        """Take a session made for freezing.

        Raises:
            InvalidInputError: it can do more than that.
        """
        require_purpose(session, Purpose.FREEZE)
        self._session = session
        self._ways_in = ways_in

    def attached(self, freeze: LaunchFreeze) -> tuple[str, ...]:
        """The ids of every policy attached to the target itself; not of those it inherits, which the list may name.

        Raises:
            RefusedError: the freeze does not fit this cloud, or the organisation has no service control policies.
            ProviderError: not read in full.

        API: Organization ListPoliciesForTarget, CAM ListAttachedGroupPolicies; both in numbered pages.
        """
        shard = self._shard(freeze)
        if freeze.via is FreezeVia.ORGANISATION:
            number = _number(freeze)
            listed = self._listed(
                shard, "organization", "ListPoliciesForTarget", "StrategyId", TargetId=number, PolicyType=_SCP
            )
            require_policies(bool(listed), freeze, _OF_TARGET, _ENABLE)
            with as_documented(_OF_TARGET):
                return tuple(policy for policy, item in listed.items() if whole(item, "Uin") == number)
        if freeze.via is FreezeVia.GROUP:
            group = int(freeze.target)
            return tuple(self._listed(shard, "cam", "ListAttachedGroupPolicies", "PolicyId", TargetGroupId=group))
        assert_never(freeze.via)

    def attach(self, freeze: LaunchFreeze) -> Receipt:
        """Attach the freeze's policy to its target, once.

        Raises:
            OutcomeUnknownError: it may be attached; read `attached` before anything else.
            AccessDeniedError: the role lacks the permission.
            RefusedError: Tencent Cloud refused; nothing changed.
            ThrottledError: rejected before execution; nothing changed.

        API: Organization AttachPolicy, CAM AttachGroupPolicy.
        """
        return self._change(freeze, "AttachPolicy", "AttachGroupPolicy", "AttachGroupId")

    def detach(self, freeze: LaunchFreeze) -> Receipt:
        """Detach the freeze's policy from its target, once; errors as `attach`.

        API: Organization DetachPolicy, CAM DetachGroupPolicy.
        """
        return self._change(freeze, "DetachPolicy", "DetachGroupPolicy", "DetachGroupId")

    def _shard(self, freeze: LaunchFreeze) -> Shard:
        require_fit(freeze, self._session.cloud)
        return shard_of(freeze, self._session, self._ways_in)

    def _listed(self, shard: Shard, service: str, action: str, id_key: str, /, **what: Any) -> Mapping[str, Fields]:
        """The policies of every page, by their ids.

        Raises:
            TruncatedReadError: pages that end early, repeat themselves or contradict their own count.
        """
        operation = f"{service}:{action}"
        found: dict[str, Fields] = {}
        most = 0
        for items, total in self._pages(shard, service, action, what):
            with as_documented(operation):
                page = {str(whole(item, id_key)): item for item in items}
            if len(page) != len(items) or found.keys() & page.keys():
                raise _cut_short(operation, "a policy came twice: the list moved while it was read", "Repeated")
            found |= page
            most = max(most, total)
            if total < most or (len(items) < _PAGE and len(found) < total):
                raise _cut_short(operation, f"ended after {len(found)} of {most} policies", "EndedEarly")
            if len(found) >= total:
                return found
        raise _cut_short(operation, f"more than {_MOST_PAGES} pages", "TooManyPages")

    def _pages(
        self, shard: Shard, service: str, action: str, what: Mapping[str, Any]
    ) -> Iterator[tuple[list[Fields], int]]:
        operation = f"{service}:{action}"
        for number in range(1, _MOST_PAGES + 1):
            answer = self._session.call(shard, service, action, **what, Page=number, Rp=_PAGE)
            if "List" not in answer:
                raise _cut_short(operation, "answered without List: not as documented", "MissingResult")
            with as_documented(operation):
                yield parts(answer, "List"), whole(answer, "TotalNum")

    def _change(self, freeze: LaunchFreeze, of_target: str, of_group: str, group_key: str) -> Receipt:
        shard = self._shard(freeze)
        what: dict[str, Any] = {"PolicyId": int(freeze.policy)}
        if freeze.via is FreezeVia.ORGANISATION:
            service, action = "organization", of_target
            what |= {"TargetId": _number(freeze), "TargetType": _TYPES[freeze.target.partition("/")[0]], "Type": _SCP}
        elif freeze.via is FreezeVia.GROUP:
            service, action = "cam", of_group
            what |= {group_key: int(freeze.target)}
        else:
            assert_never(freeze.via)
        answer = self._session.call(shard, service, action, **what)
        with after_sending(f"{service}:{action}"):
            return Receipt(request_id=named(answer, "RequestId"))


def _number(freeze: LaunchFreeze) -> int:
    return int(freeze.target.partition("/")[2])


def _cut_short(operation: str, what: str, code: str) -> TruncatedReadError:
    return TruncatedReadError(f"{operation}: {what}", operation=operation, code=code)
