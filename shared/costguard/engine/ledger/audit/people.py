"""People in the audit: chains hold keys (`person:7`), and whose key that is stands apart, where it can be erased.

A key is the number of its person in this ledger: it says nothing of them, and no list of names can be tried against
it, as against a hash. What people gave as a reason is theirs too and stands apart, by the key of its entry. Erasing
either changes no chain. See docs/decisions/audit-people.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

from costguard.engine.ledger.audit.persons import PERSON, AuditPerson, Persons, person_key
from costguard.engine.ledger.codec import record_of, value_of
from costguard.ports import Put, Record, RecordStore

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
