"""The two changes Costguard makes to a key of AWS: turn on automatic rotation with a period, and rotate now."""

from __future__ import annotations

from typing import Any

from costguard.domain.actions import Receipt
from costguard.domain.errors import RefusedError
from costguard.domain.keys import EncryptionKey
from costguard.providers.aws.core.session import HOME_REGIONS, AwsSession
from costguard.providers.aws.kms.matrix import MOST_ON_DEMAND
from costguard.providers.kit.kms.rotator import KeyRotator

_SAID = {
    "ConflictException": "a rotation of this key is under way or begins within minutes: read it back",
    "DisabledException": "the key is disabled",
    "KMSInvalidStateException": "the key is in a state in which it does not rotate",
    "LimitExceededException": f"its rotations on demand are used up (AWS documents {MOST_ON_DEMAND} in a key's life)",
    "UnsupportedOperationException": "a key of this kind does not rotate in this way",
}


class AwsKeyRotator(KeyRotator[AwsSession]):
    """For one partition of AWS."""

    clouds = HOME_REGIONS

    def _set_period(self, key: EncryptionKey, days: int) -> Receipt:
        """First in `days` days and then as often. API: KMS EnableKeyRotation with RotationPeriodInDays."""
        return self._change(key, "EnableKeyRotation", RotationPeriodInDays=days)

    def _rotate(self, key: EncryptionKey) -> Receipt:
        """Rotate as one of few in the life of a key; it may add to the key's monthly price.

        Accepted is not done: AWS rotates in the background. API: KMS RotateKeyOnDemand.
        """
        return self._change(key, "RotateKeyOnDemand")

    def _change(self, key: EncryptionKey, operation: str, **parameters: Any) -> Receipt:
        try:
            return self._session.change(key.ref.shard, "kms", operation, KeyId=key.ref.native_id, **parameters)
        except RefusedError as err:
            message = f"{err}; {_SAID[err.code]}" if err.code in _SAID else str(err)
            raise RefusedError(message, operation=f"kms:{operation}", code=err.code) from err
