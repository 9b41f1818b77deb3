"""The audit: hash chains, one per (run, shard), that show every entry edited, removed, moved or added later.

Each entry carries the hash of the one before. The head of a chain (how many entries, the last hash) is a
record of its own, written in the same transaction; when a run finishes, the heads of its chains are
anchored in the run record as well. People's doings (switch, approvals, snoozes) have chains under the
run id `operator`, the outbox under `outbox`: no run anchors those. In the place of people stand keys
(audit_people.py); chains of runs that ended long ago may have lost their contents (audit_prune.py).

What this cannot show: somebody who may write the whole ledger can rewrite a chain, its head and its
anchor alike, and where there is no anchor (yet), a chain and its head. Keep a copy of the heads elsewhere
where that matters: `audit_verify.verify` compares with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from costguard.domain.errors import VersionConflictError
from costguard.engine.ledger.audit.people import Apart
from costguard.engine.ledger.codec import record_of, to_body, until_uncontested, value_of
from costguard.ports import Put, Record, RecordStore, VersionCheck

ENTRY, HEAD = "audit", "audit_head"
OPERATOR = "operator"  # the run id of what people do
OF_NO_RUN = frozenset({OPERATOR, "outbox"})  # run ids that have no run record


class AuditWhat(str, Enum):
    """What an entry is about."""

    INTENT = "intent"
    OUTCOME = "outcome"
    TRANSITION = "transition"
    NOTICE = "notice"
    SWITCH = "switch"
    APPROVAL = "approval"
    SNOOZE = "snooze"
    KEEP_TAG = "keep_tag"
    START = "start"
    POLICY = "policy"
    RETENTION = "retention"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that happened. `facts` are plain JSON; `shard` is a shard's text, or whatever names the chain."""

    at: datetime
    run_id: str
    shard: str
    what: AuditWhat
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def chain(self) -> str:
        """The key its chain has."""
        return f"{self.run_id}/{self.shard}"


@dataclass(frozen=True, slots=True)
class ChainHead:
    """How long a chain is, and the hash of its last entry."""

    entries: int
    hash: str


_MOST_HEADS = 5_000  # remembered: 1 MB


class AuditTrail:
    """Appends to the chains; one trail serves many threads.

    It remembers the heads that it wrote last, of chains of runs only: a run's chain has one writer nearly always. That
    makes no chain less safe, as a head is written only in the place of the version that is remembered: where somebody
    else appended, or where it is not known whether the last write got through, the head is read again.
    """

    def __init__(self, store: RecordStore, last: dict[str, tuple[ChainHead, int]] | None = None) -> None:
        self._store = store
        self._last = {} if last is None else last

    def through(self, store: RecordStore) -> AuditTrail:
        """The same trail, with what it remembers, by way of another view of its store."""
        return AuditTrail(store, self._last)

    def operations(self, *entries: AuditEntry) -> tuple[Put, ...]:
        """The writes that append `entries`, for a transaction with what they tell of."""
        return self._appending(entries, {})[0]

    def _appending(
        self, entries: Sequence[AuditEntry], known: dict[str, tuple[ChainHead, int]]
    ) -> tuple[tuple[Put, ...], dict[str, tuple[ChainHead, int]]]:
        """The writes, and the heads with their versions once they are written; what is `known` is used up."""
        puts: list[Put] = []
        heads: dict[str, tuple[ChainHead, int]] = {}
        apart = Apart(self._store)
        by_chain: dict[str, list[AuditEntry]] = {}
        for entry in entries:
            by_chain.setdefault(entry.chain, []).append(entry)
        for chain, added in by_chain.items():
            last: tuple[ChainHead, int] | None = known.pop(chain, None)
            head, version = last if last is not None else self._head(chain)
            for entry in added:
                key = entry_key(chain, head.entries + 1)
                kept = to_body(entry)
                kept["facts"] = apart.without_people(kept["facts"], key)
                body = {**kept, "seq": head.entries + 1, "previous": head.hash}
                head = ChainHead(head.entries + 1, hash_of(body))
                puts.append(Put(Record(ENTRY, key, {**body, "hash": head.hash}), 0))
            puts.append(Put(record_of(HEAD, chain, head), version))
            heads[chain] = head, version + 1
        return (*puts, *apart.puts()), heads

    def _head(self, chain: str) -> tuple[ChainHead, int]:
        record = self._store.get(HEAD, chain)
        return (value_of(ChainHead, record), record.version) if record is not None else (ChainHead(0, ""), 0)

    def _remember(self, heads: Mapping[str, tuple[ChainHead, int]]) -> None:
        if len(self._last) > _MOST_HEADS:
            self._last.clear()
        self._last.update((chain, head) for chain, head in heads.items() if chain.partition("/")[0] not in OF_NO_RUN)

    def commit(self, operations: Sequence[Put | VersionCheck], *entries: AuditEntry) -> None:
        """Write `operations` and append `entries`, all or nothing; a race for the head of a chain is run again.

        Raises:
            VersionConflictError: an expectation of `operations` failed; nothing was changed.
        """

        def attempt() -> VersionConflictError | None:
            puts, heads = self._appending(entries, self._last)
            try:
                self._store.transact([*operations, *puts])
            except VersionConflictError as err:
                if not all(self._still_true(operation) for operation in operations):
                    return err
                raise
            self._remember(heads)
            return None

        refused = until_uncontested(attempt, "the audit")
        if refused is not None:
            raise refused

    def append(self, *entries: AuditEntry) -> None:
        """Append by themselves."""
        self.commit((), *entries)

    def heads(self, run_id: str) -> dict[str, ChainHead]:
        """The heads of a run's chains, by shard."""
        prefix = f"{run_id}/"
        return {
            record.key.removeprefix(prefix): value_of(ChainHead, record) for record in self._store.query(HEAD, prefix)
        }

    def _still_true(self, operation: Put | VersionCheck) -> bool:
        if isinstance(operation, Put):
            kind, key, expected = operation.record.kind, operation.record.key, operation.expect_version
        else:
            kind, key, expected = operation.kind, operation.key, operation.version
        record = self._store.get(kind, key)
        return (record.version if record is not None else 0) == expected


def entry_key(chain: str, seq: int) -> str:
    """Where the `seq`-th entry of a chain stands; keys sort as the entries follow."""
    return f"{chain}/{seq:08}"


def hash_of(body: Mapping[str, Any]) -> str:
    """The SHA-256 of an entry's body less its own hash, as canonical JSON."""
    hashed = {name: value for name, value in body.items() if name != "hash"}
    return hashlib.sha256(_canonical_json(hashed).encode()).hexdigest()


_canonical_json = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
