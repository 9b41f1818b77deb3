"""Tags of machines, disks and copies, and the one attribute of a machine that can be changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudstand.alibaba.compute.instances import machine_named
from cloudstand.alibaba.core.errors import FORBIDDEN, NOT_FOUND, ApiError, missing, not_modelled
from cloudstand.alibaba.core.parameters import Asked
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.world.cloud import World
from cloudstand.world.kinds import Billing
from cloudstand.world.places import Place

MOST_TAGS = 20  # of one resource
_BY = "api"
_KINDS = ("instance", "disk", "snapshot")


def tag_resources(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Set tags of up to fifty resources: of all of them, or of none.

    Raises:
        ApiError: one resource does not exist, or a tag is not allowed.
    """
    wanted = checked_tags(call.asked)
    found = _found(call, world)
    for native_id, tags in found.items():
        if len({*tags, *wanted}) > MOST_TAGS:
            raise ApiError("QuotaExceed.Tags", f"The maximum number of tags of {native_id} is exceeded.")
    for native_id in found:
        for key, value in wanted.items():
            world.tag(native_id, key, value, _BY)
    return {}


def untag_resources(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Remove tags, or all of them; what is not there is no error.

    Raises:
        ApiError: one resource does not exist, or it is not said which tags.
    """
    keys = call.asked.many("TagKey")
    if not keys and not call.asked.flag("All"):
        raise missing("TagKey")
    for native_id, tags in _found(call, world).items():
        for key in keys or list(tags):
            world.untag(native_id, key, _BY)
    return {}


def modify_instance_attribute(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Set or lift the protection against release, which only pay-as-you-go machines have.

    Raises:
        ApiError: no such machine, or one of another charge type.
    """
    machine = machine_named(call, world, call.asked.text("InstanceId"))
    if call.asked.given("DeletionProtection"):
        if machine.spec.billing is Billing.PREPAID:
            message = "The operation is not permitted due to charge type of the instance."
            raise ApiError("ChargeTypeViolation", message, FORBIDDEN)
        on = call.asked.flag("DeletionProtection")
        world.protect(machine.native_id, "termination_protection", _BY, on=on)
    return {}


def checked_tags(asked: Asked) -> dict[str, str]:
    """The tags of a request.

    Raises:
        ApiError: a key twice, or one that is kept for the cloud itself.
    """
    found: dict[str, str] = {}
    for tag in asked.groups("Tag"):
        key, value = str(tag.get("Key", "")), str(tag.get("Value", ""))
        if not key or key.startswith(("aliyun", "acs:")) or "http://" in key or "https://" in key:
            raise ApiError("InvalidTagKey.Malformed", "The specified Tag.n.Key is not valid.")
        if "http://" in value or "https://" in value:
            raise ApiError("InvalidTagValue.Malformed", "The specified Tag.n.Value is not valid.")
        if key in found:
            raise ApiError("Duplicate.TagKey", f"The Tag.N.Key contains duplicate keys: {key}.")
        found[key] = value
    return found


def _found(call: ApiCall, world: World) -> dict[str, Mapping[str, str]]:
    """The tags of each resource that is named.

    Raises:
        ApiError: one of them is not there, so nothing is done to any.
    """
    kind = call.asked.text("ResourceType")
    if kind not in _KINDS:
        raise not_modelled("tags of", kind)
    found: dict[str, Mapping[str, str]] = {}
    for native_id in call.asked.many("ResourceId"):
        tags = _tags_of(call, world, kind, native_id)
        if tags is None:
            raise ApiError("InvalidResourceId.NotFound", "The specified ResourceIds are not found.", NOT_FOUND)
        found[native_id] = tags
    return found


def _tags_of(call: ApiCall, world: World, kind: str, native_id: str) -> Mapping[str, str] | None:
    shard = Place(call.site.cloud, call.account, call.region)
    if kind == "instance":
        machine = world.machines.get(native_id)
        return machine.tags if machine and machine.shard == shard and world.is_listed(machine) else None
    if kind == "disk":
        found = call.site.ownership.volume(native_id)
        return found[0].tags if found and found[1].shard == shard else None
    copy = world.snapshots.get(native_id)
    origin = call.site.ownership.origin_of_snapshot(copy) if copy else None
    return copy.tags if copy and origin and origin.shard == shard else None
