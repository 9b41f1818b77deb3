"""A new key in a key's place on Alibaba Cloud: made like it, then an alias moved to it between two canaries."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping

from costguard.domain.actions import Receipt
from costguard.domain.keys import EncryptionKey
from costguard.providers.alibaba.core.fields import json_list
from costguard.providers.alibaba.core.products import HOME_REGIONS
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.fields import Fields, as_documented, named, part
from costguard.providers.kit.kms.successor import CANARY, CONTEXT, KeySuccessor, Sealed, unfit

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
                message = "it describes another key"
                raise ValueError(message)
            if named(metadata, "KeySpec") != key.spec:
                raise unfit(key, "its spec is not what it was")
            return instance, usage


def _context() -> str:
    return json.dumps(CONTEXT, separators=(",", ":"))


def _sealed(answer: Fields) -> Sealed:
    with as_documented("kms:Encrypt"):
        return Sealed(named(answer, "KeyId"), named(answer, "CiphertextBlob"))
