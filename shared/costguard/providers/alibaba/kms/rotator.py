"""The two things Costguard does to a key on Alibaba Cloud: set the period of its rotation, and make a new version."""

from __future__ import annotations

from costguard.domain.actions import Receipt
from costguard.domain.errors import OutcomeUnknownError
from costguard.domain.keys import EncryptionKey
from costguard.providers.alibaba.core.products import HOME_REGIONS
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.fields import after_sending, named, part
from costguard.providers.kit.kms.rotator import KeyRotator

_VERSION = "kms:CreateKeyVersion"


class AlibabaKeyRotator(KeyRotator[AlibabaSession]):
    """For one site of Alibaba Cloud.

    A refusal's code is Rejected.UnsupportedOperation of another kind of key, or without the paid add-on, and
    Rejected.LimitExceeded where a quota is used up.
    """

    clouds = HOME_REGIONS

    def _set_period(self, key: EncryptionKey, days: int) -> Receipt:
        """Turn automatic rotation on with this period, or change the period; **it may rotate at once**.

        Periods count from the last rotation, or from the key's creation: where that day plus `days` is past, the first
        rotation follows immediately. So it is exactly for a key whose material is older than the period asked for,
        which is overdue by it, and one rotation mends both: asking for another on demand would spend two versions on
        one decision. It is not refused here, since then no old key could ever be set right.

        API: KMS UpdateRotationPolicy, by key id (aliases are not promised), with EnableAutomaticRotation always true.
        """
        return self._session.change(
            key.ref.shard,
            "kms",
            "UpdateRotationPolicy",
            KeyId=key.ref.native_id,
            EnableAutomaticRotation=True,
            RotationInterval=f"{days}d",
        )

    def _rotate(self, key: EncryptionKey) -> Receipt:
        """Give the key a new version now, which becomes its primary one and takes one of its instance's quota of keys.

        The receipt names the version. There is no client token: a repetition would make another one.

        API: KMS CreateKeyVersion. Old documents say of it: asymmetric keys only; new ones: symmetric keys of software
        instances only. What the cloud does not do it refuses with Rejected.UnsupportedOperation.
        """
        native_id = key.ref.native_id
        answer = self._session.call(key.ref.shard, "kms", "CreateKeyVersion", KeyId=native_id)
        with after_sending(_VERSION):
            version = part(answer, "KeyVersion")
            receipt = Receipt(request_id=named(answer, "RequestId"), native_id=named(version, "KeyVersionId"))
            about = named(version, "KeyId")
        if about != native_id:
            message = f"{_VERSION}: answered about {about}, not {native_id}; it may have taken effect"
            raise OutcomeUnknownError(message, operation=_VERSION, code="UnexpectedAnswer")
        return receipt
