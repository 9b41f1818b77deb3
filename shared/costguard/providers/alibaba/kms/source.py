"""The keys of Alibaba Cloud KMS: regional, listed by page number, each described apart.

Permissions: those of `Feature.KEYS` in permissions.py, and `ecs:DescribeDisks` for what keys are used by. KMS refuses
who may not list with an error, not with an empty list; ECS may answer with an empty one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from costguard.domain.errors import (
    AccessDeniedError,
    NotFoundError,
    ProviderError,
    RefusedError,
    UnavailableError,
)
from costguard.domain.keys import EncryptionKey, KeyInventory
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.products import structures_in
from costguard.providers.alibaba.core.session import AlibabaSession, moved, numbered_pages, prove_permitted
from costguard.providers.alibaba.kms.answers import RunContext, only_listed, to_key
from costguard.providers.kit.core.calls import DEADLINE, Gaps, named_gaps
from costguard.providers.kit.core.fields import as_documented, named, part, text
from costguard.providers.kit.kms.answers import Users, add_tags, add_users

_PAGE = 100
_TAGGED_TOGETHER = 50  # the most ids that ListTagResources takes
_DISKS_PAGE = 500
_LIST, _ALIASES, _DESCRIBE, _TAGS = "kms:ListKeys", "kms:ListAliases", "kms:DescribeKey", "kms:ListTagResources"
_STATUS, _REGIONS, _DISKS = "kms:DescribeAccountKmsStatus", "kms:DescribeRegions", "ecs:DescribeDisks"
_NEVER_OPENED = "NotEnabled"


class AlibabaKeys:
    """`KeySource` for one site of Alibaba Cloud."""

    def __init__(self, session: AlibabaSession) -> None:
        self._session = session

    def read(self, shard: Shard) -> KeyInventory:
        """Every key of the region, all pages, those of cloud services included.

        A key that cannot be described is there all the same, with a gap of `details` that names it: what is unread is
        unknown, and nothing is allowed of it. Disks that cannot be read are a gap of `details` too. A list that ends
        early and tags that cannot be read are gaps of `inventory`, and so are aliases, without which there are no
        keys: one of a service would pass for a customer's.

        Raises:
            ProviderError: not even the first page of keys could be read.

        API: KMS ListKeys and ListAliases, 100 a page; DescribeKey once a key; ListTagResources once for 50 keys; where
        there are keys, ECS DescribeDisks, encrypted ones only, 500 a page. Where the list is refused,
        DescribeAccountKmsStatus tells an account that never opened KMS; where nothing answers, DescribeRegions at
        home tells a region that has none.
        """
        gaps = Gaps(shard, errors.gap)
        listed: list[str] = []
        pages = 0
        try:
            for page in numbered_pages(self._session, shard, _LIST, "Keys.Key", "KeyId", _PAGE):
                listed += page
                pages += 1
        except ProviderError as err:
            if not listed:
                if self._has_no_service(shard, err):
                    return KeyInventory(shard, ())
                raise
            gaps.add("inventory", err)
        if not listed:
            return KeyInventory(shard, ())
        try:
            aliases = self._aliases(shard)
        except ProviderError as err:
            return KeyInventory(shard, (), (*gaps, errors.gap(shard, "inventory", err)))
        around = RunContext(aliases, self._tags(listed, gaps), self._users(listed, gaps))
        looks = [_Look(self._session, shard, native_id) for native_id in listed]
        keys = tuple(key for look in looks for key in [look.key(around)] if key is not None)
        if len(keys) < len(listed) and pages > 1:
            gaps.add("inventory", moved(_LIST, len(keys)))
        failures = ((shard, look.native_id, look.failure) for look in looks if look.failure)
        gaps += named_gaps("details", failures, f"{len(listed)} keys", errors.gap)
        return KeyInventory(shard, keys, tuple(gaps))

    def look(self, ref: ResourceRef) -> EncryptionKey | None:
        """One key as it is now, without what uses it; None when it is gone.

        API: KMS ListAliases in pages, ListTagResources and DescribeKey for the one key.

        Raises:
            ProviderError: a part of it could not be read.
        """
        shard, ids = ref.shard, [ref.native_id]
        gaps = Gaps(shard, errors.gap)
        around = RunContext(self._aliases(shard), self._tags(ids, gaps), {})
        closer = _Look(self._session, shard, ref.native_id)
        key = closer.key(around)
        if closer.failure is not None:
            raise closer.failure
        if gaps and key is not None:
            raise UnavailableError(gaps[0].detail, operation=_TAGS, code=gaps[0].kind.value)
        return key

    def _aliases(self, shard: Shard) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for page in numbered_pages(self._session, shard, _ALIASES, "Aliases.Alias", "AliasName", _PAGE):
            for alias, item in page.items():
                with as_documented(_ALIASES):
                    found.setdefault(named(item, "KeyId"), []).append(alias)
        return found

    def _tags(self, ids: Sequence[str], gaps: Gaps) -> Mapping[str, Mapping[str, str]]:
        """Tags by key; without them nobody knows which key is protected, so the shard is then incomplete."""
        found: dict[str, dict[str, str]] = {native_id: {} for native_id in ids}
        with gaps.part("inventory"):
            for start in range(0, len(ids), _TAGGED_TOGETHER):
                asked = {"ResourceType": "key", "ResourceId": ids[start : start + _TAGGED_TOGETHER]}
                pages = self._session.pages(gaps.shard, "kms", "ListTagResources", "TagResources.TagResource", **asked)
                for page in pages:
                    with as_documented(_TAGS):
                        add_tags(found, page)
        return found

    def _users(self, ids: Sequence[str], gaps: Gaps) -> Users:
        """The disks that name one of the keys."""
        found: Users = {native_id: {} for native_id in ids}
        asked = {"Encrypted": True, "MaxResults": _DISKS_PAGE}
        with gaps.part("details"):
            pages = self._session.pages(gaps.shard, "ecs", "DescribeDisks", "Disks.Disk", **asked)
            if not add_users(found, gaps.shard, pages, _DISKS, "DiskId", lambda disk: text(disk, "KMSKeyId")):
                prove_permitted(self._session, gaps.shard, "ecs", "DescribeDisks")
        return found

    def _has_no_service(self, shard: Shard, failure: ProviderError) -> bool:
        """Whether the list failed because there is no KMS there, in the vendor's own words; otherwise it failed."""
        try:
            if isinstance(failure, (AccessDeniedError, RefusedError)):
                answer = self._session.call(shard, "kms", "DescribeAccountKmsStatus")
                with as_documented(_STATUS):
                    return named(answer, "AccountStatus") == _NEVER_OPENED
            if isinstance(failure, UnavailableError) and failure.code != DEADLINE:
                answer = self._session.call(Shard(shard.cloud, shard.account), "kms", "DescribeRegions")
                with as_documented(_REGIONS):
                    offered = {named(each, "RegionId") for each in structures_in(answer, "Regions.Region", _REGIONS)}
                return bool(offered) and shard.region not in offered
        except ProviderError:
            return False  # what is told is why the keys could not be listed
        return False


class _Look:
    """A closer look at one key; `failure` is why there is none."""

    def __init__(self, session: AlibabaSession, shard: Shard, native_id: str) -> None:
        self._session = session
        self._shard = shard
        self.native_id = native_id
        self.failure: ProviderError | None = None

    def key(self, around: RunContext) -> EncryptionKey | None:
        """The key; None where it is gone by now."""
        try:
            answer = self._session.call(self._shard, "kms", "DescribeKey", KeyId=self.native_id)
            with as_documented(_DESCRIBE):
                metadata = part(answer, "KeyMetadata")
                if named(metadata, "KeyId") != self.native_id:
                    raise ValueError("it describes another key")
                return to_key(self._shard, metadata, around)
        except NotFoundError:
            return None
        except ProviderError as err:
            self.failure = err
        return only_listed(self._shard, self.native_id, around)
