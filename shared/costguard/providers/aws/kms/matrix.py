"""What AWS KMS allows for each kind of key."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from costguard.domain.keys import (
    UNKNOWN_COST,
    CostKind,
    KeyManager,
    KeyOrigin,
    KeyUsage,
    MultiRegion,
    Rotatability,
    RotationCost,
    RotationMeans,
)
from costguard.domain.money import Money
from costguard.providers.kit.kms.matrix import KeyFacts, MatrixRow, by_successor, no_means, rotatability_of

SHORTEST_DAYS, LONGEST_DAYS = 90, 2560
"""API: KMS EnableKeyRotation, RotationPeriodInDays; 365 where it is not named, which costguard always does."""

MOST_ON_DEMAND = 25
"""Rotations on demand in the life of one key, in every partition; not adjustable. Older copies of the API reference
say 10: where a region still holds to that, it refuses with `LimitExceededException`, and nothing changes.

Source: KMS developer guide, "Resource quotas" and "Perform on-demand key rotation"; the China regions' guide as well.
"""

AWS_MANAGED_DAYS = 365
"""How often AWS rotates the keys it manages, by itself. API: KMS developer guide, "Rotate AWS KMS keys"."""

_A_KEY = Money(Decimal(1), "USD")
"""A month of a key, in regions of `aws`; `aws-cn` bills it in CNY."""
_PRICES = "https://aws.amazon.com/kms/pricing/"
_PRICES_AS_OF = "2024-04-12"
_FREE = RotationCost(CostKind.NOTHING, source=_PRICES, as_of=_PRICES_AS_OF)
_FIRST_TWO = RotationCost(CostKind.FIRST_TWO, _A_KEY, _PRICES, _PRICES_AS_OF)
_NEW_KEY = RotationCost(CostKind.NEW_KEY, _A_KEY, _PRICES, _PRICES_AS_OF)
_GUIDE = 'KMS developer guide, "Rotate AWS KMS keys"'
_CAPPED = f"{MOST_ON_DEMAND} rotations on demand in a key's life"


MATRIX: tuple[MatrixRow, ...] = (
    no_means(
        "managed by AWS (`aws/…`)",
        lambda key: key.manager is KeyManager.CLOUD,
        f"AWS rotates it every {AWS_MANAGED_DAYS} days by itself; nobody else can, nor change the period",
        _GUIDE,
        _FREE,
    ),
    no_means(
        "a replica of a multi-region key",
        lambda key: key.multi_region is MultiRegion.REPLICA,
        "follows its primary, whose rotation counts for every region",
        _GUIDE,
        UNKNOWN_COST,
    ),
    by_successor(
        "for MACs (`HMAC_…`)",
        lambda key: key.usage is KeyUsage.MAC,
        "never by itself or on demand; only the old key verifies old MACs, so moving its alias fails them",
        _GUIDE,
        _NEW_KEY,
    ),
    by_successor(
        "asymmetric, for signatures",
        lambda key: not key.symmetric and key.usage is KeyUsage.SIGN,
        "never by itself or on demand; users of the public key need the new one",
        f"{_GUIDE}; UpdateAlias",
        _NEW_KEY,
        succeeds=True,
    ),
    by_successor(
        "asymmetric (key agreement, RSA encryption)",
        lambda key: not key.symmetric,
        "never by itself or on demand; old data names no key, so moving the alias fails its decryption",
        _GUIDE,
        _NEW_KEY,
    ),
    by_successor(
        "in a custom key store (CloudHSM or external)",
        lambda key: key.origin is KeyOrigin.CUSTOM_STORE,
        "never by itself or on demand",
        _GUIDE,
        _NEW_KEY,
    ),
    MatrixRow(
        "symmetric, imported material",
        lambda key: key.origin is KeyOrigin.IMPORTED and key.usage is KeyUsage.ENCRYPT,
        Rotatability(
            frozenset({RotationMeans.ON_DEMAND, RotationMeans.SUCCESSOR}),
            note=f"only after its owner has imported new material, which costguard cannot; {_CAPPED}",
            source=f"{_GUIDE}; RotateKeyOnDemand",
            cost=_FIRST_TWO,
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
            cost=_FIRST_TWO,
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
