"""The last look of every guard, and where every budget stood: what reports are made of, without asking any cloud.

One look is a record with its first hundred sights, and pieces with a hundred more each where there are more, so that no
store finds a record too large. It is written in the place of the one before; of two runs at once the later look stands.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from costguard.domain.errors import VersionConflictError
from costguard.domain.resources import Gap
from costguard.engine.ledger.codec import record_of, value_of
from costguard.ports import Put, Record, RecordStore
from costguard.report.facts import BudgetSnapshot, Figures, ResourceSnapshot, ScanSnapshot

_LOG = logging.getLogger(__name__)
_LOOK = "look"  # key: guard
_PIECE = "look_piece"  # key: guard / number
_BUDGET = "look_budget"  # key: name of the budget
_DIGEST = "digest"  # key: run id
_LATEST_DIGEST = "digest_latest"  # key: "all"
_SIGHTS_A_PIECE = 100  # some 80 KB; DynamoDB takes 400
_ACCOUNTS_A_PIECE = 2_000  # 60 KB more
_OPERATIONS = 25  # in one transaction: 2 MB, where DynamoDB takes 4
MOST_SIGHTS = 10_000
MOST_GAPS = 200


@dataclass(frozen=True, slots=True)
class _Header:
    run_id: str
    at: datetime
    seen: int
    pieces: int = 0
    sights: tuple[ResourceSnapshot, ...] = ()
    gaps: tuple[Gap, ...] = ()
    held: Mapping[str, int] = field(default_factory=dict)
    due: int = 0
    rehearsed: int = 0
    left_out: int = 0
    accounts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Piece:
    run_id: str
    sights: tuple[ResourceSnapshot, ...] = ()
    accounts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DigestRecord:
    """One digest that was sent: its figures, and where its page is kept, empty where it is kept nowhere."""

    run_id: str
    figures: Figures
    kept_at: str = ""
    notices: int = 0


@dataclass(frozen=True, slots=True)
class _Latest:
    run_id: str
    before: str = ""


class LookRepository:
    """Looks, budgets and digests above one store."""

    def __init__(self, store: RecordStore, most_sights: int = MOST_SIGHTS) -> None:
        self._store = store
        self._most_sights = most_sights

    def get(self, guard: str) -> ScanSnapshot | None:
        """The last look of this guard, or None."""
        record = self._store.get(_LOOK, guard)
        if record is None:
            return None
        header = value_of(_Header, record)
        read = [value_of(_Piece, piece) for piece in self._pieces(guard, header.pieces).values()]
        whole = [piece for piece in read[: header.pieces] if piece.run_id == header.run_id]
        return ScanSnapshot(
            guard=guard,
            run_id=header.run_id,
            at=header.at,
            seen=header.seen,
            sights=(*header.sights, *(sight for piece in whole for sight in piece.sights)),
            gaps=header.gaps,
            held=header.held,
            due=header.due,
            rehearsed=header.rehearsed,
            left_out=header.left_out + _SIGHTS_A_PIECE * (header.pieces - len(whole)),
            accounts=(*header.accounts, *(account for piece in whole for account in piece.accounts)),
        )

    def keep(self, look: ScanSnapshot) -> bool:
        """Write the look in the place of the one before; False where another run wrote a later one meanwhile."""
        record = self._store.get(_LOOK, look.guard)
        before = None if record is None else value_of(_Header, record)
        if before is not None and before.at > look.at:
            return False
        first, rest = look.sights[:_SIGHTS_A_PIECE], look.sights[_SIGHTS_A_PIECE : self._most_sights]
        accounts = look.accounts[_ACCOUNTS_A_PIECE:]
        pieces = [
            _Piece(look.run_id, rest[at * _SIGHTS_A_PIECE :][:_SIGHTS_A_PIECE], names[:_ACCOUNTS_A_PIECE])
            for at in range(max(-(-len(rest) // _SIGHTS_A_PIECE), -(-len(accounts) // _ACCOUNTS_A_PIECE)))
            for names in (accounts[at * _ACCOUNTS_A_PIECE :],)
        ]
        known = self._pieces(look.guard, max(len(pieces), 0 if before is None else before.pieces))
        operations = [_put(_PIECE, key, one, known.get(key)) for key, one in _numbered(look.guard, pieces)]
        header = _Header(
            run_id=look.run_id,
            at=look.at,
            seen=look.seen,
            pieces=len(pieces),
            sights=first,
            gaps=look.gaps[:MOST_GAPS],
            held=look.held,
            due=look.due,
            rehearsed=look.rehearsed,
            left_out=look.left_out + len(look.sights) - len(first) - len(rest),
            accounts=look.accounts[:_ACCOUNTS_A_PIECE],
        )
        operations.append(_put(_LOOK, look.guard, header, record))  # last: a reader takes pieces of its run only
        return self._written(operations, look.guard)

    def budgets(self) -> tuple[BudgetSnapshot, ...]:
        """Every budget as it stood when it was last looked at."""
        return tuple(value_of(BudgetSnapshot, record) for record in self._store.query(_BUDGET))

    def keep_budgets(self, sights: Iterable[BudgetSnapshot]) -> None:
        """Write where budgets stand in the place of where they stood."""
        known = {record.key: record for record in self._store.query(_BUDGET)}
        self._written([_put(_BUDGET, one.name, one, known.get(one.name)) for one in sights], "budgets")

    def digest(self, run_id: str) -> DigestRecord | None:
        """What a digest told, or None if it was never sent."""
        record = self._store.get(_DIGEST, run_id)
        return None if record is None else value_of(DigestRecord, record)

    def digest_before(self, run_id: str) -> DigestRecord | None:
        """The digest that was sent before this one, or None."""
        record = self._store.get(_LATEST_DIGEST, "all")
        if record is None:
            return None
        latest = value_of(_Latest, record)
        before = latest.before if latest.run_id == run_id else latest.run_id
        return self.digest(before) if before else None

    def keep_digest(self, digest: DigestRecord) -> bool:
        """Remember a digest; False, and nothing changed, where it is remembered already."""
        if self._store.get(_DIGEST, digest.run_id) is not None:
            return False
        record = self._store.get(_LATEST_DIGEST, "all")
        before = "" if record is None else value_of(_Latest, record).run_id
        operations = [
            _put(_DIGEST, digest.run_id, digest, None),
            _put(_LATEST_DIGEST, "all", _Latest(digest.run_id, before), record),
        ]
        return self._written(operations, "digest")

    def _pieces(self, guard: str, wanted: int) -> Mapping[str, Record]:
        """What there is beyond the header; most fleets need no more than that, and then nothing is asked."""
        return {record.key: record for record in self._store.query(_PIECE, f"{guard}/")} if wanted else {}

    def _written(self, operations: Sequence[Put], what: str) -> bool:
        try:
            for at in range(0, len(operations), _OPERATIONS):
                self._store.transact(operations[at : at + _OPERATIONS])
        except VersionConflictError:
            _LOG.info("another run kept its look meanwhile", extra={"what": what})
            return False
        return True


def _numbered(guard: str, pieces: Iterable[_Piece]) -> Iterator[tuple[str, _Piece]]:
    return ((f"{guard}/{number:04d}", piece) for number, piece in enumerate(pieces))


def _put(kind: str, key: str, value: object, known: Record | None) -> Put:
    return Put(record_of(kind, key, value), 0 if known is None else known.version)


def shortened(gap: Gap, most: int = 300) -> Gap:
    """A gap whose texts leave room for the others."""
    return replace(gap, detail=gap.detail[:most], fix=gap.fix[:most])
