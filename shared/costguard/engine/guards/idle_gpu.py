"""The runner of `idle_gpu`: idle machines are told of, stopped, copied and ended."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from costguard.engine.guards.runner import GuardRun, GuardRunner, Planned, Port
from costguard.guards import IDLE_GPU

if TYPE_CHECKING:
    from costguard.engine.notify.notices import Words
    from costguard.engine.run.run_context import ActionHandler, RunContext
    from costguard.engine.run.scan import Progress
    from costguard.engine.run.snapshots import Looked
    from costguard.planning import Plan


def _run(world: RunContext, run_id: str, deadline: datetime | None) -> GuardRun:
    from costguard.engine.run.run import run, summary

    report = run(world, run_id, deadline=deadline)
    return GuardRun(summary(report), report.plan)


def _plan(world: RunContext, run_id: str, progress: Progress) -> Planned:
    from costguard.engine.run.run import make_plan

    return Planned(make_plan(world, run_id, progress=progress))


def _look(world: RunContext, progress: Progress) -> Looked:
    from costguard.engine.digest import look_at_machines

    return look_at_machines(world, progress)


def machine_handler(world: RunContext) -> ActionHandler:
    """What acts on machines."""
    from costguard.engine.guards.machines.handler import InstanceHandler

    return InstanceHandler(world.readings, world.executors, world.memory)


def machine_messages(world: RunContext) -> Words:
    """What people are told of machines."""
    from costguard.engine.notify.notices import INSTANCE_WORDS

    del world
    return INSTANCE_WORDS


def fit_to_tell(world: RunContext, plan: Plan, deadline: datetime | None) -> Plan:
    """Without the warnings of what a cloud protects."""
    from costguard.engine.run import close_reads

    return close_reads.fit_to_tell(world, plan, deadline)


RUNNER = GuardRunner(
    name=IDLE_GPU,
    run=_run,
    plan=_plan,
    look=_look,
    handler=machine_handler,
    messages=machine_messages,
    fit_to_tell=fit_to_tell,
    ports=frozenset({Port.TRAILS, Port.EXECUTORS, Port.KEEP_TAGGERS}),
    one_look=True,
)
