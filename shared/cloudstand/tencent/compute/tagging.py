"""The tag product: tags of machines, disks and copies by their six-part names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cloudstand.tencent.compute.changes import BY
from cloudstand.tencent.compute.disks import home_of
from cloudstand.tencent.core.asking import Answer, Asked
from cloudstand.tencent.core.errors import ApiError
from cloudstand.world.records import Machine, WorldSnapshot, WorldVolume

_RESOURCE = re.compile(r"qcs::(cvm|cbs):([a-z0-9-]*):(?:uin/(\d+))?:(instance|volume|disk|snapshot)/([a-z]+-[0-9a-z]+)")
_RESERVED = ("qcloud", "tencent", "project")
Tagged = Machine | WorldVolume | WorldSnapshot


def tag_resources(asked: Asked) -> Answer:
    """TagResources: what failed stands in the answer, which is a success all the same."""
    tags = {tag["TagKey"]: tag["TagValue"] for tag in asked.parameters["Tags"]}
    _check_keys(tags)
    failed = []
    for name in asked.parameters["ResourceList"]:
        if _resource(asked, name) is None:
            failed.append(_failure(name))
            continue
        for key, value in tags.items():
            asked.world.tag(_id(name), key, value, BY)
    return {"FailedResources": failed}


def untag_resources(asked: Asked) -> Answer:
    """UnTagResources, likewise."""
    failed = []
    for name in asked.parameters["ResourceList"]:
        if _resource(asked, name) is None:
            failed.append(_failure(name))
            continue
        for key in asked.parameters["TagKeys"]:
            asked.world.untag(_id(name), key, BY)
    return {"FailedResources": failed}


def modify_resource_tags(asked: Asked) -> Answer:
    """ModifyResourceTags: sets and removes tags of one resource and leaves its others."""
    name = asked.parameters["Resource"]
    new = {tag["TagKey"]: tag["TagValue"] for tag in asked.get("ReplaceTags", ())}
    old = {tag["TagKey"] for tag in asked.get("DeleteTags", ())}
    if not new and not old:
        raise ApiError("InvalidParameter.Tag", "neither ReplaceTags nor DeleteTags is given.", "标签参数错误。")
    if new.keys() & old:
        raise ApiError("InvalidParameterValue.DeleteTagsParamError", "a key is in both lists.", "标签键重复。")
    _check_keys(new)
    found = _resource(asked, name)
    if found is None:
        raise ApiError("InvalidParameterValue.ResourceIdInvalid", f"there is no {name}.", "资源ID无效。")
    for key in old:
        if key not in found.tags:
            raise ApiError(
                "ResourceNotFound.AttachedTagKeyNotFound", f"{key} is not attached.", "资源关联的标签键不存在。"
            )
        asked.world.untag(_id(name), key, BY)
    for key, value in new.items():
        asked.world.tag(_id(name), key, value, BY)
    return {}


def get_resources(asked: Asked) -> Answer:
    """GetResources: with a list, those of it; with filters, all that match, by pages."""
    names = asked.get("ResourceList")
    if names:
        found = [(name, tagged) for name in names for tagged in [_resource(asked, name)] if tagged is not None]
        return {"PaginationToken": "", "ResourceTagMappingList": [_mapping(*pair) for pair in found]}
    found = [pair for pair in _all(asked) if pair[1].tags and _matches(asked, pair[1])]
    token = asked.get("PaginationToken", "")
    if token and not token.isdigit():
        raise ApiError("InvalidParameter.PaginationTokenInvalid", "it is no token of ours.", "分页token无效。")
    first, most = int(token or 0), asked.get("MaxResults", 50)
    rest = first + most
    return {
        "PaginationToken": str(rest) if rest < len(found) else "",
        "ResourceTagMappingList": [_mapping(*pair) for pair in found[first:rest]],
    }


def _all(asked: Asked) -> Iterator[tuple[str, Tagged]]:
    for machine in asked.world.machines.values():
        ours = machine.spec.cloud == asked.settings.cloud and machine.spec.account == asked.account
        if ours and asked.world.is_listed(machine):
            region = machine.spec.region
            yield f"qcs::cvm:{region}:uin/{asked.account}:instance/{machine.native_id}", machine
            for volume in asked.world.volumes_of(machine.native_id):
                yield f"qcs::cvm:{region}:uin/{asked.account}:volume/{volume.native_id}", volume


def _matches(asked: Asked, tagged: Tagged) -> bool:
    for wanted in asked.get("TagFilters", ()):
        values = wanted.get("TagValue")
        found = tagged.tags.get(wanted["TagKey"])
        if found is None or (values and found not in values):
            return False
    return True


def _resource(asked: Asked, name: str) -> Tagged | None:
    found = _RESOURCE.fullmatch(name)
    if found is None:
        raise ApiError("InvalidParameterValue.ResourceDescriptionError", f"{name} is no name.", "资源六段式错误。")
    _, region, uin, _, native_id = found.groups()
    world = asked.world
    machine = world.machines.get(native_id)
    if machine is not None and not world.is_listed(machine):
        return None
    tagged = machine or world.volumes.get(native_id) or world.snapshots.get(native_id)
    if tagged is None or (isinstance(tagged, WorldVolume) and tagged.deleted_at is not None):
        return None
    if isinstance(tagged, Machine):
        home = tagged
    else:
        home = home_of(asked, tagged if isinstance(tagged, WorldVolume) else world.volumes[tagged.volume])
    spec = home.spec
    told = (spec.cloud, spec.account, spec.region) == (asked.settings.cloud, asked.account, region)
    return tagged if told and (uin or asked.account) == asked.account else None


def _id(name: str) -> str:
    return name.rpartition("/")[2]


def _mapping(name: str, tagged: Tagged) -> Answer:
    tags = [{"TagKey": key, "TagValue": value, "Category": "Custom"} for key, value in tagged.tags.items()]
    return {"Resource": name, "Tags": tags}


def _failure(name: str) -> Answer:
    return {"Resource": name, "Code": "InvalidParameterValue.ResourceIdInvalid", "Message": "ResourceIdInvalid"}


def _check_keys(tags: dict[str, str]) -> None:
    for key in tags:
        if key.lower().startswith(_RESERVED):
            raise ApiError("InvalidParameter.ReservedTagKey", f"{key} is reserved.", "标签键不能以保留字开头。")
