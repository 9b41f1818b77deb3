"""Intents: what is about to be done for a case, and what came of it.

NEVER rules 6 and 19: an intent is written, with its audit entry, before the one call it stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from costguard.cases import Case
from costguard.domain.actions import DESTRUCTIVE, Action, Outcome, Receipt, Verb
from costguard.domain.errors import LedgerError, VersionConflictError
from costguard.engine.ledger.audit.audit import AuditEntry, AuditTrail, AuditWhat
from costguard.engine.ledger.cases import CASE_KIND
from costguard.engine.ledger.codec import record_of, to_body, until_uncontested, value_of
from costguard.ports import Put, RecordStore, VersionCheck

INTENT = "intent"  # key: case id / action id, so that a case's intents are read together
_CASE_OF = "intent_case"  # key: action id; at most one intent per action, whichever case it names
ENGAGED = "engaged"  # key: subject; the destructive action last begun on it, so that two guards never both begin one
_SEEN = "seen complete"
_SETTLED_TOGETHER = 33  # in one transaction of 100: an intent, its entry, and the head of a chain of its own
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
        read: RecordStore | None = None,
    ) -> bool:
        """Write the intent; False when there is one already, and then nothing may be called.

        With `claimed`, also False when that case is no longer at the version it was claimed at; and False
        where any of `unchanged` has changed: what people said until this moment is in time. False as well where
        another case stopped or terminated the same run of the subject, or may have. `read` has what was read together
        with those: a record that changed since fails the write.

        Raises:
            LedgerError: it is not known whether the intent was written; nothing may be called.
        """
        operations: list[Put | VersionCheck] = [
            Put(record_of(INTENT, _key(action), Intent(action, run_id, now)), 0),
            Put(record_of(_CASE_OF, action.action_id, _CaseOf(action.case_id)), 0),
            *unchanged,
        ]
        if action.verb in DESTRUCTIVE:
            engaging = self._engaging(action, read or self._store)
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
            put = Put(record_of(INTENT, record.key, settled), record.version)
            self._audit.commit([put], _outcome(settled, receipt, now, run_id, by))
            return settled

        return until_uncontested(attempt, f"the outcome of action {action_id}")

    def answer(self, settled: Intent, now: datetime) -> tuple[Put, AuditEntry]:
        """The writes of what came of an intent that was just claimed here, for a transaction with its case.

        It fails where anybody settled it meanwhile: then `settle` decides what stands.
        """
        put = Put(record_of(INTENT, _key(settled.action), settled), 1)
        return put, _outcome(settled, settled.receipt, now, settled.run_id)

    def get(self, action_id: str) -> Intent | None:
        """The intent for an action, or None."""
        key = self._key_of(action_id)
        record = self._store.get(INTENT, key) if key is not None else None
        return value_of(Intent, record) if record is not None else None

    def of_decisions(self, cases: Iterable[Case]) -> dict[str, tuple[Intent, ...]]:
        """By case id what was begun for the current decision of each; a hundred take one request.

        A decision has one action, under its own id; only copies of volumes are several, and those are looked for.
        """
        decided = {f"{case.case_id}/{case.decision_id}": case for case in cases if case.decision_id}
        found = self._store.get_many(INTENT, decided)
        intents: dict[str, tuple[Intent, ...]] = {}
        for key, case in decided.items():
            intent = value_of(Intent, found[key]) if key in found else None
            if intent is not None and intent.action.case_id == case.case_id and intent.action.verb is not Verb.SNAPSHOT:
                intents[case.case_id] = (intent,)
                continue
            several = self.for_case(case.case_id)
            intents[case.case_id] = tuple(one for one in several if one.action.decision_id == case.decision_id)
        return intents

    def settle_seen(self, intents: Sequence[Intent], now: datetime, run_id: str) -> list[Intent]:
        """Write that these took effect, as they were seen complete; as they now are. Safe to repeat."""
        settled: list[Intent] = []
        for at in range(0, len(intents), _SETTLED_TOGETHER):
            some = intents[at : at + _SETTLED_TOGETHER]
            try:
                settled += self._settle_together(some, now, run_id)
            except VersionConflictError:
                effect, seen = Outcome.TOOK_EFFECT, _SEEN
                settled += [self.settle(intent.action, effect, now, None, seen, run_id) for intent in some]
        return settled

    def _settle_together(self, intents: Sequence[Intent], now: datetime, run_id: str) -> list[Intent]:
        """Several at once; VersionConflictError where somebody wrote one of them meanwhile, or one is not there."""
        records = self._store.get_many(INTENT, [_key(intent.action) for intent in intents])
        settled: list[Intent] = []
        puts: list[Put] = []
        for intent in intents:
            record = records.get(_key(intent.action))
            if record is None or value_of(Intent, record) != intent:
                message = f"the intent of action {intent.action.action_id} is another by now"
                raise VersionConflictError(message)
            settled.append(replace(intent, outcome=Outcome.TOOK_EFFECT, detail=_SEEN, settled_at=now))
            puts.append(Put(record_of(INTENT, record.key, settled[-1]), record.version))
        self._audit.commit(puts, *(_outcome(one, None, now, run_id) for one in settled))
        return settled

    def for_case(self, case_id: str) -> tuple[Intent, ...]:
        """Every intent of a case, settled or not."""
        intents = (value_of(Intent, record) for record in self._store.query(INTENT, f"{case_id}/"))
        return tuple(intent for intent in intents if intent.action.case_id == case_id)

    def unsettled(self, case_id: str) -> tuple[Intent, ...]:
        """Those of a case whose effect is still to be seen."""
        return tuple(intent for intent in self.for_case(case_id) if not intent.settled)

    def _engaging(self, action: Action, read: RecordStore) -> Put | None:
        """The write that takes the subject for this action; None where another case has it."""
        record = read.get(ENGAGED, str(action.subject))
        if record is not None:
            held = value_of(_Engaged, record)
            same = (held.verb, held.run_epoch) == (action.verb, action.run_epoch)
            if same and held.case_id != action.case_id:
                intent = self.get(held.action_id)
                if intent is None or intent.outcome not in {Outcome.REFUSED, Outcome.HAD_NO_EFFECT}:
                    return None
        mine = _Engaged(action.action_id, action.case_id, action.verb, action.run_epoch)
        return Put(record_of(ENGAGED, str(action.subject), mine), 0 if record is None else record.version)

    def _key_of(self, action_id: str) -> str | None:
        record = self._store.get(_CASE_OF, action_id)
        return f"{value_of(_CaseOf, record).case_id}/{action_id}" if record is not None else None


def _outcome(settled: Intent, receipt: Receipt | None, now: datetime, run_id: str, by: str = "") -> AuditEntry:
    outcome = settled.outcome.value if settled.outcome is not None else ""
    facts: dict[str, Any] = {"action_id": settled.action.action_id, "outcome": outcome, "detail": settled.detail}
    if by:
        facts["by"] = by
    if receipt is not None:
        facts["receipt"] = to_body(receipt)
    return AuditEntry(now, run_id, _shard(settled.action), AuditWhat.OUTCOME, facts)


def _key(action: Action) -> str:
    return f"{action.case_id}/{action.action_id}"


def _shard(action: Action) -> str:
    return str(action.subject.shard)
