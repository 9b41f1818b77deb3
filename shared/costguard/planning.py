"""From findings and cases to a plan: what is due, what a rail holds, what is only rehearsed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from costguard.cases import Case
from costguard.domain.actions import Action
from costguard.domain.findings import Finding
from costguard.domain.reasons import Reason
from costguard.domain.resources import Gap


@dataclass(frozen=True, slots=True)
class Held:
    """An action that would be due but for a rail, and which."""

    action: Action
    reason: Reason


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What a gentler mode kept from happening."""

    action: Action
    reason: Reason


@dataclass(frozen=True, slots=True)
class Transition:
    """How a case moves in this run; `before` None opens it. Committed only if the record is still at its version."""

    before: Case | None
    after: Case


@dataclass(frozen=True, slots=True)
class Plan:
    """All a run has decided. Only `due` reaches the executor."""

    guard: str
    run_id: str
    planned_at: datetime
    policy_digest: str
    findings: tuple[Finding, ...]
    transitions: tuple[Transition, ...]
    due: tuple[Action, ...]
    held: tuple[Held, ...]
    rehearsed: tuple[Rehearsed, ...]
    gaps: tuple[Gap, ...]
    instances_seen: int = 0
