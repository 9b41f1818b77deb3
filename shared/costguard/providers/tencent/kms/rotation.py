"""What Costguard changes about keys of Tencent Cloud: the two operations that give them new material, and no other."""

from __future__ import annotations

from costguard.domain.actions import Receipt
from costguard.domain.keys import EncryptionKey
from costguard.providers.kit.core.fields import named
from costguard.providers.kit.kms.rotation import KeyRotator
from costguard.providers.tencent.core.products import HOME_REGIONS
from costguard.providers.tencent.core.session import TencentSession


class TencentKeyRotator(KeyRotator[TencentSession]):
    """For one site of Tencent Cloud."""

    clouds = HOME_REGIONS

    def _set_period(self, key: EncryptionKey, days: int) -> Receipt:
        """Turn automatic rotation on with this period.

        No page says that this changes the period of a key whose rotation is on already, nor that it does not: what
        came of it is read back. Turning rotation off in between would leave it off where the second call fails.
        In the vendor's examples the next rotation is a period after the key was made: if that is so, a key older than
        `days` may rotate at once. API: KMS EnableKeyRotation.
        """
        ref = key.ref
        return self._session.change(ref.shard, "kms", "EnableKeyRotation", KeyId=ref.native_id, RotateDays=days)

    def _rotate(self, key: EncryptionKey) -> Receipt:
        """Rotate now, in a task of its own, whose id the receipt tells: `LastRotateTime` says when it is done.

        Once in 24 hours, which a refusal with RequestLimitExceeded.RotateRateLimited says: no sooner try helps.
        API: KMS RotateKey.
        """
        ref = key.ref
        return self._session.change(
            ref.shard, "kms", "RotateKey", lambda answer: named(answer, "TaskId"), KeyId=ref.native_id
        )
