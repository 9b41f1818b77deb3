"""What Tencent Cloud KMS allows for each kind of key."""

from __future__ import annotations

from dataclasses import replace

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
from costguard.providers.kit.kms.matrix import KeyFacts, MatrixRow, by_successor, no_means, rotatability_of

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
