"""Cases: the latest of each key in place, every closed one kept for ever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from costguard.cases import Case, CaseStatus
from costguard.domain.errors import VersionConflictError
from costguard.engine.ledger.audit.audit import AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, until_uncontested, value_of
from costguard.engine.ledger.found import ending, fill_names, is_called, keys_ended, keys_named, naming
from costguard.engine.ledger.listing import OpenLists, listed_since, lists_are_whole
from costguard.ports import Put, Record, RecordStore

CASE_KIND = "case"
_CLOSED = "case_closed"
_OPEN = "case_open"  # key: guard / number of a list
MOST_MOVES = 12  # in one transaction of 100: a case, its entry, and up to six more where its reason names people


class CaseRepository:
    """Reads and moves cases; a case is moved only from the version it was read at."""

    def __init__(self, store: RecordStore, audit: AuditTrail | None = None) -> None:
        self._store = store
        self._audit = audit or AuditTrail(store)
        self._lists = OpenLists(store, _OPEN)

    def get(self, key: str) -> Case | None:
        """The latest case for a `Case.key`, open or closed."""
        record = self._store.get(CASE_KIND, key)
        return _case(record) if record is not None else None

    def active(self, *guards: str) -> tuple[Case, ...]:
        """Every case of these guards that is not closed; closed ones are read only where lists are not whole."""
        if not lists_are_whole(self._store):
            return tuple(case for guard in guards for case in self.all(guard) if _is_open(case))
        keys = [key for guard in guards for key in self._lists.keys(guard)]
        return tuple(self._open_of(keys))

    def fill_lists(self) -> None:
        """List every open case, whichever version opened it, and no other."""
        cases = [_case(record) for record in self._store.query(CASE_KIND)]
        fill_names(self._store, cases)
        found = [case.key for case in cases if _is_open(case)]
        self._lists.fill(found, lambda keys: [case.key for case in self._open_of(keys)])

    def all(self, guard: str) -> tuple[Case, ...]:
        """The latest case of every key of a guard."""
        return tuple(_case(record) for record in self._store.query(CASE_KIND, f"{guard}/"))

    def named(self, name: str, *guards: str) -> tuple[Case, ...]:
        """The same of what is called so: a resource by its whole id or its vendor's, or a case by its own."""
        if lists_are_whole(self._store):
            keys = keys_named(self._store, name)
            known = self._store.get_many(CASE_KIND, keys)
            cases: Iterable[Case] = [_case(known[key]) for key in keys if key in known]
        else:
            cases = (case for guard in guards for case in self.all(guard))
        found = [case for case in cases if is_called(case, name)]
        return tuple(case for guard in guards for case in found if case.guard == guard)

    def ended(self, since: datetime, *guards: str) -> Iterator[Case]:
        """Every case of these guards that was closed since then."""
        listed = listed_since(self._store)
        if listed is None or since < listed:
            cases = (case for guard in guards for case in self.closed(f"{guard}/"))
        else:
            known = self._store.get_many(_CLOSED, sorted(keys_ended(self._store, since)))
            cases = (case for record in known.values() if (case := _case(record)).guard in guards)
        return (case for case in cases if case.closed_at is not None and case.closed_at >= since)

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
        entries = [_moved(before, stored, run_id, now, by)] if run_id and now is not None else []

        def attempt() -> VersionConflictError | None:
            try:
                self._audit.commit(self._writes(before, stored, expected), *entries)
            except VersionConflictError as err:
                known = self._store.get(CASE_KIND, after.key)
                if (known.version if known is not None else 0) != expected:
                    return err
                raise  # only the list is another by now: another case of it was opened or closed
            return None

        refused = until_uncontested(attempt, f"case {after.key}")
        if refused is not None:
            raise refused
        return stored

    def _writes(self, before: Case | None, stored: Case, expected: int) -> list[Put]:
        writes = [Put(record_of(CASE_KIND, stored.key, stored), expected)]
        if not _is_open(stored):
            kept_key = f"{stored.key}/{stored.case_id}"
            kept = self._store.get(_CLOSED, kept_key)
            writes.append(Put(record_of(_CLOSED, kept_key, stored), kept.version if kept is not None else 0))
            writes += ending(self._store, stored, kept_key, anew=kept is None)
        if before is None:
            writes += naming(self._store, [stored], anew=expected == 0)
        if (before is not None and _is_open(before)) is not _is_open(stored):
            writes += self._lists.changes({stored.key: _is_open(stored)})
        return writes

    def _open_of(self, keys: Sequence[str]) -> Iterable[Case]:
        """Those of these cases that are open, in this order."""
        found = self._store.get_many(CASE_KIND, keys)
        cases = (_case(found[key]) for key in keys if key in found)
        return (case for case in cases if _is_open(case))

    def move(
        self,
        *steps: tuple[Case, Case],
        run_id: str,
        now: datetime,
        beside: Sequence[Put] = (),
        told: Sequence[AuditEntry] = (),
    ) -> tuple[Case, ...]:
        """Write cases that were open and stay open, each in the place of the one before it, all or nothing.

        What belongs to the moves is written with them: records `beside`, and what is `told` before them. At most
        `MOST_MOVES` steps, each of another case. Returns them at their new versions.

        Raises:
            VersionConflictError: another run moved one of the cases, or wrote what is beside; nothing was changed.
        """
        moved = tuple(replace(after, version=_same_key(before, after).version + 1) for before, after in steps)
        if any(CaseStatus.CLOSED in {before.status, after.status} for before, after in steps):
            message = "cases are opened and closed one by one"
            raise ValueError(message)
        puts = [Put(record_of(CASE_KIND, one.key, one), one.version - 1) for one in moved]
        entries = [_moved(before, one, run_id, now, "") for (before, _), one in zip(steps, moved, strict=True)]
        self._audit.commit([*puts, *beside], *told, *entries)
        return moved

    def _replaceable(self, case: Case) -> int:
        record = self._store.get(CASE_KIND, case.key)
        if record is None:
            return 0
        if _is_open(_case(record)):
            message = f"case {case.key} is open already"
            raise VersionConflictError(message)
        return record.version


def _is_open(case: Case) -> bool:
    return case.status is not CaseStatus.CLOSED


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
