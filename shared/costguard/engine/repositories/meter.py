"""The meter of each shard, in pieces that no store finds too large."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest

from costguard.domain.errors import VersionConflictError
from costguard.domain.refs import Shard
from costguard.engine.repositories.codec import record_of, value_of
from costguard.estimates.meter import MeteredRun, MeterSheet
from costguard.ports import Put, Record, RecordStore

_HEADER = "meter"  # key: shard
_PIECE = "meter_piece"  # key: shard / number
_RUNS_A_PIECE = 200  # some 60 KB; DynamoDB takes 400
_OPERATIONS = 100  # most that one transaction takes


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

    def get(self, shard: Shard) -> MeterSheet | None:
        """The sheet as of the last look, or None."""
        record = self._store.get(_HEADER, str(shard))
        if record is None:
            return None
        return self._sheet(record)

    def all(self, shards: Sequence[Shard]) -> tuple[MeterSheet, ...]:
        """The sheets of these shards that there are."""
        return tuple(sheet for sheet in map(self.get, shards) if sheet is not None)

    def others(self, cloud: str, read: Collection[str]) -> Iterator[MeterSheet]:
        """The sheets of a cloud's shards that are not among those read, which are given as text."""
        for record in self._store.query(_HEADER, f"{cloud}:"):
            if record.key not in read:
                yield self._sheet(record)

    def put(self, shard: Shard, sheet: MeterSheet) -> bool:
        """Write the sheet in the place of the one before; False where another run wrote first: its look is as good."""
        record = self._store.get(_HEADER, str(shard))
        known = self._pieces(str(shard))
        wanted = [sheet.runs[at : at + _RUNS_A_PIECE] for at in range(0, len(sheet.runs), _RUNS_A_PIECE)]
        header = _Header(sheet.since, sheet.looked_at, len(wanted))
        operations = [Put(record_of(_HEADER, str(shard), header), 0 if record is None else record.version)]
        for number, (old, runs) in enumerate(zip_longest(known, wanted)):
            piece = _Piece(tuple(runs or ()))
            if old is None or value_of(_Piece, old) != piece:
                written = record_of(_PIECE, f"{shard}/{number:04d}", piece)
                operations.append(Put(written, 0 if old is None else old.version))
        try:
            for at in range(0, len(operations), _OPERATIONS):
                self._store.transact(operations[at : at + _OPERATIONS])
        except VersionConflictError:
            return False
        return True

    def _sheet(self, record: Record) -> MeterSheet:
        header = value_of(_Header, record)
        pieces = self._pieces(record.key)[: header.pieces]
        return MeterSheet(header.since, header.looked_at, tuple(run for piece in pieces for run in _runs(piece)))

    def _pieces(self, shard: str) -> list[Record]:
        return list(self._store.query(_PIECE, f"{shard}/"))


def _runs(piece: Record) -> tuple[MeteredRun, ...]:
    return value_of(_Piece, piece).runs
