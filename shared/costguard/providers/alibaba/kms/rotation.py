"""What Costguard changes about keys of Alibaba Cloud: they are set to rotate, rotated, or given a successor."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping

from costguard.domain.actions import Receipt
from costguard.domain.errors import OutcomeUnknownError
from costguard.domain.keys import EncryptionKey
from costguard.providers.alibaba.core.products import HOME_REGIONS, json_list
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.fields import Fields, after_sending, as_documented, named, part
from costguard.providers.kit.kms.rotation import CANARY, CONTEXT, KeyRotator, KeySuccessor, Sealed, unfit

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


_RESERVED = ("acs:", "aliyun")  # what no tag of a customer may begin with
_DESCRIBE = "kms:DescribeKey"


class AlibabaKeySuccessor(KeySuccessor[AlibabaSession]):
    """For one site of Alibaba Cloud, and the `AliasWire` of its own canaries."""

    clouds = HOME_REGIONS
    reserved = _RESERVED

    def _create(self, key: EncryptionKey, tags: Mapping[str, str]) -> Receipt:
        """As `create`, in the same instance, of whose quota of keys it takes one.

        Of a refusal the code Rejected.LimitExceeded is a quota that is used up.

        API: KMS DescribeKey and GetKeyPolicy, then CreateKey, which knows no token against a second one.
        """
        instance, usage = self._described(key)
        policy = self._policy_of(key)
        return self._session.change(
            key.ref.shard,
            "kms",
            "CreateKey",
            lambda answer: named(part(answer, "KeyMetadata"), "KeyId"),
            Description=f"Takes the place of {key.ref.native_id}",
            KeySpec=key.spec,
            KeyUsage=usage,
            Origin="Aliyun_KMS",
            DKMSInstanceId=instance,
            Policy=policy,
            Tags=json_list([{"TagKey": name, "TagValue": value} for name, value in sorted(tags.items())]),
        )

    def seal(self, named: str, key: EncryptionKey) -> Sealed:
        """A canary by an id or alias. API: KMS Encrypt with a context of its own."""
        plain = b64encode(CANARY.encode()).decode()
        answer = self._call(key, "Encrypt", KeyId=named, Plaintext=plain, EncryptionContext=_context())
        return _sealed(answer)

    def holds(self, key: EncryptionKey, sealed: Sealed) -> bool:
        """Whether this key takes the canary back. API: KMS Decrypt, which finds the key itself and says which."""
        answer = self._call(key, "Decrypt", CiphertextBlob=sealed.proof, EncryptionContext=_context())
        with as_documented("kms:Decrypt"):
            plain = b64decode(named(answer, "Plaintext"), validate=True)
            return plain == CANARY.encode() and named(answer, "KeyId") == key.ref.native_id

    def point(self, alias: str, key: EncryptionKey) -> Receipt:
        """Let the alias name this key. API: KMS UpdateAlias."""
        return self._session.change(key.ref.shard, "kms", "UpdateAlias", AliasName=alias, KeyId=key.ref.native_id)

    def _described(self, key: EncryptionKey) -> tuple[str, str]:
        """The instance the key is in, and its usage in the vendor's word."""
        answer = self._call(key, "DescribeKey", KeyId=key.ref.native_id)
        with as_documented(_DESCRIBE):
            metadata = part(answer, "KeyMetadata")
            instance, usage = named(metadata, "DKMSInstanceId"), named(metadata, "KeyUsage")
            if named(metadata, "KeyId") != key.ref.native_id:
                raise ValueError("it describes another key")
            if named(metadata, "KeySpec") != key.spec:
                raise unfit(key, "its spec is not what it was")
            return instance, usage


def _context() -> str:
    return json.dumps(CONTEXT, separators=(",", ":"))


def _sealed(answer: Fields) -> Sealed:
    with as_documented("kms:Encrypt"):
        return Sealed(named(answer, "KeyId"), named(answer, "CiphertextBlob"))
