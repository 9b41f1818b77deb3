"""Whom a resource does not belong to, as they said themselves: their name counts no more for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from costguard.engine.ledger.audit.audit import OPERATOR, AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.contention import until_uncontested
from costguard.ports import Put, RecordStore, VersionCheck

_KIND = "disowned"


@dataclass(frozen=True, slots=True)
class Disowned:
    """The names of owners that count no more for the resource `ref_text`; who said the last of it, and when."""

    ref_text: str
    owners: tuple[str, ...]
    by: str
    at: datetime


class DisownedRepository:
    """One record for each resource that anybody disowned."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._audit = AuditTrail(store)

    def add(self, ref_text: str, owner: str, by: str, now: datetime) -> bool:
        """Pass `owner` over from now on; False, and nothing changed, where they were passed over before."""

        def attempt() -> bool:
            record = self._store.get(_KIND, ref_text)
            known = value_of(Disowned, record).owners if record is not None else ()
            if owner in known:
                return False
            said = Disowned(ref_text, (*known, owner), by, now)
            put = Put(record_of(_KIND, ref_text, said), record.version if record is not None else 0)
            facts = {"resource": ref_text, "did": "disowned", "owner": owner, "by": by}
            self._audit.commit([put], AuditEntry(now, OPERATOR, "disowned", AuditWhat.SNOOZE, facts))
            return True

        return until_uncontested(attempt, f"whose {ref_text} is not")

    def of(self, ref_text: str) -> tuple[frozenset[str], VersionCheck]:
        """The names passed over for one resource, and what fails a transaction once anybody adds to them."""
        record = self._store.get(_KIND, ref_text)
        names = frozenset(value_of(Disowned, record).owners) if record is not None else frozenset[str]()
        return names, VersionCheck(_KIND, ref_text, record.version if record is not None else 0)

    def all(self) -> Mapping[str, frozenset[str]]:
        """By resource id the names that count no more."""
        found = (value_of(Disowned, record) for record in self._store.query(_KIND))
        return {disowned.ref_text: frozenset(disowned.owners) for disowned in found}
