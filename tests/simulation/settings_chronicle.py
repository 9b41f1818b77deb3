"""What the world saw of keys and networks: who was shown what, what was called, what stood in the audit before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tests.simulation.chronicle import PolicyRead, Word
from tests.simulation.hub import Process
from tests.simulation.settings import SettingsVersion
from tests.simulation.store import MemoryLedger, Shelf

from costguard.domain.actions import Action
from costguard.domain.keys import EncryptionKey
from costguard.domain.network import NetworkInventory
from costguard.domain.refs import ResourceRef, Shard
from costguard.engine.ledger.codec import from_body
from costguard.ports import Put


@dataclass(frozen=True, slots=True)
class KeysShown:
    """Keys as a process was shown them, true `as_of` a moment that a stale read puts before it.

    `closely`: one key was asked for, just before a call. Not `complete`: an error, or pages that ended early.
    """

    process: Process
    number: int
    at: datetime
    as_of: datetime
    writes: int
    shard: Shard
    complete: bool
    keys: Mapping[ResourceRef, EncryptionKey]
    closely: bool = False
    faithful: bool = True


@dataclass(frozen=True, slots=True)
class NetworkShown:
    """The network of a shard as a process was shown it; None where it was not."""

    process: Process
    number: int
    at: datetime
    as_of: datetime
    writes: int
    shard: Shard
    complete: bool
    network: NetworkInventory | None
    faithful: bool = True


@dataclass(frozen=True, slots=True)
class Intended:
    """An intent as the audit has it: when it was written, by whom, and the action it is about."""

    number: int
    process: Process | None
    action: Action

    @property
    def undoes(self) -> str:
        """The action it takes back; empty for any other."""
        return self.action.parameters.get("undoes", "")


@dataclass(frozen=True, slots=True)
class Announced:
    """A notice that its channel took and that says what will be changed. `version` is what its writer went by."""

    number: int
    asked: datetime
    at: datetime
    subject: str
    rule: str
    title: str
    due: datetime | None
    version: SettingsVersion | None


@dataclass(slots=True)
class Call:
    """A change on its way to a cloud. `network` and `key` are the world's truth just before it and just after it."""

    process: Process
    number: int
    at: datetime
    kind: str
    subject: ResourceRef
    said: Mapping[str, str]
    writes: int
    last_write: int
    intent: Intended | None
    unanswered: bool = False
    refused: bool = False
    changed: bool = False
    network: tuple[NetworkInventory, NetworkInventory] | None = None
    imds_v1: tuple[bool | None, bool | None] = (None, None)

    @property
    def undoes(self) -> str:
        """The action it takes back; empty for any other."""
        return self.intent.undoes if self.intent is not None else ""


@dataclass(frozen=True, slots=True)
class Done:
    """What changed of something in the world: when, by whom, and how it is from then on."""

    number: int
    at: datetime
    by: str
    shard: Shard


@dataclass(slots=True)
class Book:
    """All of it, in order."""

    keys: list[KeysShown] = field(default_factory=list)
    networks: list[NetworkShown] = field(default_factory=list)
    policies: list[PolicyRead] = field(default_factory=list)
    intents: list[Intended] = field(default_factory=list)
    told: list[Announced] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    remembered: list[tuple[Process, str, int]] = field(default_factory=list)  # looks at addresses that the ledger has


class WatchedLedger(MemoryLedger):
    """A `MemoryLedger` that copies what the audit says of intents, and which looks at addresses are remembered."""

    def __init__(self, shelf: Shelf, book: Book, *, durable: bool = True) -> None:
        super().__init__(shelf, durable=durable)
        self._book = book

    def _put(self, put: Put) -> None:
        super()._put(put)
        record, shelf = put.record, self.shelf
        if record.kind == "audit" and record.body["what"] == "intent":
            self._book.intents.append(
                Intended(shelf.calls, shelf.writer, from_body(Action, record.body["facts"]["action"]))
            )
        elif record.kind == "network_sightings" and shelf.writer is not None:
            self._book.remembered.append((shelf.writer, record.key, shelf.calls))
