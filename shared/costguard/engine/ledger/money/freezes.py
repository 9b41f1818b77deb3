"""Launch freezes: one record each, which is its own intent, and people's word to release it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from costguard.engine.ledger.audit.audit import OPERATOR, AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.contention import until_uncontested
from costguard.planning.freeze import FreezeState
from costguard.ports import Put, RecordStore, VersionCheck

_STATE, _RELEASE = "freeze", "freeze_release"


@dataclass(frozen=True, slots=True)
class Release:
    """Somebody's word that a freeze is not wanted in this period."""

    period: str
    by: str
    reason: str
    at: datetime


class FreezeRepository:
    """Remembers freezes by name."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._audit = AuditTrail(store)

    def get(self, name: str) -> FreezeState:
        """The freeze as remembered; one never heard of is off."""
        record = self._store.get(_STATE, name)
        return FreezeState(name) if record is None else replace(value_of(FreezeState, record), version=record.version)

    def clouds(self) -> Iterator[str]:
        """Where launch freezes were begun, whatever the policy says by now: they have to be ended there."""
        return (state.of.cloud for state in self.all() if state.of is not None)

    def all(self) -> tuple[FreezeState, ...]:
        """Every freeze ever begun."""
        records = self._store.query(_STATE)
        return tuple(replace(value_of(FreezeState, record), version=record.version) for record in records)

    def move(
        self,
        before: FreezeState,
        after: FreezeState,
        what: AuditWhat,
        facts: dict[str, Any],
        run_id: str,
        now: datetime,
        unchanged: Sequence[VersionCheck] = (),
    ) -> FreezeState:
        """Write `after` in the place of `before`, audited in the same transaction.

        Raises:
            VersionConflictError: another run moved it, or one of `unchanged` has changed; nothing was written.
        """
        stored = replace(after, version=before.version + 1)
        put = Put(record_of(_STATE, after.name, stored), before.version)
        entry = AuditEntry(now, run_id, f"freeze:{after.name}", what, {"phase": after.phase.value, **facts})
        self._audit.commit([put, *unchanged], entry)
        return stored

    def release(self, name: str, period: str, by: str, reason: str, now: datetime) -> None:
        """Take a freeze off, and do not begin it again in this period. Safe to repeat."""

        def attempt() -> None:
            record = self._store.get(_RELEASE, name)
            said = Release(period, by, reason, now)
            put = Put(record_of(_RELEASE, name, said), 0 if record is None else record.version)
            facts = {"name": name, "period": period, "by": by, "reason": reason}
            self._audit.commit([put], AuditEntry(now, OPERATOR, "freeze", AuditWhat.SNOOZE, facts))

        until_uncontested(attempt, f"the release of freeze {name}")

    def released(self, name: str) -> Release | None:
        """The last word on a freeze, or None."""
        record = self._store.get(_RELEASE, name)
        return value_of(Release, record) if record is not None else None
