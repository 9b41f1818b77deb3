"""Two guards, one machine: whoever's stop comes first does it, and the other neither warns again nor stops again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from costguard.cases import Case, CaseStatus, Phase, due_at
from costguard.cases.advance import GraceEnd
from costguard.domain.actions import Verb
from costguard.domain.reasons import Reason, ReasonCode
from costguard.guards.rules.common import Mode, Rung
from costguard.policy.diff.rule_changes import rule_from_terms


def merged(
    case: Case, wants: Verb, rungs: Sequence[Rung], others: Sequence[Case], now: datetime, grace_end: GraceEnd
) -> Reason | None:
    """Why another guard's case on the same run of the machine stands in for this step; None where none does.

    A case that only watches stands in for nothing, nor does one that is held: what keeps it may keep it for ever. A
    notice is left out where the owner was told already of a stop that comes no later; a stop, where the other's is
    under way.
    """
    for other in others:
        if other.mode is not Mode.ENFORCE or other.run_epoch != case.run_epoch:
            continue
        under_way = other.phase is not Phase.WAITING and other.climbed_at(Verb.WARN) is not None
        going_on = other.status is CaseStatus.OPEN
        if under_way or (going_on and wants is Verb.WARN and _no_later(other, rungs, now, grace_end)):
            return Reason(ReasonCode.MERGED, {"guard": other.guard, "rule": other.rule})
    return None


def _no_later(other: Case, rungs: Sequence[Rung], now: datetime, grace_end: GraceEnd) -> bool:
    mine = next((rung for rung in rungs if rung.verb is Verb.STOP), None)
    theirs = rule_from_terms(other.terms).rungs()
    pending = next((rung for rung in theirs[other.rung :] if rung.verb is Verb.STOP), None)
    if mine is None or pending is None or other.climbed_at(Verb.WARN) is None:
        return False
    return due_at(other, pending, grace_end) <= grace_end(now, mine.after)
