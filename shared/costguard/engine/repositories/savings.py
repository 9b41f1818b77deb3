"""What each confirmed stop or termination saves, from when until when."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from costguard.domain.actions import DESTRUCTIVE, Action
from costguard.domain.errors import VersionConflictError
from costguard.engine.repositories.codec import record_of, value_of
from costguard.engine.repositories.contention import until_uncontested
from costguard.ports import RecordStore

_KIND = "saving"


@dataclass(frozen=True, slots=True)
class RecordedSaving:
    """`action.saving` an hour since `confirmed_at`, until `ended_at`; None means it goes on."""

    action: Action
    confirmed_at: datetime
    ended_at: datetime | None = None


class SavingsRepository:
    """Savings by case and action."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def record(self, action: Action, confirmed_at: datetime) -> bool:
        """Begin to count a stop or termination seen complete; False if it was recorded before, or is neither."""
        if action.verb not in DESTRUCTIVE:
            return False
        key = f"{action.case_id}/{action.action_id}"
        try:
            self._store.put(record_of(_KIND, key, RecordedSaving(action, confirmed_at)), 0)
        except VersionConflictError:
            return False
        return True

    def end(self, case_id: str, at: datetime) -> None:
        """Count no further for a case: it runs again, or is gone by another hand. Safe to repeat."""

        def attempt() -> None:
            for record in self._store.query(_KIND, f"{case_id}/"):
                saving = value_of(RecordedSaving, record)
                if saving.ended_at is None and saving.action.case_id == case_id:
                    self._store.put(record_of(_KIND, record.key, replace(saving, ended_at=at)), record.version)

        until_uncontested(attempt, f"the savings of case {case_id}")

    def all(self) -> tuple[RecordedSaving, ...]:
        """Every saving ever recorded."""
        return tuple(value_of(RecordedSaving, record) for record in self._store.query(_KIND))
