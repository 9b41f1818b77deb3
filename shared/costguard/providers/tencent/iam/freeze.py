"""Launch freezes on Tencent Cloud: a service control policy of the organisation, or a policy on a CAM group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from typing_extensions import assert_never

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.domain.errors import TruncatedReadError
from costguard.domain.refs import Shard
from costguard.policy.budget.freeze_ids import APPROVED, APPROVED_TAG
from costguard.providers.kit.core.fields import Fields, as_documented, parts, whole
from costguard.providers.kit.iam.freeze import Freeze, require_policies
from costguard.providers.tencent.core.session import TencentSession

_SCP = "SERVICE_CONTROL_POLICY"
_TYPES = {"node": "NODE", "member": "MEMBER"}
_OF_TARGET = "organization:ListPoliciesForTarget"
_ENABLE = "enable service control policies in Tencent Cloud Organization"
_PAGE = 20  # what both lists give by default; only one of them says how many it gives at most
_MOST_PAGES = 200


class TencentFreeze(Freeze[TencentSession]):
    """For one site of Tencent Cloud: the ids of policies; the list of a target may name inherited ones as well.

    A service control policy binds neither the organisation's manager nor roles of services.

    API: Organization ListPoliciesForTarget, AttachPolicy, DetachPolicy; CAM ListAttachedGroupPolicies,
    AttachGroupPolicy, DetachGroupPolicy. Both lists come in numbered pages.
    """

    def _of_target(self, shard: Shard, freeze: LaunchFreeze) -> tuple[str, ...]:
        number = _number(freeze)
        listed = self._listed(
            shard, "organization", "ListPoliciesForTarget", "StrategyId", TargetId=number, PolicyType=_SCP
        )
        require_policies(bool(listed), freeze, _OF_TARGET, _ENABLE)
        with as_documented(_OF_TARGET):
            return tuple(policy for policy, item in listed.items() if whole(item, "Uin") == number)

    def _of_group(self, shard: Shard, freeze: LaunchFreeze) -> tuple[str, ...]:
        group = int(freeze.target)
        return tuple(self._listed(shard, "cam", "ListAttachedGroupPolicies", "PolicyId", TargetGroupId=group))

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

    def _on_target(self, freeze: LaunchFreeze, verb: str) -> tuple[str, str, Mapping[str, Any]]:
        kind = _TYPES[freeze.target.partition("/")[0]]
        what = {"PolicyId": int(freeze.policy), "TargetId": _number(freeze), "TargetType": kind, "Type": _SCP}
        return "organization", f"{verb}Policy", what

    def _on_group(self, freeze: LaunchFreeze, verb: str) -> tuple[str, str, Mapping[str, Any]]:
        what = {"PolicyId": int(freeze.policy), f"{verb}GroupId": int(freeze.target)}
        return "cam", f"{verb}GroupPolicy", what


def _number(freeze: LaunchFreeze) -> int:
    return int(freeze.target.partition("/")[2])


def _cut_short(operation: str, what: str, code: str) -> TruncatedReadError:
    return TruncatedReadError(f"{operation}: {what}", operation=operation, code=code)


# the policies that a freeze rests on, for people to review and write: Costguard attaches the first and writes none

ACCELERATED = ("GN*", "GT*", "GI*", "PNV*", "HCCPNV*", "HCCG*", "BMG*")
"""Globs of instance types: `GN10Xp.2XLARGE40`."""

LIMITS: tuple[str, ...] = ("tag", "tencent_keys", "tencent_managed", "existing", "platforms")
"""What the denial leaves open, as phrases of the report (`freeze_limit_…`)."""


def denying_policy(_: str) -> dict[str, Any]:
    """Denies launching machines with GPUs unless the request tags them as approved.

    The same document serves as service control policy and as CAM policy. A tag is one value, `key&value`, of all those
    of the request: denied is what has it nowhere among them.
    """
    return {
        "version": "2.0",
        "statement": [
            {
                "effect": "deny",
                "action": ["cvm:RunInstances"],
                "resource": ["*"],
                "condition": {
                    "string_like": {"cvm:instance_type": list(ACCELERATED)},
                    "for_all_value:string_not_equal": {"qcs:request_tag": [f"{APPROVED_TAG}&{APPROVED}"]},
                },
            }
        ],
    }


def role_policy(freeze: LaunchFreeze) -> dict[str, Any]:
    """What the role needs that freezes. The pages of these operations name no resource to narrow them to."""
    if freeze.via is FreezeVia.ORGANISATION:
        actions = [f"organization:{name}" for name in ("ListPoliciesForTarget", "AttachPolicy", "DetachPolicy")]
    elif freeze.via is FreezeVia.GROUP:
        actions = [f"cam:{name}" for name in ("ListAttachedGroupPolicies", "AttachGroupPolicy", "DetachGroupPolicy")]
    else:
        assert_never(freeze.via)
    return {"version": "2.0", "statement": [{"effect": "allow", "action": actions, "resource": ["*"]}]}


def role_limits(_: LaunchFreeze) -> tuple[str, ...]:
    """What the role's policy cannot keep it from, as phrases of the report."""
    return ("tencent_role",)
