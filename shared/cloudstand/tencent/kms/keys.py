"""KMS: where it is offered, keys with their rotation, and giving them new material. Times are epoch seconds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from cloudstand.tencent.compute.changes import BY
from cloudstand.tencent.core.asking import Answer, Asked, page
from cloudstand.tencent.core.errors import ApiError, bad_value, not_modelled
from cloudstand.tencent.iam.identity import regions_of
from cloudstand.world.fleet import made_up_request_id
from cloudstand.world.keys import KeyManager, KeyOrigin, KeyState, KeyUsage, MultiRegion, WorldKey
from cloudstand.world.rotation import rotation_of

_A_DAY = timedelta(days=1)
_USUAL_DAYS = 365
_USUAL_PAGE = 10
_SYMMETRIC = "ENCRYPT_DECRYPT"
_ID = "-".join(f"[0-9a-z]{{{length}}}" for length in (8, 4, 4, 4, 12))
_STATES = {
    KeyState.ENABLED: "Enabled",
    KeyState.DISABLED: "Disabled",
    KeyState.PENDING_DELETION: "PendingDelete",
    KeyState.PENDING_IMPORT: "PendingImport",
    KeyState.UNAVAILABLE: "Archived",
}
_ALL_STATES = ("", *_STATES.values())  # by the number that KeyState has in a request, and 0 for all
_PAIRS = {
    KeyUsage.ENCRYPT: ("ASYMMETRIC_DECRYPT_", ("RSA_2048", "SM2")),
    KeyUsage.SIGN: ("ASYMMETRIC_SIGN_VERIFY_", ("RSA_2048", "SM2", "ECC")),
}
_NOT_NOW = {
    KeyState.DISABLED: ("ResourceUnavailable.CmkDisabled", "CMK已被禁用。"),
    KeyState.PENDING_DELETION: ("ResourceUnavailable.KeyPendingDelete", "密钥待删除。"),
    KeyState.UNAVAILABLE: ("ResourceUnavailable.CmkArchived", "CMK已存档。"),
    KeyState.PENDING_IMPORT: ("ResourceUnavailable.CmkStateNotSupport", "CMK状态不支持该操作。"),
}


def get_regions(asked: Asked) -> Answer:
    """GetRegions: where keys can be, which is not everywhere."""
    return {"Regions": sorted(_offered(asked))}


def get_service_status(asked: Asked) -> Answer:
    """GetServiceStatus: 0 is never opened, 1 in order, 2 cut off for debts."""
    desk = asked.memory.keys
    unopened, cut_off = asked.account in desk.unopened, asked.account in desk.cut_off
    return {
        "ServiceEnabled": not unopened and not cut_off,
        "InvalidType": 0 if unopened else 2 if cut_off else 1,
        "UserLevel": 0,
        "ProExpireTime": 0,
        "ProRenewFlag": 0,
        "ProResourceId": "",
        "ExclusiveVSMEnabled": False,
        "ExclusiveHSMEnabled": False,
        "SubscriptionInfo": "",
        "CmkUserCount": sum(key.manager is KeyManager.CUSTOMER for key in asked.world.keys.of(asked.shard)),
        "CmkLimit": 200,
    }


def list_key_detail(asked: Asked) -> Answer:
    """ListKeyDetail: keys of users or of products, and without being asked for more only those that are no pairs."""
    _check_service(asked)
    keys = [key for key in asked.world.keys.of(asked.shard) if _wanted(asked, key)]
    if asked.get("OrderType", 0) == 0:
        keys.reverse()
    entries = [_metadata(asked, key) for key in page(asked, keys, _USUAL_PAGE)]
    return {"TotalCount": len(keys), "KeyMetadatas": None if asked.memory.keys.null_lists and not keys else entries}


def enable_key_rotation(asked: Asked) -> Answer:
    """EnableKeyRotation: with a period of a year unless another is named."""
    key = _changeable(asked)
    if key.origin is KeyOrigin.IMPORTED:
        raise ApiError("UnsupportedOperation.ExternalCmkCanNotRotate", "the key is external.", "外部密钥不支持轮换。")
    if not rotation_of(key).periods:
        raise _cannot_rotate()
    if key.period_days is None or not asked.memory.keys.keeps_period:
        asked.world.keys.set_period(key.ref, asked.get("RotateDays", _USUAL_DAYS), asked.now, BY)
    return {}


def rotate_key(asked: Asked) -> Answer:
    """RotateKey: once in 24 hours, of a key whose automatic rotation is on; here over in no time."""
    key = _changeable(asked)
    if not rotation_of(key).on_demand:
        raise _cannot_rotate()
    if key.on_demand and asked.now < key.on_demand[-1] + _A_DAY:
        raise ApiError(
            "RequestLimitExceeded.RotateRateLimited", "it was rotated within 24 hours.", "24小时内仅可轮转一次。"
        )
    asked.world.keys.rotate(key.ref, asked.now, BY)
    return {"TaskId": made_up_request_id("task", key.ref.native_id, str(len(key.rotations)))}


def describe_resource_tags_by_resource_ids(asked: Asked) -> Answer:
    """DescribeResourceTagsByResourceIds of the tag product, of keys only; what is not there has no tags."""
    if (asked.parameters["ServiceType"], asked.parameters["ResourcePrefix"]) != ("kms", "key"):
        raise not_modelled("ServiceType")
    offset, limit = asked.get("Offset", 0), asked.get("Limit", 15)
    if offset % limit:
        raise bad_value("Offset", "it is no multiple of Limit")
    wanted = set(asked.parameters["ResourceIds"])
    shard = asked.in_region(asked.parameters["ResourceRegion"])
    tags = [
        {"ServiceType": "kms", "ResourceId": key.ref.native_id, "TagKey": name, "TagValue": value, "Category": "Custom"}
        for key in asked.world.keys.of(shard)
        if key.ref.native_id in wanted
        for name, value in key.tags.items()
    ]
    return {"TotalCount": len(tags), "Offset": offset, "Limit": limit, "Tags": tags[offset : offset + limit]}


def _offered(asked: Asked) -> frozenset[str]:
    regions = asked.memory.keys.regions
    return frozenset(name for name, (*_, open_) in regions_of(asked).items() if open_) if regions is None else regions


def _check_service(asked: Asked) -> None:
    if asked.region not in _offered(asked):
        raise ApiError("UnsupportedRegion", f"{asked.region} is not supported.", "接口不支持所传地域。")
    desk = asked.memory.keys
    if asked.account in desk.unopened | desk.cut_off:
        raise ApiError("UnauthorizedOperation", "the service is not open.", "服务未开通。")


def _wanted(asked: Asked, key: WorldKey) -> bool:
    if (key.manager is KeyManager.CLOUD) != (asked.get("Role", 0) == 1):
        return False
    state, origin, usage = asked.get("KeyState", 0), asked.get("Origin", "ALL"), asked.get("KeyUsage") or _SYMMETRIC
    found, cluster = asked.get("SearchKeyAlias", ""), asked.get("HsmClusterId", "")
    return (
        (state == 0 or _STATES[key.state] == _ALL_STATES[state])
        and origin in {"ALL", _origin(key)}
        and usage in {"ALL", key_usage(key)}
        and any(found in word for word in (key.ref.native_id, *key.aliases))
        and (not cluster or key.instance == ("" if cluster == "default" else cluster))
        and all(_has_tag(key, wanted) for wanted in asked.get("TagFilters", ()))
    )


def _has_tag(key: WorldKey, wanted: Mapping[str, Any]) -> bool:
    found, values = key.tags.get(wanted["TagKey"]), wanted.get("TagValue")
    return found is not None and (not values or found in values)


def key_usage(key: WorldKey) -> str:
    """What a key is for, in the vendor's word.

    Raises:
        ApiError: the vendor has no such keys.
    """
    beginning, algorithms = _PAIRS.get(key.usage, ("", ()))
    if key.spec in algorithms:
        return beginning + key.spec
    if key.usage is not KeyUsage.ENCRYPT:
        raise not_modelled(key.spec)
    return _SYMMETRIC


def _origin(key: WorldKey) -> str:
    return "EXTERNAL" if key.origin is KeyOrigin.IMPORTED else "TENCENT_KMS"


def _metadata(asked: Asked, key: WorldKey) -> dict[str, Any]:
    """One key; NextRotateTime is there whether it rotates by itself or not."""
    last = key.rotations[-1] if key.rotations else None
    due = key.next_at or (last or key.created_at) + _USUAL_DAYS * _A_DAY
    replica = key.multi_region is MultiRegion.REPLICA
    return {
        "KeyId": key.ref.native_id,
        "Alias": key.aliases[0] if key.aliases else "",
        "CreateTime": _seconds(key.created_at),
        "Description": "",
        "KeyState": _STATES[key.state],
        "KeyUsage": key_usage(key),
        "Type": 4 if key.spec in {"SM2", "SM4"} else 2,
        "CreatorUin": int(asked.account),
        "CreatorUinString": asked.account,
        "KeyRotationEnabled": key.period_days is not None,
        "Owner": "user" if key.manager is KeyManager.CUSTOMER else key.service or "cbs",
        "NextRotateTime": _seconds(due),
        "DeletionDate": _seconds(key.deletes_at),
        "Origin": _origin(key),
        "ValidTo": 0,
        "ResourceId": f"creatorUin/{asked.account}/{key.ref.native_id}",
        "HsmClusterId": key.instance,
        "RotateDays": key.period_days or _USUAL_DAYS,
        "LastRotateTime": _seconds(last),
        "IsSyncReplica": 1 if replica else 0,
        "SourceRegion": key.primary.region if replica and key.primary is not None else "",
        "SyncStatus": 0 if key.multi_region is MultiRegion.NONE else 1,
        "SyncMessages": "",
        "SyncStartTime": 0,
        "SyncEndTime": 0,
        "SourceHsmClusterId": "",
        "AccountAppId": 0,
        "AccountUin": 0,
        "AccountName": "",
    }


def _seconds(moment: datetime | None) -> int:
    return 0 if moment is None else int(moment.timestamp())


def _changeable(asked: Asked) -> WorldKey:
    """The key that is named, if its owner may change it now.

    Raises:
        ApiError: it may not, or there is none here.
    """
    _check_service(asked)
    native_id = asked.parameters["KeyId"]
    key = next((each for each in asked.world.keys.of(asked.shard) if each.ref.native_id == native_id), None)
    if key is None and not re.fullmatch(_ID, native_id):
        raise bad_value("KeyId", "it is no id of a key", "InvalidParameterValue.InvalidKeyId")
    if key is None:
        raise ApiError("ResourceUnavailable.CmkNotFound", f"there is no key {native_id}.", "CMK不存在。")
    if key.manager is not KeyManager.CUSTOMER:
        raise ApiError("UnsupportedOperation.NotUserCreatedCmk", "it is no user's key.", "仅支持用户创建的CMK。")
    if key.state is not KeyState.ENABLED:
        code, chinese = _NOT_NOW[key.state]
        raise ApiError(code, f"the key {native_id} is {_STATES[key.state]}.", chinese)
    return key


def _cannot_rotate() -> ApiError:
    return ApiError("UnsupportedOperation.RotateNotSupported", "such a key does not rotate.", "不支持轮转。")
