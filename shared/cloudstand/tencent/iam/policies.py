"""Service control policies on parts of the organisation, and policies of CAM groups: what is attached where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cloudstand.tencent.core.asking import Answer, Asked
from cloudstand.tencent.core.errors import ApiError, not_modelled
from cloudstand.tencent.iam.desk import FULL_ACCESS, PolicyDesk

_TYPES = {"node": (1, "NODE"), "member": (2, "MEMBER")}
_SINCE = "2026-01-05 16:00:00"
_USUAL_PAGE = 20


def list_policies_for_target(asked: Asked) -> Answer:
    """ListPoliciesForTarget: with those that come from departments above."""
    desk, number = _managed(asked), asked.parameters["TargetId"]
    if asked.get("PolicyType", "SERVICE_CONTROL_POLICY") != "SERVICE_CONTROL_POLICY":
        raise not_modelled("PolicyType")
    kind, own = _target(desk, number)
    found = [(policy, number, _TYPES[kind][0]) for policy in own]
    found += [(policy, node, 1) for policy, node in desk.inherited.get(number, ())]
    return _page(asked, [_of_target(*each) for each in found] if desk.enabled else [])


def attach_policy(asked: Asked) -> Answer:
    """AttachPolicy; what is attached already stays so."""
    return _changed(asked, _attach)


def detach_policy(asked: Asked) -> Answer:
    """DetachPolicy; the last one cannot be taken off."""
    return _changed(asked, _detach_but_the_last)


def list_attached_group_policies(asked: Asked) -> Answer:
    """ListAttachedGroupPolicies."""
    return _page(asked, [_of_group(policy) for policy in _group(asked, "TargetGroupId")])


def attach_group_policy(asked: Asked) -> Answer:
    """AttachGroupPolicy; what is attached already stays so."""
    found = _group(asked, "AttachGroupId")
    _known(asked)
    _attach(found, asked.parameters["PolicyId"])
    return {}


def detach_group_policy(asked: Asked) -> Answer:
    """DetachGroupPolicy."""
    found = _group(asked, "DetachGroupId")
    _known(asked)
    _detach(found, asked.parameters["PolicyId"])
    return {}


def _changed(asked: Asked, change: Callable[[list[int], int], None]) -> Answer:
    desk = _managed(asked)
    if asked.get("Type", "SERVICE_CONTROL_POLICY") != "SERVICE_CONTROL_POLICY":
        raise not_modelled("Type")
    if not desk.enabled:
        raise ApiError("FailedOperation.OrganizationPolicyIsNotEnabled", "the policy is not enabled.", "策略未开启。")
    kind, found = _target(desk, asked.parameters["TargetId"])
    if _TYPES[kind][1] != asked.parameters["TargetType"]:
        raise _no_target()
    _known(asked)
    change(found, asked.parameters["PolicyId"])
    return {}


def _attach(found: list[int], policy: int) -> None:
    if policy not in found:
        found.append(policy)


def _detach(found: list[int], policy: int) -> None:
    if policy in found:
        found.remove(policy)


def _detach_but_the_last(found: list[int], policy: int) -> None:
    if found == [policy]:
        raise ApiError(
            "FailedOperation.OrganizationDetachLastPolicyError", "it is the last policy.", "不能解绑最后一条策略。"
        )
    _detach(found, policy)


def _managed(asked: Asked) -> PolicyDesk:
    """The desk, for who leads the organisation."""
    if asked.account != asked.accounts.management:
        raise ApiError("InvalidParameter.OrganizationMemberNotManager", "not the manager.", "当前账号不是组织管理员。")
    return asked.memory.policies


def _target(desk: PolicyDesk, number: int) -> tuple[str, list[int]]:
    for (kind, known), found in desk.targets.items():
        if known == number:
            return kind, found
    raise _no_target()


def _no_target() -> ApiError:
    return ApiError("FailedOperation.OrganizationMemberNotExist", "there is no such target.", "目标不存在。")


def _group(asked: Asked, key: str) -> list[int]:
    found = asked.memory.policies.groups.get(asked.parameters[key])
    if found is None:
        raise ApiError("ResourceNotFound.GroupNotExist", "the group does not exist.", "用户组不存在。")
    return found


def _known(asked: Asked) -> None:
    if asked.parameters["PolicyId"] not in {FULL_ACCESS, *asked.memory.policies.written}:
        raise ApiError("ResourceNotFound.PolicyIdNotFound", "the policy does not exist.", "策略不存在。")


def _page(asked: Asked, items: list[dict[str, Any]]) -> Answer:
    size = asked.get("Rp", _USUAL_PAGE)
    first = (asked.get("Page", 1) - 1) * size
    return {"List": items[first : first + size], "TotalNum": len(items)}


def _of_target(policy: int, number: int, kind: int) -> dict[str, Any]:
    return {
        "StrategyId": policy,
        "StrategyName": f"policy-{policy}",
        "Remark": "",
        "Uin": number,
        "Type": kind,
        "Name": str(number),
        **dict.fromkeys(("AddTime", "UpdateTime", "AttachTime"), _SINCE),
    }


def _of_group(policy: int) -> dict[str, Any]:
    return {
        "PolicyId": policy,
        "PolicyName": f"policy-{policy}",
        "Remark": "",
        "AddTime": _SINCE,
        "CreateMode": 2,
        "PolicyType": "User",
        "OperateOwnerUin": "",
        "OperateUin": "",
        "OperateUinType": 0,
        "Deactived": 0,
        "DeactivedDetail": [],
    }
