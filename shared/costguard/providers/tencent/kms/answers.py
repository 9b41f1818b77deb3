"""What the KMS of Tencent Cloud says of keys, in neutral words, and what it allows for each kind of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from costguard.domain.keys import (
    UNKNOWN_COST,
    CostKind,
    EncryptionKey,
    KeyManager,
    KeyOrigin,
    KeyState,
    KeyUsage,
    MultiRegion,
    Rotatability,
    RotationCost,
    RotationMeans,
    RotationSetting,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.kit.core.fields import Fields, flag, named, text, whole
from costguard.providers.kit.kms.answers import KeyFacts, MatrixRow, by_successor, no_means, rotatability_of
from costguard.providers.tencent.core.products import told

SHORTEST_DAYS, LONGEST_DAYS = 7, 365
"""API: KMS EnableKeyRotation, RotateDays; 365 where it is not named, which costguard always does."""

_PAIRS = frozenset({KeyUsage.ENCRYPT, KeyUsage.SIGN})
_ERRORS = 'KMS API 2019-01-18, "Error Codes"'
_NEW_KEY = RotationCost(CostKind.NEW_KEY)
_NO_MOVE = "no alias can be moved: it is a property of its key"

MATRIX: tuple[MatrixRow, ...] = (
    no_means(
        "made by a cloud product for itself (`Owner` is no `user`)",
        lambda key: key.manager is KeyManager.CLOUD,
        "only keys that users made can be changed; no page says whether the product rotates its own",
        f"{_ERRORS}: NotUserCreatedCmk",
        UNKNOWN_COST,
    ),
    no_means(
        "a replica synchronised from another region",
        lambda key: key.multi_region is MultiRegion.REPLICA,
        "follows the key it was synchronised from; unproven: how soon",
        f"{_ERRORS}: RotateNotSupported",
        UNKNOWN_COST,
    ),
    by_successor(
        "asymmetric (`ASYMMETRIC_…`: decryption, signing)",
        lambda key: not key.symmetric and key.usage in _PAIRS,
        f"never by itself or on demand; users of the public key need the new one; {_NO_MOVE}",
        'KMS documentation, "Key rotation"',
        _NEW_KEY,
    ),
    by_successor(
        "symmetric, imported material (`EXTERNAL`)",
        lambda key: key.origin is KeyOrigin.IMPORTED and key.usage is KeyUsage.ENCRYPT,
        f"never by itself or on demand; no other material can be imported into the same key; {_NO_MOVE}",
        f"{_ERRORS}: ExternalCmkCanNotRotate, RotateNotSupported",
        _NEW_KEY,
    ),
    by_successor(
        "symmetric, in an exclusive or managed cluster (`HsmClusterId`)",
        lambda key: key.origin is KeyOrigin.CUSTOM_STORE and key.symmetric and key.usage is KeyUsage.ENCRYPT,
        f"unproven: no page says that such keys rotate, so neither kind of rotation is offered; {_NO_MOVE}",
        "KMS API 2019-01-18, KeyMetadata",
        _NEW_KEY,
    ),
    MatrixRow(
        "symmetric, material made by KMS (`TENCENT_KMS`)",
        lambda key: key.origin is KeyOrigin.CLOUD and key.symmetric and key.usage is KeyUsage.ENCRYPT,
        Rotatability(
            frozenset(RotationMeans),
            shortest_days=SHORTEST_DAYS,
            longest_days=LONGEST_DAYS,
            note=f"on demand once in 24 hours, and only while automatic rotation is on; {_NO_MOVE}",
            source="EnableKeyRotation; RotateKey; RotateRateLimited, RotateNotSupported; UpdateAlias",
            cost=UNKNOWN_COST,
        ),
    ),
)
"""First that holds, first served."""


def rotatability(facts: KeyFacts, *, automatic: bool | None = True) -> Rotatability:
    """What Tencent Cloud allows for such a key: on demand only one whose automatic rotation is on (`automatic`)."""
    found = rotatability_of(MATRIX, facts)
    if automatic or RotationMeans.ON_DEMAND not in found.means:
        return found
    return replace(
        found,
        means=found.means - {RotationMeans.ON_DEMAND},
        note="on demand once automatic rotation is on, then once in 24 hours",
    )


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
    used_by: Mapping[str, Iterable[ResourceRef]]


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
    return replace(key, tags=use.tags.get(native_id, {}), used_by=tuple(use.used_by.get(native_id, ())))


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
