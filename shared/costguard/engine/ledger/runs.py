"""Runs, and the last look of every guard: what reports are made of, without asking any cloud.

One look is a record with its first hundred sights, and pieces with a hundred more each where there are more, so that no
store finds a record too large. It is written in the place of the one before; of two runs at once the later look stands.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from costguard.domain.errors import LedgerError, VersionConflictError
from costguard.domain.resources import Gap
from costguard.engine.ledger.audit.audit import AuditTrail, ChainHead
from costguard.engine.ledger.cases import CaseRepository
from costguard.engine.ledger.codec import record_of, until_uncontested, value_of
from costguard.engine.ledger.listing import LATEST, Listing, fill_lists, listing_after
from costguard.engine.ledger.savings import SavingsRepository
from costguard.ports import Put, Record, RecordStore
from costguard.report.facts import BudgetSnapshot, Figures, ResourceSnapshot, ScanSnapshot

RUN = "run"
_HEADS = "run_heads"  # key: run id / number
_STARTS = 8  # enough to tell how often runs come, whatever somebody started by hand in between
_HEADS_A_PIECE = 1_500  # some 190 KB; DynamoDB takes 400


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run. `heads` are those of its audit chains by shard, anchored when it finished.

    Those of very many shards stand in `head_pieces` further records; `whole_run` has them all. `policy` is the digest
    of the policy that it decided by, `bundle` the hash of it where it was published; `policy_waiting` is the hash of
    one published after it that could not decide yet. `before` is when the guard's runs before it began, the last first.
    """

    run_id: str
    guard: str
    started_at: datetime
    finished_at: datetime | None = None
    summary: Mapping[str, Any] = field(default_factory=dict)
    heads: Mapping[str, ChainHead] = field(default_factory=dict)
    policy: str = ""
    bundle: str = ""
    policy_waiting: str = ""
    head_pieces: int = 0
    before: tuple[datetime, ...] = ()


@dataclass(frozen=True, slots=True)
class _LatestRun(RunRecord):
    """The latest run of a guard as it began, and what that says of the lists of what is open."""

    lists: Listing | None = None


@dataclass(frozen=True, slots=True)
class _Heads:
    heads: Mapping[str, ChainHead] = field(default_factory=dict)


def whole_run(store: RecordStore, record: Record) -> RunRecord:
    """The run in a record, with the heads that stand beside it.

    Raises:
        LedgerError: it is damaged, or heads that it names are gone.
    """
    run = value_of(RunRecord, record)
    heads = dict(run.heads)
    for number in range(run.head_pieces):
        piece = store.get(_HEADS, _piece_key(run.run_id, number))
        if piece is None:
            message = f"run {run.run_id} anchored chains in {run.head_pieces} records, and number {number} is gone"
            raise LedgerError(message)
        heads.update(value_of(_Heads, piece).heads)
    return replace(run, heads=heads, head_pieces=0)


class RunRepository:
    """Remembers runs by id, and the latest of each guard."""

    def __init__(self, store: RecordStore, policy: tuple[str, str, str] = ("", "", "")) -> None:
        self._store = store
        self._audit = AuditTrail(store)
        self._policy = policy

    def deciding_by(self, policy: str, bundle: str = "", waiting: str = "") -> RunRepository:
        """The same runs; those begun here are remembered to decide by this policy, see `RunRecord`."""
        return RunRepository(self._store, (policy, bundle, waiting))

    def begin(self, run_id: str, guard: str, now: datetime) -> bool:
        """Open a run; False if it was completed before: the event is a duplicate.

        A run that began and never finished (a crash, a deadline) may begin again, and so may its twin
        at the same time: cases, caps and intents keep two of them from doing anything twice.
        """

        def attempt() -> bool:
            known = self.get(run_id)
            if known is not None:
                return known.finished_at is None
            policy, bundle, waiting = self._policy
            latest = self._store.get(LATEST, guard)
            last = value_of(RunRecord, latest) if latest is not None else None
            before = (last.started_at, *last.before)[:_STARTS] if last is not None else ()
            run = RunRecord(run_id, guard, now, policy=policy, bundle=bundle, policy_waiting=waiting, before=before)
            operations = [Put(record_of(RUN, run_id, run), 0)]
            if last is None or last.started_at <= now:
                begun = _LatestRun(
                    run_id,
                    guard,
                    now,
                    policy=policy,
                    bundle=bundle,
                    policy_waiting=waiting,
                    before=before,
                    lists=listing_after(latest),
                )
                operations.append(Put(record_of(LATEST, guard, begun), latest.version if latest is not None else 0))
            self._store.transact(operations)
            return True

        begins = until_uncontested(attempt, f"run {run_id}")
        if begins:
            fill_lists(
                self._store, now, (CaseRepository(self._store).fill_lists, SavingsRepository(self._store).fill_lists)
            )
        return begins

    def finish(self, run_id: str, summary: Mapping[str, Any], now: datetime) -> None:
        """Close a run and anchor the heads of its chains. The first to finish is remembered.

        Raises:
            LedgerError: the run never began.
        """

        def attempt() -> None:
            record = self._store.get(RUN, run_id)
            if record is None:
                message = f"run {run_id} never began"
                raise LedgerError(message)
            run = value_of(RunRecord, record)
            if run.finished_at is not None:
                return
            heads = self._audit.heads(run_id)
            pieces = _pieces(heads) if len(heads) > _HEADS_A_PIECE else ()
            for number, piece in enumerate(pieces):  # before the run that names them
                known = self._store.get(_HEADS, _piece_key(run_id, number))
                written = record_of(_HEADS, _piece_key(run_id, number), piece)
                self._store.put(written, known.version if known is not None else 0)
            own = {} if pieces else heads
            finished = replace(run, finished_at=now, summary=summary, heads=own, head_pieces=len(pieces))
            self._store.put(record_of(RUN, run_id, finished), record.version)

        until_uncontested(attempt, f"run {run_id}")

    def get(self, run_id: str) -> RunRecord | None:
        """One run, or None if it never began."""
        record = self._store.get(RUN, run_id)
        return whole_run(self._store, record) if record is not None else None

    def latest(self, guard: str) -> RunRecord | None:
        """The run of this guard that began last, finished or not."""
        record = self._store.get(LATEST, guard)
        return self.get(value_of(RunRecord, record).run_id) if record is not None else None

    def began_last(self, guard: str) -> datetime | None:
        """When the latest run of this guard began; None where none ever did. One read."""
        record = self._store.get(LATEST, guard)
        return value_of(RunRecord, record).started_at if record is not None else None


def _pieces(heads: Mapping[str, ChainHead]) -> tuple[_Heads, ...]:
    shards = sorted(heads)
    return tuple(
        _Heads({shard: heads[shard] for shard in shards[at : at + _HEADS_A_PIECE]})
        for at in range(0, len(shards), _HEADS_A_PIECE)
    )


def _piece_key(run_id: str, number: int) -> str:
    return f"{run_id}/{number:04d}"


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
