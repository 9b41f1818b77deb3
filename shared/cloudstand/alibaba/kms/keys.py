"""Key Management Service: the world's keys of a region, as the vendor tells them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cloudstand.alibaba.core.errors import FORBIDDEN, NOT_FOUND, ApiError, not_modelled
from cloudstand.alibaba.core.paging import place_of, token_of
from cloudstand.alibaba.core.shapes import some, wrapped
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.core.times import second
from cloudstand.alibaba.kms.rotation import describe_rotation
from cloudstand.world.cloud import World
from cloudstand.world.fleet import made_up_request_id
from cloudstand.world.keys import KeyManager, KeyOrigin, KeyState, KeyUsage, WorldKey
from cloudstand.world.places import Place

_USUAL = 10
_TAG_ROWS = 200  # of a page, whatever is asked
_ALIAS = "alias/"
_STATES = {
    KeyState.ENABLED: "Enabled",
    KeyState.DISABLED: "Disabled",
    KeyState.PENDING_DELETION: "PendingDeletion",
    KeyState.PENDING_IMPORT: "PendingImport",
}
_USAGES = {KeyUsage.ENCRYPT: "ENCRYPT/DECRYPT", KeyUsage.SIGN: "SIGN/VERIFY"}
_ORIGINS = {KeyOrigin.CLOUD: "Aliyun_KMS", KeyOrigin.IMPORTED: "EXTERNAL"}


def list_keys(call: ApiCall, world: World) -> Mapping[str, Any]:
    """ListKeys, in numbered pages.

    Raises:
        ApiError: the account never opened KMS.
    """
    keys = [{"KeyId": key.ref.native_id, "KeyArn": _arn(call, f"key/{key.ref.native_id}")} for key in _all(call, world)]
    return _paged(call, "Keys", "Key", keys)


def list_aliases(call: ApiCall, world: World) -> Mapping[str, Any]:
    """ListAliases, of all keys of a region, in numbered pages; a key may have several.

    Raises:
        ApiError: the account never opened KMS.
    """
    aliases = [
        {"AliasName": name, "AliasArn": _arn(call, name), "KeyId": key.ref.native_id}
        for key in _all(call, world)
        for name in _aliases(key)
    ]
    return _paged(call, "Aliases", "Alias", aliases)


def describe_key(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribeKey, by id, ARN or alias; what does not apply to a key is left out.

    Raises:
        ApiError: no such key, or this one may not be described.
    """
    key = key_or_alias(call, world)
    if key.ref.native_id in call.site.kms.hidden:
        raise ApiError("Forbidden.NoPermission", "This operation is forbidden by permission system.", FORBIDDEN)
    last = key.rotations[-1] if key.rotations else key.created_at  # of its first version, where it never rotated
    going = key.state is KeyState.PENDING_DELETION and key.deletes_at is not None
    return {
        "KeyMetadata": {
            "KeyId": key.ref.native_id,
            "Arn": _arn(call, f"key/{key.ref.native_id}"),
            "Description": "",
            "Creator": call.account,
            "CreationDate": second(key.created_at),
            "KeyState": _word(_STATES, key.state),
            "KeySpec": key.spec,
            "KeyUsage": _word(_USAGES, key.usage),
            "Origin": _word(_ORIGINS, key.origin),
            "ProtectionLevel": "HSM" if key.hardware else "SOFTWARE",
            "DKMSInstanceId": key.instance,
            "DeletionProtection": "Disabled",
            "LastRotationDate": second(last),
            **({"DeleteDate": second(key.deletes_at)} if going and key.deletes_at else {}),
            **({"MaterialExpireTime": ""} if key.origin is KeyOrigin.IMPORTED else {}),
            **({"PrimaryKeyVersion": version_of(key)} if key.spec.startswith("Aliyun_") else {}),
            **describe_rotation(key),
        }
    }


def list_resource_tags(call: ApiCall, world: World) -> Mapping[str, Any]:
    """ListResourceTags, of one key.

    Raises:
        ApiError: no such key.
    """
    key = key_named(call, world)
    rows = [{"KeyId": key.ref.native_id, **_tag(name, value)} for name, value in key.tags.items()]
    return some("Tags", "Tag", rows, key.ref.native_id)


def list_tag_resources(call: ApiCall, world: World) -> Mapping[str, Any]:
    """ListTagResources: the tags of up to fifty keys, or of all, a row each, in pages by token.

    Raises:
        ApiError: a token that this action never gave out.
    """
    asked = call.asked
    if asked.text("ResourceType") != "key":
        raise not_modelled("tags of", asked.text("ResourceType"))
    wanted = frozenset(asked.many("ResourceId"))
    rows = [
        {"ResourceId": key.ref.native_id, "ResourceType": "key", **_tag(name, value)}
        for key in _all(call, world)
        if not wanted or key.ref.native_id in wanted
        for name, value in key.tags.items()
    ]
    start = place_of(call.action, asked.text("NextToken")) if asked.text("NextToken") else 0
    end = start + min(_TAG_ROWS, call.site.kms.page)
    token = token_of(call.action, end) if end < len(rows) else ""
    return {"TagResources": wrapped("TagResource", rows[start:end]), "NextToken": token}


def describe_regions(call: ApiCall, _: World) -> Mapping[str, Any]:
    """DescribeRegions: those that have KMS."""
    found = [{"RegionId": region} for region in sorted(call.site.regions) if region not in call.site.kms.not_offered]
    return {"Regions": wrapped("Region", found)}


def describe_account_kms_status(call: ApiCall, _: World) -> Mapping[str, Any]:
    """DescribeAccountKmsStatus."""
    return {"AccountStatus": "NotEnabled" if call.account in call.site.kms.unopened else "Enabled"}


def key_named(call: ApiCall, world: World) -> WorldKey:
    """The key of this region whose id is asked for.

    Raises:
        ApiError: there is none.
    """
    native_id = call.asked.text("KeyId")
    for key in _all(call, world):
        if key.ref.native_id == native_id:
            return key
    raise _no_such_key()


def version_of(key: WorldKey) -> str:
    """The id of a key's newest version."""
    return made_up_request_id("alibaba", key.ref.native_id, str(len(key.rotations)))


def key_or_alias(call: ApiCall, world: World) -> WorldKey:
    """The key of this region whose id, ARN or alias is asked for.

    Raises:
        ApiError: there is none.
    """
    asked = call.asked.text("KeyId")
    if not asked.startswith((_ALIAS, "acs:kms:")):
        return key_named(call, world)
    for key in _all(call, world):
        if asked in _aliases(key) or asked == _arn(call, f"key/{key.ref.native_id}"):
            return key
    if asked.startswith(_ALIAS):
        raise ApiError("Forbidden.AliasNotFound", "The specified Alias is not found.", NOT_FOUND)
    raise _no_such_key()


def _all(call: ApiCall, world: World) -> Iterator[WorldKey]:
    if call.account in call.site.kms.unopened:
        raise ApiError("Forbidden.ServiceNotOpen", "Key Management Service is not activated.", FORBIDDEN)
    yield from world.keys.of(Place(call.site.cloud, call.account, call.region))


def _no_such_key() -> ApiError:
    return ApiError("Forbidden.KeyNotFound", "The specified Key is not found.", NOT_FOUND)


def _aliases(key: WorldKey) -> list[str]:
    """A cloud service gives its key an alias of its own."""
    own = [f"{_ALIAS}{name.removeprefix(_ALIAS)}" for name in key.aliases]
    if key.manager is KeyManager.CLOUD and not any(name.startswith(f"{_ALIAS}acs/") for name in own):
        own.append(f"{_ALIAS}acs/{key.service or 'ecs'}")
    return own


def _paged(call: ApiCall, outer: str, inner: str, items: list[dict[str, Any]]) -> Mapping[str, Any]:
    number = call.asked.whole("PageNumber") or 1
    size = min(call.asked.whole("PageSize") or _USUAL, call.site.kms.page)
    return {
        outer: wrapped(inner, items[(number - 1) * size : number * size]),
        "PageNumber": number,
        "PageSize": size,
        "TotalCount": len(items),
    }


def _tag(name: str, value: str) -> dict[str, str]:
    return {"TagKey": name, "TagValue": value}


def _arn(call: ApiCall, what: str) -> str:
    return f"acs:kms:{call.region}:{call.account}:{what}"


def _word(words: Mapping[Any, str], value: Any) -> str:
    """The vendor's word; what the vendor has no word for no world should hold.

    Raises:
        ApiError: it has none.
    """
    if value not in words:
        raise not_modelled("a key that is", str(value))
    return words[value]
