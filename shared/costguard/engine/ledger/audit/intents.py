"""Intents and their outcomes held against the audit: each was written together with an entry, so neither stands alone.

This is what shows an audit that was emptied with its heads and runs: what was done is in the ledger still. The intents
are read before the entries, so that what is written meanwhile is in both; what seems to be missing is read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from costguard.domain.errors import LedgerError
from costguard.engine.ledger.audit.audit import AuditWhat
from costguard.engine.ledger.codec import value_of
from costguard.engine.ledger.intents import FINAL, INTENT, Intent, IntentRepository
from costguard.ports import RecordStore

UNDO = "undo-"
"""How the run id of what people took back begins. No run anchors such a chain: it is known by its intent."""

_COMPARED = ("case_id", "decision_id", "verb", "run_epoch", "rule_digest")
_INTENT, _OUTCOME = AuditWhat.INTENT.value, AuditWhat.OUTCOME.value


@dataclass(frozen=True, slots=True)
class _Kept:
    """What an intent's record says."""

    chain: str
    outcome: str | None
    action: Mapping[str, Any]


@dataclass(slots=True)
class Ledgered:
    """The intents of a ledger, and what its audit says of them while the entries pass."""

    kept: dict[str, _Kept] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    told: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    outcomes: dict[str, set[str]] = field(default_factory=dict)

    def undone(self) -> set[str]:
        """The run ids of what people took back."""
        runs = (kept.chain.partition("/")[0] for kept in self.kept.values())
        return {run for run in runs if run.startswith(UNDO)}

    def hear(self, key: str, body: Mapping[str, Any]) -> None:
        """Take in an entry that has its contents; one about no action, as of a launch freeze, is passed by."""
        facts, what = body.get("facts"), body.get("what")
        if not isinstance(facts, Mapping):
            return
        if what == _INTENT and isinstance(facts.get("action"), Mapping):
            action = facts["action"]
            if isinstance(action.get("action_id"), str):
                self.told[action["action_id"]] = (key, action)
        elif what == _OUTCOME and isinstance(facts.get("action_id"), str):
            self.outcomes.setdefault(facts["action_id"], set()).add(str(facts.get("outcome")))


def intents_of(store: RecordStore) -> Ledgered:
    """Every intent of the ledger, to be held against the audit that is read after."""
    found = Ledgered()
    for record in store.query(INTENT):
        try:
            intent = value_of(Intent, record)
        except LedgerError as err:
            found.unread[record.key.rpartition("/")[2]] = f"intent {record.key}: cannot be read: {err}"
            continue
        found.kept[intent.action.action_id] = _kept(intent, record.body)
    return found


def disagreements(store: RecordStore, found: Ledgered, pruned: Collection[str]) -> Iterator[str]:
    """What ledger and audit say differently. Chains that were `pruned` with leave tell of nothing any more."""
    yield from found.unread.values()
    shards = {chain.partition("/")[2] for chain in pruned}
    for action_id, kept in found.kept.items():
        told = found.told.get(action_id)
        if told is None and kept.chain not in pruned:
            yield f"intent {action_id}: no entry of {kept.chain} tells of it: that was removed, or the intent was added"
        if told is not None and any(told[1].get(name) != kept.action.get(name) for name in _COMPARED):
            yield f"intent {action_id}: is not the one that {told[0]} tells of: it was changed"
        if kept.chain.partition("/")[2] not in shards:
            yield from _outcome(store, action_id, kept, found.outcomes.get(action_id, set()))
    intents = IntentRepository(store)
    for action_id in sorted({*found.told, *found.outcomes} - found.kept.keys() - found.unread.keys()):
        if intents.get(action_id) is None:  # else it was written during this reading
            where = found.told[action_id][0] if action_id in found.told else "an outcome in the audit"
            yield f"intent {action_id}: {where} tells of it, and it is not in the ledger: it was removed"


def _outcome(store: RecordStore, action_id: str, kept: _Kept, told: set[str]) -> Iterator[str]:
    if kept.outcome is not None and kept.outcome not in told:
        yield f"intent {action_id}: no entry tells of its outcome {kept.outcome}: that was removed, or it was changed"
        return
    known = {outcome.value for outcome in FINAL}
    if (kept.outcome is None and told) or (kept.outcome not in known and told & known):
        now = IntentRepository(store).get(action_id)
        if now is None or now.outcome is None or now.outcome.value == kept.outcome:
            yield f"intent {action_id}: the audit tells of {', '.join(sorted(told))}, and its outcome is {kept.outcome}"


def _kept(intent: Intent, body: Mapping[str, Any]) -> _Kept:
    outcome = intent.outcome.value if intent.outcome is not None else None
    action = body.get("action")
    return _Kept(f"{intent.run_id}/{intent.action.subject.shard}", outcome, action if isinstance(action, dict) else {})
