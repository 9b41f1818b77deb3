"""Cases: the latest of each key in place, every closed one kept for ever."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from costguard.cases import Case, CaseStatus
from costguard.domain.errors import VersionConflictError
from costguard.engine.ledger.audit.audit import AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, value_of
from costguard.ports import Put, Record, RecordStore

CASE_KIND = "case"
_CLOSED = "case_closed"


class CaseRepository:
    """Reads and moves cases; a case is moved only from the version it was read at."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._audit = AuditTrail(store)

    def get(self, key: str) -> Case | None:
        """The latest case for a `Case.key`, open or closed."""
        record = self._store.get(CASE_KIND, key)
        return _case(record) if record is not None else None

    def active(self, guard: str) -> tuple[Case, ...]:
        """Every case of a guard that is not closed."""
        return tuple(case for case in self.all(guard) if case.status is not CaseStatus.CLOSED)

    def all(self, guard: str) -> tuple[Case, ...]:
        """The latest case of every key of a guard."""
        return tuple(_case(record) for record in self._store.query(CASE_KIND, f"{guard}/"))

    def closed(self, prefix: str = "") -> Iterator[Case]:
        """Every case ever closed whose key starts with `prefix`."""
        return (_case(record) for record in self._store.query(_CLOSED, prefix))

    def commit(
        self, before: Case | None, after: Case, *, run_id: str = "", now: datetime | None = None, by: str = ""
    ) -> Case:
        """Write `after` in the place of `before`; `before` None opens a case where there is none, or a closed one.

        With `run_id` and `now` the move is audited in the same transaction; `by`: the person who asked for it.
        Returns `after` at its new version.

        Raises:
            VersionConflictError: another run moved the case first; nothing was changed.
        """
        expected = self._replaceable(after) if before is None else _same_key(before, after).version
        stored = replace(after, version=expected + 1)
        operations = [Put(record_of(CASE_KIND, after.key, stored), expected)]
        if after.status is CaseStatus.CLOSED:
            kept_key = f"{after.key}/{after.case_id}"
            kept = self._store.get(_CLOSED, kept_key)
            operations.append(Put(record_of(_CLOSED, kept_key, stored), kept.version if kept is not None else 0))
        entries = [_moved(before, stored, run_id, now, by)] if run_id and now is not None else []
        self._audit.commit(operations, *entries)
        return stored

    def _replaceable(self, case: Case) -> int:
        record = self._store.get(CASE_KIND, case.key)
        if record is None:
            return 0
        if _case(record).status is not CaseStatus.CLOSED:
            message = f"case {case.key} is open already"
            raise VersionConflictError(message)
        return record.version


def _case(record: Record) -> Case:
    case = value_of(Case, record)
    return replace(case, version=record.version) if record.kind == CASE_KIND else case


def _same_key(before: Case, after: Case) -> Case:
    if before.key != after.key:
        message = f"a case keeps its key: {before.key} cannot become {after.key}"
        raise ValueError(message)
    return before


def _moved(before: Case | None, after: Case, run_id: str, now: datetime, by: str) -> AuditEntry:
    facts = {
        **({"by": by} if by else {}),
        "case_id": after.case_id,
        "key": after.key,
        "from": None if before is None else _place(before),
        "to": _place(after),
        "reason": after.reason.code.value,
        "reason_facts": dict(after.reason.facts),
        "rule": after.rule,
        "rule_digest": after.rule_digest,
        "version": after.version,
    }
    return AuditEntry(now, run_id, str(after.subject.shard), AuditWhat.TRANSITION, facts)


def _place(case: Case) -> str:
    return f"{case.status.value} {case.phase.value} {case.rung}"
