"""What the KMS of Alibaba Cloud says of keys, in neutral words, and what it allows for each kind of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from costguard.domain.keys import (
    CostKind,
    EncryptionKey,
    KeyManager,
    KeyOrigin,
    KeyState,
    KeyUsage,
    Rotatability,
    RotationCost,
    RotationMeans,
    RotationSetting,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.alibaba.core.products import needed_time, time_of
from costguard.providers.kit.core.fields import Fields, named, text
from costguard.providers.kit.kms.answers import KeyFacts, MatrixRow, by_successor, no_means, rotatability_of, unread_key

ADD_ON_DAYS = 365
"""The one period of keys outside of a KMS instance. API: KMS user guide, "Configure key rotation"."""

SHORTEST_DAYS, LONGEST_DAYS = 7, 365
"""Of keys in a software instance; older documents, and the SDK's own text, say up to 730.

API: KMS UpdateRotationPolicy, RotationInterval.
"""

_GUIDE = 'KMS user guide, "Configure key rotation"'
_OLD_BILLING = 'KMS documents, "Billing of KMS 1.0"'
_FREE = RotationCost(CostKind.NOTHING, source=_OLD_BILLING, as_of="2025-09-17")
_NEW_KEY = RotationCost(CostKind.NEW_KEY, source=_OLD_BILLING, as_of="2025-09-17")
_OF_QUOTA = RotationCost(CostKind.QUOTA, source="KMS API, UpdateRotationPolicy", as_of="2023-09-04")
_ADD_ON = RotationCost(CostKind.ADD_ON, source=_GUIDE)
_CATCHES_UP = "a period counts from the last rotation: where that is longer ago, the key rotates at once"


def _is_symmetric(key: KeyFacts) -> bool:
    return key.symmetric and key.usage is KeyUsage.ENCRYPT and key.origin is KeyOrigin.CLOUD


MATRIX: tuple[MatrixRow, ...] = (
    no_means(
        "of a cloud service (`acs/…`)",
        lambda key: key.manager is KeyManager.CLOUD,
        "cannot be rotated by anybody: let the service use a key of yours where policy asks for rotation",
        _GUIDE,
        _FREE,
    ),
    by_successor(
        "imported material (`EXTERNAL`)",
        lambda key: key.origin is KeyOrigin.IMPORTED,
        "never by itself or on demand",
        _GUIDE,
        _NEW_KEY,
    ),
    by_successor(
        "asymmetric (`RSA_…`, `EC_…`)",
        lambda key: not key.symmetric,
        "never by itself; on demand by old documents only; users of the public key need the new one",
        f"{_GUIDE}; CreateKeyVersion",
        _NEW_KEY,
    ),
    by_successor(
        "in a hardware instance",
        lambda key: key.in_instance and key.in_hardware,
        "never by itself or on demand",
        _GUIDE,
        _OF_QUOTA,
    ),
    MatrixRow(
        "symmetric, in a software instance",
        lambda key: key.in_instance and _is_symmetric(key),
        Rotatability(
            frozenset(RotationMeans),
            shortest_days=SHORTEST_DAYS,
            longest_days=LONGEST_DAYS,
            note=f"each version takes one of the instance's quota of keys; {_CATCHES_UP}",
            source="UpdateRotationPolicy; CreateKeyVersion; UpdateAlias",
            succeeds=True,
            cost=_OF_QUOTA,
        ),
    ),
    MatrixRow(
        "symmetric, outside of an instance (default key)",
        lambda key: not key.in_instance and _is_symmetric(key),
        Rotatability(
            frozenset({RotationMeans.AUTOMATIC, RotationMeans.SUCCESSOR}),
            shortest_days=ADD_ON_DAYS,
            longest_days=ADD_ON_DAYS,
            note=f"only with the paid rotation add-on; a key of a software instance can do it sooner; {_CATCHES_UP}",
            source=_GUIDE,
            cost=_ADD_ON,
        ),
    ),
)
"""First that holds, first served. Whether the add-on is bought no API tells: without it setting a period is refused."""


def rotatability(facts: KeyFacts) -> Rotatability:
    """What Alibaba Cloud allows for such a key."""
    return rotatability_of(MATRIX, facts)


_STATES = {
    "Enabled": KeyState.ENABLED,
    "Disabled": KeyState.DISABLED,
    "PendingDeletion": KeyState.PENDING_DELETION,
    "PendingImport": KeyState.PENDING_IMPORT,
}
_ORIGINS = {"Aliyun_KMS": KeyOrigin.CLOUD, "EXTERNAL": KeyOrigin.IMPORTED}
_USAGES = {"ENCRYPT/DECRYPT": KeyUsage.ENCRYPT, "SIGN/VERIFY": KeyUsage.SIGN}
_SECRETS = frozenset({"Aliyun_AES_256", "Aliyun_AES_192", "Aliyun_AES_128", "Aliyun_SM4"})
"""Specs of one secret; whatever else there is counts as a pair, which never rotates by itself."""

_ROTATES = {"Enabled": True, "Suspended": True, "Disabled": False}
"""Suspended: the key is not enabled, and its rotation goes on once it is."""

_OF_A_SERVICE = "acs/"  # a customer's alias cannot begin so
_SOFTWARE = "SOFTWARE"
_INTERVAL = re.compile(r"(\d{1,10})([dhms])", re.ASCII)
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


@dataclass(frozen=True, slots=True)
class RunContext:
    """What DescribeKey does not say of keys, by their ids: aliases, tags, and what names them."""

    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    used_by: Mapping[str, Iterable[ResourceRef]] = field(default_factory=dict)


def to_key(shard: Shard, metadata: Fields, around: RunContext) -> EncryptionKey:
    """One key. Its version is that of the material in use, or where a pair has none, the time of the last rotation.

    Raises:
        TypeError, ValueError: a field is not of its documented type: see `kit/core/fields.py`.
    """
    native_id = named(metadata, "KeyId")
    aliases = _aliases(native_id, around)
    facts = _facts(metadata, aliases)
    state = _STATES.get(named(metadata, "KeyState"), KeyState.UNKNOWN)
    created_at = needed_time(metadata, "CreationDate")
    return EncryptionKey(
        ref=ResourceRef(shard.cloud, shard.account, shard.region, "key", native_id),
        spec=facts.spec,
        usage=facts.usage,
        origin=facts.origin,
        state=state,
        manager=facts.manager,
        rotation=_rotation(metadata, created_at),
        rotatability=rotatability(facts),
        aliases=aliases,
        is_default=facts.is_default,
        created_at=created_at,
        deletes_at=time_of(metadata, "DeleteDate") if state is KeyState.PENDING_DELETION else None,
        tags=around.tags.get(native_id, {}),
        used_by=tuple(around.used_by.get(native_id, ())),
        version=text(metadata, "PrimaryKeyVersion") or text(metadata, "LastRotationDate"),
    )


def only_listed(shard: Shard, native_id: str, around: RunContext) -> EncryptionKey:
    """One that could not be described."""
    aliases = _aliases(native_id, around)
    return unread_key(
        ResourceRef(shard.cloud, shard.account, shard.region, "key", native_id),
        aliases,
        around.used_by.get(native_id, ()),
        of_cloud=_is_of_a_service({}, aliases),
        tags=around.tags.get(native_id, {}),
    )


def _aliases(native_id: str, around: RunContext) -> tuple[str, ...]:
    return tuple(sorted(alias.removeprefix("alias/") for alias in around.aliases.get(native_id, ())))


def _facts(metadata: Fields, aliases: Collection[str]) -> KeyFacts:
    """A key's instance decides where its material lives; outside of one the protection level decides nothing."""
    spec = named(metadata, "KeySpec")
    is_of_a_service = _is_of_a_service(metadata, aliases)
    in_instance = bool(text(metadata, "DKMSInstanceId"))
    return KeyFacts(
        spec=spec,
        symmetric=spec in _SECRETS,
        usage=_USAGES.get(named(metadata, "KeyUsage"), KeyUsage.UNKNOWN),
        origin=_ORIGINS.get(named(metadata, "Origin"), KeyOrigin.UNKNOWN),
        manager=KeyManager.CLOUD if is_of_a_service else KeyManager.CUSTOMER,
        is_default=is_of_a_service,
        in_instance=in_instance,
        in_hardware=in_instance and named(metadata, "ProtectionLevel") != _SOFTWARE,
        rotation_told="AutomaticRotation" in metadata,
    )


def _is_of_a_service(metadata: Fields, aliases: Collection[str]) -> bool:
    """By an alias kept for the cloud, or made by something else than an account."""
    creator = text(metadata, "Creator")
    return any(alias.startswith(_OF_A_SERVICE) for alias in aliases) or bool(creator and not creator.isdigit())


def _rotation(metadata: Fields, created_at: datetime) -> RotationSetting:
    """Of a key that was never rotated the cloud tells when its first version was made: that is no rotation."""
    automatic = _ROTATES.get(text(metadata, "AutomaticRotation"))  # absent where it is not supported, which is not off
    last_at = time_of(metadata, "LastRotationDate")
    return RotationSetting(
        automatic=automatic,
        period_days=_days(text(metadata, "RotationInterval")) if automatic else None,
        last_at=last_at if last_at is not None and last_at > created_at else None,
        next_at=time_of(metadata, "NextRotationDate") if automatic else None,
    )


def _days(interval: str) -> int | None:
    """`31536000s` or `365d` in days; a part of a day counts as one. None where it is not told.

    Raises:
        ValueError: another form.
    """
    if not interval:
        return None
    match = _INTERVAL.fullmatch(interval)
    if match is None or not int(match[1]):
        raise ValueError("RotationInterval is no period")
    return -(-int(match[1]) * _SECONDS[match[2]] // _SECONDS["d"])
