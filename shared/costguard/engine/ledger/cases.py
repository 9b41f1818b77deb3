"""Cases: the latest of each key in place, every closed one kept for ever; and the intents of what is done for them.

NEVER rules 6 and 19: an intent is written, with its audit entry, before the one call it stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from costguard.cases import Case, CaseStatus
from costguard.domain.actions import DESTRUCTIVE, Action, Outcome, Receipt, Verb
from costguard.domain.errors import LedgerError, VersionConflictError
from costguard.engine.ledger.audit.audit import AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.codec import record_of, to_body, until_uncontested, value_of
from costguard.engine.ledger.found import ending, fill_names, is_called, keys_ended, keys_named, naming
from costguard.engine.ledger.listing import OpenLists, listed_since, lists_are_whole
from costguard.ports import Put, Record, RecordStore, VersionCheck

CASE_KIND = "case"
_CLOSED = "case_closed"
_OPEN = "case_open"  # key: guard / number of a list


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


INTENT = "intent"  # key: case id / action id, so that a case's intents are read together
_CASE_OF = "intent_case"  # key: action id; at most one intent per action, whichever case it names
_ENGAGED = "engaged"  # key: subject; the destructive action last begun on it, so that two guards never both begin one
FINAL = frozenset({Outcome.TOOK_EFFECT, Outcome.HAD_NO_EFFECT, Outcome.REFUSED})


@dataclass(frozen=True, slots=True)
class Intent:
    """An action about to be called, and what came of it as far as known: `outcome` None means nobody could say."""

    action: Action
    run_id: str
    claimed_at: datetime
    outcome: Outcome | None = None
    receipt: Receipt | None = None
    detail: str = ""
    settled_at: datetime | None = None

    @property
    def settled(self) -> bool:
        """Whether it is known what the call did; until then only describing the resource may tell."""
        return self.outcome in FINAL


@dataclass(frozen=True, slots=True)
class _CaseOf:
    case_id: str


@dataclass(frozen=True, slots=True)
class _Engaged:
    action_id: str
    case_id: str
    verb: Verb
    run_epoch: str


class IntentRepository:
    """One intent per action, for ever."""

    def __init__(self, store: RecordStore, audit: AuditTrail | None = None) -> None:
        self._store = store
        self._audit = audit or AuditTrail(store)

    def claim(
        self,
        action: Action,
        run_id: str,
        now: datetime,
        claimed: Case | None = None,
        unchanged: Sequence[VersionCheck] = (),
    ) -> bool:
        """Write the intent; False when there is one already, and then nothing may be called.

        With `claimed`, also False when that case is no longer at the version it was claimed at; and False
        where any of `unchanged` has changed: what people said until this moment is in time. False as well where
        another case stopped or terminated the same run of the subject, or may have.

        Raises:
            LedgerError: it is not known whether the intent was written; nothing may be called.
        """
        if self._key_of(action.action_id) is not None:
            return False
        operations: list[Put | VersionCheck] = [
            Put(record_of(INTENT, _key(action), Intent(action, run_id, now)), 0),
            Put(record_of(_CASE_OF, action.action_id, _CaseOf(action.case_id)), 0),
            *unchanged,
        ]
        if action.verb in DESTRUCTIVE:
            engaging = self._engaging(action)
            if engaging is None:
                return False
            operations.append(engaging)
        if claimed is not None:
            operations.append(VersionCheck(CASE_KIND, claimed.key, claimed.version))
        entry = AuditEntry(now, run_id, _shard(action), AuditWhat.INTENT, {"action": to_body(action)})
        try:
            self._audit.commit(operations, entry)
        except VersionConflictError:
            return False
        return True

    def settle(
        self,
        action: Action | str,
        outcome: Outcome,
        now: datetime,
        receipt: Receipt | None,
        detail: str,
        run_id: str,
        by: str = "",
    ) -> Intent:
        """Write what came of an intent, given by its action or the action's id; returns the intent as it now is.

        `by`: the person who had it looked at, if one did.

        Knowing less never replaces knowing more: after a final outcome, accepted and unknown change nothing.

        Raises:
            LedgerError: there is no such intent.
        """
        action_id = action if isinstance(action, str) else action.action_id

        def attempt() -> Intent:
            key = self._key_of(action_id)
            record = self._store.get(INTENT, key) if key is not None else None
            if record is None:
                message = f"action {action_id} has no intent to settle"
                raise LedgerError(message)
            intent = value_of(Intent, record)
            settled = replace(intent, outcome=outcome, receipt=receipt or intent.receipt, detail=detail, settled_at=now)
            same = replace(settled, settled_at=intent.settled_at) == intent
            if same or (intent.settled and outcome not in FINAL):
                return intent
            facts: dict[str, Any] = {"action_id": action_id, "outcome": outcome.value, "detail": detail}
            if by:
                facts["by"] = by
            if receipt is not None:
                facts["receipt"] = to_body(receipt)
            entry = AuditEntry(now, run_id, _shard(intent.action), AuditWhat.OUTCOME, facts)
            self._audit.commit([Put(record_of(INTENT, record.key, settled), record.version)], entry)
            return settled

        return until_uncontested(attempt, f"the outcome of action {action_id}")

    def get(self, action_id: str) -> Intent | None:
        """The intent for an action, or None."""
        key = self._key_of(action_id)
        record = self._store.get(INTENT, key) if key is not None else None
        return value_of(Intent, record) if record is not None else None

    def for_case(self, case_id: str) -> tuple[Intent, ...]:
        """Every intent of a case, settled or not."""
        intents = (value_of(Intent, record) for record in self._store.query(INTENT, f"{case_id}/"))
        return tuple(intent for intent in intents if intent.action.case_id == case_id)

    def unsettled(self, case_id: str) -> tuple[Intent, ...]:
        """Those of a case whose effect is still to be seen."""
        return tuple(intent for intent in self.for_case(case_id) if not intent.settled)

    def _engaging(self, action: Action) -> Put | None:
        """The write that takes the subject for this action; None where another case has it."""
        record = self._store.get(_ENGAGED, str(action.subject))
        if record is not None:
            held = value_of(_Engaged, record)
            same = (held.verb, held.run_epoch) == (action.verb, action.run_epoch)
            if same and held.case_id != action.case_id:
                intent = self.get(held.action_id)
                if intent is None or intent.outcome not in {Outcome.REFUSED, Outcome.HAD_NO_EFFECT}:
                    return None
        mine = _Engaged(action.action_id, action.case_id, action.verb, action.run_epoch)
        return Put(record_of(_ENGAGED, str(action.subject), mine), 0 if record is None else record.version)

    def _key_of(self, action_id: str) -> str | None:
        record = self._store.get(_CASE_OF, action_id)
        return f"{value_of(_CaseOf, record).case_id}/{action_id}" if record is not None else None


def _key(action: Action) -> str:
    return f"{action.case_id}/{action.action_id}"


def _shard(action: Action) -> str:
    return str(action.subject.shard)
