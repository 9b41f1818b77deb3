"""A run that is too early for a step, or for room under a cap, by a few minutes waits for it, and then plans again.

A wait counts from the delivered notice, seconds to minutes after the run began. With a wait as long as the time between
two runs, the next run would always be that much too early, and the step come one run later. So with caps: what the run
before did counts for 24 hours, seconds to minutes longer than a daily run takes to come.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from costguard.cases import Case, CaseStatus, Phase
from costguard.domain.reasons import ReasonCode
from costguard.guards.rules.common import Mode
from costguard.planning import Plan
from costguard.ports import Clock

_LOG = logging.getLogger(__name__)
WAITS_UP_TO = timedelta(minutes=5)
"""What telling people takes, and the jitter of timers; a third of the 15 minutes that function hosts grant."""
RoomAgain = Callable[[datetime], Iterable[datetime]]
_CAPPED = frozenset({ReasonCode.CAP_ACTIONS, ReasonCode.CAP_SHARE, ReasonCode.CAP_MONEY})
_TOLD_TO = timedelta(minutes=1)  # a reason names its moment by the minute, rounded down


def planned_when_due(
    clock: Clock,
    plan: Callable[[], Plan],
    room_again: Callable[[datetime], Iterable[datetime]],
    deadline: datetime | None,
) -> Plan:
    """What `plan` makes; where a step is due within minutes, or a cap has room by then, what it makes after that.

    Nothing is done before its time: the second plan is made like any other, from memory and the clock as they are then.
    At most half of what is left until the deadline is spent on it. `plan` is called once or twice; `room_again`, asked
    only where a cap holds something, says when what counts now counts no more.
    """
    made, now = plan(), clock.now()
    longest = WAITS_UP_TO if deadline is None else min(WAITS_UP_TO, (deadline - now) / 2)
    enforced = [step.after for step in made.transitions if step.after.mode is Mode.ENFORCE]
    awaited = [due for case in enforced if (due := _due(case)) is not None]
    if any(case.reason.code in _CAPPED for case in enforced):
        awaited += room_again(now)
    near = [at for at in awaited if now < at <= now + longest]
    if not near:
        return made
    until = max(near)
    _LOG.info("waiting for what is due within minutes", extra={"count": len(near), "until": until.isoformat()})
    clock.sleep((until - now).total_seconds())
    return plan()


def _due(case: Case) -> datetime | None:
    """When the step that a case waits for is surely due."""
    due = case.reason.facts.get("due")
    if case.status is not CaseStatus.OPEN or case.phase is not Phase.WAITING:
        return None
    if case.reason.code is not ReasonCode.WAITING or not isinstance(due, str):
        return None
    return datetime.fromisoformat(due) + _TOLD_TO
