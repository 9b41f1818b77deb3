"""A new key in a key's place on Alibaba Cloud: made like it, then an alias moved to it between two canaries."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

from costguard.domain.actions import Receipt
from costguard.domain.keys import EncryptionKey
from costguard.providers.alibaba.core.fields import json_list
from costguard.providers.alibaba.core.products import HOME_REGIONS
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import Fields, as_documented, named, part
from costguard.providers.kit.iam.purposes import Purpose, require_purpose
from costguard.providers.kit.kms.successor import (
    CANARY,
    CONTEXT,
    Sealed,
    moved,
    require_creatable,
    require_policy_of_any_key,
    successor_tags,
    unfit,
)

_RESERVED = ("acs:", "aliyun")  # what no tag of a customer may begin with
_CREATE, _DESCRIBE = "kms:CreateKey", "kms:DescribeKey"


class AlibabaKeySuccessor:
    """`KeySuccessor` for one site of Alibaba Cloud, and the `AliasWire` of its own canaries; no change is retried."""

    def __init__(self, session: AlibabaSession) -> None:
        """Take a session made for this.

        Raises:
            InvalidInputError: it can do more than that.
        """
        require_purpose(session, Purpose.SUCCEED)
        self._session = session

    def create(self, key: EncryptionKey, decision: str) -> Receipt:
        """Make a key like this one, in the same instance: spec, usage, key policy, and tags but the cloud's own.

        It takes one of the instance's quota of keys. A schedule of rotation is not copied; a key whose policy names
        itself is refused.

        Raises:
            OutcomeUnknownError: there may be a new key; list them before anything else.
            AccessDeniedError: the role lacks a permission.
            RefusedError: nothing was made; Rejected.LimitExceeded is a quota that is used up.
            ThrottledError: rejected before execution; nothing was made.

        API: KMS DescribeKey and GetKeyPolicy, then CreateKey, which knows no token against a second one.
        """
        require_creatable(key, decision, HOME_REGIONS)
        instance, usage = self._described(key)
        policy = self._policy(key)
        require_policy_of_any_key(key, policy)
        tags = successor_tags(key, decision, _RESERVED)
        answer = self._call(
            key,
            "CreateKey",
            Description=f"Takes the place of {key.ref.native_id}",
            KeySpec=key.spec,
            KeyUsage=usage,
            Origin="Aliyun_KMS",
            DKMSInstanceId=instance,
            Policy=policy,
            Tags=json_list([{"TagKey": name, "TagValue": value} for name, value in sorted(tags.items())]),
        )
        with after_sending(_CREATE):
            return Receipt(named(answer, "RequestId"), named(part(answer, "KeyMetadata"), "KeyId"))

    def move_alias(self, alias: str, holder: EncryptionKey, heir: EncryptionKey) -> Receipt:
        """Move the alias, and back where a canary fails.

        Raises:
            ProviderError: as `providers.succeeding.moved`.

        API: KMS UpdateAlias, Encrypt and Decrypt.
        """
        return moved(self, alias, holder, heir, HOME_REGIONS)

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
        answer = self._call(key, "UpdateAlias", AliasName=alias, KeyId=key.ref.native_id)
        with after_sending("kms:UpdateAlias"):
            return Receipt(named(answer, "RequestId"))

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

    def _policy(self, key: EncryptionKey) -> str:
        answer = self._call(key, "GetKeyPolicy", KeyId=key.ref.native_id, PolicyName="default")
        with as_documented("kms:GetKeyPolicy"):
            return named(answer, "Policy")

    def _call(self, key: EncryptionKey, operation: str, **parameters: Any) -> Fields:
        return self._session.call(key.ref.shard, "kms", operation, **parameters)


def _context() -> str:
    return json.dumps(CONTEXT, separators=(",", ":"))


def _sealed(answer: Fields) -> Sealed:
    with as_documented("kms:Encrypt"):
        return Sealed(named(answer, "KeyId"), named(answer, "CiphertextBlob"))
