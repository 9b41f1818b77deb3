"""What each confirmed stop, termination and release saves: as expected, as seen since, and as billed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from costguard.domain.errors import VersionConflictError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.savings import FINAL, MachineBill, RecordedSaving, SavingChange
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.contention import until_uncontested
from costguard.engine.ledger.schemas import SAVING
from costguard.ports import Put, Record, RecordStore

_LOOK = "saving_look"  # key: shard
_BILL = "saving_bill"  # key: the machine's ref
_OPERATIONS = 50  # in one transaction, of the 100 that every store takes


@dataclass(frozen=True, slots=True)
class _Look:
    """The last complete look at a shard that every saving in it was held against."""

    shard: Shard
    looked_at: datetime


class SavingsRepository:
    """Savings by case and action, for ever."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def record(self, saving: RecordedSaving) -> bool:
        """Begin to count an action seen complete; False if it was recorded before."""
        try:
            self._store.put(record_of(SAVING, _key(saving), saving), 0)
        except VersionConflictError:
            return False
        return True

    def change(self, saving: RecordedSaving, change: SavingChange) -> None:
        """Write what was seen to change. What has ended stays as it ended; safe to repeat."""

        def attempt() -> None:
            record = self._store.get(SAVING, _key(saving))
            if record is None:
                return
            known = value_of(RecordedSaving, record)
            last = known.last
            if last is not None and (last.standing in FINAL or last.standing is change.standing):
                return
            changed = replace(known, changes=(*known.changes, change))
            self._store.put(record_of(SAVING, record.key, changed), record.version)

        until_uncontested(attempt, f"the saving of action {saving.action.action_id}")

    def all(self) -> tuple[RecordedSaving, ...]:
        """Every saving ever recorded."""
        return tuple(value_of(RecordedSaving, record) for record in self._store.query(SAVING))

    def looks(self) -> Mapping[Shard, datetime]:
        """When each shard was last looked at in full."""
        return {shard: look.looked_at for shard, (look, _) in self._looks().items()}

    def looked(self, shards: Iterable[Shard], at: datetime) -> None:
        """Remember a complete look at these shards, once what it changed is written. A later look stands."""
        known = self._looks()
        puts = []
        for shard in sorted(set(shards)):
            before = known.get(shard)
            if before is None or before[0].looked_at < at:
                version = 0 if before is None else before[1].version
                puts.append(Put(record_of(_LOOK, str(shard), _Look(shard, at)), version))
        for start in range(0, len(puts), _OPERATIONS):
            try:
                self._store.transact(puts[start : start + _OPERATIONS])
            except VersionConflictError:
                continue  # another run looked just now, which proves as much

    def bills(self) -> Mapping[ResourceRef, MachineBill]:
        """What bills have for machines that were stopped or terminated."""
        found = (value_of(MachineBill, record) for record in self._store.query(_BILL))
        return {bill.subject: bill for bill in found}

    def put_bill(self, bill: MachineBill) -> bool:
        """Keep the bill of one machine in the place of what was known; False where another run wrote first."""
        record = self._store.get(_BILL, str(bill.subject))
        try:
            put = record_of(_BILL, str(bill.subject), bill)
            self._store.put(put, record.version if record is not None else 0)
        except VersionConflictError:
            return False
        return True

    def _looks(self) -> Mapping[Shard, tuple[_Look, Record]]:
        found = ((value_of(_Look, record), record) for record in self._store.query(_LOOK))
        return {look.shard: (look, record) for look, record in found}


def _key(saving: RecordedSaving) -> str:
    return f"{saving.action.case_id}/{saving.action.action_id}"
