"""Which permission of CAM a call takes, on what: "CAM-Enabled API" of the products, for what changes something.

Reads are asked about as a whole: Costguard's documents grant them on all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudstand.tencent.core.credentials import Identity
from cloudstand.wire.authority import ANY, Wish
from cloudstand.world.cloud import World

_KINDS = {
    "cvm:StopInstances": ("InstanceIds", "instance"),
    "cvm:StartInstances": ("InstanceIds", "instance"),
    "cvm:TerminateInstances": ("InstanceIds", "instance"),
    "kms:EnableKeyRotation": ("KeyId", "key"),
    "kms:RotateKey": ("KeyId", "key"),
    "vpc:CreateSecurityGroupPolicies": ("SecurityGroupId", "sg"),
    "vpc:ReplaceSecurityGroupPolicy": ("SecurityGroupId", "sg"),
    "vpc:DeleteSecurityGroupPolicies": ("SecurityGroupId", "sg"),
    "ssm:GetSecretValue": ("SecretName", "secret/creatorUin/{owner}"),
}


def wish(permission: str, region: str, caller: Identity, given: Mapping[str, Any], world: World) -> Wish:
    """What has to be allowed."""
    if permission == "sts:AssumeRole":
        return Wish((permission,), (str(given["RoleArn"]),))
    if permission == "tag:TagResources":
        return Wish((permission,), tuple(str(name) for name in given["ResourceList"]))
    if permission not in _KINDS:
        return Wish((permission,))
    parameter, kind = _KINDS[permission]
    named = given.get(parameter, [])
    ids = [str(one) for one in ([named] if isinstance(named, str) else named)]
    service, own = permission.partition(":")[0], kind.replace("{owner}", caller.account)
    resources = tuple(f"qcs::{service}:{region}:uin/{caller.account}:{own}/{one}" for one in ids)
    machines = (world.machines.get(one) for one in ids)
    tags = tuple(f"{key}&{value}" for one in machines if one is not None for key, value in one.tags.items())
    return Wish((permission,), resources or (ANY,), {"qcs:resource_tag": tags} if tags else {})
