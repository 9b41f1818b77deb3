"""The keys of AWS KMS, with what rotates them and what they encrypt.

Permissions: those of `Feature.KEYS` in permissions.py, by IAM and by the policy of each key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from costguard.domain.errors import DeniedByOrganisationError, NotFoundError, ProviderError, RefusedError
from costguard.domain.keys import EncryptionKey, KeyInventory, KeyManager
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.aws.core import errors
from costguard.providers.aws.core.session import VOLUMES, AwsSession, require_open
from costguard.providers.aws.kms.answers import KeyAnswers, Rotations, asks_for, facts_of, key_named, state_of, to_key
from costguard.providers.kit.core.calls import Gaps, by_token, named_gaps
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named, part, parts, text
from costguard.providers.kit.kms.answers import Users, add_users

CALLS_A_KEY = 4
"""At most: DescribeKey, GetKeyRotationStatus, ListKeyRotations and ListResourceTags, one page each.

A key with imported material takes three, one that never rotates two, one that AWS manages a single one.
"""

_KEYS_PAGE, _ALIASES_PAGE, _ROTATIONS_PAGE, _TAGS_PAGE, _VOLUMES_PAGE = 1000, 100, 1000, 50, 500  # the most each gives
_KEYS_IN_FLIGHT = 8  # half of a client's connections
_NOT_TOLD = ("UnsupportedOperationException", "KMSInvalidStateException")

T = TypeVar("T")


class AwsKeys:
    """`KeySource` for one partition of AWS."""

    def __init__(self, session: AwsSession) -> None:
        self._session = session

    def read(self, shard: Shard) -> KeyInventory:
        """Every key of the shard, those that AWS manages included.

        A key of which something could not be read (its own policy may deny it) is there all the same, with a gap of
        `details` that names it: what is unread is unknown, and nothing is allowed of it. The gap is one of `inventory`
        where the list of keys or of aliases ended early.

        API: KMS ListKeys, ListAliases and EC2 DescribeVolumes in pages, once for the shard; for each key at most
        `CALLS_A_KEY`.

        Raises:
            ClosedRegionError: the organisation denies it, and EC2 as well.
            ProviderError: not even the first page of keys could be read.
        """
        gaps = Gaps(shard, errors.gap)
        try:
            ids = self._listed(gaps)
        except DeniedByOrganisationError as err:
            require_open(self._session, shard, err, (VOLUMES,))
            raise
        if not ids:
            return KeyInventory(shard, (), tuple(gaps))
        by_alias = self._aliases(gaps)
        used_by = self._used_by(ids, by_alias, gaps)
        names: defaultdict[str, list[str]] = defaultdict(list)
        for alias, native_id in sorted(by_alias.items()):
            names[native_id].append(alias.removeprefix("alias/"))
        looks = [_Look(self._session, shard, native_id) for native_id in ids]
        with ThreadPoolExecutor(min(_KEYS_IN_FLIGHT, len(looks)), thread_name_prefix="keys") as pool:
            found = list(pool.map(lambda look: look.key(names[look.native_id], used_by[look.native_id]), looks))
        failures = ((shard, look.native_id, err) for look in looks for err in look.failures)
        gaps += named_gaps("details", failures, f"{len(looks)} keys", errors.gap)
        return KeyInventory(shard, tuple(key for key in found if key is not None), tuple(gaps))

    def look(self, ref: ResourceRef) -> EncryptionKey | None:
        """One key as it is now, without what uses it; None when it is gone.

        API: KMS ListAliases for the one key, and at most `CALLS_A_KEY` more.

        Raises:
            ProviderError: a part of it could not be read.
        """
        closer = _Look(self._session, ref.shard, ref.native_id)
        names: list[str] = []
        try:
            for page in _pages(
                self._session, ref.shard, "ListAliases", "Aliases", Limit=_ALIASES_PAGE, KeyId=ref.native_id
            ):
                with as_documented("kms:ListAliases"):
                    names += [named(item, "AliasName").removeprefix("alias/") for item in page]
        except NotFoundError:
            return None
        key = closer.key(sorted(names), ())
        if closer.failures:
            raise closer.failures[0]
        return key

    def _listed(self, gaps: Gaps) -> Sequence[str]:
        found: dict[str, None] = {}  # a page that shifts while it is read repeats some
        read = False
        try:
            for page in _pages(self._session, gaps.shard, "ListKeys", "Keys", Limit=_KEYS_PAGE):
                with as_documented("kms:ListKeys"):
                    found.update(dict.fromkeys(named(item, "KeyId") for item in page))
                read = True
        except ProviderError as err:
            if not read:
                raise
            gaps.add("inventory", err)
        return list(found)

    def _aliases(self, gaps: Gaps) -> Mapping[str, str]:
        """The id of the key behind each alias; an alias of AWS may have no key yet."""
        found: dict[str, str] = {}
        with gaps.part("inventory"):  # policy may leave a key out by its alias
            for page in _pages(self._session, gaps.shard, "ListAliases", "Aliases", Limit=_ALIASES_PAGE):
                with as_documented("kms:ListAliases"):
                    found.update({named(item, "AliasName"): text(item, "TargetKeyId") for item in page})
        return {alias: native_id for alias, native_id in found.items() if native_id}

    def _used_by(self, ids: Sequence[str], by_alias: Mapping[str, str], gaps: Gaps) -> Users:
        found: Users = {native_id: {} for native_id in ids}
        encrypted = [{"Name": "encrypted", "Values": ["true"]}]
        with gaps.part("details"):
            pages = self._session.pages(
                gaps.shard, "ec2", "DescribeVolumes", "Volumes", Filters=encrypted, MaxResults=_VOLUMES_PAGE
            )
            add_users(
                found,
                gaps.shard,
                pages,
                "ec2:DescribeVolumes",
                "VolumeId",
                lambda disk: key_named(text(disk, "KmsKeyId"), gaps.shard, by_alias),
            )
        return found


class _Look:
    """A closer look at one key; what could not be read is in `failures`."""

    def __init__(self, session: AwsSession, shard: Shard, native_id: str) -> None:
        self._session = session
        self._shard = shard
        self.native_id = native_id
        self.failures: list[ProviderError] = []

    def key(self, aliases: Sequence[str], used_by: Iterable[ResourceRef]) -> EncryptionKey | None:
        """The key; None when it is gone by now."""
        ref = ResourceRef(self._shard.cloud, self._shard.account, self._shard.region, "key", self.native_id)
        try:
            answers = self._answers()
            with as_documented("kms:DescribeKey"):
                return to_key(ref, answers, aliases, used_by)
        except NotFoundError:
            return None
        except ProviderError as err:
            self.failures.append(err)
        return to_key(ref, KeyAnswers(), aliases, used_by)

    def _answers(self) -> KeyAnswers:
        metadata = self._describe()
        with as_documented("kms:DescribeKey"):
            facts, (has_status, has_rotations) = facts_of(metadata), asks_for(metadata)
        if facts.manager is KeyManager.CLOUD:
            return KeyAnswers(metadata)
        status = self._read(self._status) if has_status else None
        rotations = self._read(self._rotations) if has_rotations else None
        tags = self._read(self._tags)
        return KeyAnswers(metadata, status, rotations, tags or {}, unread=bool(self.failures))

    def _read(self, ask: Callable[[], T]) -> T | None:
        """The answer; None where the state or kind of the key has none, or it could not be read.

        Raises:
            NotFoundError: the key is gone.
        """
        try:
            return ask()
        except NotFoundError:
            raise
        except RefusedError as err:
            if err.code not in _NOT_TOLD:
                self.failures.append(err)
        except ProviderError as err:
            self.failures.append(err)
        return None

    def _describe(self) -> Fields:
        answer = self._session.call(self._shard, "kms", "DescribeKey", KeyId=self.native_id)
        with as_documented("kms:DescribeKey"):
            metadata = part(answer, "KeyMetadata")
            if named(metadata, "KeyId") != self.native_id:
                raise ValueError("it describes another key")
            state_of(metadata)
        return metadata

    def _status(self) -> Fields:
        answer = self._session.call(self._shard, "kms", "GetKeyRotationStatus", KeyId=self.native_id)
        with as_documented("kms:GetKeyRotationStatus"):
            if "KeyRotationEnabled" not in answer:
                raise ValueError("KeyRotationEnabled is missing")
        return answer

    def _rotations(self) -> Rotations:
        entries: list[Fields] = []
        for page in self._key_pages(
            "ListKeyRotations", "Rotations", _ROTATIONS_PAGE, IncludeKeyMaterial="ALL_KEY_MATERIAL"
        ):
            entries += page
        with as_documented("kms:ListKeyRotations"):
            waits = any(text(entry, "KeyMaterialState") == "PENDING_ROTATION" for entry in entries)
        return Rotations(entries, waits)

    def _tags(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for page in self._key_pages("ListResourceTags", "Tags", _TAGS_PAGE):
            with as_documented("kms:ListResourceTags"):
                found.update({named(tag, "TagKey"): text(tag, "TagValue") for tag in page})
        return found

    def _key_pages(self, operation: str, result_key: str, most: int, **more: Any) -> Iterator[list[Fields]]:
        return _pages(self._session, self._shard, operation, result_key, KeyId=self.native_id, Limit=most, **more)


def _pages(
    session: AwsSession, shard: Shard, operation: str, result_key: str, **parameters: Any
) -> Iterator[list[Fields]]:
    """KMS's own kind of pages: a marker that counts only while `Truncated`."""
    api = f"kms:{operation}"

    def ask(page: dict[str, str]) -> dict[str, Any]:
        more = {"Marker": page["NextToken"]} if page else {}
        return session.call(shard, "kms", operation, **parameters, **more)

    def items_in(answer: dict[str, Any]) -> list[Fields]:
        with as_documented(api):
            if result_key not in answer:
                message = f"{result_key} is missing"
                raise ValueError(message)
            return parts(answer, result_key)

    return by_token(api, ask, items_in, lambda answer: named(answer, "NextMarker") if flag(answer, "Truncated") else "")
