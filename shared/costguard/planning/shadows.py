"""Rules in the shadow: the same judge and the same life of cases, beside what is in force, deciding nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from costguard.cases import Case, CaseStatus, due_at, ladder
from costguard.cases.advance import GraceEnd, plain_time
from costguard.domain.actions import Verb
from costguard.domain.findings import Finding, InstanceFact, Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Subject
from costguard.guards.rules.common import RemediationRule
from costguard.guards.rules.idle import IdleRule
from costguard.planning.build import advanced, judged
from costguard.planning.plan import Differs, Judgement, Plan, PlanInputs, Shadow, ShadowDifference, Transition
from costguard.planning.rollout import NO_ROLLOUT

if TYPE_CHECKING:
    from costguard.planning.remediation import Judged

REGRET = timedelta(hours=24)
"""A machine in use again so soon after it would have been stopped would have been stopped wrongly."""
_SAME_TIME = timedelta(hours=1)  # notices are delivered some minutes after they are due, and rehearsed ones at once


@dataclass(frozen=True, slots=True)
class ShadowTally:
    """What became of the machines that a rule in the shadow would have stopped, since it says what it says.

    `busy_within_a_day` were in use again within 24 hours of the stop that did not happen, `busy_later` after that;
    `stopped` were stopped all the same, by the rules in force or by people; `otherwise` ended in another way.
    `idle_hours` are the hours from those would-be stops to their ends.
    """

    busy_within_a_day: int = 0
    busy_later: int = 0
    stopped: int = 0
    otherwise: int = 0
    idle_hours: float = 0.0

    @property
    def stops(self) -> int:
        """Every would-be stop that has ended."""
        return self.busy_within_a_day + self.busy_later + self.stopped + self.otherwise


@dataclass(frozen=True, slots=True)
class TeamTally:
    """The part of a tally that is of one owner's machines in one account."""

    owner: str
    account: str
    tally: ShadowTally


@dataclass(frozen=True, slots=True)
class ShadowStanding:
    """One rule in the shadow as the last run that followed it left it; `since` is when it first said what it says.

    `left_out` are differences that were too many to keep. `by` is the tally by owner and account, since it is kept.
    """

    guard: str
    rule: str
    rule_digest: str
    since: datetime
    at: datetime
    compared: int
    differences: tuple[ShadowDifference, ...] = ()
    left_out: int = 0
    would_stop: int = 0
    tally: ShadowTally = field(default_factory=ShadowTally)
    by: tuple[TeamTally, ...] = ()


def shadow_guard(rule: str) -> str:
    """Under which name the cases of a rule in the shadow are remembered: no guard's, so that nothing acts on them."""
    return f"shadow:{rule}"


def shadow_of(inputs: PlanInputs, plan: Plan, rule: IdleRule, cases: tuple[Case, ...]) -> Shadow:
    """One rule in the shadow, beside the `plan` that was made of the same `inputs`; `cases` are those it has open."""
    own = _alone(inputs, rule, cases)
    findings = tuple(replace(each, guard=own.guard) for each in judged(own))
    before = {case.case_id: case for case in cases}
    facts = {fact.instance.ref: fact for shard in inputs.facts for fact in shard.instances}
    transitions = tuple(Transition(before.get(item.case.case_id), item.case) for item in advanced(own, findings))
    grace = inputs.policy.calendar.after if inputs.policy.calendar is not None else plain_time
    rules = {each.name: each for each in inputs.policy.idle_gpu}
    theirs = _stops(plan.transitions, rules, facts, grace)
    ours = _stops(transitions, {rule.name: rule}, facts, grace)
    in_force: dict[Subject, Finding] = {each.subject: each for each in plan.findings}
    compared = [
        (in_force[each.subject], each) for each in findings if each.rule == rule.name and each.subject in in_force
    ]
    return Shadow(
        rule=rule.name,
        rule_digest=rule.digest,
        compared=len(compared),
        differences=tuple(
            found
            for decided, shadow in compared
            for found in _difference(decided, shadow, theirs.get(decided.subject), ours.get(shadow.subject))
        ),
        would_stop=sum(at <= inputs.now for at in ours.values()),
        transitions=transitions,
    )


def shadow_of_remediations(in_force: Iterable[Judged], shadow: Iterable[Judged], rule: RemediationRule) -> Shadow:
    """A rule for keys or networks in the shadow: what it finds and would mend, beside what is found in force."""
    decided = {(each.finding.check, each.finding.subject): each for each in in_force}
    compared = 0
    differences: list[ShadowDifference] = []
    for each in shadow:
        if each.finding.rule != rule.name:
            continue
        compared += 1
        other = decided.get((each.finding.check, each.finding.subject))
        finding = other.finding if other is not None else _nothing_found(each.finding)
        found = list(_difference(finding, each.finding, None, None))
        mends = (None if other is None or other.mend is None else other.mend.kind, each.mend and each.mend.kind)
        if not found and each.finding.verdict is Verdict.VIOLATION and mends[0] is not mends[1]:
            found = [_between(finding, each.finding, Differs.OTHER_MEND, None, None)]
        differences += found
    return Shadow(rule.name, rule.digest, compared, tuple(differences))


def tallied(
    tally: ShadowTally, shadow: Shadow, rule: IdleRule, now: datetime, grace_end: GraceEnd = plain_time
) -> ShadowTally:
    """The tally with the would-be stops that ended in this run."""
    for step in shadow.transitions:
        if step.before is None or step.after.status is not CaseStatus.CLOSED:
            continue
        stopped_at = stop_due(step.before, rule, grace_end=grace_end)
        if stopped_at is None or stopped_at > now:
            continue
        idle = now - stopped_at
        tally = replace(tally, idle_hours=round(tally.idle_hours + idle / timedelta(hours=1), 2))
        if step.after.reason.code is ReasonCode.RECOVERED and idle <= REGRET:
            tally = replace(tally, busy_within_a_day=tally.busy_within_a_day + 1)
        elif step.after.reason.code is ReasonCode.RECOVERED:
            tally = replace(tally, busy_later=tally.busy_later + 1)
        elif step.after.reason.code is ReasonCode.STOPPED_BY_OTHERS:
            tally = replace(tally, stopped=tally.stopped + 1)
        else:
            tally = replace(tally, otherwise=tally.otherwise + 1)
    return tally


def tallied_by_team(
    before: Iterable[TeamTally], shadow: Shadow, rule: IdleRule, now: datetime, grace_end: GraceEnd = plain_time
) -> tuple[TeamTally, ...]:
    """The same for each owner in each account by itself."""
    known = {(each.owner, each.account): each.tally for each in before}
    moved: dict[tuple[str, str], list[Transition]] = {}
    for step in shadow.transitions:
        if isinstance(step.after.subject, ResourceRef):
            moved.setdefault((step.after.owner, step.after.subject.account), []).append(step)
    for of, steps in moved.items():
        part = replace(shadow, transitions=tuple(steps))
        found = tallied(known.get(of, ShadowTally()), part, rule, now, grace_end)
        if found != ShadowTally():
            known[of] = found
    return tuple(TeamTally(owner, account, known[owner, account]) for owner, account in sorted(known))


def stop_due(
    case: Case, rule: IdleRule, fact: InstanceFact | None = None, grace_end: GraceEnd = plain_time
) -> datetime | None:
    """When this case stops its machine if nobody says anything, or did; None where its ladder never does."""
    climbed = case.climbed_at(Verb.STOP)
    if climbed is not None:
        return climbed
    rungs = ladder(rule, None if fact is None else fact.instance)
    due = case.since
    for place in range(case.rung, len(rungs)):
        due = due_at(replace(case, since=due), rungs[place], grace_end)
        if rungs[place].verb is Verb.STOP:
            return due
    return None


def _alone(inputs: PlanInputs, rule: IdleRule, cases: tuple[Case, ...]) -> PlanInputs:
    """As if the rule were the only one, and nobody had been told or asked anything about it."""
    return replace(
        inputs,
        guard=shadow_guard(rule.name),
        policy=replace(inputs.policy, idle_gpu=(rule,)),
        verdicts=None,
        cases=cases,
        notices={},
        claims={},
        approved=frozenset(),
        caps={},
        stop_all=None,
        doubts={},
        others={},
        hastened=frozenset(),
        observing={},
        rollout=NO_ROLLOUT,
        barred={},
    )


def _stops(
    transitions: Iterable[Transition],
    rules: Mapping[str, IdleRule],
    facts: Mapping[ResourceRef, InstanceFact],
    grace_end: GraceEnd,
) -> dict[Subject, datetime]:
    found: dict[Subject, datetime] = {}
    for step in transitions:
        case = step.after
        if case.status in {CaseStatus.CLOSED, CaseStatus.SNOOZED} or case.rule not in rules:
            continue
        due = stop_due(case, rules[case.rule], facts.get(case.subject), grace_end)
        if due is not None:
            found[case.subject] = due
    return found


def _difference(
    decided: Finding, shadow: Finding, theirs: datetime | None, ours: datetime | None
) -> Iterator[ShadowDifference]:
    violations = (decided.verdict is Verdict.VIOLATION, shadow.verdict is Verdict.VIOLATION)
    if violations == (False, True):
        yield _between(decided, shadow, Differs.ONLY_SHADOW, theirs, ours)
    elif violations == (True, False):
        yield _between(decided, shadow, Differs.ONLY_IN_FORCE, theirs, ours)
    elif violations == (True, True) and _sooner(ours, theirs):
        yield _between(decided, shadow, Differs.SOONER, theirs, ours)
    elif violations == (True, True) and _sooner(theirs, ours):
        yield _between(decided, shadow, Differs.LATER, theirs, ours)


def _sooner(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and (other is None or one + _SAME_TIME < other)


def _between(
    decided: Finding, shadow: Finding, differs: Differs, theirs: datetime | None, ours: datetime | None
) -> ShadowDifference:
    subject = shadow.subject
    if not isinstance(subject, ResourceRef):
        message = f"{subject} is no resource"
        raise TypeError(message)
    return ShadowDifference(
        subject=subject,
        check=shadow.check,
        name=shadow.name,
        owner=shadow.owner,
        differs=differs,
        in_force=Judgement(decided.rule, decided.verdict, decided.reason, theirs),
        shadow=Judgement(shadow.rule, shadow.verdict, shadow.reason, ours),
        hourly=None if shadow.rate is None else shadow.rate.money,
    )


def _nothing_found(finding: Finding) -> Finding:
    """What is in force says nothing of this at all."""
    return replace(finding, rule="", verdict=Verdict.EXEMPT, reason=Reason(ReasonCode.NO_RULE))
