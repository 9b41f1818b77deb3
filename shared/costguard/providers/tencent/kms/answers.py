"""From an element of ListKeyDetail to an `EncryptionKey`: pure, apart from any request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from costguard.domain.keys import (
    EncryptionKey,
    KeyManager,
    KeyOrigin,
    KeyState,
    KeyUsage,
    MultiRegion,
    RotationSetting,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.kit.core.fields import Fields, flag, named, text, whole
from costguard.providers.kit.kms.matrix import KeyFacts
from costguard.providers.tencent.core.fields import told
from costguard.providers.tencent.kms.matrix import rotatability

USER = "user"
"""`Owner` of a key that a user made; of the others it is the product that made it."""

_STATES = {
    "Enabled": KeyState.ENABLED,
    "Disabled": KeyState.DISABLED,
    "PendingDelete": KeyState.PENDING_DELETION,
    "PendingImport": KeyState.PENDING_IMPORT,
    "Archived": KeyState.UNAVAILABLE,
}
_ORIGINS = {"TENCENT_KMS": KeyOrigin.CLOUD, "EXTERNAL": KeyOrigin.IMPORTED}
_SYMMETRIC = "ENCRYPT_DECRYPT"
_USAGES = {
    "ASYMMETRIC_DECRYPT_": KeyUsage.ENCRYPT,
    "ASYMMETRIC_SIGN_VERIFY_": KeyUsage.SIGN,
}
_ALGORITHMS = {2: "AES_256", 4: "SM4"}  # Type: FIPS 140-2, or the Chinese standards
_NULLABLE = (
    *("Alias", "RotateDays", "LastRotateTime", "NextRotateTime", "DeletionDate", "HsmClusterId", "IsSyncReplica"),
    *("SourceRegion", "SyncStatus"),
)
_SYNCHRONISED = frozenset({1, 2, 3})  # done, failed, under way


@dataclass(frozen=True, slots=True)
class KeyUse:
    """What else is known of keys, by their ids: tags, and what names them."""

    tags: Mapping[str, Mapping[str, str]]
    used_by: Mapping[str, tuple[ResourceRef, ...]]


def to_key(shard: Shard, item: Fields) -> EncryptionKey:
    """One element of KeyMetadatas, as yet without tags and users.

    NextRotateTime is filled where automatic rotation is off as well, and RotateDays may be; neither counts then. A
    rotation changes nothing that is told but LastRotateTime, in whole seconds: that is the version.

    Raises:
        TypeError, ValueError: a field is not of its documented type: see `kit/core/fields.py`.
    """
    known = told(item, *_NULLABLE)
    ref = ResourceRef(shard.cloud, shard.account, shard.region, "key", named(known, "KeyId"))
    multi_region = _multi_region(known)
    facts = _facts(known, multi_region)
    rotation = _rotation(known)
    state = _STATES.get(named(known, "KeyState"), KeyState.UNKNOWN)
    last = _seconds(known, "LastRotateTime")
    source = text(known, "SourceRegion")
    alias = text(known, "Alias")
    return EncryptionKey(
        ref=ref,
        spec=facts.spec,
        usage=facts.usage,
        origin=facts.origin,
        state=state,
        manager=facts.manager,
        rotation=rotation,
        rotatability=rotatability(facts, automatic=rotation.automatic),
        aliases=(alias,) if alias else (),
        is_default=facts.is_default,
        multi_region=multi_region,
        primary=replace(ref, region=source) if source and multi_region is MultiRegion.REPLICA else None,
        created_at=_moment(known, "CreateTime"),
        deletes_at=_moment(known, "DeletionDate") if state is KeyState.PENDING_DELETION else None,
        version=str(last) if last else "",
    )


def with_use(key: EncryptionKey, use: KeyUse) -> EncryptionKey:
    """The key with its tags and its users."""
    native_id = key.ref.native_id
    return replace(key, tags=use.tags.get(native_id, {}), used_by=use.used_by.get(native_id, ()))


def _facts(known: Fields, multi_region: MultiRegion) -> KeyFacts:
    usage, spec = _usage_and_spec(known)
    cluster = bool(text(known, "HsmClusterId"))
    origin = _ORIGINS.get(named(known, "Origin"), KeyOrigin.UNKNOWN)
    manager = KeyManager.CUSTOMER if named(known, "Owner") == USER else KeyManager.CLOUD
    return KeyFacts(
        spec=spec,
        symmetric=text(known, "KeyUsage") == _SYMMETRIC,
        usage=usage,
        origin=KeyOrigin.CUSTOM_STORE if cluster and origin is KeyOrigin.CLOUD else origin,
        manager=manager,
        multi_region=multi_region,
        is_default=manager is KeyManager.CLOUD,
        in_instance=cluster,
        in_hardware=cluster,
    )


def _usage_and_spec(known: Fields) -> tuple[KeyUsage, str]:
    """The algorithm is told for pairs in KeyUsage, and for one secret by the standard that it follows."""
    word = named(known, "KeyUsage")
    if word == _SYMMETRIC:
        return KeyUsage.ENCRYPT, _ALGORITHMS.get(whole(known, "Type"), word)
    for beginning, usage in _USAGES.items():
        if word.startswith(beginning):
            return usage, word[len(beginning) :]
    return KeyUsage.UNKNOWN, word


def _multi_region(known: Fields) -> MultiRegion:
    """IsSyncReplica is 0 for a key that was never synchronised as well: SyncStatus tells the two apart."""
    if "IsSyncReplica" in known and whole(known, "IsSyncReplica"):
        return MultiRegion.REPLICA
    synchronised = "SyncStatus" in known and whole(known, "SyncStatus") in _SYNCHRONISED
    return MultiRegion.PRIMARY if synchronised else MultiRegion.NONE


def _rotation(known: Fields) -> RotationSetting:
    automatic = flag(known, "KeyRotationEnabled") if "KeyRotationEnabled" in known else None
    days = _seconds(known, "RotateDays") if automatic else 0
    return RotationSetting(
        automatic=automatic,
        period_days=days or None,
        last_at=_moment(known, "LastRotateTime"),
        next_at=_moment(known, "NextRotateTime") if automatic else None,
    )


def _moment(known: Fields, key: str) -> datetime | None:
    """A time in epoch seconds; 0, which is how KMS says that there is none, and absent are None."""
    seconds = _seconds(known, key)
    return datetime.fromtimestamp(seconds, timezone.utc) if seconds else None


def _seconds(known: Fields, key: str) -> int:
    return whole(known, key) if key in known else 0
