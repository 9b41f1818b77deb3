"""A new key in a key's place on AWS: made like it, then an alias moved to it between two canaries."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from costguard.domain.actions import Receipt
from costguard.domain.keys import EncryptionKey, KeyUsage
from costguard.providers.aws.core.session import HOME_REGIONS, AwsSession
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named, part, text
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

_USAGES = {KeyUsage.ENCRYPT: "ENCRYPT_DECRYPT", KeyUsage.SIGN: "SIGN_VERIFY"}
_ALGORITHMS = (
    ("RSA_", "RSASSA_PSS_SHA_256"),
    ("ECC_NIST_P256", "ECDSA_SHA_256"),
    ("ECC_SECG_P256K1", "ECDSA_SHA_256"),
    ("ECC_NIST_P384", "ECDSA_SHA_384"),
    ("ECC_NIST_P521", "ECDSA_SHA_512"),
)
"""How a key of a spec that begins so signs; of any other nobody here knows. API: KMS Sign, SigningAlgorithm."""

_RESERVED = ("aws:",)  # tags that only AWS may write


class AwsKeySuccessor:
    """`KeySuccessor` for one partition of AWS, and the `AliasWire` of its own canaries; never a retry of a change."""

    def __init__(self, session: AwsSession) -> None:
        """Take a session made for this.

        Raises:
            InvalidInputError: it can do more than that.
        """
        require_purpose(session, Purpose.SUCCEED)
        self._session = session

    def create(self, key: EncryptionKey, decision: str) -> Receipt:
        """Make a key like this one: spec, usage, key policy, and tags but those that AWS keeps for itself.

        Grants are not copied, nor is a schedule of rotation. A key whose policy names its own ARN is refused. So is,
        by AWS, a policy under which this role could not set another: its safety check against locking oneself out is
        left on.

        Raises:
            OutcomeUnknownError: there may be a new key; list them before anything else.
            AccessDeniedError: the role or the old key's policy lacks a permission.
            RefusedError: nothing was made.
            ThrottledError: rejected before execution; nothing was made.

        API: KMS GetKeyPolicy, then CreateKey, which knows no token against a second one.
        """
        require_creatable(key, decision, HOME_REGIONS)
        policy = self._policy(key)
        require_policy_of_any_key(key, policy)
        tags = successor_tags(key, decision, _RESERVED)
        answer = self._call(
            key,
            "CreateKey",
            Description=f"Takes the place of {key.ref.native_id}",
            KeySpec=key.spec,
            KeyUsage=_USAGES[key.usage],
            Origin="AWS_KMS",
            MultiRegion=False,
            Policy=policy,
            Tags=[{"TagKey": name, "TagValue": value} for name, value in sorted(tags.items())],
        )
        with after_sending("kms:CreateKey"):
            return Receipt(_request_id(answer), named(part(answer, "KeyMetadata"), "KeyId"))

    def move_alias(self, alias: str, holder: EncryptionKey, heir: EncryptionKey) -> Receipt:
        """Move the alias, and back where a canary fails. KMS takes up to minutes until every request sees it.

        Raises:
            ProviderError: as `providers.succeeding.moved`.

        API: KMS UpdateAlias; Encrypt and Decrypt, for keys that sign Sign and Verify.
        """
        return moved(self, alias, holder, heir, HOME_REGIONS)

    def seal(self, named: str, key: EncryptionKey) -> Sealed:
        """A canary by an id or alias. API: KMS Encrypt with a context of its own, or Sign."""
        if key.usage is KeyUsage.SIGN:
            said = {"MessageType": "RAW", "SigningAlgorithm": _algorithm(key)}
            answer = self._call(key, "Sign", KeyId=named, Message=CANARY.encode(), **said)
            return _sealed(answer, "Signature", "kms:Sign")
        answer = self._call(key, "Encrypt", KeyId=named, Plaintext=CANARY.encode(), EncryptionContext=CONTEXT)
        return _sealed(answer, "CiphertextBlob", "kms:Encrypt")

    def holds(self, key: EncryptionKey, sealed: Sealed) -> bool:
        """Whether this key takes the canary back. API: KMS Decrypt with the key named, or Verify."""
        native_id, proof = key.ref.native_id, b64decode(sealed.proof)
        if key.usage is KeyUsage.SIGN:
            said = {"MessageType": "RAW", "SigningAlgorithm": _algorithm(key)}
            answer = self._call(key, "Verify", KeyId=native_id, Message=CANARY.encode(), Signature=proof, **said)
            with as_documented("kms:Verify"):
                return flag(answer, "SignatureValid") and _key_in(answer) == native_id
        answer = self._call(key, "Decrypt", KeyId=native_id, CiphertextBlob=proof, EncryptionContext=CONTEXT)
        with as_documented("kms:Decrypt"):
            return _bytes_in(answer, "Plaintext") == CANARY.encode() and _key_in(answer) == native_id

    def point(self, alias: str, key: EncryptionKey) -> Receipt:
        """Let the alias name this key. API: KMS UpdateAlias."""
        answer = self._call(key, "UpdateAlias", AliasName=alias, TargetKeyId=key.ref.native_id)
        with after_sending("kms:UpdateAlias"):
            return Receipt(_request_id(answer))

    def _policy(self, key: EncryptionKey) -> str:
        answer = self._call(key, "GetKeyPolicy", KeyId=key.ref.native_id, PolicyName="default")
        with as_documented("kms:GetKeyPolicy"):
            return named(answer, "Policy")

    def _call(self, key: EncryptionKey, operation: str, **parameters: Any) -> dict[str, Any]:
        return self._session.call(key.ref.shard, "kms", operation, **parameters)


def _algorithm(key: EncryptionKey) -> str:
    found = next((algorithm for spec, algorithm in _ALGORITHMS if key.spec.startswith(spec)), "")
    if not found:
        raise unfit(key, f"costguard does not know how {key.spec} signs")
    return found


def _sealed(answer: Fields, field: str, operation: str) -> Sealed:
    with as_documented(operation):
        return Sealed(_key_in(answer), b64encode(_bytes_in(answer, field)).decode())


def _key_in(answer: Fields) -> str:
    return named(answer, "KeyId").rpartition("/")[2]


def _bytes_in(answer: Fields, field: str) -> bytes:
    found = answer.get(field)
    if not isinstance(found, bytes) or not found:
        message = f"{field} is missing"
        raise TypeError(message)
    return found


def _request_id(answer: Fields) -> str:
    return text(part(answer, "ResponseMetadata"), "RequestId")
