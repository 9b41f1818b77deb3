"""What carries an action out: a last look that can still say no, then one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from costguard.cases import Case
from costguard.domain.actions import Action, Receipt
from costguard.domain.reasons import Reason, ReasonCode
from costguard.engine.memory import Memory
from costguard.policy.model import Policy
from costguard.ports import Check


@dataclass(frozen=True, slots=True)
class Cleared:
    """Nothing stands in the way: what must not change until the intent is written, and how the subject is now.

    `before` is kept with the intent: what an undo puts back.
    """

    unchanged: tuple[Check, ...]
    before: Mapping[str, str] = field(default_factory=dict)


class Hand(Protocol):
    """What acts on one kind of subject; `act` brings claims, caps, intents and outcomes to it."""

    def last_look(self, case: Case, action: Action, policy: Policy, now: datetime) -> Reason | Cleared:
        """Why not, after reading the subject again just before the call."""

    def call(self, action: Action) -> Receipt:
        """The one call; errors as `ActionExecutor.execute`."""


def people_heard(memory: Memory, case: Case, now: datetime) -> Reason | tuple[Check, ...]:
    """What people said that speaks against it; else the records of their word, which must stay as they are.

    It is read before everything else: whatever they say from then on fails the intent.
    """
    snooze, unsnoozed = memory.snoozes.of(str(case.subject), now)
    if snooze is not None:
        return Reason(ReasonCode.SNOOZED, {"until": snooze.until.isoformat(timespec="minutes")})
    switch, unturned = memory.switch.seen()
    if switch.paused:
        return Reason(ReasonCode.KILL_SWITCH, {"by": switch.by, "cause": switch.reason})
    passed, owned = memory.disowned.of(str(case.subject))
    if case.owner in passed:
        return Reason(ReasonCode.OWNER_CHANGED, {"before": case.owner})
    return (unsnoozed, unturned, owned)
