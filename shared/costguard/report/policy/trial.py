"""A test of a policy: run by the judge, the cases and the planner that every run uses, and told where it fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.cases import Case, CaseStatus, due_at, ladder
from costguard.cases.advance import plain_time
from costguard.cases.case import climbed
from costguard.domain.actions import Verb
from costguard.domain.findings import Finding, InstanceFact, ShardFacts
from costguard.domain.reasons import Reason
from costguard.domain.resources import Instance, InstanceDetail, InstanceState, Snapshot, SnapshotState, Volume
from costguard.guards import IDLE_GPU
from costguard.planning import Plan, PlanInputs, build_plan
from costguard.policy.model.policy import Policy
from costguard.policy.trial.documents import TestDocument, TrialOutcome, described_fact, described_launch, written_value

_FIRST_LOOK = timedelta(minutes=1)  # a machine is seen idle just before its owner is told


@dataclass(frozen=True, slots=True)
class Came:
    """What came of the machine. `problem` says why what is to have happened before could not; else it is empty."""

    finding: Finding
    step: str = ""
    outcome: TrialOutcome = TrialOutcome.NONE
    held: Reason | None = None
    next_at: datetime | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Missed:
    """One expectation that was not met."""

    key: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class Trial:
    """One test and what came of it; it passed where nothing was missed and its story was possible."""

    path: str
    line: int
    name: str
    came: Came
    missed: tuple[Missed, ...]

    @property
    def passed(self) -> bool:
        """Whether all of it was as expected."""
        return not self.missed and not self.came.problem


def tried(policy: Policy, test: TestDocument, path: str = "", line: int = 1) -> Trial:
    """Run one test."""
    came = _came(policy, test)
    return Trial(path, line, test.name, came, tuple(_missed(test, came)))


def _came(policy: Policy, test: TestDocument) -> Came:
    state = InstanceState.STOPPED if test.happened.stopped is not None else test.instance.state
    fact = _fact(policy, test, test.at, state)
    first = _planned(policy, test, test.at, fact, None)
    if test.happened.warned is None:
        return _of_plan(policy, first, fact.instance)
    opened_at = test.at - test.happened.warned - _FIRST_LOOK
    at_first = _planned(policy, test, opened_at, _fact(policy, test, opened_at, test.instance.state), None)
    case = at_first.transitions[0].after if at_first.transitions else None
    if case is None:
        return Came(first.findings[0], problem="no_case")
    told = _climbed(case, policy, test, fact)
    if isinstance(told, str):
        return Came(first.findings[0], problem=told)
    return _of_plan(policy, _planned(policy, test, test.at, fact, told), fact.instance)


def _fact(policy: Policy, test: TestDocument, at: datetime, state: InstanceState) -> InstanceFact:
    windows = {rule.idle.lasting for rule in policy.idle_gpu}
    fact = described_fact(test.instance, test.signals, windows, at, state)
    # the same run of the machine, whenever it is looked at
    began = test.at - test.instance.running_for
    return replace(fact, instance=replace(fact.instance, launched_at=began, created_at=began))


def _planned(policy: Policy, test: TestDocument, at: datetime, fact: InstanceFact, case: Case | None) -> Plan:
    instance = fact.instance
    launch = described_launch(test.instance, test.at)
    return build_plan(
        PlanInputs(
            guard=IDLE_GPU,
            run_id="policy-test",
            now=at,
            policy=policy,
            facts=(ShardFacts(instance.ref.shard, (fact,), (), 1),),
            cases=() if case is None else (case,),
            details={instance.ref: _detail(test, instance)},
            launches={} if launch is None else {instance.ref: launch},
        )
    )


def _detail(test: TestDocument, instance: Instance) -> InstanceDetail:
    """One disk, with a snapshot of ours where the test says that there is one."""
    disk = Volume(instance.ref.sibling("volume", "vol-described"), 100.0, "described")
    ago = test.happened.snapshotted
    snapshots: tuple[Snapshot, ...] = ()
    if ago is not None:
        ref = instance.ref.sibling("snapshot", "snap-described")
        snapshots = (Snapshot(ref, disk.ref, SnapshotState.COMPLETED, test.at - ago, decision_id="described"),)
    return InstanceDetail(instance, (disk,), snapshots)


def _climbed(case: Case, policy: Policy, test: TestDocument, fact: InstanceFact) -> Case | str:
    """The case after what the test says has happened, rung by rung of its own ladder; or why it could not."""
    rule = policy.rule(case.rule)
    rungs = ladder(rule, fact.instance) if rule is not None else ()
    happened = test.happened
    notices = iter((happened.warned, happened.warned_again))
    left = {Verb.STOP: happened.stopped, Verb.SNAPSHOT: happened.snapshotted}
    for index, rung in enumerate(rungs):
        ago = next(notices, None) if rung.verb is Verb.WARN else left.pop(rung.verb, None)
        if ago is None:
            break
        before = replace(case, rung=index, climbed=case.climbed[:index])  # where the mode rehearses, it is on already
        case = climbed(before, rung.verb, test.at - ago)
    if any(ago is not None for ago in (*left.values(), *notices)):
        return "no_rung"
    return case


def _of_plan(policy: Policy, plan: Plan, instance: Instance) -> Came:
    finding = plan.findings[0]
    for outcome, action, reason in (
        *((TrialOutcome.DUE, action, None) for action in plan.due),
        *((TrialOutcome.HELD, held.action, held.reason) for held in plan.held),
        *((TrialOutcome.REHEARSED, each.action, each.reason) for each in plan.rehearsed),
    ):
        return Came(finding, action.verb.value, outcome, reason, plan.planned_at)
    case = plan.transitions[0].after if plan.transitions else None
    rule = policy.rule(case.rule) if case is not None else None
    if case is None or rule is None or case.status is not CaseStatus.OPEN:
        return Came(finding, held=case.reason if case is not None else None)
    rungs = ladder(rule, instance)
    if case.rung >= len(rungs):
        return Came(finding)
    grace_end = policy.calendar.after if policy.calendar is not None else plain_time
    rung = rungs[case.rung]
    return Came(finding, rung.verb.value, TrialOutcome.WAITS, None, due_at(case, rung, grace_end))


def _missed(test: TestDocument, came: Came) -> Iterator[Missed]:
    """Every expectation that was not met, in the order of the keys."""
    finding, expect = came.finding, test.expect
    found = {
        "verdict": finding.verdict,
        "reason": finding.reason.code,
        "rule": finding.rule,
        "owner": finding.owner,
        "next": came.step,
        "outcome": came.outcome,
        "held_by": "" if came.held is None else came.held.code,
        "next_at": "" if came.next_at is None else came.next_at,
    }
    for key, value in found.items():
        wanted = getattr(expect, key)
        if wanted is not None and wanted != value:
            yield Missed(key, written_value(wanted), written_value(value))
