"""What every `KeyRotator` holds to: a session that can do nothing else, and only what the kind of the key allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import ClassVar

from costguard.domain.actions import Receipt
from costguard.domain.errors import RefusedError
from costguard.domain.keys import EncryptionKey, KeyManager, KeyState, RotationMeans
from costguard.providers.kit.iam.purposes import OnlyFor, Purpose, SessionT


class KeyRotator(OnlyFor[SessionT], ABC):
    """The port of that name for `clouds`, from a session that can do nothing else; one key a call, never a retry."""

    purpose: ClassVar = Purpose.ROTATE
    clouds: ClassVar[Collection[str]]

    def set_period(self, key: EncryptionKey, days: int) -> Receipt:
        """Turn automatic rotation on with this period, or change the period.

        Raises:
            OutcomeUnknownError: it may have taken effect; read the key before anything else.
            AccessDeniedError: the role, or the key's own policy, lacks the permission.
            RefusedError: the cloud refused, or the period does not fit the key; nothing changed.
            ThrottledError: rejected before execution; nothing changed.
        """
        require_period(key, days, self.clouds)
        return self._set_period(key, days)

    def rotate(self, key: EncryptionKey) -> Receipt:
        """Rotate now; the schedule of automatic rotation stays as it is. Errors as `set_period`."""
        require_on_demand(key, self.clouds)
        return self._rotate(key)

    @abstractmethod
    def _set_period(self, key: EncryptionKey, days: int) -> Receipt:
        """Set a period that fits the key."""

    @abstractmethod
    def _rotate(self, key: EncryptionKey) -> Receipt:
        """Rotate what rotates on demand."""


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
