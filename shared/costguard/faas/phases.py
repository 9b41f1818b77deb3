"""A run in phases, one function for each: `targets`, `scan`, `plan`, `act` and `report` are what Lambda calls.

Which phase a function is stands in its deployment (`costguard.faas.phases.scan` as the handler of the same bundle),
never in an event. An event says which run, by its time, and to `scan` and `act` which part of it: the number of a piece
of work that an earlier phase of that run wrote down. It names no account, no address and no action.

Values between phases are kept where `COSTGUARD_REPORTS` says, below `runs/`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from typing import IO, TYPE_CHECKING, Any

from typing_extensions import assert_never

from costguard.domain.errors import InvalidInputError, UnavailableError
from costguard.faas.handler import Handler, KeptSecrets, build_handler
from costguard.faas.invocation import kind_of
from costguard.guards import IDLE_GPU
from costguard.ports import Clock
from costguard.settings import Settings, process_settings

if TYPE_CHECKING:
    from costguard.engine.run.phases.phases import Phases

log = logging.getLogger(__name__)
GUARD = IDLE_GPU
_MOST_PARTS = 100_000  # five digits in the names of what parts leave


class RunPhase(str, Enum):
    """The phases of a run, in their order."""

    TARGETS = "targets"
    SCAN = "scan"
    PLAN = "plan"
    ACT = "act"
    REPORT = "report"


IN_PARTS = frozenset({RunPhase.SCAN, RunPhase.ACT})
"""Phases that an event tells the number of a part."""


def build_phase(
    phase: RunPhase,
    *,
    settings: Callable[[], Settings] = process_settings,
    clock: Clock | None = None,
    stream: IO[str] | None = None,
) -> Handler:
    """What a host calls with `(event, context)` for one phase of an idle-GPU run."""
    secrets = KeptSecrets()
    whole = phase is RunPhase.REPORT  # an alarm counts the runs that ended

    def handle(event: Any, context: Any) -> dict[str, object]:
        """Run the phase once."""
        asked = dict(event) if isinstance(event, Mapping) else {}
        part = asked.pop("part", None)

        def run(guard: str, run_id: str, deadline: datetime | None, now: Settings, watch: Clock) -> dict[str, object]:
            if "time" not in asked:
                raise InvalidInputError("a phase's event names its run by `time`; without one there is none to go on")
            number = _part(phase, part)
            figures = _run(phase, number, guard, run_id, deadline, now, watch)
            return {**figures, "part": number} if phase in IN_PARTS else figures

        serve = build_handler(
            GUARD, run=run, settings=settings, clock=clock, stream=stream, secrets=secrets, measured=whole
        )
        return serve(asked if isinstance(event, Mapping) else event, context)

    return handle


def _part(phase: RunPhase, part: object) -> int:
    if phase not in IN_PARTS:
        if part is not None:
            message = f"{phase.value} has no parts, and the event names one"
            raise InvalidInputError(message)
        return 0
    if isinstance(part, bool) or not isinstance(part, int) or not 0 <= part < _MOST_PARTS:
        message = f"{phase.value} is told the number of a part, found `part` {kind_of(part)}"
        raise InvalidInputError(message)
    return part


def _run(
    phase: RunPhase, part: int, guard: str, run_id: str, deadline: datetime | None, settings: Settings, clock: Clock
) -> dict[str, object]:
    from costguard.bootstrap import open_phase
    from costguard.connections.objects import open_objects
    from costguard.engine.run.phases.phases import Phases

    objects = open_objects(settings, clock)
    if objects is None:
        raise InvalidInputError("phases hand values to each other: COSTGUARD_REPORTS has to say where they are kept")
    first, may_act = phase is RunPhase.TARGETS, phase is RunPhase.ACT
    with open_phase(settings, guard, deadline, clock, first=first, may_act=may_act) as world:
        if settings.host != "local" and not world.memory.store.durable:
            raise InvalidInputError("phases need a ledger that all of them share: COSTGUARD_LEDGER")
        return _figures(phase, part, Phases(world, run_id, objects), deadline)


def _figures(phase: RunPhase, part: int, phases: Phases, deadline: datetime | None) -> dict[str, object]:
    if phase is RunPhase.TARGETS:
        parts = phases.targets()
        return {**_listed(parts or 0), "duplicate": parts is None}
    if phase is RunPhase.SCAN:
        return {"instances_seen": phases.scan(part, deadline)}
    if phase is RunPhase.PLAN:
        return _listed(phases.plan(deadline))
    if phase is RunPhase.ACT:
        return {"calls": phases.act(part, deadline)}
    if phase is RunPhase.REPORT:
        from costguard.engine.run.run import summary

        figures = summary(phases.report(deadline))
        if figures.get("gaps") and not figures.get("instances_seen"):
            message = f"no instance was seen, and {figures['gaps']} things could not be read"
            raise UnavailableError(message)  # all the rest was done; the host counts it as an error, and alarms
        return figures
    assert_never(phase)


def _listed(parts: int) -> dict[str, object]:
    """For the state machine to map over: numbers alone, 60 KB of its 256 for 10,000 parts."""
    return {"parts": list(range(parts))}


targets = build_phase(RunPhase.TARGETS)
scan = build_phase(RunPhase.SCAN)
plan = build_phase(RunPhase.PLAN)
act = build_phase(RunPhase.ACT)
report = build_phase(RunPhase.REPORT)
