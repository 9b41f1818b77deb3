"""What each confirmed step saves, as expected, seen and billed; and the meter of each shard."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest

from costguard.domain.errors import VersionConflictError
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.savings import FINAL, MachineBill, RecordedSaving, SavingChange
from costguard.engine.ledger.codec import SAVING, record_of, until_uncontested, value_of
from costguard.estimates.burn import MeteredRun, MeterSheet
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


_HEADER = "meter"  # key: shard
_PIECE = "meter_piece"  # key: shard / number
_RUNS_A_PIECE = 200  # some 60 KB; DynamoDB takes 400
_METER_OPERATIONS = 50  # in one transaction: 3 MB of pieces, where DynamoDB takes 4 MB and 100 of them


@dataclass(frozen=True, slots=True)
class _Header:
    since: datetime
    looked_at: datetime
    pieces: int


@dataclass(frozen=True, slots=True)
class _Piece:
    runs: tuple[MeteredRun, ...] = ()


class MeterRepository:
    """One sheet a shard."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def kept(self, clouds: Iterable[str]) -> KeptSheets:
        """The sheets of all shards of these clouds as of the last look: two questions a cloud, however many shards."""
        found = KeptSheets(self._store)
        for cloud in sorted(set(clouds)):
            found.read(f"{cloud}:")
        return found

    def get(self, shard: Shard) -> MeterSheet | None:
        """The sheet as of the last look, or None."""
        return self._of(shard).sheet(shard)

    def others(self, cloud: str, read: Collection[str]) -> Iterator[MeterSheet]:
        """The sheets of a cloud's shards that are not among those read, which are given as text."""
        return self.kept((cloud,)).others(read)

    def put(self, shard: Shard, sheet: MeterSheet) -> bool:
        """Write the sheet in the place of the one before; False where another run wrote first: its look is as good."""
        return self._of(shard).put({shard: sheet})

    def _of(self, shard: Shard) -> KeptSheets:
        found = KeptSheets(self._store)
        found.read_one(str(shard))
        return found


class KeptSheets:
    """What was kept of many shards when it was read, and what is to stand there from now on."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._headers: dict[str, Record] = {}
        self._pieces: dict[str, list[Record]] = {}

    def read(self, prefix: str) -> None:
        """Read every shard whose text begins like this."""
        self._headers.update((record.key, record) for record in self._store.query(_HEADER, prefix))
        self._add_pieces(prefix)

    def read_one(self, shard: str) -> None:
        """Read one shard."""
        record = self._store.get(_HEADER, shard)
        if record is not None:
            self._headers[shard] = record
        self._add_pieces(f"{shard}/")

    def sheet(self, shard: Shard) -> MeterSheet | None:
        """The sheet as of the last look, or None."""
        return self._sheet(str(shard)) if str(shard) in self._headers else None

    def others(self, read: Collection[str]) -> Iterator[MeterSheet]:
        """The sheets of shards that are not among those read, which are given as text."""
        return (self._sheet(shard) for shard in self._headers if shard not in read)

    def put(self, sheets: Mapping[Shard, MeterSheet]) -> bool:
        """Write them in the place of what was read; False where another run wrote first, whose look is as good."""
        written = True
        waiting: list[Sequence[Put]] = []
        for shard, sheet in sheets.items():
            operations = self._operations(str(shard), sheet)
            if waiting and sum(map(len, waiting)) + len(operations) > _METER_OPERATIONS:
                written &= self._write(waiting)
                waiting = []
            waiting.append(operations)
        return self._write(waiting) and written

    def _write(self, of_shards: Sequence[Sequence[Put]]) -> bool:
        """All at once, and where that meets another run, each shard by itself."""
        together = [operation for operations in of_shards for operation in operations]
        try:
            for at in range(0, len(together), _METER_OPERATIONS):
                self._store.transact(together[at : at + _METER_OPERATIONS])
        except VersionConflictError:
            if len(of_shards) > 1:
                for operations in of_shards:
                    self._write([operations])
            return False
        return True

    def _operations(self, shard: str, sheet: MeterSheet) -> list[Put]:
        wanted = [sheet.runs[at : at + _RUNS_A_PIECE] for at in range(0, len(sheet.runs), _RUNS_A_PIECE)]
        record = self._headers.get(shard)
        header = _Header(sheet.since, sheet.looked_at, len(wanted))
        operations = [Put(record_of(_HEADER, shard, header), 0 if record is None else record.version)]
        for number, (old, runs) in enumerate(zip_longest(self._pieces.get(shard, ()), wanted)):
            piece = _Piece(tuple(runs or ()))
            if old is None or value_of(_Piece, old) != piece:
                written = record_of(_PIECE, f"{shard}/{number:04d}", piece)
                operations.append(Put(written, 0 if old is None else old.version))
        return operations

    def _sheet(self, shard: str) -> MeterSheet:
        header = value_of(_Header, self._headers[shard])
        pieces = self._pieces.get(shard, [])[: header.pieces]
        return MeterSheet(header.since, header.looked_at, tuple(run for piece in pieces for run in _runs(piece)))

    def _add_pieces(self, prefix: str) -> None:
        for record in self._store.query(_PIECE, prefix):
            self._pieces.setdefault(record.key.rpartition("/")[0], []).append(record)


def _runs(piece: Record) -> tuple[MeteredRun, ...]:
    return value_of(_Piece, piece).runs
