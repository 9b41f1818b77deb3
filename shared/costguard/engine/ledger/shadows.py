"""What rules in the shadow saw differently in the last run, and what became of what they would have stopped."""

from __future__ import annotations

from costguard.domain.errors import VersionConflictError
from costguard.engine.ledger.codec import record_of, value_of
from costguard.planning.shadows import ShadowStanding
from costguard.ports import RecordStore

_KIND = "shadow"  # key: guard / rule
MOST_DIFFERENCES = 200  # some 150 KB; DynamoDB takes 400


class ShadowRepository:
    """One record for each rule in the shadow, written in the place of the one before."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def get(self, guard: str, rule: str) -> ShadowStanding | None:
        """How the last run left this rule, or None."""
        record = self._store.get(_KIND, f"{guard}/{rule}")
        return None if record is None else value_of(ShadowStanding, record)

    def all(self) -> tuple[ShadowStanding, ...]:
        """Every rule that ever stood in the shadow, by guard and name."""
        return tuple(value_of(ShadowStanding, record) for record in self._store.query(_KIND))

    def keep(self, kept: ShadowStanding) -> bool:
        """Write it in the place of the one before; False where another run wrote one meanwhile."""
        key = f"{kept.guard}/{kept.rule}"
        record = self._store.get(_KIND, key)
        try:
            self._store.put(record_of(_KIND, key, kept), 0 if record is None else record.version)
        except VersionConflictError:
            return False
        return True
