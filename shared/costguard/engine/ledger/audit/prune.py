"""The end of an audit's life: of runs that finished long ago, the contents of their chains are erased.

What stays of an entry is its place, its hash and that of the one before, so that a pruned chain still leads to the
head that its run anchored. That it was pruned is an entry of its own, written first, in the chain
`operator/retention`: a chain that lost its contents without one is told by `audit verify`.

Nothing is deleted, since no ledger of Costguard can delete: its roles need no permission for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from costguard.domain.errors import InvalidInputError, LedgerError
from costguard.engine.ledger.audit.audit import (
    ENTRY,
    OPERATOR,
    AuditEntry,
    AuditTrail,
    AuditWhat,
    ChainHead,
)
from costguard.engine.ledger.audit.people import WORDS
from costguard.engine.ledger.codec import from_body
from costguard.engine.ledger.contention import until_uncontested
from costguard.engine.ledger.runs import RUN, whole_run
from costguard.ports import Put, Record, RecordStore

SHORTEST = timedelta(days=90)
"""How long every audit is kept whole: whoever wants to hide what was done has to wait at least so long."""

RETENTION = "retention"
_KEPT = ("run_id", "shard", "seq", "previous", "hash")
_OF_AN_ENTRY = ("at", "run_id", "shard", "what", "facts")
_AT_ONCE = 40  # operations of a transaction, of 100: each entry may have words beside it


@dataclass(frozen=True, slots=True)
class Pruned:
    """Chains and entries whose contents were erased, now or by an earlier try that did not get through."""

    chains: int
    entries: int


@dataclass(frozen=True, slots=True)
class Declared:
    """What the audit says of a pruned chain: its head, when its run finished, and when it was pruned."""

    head: ChainHead
    finished_at: datetime
    at: datetime


def prune(store: RecordStore, older_than: timedelta, now: datetime) -> Pruned:
    """Erase the contents of every anchored chain whose run finished longer ago. Safe to repeat, and to break off.

    Raises:
        InvalidInputError: less than 90 days.
    """
    check_age(older_than)
    known = declared(store)
    chains = entries = 0
    for chain, head, finished_at in _old(store, now - older_than):
        whole = [record for record in store.query(ENTRY, f"{chain}/") if not is_pruned(record.body)]
        if not whole:
            continue
        if chain not in known:
            facts = {
                "did": "pruned",
                "chain": chain,
                "entries": head.entries,
                "head": head.hash,
                "finished_at": finished_at.isoformat(),
                "older_than_days": older_than.days,
            }
            AuditTrail(store).append(AuditEntry(now, OPERATOR, RETENTION, AuditWhat.RETENTION, facts))
        for start in range(0, len(whole), _AT_ONCE):
            _erase(store, whole[start : start + _AT_ONCE])
        chains, entries = chains + 1, entries + len(whole)
    return Pruned(chains, entries)


def check_age(older_than: timedelta) -> None:
    """Raise unless the audit is kept for long enough.

    Raises:
        InvalidInputError: less than 90 days.
    """
    if older_than < SHORTEST:
        message = f"an audit is kept whole for {SHORTEST.days} days at least, not {older_than.days}"
        raise InvalidInputError(message)


def prunable(store: RecordStore, older_than: timedelta, now: datetime) -> Pruned:
    """What `prune` would erase now. Nothing is changed.

    Raises:
        InvalidInputError: less than 90 days.
    """
    check_age(older_than)
    counts = [
        sum(not is_pruned(record.body) for record in store.query(ENTRY, f"{chain}/"))
        for chain, _, _ in _old(store, now - older_than)
    ]
    return Pruned(sum(count > 0 for count in counts), sum(counts))


def is_pruned(body: Mapping[str, Any]) -> bool:
    """Whether this entry's contents are gone."""
    return body.get("pruned") is True


def declared(store: RecordStore) -> dict[str, Declared]:
    """By chain, what the audit says was pruned; the first word counts, and one that cannot be read is none."""
    found: dict[str, Declared] = {}
    for record in store.query(ENTRY, f"{OPERATOR}/{RETENTION}/"):
        with suppress(LedgerError, KeyError, TypeError, ValueError):
            entry = from_body(AuditEntry, {name: record.body[name] for name in _OF_AN_ENTRY})
            facts = entry.facts
            head = ChainHead(int(facts["entries"]), str(facts["head"]))
            said = Declared(head, datetime.fromisoformat(facts["finished_at"]), entry.at)
            found.setdefault(str(facts["chain"]), said)
    return found


def _old(store: RecordStore, before: datetime) -> Iterator[tuple[str, ChainHead, datetime]]:
    for record in store.query(RUN):
        run = whole_run(store, record)
        if run.finished_at is not None and run.finished_at < before:
            for shard, head in run.heads.items():
                yield f"{run.run_id}/{shard}", head, run.finished_at


def _erase(store: RecordStore, records: list[Record]) -> None:
    def attempt() -> None:
        puts = [_stub(record) for record in records]
        for record in records:
            words = store.get(WORDS, record.key)
            if words is not None:
                puts.append(Put(Record(WORDS, record.key, {"by": "", "said": {}}, schema=words.schema), words.version))
        store.transact(puts)

    until_uncontested(attempt, "the audit")


def _stub(record: Record) -> Put:
    body = {name: record.body[name] for name in _KEPT if name in record.body}
    return Put(Record(ENTRY, record.key, {**body, "pruned": True}, schema=record.schema), record.version)
