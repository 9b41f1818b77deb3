"""Which keys a vendor gives new material, and when, from its documents alone. Wires have the words for a refusal.

| vendor | documents |
|---|---|
| AWS | KMS developer guide, "Rotate AWS KMS keys"; API: EnableKeyRotation, RotateKeyOnDemand |
| Alibaba Cloud | KMS user guide, "Configure key rotation"; API: UpdateRotationPolicy, CreateKeyVersion |
| Tencent Cloud | KMS API 2019-01-18, EnableKeyRotation, RotateKey, "Error Codes" |
"""

from __future__ import annotations

from typing import NamedTuple

from cloudstand.world.keys import KeyManager, KeyOrigin, KeyUsage, MultiRegion, WorldKey

MOST_ON_DEMAND = 25  # of AWS, in the life of a key: developer guide, "Resource quotas"
_PAIRS = ("RSA", "EC_", "ECC_", "SM2", "ML_", "ASYMMETRIC")
"""How the vendors' words for pairs of keys begin; they have no versions."""


class Rotation(NamedTuple):
    """The periods in days that may be set, none where it never rotates by itself; whether it may be rotated now."""

    periods: range = range(0)
    on_demand: bool = False


def has_versions(key: WorldKey) -> bool:
    """Whether a key of this kind can have more than one material."""
    if key.usage is not KeyUsage.ENCRYPT or key.spec.startswith(_PAIRS):
        return False
    if key.ref.provider == "aws":
        return key.origin in (KeyOrigin.CLOUD, KeyOrigin.IMPORTED)
    in_own_hardware = key.hardware or key.ref.provider == "tencent"
    return key.origin is KeyOrigin.CLOUD and not (key.instance and in_own_hardware)


def rotation_of(key: WorldKey) -> Rotation:
    """What its vendor allows for this key, as long as it is enabled."""
    if not has_versions(key) or key.manager is KeyManager.CLOUD or key.multi_region is MultiRegion.REPLICA:
        return Rotation()
    if key.ref.provider == "aws":
        by_itself = range(90, 2561) if key.origin is KeyOrigin.CLOUD else range(0)
        return Rotation(by_itself, len(key.on_demand) < MOST_ON_DEMAND)
    if key.ref.provider == "tencent":
        return Rotation(range(7, 366), key.period_days is not None)
    if key.instance:
        return Rotation(range(7, 366), on_demand=True)
    return Rotation(range(365, 366) if key.add_on else range(0))
