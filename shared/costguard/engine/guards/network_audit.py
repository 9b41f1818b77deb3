"""The runner of `network_audit`: what networks may not be is told of, and where a policy says so, mended."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from costguard.engine.guards.runner import GuardRun, GuardRunner, Planned, Port
from costguard.guards import NETWORK_AUDIT

if TYPE_CHECKING:
    from costguard.engine.notify.notices import Words
    from costguard.engine.run.run import RunReport
    from costguard.engine.run.run_context import ActionHandler, RunContext
    from costguard.engine.run.scan import Progress


def _run(world: RunContext, run_id: str, deadline: datetime | None) -> GuardRun:
    from costguard.engine.guards.networks.run import run_networks

    report = run_networks(world, run_id, deadline=deadline).report
    return GuardRun(_figures(report), report.plan)


def _plan(world: RunContext, run_id: str, progress: Progress) -> Planned:
    from costguard.engine.guards.networks.run import plan_networks

    return Planned(plan_networks(world, run_id, progress=progress)[1])


def _handler(world: RunContext) -> ActionHandler:
    from costguard.engine.guards.networks.run import NetworkHandler

    return NetworkHandler(world)


def _messages(world: RunContext) -> Words:
    from costguard.engine.guards.remediations import remediation_messages

    return remediation_messages(world.policy.network_audit)


def _figures(report: RunReport) -> dict[str, Any]:
    from costguard.engine.guards.networks.run import network_figures

    return network_figures(report)


RUNNER = GuardRunner(
    name=NETWORK_AUDIT,
    run=_run,
    plan=_plan,
    handler=_handler,
    messages=_messages,
    figures=_figures,
    ports=frozenset({Port.NETWORKS, Port.NETWORK_REMEDIATORS}),
    counts="network",
)
