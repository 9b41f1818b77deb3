"""The life of one violation over days. Pure: a case, what was just seen, and the time in; the next case out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from costguard.domain.actions import Verb
from costguard.domain.reasons import Reason
from costguard.domain.refs import ResourceRef
from costguard.guards.rules import Mode


class CaseStatus(str, Enum):
    """`HELD` waits for something or somebody named in the reason; `CLOSED` is final."""

    OPEN = "open"
    HELD = "held"
    SNOOZED = "snoozed"
    CLOSED = "closed"


class Phase(str, Enum):
    """Where the current rung is: its wait runs, its action is claimed, or its effect is awaited."""

    WAITING = "waiting"
    CLAIMED = "claimed"
    CONFIRMING = "confirming"


@dataclass(frozen=True, slots=True)
class ClimbedRung:
    """A rung seen complete: a notice delivered, an instance seen stopped, every snapshot seen complete."""

    verb: Verb
    at: datetime


@dataclass(frozen=True, slots=True)
class Case:
    """One violation of one check on one subject, from the run that opened it to its end.

    `rung` indexes the rule's ladder; `since` is when the rung before was confirmed (the current wait
    runs from there); `climbed` are the rungs seen complete. `terms` is the rule as it was last applied,
    so that a changed rule can be told stricter or looser. `version` is the ledger record's.
    """

    case_id: str
    guard: str
    check: str
    rule: str
    rule_digest: str
    terms: str
    mode: Mode
    subject: ResourceRef
    run_epoch: str
    owner: str
    status: CaseStatus
    phase: Phase
    rung: int
    opened_at: datetime
    since: datetime
    reason: Reason
    climbed: tuple[ClimbedRung, ...] = ()
    claimed_at: datetime | None = None
    snoozed_until: datetime | None = None
    closed_at: datetime | None = None
    version: int = 0

    @property
    def key(self) -> str:
        """One open case per guard, check and subject."""
        return f"{self.guard}/{self.check}/{self.subject}"

    def climbed_at(self, verb: Verb) -> datetime | None:
        """When a rung of this kind was last confirmed."""
        return next((rung.at for rung in reversed(self.climbed) if rung.verb is verb), None)
