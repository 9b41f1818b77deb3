"""KMS over the keys of a world: what moto has of it rotates everything, and knows no period, date or cap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from cloudstand.aws.core.questions import RefusedQuestionError
from cloudstand.aws.kms.successors import KeySuccessors
from cloudstand.world.cloud import World
from cloudstand.world.keys import KeyManager, KeyOrigin, KeyState, KeyUsage, MultiRegion, WorldKey
from cloudstand.world.places import Place, Ref
from cloudstand.world.records import Operation
from cloudstand.world.rotation import MOST_ON_DEMAND, has_versions

_PARTITIONS = ("aws", "aws-cn", "aws-us-gov")
_MOST = 1_000
_DEFAULT_DAYS = 365
_SHORTEST_DAYS, _LONGEST_DAYS = 90, 2560
_STATES = {
    KeyState.ENABLED: "Enabled",
    KeyState.DISABLED: "Disabled",
    KeyState.PENDING_DELETION: "PendingDeletion",
    KeyState.PENDING_IMPORT: "PendingImport",
    KeyState.UNAVAILABLE: "Unavailable",
    KeyState.UNKNOWN: "Creating",
}
_ORIGINS = {
    KeyOrigin.CLOUD: "AWS_KMS",
    KeyOrigin.IMPORTED: "EXTERNAL",
    KeyOrigin.CUSTOM_STORE: "AWS_CLOUDHSM",
    KeyOrigin.UNKNOWN: "AWS_KMS",
}
_USAGES = {
    KeyUsage.ENCRYPT: "ENCRYPT_DECRYPT",
    KeyUsage.SIGN: "SIGN_VERIFY",
    KeyUsage.MAC: "GENERATE_VERIFY_MAC",
    KeyUsage.AGREE: "KEY_AGREEMENT",
    KeyUsage.UNKNOWN: "ENCRYPT_DECRYPT",
}
_UNSUPPORTED, _INVALID_STATE = "UnsupportedOperationException", "KMSInvalidStateException"

Answer = Callable[["_Asked"], dict[str, Any]]


class _Asked:
    """One request: who asks where, and for what."""

    def __init__(self, account: str, region: str, request: Mapping[str, Any]) -> None:
        self.account, self.region, self.request = account, region, request


class Kms:
    """KMS of every account and region.

    `page_size` caps a page however many are asked for. `policies_deny` are the ids of keys whose own policy keeps the
    program's role out, `under_way` those that rotate on demand just now, `material_waits` those for which their owner
    has imported new material.
    """

    service = "kms"

    def __init__(self, world: World) -> None:
        self._world = world
        self._successors = successors = KeySuccessors(world, arn_of)
        self.page_size = _MOST
        self.policies_deny: set[str] = set()
        self.under_way: set[str] = set()
        self.material_waits: set[str] = set()
        self._answers: Mapping[str, tuple[Operation, Answer]] = {
            "ListKeys": (Operation.KEYS, self._list_keys),
            "ListAliases": (Operation.KEYS, self._list_aliases),
            "DescribeKey": (Operation.KEYS, self._describe_key),
            "GetKeyRotationStatus": (Operation.KEYS, self._get_key_rotation_status),
            "ListKeyRotations": (Operation.KEYS, self._list_key_rotations),
            "ListResourceTags": (Operation.KEYS, self._list_resource_tags),
            "EnableKeyRotation": (Operation.ROTATE, self._enable_key_rotation),
            "RotateKeyOnDemand": (Operation.ROTATE, self._rotate_key_on_demand),
            "GetKeyPolicy": (Operation.SUCCEED, lambda asked: successors.get_key_policy(self._key(asked))),
            "CreateKey": (Operation.SUCCEED, lambda asked: successors.create_key(_home(asked), asked.request)),
            "UpdateAlias": (Operation.SUCCEED, self._update_alias),
            **{
                name: (Operation.SUCCEED, self._used(answer))
                for name, answer in (
                    ("Encrypt", successors.encrypt),
                    ("Decrypt", successors.decrypt),
                    ("Sign", successors.sign),
                    ("Verify", successors.verify),
                )
            },
        }

    def answer(self, action: str, account: str, region: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one request of `account`.

        Raises:
            RefusedQuestionError: as KMS would.
        """
        if action not in self._answers:
            raise RefusedQuestionError("UnknownOperationException", f"The sandbox has no {action}.")
        operation, answer = self._answers[action]
        asked = _Asked(account, region, request)
        said = str(request.get("KeyId", ""))
        if not self._world.may("aws", account, operation) or said.rpartition("/")[2] in self.policies_deny:
            caller = f"arn:aws:sts::{account}:assumed-role/costguard/costguard"
            about = f"arn:aws:kms:{region}:{account}:key/{said or '*'}"
            message = f"User: {caller} is not authorized to perform: kms:{action} on resource: {about}"
            raise RefusedQuestionError("AccessDeniedException", message)
        return answer(asked)

    def _there(self, asked: _Asked) -> list[WorldKey]:
        shards = (Place(partition, asked.account, asked.region) for partition in _PARTITIONS)
        return [key for shard in shards for key in self._world.keys.of(shard)]

    def _key(self, asked: _Asked, *, by_alias: bool = False) -> WorldKey:
        said = str(asked.request.get("KeyId", ""))
        for key in self._there(asked):
            names = {key.ref.native_id, arn_of(key.ref)}
            if by_alias:
                names |= {f"alias/{alias}" for alias in key.aliases}
            if said in names:
                return key
        message = f"Key '{said}' does not exist"
        raise RefusedQuestionError("NotFoundException", message)

    def _source(self, key: WorldKey) -> WorldKey:
        """The key whose material and rotation it has: of a replica its primary's."""
        return key if key.primary is None else self._world.keys.get(key.primary)

    def _list_keys(self, asked: _Asked) -> dict[str, Any]:
        keys = [{"KeyId": key.ref.native_id, "KeyArn": arn_of(key.ref)} for key in self._there(asked)]
        return self._paged(asked, "Keys", keys, most=1000, default=100)

    def _list_aliases(self, asked: _Asked) -> dict[str, Any]:
        aliases = [
            {
                "AliasName": f"alias/{alias}",
                "AliasArn": f"arn:{key.ref.cloud}:kms:{key.ref.region}:{key.ref.account}:alias/{alias}",
                "TargetKeyId": key.ref.native_id,
                "CreationDate": key.created_at.timestamp(),
            }
            for key in ([self._key(asked)] if asked.request.get("KeyId") else self._there(asked))
            for alias in key.aliases
        ]
        return self._paged(asked, "Aliases", aliases, most=100, default=50)

    def _describe_key(self, asked: _Asked) -> dict[str, Any]:
        key = self._key(asked, by_alias=True)
        shown: dict[str, Any] = {
            "AWSAccountId": key.ref.account,
            "KeyId": key.ref.native_id,
            "Arn": arn_of(key.ref),
            "CreationDate": key.created_at.timestamp(),
            "Enabled": key.state is KeyState.ENABLED,
            "Description": "",
            "KeyUsage": _USAGES[key.usage],
            "KeyState": _STATES[key.state],
            "Origin": _ORIGINS[key.origin],
            "KeyManager": "AWS" if key.manager is KeyManager.CLOUD else "CUSTOMER",
            "KeySpec": key.spec,
            "CustomerMasterKeySpec": key.spec,
            "MultiRegion": key.multi_region is not MultiRegion.NONE,
        }
        if key.deletes_at is not None:
            shown["DeletionDate"] = key.deletes_at.timestamp()
        if has_versions(key):
            shown["CurrentKeyMaterialId"] = _material(self._source(key), len(self._source(key).rotations))
        if key.multi_region is not MultiRegion.NONE:
            shown["MultiRegionConfiguration"] = self._related(key)
        return {"KeyMetadata": shown}

    @staticmethod
    def _related(key: WorldKey) -> dict[str, Any]:
        primary = key.ref if key.primary is None else key.primary
        replicas = [] if key.primary is None else [key.ref]  # of others in other regions the world keeps no list
        return {
            "MultiRegionKeyType": key.multi_region.value.upper(),
            "PrimaryKey": {"Arn": arn_of(primary), "Region": primary.region},
            "ReplicaKeys": [{"Arn": arn_of(each), "Region": each.region} for each in replicas],
        }

    def _get_key_rotation_status(self, asked: _Asked) -> dict[str, Any]:
        key = self._key(asked)
        self._require_rotations(key)
        shown: dict[str, Any] = {"KeyId": arn_of(key.ref), "KeyRotationEnabled": False}
        source = self._source(key)
        if key.ref.native_id in self.under_way:
            shown["OnDemandRotationStartDate"] = self._world.now.timestamp()
        if key.manager is KeyManager.CLOUD:
            return {**shown, "KeyRotationEnabled": True, "RotationPeriodInDays": _DEFAULT_DAYS}
        if source.next_at is None or key.state is KeyState.PENDING_DELETION:
            return shown
        return {
            **shown,
            "KeyRotationEnabled": True,
            "RotationPeriodInDays": source.period_days,
            "NextRotationDate": source.next_at.timestamp(),
        }

    def _list_key_rotations(self, asked: _Asked) -> dict[str, Any]:
        key = self._key(asked)
        self._require_rotations(key)
        which = asked.request.get("IncludeKeyMaterial", "ROTATIONS_ONLY")
        if which not in {"ROTATIONS_ONLY", "ALL_KEY_MATERIAL"}:
            raise _invalid("IncludeKeyMaterial", which)
        return self._paged(asked, "Rotations", list(self._materials(key, which)), most=1000, default=100)

    def _materials(self, key: WorldKey, which: str) -> Iterator[dict[str, Any]]:
        source, told = self._source(key), {"KeyId": arn_of(key.ref)}
        current = len(source.rotations)
        if which == "ALL_KEY_MATERIAL":
            state = "CURRENT" if current == 0 else "NON_CURRENT"
            yield {**told, "KeyMaterialId": _material(source, 0), "KeyMaterialState": state}
        for number, at in enumerate(source.rotations, start=1):
            yield {
                **told,
                "KeyMaterialId": _material(source, number),
                "KeyMaterialState": "CURRENT" if number == current else "NON_CURRENT",
                "RotationDate": at.timestamp(),
                "RotationType": "ON_DEMAND" if at in source.on_demand else "AUTOMATIC",
            }
        if which == "ALL_KEY_MATERIAL" and key.ref.native_id in self.material_waits:
            waiting = _material(source, current + 1)
            yield {**told, "KeyMaterialId": waiting, "KeyMaterialState": "PENDING_ROTATION", "ImportState": "IMPORTED"}

    def _list_resource_tags(self, asked: _Asked) -> dict[str, Any]:
        tags = [{"TagKey": name, "TagValue": value} for name, value in self._key(asked).tags.items()]
        return self._paged(asked, "Tags", tags, most=50, default=50)

    def _enable_key_rotation(self, asked: _Asked) -> dict[str, Any]:
        key, days = self._key(asked), asked.request.get("RotationPeriodInDays", _DEFAULT_DAYS)
        if isinstance(days, bool) or not isinstance(days, int) or not _SHORTEST_DAYS <= days <= _LONGEST_DAYS:
            raise _invalid("RotationPeriodInDays", days)
        self._require_rotatable(key)
        if key.origin is not KeyOrigin.CLOUD:
            raise _unsupported(key)
        self._world.keys.set_period(key.ref, days, self._world.now, "api")
        return {}

    def _rotate_key_on_demand(self, asked: _Asked) -> dict[str, Any]:
        key = self._key(asked)
        self._require_rotatable(key)
        native_id = key.ref.native_id
        if key.origin is KeyOrigin.IMPORTED and native_id not in self.material_waits:
            raise RefusedQuestionError(_INVALID_STATE, f"{arn_of(key.ref)} has no key material pending rotation.")
        if native_id in self.under_way:
            raise RefusedQuestionError("ConflictException", f"A rotation of {arn_of(key.ref)} is in progress.")
        if len(key.on_demand) >= MOST_ON_DEMAND:
            message = f"{arn_of(key.ref)} has reached its limit of on-demand rotations."
            raise RefusedQuestionError("LimitExceededException", message)
        self._world.keys.rotate(key.ref, self._world.now, "api")
        self.material_waits.discard(native_id)
        return {"KeyId": arn_of(key.ref)}

    def _update_alias(self, asked: _Asked) -> dict[str, Any]:
        named = _Asked(asked.account, asked.region, {"KeyId": asked.request.get("TargetKeyId", "")})
        return self._successors.update_alias(self._key(named), asked.request)

    def _used(self, answer: Callable[[WorldKey, Mapping[str, Any]], dict[str, Any]]) -> Answer:
        return lambda asked: answer(self._key(asked, by_alias=True), asked.request)

    def _require_rotations(self, key: WorldKey) -> None:
        if not has_versions(key):
            raise _unsupported(key)
        if key.state in (KeyState.PENDING_IMPORT, KeyState.UNAVAILABLE, KeyState.UNKNOWN):
            raise RefusedQuestionError(_INVALID_STATE, f"{arn_of(key.ref)} is {_STATES[key.state]}.")

    def _require_rotatable(self, key: WorldKey) -> None:
        if not has_versions(key) or key.manager is KeyManager.CLOUD or key.multi_region is MultiRegion.REPLICA:
            raise _unsupported(key)
        if key.state is KeyState.DISABLED:
            raise RefusedQuestionError("DisabledException", f"{arn_of(key.ref)} is disabled.")
        if key.state is not KeyState.ENABLED:
            raise RefusedQuestionError(_INVALID_STATE, f"{arn_of(key.ref)} is {_STATES[key.state]}.")

    def _paged(
        self, asked: _Asked, result_key: str, items: Sequence[dict[str, Any]], *, most: int, default: int
    ) -> dict[str, Any]:
        limit, marker = asked.request.get("Limit", default), asked.request.get("Marker", "0")
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= most:
            raise _invalid("Limit", limit)
        if not str(marker).isdigit():
            raise RefusedQuestionError("InvalidMarkerException", "The marker is not valid.")
        first, size = int(marker), min(limit, self.page_size)
        answer: dict[str, Any] = {result_key: items[first : first + size], "Truncated": first + size < len(items)}
        return {**answer, "NextMarker": str(first + size)} if answer["Truncated"] else answer


def _home(asked: _Asked) -> Ref:
    """Where a new key is made."""
    partition = "aws-cn" if asked.region.startswith("cn-") else "aws"
    partition = "aws-us-gov" if asked.region.startswith("us-gov-") else partition
    return Ref(partition, asked.account, asked.region, "key", "new")


def arn_of(ref: Ref) -> str:
    """The ARN of a key; our clouds are named as AWS's partitions."""
    return f"arn:{ref.cloud}:kms:{ref.region}:{ref.account}:key/{ref.native_id}"


def _material(key: WorldKey, number: int) -> str:
    return blake2b(f"{key.ref}/{number}".encode(), digest_size=32).hexdigest()


def _unsupported(key: WorldKey) -> RefusedQuestionError:
    message = f"{arn_of(key.ref)} is of a kind for which this operation is not supported."
    return RefusedQuestionError(_UNSUPPORTED, message)


def _invalid(name: str, value: object) -> RefusedQuestionError:
    return RefusedQuestionError("ValidationException", f"1 validation error detected: Value '{value}' at '{name}'")
