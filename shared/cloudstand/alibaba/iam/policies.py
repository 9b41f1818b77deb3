"""Control policies on parts of the organisation, and policies of RAM groups: what is attached where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cloudstand.alibaba.core.errors import FORBIDDEN, NOT_FOUND, ApiError
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.iam.desk import FULL_ACCESS, PolicyDesk
from cloudstand.world.cloud import World

MOST_OF_TARGET = 10
_SYSTEM, _CUSTOM = "System", "Custom"
_SINCE = "2026-01-05T08:00:00Z"


def list_control_policy_attachments_for_target(call: ApiCall, _: World) -> Mapping[str, Any]:
    """ListControlPolicyAttachmentsForTarget: those of the target itself, in one answer.

    Raises:
        ApiError: the caller is no management account, or there is no such target.
    """
    desk = _managed(call)
    found = desk.of_target(call.asked.text("TargetId")) if desk.enabled else []
    return {"ControlPolicyAttachments": {"ControlPolicyAttachment": [_control(policy) for policy in found]}}


def attach_control_policy(call: ApiCall, _: World) -> Mapping[str, Any]:
    """AttachControlPolicy.

    Raises:
        ApiError: no such policy or target, it is attached already, or ten are.
    """
    desk, policy = _managed(call), call.asked.text("PolicyId")
    found = desk.of_target(call.asked.text("TargetId"))
    if policy not in desk.control:
        raise ApiError("EntityNotExists.ControlPolicy", "The control policy does not exist.", NOT_FOUND)
    if policy in found:
        raise ApiError("EntityAlreadyExists.ControlPolicyAttachment", "The control policy is attached already.")
    if len(found) >= MOST_OF_TARGET:
        raise ApiError("LimitExceeded.ControlPolicyAttachment", "Too many control policies are attached.")
    found.append(policy)
    return {}


def detach_control_policy(call: ApiCall, _: World) -> Mapping[str, Any]:
    """DetachControlPolicy.

    Raises:
        ApiError: no such target, or it is not attached there.
    """
    desk, policy = _managed(call), call.asked.text("PolicyId")
    found = desk.of_target(call.asked.text("TargetId"))
    if policy == FULL_ACCESS or policy not in found:
        raise ApiError("EntityNotExists.ControlPolicyAttachment", "The control policy is not attached.", NOT_FOUND)
    found.remove(policy)
    return {}


def list_policies_for_group(call: ApiCall, _: World) -> Mapping[str, Any]:
    """ListPoliciesForGroup, in one answer.

    Raises:
        ApiError: there is no such group.
    """
    found = call.site.policies.of_group(call.account, call.asked.text("GroupName"))
    return {
        "Policies": {
            "Policy": [
                {
                    "PolicyType": kind,
                    "PolicyName": name,
                    "DefaultVersion": "v1",
                    "Description": "",
                    "AttachDate": _SINCE,
                }
                for kind, name in found
            ]
        }
    }


def attach_policy_to_group(call: ApiCall, _: World) -> Mapping[str, Any]:
    """AttachPolicyToGroup.

    Raises:
        ApiError: no such policy or group, or it is attached already.
    """

    def attach(found: list[tuple[str, str]], policy: tuple[str, str]) -> None:
        if policy in found:
            raise ApiError("EntityAlreadyExists.Group.Policy", "The policy is attached already.")
        found.append(policy)

    return _changed(call, attach)


def detach_policy_from_group(call: ApiCall, _: World) -> Mapping[str, Any]:
    """DetachPolicyFromGroup.

    Raises:
        ApiError: no such policy or group, or it is not attached.
    """

    def detach(found: list[tuple[str, str]], policy: tuple[str, str]) -> None:
        if policy not in found:
            raise ApiError("EntityNotExist.Group.Policy", "The policy is not attached.", NOT_FOUND)
        found.remove(policy)

    return _changed(call, detach)


def _changed(call: ApiCall, change: Callable[[list[tuple[str, str]], tuple[str, str]], None]) -> Mapping[str, Any]:
    desk, asked = call.site.policies, call.asked
    found = desk.of_group(call.account, asked.text("GroupName"))
    kind, name = asked.text("PolicyType"), asked.text("PolicyName")
    if kind == _CUSTOM and (call.account, name) not in desk.written:
        raise ApiError("EntityNotExist.Policy", "The policy does not exist.", NOT_FOUND)
    change(found, (kind, name))
    return {}


def _managed(call: ApiCall) -> PolicyDesk:
    """The desk, for who leads the organisation."""
    if call.account != call.site.accounts[0]:
        message = "The specified account is not the management account of a resource directory."
        raise ApiError("NoPermission.Operator", message, FORBIDDEN)
    return call.site.policies


def _control(policy: str) -> dict[str, Any]:
    is_system = policy == FULL_ACCESS
    return {
        "PolicyId": policy,
        "PolicyName": policy,
        "PolicyType": _SYSTEM if is_system else _CUSTOM,
        "EffectScope": "All" if is_system else "RAM",
        "Description": "",
        "AttachDate": _SINCE,
    }
