"""One run of the kms_rotation guard: look at every key, plan, mend what the policy lets be mended, and tell."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from costguard.domain.findings import Verdict
from costguard.engine.guards.keys.look import KeyLook, judged_keys, look_at_keys
from costguard.engine.guards.remediations import plan_remediations, remediation_figures
from costguard.engine.run.run import RunReport, carry_out, log_gaps
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import Progress, no_progress
from costguard.engine.run.scan_cursor import ScanCursor, cut_at, reading_until
from costguard.engine.run.shadows import with_remediation_shadows
from costguard.planning import Plan
from costguard.planning.remediation import Judged
from costguard.policy.model.policy import Policy

SEEN = "keys_seen"
_LOG = logging.getLogger(__name__)
_MOST_VIOLATIONS_LOGGED = 50  # `costguard keys` has them all


@dataclass(frozen=True, slots=True)
class KeyRun:
    """What a run of the guard found and did. `look` None: this run had been completed before."""

    report: RunReport
    look: KeyLook | None = None


def run_keys(
    world: RunContext,
    run_id: str,
    *,
    deadline: datetime | None = None,
    progress: Progress = no_progress,
) -> KeyRun:
    """One whole run. A run id that was completed before does nothing: events are delivered more than once."""
    if not world.memory.runs.begin(run_id, world.guard, world.clock.now()):
        return KeyRun(RunReport(run_id, None, duplicate=True))
    looked, plan = plan_keys(world, run_id, deadline=deadline, progress=progress, remember=True)
    log_gaps(looked)
    _log_violations(looked)
    return KeyRun(carry_out(world, plan, deadline=deadline), looked)


def plan_keys(
    world: RunContext,
    run_id: str,
    *,
    deadline: datetime | None = None,
    progress: Progress = no_progress,
    remember: bool = False,
) -> tuple[KeyLook, Plan]:
    """Look and plan; nothing is written but, to `remember`, which accounts there are and whose turn is next."""
    turns = ScanCursor(world.memory.store)
    begin_at = turns.first(world.guard) if deadline is not None else None
    looked = look_at_keys(
        world.readings,
        world.keys,
        world.targets,
        world.policy,
        world.clock,
        deadline=reading_until(world.clock.now(), deadline),
        progress=progress,
        workers=world.workers,
        begin_at=begin_at,
    )
    if begin_at is not None and remember:
        turns.keep(world.guard, cut_at(looked.gaps, begin_at))
    plan = plan_remediations(world, run_id, looked, world.policy.kms_rotation, deadline=deadline, remember=remember)
    in_shadow = (
        (rule, _judged(looked, replace(world.policy, kms_rotation=(rule,))))
        for rule in world.policy.shadows.kms_rotation
    )
    return looked, with_remediation_shadows(plan, looked.judged, in_shadow)


def _judged(looked: KeyLook, policy: Policy) -> list[Judged]:
    return [each for _, judged in judged_keys(looked.keys, policy, looked.now) for each in judged]


def key_figures(report: RunReport) -> dict[str, Any]:
    """The figures of a run for logs, metrics and the caller of a function; its findings are about keys."""
    return remediation_figures(report, seen=SEEN)


def _log_violations(looked: KeyLook) -> None:
    """A line for each violation, so that an alarm on the logs can name the key."""
    violations = [each for each in looked.report.lines if each.finding.verdict is Verdict.VIOLATION]
    for each in violations[:_MOST_VIOLATIONS_LOGGED]:
        finding = each.finding
        facts = {"key": str(finding.subject), "check": finding.check, "reason": finding.reason.code.value}
        _LOG.warning("a key is not as the policy asks", extra={**facts, "rule": finding.rule, "owner": finding.owner})
