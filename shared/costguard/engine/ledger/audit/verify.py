"""Reading the whole audit again, beside intents and outcomes, and saying what does not hold together.

This is what shows an audit that was emptied with its heads and runs: what was done is in the ledger still. The intents
are read before the entries, so that what is written meanwhile is in both; what seems to be missing is read again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from costguard.domain.errors import LedgerError
from costguard.engine.ledger.audit.audit import (
    ENTRY,
    HEAD,
    OF_NO_RUN,
    OPERATOR,
    AuditWhat,
    ChainHead,
    entry_key,
    hash_of,
)
from costguard.engine.ledger.audit.forget import RETENTION, SHORTEST, declared, is_pruned
from costguard.engine.ledger.cases import CASE_KIND
from costguard.engine.ledger.codec import newest_schema, to_body, value_of
from costguard.engine.ledger.intents import FINAL, INTENT, Intent, IntentRepository
from costguard.engine.ledger.runs import RUN, RunRecord, whole_run
from costguard.ports import Record, RecordStore

UNDO = "undo-"
"""How the run id of what people took back begins. No run anchors such a chain: it is known by its intent."""

_COMPARED = ("case_id", "decision_id", "verb", "run_epoch", "rule_digest")
_NOTHING: frozenset[str] = frozenset()
_INTENT, _OUTCOME = AuditWhat.INTENT.value, AuditWhat.OUTCOME.value


@dataclass(frozen=True, slots=True)
class _Kept:
    """What an intent's record says, and of its action no more than is compared: a ledger has many."""

    chain: str
    outcome: str | None
    decided: tuple[Any, ...]


@dataclass(slots=True)
class Ledgered:
    """The intents of a ledger, and what its audit says of them while the entries pass.

    `told` has the key of the last entry that tells of an intent, and whether that tells another thing than the intent.
    """

    kept: dict[str, _Kept] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    told: dict[str, tuple[str, bool]] = field(default_factory=dict)
    outcomes: dict[str, frozenset[str]] = field(default_factory=dict)
    _alike: dict[frozenset[str], frozenset[str]] = field(default_factory=dict)

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
            action_id = action.get("action_id")
            if isinstance(action_id, str):
                kept = self.kept.get(action_id)
                self.told[action_id] = (key, kept is not None and _decided(action) != kept.decided)
        elif what == _OUTCOME and isinstance(facts.get("action_id"), str):
            said = self.outcomes.get(facts["action_id"], _NOTHING) | {str(facts.get("outcome"))}
            self.outcomes[facts["action_id"]] = self._alike.setdefault(said, said)


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
        if told is not None and told[1]:
            yield f"intent {action_id}: is not the one that {told[0]} tells of: it was changed"
        if kept.chain.partition("/")[2] not in shards:
            yield from _outcome(store, action_id, kept, found.outcomes.get(action_id, _NOTHING))
    intents = IntentRepository(store)
    for action_id in sorted({*found.told, *found.outcomes} - found.kept.keys() - found.unread.keys()):
        if intents.get(action_id) is None:  # else it was written during this reading
            where = found.told[action_id][0] if action_id in found.told else "an outcome in the audit"
            yield f"intent {action_id}: {where} tells of it, and it is not in the ledger: it was removed"


def _outcome(store: RecordStore, action_id: str, kept: _Kept, told: frozenset[str]) -> Iterator[str]:
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
    chain = sys.intern(f"{intent.run_id}/{intent.action.subject.shard}")
    return _Kept(chain, outcome, _decided(action if isinstance(action, dict) else {}))


def _decided(action: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(action.get(name) for name in _COMPARED)


@dataclass(frozen=True, slots=True)
class AuditVerdict:
    """How much was read, and every problem found; none means that the audit is whole and tells of all intents."""

    entries: int
    chains: int
    problems: tuple[str, ...]
    intents: int = 0


@dataclass(slots=True)
class _Chain:
    """What is known of one chain while its entries pass."""

    promised: dict[int, str] = field(default_factory=dict)  # position → hash, from heads and anchors
    entries: int = 0
    last_hash: str = ""
    pruned: bool = False


def verify(store: RecordStore, kept: Mapping[str, ChainHead] | None = None) -> AuditVerdict:
    """Check every chain against itself, its head, and the anchor in its run, and all against what was done.

    May run beside writers.

    `kept` are heads by chain that were written down elsewhere, at any time: each must still be passed through.

    Raises:
        LedgerError: the ledger cannot be read at all.
    """
    problems: list[str] = []
    chains: dict[str, _Chain] = {}
    _promise(chains, kept or {}, problems)
    intents = intents_of(store)
    runs = {*OF_NO_RUN, *intents.undone()}
    for record in store.query(RUN):
        runs.add(record.key)
        _promise(chains, _anchors(store, record, problems), problems)
    for record in store.query(HEAD):
        _promise(chains, _head(record, problems), problems)
        chains.setdefault(record.key, _Chain())
    count = 0
    for record in store.query(ENTRY):
        count += 1
        name = record.key.rpartition("/")[0]
        problems.extend(_follow(record, name, chains.setdefault(name, _Chain())))
        if not is_pruned(record.body):
            intents.hear(record.key, record.body)
    for name, chain in chains.items():
        problems.extend(_end(store, name, chain))
    pruned = [name for name, chain in chains.items() if chain.pruned]
    problems.extend(_pruned_without_leave(store, pruned))
    problems.extend(disagreements(store, intents, frozenset(pruned)))
    if not count and next(iter(store.query(CASE_KIND)), None) is not None:
        problems.append("the audit is empty, and the ledger has cases: it was removed")
    unknown = sorted({name.partition("/")[0] for name in chains} - runs)
    problems.extend(
        f"run {run_id}: has chains and no record: it was removed, or the chains were added"
        for run_id in unknown
        if not run_id or store.get(RUN, run_id) is None  # it may have begun during this reading
    )
    return AuditVerdict(count, len(chains), tuple(problems), len(intents.kept))


def _anchors(store: RecordStore, record: Record, problems: list[str]) -> Mapping[str, ChainHead]:
    name = f"run {record.key}"
    if _has_unknown_schema(record, name, problems):
        return {}
    try:
        run = value_of(RunRecord, record)
    except LedgerError as err:
        problems.append(f"{name}: its record cannot be read: {err}")
        return {}
    if run.run_id != record.key:
        problems.append(f"{name}: its record says that it is of run {run.run_id}")
    if _canonical(to_body(run)["heads"]) != _canonical(record.body.get("heads", {})):
        problems.append(f"{name}: its anchors are not as they are written: they were changed")
    writes = 1 if run.finished_at is None else 2  # it is written when the run begins and when it finishes
    if record.version != writes:
        problems.append(f"{name}: its record is at version {record.version}, not {writes}: it was written again")
    try:
        anchored = whole_run(store, record).heads
    except LedgerError as err:
        problems.append(f"{name}: its anchors cannot be read: {err}")
        return {}
    return {f"{record.key}/{shard}": head for shard, head in anchored.items()}


def _head(record: Record, problems: list[str]) -> Mapping[str, ChainHead]:
    if _has_unknown_schema(record, f"the head of {record.key}", problems):
        return {}
    try:
        head = value_of(ChainHead, record)
    except LedgerError as err:
        problems.append(f"{record.key}: its head cannot be read: {err}")
        return {}
    if _canonical(to_body(head)) != _canonical(record.body):
        problems.append(f"{record.key}: its head is not as heads are written: it was changed")
    if not 1 <= record.version <= head.entries:  # each write of it comes with an entry at least
        problems.append(f"{record.key}: its head is at version {record.version}, of {head.entries} entries")
    return {record.key: head}


def _promise(chains: dict[str, _Chain], heads: Mapping[str, ChainHead], problems: list[str]) -> None:
    for name, head in heads.items():
        promised = chains.setdefault(name, _Chain()).promised
        if promised.setdefault(head.entries, head.hash) != head.hash:
            problems.append(f"{name}: its head and the anchor in its run disagree on entry {head.entries}")


def _follow(record: Record, name: str, chain: _Chain) -> list[str]:
    """Take the next entry into its chain."""
    body = record.body
    expected = chain.entries + 1
    seq = body.get("seq")
    position = seq if isinstance(seq, int) and not isinstance(seq, bool) else None
    problems: list[str] = []
    pruned = is_pruned(body)
    chain.pruned |= pruned
    _has_unknown_schema(record, record.key, problems)
    if record.version != (2 if pruned else 1):
        times = "once, and once more when it is pruned" if pruned else "once"
        problems.append(f"{record.key}: is at version {record.version}: an entry is written {times}")
    if record.key != entry_key(name, expected):
        problems.append(f"{record.key}: expected entry {expected} here: one is missing, or this one was added")
    if f"{body.get('run_id')}/{body.get('shard')}" != name or position is None:
        problems.append(f"{record.key}: says that it belongs to another chain")
    elif record.key != entry_key(name, position):
        problems.append(f"{record.key}: says that it is entry {position}: it was moved")
    if not pruned and body.get("hash") != hash_of(body):
        problems.append(f"{record.key}: its content does not match its hash: it was changed")
    if body.get("previous") != chain.last_hash:
        problems.append(f"{record.key}: does not follow the entry before it")
    chain.entries = position if position is not None else expected
    chain.last_hash = str(body.get("hash"))
    if chain.promised.pop(chain.entries, chain.last_hash) != chain.last_hash:
        problems.append(f"{record.key}: is not the entry that the chain's head or its run names")
    return problems


def _pruned_without_leave(store: RecordStore, chains: Sequence[str]) -> Iterator[str]:
    """Chains that lost contents before their time, or without a word of it in the audit."""
    known = declared(store) if chains else {}
    for name in chains:
        run_id, _, shard = name.partition("/")
        said, record = known.get(name), store.get(RUN, run_id)
        if said is None:
            yield f"{name}: lost its contents, and no entry of {OPERATOR}/{RETENTION} says so: they were removed"
            continue
        try:
            run = whole_run(store, record) if record is not None else None
        except LedgerError:
            continue  # told when the runs were read
        if run is None or (run.heads.get(shard), run.finished_at) != (said.head, said.finished_at):
            yield f"{name}: lost its contents, and {OPERATOR}/{RETENTION} says another thing of it than its run"
        elif said.at - said.finished_at < SHORTEST:
            yield f"{name}: lost its contents {(said.at - said.finished_at).days} days after its run: before its time"


def _end(store: RecordStore, name: str, chain: _Chain) -> list[str]:
    """What is wrong once all entries of a chain have passed."""
    problems = [f"{name}: entry {position} and what follows it are missing" for position in chain.promised]
    record = store.get(HEAD, name)
    if record is None:
        return [*problems, f"{name}: has no head: it was removed, or the chain was added"]
    try:
        head = value_of(ChainHead, record)
    except (LedgerError, KeyError):
        return problems  # told when the heads were read
    if chain.entries > head.entries:  # entries written during this reading have moved the head as well
        problems.append(f"{name}: has {chain.entries} entries, its head says {head.entries}: one was added")
    return problems


def _has_unknown_schema(record: Record, name: str, problems: list[str]) -> bool:
    unknown = record.schema not in range(1, newest_schema(record.kind) + 1)
    if unknown:
        problems.append(f"{name}: cannot be read: this Costguard knows no schema {record.schema} of it")
    return unknown


_canonical = json.JSONEncoder(sort_keys=True).encode
"""JSON in which 1, 1.0, true and "1" differ, as they do in a hash; Python calls three of them equal."""
