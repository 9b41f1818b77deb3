"""The two changes Costguard makes to a key of AWS: turn on automatic rotation with a period, and rotate now."""

from __future__ import annotations

from typing import Any

from costguard.domain.actions import Receipt
from costguard.domain.errors import RefusedError
from costguard.domain.keys import EncryptionKey
from costguard.providers.aws.core.session import HOME_REGIONS, AwsSession
from costguard.providers.aws.kms.matrix import MOST_ON_DEMAND
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import part, text
from costguard.providers.kit.iam.purposes import Purpose, require_purpose
from costguard.providers.kit.kms.rotator import require_on_demand, require_period

_SAID = {
    "ConflictException": "a rotation of this key is under way or begins within minutes: read it back",
    "DisabledException": "the key is disabled",
    "KMSInvalidStateException": "the key is in a state in which it does not rotate",
    "LimitExceededException": f"its rotations on demand are used up (AWS documents {MOST_ON_DEMAND} in a key's life)",
    "UnsupportedOperationException": "a key of this kind does not rotate in this way",
}


class AwsKeyRotator:
    """`KeyRotator` for one partition of AWS; one key a call, never a retry."""

    def __init__(self, session: AwsSession) -> None:
        """Take a session made for rotating.

        Raises:
            InvalidInputError: it can do more than that.
        """
        require_purpose(session, Purpose.ROTATE)
        self._session = session

    def set_period(self, key: EncryptionKey, days: int) -> Receipt:
        """Turn automatic rotation on, first in `days` days and then as often; or change the period.

        Raises:
            OutcomeUnknownError: the call may have taken effect; read the key before anything else.
            AccessDeniedError: the role or the key's own policy lacks the permission.
            RefusedError: AWS refused, or it does not fit the key; nothing changed.
            ThrottledError: rejected before execution; nothing changed.

        API: KMS EnableKeyRotation with RotationPeriodInDays.
        """
        require_period(key, days, HOME_REGIONS)
        return self._change(key, "EnableKeyRotation", RotationPeriodInDays=days)

    def rotate(self, key: EncryptionKey) -> Receipt:
        """Rotate now; the schedule of automatic rotation stays as it is. Errors as `set_period`.

        One of few in the life of a key, and it may add to the key's monthly price. Accepted is not done: AWS rotates
        in the background.

        API: KMS RotateKeyOnDemand.
        """
        require_on_demand(key, HOME_REGIONS)
        return self._change(key, "RotateKeyOnDemand")

    def _change(self, key: EncryptionKey, operation: str, **parameters: Any) -> Receipt:
        api = f"kms:{operation}"
        try:
            answer = self._session.call(key.ref.shard, "kms", operation, KeyId=key.ref.native_id, **parameters)
        except RefusedError as err:
            message = f"{err}; {_SAID[err.code]}" if err.code in _SAID else str(err)
            raise RefusedError(message, operation=api, code=err.code) from err
        with after_sending(api):
            return Receipt(request_id=text(part(answer, "ResponseMetadata"), "RequestId"))
