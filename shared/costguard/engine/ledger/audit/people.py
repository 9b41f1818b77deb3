"""People in the audit: chains hold keys (`person:7`), and whose key that is stands apart, where it can be erased.

Finding somebody takes two requests however many there are. The index is kept by whoever writes somebody new, in the
same transaction, and holds nobody who was forgotten. Where an older Costguard wrote, or still does, it is made good
when somebody new comes: there is no count of people, or the next number is taken.

A key is the number of its person in this ledger: it says nothing of them, and no list of names can be tried against
it, as against a hash. What people gave as a reason is theirs too and stands apart, by the key of its entry. Erasing
either changes no chain. See docs/decisions/audit-people.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from costguard.engine.ledger.codec import record_of, until_uncontested, value_of
from costguard.ports import Put, Record, RecordStore

PERSON = "audit_person"
INDEX, COUNT = "audit_person_index", "audit_person_count"
_ALL = "all"  # the one record of the count
_PIECES = 64  # of the index: 6,000 people each fit DynamoDB's 400 KB


@dataclass(frozen=True, slots=True)
class AuditPerson:
    """Whose key it is: `id` as their channel proved it, and the names they had; both empty once forgotten."""

    id: str
    names: tuple[str, ...] = ()
    forgotten_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Piece:
    """Numbers by id, of the people whose ids fall into it."""

    numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Count:
    people: int


def person_key(number: int) -> str:
    """The key of the `number`-th person of a ledger."""
    return f"person:{number}"


def people_in(store: RecordStore) -> Iterator[tuple[str, AuditPerson, int]]:
    """Every person: key, who it is, and the version of that record; in the order in which they first came."""
    for record in store.query(PERSON):
        yield person_key(int(record.key)), value_of(AuditPerson, record), record.version


def erase_person(store: RecordStore, number: int, now: datetime) -> None:
    """Forget who has this number, and take them out of the index. Safe to repeat."""

    def attempt() -> None:
        record = store.get(PERSON, _key(number))
        person = value_of(AuditPerson, record) if record is not None else None
        if record is None or person is None or person.forgotten_at is not None:
            return
        puts = [Put(record_of(PERSON, record.key, AuditPerson("", (), now)), record.version)]
        piece = store.get(INDEX, _piece_of(person.id))
        if piece is not None:
            others = {who: one for who, one in value_of(_Piece, piece).numbers.items() if who != person.id}
            puts.append(Put(record_of(INDEX, piece.key, _Piece(others)), piece.version))
        store.transact(puts)

    until_uncontested(attempt, person_key(number))


class Persons:
    """The people of one transaction: their numbers, and what must be written for those who are new or newly called."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._known: dict[str, tuple[int, AuditPerson, int]] = {}
        self._pieces: dict[str, tuple[_Piece, int]] = {}
        self._count: tuple[int, int] | None = None
        self._puts: dict[tuple[str, str], Put] = {}

    def number_of(self, who: str, name: str) -> int:
        """Their number in this ledger; somebody new gets the next, and a name that is new is kept.

        Raises:
            VersionConflictError: another process wrote the index at this moment; try again.
        """
        known = self._known.get(who) or self._found(who) or self._added(who)
        number, person, version = known
        if version == 0 or (name and name not in person.names):
            person = replace(person, names=(*person.names, *([name] if name and name not in person.names else [])))
            self._puts[PERSON, _key(number)] = Put(record_of(PERSON, _key(number), person), version)
        self._known[who] = number, person, version
        return number

    def puts(self) -> Iterator[Put]:
        """What must be written in the same transaction."""
        yield from self._puts.values()

    def _found(self, who: str) -> tuple[int, AuditPerson, int] | None:
        number = self._piece(_piece_of(who))[0].numbers.get(who)
        record = self._store.get(PERSON, _key(number)) if number is not None else None
        person = value_of(AuditPerson, record) if record is not None else None
        if number is None or record is None or person is None or person.id != who:
            return None
        return number, person, record.version

    def _added(self, who: str) -> tuple[int, AuditPerson, int]:
        count, version = self._counted()
        if self._count is None and (version == 0 or self._store.get(PERSON, _key(count + 1)) is not None):
            count, version = self._made_good()
            known = self._found(who)
            if known is not None:
                return known
        number, key = count + 1, _piece_of(who)
        piece, piece_version = self._piece(key)
        self._pieces[key] = _Piece({**piece.numbers, who: number}), piece_version
        self._count = number, version
        person = AuditPerson(who)
        self._puts[PERSON, _key(number)] = Put(record_of(PERSON, _key(number), person), 0)
        self._puts[INDEX, key] = Put(record_of(INDEX, key, self._pieces[key][0]), piece_version)
        self._puts[COUNT, _ALL] = Put(record_of(COUNT, _ALL, _Count(number)), version)
        return number, person, 0

    def _counted(self) -> tuple[int, int]:
        if self._count is not None:
            return self._count
        record = self._store.get(COUNT, _ALL)
        return (value_of(_Count, record).people, record.version) if record is not None else (0, 0)

    def _piece(self, key: str) -> tuple[_Piece, int]:
        if key not in self._pieces:
            record = self._store.get(INDEX, key)
            self._pieces[key] = (value_of(_Piece, record), record.version) if record is not None else (_Piece(), 0)
        return self._pieces[key]

    def _made_good(self) -> tuple[int, int]:
        """Write the index of everybody there is, and their count last; both as they stand now."""
        pieces: dict[str, dict[str, int]] = {}
        last = 0
        for key, person, _ in people_in(self._store):
            last = int(key.rpartition(":")[2])
            if person.id:
                pieces.setdefault(_piece_of(person.id), {})[person.id] = last
        known = self._store.get_many(INDEX, pieces)
        for key, numbers in pieces.items():
            record = known.get(key)
            if record is None or value_of(_Piece, record).numbers != numbers:
                self._store.put(record_of(INDEX, key, _Piece(numbers)), record.version if record is not None else 0)
        count, version = self._counted()
        if count != last:
            version = self._store.put(record_of(COUNT, _ALL, _Count(last)), version).version
        self._pieces.clear()
        return last, version


def _key(number: int) -> str:
    return f"{number:08}"


def _piece_of(who: str) -> str:
    half_by_half = who.encode("utf-16", "surrogatepass")  # two halves of a character are read again as the whole
    return f"{sha256(half_by_half).digest()[0] % _PIECES:02}"


WORDS = "audit_words"
APART = "kept apart"
"""What stands in an entry in the place of somebody's own words."""

_KEYS = re.compile(r"\bperson:[0-9]+\b")
SPEAKERS = ("by", "approver")
"""Facts that name somebody who said something."""

OWN_WORDS = ("reason", "cause", "note")
"""Facts that are that person's own words, where they stand beside one of those."""

_SEVERAL = ", "
_NAMED = re.compile(r"(?P<name>.+) \((?P<id>(?:slack|link|cli):[^()]+)\)")
_MAILBOX = re.compile(r"mailto:[^\s/@:]+@[^\s/:,]+|slack:U[A-Z0-9]{6,20}\b")
_WEB = re.compile(r"(https?://[^/\s]+)/\S+")


@dataclass(frozen=True, slots=True)
class AuditWords:
    """What `by` gave as reason for one entry, by the name of the fact."""

    by: str
    said: Mapping[str, str] = field(default_factory=dict)
    forgotten_at: datetime | None = None


def identity_of(text: str) -> tuple[str, str]:
    """Who somebody is and what they are called, as the ledger writes people: `slack:T/U`, `Ana (slack:T/U)`, `ana`."""
    named = _NAMED.fullmatch(text)
    name, who = (named["name"], named["id"]) if named is not None else ("", text)
    for prefix in ("cli:", "link:"):
        who = who.removeprefix(prefix)
    return who, name


def who_is(store: RecordStore, key: str) -> str:
    """The person of a key as the ledger writes people; the key itself where they were forgotten, or never known."""
    kind, _, number = key.partition(":")
    record = store.get(PERSON, f"{int(number):08}") if kind == "person" and number.isdigit() else None
    return (value_of(AuditPerson, record).id or key) if record is not None else key


def told_again(store: RecordStore, entry: Record) -> dict[str, Any]:
    """The facts of an entry with people and their words in their places, as far as they were not forgotten."""
    kept = store.get(WORDS, entry.key)
    said = value_of(AuditWords, kept).said if kept is not None else {}

    def restored(facts: Mapping[str, Any], path: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in facts.items():
            if isinstance(value, Mapping):
                found[name] = restored(value, f"{path}{name}.")
            elif isinstance(value, str) and f"{path}{name}" not in said:
                found[name] = _KEYS.sub(lambda key: who_is(store, key[0]), value)
            else:
                found[name] = said.get(f"{path}{name}", value)
        return found

    return restored(entry.body.get("facts") or {}, "")


class Apart:
    """Takes people out of the entries of one transaction, and gives what is to be written beside them."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._persons = Persons(store)
        self._words: list[Put] = []

    def without_people(self, facts: Mapping[str, Any], entry_key: str) -> dict[str, Any]:
        """The facts with keys for people, and without their words."""
        words: dict[str, str] = {}
        speakers: list[str] = []
        found = self._object(facts, "", words, speakers)
        if words:
            said = AuditWords(speakers[0] if speakers else "", words)
            self._words.append(Put(record_of(WORDS, entry_key, said), 0))
        return found

    def puts(self) -> Iterable[Put]:
        """What must be written in the same transaction."""
        return (*self._persons.puts(), *self._words)

    def _object(
        self, facts: Mapping[str, Any], path: str, words: dict[str, str], speakers: list[str]
    ) -> dict[str, Any]:
        spoken = any(isinstance(facts.get(name), str) and facts[name] for name in SPEAKERS)
        found: dict[str, Any] = {}
        for name, value in facts.items():
            if isinstance(value, Mapping):
                found[name] = self._object(value, f"{path}{name}.", words, speakers)
            elif not isinstance(value, str) or not value:
                found[name] = value
            elif name in SPEAKERS:
                found[name] = _SEVERAL.join(self._key_of(one) for one in value.split(_SEVERAL))
                speakers.append(found[name])
            elif name in OWN_WORDS and spoken:
                words[f"{path}{name}"] = value
                found[name] = APART
            else:
                found[name] = self._without_addresses(value)
        return found

    def _without_addresses(self, text: str) -> str:
        """Without mailboxes and direct messages, and of web addresses only the host: a path may hold a token."""
        text = _MAILBOX.sub(lambda found: self._key_of(found[0]), text)
        return _WEB.sub(lambda found: f"{found[1]}/…{sha256(found[0].encode()).hexdigest()[:8]}", text)

    def _key_of(self, text: str) -> str:
        return person_key(self._persons.number_of(*identity_of(text)))
