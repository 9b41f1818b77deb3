"""The encryption keys of Tencent Cloud: KMS, with the tags of each key and the disks that name it.

Permissions: those of `Feature.KEYS` in permissions.py, and CBS DescribeDisks.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from costguard.domain.errors import AccessDeniedError, ProviderError, RefusedError, TruncatedReadError
from costguard.domain.keys import EncryptionKey, KeyInventory, KeyManager
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.kit.core.calls import Gaps, Reads
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.kit.core.fields import Fields, as_documented, flag, text, whole
from costguard.providers.kit.kms.answers import Users, add_tags, add_users
from costguard.providers.tencent.compute.source import DISKS
from costguard.providers.tencent.core import errors
from costguard.providers.tencent.core.products import told
from costguard.providers.tencent.kms.answers import KeyUse, to_key, with_use

LISTING, REGIONS, STATUS = "kms:ListKeyDetail", "kms:GetRegions", "kms:GetServiceStatus"
TAGS = "tag:DescribeResourceTagsByResourceIds"
_IDS = 50  # of one request for tags
_USERS, _PRODUCTS = 0, 1  # Role: the list holds keys of one kind only
_EVERYTHING = {"KeyState": 0, "Origin": "ALL", "KeyUsage": "ALL"}  # KeyUsage by default leaves every pair out
_OLDEST_FIRST = {"OrderType": 1}  # a key made meanwhile is then on the last page and moves no other
_NEVER_OPENED = 0


class TencentKeys:
    """`KeySource` for one site of Tencent Cloud."""

    def __init__(self, session: Reads) -> None:
        self._session = session
        self._offered: dict[str, frozenset[str]] = {}
        self._asking = threading.Lock()

    def read(self, shard: Shard) -> KeyInventory:
        """Every key of the shard in any state: those of users, with their tags, and those products made for themselves.

        A list or tags that could not be read in full are an inventory gap; disks that could not, a gap in `details`.
        A region that GetRegions does not name has no keys, and neither has an account that GetServiceStatus says
        has never opened the service; one that is cut off for its debts has keys, and they are not read.

        Raises:
            ProviderError: no list of keys could be read.

        API: KMS GetRegions once for each account, ListKeyDetail twice, 200 a page; where there are keys, Tag
        DescribeResourceTagsByResourceIds for 50 at once, and CBS DescribeDisks, 100 a page.
        """
        with self._asking:  # shards are read side by side, and the first answer serves them all
            regions = self._regions(shard)
        if shard.region not in regions:
            return KeyInventory(shard, ())
        listed = _Listed(shard)
        failures = [err for role in (_USERS, _PRODUCTS) for err in [self._list(listed, role)] if err is not None]
        if len(failures) > 1 and not listed.keys:
            if self._never_opened(shard, failures[0]):
                return KeyInventory(shard, ())
            raise failures[0]
        gaps = Gaps(shard, errors.gap)
        for err in failures:
            gaps.add("inventory", err)
        use = KeyUse(self._tags(listed.keys, gaps), self._disks(listed.keys, gaps))
        return KeyInventory(shard, tuple(with_use(key, use) for key in listed.keys), tuple(gaps))

    def look(self, ref: ResourceRef) -> EncryptionKey | None:
        """One key as it is now; None when it is gone.

        The list is read for it, 200 keys a page: what describes a single key does not tell its rotation.

        Raises:
            ProviderError: the keys, or their tags, could not all be read.
        """
        inventory = self.read(ref.shard)
        lacking = next((gap for gap in inventory.gaps if gap.what == "inventory"), None)
        if lacking is not None:
            raise TruncatedReadError(lacking.detail, operation=LISTING, code=lacking.kind.value)
        return next((key for key in inventory.keys if key.ref == ref), None)

    def _regions(self, shard: Shard) -> frozenset[str]:
        """Where KMS is offered; an empty list is no answer, for it would mean that nobody has a key anywhere."""
        known = self._offered.get(shard.account)
        if known is None:
            answer = self._session.call(Shard(shard.cloud, shard.account), "kms", "GetRegions")
            with as_documented(REGIONS):
                listed = answer["Regions"]
                if not listed or not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
                    raise TypeError("Regions is no list of regions")
                known = self._offered[shard.account] = frozenset(listed)
        return known

    def _list(self, listed: _Listed, role: int) -> ProviderError | None:
        """The keys of one role; returns what stopped it."""
        asked = {"Role": role, **_OLDEST_FIRST, **_EVERYTHING}
        try:
            for page in self._session.pages(listed.shard, "kms", "ListKeyDetail", "KeyMetadatas", **asked):
                listed.take(page)
        except ProviderError as err:
            return err
        return None

    def _never_opened(self, shard: Shard, failure: ProviderError) -> bool:
        """Whether the list was refused as there is no such service in this account: no page has a code for that."""
        if not isinstance(failure, (AccessDeniedError, RefusedError)):
            return False
        try:
            answer = self._session.call(shard, "kms", "GetServiceStatus")
            with as_documented(STATUS):
                return not flag(answer, "ServiceEnabled") and whole(answer, "InvalidType") == _NEVER_OPENED
        except ProviderError:
            return False  # what is told is why the keys could not be listed

    def _tags(self, keys: Sequence[EncryptionKey], gaps: Gaps) -> Mapping[str, Mapping[str, str]]:
        """Tags of users' keys; without them nobody knows which a rule leaves alone, so the shard is then incomplete."""
        ids = [key.ref.native_id for key in keys if key.manager is KeyManager.CUSTOMER]
        found: dict[str, dict[str, str]] = {native_id: {} for native_id in ids}
        asked = {"ServiceType": "kms", "ResourcePrefix": "key", "ResourceRegion": gaps.shard.region}
        with gaps.part("inventory"):
            for start in range(0, len(ids), _IDS):
                batch = ids[start : start + _IDS]
                for page in self._session.pages(
                    gaps.shard, "tag", "DescribeResourceTagsByResourceIds", "Tags", ResourceIds=batch, **asked
                ):
                    with as_documented(TAGS):
                        add_tags(found, page, lambda tag: text(told(tag, "TagValue"), "TagValue"))
        return found

    def _disks(self, keys: Sequence[EncryptionKey], gaps: Gaps) -> Users:
        """The disks that name one of the keys."""
        found: Users = {key.ref.native_id: {} for key in keys}
        with gaps.part("details"):
            pages = self._session.pages(gaps.shard, "cbs", "DescribeDisks", "DiskSet") if keys else ()
            add_users(found, gaps.shard, pages, DISKS, "DiskId", lambda it: text(told(it, "KmsKeyId"), "KmsKeyId"))
        return found


class _Listed:
    """The keys of a shard found so far, each once."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self._found: dict[str, EncryptionKey] = {}

    @property
    def keys(self) -> Sequence[EncryptionKey]:
        """In the order in which they were listed."""
        return list(self._found.values())

    def take(self, page: Sequence[Fields]) -> None:
        """One page.

        Raises:
            TruncatedReadError: a key came twice: the list moved while it was read, and another may be missing.
        """
        for item in page:
            with as_documented(LISTING):
                key = to_key(self.shard, item)
            if key.ref.native_id in self._found:
                message = f"{LISTING}: {without_secrets(key.ref.native_id)} came twice: the list moved"
                raise TruncatedReadError(message, operation=LISTING, code="RepeatedKey")
            self._found[key.ref.native_id] = key
