"""What each confirmed step saves, as expected, seen and billed; and the meter of each shard."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import zip_longest

from costguard.domain.actions import Verb
from costguard.domain.errors import VersionConflictError
from costguard.domain.refs import ResourceRef, Shard, Subject
from costguard.domain.savings import FINAL, MachineBill, RecordedSaving, SavingChange
from costguard.engine.ledger.codec import SAVING, record_of, until_uncontested, value_of
from costguard.engine.ledger.listing import OpenLists, lists_are_whole
from costguard.estimates.burn import MeteredRun, MeterSheet
from costguard.ports import Put, Record, RecordStore

_LOOK = "saving_look"  # key: shard
_BILL = "saving_bill"  # key: the machine's ref
_OPEN = "saving_open"  # key: all / number of a list
_PART = "saving_part"  # key: a machine that was stopped, or that took the place of one
_ALL = "all/"
_OPERATIONS = 50  # in one transaction, of the 100 that every store takes
_TOGETHER = 25  # savings begun in one transaction: three writes each
_MOST_OF_ONE = 20  # savings of one machine that are remembered by it: those of its last runs


@dataclass(frozen=True, slots=True)
class _Keys:
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Look:
    """The last complete look at a shard that every saving in it was held against."""

    shard: Shard
    looked_at: datetime


class SavingsRepository:
    """Savings by case and action, for ever; those that go on in lists beside them, and each machine with its own."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._lists = OpenLists(store, _OPEN)

    def record(self, *savings: RecordedSaving) -> tuple[RecordedSaving, ...]:
        """Begin to count actions seen complete; those that were not recorded before."""
        return tuple(
            one
            for at in range(0, len(savings), _TOGETHER)
            for one in until_uncontested(partial(self._recorded, savings[at : at + _TOGETHER]), "savings")
        )

    def _recorded(self, savings: Sequence[RecordedSaving]) -> tuple[RecordedSaving, ...]:
        known = self._store.get_many(SAVING, map(_key, savings))
        new = {_key(saving): saving for saving in savings if _key(saving) not in known}
        if not new:
            return ()
        parts: dict[str, list[str]] = {}
        for key, saving in new.items():
            parts.setdefault(str(saving.action.subject), []).append(key)
        puts = [Put(record_of(SAVING, key, saving), 0) for key, saving in new.items()]
        listed = {f"{_ALL}{key}": True for key, saving in new.items() if _goes_on(saving)}
        self._store.transact([*puts, *self._parts(parts), *self._lists.changes(listed)])
        return tuple(new.values())

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
            ended = {} if _goes_on(changed) else {f"{_ALL}{record.key}": False}
            other = {} if change.other is None else {str(change.other): ()}
            put = Put(record_of(SAVING, record.key, changed), record.version)
            self._store.transact([put, *self._parts(other), *self._lists.changes(ended)])

        until_uncontested(attempt, f"the saving of action {saving.action.action_id}")

    def all(self) -> tuple[RecordedSaving, ...]:
        """Every saving ever recorded."""
        return tuple(value_of(RecordedSaving, record) for record in self._store.query(SAVING))

    def current(self, subjects: Iterable[Subject]) -> tuple[RecordedSaving, ...]:
        """Those that go on, and all that these machines ever had; every saving, where lists are not whole."""
        if not lists_are_whole(self._store):
            return self.all()
        own = self._store.get_many(_PART, map(str, subjects)).values()
        keys = {key.removeprefix(_ALL) for key in self._lists.keys(_ALL[:-1])}
        keys.update(key for record in own for key in value_of(_Keys, record).keys)
        found = self._store.get_many(SAVING, sorted(keys))
        return tuple(value_of(RecordedSaving, found[key]) for key in sorted(found))

    def took_part(self, machine: ResourceRef) -> bool:
        """Whether it was ever stopped, or taken for the replacement of one that was."""
        return self._store.get(_PART, str(machine)) is not None

    def unlist(self, savings: Iterable[RecordedSaving]) -> None:
        """Take those off the lists that nothing can change any more."""
        over = {f"{_ALL}{_key(saving)}" for saving in savings}
        listed = sorted(over.intersection(self._lists.keys(_ALL[:-1]))) if over else []
        for at in range(0, len(listed), _OPERATIONS):
            until_uncontested(partial(self._unlist, listed[at : at + _OPERATIONS]), "the lists of savings")

    def fill_lists(self) -> None:
        """List what goes on, and know each machine with its savings, whichever version recorded them."""
        every = self.all()
        parts: dict[str, list[str]] = {}
        for saving in sorted(every, key=lambda one: one.confirmed_at):
            parts.setdefault(str(saving.action.subject), []).append(_key(saving))
            for change in saving.changes:
                if change.other is not None:
                    parts.setdefault(str(change.other), [])
        machines = sorted(parts)
        for at in range(0, len(machines), _OPERATIONS):
            some = {machine: parts[machine] for machine in machines[at : at + _OPERATIONS]}
            until_uncontested(partial(self._take_part, some), "the machines of savings")
        going_on = (f"{_ALL}{_key(saving)}" for saving in every if _goes_on(saving))
        self._lists.fill(going_on, self._going_on)

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

    def _going_on(self, keys: Sequence[str]) -> Iterator[str]:
        found = self._store.get_many(SAVING, (key.removeprefix(_ALL) for key in keys))
        return (f"{_ALL}{key}" for key, record in found.items() if _goes_on(value_of(RecordedSaving, record)))

    def _unlist(self, keys: Sequence[str]) -> None:
        self._store.transact(self._lists.changes(dict.fromkeys(keys, False)))

    def _take_part(self, parts: Mapping[str, Sequence[str]]) -> None:
        self._store.transact(self._parts(parts))

    def _parts(self, parts: Mapping[str, Sequence[str]]) -> list[Put]:
        """The writes by which machines are known to have taken part, with these savings."""
        known = self._store.get_many(_PART, parts)
        puts = []
        for machine, keys in parts.items():
            record = known.get(machine)
            before = value_of(_Keys, record).keys if record is not None else ()
            after = (*before, *(key for key in keys if key not in before))[-_MOST_OF_ONE:]
            if record is None or after != before:
                version = record.version if record is not None else 0
                puts.append(Put(record_of(_PART, machine, _Keys(after)), version))
        return puts

    def _looks(self) -> Mapping[Shard, tuple[_Look, Record]]:
        found = ((value_of(_Look, record), record) for record in self._store.query(_LOOK))
        return {look.shard: (look, record) for look, record in found}


def _goes_on(saving: RecordedSaving) -> bool:
    """Whether a look may change it. A termination is listed though it was replaced: it ends what its stop saved."""
    verb = saving.action.verb
    return verb is Verb.TERMINATE or (verb is not Verb.MEND and saving.ended_at is None)


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
