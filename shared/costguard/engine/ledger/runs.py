"""Which runs there were, so that a duplicated event is known, and the anchors of their audit chains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from costguard.domain.errors import LedgerError
from costguard.engine.ledger.audit.audit import AuditTrail, ChainHead
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.contention import until_uncontested
from costguard.ports import Put, Record, RecordStore

RUN = "run"
_LATEST = "run_latest"
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
            latest = self._store.get(_LATEST, guard)
            last = value_of(RunRecord, latest) if latest is not None else None
            before = (last.started_at, *last.before)[:_STARTS] if last is not None else ()
            run = RunRecord(run_id, guard, now, policy=policy, bundle=bundle, policy_waiting=waiting, before=before)
            operations = [Put(record_of(RUN, run_id, run), 0)]
            if last is None or last.started_at <= now:
                operations.append(Put(record_of(_LATEST, guard, run), latest.version if latest is not None else 0))
            self._store.transact(operations)
            return True

        return until_uncontested(attempt, f"run {run_id}")

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
        record = self._store.get(_LATEST, guard)
        return self.get(value_of(RunRecord, record).run_id) if record is not None else None

    def began_last(self, guard: str) -> datetime | None:
        """When the latest run of this guard began; None where none ever did. One read."""
        record = self._store.get(_LATEST, guard)
        return value_of(RunRecord, record).started_at if record is not None else None


def _pieces(heads: Mapping[str, ChainHead]) -> tuple[_Heads, ...]:
    shards = sorted(heads)
    return tuple(
        _Heads({shard: heads[shard] for shard in shards[at : at + _HEADS_A_PIECE]})
        for at in range(0, len(shards), _HEADS_A_PIECE)
    )


def _piece_key(run_id: str, number: int) -> str:
    return f"{run_id}/{number:04d}"
