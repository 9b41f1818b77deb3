"""What a ledger is called: made once, at random, so that two deployments of one name are told apart."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from secrets import token_hex

from costguard.domain.errors import VersionConflictError
from costguard.engine.ledger.codec import record_of, value_of
from costguard.ports import Put, RecordStore

_KIND, _KEY = "identity", "ledger"
_BYTES = 4


@dataclass(frozen=True, slots=True)
class _Called:
    ledger: str
    at: datetime


class IdentityRepository:
    """One record, never changed. A new ledger has another: to the clouds' audit logs it is another deployment."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def known(self) -> str:
        """8 hexadecimal digits; empty where no run ever needed them."""
        record = self._store.get(_KIND, _KEY)
        return "" if record is None else value_of(_Called, record).ledger

    def made(self, now: datetime) -> str:
        """The same, made if need be; of several that try, one wins."""
        known = self.known()
        if known:
            return known
        fresh = token_hex(_BYTES)
        try:
            self._store.transact([Put(record_of(_KIND, _KEY, _Called(fresh, now)), 0)])
        except VersionConflictError:
            return self.known()
        return fresh
