"""Reading the whole audit again and saying what does not hold together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from costguard.domain.errors import LedgerError
from costguard.engine.repositories.audit import ENTRY, HEAD, ChainHead, entry_key, hash_of
from costguard.engine.repositories.codec import value_of
from costguard.engine.repositories.runs import RUN, RunRecord
from costguard.ports import Record, RecordStore


@dataclass(frozen=True, slots=True)
class AuditVerdict:
    """How much was read, and every problem found; none means that the audit is whole."""

    entries: int
    chains: int
    problems: tuple[str, ...]


@dataclass(slots=True)
class _Chain:
    """What is known of one chain while its entries pass."""

    promised: dict[int, str] = field(default_factory=dict)  # position → hash, from heads and anchors
    has_head: bool = False
    entries: int = 0
    last_hash: str = ""


def verify(store: RecordStore) -> AuditVerdict:
    """Check every chain against itself, its head, and the anchor in its run. May run beside writers.

    Raises:
        LedgerError: the ledger cannot be read at all.
    """
    problems: list[str] = []
    chains: dict[str, _Chain] = {}
    for record in store.query(RUN):
        _promise(chains, _anchors(record, problems), problems)
    for record in store.query(HEAD):
        _promise(chains, _head(record, problems), problems)
        chains.setdefault(record.key, _Chain()).has_head = True
    count = 0
    for record in store.query(ENTRY):
        count += 1
        name = record.key.rpartition("/")[0]
        problems.extend(_follow(record, name, chains.setdefault(name, _Chain())))
    for name, chain in chains.items():
        problems.extend(_end(store, name, chain))
    return AuditVerdict(count, len(chains), tuple(problems))


def _anchors(record: Record, problems: list[str]) -> Mapping[str, ChainHead]:
    try:
        run = value_of(RunRecord, record)
    except LedgerError as err:
        problems.append(f"run {record.key}: its record cannot be read: {err}")
        return {}
    return {f"{run.run_id}/{shard}": head for shard, head in run.heads.items()}


def _head(record: Record, problems: list[str]) -> Mapping[str, ChainHead]:
    try:
        return {record.key: value_of(ChainHead, record)}
    except LedgerError as err:
        problems.append(f"{record.key}: its head cannot be read: {err}")
        return {}


def _promise(chains: dict[str, _Chain], heads: Mapping[str, ChainHead], problems: list[str]) -> None:
    for name, head in heads.items():
        promised = chains.setdefault(name, _Chain()).promised
        if promised.setdefault(head.entries, head.hash) != head.hash:
            problems.append(f"{name}: its head and the anchor in its run disagree on entry {head.entries}")


def _follow(record: Record, name: str, chain: _Chain) -> list[str]:
    """Take the next entry into its chain."""
    body = record.body
    expected = chain.entries + 1
    position = body.get("seq")
    problems: list[str] = []
    if record.key != entry_key(name, expected):
        problems.append(f"{record.key}: expected entry {expected} here: one is missing, or this one was added")
    if f"{body.get('run_id')}/{body.get('shard')}" != name or not isinstance(position, int):
        problems.append(f"{record.key}: says that it belongs to another chain")
    elif record.key != entry_key(name, position):
        problems.append(f"{record.key}: says that it is entry {position}: it was moved")
    if body.get("hash") != hash_of(body):
        problems.append(f"{record.key}: its content does not match its hash: it was changed")
    if body.get("previous") != chain.last_hash:
        problems.append(f"{record.key}: does not follow the entry before it")
    chain.entries = position if isinstance(position, int) else expected
    chain.last_hash = str(body.get("hash"))
    if chain.promised.pop(chain.entries, chain.last_hash) != chain.last_hash:
        problems.append(f"{record.key}: is not the entry that the chain's head or its run names")
    return problems


def _end(store: RecordStore, name: str, chain: _Chain) -> list[str]:
    """What is wrong once all entries of a chain have passed."""
    problems = [f"{name}: entry {position} and what follows it are missing" for position in chain.promised]
    record = store.get(HEAD, name)
    if record is None:
        return [*problems, f"{name}: has no head: it was removed, or the chain was added"]
    try:
        head = value_of(ChainHead, record)
    except LedgerError:
        return problems  # told when the heads were read
    if chain.entries > head.entries:  # entries written during this reading have moved the head as well
        problems.append(f"{name}: has {chain.entries} entries, its head says {head.entries}: one was added")
    return problems
