"""The two changes of keys that the emulator has; there is no way to disable, delete or import one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudstand.alibaba.core.errors import missing
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.core.times import second
from cloudstand.alibaba.kms.keys import key_named, version_of
from cloudstand.alibaba.kms.rotation import make_version, set_policy
from cloudstand.world.cloud import World

_BY = "api"


def update_rotation_policy(call: ApiCall, world: World) -> Mapping[str, Any]:
    """UpdateRotationPolicy, by id.

    Raises:
        ApiError: no such key, its state or kind does not allow it, or not this period.
    """
    key, asked = key_named(call, world), call.asked
    on = asked.flag("EnableAutomaticRotation")
    if on and not asked.text("RotationInterval"):
        raise missing("RotationInterval")
    set_policy(world, key, asked.text("RotationInterval") if on else None, _BY)
    return {}


def create_key_version(call: ApiCall, world: World) -> Mapping[str, Any]:
    """CreateKeyVersion, by id; the new version is the primary one at once. Without a ClientToken, each makes one.

    Raises:
        ApiError: no such key, its state or kind does not allow it, or its instance has no room.
    """
    key = key_named(call, world)
    make_version(world, key, call.site.kms.quotas.get(key.instance), _BY)
    return {
        "KeyVersion": {
            "KeyVersionId": version_of(key),
            "KeyId": key.ref.native_id,
            "CreationDate": second(world.now),
        }
    }
