"""What AWS KMS allows for each kind of key."""

from __future__ import annotations

from dataclasses import replace

from costguard.domain.keys import KeyManager, KeyOrigin, KeyUsage, MultiRegion, Rotatability, RotationMeans
from costguard.providers.key_matrix import KeyFacts, MatrixRow, rotatability_of

SHORTEST_DAYS, LONGEST_DAYS = 90, 2560
"""API: KMS EnableKeyRotation, RotationPeriodInDays; 365 where it is not named, which costguard always does."""

MOST_ON_DEMAND = 10
"""Rotations on demand in the life of one key. AWS's documents disagree (10 and 25): the lower is taken as the cap.

API: KMS RotateKeyOnDemand; "Resource quotas" of the developer guide.
"""

AWS_MANAGED_DAYS = 365
"""How often AWS rotates the keys it manages, by itself. API: KMS developer guide, "Rotate AWS KMS keys"."""

_GUIDE = 'KMS developer guide, "Rotate AWS KMS keys"'
_CAPPED = f"{MOST_ON_DEMAND} rotations on demand in a key's life (documents say 10 and 25: the lower counts)"
_BY_SUCCESSOR = frozenset({RotationMeans.SUCCESSOR})


MATRIX: tuple[MatrixRow, ...] = (
    MatrixRow(
        "managed by AWS (`aws/…`)",
        lambda key: key.manager is KeyManager.CLOUD,
        Rotatability(
            frozenset(),
            note=f"AWS rotates it every {AWS_MANAGED_DAYS} days by itself; nobody else can, nor change the period",
            source=_GUIDE,
        ),
    ),
    MatrixRow(
        "a replica of a multi-region key",
        lambda key: key.multi_region is MultiRegion.REPLICA,
        Rotatability(frozenset(), note="follows its primary, whose rotation counts for every region", source=_GUIDE),
    ),
    MatrixRow(
        "for MACs (`HMAC_…`)",
        lambda key: key.usage is KeyUsage.MAC,
        Rotatability(
            _BY_SUCCESSOR,
            note="never by itself or on demand; only the old key verifies old MACs, so moving its alias fails them",
            source=_GUIDE,
        ),
    ),
    MatrixRow(
        "asymmetric, for signatures",
        lambda key: not key.symmetric and key.usage is KeyUsage.SIGN,
        Rotatability(
            _BY_SUCCESSOR,
            note="never by itself or on demand; users of the public key need the new one",
            source=f"{_GUIDE}; UpdateAlias",
            succeeds=True,
        ),
    ),
    MatrixRow(
        "asymmetric (key agreement, RSA encryption)",
        lambda key: not key.symmetric,
        Rotatability(
            _BY_SUCCESSOR,
            note="never by itself or on demand; old data names no key, so moving the alias fails its decryption",
            source=_GUIDE,
        ),
    ),
    MatrixRow(
        "in a custom key store (CloudHSM or external)",
        lambda key: key.origin is KeyOrigin.CUSTOM_STORE,
        Rotatability(_BY_SUCCESSOR, note="never by itself or on demand", source=_GUIDE),
    ),
    MatrixRow(
        "symmetric, imported material",
        lambda key: key.origin is KeyOrigin.IMPORTED and key.usage is KeyUsage.ENCRYPT,
        Rotatability(
            frozenset({RotationMeans.ON_DEMAND, RotationMeans.SUCCESSOR}),
            note=f"only after its owner has imported new material, which costguard cannot; {_CAPPED}",
            source=f"{_GUIDE}; RotateKeyOnDemand",
        ),
    ),
    MatrixRow(
        "symmetric, material made by KMS",
        lambda key: key.origin is KeyOrigin.CLOUD and key.usage is KeyUsage.ENCRYPT,
        Rotatability(
            frozenset(RotationMeans),
            shortest_days=SHORTEST_DAYS,
            longest_days=LONGEST_DAYS,
            note=f"first so many days after it is turned on; {_CAPPED}, which leave the schedule as it is",
            source="EnableKeyRotation; RotateKeyOnDemand; UpdateAlias",
            succeeds=True,
        ),
    ),
)
"""First that holds, first served."""


def rotatability(facts: KeyFacts, *, on_demand_used: int | None = None) -> Rotatability:
    """What AWS allows for such a key; no rotation on demand once `on_demand_used` of the key have reached the cap."""
    found = rotatability_of(MATRIX, facts)
    if RotationMeans.ON_DEMAND not in found.means or on_demand_used is None or on_demand_used < MOST_ON_DEMAND:
        return found
    used_up = f"all {MOST_ON_DEMAND} rotations on demand of this key are used"
    return replace(found, means=found.means - {RotationMeans.ON_DEMAND}, note=used_up)
