"""Look at everything that enforcing rests on, and change nothing: `costguard doctor`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from costguard.domain.errors import (
    AccessDeniedError,
    CostguardError,
    InvalidInputError,
    LedgerError,
    OutcomeUnknownError,
    ProviderError,
)
from costguard.domain.findings import Finding, ShardFacts, Verdict
from costguard.domain.money import SpendReport, SpendScope
from costguard.domain.reasons import FactValue
from costguard.domain.refs import Deployment, ResourceRef, Shard, Subject
from costguard.domain.resources import Instance, InstanceState, Snapshot
from costguard.engine.doctor import checks
from costguard.engine.doctor.checks import LedgerSeen, Traces
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.snoozes import SwitchState
from costguard.engine.run.close_reads import seen_in
from costguard.engine.run.scan import CloudReaders, Progress, Scan, ThreadWorkers, gap_of, no_progress, scan
from costguard.guards import IDLE_GPU
from costguard.planning import judge_all
from costguard.planning.rails import SEEN_WITHIN, leads, others_of
from costguard.policy.model.policy import Policy
from costguard.policy.remarks import remarks
from costguard.ports import Caller, Clock, CloudAuditLog, Permit, Preflight, SpendSource, Target, Workers
from costguard.report.doctor.checks import Code, Detail, DoctorCheck

_LOOKS_BACK = timedelta(days=4)  # further than any bill is behind
_HOUR = timedelta(hours=1)
_ALL = SpendScope()


def examine_bills(
    policy: Policy, targets: Sequence[Target], spends: Mapping[str, SpendSource], now: datetime
) -> Iterator[DoctorCheck]:
    """One question a payer. Without a bill budgets alert on what runs and stop nothing, so it never bars the rest."""
    for target in targets if policy.budgets else ():
        name = str(Shard(target.cloud, target.account))
        try:
            report = spends[target.cloud].read(target, [_ALL], now - _LOOKS_BACK, now)[_ALL]
        except AccessDeniedError as err:
            fix = f"allow {err.operation}" if err.operation else ""
            yield DoctorCheck(Code.BILL_DENIED, name, {"detail": str(err)}, (Detail(name, str(err), fix),))
        except ProviderError as err:
            yield DoctorCheck(Code.BILL_UNTOLD, name, {"detail": str(err)})
        else:
            yield bill_check(name, report, now)


def bill_check(target: str, report: SpendReport, now: datetime) -> DoctorCheck:
    """What a bill that answered is good for."""
    details = tuple(Detail(str(gap.shard), gap) for gap in report.gaps)
    facts: dict[str, FactValue] = {"source": report.source, "lines": len(report.lines)}
    if report.gaps:
        return DoctorCheck(Code.BILL_UNTOLD, target, {**facts, "detail": report.gaps[0].detail}, details)
    if report.complete_until is None:
        return DoctorCheck(Code.BILL_SAYS_NOTHING, target, facts)
    facts["age_hours"] = round((now - report.complete_until) / _HOUR)
    if not report.lines:
        return DoctorCheck(Code.BILL_SAYS_NOTHING, target, facts)
    return DoctorCheck(Code.BILL_READ, target, facts)


_MOST_LOOKED_AT = 25  # machines a shard whose snapshots are looked at: the closer look costs two calls a machine
_MOST_ASKED_ABOUT = 10


@dataclass(frozen=True, slots=True)
class Practice:
    """What the doctor looks at.

    `preflights` is by cloud, like `readings` and `trails`; `memory` None has nothing to tell. `deployment` is which one
    this is; None looks for no other.
    """

    policy: Policy
    targets: Sequence[Target]
    readings: Mapping[str, CloudReaders]
    preflights: Mapping[str, Preflight]
    memory: Memory | None
    clock: Clock
    workers: Workers = field(default_factory=ThreadWorkers)
    progress: Progress = no_progress
    trails: Mapping[str, CloudAuditLog] = field(default_factory=dict)
    deployment: Deployment | None = None


def examine_targets(practice: Practice) -> tuple[DoctorCheck, ...]:
    """Every question about every target, one target after another, the shards of each side by side."""
    known: dict[str, Caller | CostguardError] = {}
    found: list[DoctorCheck] = []
    for target in practice.targets:
        preflight, is_new = practice.preflights[target.cloud], target.cloud not in known
        if is_new:
            known[target.cloud] = _caller(preflight)
        caller = known[target.cloud]
        here = isinstance(caller, Caller) and target.account in {"", caller.account}
        found.append(checks.caller_check(name_of(target), caller, target.own_role if here else target.role))
        if is_new:
            found.append(checks.clock_check(target.cloud, _skew(preflight)))
        if isinstance(caller, Caller):
            found.extend(_examine_target(practice, target))
    return tuple(found)


def examine_policy(practice: Practice) -> DoctorCheck:
    """What the policy says of itself."""
    return checks.policy_check(practice.policy, remarks(practice.policy, practice.clock.now()))


def examine_ledger(memory: Memory | LedgerError, kind: str, *, is_new: bool = False) -> DoctorCheck:
    """Reach the ledger and read a record of each kind that a run begins with; nothing is written."""
    if isinstance(memory, LedgerError):
        return checks.ledger_check(LedgerSeen(kind, error=memory))
    seen = LedgerSeen(kind, durable=memory.store.durable, is_new=is_new)
    try:
        active, latest = memory.cases.active(IDLE_GPU), memory.runs.latest(IDLE_GPU)
        for case in active[:_MOST_ASKED_ABOUT]:
            memory.intents.for_case(case.case_id)
        memory.switch.state()
    except LedgerError as err:
        return checks.ledger_check(replace(seen, error=err))
    started = latest.started_at if latest is not None else None
    return checks.ledger_check(replace(seen, cases=len(active), latest_run=started))


def examine_switch(memory: Memory | LedgerError, *, host_paused: bool) -> DoctorCheck:
    """Read the kill switch as a run would."""
    state: SwitchState | LedgerError
    try:
        state = memory if isinstance(memory, LedgerError) else memory.switch.state()
    except LedgerError as err:
        state = err
    return checks.switch_check(state, host_paused=host_paused)


def name_of(target: Target) -> str:
    """What a target is called in a report: `aws:111122223333`, or the cloud where the credentials decide."""
    return str(Shard(target.cloud, target.account))


def _caller(preflight: Preflight) -> Caller | CostguardError:
    try:
        return preflight.caller()
    except (ProviderError, InvalidInputError) as err:
        return err


def _skew(preflight: Preflight) -> timedelta | None:
    try:
        return preflight.clock_skew()
    except (ProviderError, InvalidInputError):
        return None  # why is said of the caller


def _examine_target(practice: Practice, target: Target) -> Iterator[DoctorCheck]:
    name = name_of(target)
    seen = scan(
        {target.cloud: practice.readings[target.cloud]},
        (target,),
        practice.policy.idle_gpu,
        practice.clock,
        progress=practice.progress,
        workers=practice.workers,
    )
    now = practice.clock.now()
    judged = judge_all(practice.policy, seen.facts, now, snoozes=_kept(practice.memory, now))
    findings = {finding.subject: finding for finding in judged}
    yield checks.regions_check(name, seen.facts, seen.gaps, seen.closed)
    yield _permissions(practice, name, seen, findings)
    yield checks.measured_check(name, seen.facts, findings)
    yield checks.reclaim_check(name, findings)
    yield checks.other_check(name, _working(practice, seen, _traces(practice, seen)))


def _kept(memory: Memory | None, now: datetime) -> Mapping[str, datetime]:
    """What people keep for now; a ledger that cannot be read is told of elsewhere."""
    try:
        return {} if memory is None else {text: keep.until for text, keep in memory.snoozes.active(now).items()}
    except LedgerError:
        return {}


def _permissions(practice: Practice, name: str, seen: Scan, findings: Mapping[Subject, Finding]) -> DoctorCheck:
    asked = _worth_asking(seen.facts)
    tasks = [partial(_ask, practice.preflights, shard, findings) for shard in asked]
    permits: list[Permit] = []
    failures: list[Detail | OutcomeUnknownError] = []
    for done, (place, (told, failure)) in enumerate(practice.workers.each(tasks), start=1):
        practice.progress(done, len(tasks), str(asked[place].shard))
        permits.extend(told)
        failures.extend([failure] if failure is not None else [])
    permits.sort(key=lambda permit: (permit.shard, permit.operation))
    return checks.permissions_check(name, permits, failures, checks.verbs_of(practice.policy.idle_gpu))


def _worth_asking(shards: Sequence[ShardFacts]) -> tuple[ShardFacts, ...]:
    """Where there is something to act on, and of an account without anything one region.

    Permissions are an account's; regions differ by what denies them, and the listing of each was tried.
    """
    chosen = [shard for shard in shards if shard.instances]
    accounts = {shard.shard.account for shard in chosen}
    for shard in shards:
        if shard.shard.account not in accounts:
            accounts.add(shard.shard.account)
            chosen.append(shard)
    return tuple(chosen)


def _ask(
    preflights: Mapping[str, Preflight], shard: ShardFacts, findings: Mapping[Subject, Finding]
) -> tuple[Sequence[Permit], Detail | OutcomeUnknownError | None]:
    """What is allowed in one shard, asked about machines that a rule may act on."""
    may_be_touched = [
        fact.instance for fact in shard.instances if findings[fact.instance.ref].verdict is not Verdict.EXEMPT
    ]
    try:
        asked = preflights[shard.shard.cloud].permits(shard.shard, may_be_touched[:_MOST_ASKED_ABOUT], acting=True)
    except OutcomeUnknownError as err:
        return (), err
    except ProviderError as err:
        return (), Detail(str(shard.shard), gap_of(err, shard.shard, "inventory"))
    return asked, None


def _traces(practice: Practice, seen: Scan) -> Traces:
    """Snapshots that a Costguard marked, of machines that stand here. The ledger is read after the cloud.

    A run that makes a snapshot meanwhile has written its intent before, so it is never taken for a stranger's.
    """
    tasks = [partial(_closer_look, practice.readings, shard) for shard in seen.facts if shard.instances]
    looked = [result for _, result in practice.workers.each(tasks)]
    snapshots = sorted((shot for _, shots, _ in looked for shot in shots), key=lambda shot: str(shot.ref))
    marked = [shot for shot in snapshots if shot.decision_id]
    unread = [failure for _, _, failure in looked if failure is not None]
    unread += [Detail(str(shard.shard), "") for shard in seen.facts if not shard.complete]
    found = Traces(
        machines=sum(machines for machines, _, _ in looked),
        machines_in_all=sum(len(shard.instances) for shard in seen.facts),
        snapshots=len(snapshots),
        marked=len(marked),
        unread=tuple(unread),
    )
    if not marked:
        return found
    if practice.memory is None:
        return replace(found, unread=(*found.unread, *(Detail(str(shot.ref), shot.decision_id) for shot in marked)))
    try:
        ours = _decisions(practice.memory)
    except LedgerError as err:
        return replace(found, unread=(*found.unread, Detail("ledger", str(err))))
    return replace(found, unknown=tuple(shot for shot in marked if shot.decision_id not in ours))


def _working(practice: Practice, seen: Scan, traces: Traces) -> Traces:
    """With the deployments that left their mark in the audit log, where there are machines."""
    own, leading = practice.deployment, practice.policy.leading_deployment
    shards = [each.shard for each in seen.facts if each.instances and each.shard.cloud in practice.trails]
    if own is None:
        return traces
    since = practice.clock.now() - SEEN_WITHIN
    tasks = [partial(seen_in, practice.trails[shard.cloud], shard, since) for shard in shards]
    looked = [(shards[place], *found) for place, found in practice.workers.each(tasks)]
    others: dict[Deployment, datetime] = {}
    for _, found, _ in looked:
        for each, at in others_of(own, found).items():
            others[each] = max(at, others.get(each, at))
    return replace(
        traces,
        name=own.name,
        working=others,
        log_unread=tuple(Detail(str(shard), gap) for shard, _, gap in looked if gap is not None),
        leading=leading,
        leads=leads(own, others, leading),
    )


def _closer_look(
    readings: Mapping[str, CloudReaders], shard: ShardFacts
) -> tuple[int, Sequence[Snapshot], Detail | None]:
    """Machines looked at, the snapshots of their disks, and what failed. Stopped ones first: they are copied."""
    instances = sorted((fact.instance for fact in shard.instances), key=_running_last)
    refs: list[ResourceRef] = [instance.ref for instance in instances[:_MOST_LOOKED_AT]]
    try:
        details = readings[shard.shard.cloud].inventory.details(refs)
    except ProviderError as err:
        return 0, (), Detail(str(shard.shard), gap_of(err, shard.shard, "details"))
    return len(details), [shot for detail in details.values() for shot in detail.snapshots], None


def _running_last(instance: Instance) -> tuple[bool, str]:
    return instance.state is not InstanceState.STOPPED, instance.ref.native_id


def _decisions(memory: Memory) -> frozenset[str]:
    """Every decision this ledger ever claimed for the cloud."""
    cases = {case.case_id for case in (*memory.cases.all(IDLE_GPU), *memory.cases.closed(f"{IDLE_GPU}/"))}
    return frozenset(
        intent.action.decision_id for case_id in sorted(cases) for intent in memory.intents.for_case(case_id)
    )
