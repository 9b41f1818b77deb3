"""The life of a launch freeze: announced, attached, and taken off again. Pure.

    off → announced (delivered, and the wait over) → attaching → on → detaching → off

It is begun and ended on certain figures only. What people did by hand stands: a policy they attached is never taken
off, and one they took off is not attached again in this period.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum

from typing_extensions import assert_never

from costguard.domain.actions import LaunchFreeze
from costguard.domain.money import Money


class FreezePhase(str, Enum):
    """Where a freeze is. `RELEASED`: people said no for this period; `FOREIGN`: somebody else's attachment holds."""

    OFF = "off"
    ANNOUNCED = "announced"
    ATTACHING = "attaching"
    ON = "on"
    DETACHING = "detaching"
    RELEASED = "released"
    FOREIGN = "foreign"


class FreezeWants(str, Enum):
    """What is to be done next."""

    ANNOUNCE = "announce"
    ATTACH = "attach"
    DETACH = "detach"


@dataclass(frozen=True, slots=True)
class FreezeState:
    """One freeze as remembered.

    `before` are the policies attached to the target before Costguard's; `since`: when it came into this phase;
    `announced` the notice it waits for; `of` what it was begun with, so that it can be ended when the policy no longer
    names it; `version` the ledger record's. `at` and `amount` are the share and the budget that it was begun at, None
    where an older program began it.
    """

    name: str
    phase: FreezePhase = FreezePhase.OFF
    budget: str = ""
    period: str = ""
    since: datetime | None = None
    announced: str = ""
    before: tuple[str, ...] = ()
    attempt: int = 0
    of: LaunchFreeze | None = None
    version: int = 0
    at: Decimal | None = None
    amount: Money | None = None


@dataclass(frozen=True, slots=True)
class FreezeSeen:
    """What one run sees of a freeze.

    `asked` None: the budget's figures are not certain, so nothing begins and nothing ends. `attached` are the policies
    attached to the target now, None where that could not be read. `delivered_at` is the proven delivery of the
    announcement.
    """

    now: datetime
    asked: bool | None
    budget: str
    period: str
    wait: timedelta
    policy: str
    attached: tuple[str, ...] | None
    delivered_at: datetime | None = None
    released: bool = False


def advance_freeze(state: FreezeState, seen: FreezeSeen) -> tuple[FreezeState, FreezeWants | None]:
    """The next state and what it wants done, at most one thing a run."""
    phase = state.phase
    if phase is FreezePhase.OFF:
        return _from_off(state, seen)
    if phase is FreezePhase.ANNOUNCED:
        return _from_announced(state, seen)
    if phase is FreezePhase.ATTACHING:
        if seen.attached is None:
            return state, None
        done = seen.policy in seen.attached
        return _to(state, FreezePhase.ON if done else FreezePhase.ANNOUNCED, seen), None
    if phase is FreezePhase.ON:
        return _from_on(state, seen)
    if phase is FreezePhase.DETACHING:
        if seen.attached is None:
            return state, None
        gone = seen.policy not in seen.attached
        return _to(state, _ended(seen) if gone else FreezePhase.ON, seen), None
    if phase is FreezePhase.RELEASED:
        return (state, None) if seen.period == state.period else (_to(state, FreezePhase.OFF, seen), None)
    if phase is FreezePhase.FOREIGN:
        return (_to(state, FreezePhase.OFF, seen), None) if seen.asked is False else (state, None)
    assert_never(phase)


def _from_off(state: FreezeState, seen: FreezeSeen) -> tuple[FreezeState, FreezeWants | None]:
    if seen.asked is not True or seen.released:
        return state, None
    begun = replace(_to(state, FreezePhase.ANNOUNCED, seen), attempt=state.attempt + 1, before=())
    return begun, FreezeWants.ANNOUNCE


def _from_announced(state: FreezeState, seen: FreezeSeen) -> tuple[FreezeState, FreezeWants | None]:
    if seen.released:
        return _to(state, FreezePhase.RELEASED, seen), None
    if seen.asked is False or seen.period != state.period:
        return _to(state, FreezePhase.OFF, seen), None
    over = seen.delivered_at is not None and seen.now >= seen.delivered_at + seen.wait
    if seen.asked is None or seen.attached is None or not over:
        return state, None
    if seen.policy in seen.attached:
        return _to(state, FreezePhase.FOREIGN, seen), None
    return replace(_to(state, FreezePhase.ATTACHING, seen), before=seen.attached), FreezeWants.ATTACH


def _from_on(state: FreezeState, seen: FreezeSeen) -> tuple[FreezeState, FreezeWants | None]:
    ends = seen.asked is False or seen.released or seen.period != state.period
    if seen.attached is None:
        return state, None
    if seen.policy not in seen.attached:  # somebody took it off
        return _to(state, FreezePhase.OFF if ends and not seen.released else FreezePhase.RELEASED, seen), None
    if not ends:
        return state, None
    return _to(state, FreezePhase.DETACHING, seen), FreezeWants.DETACH


def _ended(seen: FreezeSeen) -> FreezePhase:
    return FreezePhase.RELEASED if seen.released else FreezePhase.OFF


def _to(state: FreezeState, phase: FreezePhase, seen: FreezeSeen) -> FreezeState:
    """In another phase from now on; the budget and period are those under which a freeze was begun."""
    begins = phase is FreezePhase.ANNOUNCED and state.phase is FreezePhase.OFF
    released = phase is FreezePhase.RELEASED
    return replace(
        state,
        phase=phase,
        since=seen.now,
        budget=seen.budget if begins else state.budget,
        period=seen.period if begins or released else state.period,
    )
