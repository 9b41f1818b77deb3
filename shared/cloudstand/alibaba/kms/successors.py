"""What KMS has for a key in another's place: making it, moving an alias, using both. Nothing deletes or disables."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error as NotBase64Error
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from cloudstand.alibaba.core.errors import FORBIDDEN, NOT_FOUND, ApiError, invalid
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.core.times import second
from cloudstand.alibaba.kms.keys import key_named, key_or_alias
from cloudstand.alibaba.kms.rotation import unsupported
from cloudstand.world.cloud import World
from cloudstand.world.keys import KeyState, KeyUsage, WorldKey, successor_id
from cloudstand.world.places import Place, Ref
from cloudstand.world.records import Refusal, WorldRefusalError

_ALIAS, _BY = "alias/", "api"
_MOST_TAGS = 20


def get_key_policy(call: ApiCall, world: World) -> Mapping[str, Any]:
    """GetKeyPolicy, of keys in an instance.

    Raises:
        ApiError: no such key, or it is in no instance.
    """
    key = key_named(call, world)
    if not key.instance:
        raise unsupported()
    statement = {
        "Sid": "kms default key policy",
        "Effect": "Allow",
        "Principal": {"RAM": [f"acs:ram::{call.account}:root"]},
        "Action": ["kms:*"],
        "Resource": ["*"],
    }
    return {"Policy": key.policy or json.dumps({"Version": "1", "Statement": [statement]})}


def create_key(call: ApiCall, world: World) -> Mapping[str, Any]:
    """CreateKey in an instance; without a ClientToken, each makes one.

    Raises:
        ApiError: not in an instance, no room in it, or a parameter that it does not take.
    """
    asked, instance = call.asked, call.asked.text("DKMSInstanceId")
    home = Place(call.site.cloud, call.account, call.region)
    others = [key for key in world.keys.of(home) if key.instance == instance]
    quota = call.site.kms.quotas.get(instance)
    if not instance:
        raise unsupported()  # every region has its one default key already
    if quota is not None and sum(1 + len(one.rotations) for one in others) >= quota:
        raise ApiError("Rejected.LimitExceeded", "The number of keys of the instance exceeds its quota.")
    tags = _tags(asked.text("Tags"))
    spec = asked.text("KeySpec") or "Aliyun_AES_256"
    if not spec.startswith("Aliyun_") or asked.text("KeyUsage") not in ("", "ENCRYPT/DECRYPT"):
        raise unsupported()
    blank = WorldKey(Ref(home.cloud, home.account, home.region, "key", "new"), spec, world.now)
    made = WorldKey(
        ref=blank.ref.sibling("key", successor_id(blank, len(world.keys.of(home)))),
        spec=spec,
        created_at=world.now,
        tags=tags,
        instance=instance,
        policy=asked.text("Policy"),
    )
    world.keys.add(made)
    world.keys.history.append((world.now, _BY, "made", made.ref))
    shown = {"KeyId": made.ref.native_id, "KeySpec": spec, "KeyState": "Enabled", "DKMSInstanceId": instance}
    return {"KeyMetadata": {**shown, "KeyUsage": "ENCRYPT/DECRYPT", "CreationDate": second(world.now)}}


def update_alias(call: ApiCall, world: World) -> Mapping[str, Any]:
    """UpdateAlias.

    Raises:
        ApiError: no such key or alias, or the key cannot take it.
    """
    key, alias = key_named(call, world), call.asked.text("AliasName")
    if not alias.startswith(_ALIAS) or alias.startswith("alias/acs/"):
        raise invalid("AliasName")
    _require_usable(key)
    try:
        world.keys.move_alias(alias.removeprefix(_ALIAS), key.ref, world.now, _BY)
    except WorldRefusalError as err:
        if err.refusal is Refusal.NOT_FOUND:
            raise ApiError("Forbidden.AliasNotFound", "The specified Alias is not found.", NOT_FOUND) from err
        raise unsupported() from err
    return {}


def encrypt(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Encrypt, by id or alias; what stands in the context is needed again to decrypt.

    Raises:
        ApiError: no such key, or it cannot be used.
    """
    key = key_or_alias(call, world)
    _require_usable(key)
    try:
        sealed = world.keys.seal(key.ref, _context(call) + _bytes(call, "Plaintext"))
    except WorldRefusalError as err:
        raise _unusable() from err
    return {"CiphertextBlob": b64encode(sealed).decode(), "KeyId": key.ref.native_id, "KeyVersionId": "1"}


def decrypt(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Decrypt: the ciphertext says by which key.

    Raises:
        ApiError: no key of the region made it, it cannot be used, or the context is another.
    """
    home, context = Place(call.site.cloud, call.account, call.region), _context(call)
    try:
        key, plain = world.keys.open(home, _bytes(call, "CiphertextBlob"))
    except WorldRefusalError as err:
        if err.refusal is Refusal.NOT_FOUND:
            raise invalid("CiphertextBlob") from err
        raise _unusable() from err
    if not plain.startswith(context):
        raise invalid("EncryptionContext")
    return {"Plaintext": b64encode(plain[len(context) :]).decode(), "KeyId": key.ref.native_id, "KeyVersionId": "1"}


def _require_usable(key: WorldKey) -> None:
    if key.state is not KeyState.ENABLED:
        raise _unusable()
    if key.usage is not KeyUsage.ENCRYPT or not key.spec.startswith("Aliyun_"):
        raise unsupported()


def _unusable() -> ApiError:
    return ApiError("Rejected.Unavailable", "The key cannot be used now.", HTTPStatus.CONFLICT)


def _tags(written: str) -> dict[str, str]:
    try:
        tags = {tag["TagKey"]: tag["TagValue"] for tag in json.loads(written or "[]")}
    except (ValueError, TypeError, LookupError) as err:
        raise invalid("Tags") from err
    if len(tags) > _MOST_TAGS or any(name.startswith(("aliyun", "acs:")) for name in tags):
        raise ApiError("InvalidParameter", "The tags are not valid.", FORBIDDEN)
    return tags


def _context(call: ApiCall) -> bytes:
    written = call.asked.text("EncryptionContext")
    try:
        return json.dumps(json.loads(written or "{}"), sort_keys=True).encode()
    except ValueError as err:
        raise invalid("EncryptionContext") from err


def _bytes(call: ApiCall, name: str) -> bytes:
    try:
        return b64decode(call.asked.text(name), validate=True)
    except NotBase64Error as err:
        raise invalid(name) from err
