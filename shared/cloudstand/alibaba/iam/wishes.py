"""Which permissions of RAM a call takes, on what: the products' pages "RAM authorization", for what changes something.

Reads are asked about as a whole: their pages know resources too, and Costguard's documents grant them on all.
"""

from __future__ import annotations

from collections.abc import Sequence

from cloudstand.alibaba.core.site import ApiCall
from cloudstand.wire.authority import ANY, Wish
from cloudstand.world.cloud import World

_KINDS = {
    "StopInstances": ("InstanceId", "instance"),
    "StartInstances": ("InstanceId", "instance"),
    "DeleteInstances": ("InstanceId", "instance"),
    "ModifyInstanceMetadataOptions": ("InstanceId", "instance"),
    "AuthorizeSecurityGroup": ("SecurityGroupId", "securitygroup"),
    "RevokeSecurityGroup": ("SecurityGroupId", "securitygroup"),
    "UpdateRotationPolicy": ("KeyId", "key"),
    "CreateKeyVersion": ("KeyId", "key"),
    "GetKeyPolicy": ("KeyId", "key"),
    "GetSecretValue": ("SecretName", "secret"),
}
_OF_GROUPS = frozenset({"ListPoliciesForGroup", "AttachPolicyToGroup", "DetachPolicyFromGroup"})


def wishes(call: ApiCall, permissions: tuple[str, ...], world: World) -> Sequence[Wish]:
    """What has to be allowed, all of it; tags set while something is made take a permission of their own."""
    context = {f"acs:RequestTag/{tag['Key']}": (str(tag["Value"]),) for tag in call.asked.groups("Tag") if "Key" in tag}
    first = Wish(permissions, _resources(call), context | _tags_of_machines(call, world))
    if call.action == "CreateSnapshot" and call.asked.given("Tag"):
        return (first, Wish(("ecs:TagResources",), (_named(call, "snapshot/*"),), context))
    if call.action == "CreateKey" and call.asked.given("Tags"):
        return (first, Wish(("kms:TagResource",), (_named(call, "key/*"),)))
    return (first,)


def _resources(call: ApiCall) -> tuple[str, ...]:
    asked = call.asked
    if call.action in _KINDS:
        parameter, kind = _KINDS[call.action]
        named = asked.many(parameter) or ([asked.text(parameter)] if asked.text(parameter) else [])
        return tuple(_named(call, f"{kind}/{name}") for name in named) or (ANY,)
    if call.action == "TagResources":
        return tuple(_named(call, f"{asked.text('ResourceType')}/{name}") for name in asked.many("ResourceId"))
    if call.action == "CreateSnapshot":
        return _named(call, f"disk/{asked.text('DiskId')}"), _named(call, "snapshot/*")
    if call.action == "UpdateAlias":
        return _named(call, asked.text("AliasName")), _named(call, f"key/{asked.text('KeyId')}")
    if call.action in {"Encrypt", "Decrypt"}:  # by an alias or a ciphertext too: the key is what it leads to
        return (_named(call, "key/of-the-alias"),)
    if call.action == "AssumeRole":
        return (asked.text("RoleArn"),)
    if call.action in _OF_GROUPS:
        group = f"acs:ram:*:{call.account}:group/{asked.text('GroupName')}"
        policy = asked.text("PolicyName")
        return (group, f"acs:ram:*:{call.account}:policy/{policy}") if policy else (group,)
    return (ANY,)


def _named(call: ApiCall, resource: str) -> str:
    return f"acs:{call.service}:{call.region}:{call.account}:{resource}"


def _tags_of_machines(call: ApiCall, world: World) -> dict[str, tuple[str, ...]]:
    """Of the machines it names; one of them is enough to be denied for."""
    if _KINDS.get(call.action, ("", ""))[1] != "instance":
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for native_id in call.asked.many("InstanceId") or [call.asked.text("InstanceId")]:
        machine = world.machines.get(native_id)
        for key, value in (machine.tags if machine is not None else {}).items():
            found[f"acs:ResourceTag/{key}"] = (*found.get(f"acs:ResourceTag/{key}", ()), value)
    return found
