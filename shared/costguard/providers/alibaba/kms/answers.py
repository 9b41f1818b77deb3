"""From what DescribeKey says to an `EncryptionKey`: pure, apart from any request."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from costguard.domain.keys import EncryptionKey, KeyManager, KeyOrigin, KeyState, KeyUsage, RotationSetting
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.alibaba.core.fields import needed_time, time_of
from costguard.providers.alibaba.kms.matrix import rotatability
from costguard.providers.kit.core.fields import Fields, named, text
from costguard.providers.kit.kms.matrix import IN_NO_ROW, KeyFacts

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
    used_by: Mapping[str, Sequence[ResourceRef]] = field(default_factory=dict)


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


def unread_key(shard: Shard, native_id: str, around: RunContext) -> EncryptionKey:
    """One that is listed and could not be described: all that is unread is unknown, and nothing is allowed of it."""
    aliases = _aliases(native_id, around)
    is_of_a_service = _is_of_a_service({}, aliases)
    return EncryptionKey(
        ref=ResourceRef(shard.cloud, shard.account, shard.region, "key", native_id),
        spec="",
        usage=KeyUsage.UNKNOWN,
        origin=KeyOrigin.UNKNOWN,
        state=KeyState.UNKNOWN,
        manager=KeyManager.CLOUD if is_of_a_service else KeyManager.CUSTOMER,
        rotation=RotationSetting(automatic=None),
        rotatability=IN_NO_ROW,
        aliases=aliases,
        is_default=is_of_a_service,
        tags=around.tags.get(native_id, {}),
        used_by=tuple(around.used_by.get(native_id, ())),
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
        message = "RotationInterval is no period"
        raise ValueError(message)
    return -(-int(match[1]) * _SECONDS[match[2]] // _SECONDS["d"])
