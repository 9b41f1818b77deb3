"""One run of the network_audit guard: look at every network, plan, mend what the policy lets be mended, and tell."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from costguard.domain.findings import Verdict
from costguard.engine.guards.networks.look import NetworkLook, judged_networks, look_at_networks
from costguard.engine.guards.networks.sightings import SightingsRepository, first_seen
from costguard.engine.guards.remediations import plan_remediations, remediation_figures
from costguard.engine.run.run import RunReport, carry_out, log_gaps
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import Progress, no_progress
from costguard.engine.run.scan_cursor import ScanCursor, cut_at, reading_until
from costguard.engine.run.shadows import with_remediation_shadows
from costguard.planning import Plan

SEEN = "networks_seen"
_LOG = logging.getLogger(__name__)
_MOST_VIOLATIONS_LOGGED = 50  # `costguard networks` has them all


@dataclass(frozen=True, slots=True)
class NetworkRun:
    """What a run of the guard found and did. `look` None: this run had been completed before."""

    report: RunReport
    look: NetworkLook | None = None


def run_networks(
    world: RunContext,
    run_id: str,
    *,
    deadline: datetime | None = None,
    progress: Progress = no_progress,
) -> NetworkRun:
    """One whole run. A run id that was completed before does nothing: events are delivered more than once."""
    if not world.memory.runs.begin(run_id, world.guard, world.clock.now()):
        return NetworkRun(RunReport(run_id, None, duplicate=True))
    looked, plan = plan_networks(world, run_id, deadline=deadline, progress=progress, remember=True)
    SightingsRepository(world.memory.store).put(looked.sightings, looked.remembered)
    log_gaps(looked)
    _log_violations(looked)
    return NetworkRun(carry_out(world, plan, deadline=deadline), looked)


def plan_networks(
    world: RunContext,
    run_id: str,
    *,
    deadline: datetime | None = None,
    progress: Progress = no_progress,
    remember: bool = False,
) -> tuple[NetworkLook, Plan]:
    """Look and plan; nothing is written but, to `remember`, which accounts there are and whose turn is next."""
    turns = ScanCursor(world.memory.store)
    begin_at = turns.first(world.guard) if deadline is not None else None
    looked = look(world, deadline=reading_until(world.clock.now(), deadline), progress=progress, begin_at=begin_at)
    if begin_at is not None and remember:
        turns.keep(world.guard, cut_at(looked.gaps, begin_at))
    plan = plan_remediations(world, run_id, looked, world.policy.network_audit, deadline=deadline, remember=remember)
    unused = first_seen(looked.remembered, looked.now)
    in_shadow = (
        (
            rule,
            judged_networks(
                looked.inventories, looked.instances, replace(world.policy, network_audit=(rule,)), looked.now, unused
            ),
        )
        for rule in world.policy.shadows.network_audit
    )
    return looked, with_remediation_shadows(plan, looked.judged, in_shadow)


def look(
    world: RunContext,
    *,
    deadline: datetime | None = None,
    progress: Progress = no_progress,
    begin_at: str | None = None,
) -> NetworkLook:
    """One look with what is remembered of addresses; writes nothing."""
    remembered = SightingsRepository(world.memory.store).all()
    looked = look_at_networks(
        world.readings,
        world.networks,
        world.targets,
        world.policy,
        world.clock,
        first_seen=first_seen(remembered, world.clock.now()),
        deadline=deadline,
        progress=progress,
        workers=world.workers,
        begin_at=begin_at,
    )
    return replace(looked, remembered=remembered)


def network_figures(report: RunReport) -> dict[str, Any]:
    """The figures of a run for logs, metrics and the caller of a function."""
    return remediation_figures(report, seen=SEEN)


def _log_violations(looked: NetworkLook) -> None:
    """A line for each violation, so that an alarm on the logs can name the resource."""
    violations = [each for each in looked.report.worth if each.finding.verdict is Verdict.VIOLATION]
    for each in violations[:_MOST_VIOLATIONS_LOGGED]:
        finding = each.finding
        facts = {"resource": str(finding.subject), "check": finding.check, "reason": finding.reason.code.value}
        _LOG.warning(
            "a network is not as the policy asks", extra={**facts, "rule": finding.rule, "owner": finding.owner}
        )
