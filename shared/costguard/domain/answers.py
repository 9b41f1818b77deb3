"""What people say back to a notice, and who they are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum


class AnswerKind(str, Enum):
    """`STOP_NOW` ends the wait for a stop; `APPROVE` lets one waiting decision pass; neither lifts another rail.

    `NOT_MINE` asks for the next owner. A `KEEP` beats the others and every action not yet claimed.
    """

    KEEP = "keep"
    STOP_NOW = "stop_now"
    APPROVE = "approve"
    NOT_MINE = "not_mine"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody as a channel proved them: `via` is `slack`, `link` or `cli`; `team` the workspace they belong to.

    A signed link proves only who was sent it: its `id` is the address it went to.
    """

    via: str
    id: str
    team: str = ""
    name: str = ""

    def __str__(self) -> str:
        """As the ledger keeps them; two votes of one text are one person's."""
        return f"{self.via}:{self.team}/{self.id}" if self.team else f"{self.via}:{self.id}"


@dataclass(frozen=True, slots=True)
class AnswerRef:
    """What an answer is bound to: one decision of one case. As text it is what a button or link carries."""

    case_id: str
    decision_id: str

    def __str__(self) -> str:
        """`CASE/DECISION`."""
        return f"{self.case_id}/{self.decision_id}"

    @classmethod
    def parse(cls, text: str) -> AnswerRef | None:
        """The reference that `text` is, or None."""
        case_id, slash, decision_id = text.partition("/")
        plain = all(part.isascii() and part.isalnum() and len(part) <= _LONGEST_ID for part in (case_id, decision_id))
        return cls(case_id, decision_id) if slash and plain else None


_LONGEST_ID = 64


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of one person. `length` is how long to keep, for a `KEEP` only."""

    kind: AnswerKind
    of: AnswerRef
    by: Person
    at: datetime
    length: timedelta | None = None
    reason: str = ""
