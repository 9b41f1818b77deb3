"""What KMS has for a key in another's place: making it, moving an alias, using both. Nothing deletes or disables."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error as NotBase64Error
from collections.abc import Callable, Mapping
from typing import Any

from cloudstand.aws.core.questions import RefusedQuestionError
from cloudstand.world.cloud import World
from cloudstand.world.keys import KeyManager, KeyState, KeyUsage, MultiRegion, WorldKey, successor_id
from cloudstand.world.places import Ref
from cloudstand.world.records import Refusal, WorldRefusalError

_USAGES = {"ENCRYPT_DECRYPT": KeyUsage.ENCRYPT, "SIGN_VERIFY": KeyUsage.SIGN, "GENERATE_VERIFY_MAC": KeyUsage.MAC}
_ALGORITHMS = {
    "ECC_NIST_P256": "ECDSA_SHA_256",
    "ECC_NIST_P384": "ECDSA_SHA_384",
    **dict.fromkeys(("RSA_2048", "RSA_3072", "RSA_4096"), "RSASSA_PSS_SHA_256"),
}
_ALIAS = "alias/"
_MOST_TAGS = 50

Request = Mapping[str, Any]


def usual_policy(account: str, partition: str) -> str:
    """The key policy of who names none: the account decides by IAM."""
    statement = {
        "Sid": "Enable IAM User Permissions",
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:{partition}:iam::{account}:root"},
        "Action": "kms:*",
        "Resource": "*",
    }
    return json.dumps({"Version": "2012-10-17", "Id": "key-default-1", "Statement": [statement]})


class KeySuccessors:
    """Answers about keys that were looked up already; `said` are the parameters of one request."""

    def __init__(self, world: World, arn_of: Callable[[Ref], str]) -> None:
        self._world = world
        self._arn_of = arn_of

    def get_key_policy(self, key: WorldKey) -> dict[str, Any]:
        """GetKeyPolicy."""
        policy = key.policy or usual_policy(key.ref.account, key.ref.cloud)
        return {"Policy": policy, "PolicyName": "default"}

    def create_key(self, home: Ref, said: Request) -> dict[str, Any]:
        """CreateKey in the account and region of `home`: as AWS knows no token, asked twice it makes two."""
        tags = {tag["TagKey"]: tag["TagValue"] for tag in said.get("Tags", ())}
        if len(tags) > _MOST_TAGS or any(name.lower().startswith("aws:") for name in tags):
            raise RefusedQuestionError("TagException", "The tags are not valid.")
        if said.get("Origin", "AWS_KMS") != "AWS_KMS" or said.get("MultiRegion"):
            raise RefusedQuestionError("UnsupportedOperationException", "The sandbox makes no such keys.")
        try:
            json.loads(said.get("Policy", "{}"))
        except ValueError as err:
            raise RefusedQuestionError("MalformedPolicyDocumentException", "The policy is not JSON.") from err
        keys, now = self._world.keys, self._world.now
        spec, usage = said.get("KeySpec", "SYMMETRIC_DEFAULT"), _USAGES[said.get("KeyUsage", "ENCRYPT_DECRYPT")]
        likeness = WorldKey(home, spec, now)
        made = WorldKey(
            ref=home.sibling("key", successor_id(likeness, len(keys.of(home.shard)))),
            spec=spec,
            created_at=now,
            usage=usage,
            tags=tags,
            policy=said.get("Policy", ""),
        )
        keys.add(made)
        keys.history.append((now, "api", "made", made.ref))
        shown = {"KeyId": made.ref.native_id, "Arn": self._arn_of(made.ref), "KeySpec": spec, "KeyState": "Enabled"}
        return {"KeyMetadata": {**shown, "CreationDate": now.timestamp()}}

    def update_alias(self, taker: WorldKey, said: Request) -> dict[str, Any]:
        """UpdateAlias."""
        alias = str(said.get("AliasName", ""))
        if not alias.startswith(_ALIAS) or alias.startswith("alias/aws/"):
            raise RefusedQuestionError("ValidationException", "The alias is not valid.")
        _require_enabled(taker, self._arn_of(taker.ref))
        try:
            giver = self._world.keys.named(taker.ref.shard, alias.removeprefix(_ALIAS))
            if (giver.spec, giver.usage) != (taker.spec, taker.usage):
                raise RefusedQuestionError("ValidationException", "Both keys must be of one type and usage.")
            self._world.keys.move_alias(alias.removeprefix(_ALIAS), taker.ref, self._world.now, "api")
        except WorldRefusalError as err:
            raise _refused(err, alias) from err
        return {}

    def encrypt(self, key: WorldKey, said: Request) -> dict[str, Any]:
        """Encrypt; what stands in the context is needed again to decrypt."""
        self._require_usage(key, KeyUsage.ENCRYPT)
        sealed = self._seal(key, _context(said) + _bytes(said, "Plaintext"))
        return {
            "CiphertextBlob": b64encode(sealed).decode(),
            "KeyId": self._arn_of(key.ref),
            "EncryptionAlgorithm": "SYMMETRIC_DEFAULT",
        }

    def decrypt(self, key: WorldKey, said: Request) -> dict[str, Any]:
        """Decrypt with a key that is named, which must be the one that encrypted."""
        self._require_usage(key, KeyUsage.ENCRYPT)
        try:
            maker, plain = self._world.keys.open(key.ref.shard, _bytes(said, "CiphertextBlob"))
        except WorldRefusalError as err:
            code = "InvalidCiphertextException" if err.refusal is Refusal.NOT_FOUND else "KMSInvalidStateException"
            raise RefusedQuestionError(code, str(err)) from err
        if maker.ref != key.ref:
            raise RefusedQuestionError("IncorrectKeyException", "The key ID in the request does not identify a CMK.")
        context = _context(said)
        if not plain.startswith(context):
            raise RefusedQuestionError("InvalidCiphertextException", "The encryption context is another.")
        return {"Plaintext": b64encode(plain[len(context) :]).decode(), "KeyId": self._arn_of(key.ref)}

    def sign(self, key: WorldKey, said: Request) -> dict[str, Any]:
        """Sign a message."""
        algorithm = self._algorithm(key, said)
        signature = b64encode(self._seal(key, _bytes(said, "Message"))).decode()
        return {"Signature": signature, "KeyId": self._arn_of(key.ref), "SigningAlgorithm": algorithm}

    def verify(self, key: WorldKey, said: Request) -> dict[str, Any]:
        """Verify a signature: one of another key is an error, not False."""
        algorithm = self._algorithm(key, said)
        if _bytes(said, "Signature") != self._seal(key, _bytes(said, "Message")):
            raise RefusedQuestionError("KMSInvalidSignatureException", "The signature is not valid.")
        return {"SignatureValid": True, "KeyId": self._arn_of(key.ref), "SigningAlgorithm": algorithm}

    def _seal(self, key: WorldKey, plain: bytes) -> bytes:
        try:
            return self._world.keys.seal(key.ref, plain)
        except WorldRefusalError as err:
            raise RefusedQuestionError("KMSInvalidStateException", str(err)) from err

    def _require_usage(self, key: WorldKey, usage: KeyUsage) -> None:
        _require_enabled(key, self._arn_of(key.ref))
        if key.usage is not usage:
            raise RefusedQuestionError("InvalidKeyUsageException", f"{self._arn_of(key.ref)} is not for that.")

    def _algorithm(self, key: WorldKey, said: Request) -> str:
        self._require_usage(key, KeyUsage.SIGN)
        asked = str(said.get("SigningAlgorithm", ""))
        if _ALGORITHMS.get(key.spec) != asked:
            raise RefusedQuestionError("InvalidKeyUsageException", f"{key.spec} does not sign by {asked}.")
        return asked


def _require_enabled(key: WorldKey, arn: str) -> None:
    if key.state is KeyState.DISABLED:
        raise RefusedQuestionError("DisabledException", f"{arn} is disabled.")
    if key.state is not KeyState.ENABLED:
        raise RefusedQuestionError("KMSInvalidStateException", f"{arn} is {key.state.value}.")
    if key.manager is KeyManager.CLOUD or key.multi_region is MultiRegion.REPLICA:
        raise RefusedQuestionError("UnsupportedOperationException", f"{arn} is not for this.")


def _refused(err: WorldRefusalError, alias: str) -> RefusedQuestionError:
    if err.refusal is Refusal.NOT_FOUND:
        return RefusedQuestionError("NotFoundException", f"Alias {alias} is not found.")
    return RefusedQuestionError("KMSInvalidStateException", str(err))


def _context(said: Request) -> bytes:
    return json.dumps(said.get("EncryptionContext", {}), sort_keys=True).encode()


def _bytes(said: Request, name: str) -> bytes:
    try:
        found = b64decode(str(said.get(name, "")), validate=True)
    except NotBase64Error as err:
        raise RefusedQuestionError("SerializationException", f"{name} is not base64.") from err
    if not found:
        raise RefusedQuestionError("ValidationException", f"{name} is missing.")
    return found
