"""What runs keep of what they saw: the last look, a month of days, and what rules in the shadow would have done."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING

from costguard.cases import Case
from costguard.cases.advance import plain_time
from costguard.cases.case import closed
from costguard.domain.errors import VersionConflictError
from costguard.domain.findings import Evidence, Finding, InstanceFact, ShardFacts, Verdict
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.signals import SignalName, SignalSummary
from costguard.engine.ledger.learned import MOST_DIFFERENCES, ShadowRepository
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.runs import LookRepository, shortened
from costguard.engine.run.run_context import RunContext
from costguard.guards import IDLE_GPU, OF_MACHINES
from costguard.guards.rules.common import RemediationRule
from costguard.planning import Plan, PlanInputs
from costguard.planning.plan import Shadow, ShadowDifference, Transition
from costguard.planning.shadows import (
    ShadowStanding,
    ShadowTally,
    shadow_guard,
    shadow_of,
    shadow_of_remediations,
    tallied,
    tallied_by_team,
)
from costguard.report.facts import BudgetSnapshot, ResourceSnapshot, ScanSnapshot
from costguard.report.guard_views import view_of

if TYPE_CHECKING:
    from costguard.planning.remediation import Judged

DAYS_KEPT = 35
_ONE_DAY = timedelta(days=1)
_LONGEST_FACT = 600  # letters: a whole way in takes some 300
_GRAVEST_FIRST = (Verdict.VIOLATION, Verdict.UNMEASURED, Verdict.EXEMPT, Verdict.COMPLIANT)


LOOKED_AT = "report"
"""The run of a look that is no run."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look taken now saw of one guard's subjects, and the digest of the policy that it was judged by.

    `budgets`: where they stand, of the guard that is about them.
    """

    look: ScanSnapshot
    budgets: tuple[BudgetSnapshot, ...] | None = None
    policy: str = ""


def keep_look(memory: Memory, plan: Plan) -> None:
    """Remember what this run saw, in the place of what the run before it saw.

    Raises:
        LedgerError: memory failed.
    """
    looks = LookRepository(memory.store)
    before = looks.get(plan.guard)
    looks.keep(look_of(plan, before=() if before is None else before.sights))


def look_of(plan: Plan, *, before: Iterable[ResourceSnapshot] = (), facts: Sequence[ShardFacts] = ()) -> ScanSnapshot:
    """What a plan says of what was seen, with the days that `before` knows and `facts` measured over longer windows."""
    known = {one.ref: one for one in before if one.busy}
    measured = {fact.instance.ref: fact for shard in facts for fact in shard.instances}
    sights = [
        _sight(finding, plan.planned_at, known, measured) for finding in plan.findings if _is_worth(plan.guard, finding)
    ]
    held: dict[str, int] = {}
    for one in plan.held:
        held[one.reason.code.value] = held.get(one.reason.code.value, 0) + 1
    return ScanSnapshot(
        guard=plan.guard,
        run_id=plan.run_id,
        at=plan.planned_at,
        seen=plan.instances_seen,
        sights=tuple(sorted(sights, key=_gravest)),
        gaps=tuple(map(shortened, plan.gaps)),
        held=held,
        due=len(plan.due),
        rehearsed=len(plan.rehearsed),
        accounts=tuple(sorted({f"{one.ref.cloud}:{one.ref.account}" for one in sights})),
    )


def _is_worth(guard: str, finding: Finding) -> bool:
    """Every machine; of keys also those that are as asked, for their ages; of networks only what is to be looked at."""
    if not isinstance(finding.subject, ResourceRef):
        return False
    return view_of(guard).kept(finding)


def _sight(
    finding: Finding,
    now: datetime,
    known: Mapping[ResourceRef, ResourceSnapshot],
    measured: Mapping[ResourceRef, InstanceFact],
) -> ResourceSnapshot:
    ref = finding.subject
    if not isinstance(ref, ResourceRef):
        message = f"{ref} is no resource"
        raise TypeError(message)
    evidence = finding.evidence
    gpus = [one for one in evidence.signals if one.name is SignalName.GPU] if evidence is not None else []
    maxima = [one.maximum for one in gpus if one.maximum is not None and math.isfinite(one.maximum)]
    days = _of_days(known.get(ref), _measured(evidence, measured.get(ref)), now)
    return ResourceSnapshot(
        ref=ref,
        check=finding.check,
        verdict=finding.verdict,
        reason=_short(finding.reason),
        name=finding.name[:_LONGEST_FACT],
        instance_type=finding.instance_type,
        owner=finding.owner[:_LONGEST_FACT],
        rule=finding.rule,
        hourly=None if finding.rate is None else finding.rate.money,
        hourly_net=None if finding.rate is None or finding.rate.net is None else finding.rate.net.money,
        price_source="" if finding.rate is None else f"{finding.rate.source} {finding.rate.as_of}".strip(),
        busiest=round(max(maxima), 1) if maxima else None,
        coverage=None if evidence is None or evidence.coverage is None else round(evidence.coverage, 3),
        since=None if evidence is None else evidence.since,
        first_day=min(days, default=None),
        busy=tuple(days.get(min(days) + _ONE_DAY * at) for at in range((max(days) - min(days)).days + 1))
        if days
        else (),
        standing=finding.standing,
    )


def _measured(
    evidence: Evidence | None, fact: InstanceFact | None
) -> Iterator[tuple[datetime, datetime, SignalSummary]]:
    if evidence is not None:
        yield from ((evidence.since, evidence.until, one) for one in evidence.signals)
    for reading in fact.readings if fact is not None else ():
        yield from ((reading.since, reading.until, one) for one in reading.signals)


def _of_days(
    before: ResourceSnapshot | None, measured: Iterable[tuple[datetime, datetime, SignalSummary]], now: datetime
) -> dict[date, float | None]:
    """Each day's highest: a stretch of a window that touches two days counts for both, so that none looks too quiet."""
    oldest = now.astimezone(timezone.utc).date() - _ONE_DAY * (DAYS_KEPT - 1)
    found: dict[date, float | None] = {}
    if before is not None and before.first_day is not None:
        found.update((before.first_day + _ONE_DAY * at, value) for at, value in enumerate(before.busy))
    for since, until, signal in measured:
        if signal.name is not SignalName.GPU or not signal.outline:
            continue
        stretch = (until - since) / len(signal.outline)
        for at, value in enumerate(signal.outline):
            begin, end = since + stretch * at, since + stretch * (at + 1)
            for day in _touched(begin, end):
                known = found.get(day)
                found[day] = known if value is None else round(value if known is None else max(known, value), 1)
    return {day: value for day, value in sorted(found.items()) if day >= oldest}


def _touched(begin: datetime, end: datetime) -> Iterator[date]:
    day = begin.astimezone(timezone.utc).date()
    last = (end.astimezone(timezone.utc) - timedelta(microseconds=1)).date()
    while day <= last:
        yield day
        day += _ONE_DAY


def _short(reason: Reason) -> Reason:
    facts: dict[str, FactValue] = {
        name: value[:_LONGEST_FACT] if isinstance(value, str) else value for name, value in reason.facts.items()
    }
    return replace(reason, facts=facts)


def _gravest(sight: ResourceSnapshot) -> tuple[int, str, str]:
    return (_GRAVEST_FIRST.index(sight.verdict), str(sight.ref), sight.check)


_LOG = logging.getLogger(__name__)
_FORGOTTEN = timedelta(days=7)
"""Cases of a rule that no run followed for so long tell of waits that nobody watched: they are closed first."""


def with_shadows(world: RunContext, inputs: PlanInputs, plan: Plan) -> Plan:
    """The plan with what each rule for machines in the shadow would have made of the same sights."""
    if not world.policy.shadows.idle_gpu:
        return plan
    memory, now = world.memory, inputs.now
    found = []
    for rule in world.policy.shadows.idle_gpu:
        cases = memory.cases.active(shadow_guard(rule.name))
        if _followed(memory, rule.name, now):
            found.append(shadow_of(inputs, plan, rule, cases))
        else:
            fresh = shadow_of(inputs, plan, rule, ())
            found.append(replace(fresh, transitions=_forgotten(cases, now) if cases else fresh.transitions))
    return replace(plan, shadows=tuple(found))


def with_remediation_shadows(
    plan: Plan, in_force: Sequence[Judged], rules: Iterable[tuple[RemediationRule, Sequence[Judged]]]
) -> Plan:
    """The plan with what each rule for keys or networks in the shadow finds in the same inventory."""
    return replace(plan, shadows=tuple(shadow_of_remediations(in_force, judged, rule) for rule, judged in rules))


def keep_shadows(world: RunContext, plan: Plan) -> None:
    """Remember how the rules in the shadow stand.

    Raises:
        LedgerError: memory failed.
    """
    repository = ShadowRepository(world.memory.store)
    rules = {rule.name: rule for rule in world.policy.shadows.idle_gpu} if plan.guard in OF_MACHINES else {}
    grace = world.policy.calendar.after if world.policy.calendar is not None else plain_time
    for shadow in plan.shadows:
        moved = tuple(step for step in shadow.transitions if _moved(world.memory, step))
        before = repository.get(plan.guard, shadow.rule)
        same = before is not None and before.rule_digest == shadow.rule_digest
        tally = before.tally if before is not None and same else ShadowTally()
        by = before.by if before is not None and same else ()
        if shadow.rule in rules:
            ended = replace(shadow, transitions=moved)
            tally = tallied(tally, ended, rules[shadow.rule], plan.planned_at, grace)
            by = tallied_by_team(by, ended, rules[shadow.rule], plan.planned_at, grace)
        shown = sorted(shadow.differences, key=_dearest_first)[:MOST_DIFFERENCES]
        repository.keep(
            ShadowStanding(
                guard=plan.guard,
                rule=shadow.rule,
                rule_digest=shadow.rule_digest,
                since=before.since if before is not None and same else plan.planned_at,
                at=plan.planned_at,
                compared=shadow.compared,
                differences=tuple(shown),
                left_out=len(shadow.differences) - len(shown),
                would_stop=shadow.would_stop,
                tally=tally,
                by=by,
            )
        )


def _followed(memory: Memory, rule: str, now: datetime) -> bool:
    before = ShadowRepository(memory.store).get(IDLE_GPU, rule)
    return before is not None and now - before.at <= _FORGOTTEN


def _forgotten(cases: Iterable[Case], now: datetime) -> tuple[Transition, ...]:
    ends = ((case, Reason(ReasonCode.RULE_GONE, {"rule": case.rule})) for case in cases)
    return tuple(Transition(case, closed(case, gone, now)) for case, gone in ends)


def _moved(memory: Memory, step: Transition) -> bool:
    """Whether the case stands as this run left it; a run beside this one may have moved it first."""
    if step.before == step.after:
        return True
    try:
        memory.cases.commit(step.before, step.after)
    except VersionConflictError:
        _LOG.info("another run moved this case of a shadow first", extra={"case": step.after.case_id})
        return False
    return True


def _dearest_first(difference: ShadowDifference) -> tuple[bool, float, str]:
    cost = difference.hourly
    return (cost is None, 0.0 if cost is None else -float(cost.amount), str(difference.subject))


def shadow_figures(shadows: Iterable[Shadow]) -> dict[str, int]:
    """For logs: by rule how many things it sees differently."""
    return {shadow.rule: len(shadow.differences) for shadow in shadows}
