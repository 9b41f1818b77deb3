"""Forgetting: of people at their wish, and of old chains' contents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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
from costguard.engine.ledger.audit.people import (
    OWN_WORDS,
    PERSON,
    SPEAKERS,
    WORDS,
    AuditPerson,
    AuditWords,
    erase_person,
    identity_of,
    people_in,
)
from costguard.engine.ledger.codec import from_body, record_of, until_uncontested, value_of
from costguard.engine.ledger.runs import RUN, whole_run
from costguard.ports import Put, Record, RecordStore

HOLDING_PEOPLE = (
    "approval",
    "case",
    "case_closed",
    "disowned",
    "exception_ask",
    "freeze_release",
    "haste",
    "intent",
    "launch",
    "notice",
    "policy_publication",
    "snooze",
    "switch",
    "told",
)
"""Kinds of records besides the audit that hold people's ids, names or words."""

_WITHDRAWN = {
    "approval": ("votes", "used_at"),
    "exception_ask": ("votes", ""),
    "haste": ("votes", ""),
    "policy_publication": ("agreed", "in_force_at"),
}
"""Lists of people's words that may still be waiting for others', and the field that says that they wait no more."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Whose key it was, and how many records no longer tell of them."""

    key: str
    records: int


def find_person(store: RecordStore, named: str) -> tuple[str, AuditPerson]:
    """The one person meant: by key, by id (`slack:T1/U7`, or `U7`), by name, or by mail address.

    Raises:
        InvalidInputError: nobody, or more than one.
    """
    wanted = identity_of(named.strip())[0]
    found = [
        (key, person)
        for key, person, _ in people_in(store)
        if person.id and wanted in {key, person.id, re.split(r"[:/]", person.id)[-1], *person.names}
    ]
    if len(found) > 1:
        message = f"{named!r} may be {', '.join(key for key, _ in found)}; name the key"
        raise InvalidInputError(message)
    if not found:
        message = f"the audit knows nobody as {named!r}; `costguard audit people` lists whom it knows"
        raise InvalidInputError(message)
    return found[0]


def forget(store: RecordStore, key: str, now: datetime) -> Forgotten:
    """Erase who that is, everywhere but in policies. Chains are not touched. Safe to repeat.

    Raises:
        InvalidInputError: there is no such key.
    """
    number, person = _person(store, key)
    count = 0
    if person.id:
        forms = _Forms.of(person)
        for kind in HOLDING_PEOPLE:
            for record in store.query(kind):
                count += _rewritten(store, record, forms, key)
    for record in store.query(WORDS):
        words = value_of(AuditWords, record)
        if key in words.by.split(", ") and words.said:
            erased = replace(words, said={}, forgotten_at=now)
            store.put(record_of(WORDS, record.key, erased), record.version)
            count += 1
    erase_person(store, number, now)  # last: until then a broken-off try can be repeated by name
    return Forgotten(key, count)


def _person(store: RecordStore, key: str) -> tuple[int, AuditPerson]:
    digits = key.removeprefix("person:")
    record = store.get(PERSON, f"{int(digits):08}") if digits.isdigit() else None
    if record is None:
        message = f"there is no {key!r}; `costguard audit people` lists whom the audit knows"
        raise InvalidInputError(message)
    return int(digits), value_of(AuditPerson, record)


@dataclass(frozen=True, slots=True)
class _Forms:
    """How the ledger writes one person: bare where a fact names a speaker, and by a proven id anywhere in a text.

    A bare name such as `ops` is left alone in texts: it would be taken for a team, a channel, or a word.
    """

    bare: frozenset[str]
    anywhere: re.Pattern[str] | None

    @classmethod
    def of(cls, person: AuditPerson) -> _Forms:
        bare = {person.id, f"cli:{person.id}", f"link:{person.id}", *person.names}
        proven = {f"{name} ({person.id})" for name in person.names}
        proven |= {form for form in bare if ":" in person.id or "@" in form}
        ordered = sorted((re.escape(form) for form in proven if form), key=len, reverse=True)
        pattern = re.compile(rf"(?<![\w.@-])(?:{'|'.join(ordered)})(?![\w@-])") if ordered else None
        return cls(frozenset(bare | proven), pattern)

    def without(self, text: str, name: str, key: str) -> str:
        """The text of one fact; who spoke is named by the key."""
        if name in SPEAKERS:
            return ", ".join(key if one in self.bare else one for one in text.split(", "))
        return text if self.anywhere is None else self.anywhere.sub(key, text)


def _rewritten(store: RecordStore, record: Record, forms: _Forms, key: str) -> bool:
    """Whether this record told of them; it does not any more."""

    def attempt() -> bool:
        current = store.get(record.kind, record.key)
        if current is None:
            return False
        body = _without(current, forms, key)
        if body == current.body:
            return False
        store.transact((Put(replace(current, body=body), current.version),))
        return True

    return until_uncontested(attempt, f"{record.kind} {record.key}")


def _without(record: Record, forms: _Forms, key: str) -> Mapping[str, Any]:
    body = dict(record.body)
    listed, settled = _WITHDRAWN.get(record.kind, ("", ""))
    if listed and not (settled and body.get(settled)):
        said: Sequence[Any] = body.get(listed) or ()
        body[listed] = [one for one in said if not (isinstance(one, Mapping) and one.get("by") in forms.bare)]
    found: Mapping[str, Any] = _replaced(body, "", forms, key)
    return found


def _replaced(value: Any, name: str, forms: _Forms, key: str) -> Any:
    if isinstance(value, str):
        return forms.without(value, name, key)
    if isinstance(value, Mapping):
        theirs = any(isinstance(value.get(one), str) and value[one] in forms.bare for one in SPEAKERS)
        return {
            inside: ""
            if theirs and inside in OWN_WORDS and isinstance(inner, str)
            else _replaced(inner, inside, forms, key)
            for inside, inner in value.items()
        }
    if isinstance(value, list):
        return [_replaced(inner, name, forms, key) for inner in value]
    return value


def known_people(store: RecordStore) -> Iterator[tuple[str, AuditPerson]]:
    """Whom the audit knows, by key, those it forgot among them."""
    for key, person, _ in people_in(store):
        yield key, person


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
