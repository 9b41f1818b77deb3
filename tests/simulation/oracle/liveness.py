"""Once faults stop: every claim is resolved within three runs, and nothing idle is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.simulation.hub import Process
from tests.simulation.oracle import truth
from tests.simulation.oracle.judge import Violation
from tests.world_ports.translate import to_product

from cloudstand.world.kinds import InstanceState, SnapshotState
from costguard.cases import Case, CaseStatus, Phase
from costguard.domain.actions import Verb
from costguard.domain.findings import Verdict
from costguard.domain.reasons import ReasonCode
from costguard.engine.run.run import RunReport
from costguard.guards.rules.common import Mode

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation


def silent_gaps(simulation: Simulation, report: RunReport, process: Process, since: int = 0) -> Iterator[Violation]:
    """Rule 3: a shard that was not listed to its end is a gap in the report, never an empty shard.

    `since`: the call from which on the process looked at what it reports.
    """
    if report.plan is None:
        return
    told = {gap.shard for gap in report.plan.gaps if gap.what == "inventory"}
    for shard, listings in simulation.chronicle.listings.items():
        mine = [listing for listing in listings if listing.process is process and listing.number >= since]
        if mine and not mine[-1].complete and shard not in told:
            yield Violation(3, simulation.hub.now, str(shard), "it was not listed to its end, and the report is silent")


def unresolved(simulation: Simulation) -> Iterator[Violation]:
    """Cases that the last report shows as under way although the world has nothing under way for them."""
    for reports in simulation.reports.values():
        yield from _unresolved(simulation, reports[-1] if reports else None)


def _unresolved(simulation: Simulation, report: RunReport | None) -> Iterator[Violation]:
    if report is None or report.plan is None:
        yield Violation(0, simulation.hub.now, "-", "the last quiet run made no plan")
        return
    for step in report.plan.transitions:
        case = step.after
        if case.phase is Phase.WAITING or case.status in {CaseStatus.HELD, CaseStatus.CLOSED}:
            continue
        if case.claimed_at is not None and simulation.hub.now - case.claimed_at < timedelta(hours=2):
            continue  # claimed by the very run that reports it
        if not _under_way(simulation, case):
            what = f"{case.status.value} {case.phase.value} since {case.claimed_at}: nobody will ever resolve it"
            yield Violation(0, simulation.hub.now, case.subject.native_id, what)


def _under_way(simulation: Simulation, case: Case) -> bool:
    machine = simulation.world.machines.get(case.subject.native_id)
    if machine is None or machine.state in {InstanceState.STOPPING, InstanceState.TERMINATING}:
        return True
    copies = simulation.world.snapshots.values()
    return any(copy.machine == machine.native_id and copy.state is SnapshotState.PENDING for copy in copies)


def forgotten(simulation: Simulation) -> Iterator[Violation]:
    """Machines that stand idle, that nothing protects and no report explains."""
    reports = simulation.reports["idle_gpu"]
    report = reports[-1] if reports else None
    if report is None or report.plan is None:
        yield Violation(0, simulation.hub.now, "-", "the last quiet run made no plan")
        return
    now = simulation.hub.now
    version = simulation.versions[simulation.version]
    held = {step.after.subject.native_id for step in report.plan.transitions if step.after.status is CaseStatus.HELD}
    snoozed = {
        step.after.subject.native_id for step in report.plan.transitions if step.after.status is CaseStatus.SNOOZED
    }
    yield from _stuck(simulation, report)
    found = {str(finding.subject): finding for finding in report.plan.findings}
    for machine in simulation.world.machines.values():
        ref = machine.spec.ref
        if machine.state is not InstanceState.RUNNING or machine.native_id in held | snoozed:
            continue
        shown = simulation.clouds.whole([to_product(ref)]).get(to_product(ref))
        if shown is None or truth.why_untouchable(shown, version, now, Verb.STOP):
            continue
        rule = truth.rule_of(shown, version)
        if rule is None or truth.why_not_idle(machine, timedelta(hours=rule.lasting), now - timedelta(minutes=1)):
            continue
        finding = found.get(str(ref))
        if finding is not None and finding.reason.code is ReasonCode.CONTRADICTED:
            if not truth.works_beside(machine, timedelta(hours=rule.lasting), now):
                yield Violation(0, now, machine.native_id, "idle in every respect, and called contradicted")
            continue
        if finding is None or finding.verdict is not Verdict.VIOLATION:
            yield Violation(0, now, machine.native_id, f"idle, and the report says {finding and finding.reason.code}")
        elif rule.mode == "enforce" and rule.stop is not None and not machine.spec.one_time_spot:
            yield Violation(0, now, machine.native_id, "idle, due long ago, neither stopped nor held")


def _stuck(simulation: Simulation, report: RunReport) -> Iterator[Violation]:
    """Open cases that had all the time in the world and neither moved on, nor ended, nor say what they wait for."""
    version = simulation.versions[simulation.version]
    if report.plan is None or version.working_hours:
        return
    moved_or_said = {  # the plan's case is of before: of one called about, or seen to be protected in the last look
        each.action.case_id
        for each in report.results
        if each.outcome is not None or (each.reason is not None and each.reason.code is ReasonCode.PROTECTED_BY_CLOUD)
    }
    for step in report.plan.transitions:
        case = step.after
        says = case.reason.code is ReasonCode.LADDER_DONE or case.case_id in moved_or_said
        waits = case.status is CaseStatus.OPEN and not says
        old = simulation.hub.now - case.opened_at > timedelta(days=15)
        if waits and old and case.mode is Mode.ENFORCE and case.since < simulation.hub.now - timedelta(days=6):
            what = f"open on rung {case.rung} since {case.since:%m-%d %H:%M}: {case.reason.code.value}"
            yield Violation(0, simulation.hub.now, case.subject.native_id, what)
