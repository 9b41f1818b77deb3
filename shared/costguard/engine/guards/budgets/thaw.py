"""`costguard budgets thaw`: people's word that a launch freeze is not wanted in this period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from costguard.domain.errors import InvalidInputError
from costguard.engine.ledger.memory import Memory
from costguard.guards.budget.rules import BudgetRule, period_at
from costguard.planning.freeze import FreezePhase, FreezeState
from costguard.policy.model.policy import Policy

_ENDED = frozenset({FreezePhase.OFF, FreezePhase.RELEASED})


@dataclass(frozen=True, slots=True)
class Thawed:
    """What was released: the freeze as it stood, and the period for which it is not wanted."""

    state: FreezeState
    period: str


def thaw(memory: Memory, policy: Policy, name: str, by: str, reason: str, now: datetime) -> Thawed:
    """Release a freeze for the present period of its budget; the next run takes it off, or does not begin it.

    Safe to repeat.

    Raises:
        InvalidInputError: nobody knows such a freeze, or several budgets ask for it and none has begun it.
    """
    state = memory.freezes.get(name)
    asking = [rule for rule in policy.budgets if any(name in step.freezes for step in rule.steps)]
    known = sorted({*(each.name for each in policy.launch_freezes), *(each.name for each in memory.freezes.all())})
    if name not in known:
        there = f"there is {', '.join(known)}" if known else "neither the policy nor the ledger has any"
        message = f"there is no launch freeze {name!r}; {there}"
        raise InvalidInputError(message)
    period = _period(state, asking, now)
    memory.freezes.release(name, period, by, reason, now)
    return Thawed(state, period)


def _period(state: FreezeState, asking: Sequence[BudgetRule], now: datetime) -> str:
    """The present period of the budget that began it, or of the only one that could."""
    begun = next((rule for rule in asking if rule.name == state.budget), None)
    if begun is None and state.phase not in _ENDED:
        return state.period  # the policy no longer has that budget: it is ending already
    periods = {}
    for rule in asking if begun is None else (begun,):
        found = period_at(rule.period, now)
        if found is not None:
            periods[rule.name] = found.key
    if len(set(periods.values())) == 1:
        return next(iter(periods.values()))
    if not periods:
        message = f"no budget of the policy asks for {state.name} now, so there is nothing to release"
    else:
        message = (
            f"{' and '.join(sorted(periods))} ask for {state.name} over different periods, and none of them has begun "
            "it: take it out of the budget where it is not wanted"
        )
    raise InvalidInputError(message)
