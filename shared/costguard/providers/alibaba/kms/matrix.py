"""What Alibaba Cloud KMS allows for each kind of key."""

from __future__ import annotations

from costguard.domain.keys import (
    CostKind,
    KeyManager,
    KeyOrigin,
    KeyUsage,
    Rotatability,
    RotationCost,
    RotationMeans,
)
from costguard.providers.kit.kms.matrix import KeyFacts, MatrixRow, by_successor, no_means, rotatability_of

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
