"""What every `KeyRotator` holds to: a session that can do nothing else, and only what the kind of the key allows."""

from __future__ import annotations

from collections.abc import Collection

from costguard.domain.errors import RefusedError
from costguard.domain.keys import EncryptionKey, KeyManager, KeyState, RotationMeans


def require_period(key: EncryptionKey, days: int, clouds: Collection[str]) -> None:
    """Refuse, before anything is sent, a period that this key cannot be given.

    Raises:
        RefusedError: it cannot.
    """
    _require(key, RotationMeans.AUTOMATIC, clouds)
    shortest, longest = key.rotatability.shortest_days, key.rotatability.longest_days
    if shortest is None or longest is None or not shortest <= days <= longest:
        raise unfit(key, f"a period of {days} days is not from {shortest} to {longest}")


def require_on_demand(key: EncryptionKey, clouds: Collection[str]) -> None:
    """Refuse, before anything is sent, rotating a key that cannot be rotated on demand.

    Raises:
        RefusedError: it cannot.
    """
    _require(key, RotationMeans.ON_DEMAND, clouds)


def _require(key: EncryptionKey, means: RotationMeans, clouds: Collection[str]) -> None:
    if key.ref.kind != "key" or key.ref.cloud not in clouds or not key.ref.native_id or not key.ref.region:
        raise unfit(key, f"it needs a key of {' or '.join(sorted(clouds))}")
    if key.manager is not KeyManager.CUSTOMER:
        raise unfit(key, "its cloud decides over it")
    if key.state is not KeyState.ENABLED:
        raise unfit(key, f"it is {key.state.value}")
    if means not in key.rotatability.means:
        raise unfit(key, key.rotatability.note or f"its kind does not rotate {means.value}")


def unfit(key: EncryptionKey, why: str) -> RefusedError:
    """The error of a key about which nothing was sent."""
    message = f"rotation of {key.ref}: nothing was sent: {why}"
    return RefusedError(message, code="Unfit")
