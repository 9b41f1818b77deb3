"""Which Keeps were written on their machines as tags, and what became of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from costguard.domain.errors import VersionConflictError
from costguard.domain.refs import ResourceRef
from costguard.engine.ledger.audit.audit import AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, value_of
from costguard.ports import Put, RecordStore, VersionCheck

_KIND = "keep_tag"


@dataclass(frozen=True, slots=True)
class KeepTag:
    """What was last written on the machine `ref_text`, or was to be: a Keep until then.

    `was` is what stood there of ours before; None once it is known to be gone. `problem` says why it is not known to be
    written; empty where it is.
    """

    ref_text: str
    until: datetime
    at: datetime
    was: datetime | None = None
    problem: str = ""


class KeepTagRepository:
    """The latest of each machine."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._audit = AuditTrail(store)

    def all(self) -> Mapping[str, KeepTag]:
        """By the machine's whole id."""
        return {record.key: value_of(KeepTag, record) for record in self._store.query(_KIND)}

    def note(self, tag: KeepTag, run_id: str, unchanged: Sequence[VersionCheck] = ()) -> bool:
        """Write it, with an entry of the audit; False where somebody else wrote, or `unchanged` did not hold."""
        record = self._store.get(_KIND, tag.ref_text)
        put = Put(record_of(_KIND, tag.ref_text, tag), record.version if record is not None else 0)
        shard = ResourceRef.parse(tag.ref_text).shard
        facts = {"resource": tag.ref_text, "until": tag.until.isoformat(), "problem": tag.problem}
        try:
            self._audit.commit([put, *unchanged], AuditEntry(tag.at, run_id, str(shard), AuditWhat.KEEP_TAG, facts))
        except VersionConflictError:
            return False
        return True

    def settle(self, tag: KeepTag, run_id: str, now: datetime, problem: str = "") -> None:
        """What came of it."""
        was = tag.was if problem else None
        self.note(replace(tag, at=now, was=was, problem=problem), run_id)
