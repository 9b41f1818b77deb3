"""What the world saw: who looked at what and was shown which truth, what was done, what people said and were told.

Written by the stand-ins of clouds, channel and ledger, never by the code under test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tests.simulation.hub import Process

from costguard.domain.actions import Verb
from costguard.domain.money import SpendScope
from costguard.domain.refs import Shard
from costguard.domain.resources import Instance, InstanceDetail
from costguard.ports import Choice


@dataclass(frozen=True, slots=True)
class Look:
    """A close look at one machine: what the cloud showed, true `as_of` a moment that a stale read puts before it."""

    process: Process
    number: int
    at: datetime
    as_of: datetime
    writes: int
    shown: InstanceDetail | None


@dataclass(frozen=True, slots=True)
class Listing:
    """A shard listed; `complete` when it was shown to the end, `shown` the machines in it by id."""

    process: Process
    number: int
    at: datetime
    complete: bool
    shown: Mapping[str, Instance]
    faithful: bool = True  # neither late nor short of a machine


@dataclass(frozen=True, slots=True)
class Measured:
    """The signals of one machine read up to `until`, by the reader's clock; not `whole` where the answer lacked it."""

    process: Process
    number: int
    at: datetime
    until: datetime
    whole: bool


@dataclass(frozen=True, slots=True)
class Blind:
    """The accounts of a cloud could not be listed."""

    process: Process
    number: int
    cloud: str


@dataclass(frozen=True, slots=True)
class BillRead:
    """The bill of one cloud asked for; `until`: up to when it was shown, None where it was not, or in part."""

    process: Process
    number: int
    at: datetime
    cloud: str
    scopes: Sequence[SpendScope]
    until: datetime | None


@dataclass(frozen=True, slots=True)
class PolicyRead:
    """A policy handed over: the number of its version; None where it could not be read or is broken."""

    process: Process
    number: int
    at: datetime
    writes: int
    version: int | None
    task: int = 0


@dataclass(frozen=True, slots=True)
class Effect:
    """Something costguard did to a machine. `changed` False: the cloud took the call and nothing was left to change."""

    process: Process
    number: int
    at: datetime
    verb: Verb
    machine: str
    resource: str
    action_id: str
    decision_id: str
    writes: int
    last_write: int
    changed: bool
    intent_written: bool
    task: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call on its way to a cloud, whatever became of it; `unanswered` when its sender cannot know."""

    at: datetime
    verb: Verb
    machine: str
    unanswered: bool
    process: Process
    guard: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """A message that its channel took, and the first moment it names for a step to come.

    `asked`: when the process sent it, which may have stood still for hours within that very call.
    """

    number: int
    asked: datetime
    at: datetime
    machines: frozenset[str]
    announces: frozenset[Verb]
    title: str
    not_before: datetime | None = None
    address: str = ""
    rule: str = ""
    period: str = ""
    notice_id: str = ""
    asked_number: int = 0


@dataclass(frozen=True, slots=True)
class Word:
    """What `by` said, acknowledged: `snooze`, `pause`, `resume`, `approve`, `stop_now`, `not_mine`."""

    number: int
    at: datetime
    what: str
    machine: str = ""
    until: datetime | None = None
    decision_id: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Offered:
    """One button that people can press, below a message about a machine, for as long as anybody scrolls back to it."""

    machine: str
    choice: Choice


@dataclass(slots=True)
class Chronicle:
    """All of it, in order."""

    looks: dict[str, list[Look]] = field(default_factory=dict)
    listings: dict[Shard, list[Listing]] = field(default_factory=dict)
    measured: dict[str, list[Measured]] = field(default_factory=dict)
    policies: list[PolicyRead] = field(default_factory=list)
    bills: list[BillRead] = field(default_factory=list)
    blind: list[Blind] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    shown: list[Told] = field(default_factory=list)  # on a console that proves nothing
    words: list[Word] = field(default_factory=list)
    offered: list[Offered] = field(default_factory=list)
    pressed: list[tuple[Offered, str, str, str]] = field(default_factory=list)  # by whom, of which team, where
