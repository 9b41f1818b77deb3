"""Resources their owners asked to leave alone for a while."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import ResourceRef
from costguard.engine.ledger.audit.audit import OPERATOR, AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.contention import until_uncontested
from costguard.ports import Put, RecordStore, VersionCheck

_KIND = "snooze"


@dataclass(frozen=True, slots=True)
class Snooze:
    """Leave the resource `ref_text` (a whole id) alone before `until`; who asked, why, and when."""

    ref_text: str
    until: datetime
    by: str
    reason: str
    at: datetime


class SnoozeRepository:
    """The latest snooze of each resource."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._audit = AuditTrail(store)

    def set(self, snooze: Snooze) -> None:
        """Remember a snooze in the place of any earlier one of the same resource.

        Raises:
            InvalidInputError: not a resource id, or an end that is not after its beginning.
        """
        self._check(snooze)
        self._write(snooze, snooze.at)

    def lengthen(self, snooze: Snooze) -> Snooze:
        """Remember a snooze unless the resource has one that ends no earlier; returns the one that holds.

        Raises:
            InvalidInputError: as `set`.
        """
        self._check(snooze)

        def attempt() -> Snooze:
            record = self._store.get(_KIND, snooze.ref_text)
            known = value_of(Snooze, record) if record is not None else None
            if known is not None and known.until >= snooze.until:
                return known
            put = Put(record_of(_KIND, snooze.ref_text, snooze), record.version if record is not None else 0)
            self._audit.commit([put], _entry(snooze, snooze.at))
            return snooze

        return until_uncontested(attempt, f"the snooze of {snooze.ref_text}")

    def clear(self, ref_text: str, by: str, now: datetime) -> bool:
        """End a snooze now; False if none was active."""
        record = self._store.get(_KIND, ref_text)
        snooze = value_of(Snooze, record) if record is not None else None
        if snooze is None or snooze.until <= now:
            return False
        self._write(replace(snooze, until=now, by=by, reason="cleared"), now)
        return True

    def all(self) -> Mapping[str, Snooze]:
        """The latest of each resource, by its id, whether it still holds or not."""
        snoozes = (value_of(Snooze, record) for record in self._store.query(_KIND))
        return {snooze.ref_text: snooze for snooze in snoozes}

    def active(self, now: datetime) -> Mapping[str, Snooze]:
        """Every snooze whose end is after `now`, by resource id."""
        return {ref: snooze for ref, snooze in self.all().items() if snooze.until > now}

    def of(self, ref_text: str, now: datetime) -> tuple[Snooze | None, VersionCheck]:
        """The active snooze of one resource, and what fails a transaction once anybody says otherwise."""
        record = self._store.get(_KIND, ref_text)
        snooze = value_of(Snooze, record) if record is not None else None
        active = snooze if snooze is not None and snooze.until > now else None
        return active, VersionCheck(_KIND, ref_text, record.version if record is not None else 0)

    @staticmethod
    def _check(snooze: Snooze) -> None:
        ResourceRef.parse(snooze.ref_text)
        if snooze.until <= snooze.at:
            message = f"a snooze ends after it begins; {snooze.until.isoformat()} is not after {snooze.at.isoformat()}"
            raise InvalidInputError(message)

    def _write(self, snooze: Snooze, now: datetime) -> None:
        def attempt() -> None:
            record = self._store.get(_KIND, snooze.ref_text)
            put = Put(record_of(_KIND, snooze.ref_text, snooze), record.version if record is not None else 0)
            self._audit.commit([put], _entry(snooze, now))

        until_uncontested(attempt, f"the snooze of {snooze.ref_text}")


def _entry(snooze: Snooze, now: datetime) -> AuditEntry:
    facts = {"resource": snooze.ref_text, "until": snooze.until.isoformat(), "by": snooze.by, "reason": snooze.reason}
    return AuditEntry(now, OPERATOR, "snooze", AuditWhat.SNOOZE, facts)
