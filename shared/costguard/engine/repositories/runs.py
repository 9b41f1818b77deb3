"""Which runs there were, so that a duplicated event is known, and the anchors of their audit chains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from costguard.domain.errors import LedgerError
from costguard.engine.repositories.audit import AuditTrail, ChainHead
from costguard.engine.repositories.codec import record_of, value_of
from costguard.engine.repositories.contention import until_uncontested
from costguard.ports import Put, RecordStore

RUN = "run"
_LATEST = "run_latest"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run. `heads` are those of its audit chains by shard, anchored when it finished.

    `policy` is the digest of the policy that it decided by, `bundle` the hash of it where it was published;
    `policy_waiting` is the hash of one published after it that could not decide yet.
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
            run = RunRecord(run_id, guard, now, policy=policy, bundle=bundle, policy_waiting=waiting)
            operations = [Put(record_of(RUN, run_id, run), 0)]
            latest = self._store.get(_LATEST, guard)
            if latest is None or value_of(RunRecord, latest).started_at <= now:
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
            finished = replace(run, finished_at=now, summary=summary, heads=self._audit.heads(run_id))
            self._store.put(record_of(RUN, run_id, finished), record.version)

        until_uncontested(attempt, f"run {run_id}")

    def get(self, run_id: str) -> RunRecord | None:
        """One run, or None if it never began."""
        record = self._store.get(RUN, run_id)
        return value_of(RunRecord, record) if record is not None else None

    def latest(self, guard: str) -> RunRecord | None:
        """The run of this guard that began last, finished or not."""
        record = self._store.get(_LATEST, guard)
        return self.get(value_of(RunRecord, record).run_id) if record is not None else None
