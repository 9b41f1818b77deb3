"""What is asked once and then known: accounts, launches, the ledger's own name, and what shadow rules saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from secrets import token_hex

from costguard.domain.errors import VersionConflictError
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance, Launch
from costguard.engine.ledger.codec import record_of, value_of
from costguard.planning.shadows import ShadowStanding
from costguard.ports import Put, RecordStore

ACCOUNT_KIND = "account"  # key: cloud:account
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
        known = (value_of(KnownAccount, record) for record in self._store.query(ACCOUNT_KIND))
        return {each.account: each.first_seen for each in known}

    def known_since(self, account: str) -> datetime | None:
        """The same of one account; None where it is not known."""
        record = self._store.get(ACCOUNT_KIND, account)
        return None if record is None else value_of(KnownAccount, record).first_seen

    def note(self, accounts: Iterable[str], known: Mapping[str, datetime], now: datetime) -> None:
        """Remember those that are not `known` yet; of two runs that see an account first, either is right."""
        new = [
            Put(record_of(ACCOUNT_KIND, account, KnownAccount(account, now)), 0)
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


_LAUNCHES_KIND = "launch"
ASKED_AGAIN_AFTER = timedelta(days=1)
"""How long a trail that knew nothing is believed: its events come up to a quarter of an hour late, and some later."""


@dataclass(frozen=True, slots=True)
class KnownLaunch:
    """What the trail said of the machine `ref_text`; `launch` None: nothing. `asked_at` is when it was asked last."""

    ref_text: str
    launch: Launch | None
    asked_at: datetime


class LaunchRepository:
    """The trail's answer for each machine, by its id and the moment it was made: an id never comes twice."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def of(self, instances: Iterable[Instance], now: datetime) -> Mapping[ResourceRef, Launch | None]:
        """What is known of these; None where the trail knew nothing lately. Others have to be asked about."""
        found: dict[ResourceRef, Launch | None] = {}
        by_key = {_key(instance): instance.ref for instance in instances}
        for key, record in self._store.get_many(_LAUNCHES_KIND, by_key).items():
            known = value_of(KnownLaunch, record)
            if known.launch is not None or now - known.asked_at < ASKED_AGAIN_AFTER:
                found[by_key[key]] = known.launch
        return found

    def remember(self, instance: Instance, launch: Launch | None, now: datetime) -> None:
        """Keep an answer; one that names somebody is never forgotten for one that names nobody."""
        key = _key(instance)
        record = self._store.get(_LAUNCHES_KIND, key)
        told = KnownLaunch(str(instance.ref), launch, now)
        if record is not None and launch is None:
            told = replace(told, launch=value_of(KnownLaunch, record).launch)
        try:
            self._store.put(record_of(_LAUNCHES_KIND, key, told), record.version if record is not None else 0)
        except VersionConflictError:
            return  # another run asked meanwhile, and the same trail


def _key(instance: Instance) -> str:
    made = instance.created_at.isoformat() if instance.created_at is not None else instance.run_epoch
    return f"{instance.ref}@{made}"


_IDENTITY_KIND, _KEY = "identity", "ledger"
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
        record = self._store.get(_IDENTITY_KIND, _KEY)
        return "" if record is None else value_of(_Called, record).ledger

    def made(self, now: datetime) -> str:
        """The same, made if need be; of several that try, one wins."""
        known = self.known()
        if known:
            return known
        fresh = token_hex(_BYTES)
        try:
            self._store.transact([Put(record_of(_IDENTITY_KIND, _KEY, _Called(fresh, now)), 0)])
        except VersionConflictError:
            return self.known()
        return fresh


_SHADOWS_KIND = "shadow"  # key: guard / rule
MOST_DIFFERENCES = 200  # some 150 KB; DynamoDB takes 400


class ShadowRepository:
    """One record for each rule in the shadow, written in the place of the one before."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def get(self, guard: str, rule: str) -> ShadowStanding | None:
        """How the last run left this rule, or None."""
        record = self._store.get(_SHADOWS_KIND, f"{guard}/{rule}")
        return None if record is None else value_of(ShadowStanding, record)

    def all(self) -> tuple[ShadowStanding, ...]:
        """Every rule that ever stood in the shadow, by guard and name."""
        return tuple(value_of(ShadowStanding, record) for record in self._store.query(_SHADOWS_KIND))

    def keep(self, kept: ShadowStanding) -> bool:
        """Write it in the place of the one before; False where another run wrote one meanwhile."""
        key = f"{kept.guard}/{kept.rule}"
        record = self._store.get(_SHADOWS_KIND, key)
        try:
            self._store.put(record_of(_SHADOWS_KIND, key, kept), 0 if record is None else record.version)
        except VersionConflictError:
            return False
        return True
