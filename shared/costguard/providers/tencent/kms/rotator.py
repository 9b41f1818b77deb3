"""Rotation of keys on Tencent Cloud: the two operations that give them new material, and no other."""

from __future__ import annotations

from costguard.domain.actions import Receipt
from costguard.domain.keys import EncryptionKey
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import named
from costguard.providers.kit.iam.purposes import Purpose, require_purpose
from costguard.providers.kit.kms.rotator import require_on_demand, require_period
from costguard.providers.tencent.core.products import HOME_REGIONS
from costguard.providers.tencent.core.session import TencentSession


class TencentKeyRotator:
    """`KeyRotator` for one site of Tencent Cloud, from a session that can do nothing else."""

    def __init__(self, session: TencentSession) -> None:
        """Take a session made for rotating.

        Raises:
            InvalidInputError: it can do more than that.
        """
        require_purpose(session, Purpose.ROTATE)
        self._session = session

    def set_period(self, key: EncryptionKey, days: int) -> Receipt:
        """Turn automatic rotation on with this period.

        No page says that this changes the period of a key whose rotation is on already, nor that it does not: what
        came of it is read back. Turning rotation off in between would leave it off where the second call fails.
        In the vendor's examples the next rotation is a period after the key was made: if that is so, a key older than
        `days` may rotate at once.

        Raises:
            OutcomeUnknownError: it may have taken effect; read the key before anything else.
            AccessDeniedError: the role lacks the permission.
            RefusedError: Tencent Cloud refused, or the period does not fit the key; nothing changed.
            ThrottledError: rejected before execution; nothing changed.

        API: KMS EnableKeyRotation.
        """
        require_period(key, days, HOME_REGIONS)
        ref = key.ref
        answer = self._session.call(ref.shard, "kms", "EnableKeyRotation", KeyId=ref.native_id, RotateDays=days)
        with after_sending("kms:EnableKeyRotation"):
            return Receipt(request_id=named(answer, "RequestId"))

    def rotate(self, key: EncryptionKey) -> Receipt:
        """Rotate now, in a task of its own, whose id the receipt tells: `LastRotateTime` says when it is done.

        Once in 24 hours, which a refusal with RequestLimitExceeded.RotateRateLimited says: no sooner try helps.
        Errors as `set_period`.

        API: KMS RotateKey.
        """
        require_on_demand(key, HOME_REGIONS)
        ref = key.ref
        answer = self._session.call(ref.shard, "kms", "RotateKey", KeyId=ref.native_id)
        with after_sending("kms:RotateKey"):
            return Receipt(request_id=named(answer, "RequestId"), native_id=named(answer, "TaskId"))
