"""When each account was first read whole: a new one is only observed for a while, where the policy says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from costguard.domain.errors import VersionConflictError
from costguard.engine.ledger.codec import record_of, value_of
from costguard.ports import Put, RecordStore

_KIND = "account"  # key: cloud:account
_TOGETHER = 100  # the most in one transaction: of 30,000 accounts one after another would take four minutes


@dataclass(frozen=True, slots=True)
class KnownAccount:
    """One account, and when a run first read all of a shard of it."""

    account: str
    first_seen: datetime


class AccountRepository:
    """One record for each account that any guard ever read. Only losing the ledger makes an account new again."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def first_seen(self) -> Mapping[str, datetime]:
        """By `cloud:account` since when it is known."""
        known = (value_of(KnownAccount, record) for record in self._store.query(_KIND))
        return {each.account: each.first_seen for each in known}

    def known_since(self, account: str) -> datetime | None:
        """The same of one account; None where it is not known."""
        record = self._store.get(_KIND, account)
        return None if record is None else value_of(KnownAccount, record).first_seen

    def note(self, accounts: Iterable[str], known: Mapping[str, datetime], now: datetime) -> None:
        """Remember those that are not `known` yet; of two runs that see an account first, either is right."""
        new = [
            Put(record_of(_KIND, account, KnownAccount(account, now)), 0)
            for account in sorted(set(accounts) - known.keys())
        ]
        for at in range(0, len(new), _TOGETHER):
            together = new[at : at + _TOGETHER]
            try:
                self._store.transact(together)
            except VersionConflictError:
                self._one_by_one(together)

    def _one_by_one(self, puts: Iterable[Put]) -> None:
        for put in puts:
            try:
                self._store.transact((put,))
            except VersionConflictError:
                continue
