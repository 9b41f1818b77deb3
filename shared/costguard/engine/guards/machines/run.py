"""The runner of `idle_gpu`: idle machines are told of, stopped, copied and ended. Spent budgets act by its parts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from costguard.engine.guards.machines.handler import InstanceHandler, tag_keeps
from costguard.engine.guards.runner import GuardRunner, Port
from costguard.engine.ledger.runs import LookRepository
from costguard.engine.notify.notices import INSTANCE_WORDS, Words
from costguard.engine.run.close_reads import fit_to_tell
from costguard.engine.run.run import plan_from
from costguard.engine.run.run_context import RunContext, scan_in_turn
from costguard.engine.run.scan import Progress, Scan, scan
from costguard.engine.run.snapshots import LOOKED_AT, Looked, look_of
from costguard.guards import IDLE_GPU
from costguard.guards.rules.common import Limits, Mode, Selector
from costguard.guards.rules.idle import IdleBounds, IdleRule
from costguard.report.facts import ResourceSnapshot

_SHOWN_BACK = timedelta(days=14)


def see_machines(
    world: RunContext, *, deadline: datetime | None, progress: Progress, remember: bool, seen: Any = None
) -> Scan:
    """Every machine, as the rules and those in the shadow look at it."""
    rules = (*world.policy.idle_gpu, *world.policy.shadows.idle_gpu)
    return seen or scan_in_turn(world, rules, deadline, progress, remember=remember)


def machine_handler(world: RunContext) -> InstanceHandler:
    """What acts on machines."""
    return InstanceHandler(world.readings, world.executors, world.memory)


def machine_messages(world: RunContext) -> Words:
    """What people are told of machines."""
    del world
    return INSTANCE_WORDS


def shown_machines(world: RunContext, progress: Progress) -> Looked:
    """The machines, with the days that a report shows."""
    rules = (*world.policy.idle_gpu, _WATCHER)
    seen = scan(world.readings, world.targets, rules, world.clock, progress=progress, workers=world.workers)
    plan = plan_from(world, LOOKED_AT, seen)
    return Looked(look_of(plan, before=known_sights(world), facts=seen.facts))


def known_sights(world: RunContext) -> tuple[ResourceSnapshot, ...]:
    """What the last run of this guard kept of what it saw."""
    look = LookRepository(world.memory.store).get(world.guard)
    return () if look is None else look.sights


_WATCHER = IdleRule(
    name="",
    mode=Mode.OBSERVE,
    applies_to=Selector(resources=()),
    idle=IdleBounds(lasting=_SHOWN_BACK),
    ladder=(),
    limits=Limits(),
    digest="",
)
"""A rule for no machine: it has signals read as far back as a report shows days."""

RUNNER = GuardRunner(
    name=IDLE_GPU,
    see=see_machines,
    plan_of=plan_from,
    handler=machine_handler,
    messages=machine_messages,
    fit_to_tell=fit_to_tell,
    mark=tag_keeps,
    shown=shown_machines,
    ports=frozenset({Port.TRAILS, Port.EXECUTORS, Port.KEEP_TAGGERS}),
    one_look=True,
)
