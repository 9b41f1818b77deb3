"""Keep links that were used: each keeps once, also after somebody ended what it kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from costguard.domain.errors import VersionConflictError
from costguard.engine.ledger.codec import record_of
from costguard.ports import Put, RecordStore

_KIND = "keep_link"


@dataclass(frozen=True, slots=True)
class _Used:
    at: datetime
    decision_id: str


class KeepLinkRepository:
    """Remembers links by a digest of their token, which is itself no way to use one."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def used(self, token: str) -> bool:
        """Whether it was used before."""
        return self._store.get(_KIND, _key(token)) is not None

    def use(self, token: str, decision_id: str, now: datetime) -> bool:
        """Use it up; of several that try, one gets True."""
        try:
            self._store.transact([Put(record_of(_KIND, _key(token), _Used(now, decision_id)), 0)])
        except VersionConflictError:
            return False
        return True


def _key(token: str) -> str:
    return sha256(token.encode()).hexdigest()[:32]
