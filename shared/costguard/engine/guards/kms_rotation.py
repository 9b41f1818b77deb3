"""The runner of `kms_rotation`: keys that are not rotated as asked are told of, and where a policy says so, mended."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from costguard.engine.guards.runner import GuardRun, GuardRunner, Planned, Port
from costguard.guards import KMS_ROTATION

if TYPE_CHECKING:
    from costguard.engine.notify.notices import Words
    from costguard.engine.run.run import RunReport
    from costguard.engine.run.run_context import ActionHandler, RunContext
    from costguard.engine.run.scan import Progress


def _run(world: RunContext, run_id: str, deadline: datetime | None) -> GuardRun:
    from costguard.engine.guards.keys.run import run_keys

    report = run_keys(world, run_id, deadline=deadline).report
    return GuardRun(_figures(report), report.plan)


def _plan(world: RunContext, run_id: str, progress: Progress) -> Planned:
    from costguard.engine.guards.keys.run import plan_keys

    return Planned(plan_keys(world, run_id, progress=progress)[1])


def _handler(world: RunContext) -> ActionHandler:
    from costguard.engine.guards.keys.handler import KeyHandler

    return KeyHandler(world.keys, world.rotators, world.memory, world.successors)


def _messages(world: RunContext) -> Words:
    from costguard.engine.guards.remediations import remediation_messages

    return remediation_messages(world.policy.kms_rotation)


def _figures(report: RunReport) -> dict[str, Any]:
    from costguard.engine.guards.keys.run import key_figures

    return key_figures(report)


RUNNER = GuardRunner(
    name=KMS_ROTATION,
    run=_run,
    plan=_plan,
    handler=_handler,
    messages=_messages,
    figures=_figures,
    ports=frozenset({Port.KEYS, Port.ROTATORS, Port.SUCCESSORS}),
    counts="key",
)
