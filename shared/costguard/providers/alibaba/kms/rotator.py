"""The two things Costguard does to a key on Alibaba Cloud: set the period of its rotation, and make a new version."""

from __future__ import annotations

from costguard.domain.actions import Receipt
from costguard.domain.errors import OutcomeUnknownError
from costguard.domain.keys import EncryptionKey
from costguard.providers.alibaba.core.products import HOME_REGIONS
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import named, part
from costguard.providers.kit.iam.purposes import Purpose, require_purpose
from costguard.providers.kit.kms.rotator import require_on_demand, require_period

_VERSION = "kms:CreateKeyVersion"


class AlibabaKeyRotator:
    """`KeyRotator` for one site of Alibaba Cloud, from a session that can do nothing else; never a retry."""

    def __init__(self, session: AlibabaSession) -> None:
        """Take a session made for rotating keys.

        Raises:
            InvalidInputError: it can do more than that.
        """
        require_purpose(session, Purpose.ROTATE)
        self._session = session

    def set_period(self, key: EncryptionKey, days: int) -> Receipt:
        """Turn automatic rotation on with this period, or change the period.

        **This may rotate the key at once.** Periods count from the last rotation, or from the key's creation: where
        that day plus `days` is past, the first rotation follows immediately. So it is exactly for a key whose material
        is older than the period asked for, which is overdue by it, and one rotation mends both: asking for
        another on demand would spend two versions on one decision. It is not refused here, since then no old key
        could ever be set right.

        Raises:
            OutcomeUnknownError: it may have taken effect; read the key before anything else.
            AccessDeniedError: the role lacks kms:UpdateRotationPolicy.
            RefusedError: nothing changed. Of another kind of key, or without the paid add-on, its code is
                Rejected.UnsupportedOperation; Rejected.LimitExceeded is a quota that is used up.
            ThrottledError: rejected before execution; nothing changed.

        API: KMS UpdateRotationPolicy, by key id (aliases are not promised), with EnableAutomaticRotation always true.
        """
        require_period(key, days, HOME_REGIONS)
        answer = self._session.call(
            key.ref.shard,
            "kms",
            "UpdateRotationPolicy",
            KeyId=key.ref.native_id,
            EnableAutomaticRotation=True,
            RotationInterval=f"{days}d",
        )
        with after_sending("kms:UpdateRotationPolicy"):
            return Receipt(request_id=named(answer, "RequestId"))

    def rotate(self, key: EncryptionKey) -> Receipt:
        """Give the key a new version now, which becomes its primary one and takes one of its instance's quota of keys.

        The receipt names the version. There is no client token: a repetition would make another one.

        Raises:
            ProviderError: as `set_period`, with kms:CreateKeyVersion.

        API: KMS CreateKeyVersion. Old documents say of it: asymmetric keys only; new ones: symmetric keys of software
        instances only. What the cloud does not do it refuses with Rejected.UnsupportedOperation.
        """
        require_on_demand(key, HOME_REGIONS)
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
