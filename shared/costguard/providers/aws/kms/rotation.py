"""What Costguard changes about keys of AWS: they are set to rotate, rotated, or given a successor."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from costguard.domain.actions import Receipt
from costguard.domain.errors import RefusedError
from costguard.domain.keys import EncryptionKey, KeyUsage
from costguard.providers.aws.core.session import HOME_REGIONS, AwsSession
from costguard.providers.aws.kms.answers import MOST_ON_DEMAND
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named, part
from costguard.providers.kit.kms.rotation import CANARY, CONTEXT, KeyRotator, KeySuccessor, Sealed, unfit

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


class AwsKeySuccessor(KeySuccessor[AwsSession]):
    """For one partition of AWS, and the `AliasWire` of its own canaries."""

    clouds = HOME_REGIONS
    reserved = _RESERVED

    def _create(self, key: EncryptionKey, tags: Mapping[str, str]) -> Receipt:
        """As `create`. Grants are not copied.

        Refused by AWS is a policy under which this role could not set another: its safety check against locking
        oneself out is left on.

        API: KMS GetKeyPolicy, then CreateKey, which knows no token against a second one.
        """
        policy = self._policy_of(key)
        return self._session.change(
            key.ref.shard,
            "kms",
            "CreateKey",
            lambda answer: named(part(answer, "KeyMetadata"), "KeyId"),
            Description=f"Takes the place of {key.ref.native_id}",
            KeySpec=key.spec,
            KeyUsage=_USAGES[key.usage],
            Origin="AWS_KMS",
            MultiRegion=False,
            Policy=policy,
            Tags=[{"TagKey": name, "TagValue": value} for name, value in sorted(tags.items())],
        )

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
        return self._session.change(key.ref.shard, "kms", "UpdateAlias", AliasName=alias, TargetKeyId=key.ref.native_id)


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
