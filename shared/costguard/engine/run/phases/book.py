"""How far a run in phases has come: one small record in the ledger for each part, in the place of the run's before.

The record binds what a part left: who can write the object store but not the ledger can make a part unreadable, which
is a gap, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from costguard.domain.errors import StalePlanError
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.contention import until_uncontested
from costguard.engine.run.phases.blobs import BlobRef
from costguard.ports import RecordStore

_KIND = "phase"  # key: guard / phase / number of the part


@dataclass(frozen=True, slots=True)
class PartRecord:
    """What one part of one phase left. `begun` is when its run began, `parts` how many parts the next phase has."""

    run_id: str
    begun: datetime
    at: datetime
    blob: BlobRef
    parts: int = 0


class PhaseBook:
    """The records of one run of one guard. The first to finish a part is remembered; later ones are told what it left.

    Runs take each other's places, so that there are never more records than parts of the largest run.
    """

    def __init__(self, store: RecordStore, guard: str, run_id: str, begun: datetime) -> None:
        self._store = store
        self._guard = guard
        self.run_id = run_id
        self.begun = begun

    def get(self, phase: str, part: int = 0) -> PartRecord | None:
        """What this run's part left, or None: it is not done, or another run has taken the place."""
        record = self._store.get(_KIND, self._key(phase, part))
        return self._own(value_of(PartRecord, record)) if record is not None else None

    def all(self, phase: str) -> Mapping[int, PartRecord]:
        """What the parts of this run left, by number, as far as they are done."""
        prefix = f"{self._guard}/{phase}/"
        found = {
            int(record.key.removeprefix(prefix)): self._own(value_of(PartRecord, record))
            for record in self._store.query(_KIND, prefix)
        }
        return {number: record for number, record in found.items() if record is not None}

    def done(self, phase: str, part: int, blob: BlobRef, now: datetime, parts: int = 0) -> PartRecord:
        """Remember what a part left; the record that stands, which may be that of whoever was first.

        Raises:
            StalePlanError: a later run has taken the place.
        """
        wanted = PartRecord(self.run_id, self.begun, now, blob, parts)

        def attempt() -> PartRecord:
            record = self._store.get(_KIND, self._key(phase, part))
            if record is not None:
                stands = value_of(PartRecord, record)
                if stands.run_id == self.run_id:
                    return stands
                if stands.begun > self.begun:
                    message = f"run {self.run_id} was overtaken by run {stands.run_id}"
                    raise StalePlanError(message)
            written = record_of(_KIND, self._key(phase, part), wanted)
            self._store.put(written, record.version if record is not None else 0)
            return wanted

        return until_uncontested(attempt, f"{phase} of run {self.run_id}")

    def _own(self, record: PartRecord) -> PartRecord | None:
        return record if record.run_id == self.run_id else None

    def _key(self, phase: str, part: int) -> str:
        return f"{self._guard}/{phase}/{part:05d}"
