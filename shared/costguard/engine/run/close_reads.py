"""Close reads of what a plan rests on: what hangs on machines, who launched them, and who else acts there.

Protections that cost a request each are read for steps that are really due, at the last moment: before a call by the
last look, before a warning here. What no time was left for is a gap, is not told, and comes first in the next run.

Nothing that is done depends on it. Where a trail cannot be read the owner is whom the policy falls back to, and the gap
is told.

Asking is what makes a deployment seen: the trail records the question with the mark of whoever asked it. So each one
that may act asks, whether it leads or not, and only what may act has a mark.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from costguard.cases import Case, held
from costguard.domain.actions import Action, Verb
from costguard.domain.errors import AccessDeniedError, NotFoundError, ProviderError, ThrottledError
from costguard.domain.findings import InstanceFact, Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import Deployment, ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind, Instance, InstanceDetail, Launch
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import gap_of
from costguard.engine.run.settlement import moved
from costguard.guards.rules.common import STOP, TERMINATION, Mode, barring, leads_to, needed
from costguard.guards.rules.idle import IdleRule
from costguard.planning import Held, Plan, PlanIndex, PlanInputs, Transition, judged, subjects_to_examine
from costguard.planning.rails import SEEN_WITHIN, account_key, barred_by, others_of
from costguard.policy.model.ownership import launch_matters
from costguard.policy.model.terms import rule_from_terms
from costguard.ports import CloudAuditLog

_LOG = logging.getLogger(__name__)
DETAILS = "details"
_TOGETHER = 200  # machines looked at closely before the time is looked at again
_NOT_LOOKED_AT = "no time was left to look at {left} of {wanted} machines; the next run begins with them"
_SHARE = 2  # of the time left, the half: what is read must still be planned, acted on and told
_WARNING_SHARE = 3  # the third: writing and sending have theirs


def examined_closely(world: RunContext, inputs: PlanInputs, deadline: datetime | None) -> PlanInputs:
    """The inputs with volumes, snapshots and addresses of every instance the plan may act on."""
    late = {case.subject for case in inputs.cases if case.reason.code is ReasonCode.DETAIL_UNREAD}
    by_shard: dict[Shard, list[ResourceRef]] = {}
    for instance in subjects_to_examine(inputs):
        by_shard.setdefault(instance.ref.shard, []).append(instance.ref)
    until = _until(world.clock.now(), deadline, _SHARE)
    tasks = [
        partial(_details_of, world, sorted(refs, key=lambda ref: ref not in late), until) for refs in by_shard.values()
    ]
    details: dict[ResourceRef, InstanceDetail] = {}
    gaps = list(inputs.gaps)
    for _, (found, gap) in sorted(world.workers.each(tasks), key=lambda read: read[0]):
        details.update(found)
        gaps.extend(gap)
    kept = {ref: tuple(world.readings[ref.cloud].prices.kept_hourly(detail)) for ref, detail in details.items()}
    decisions = (case.decision_id for case in inputs.cases if case.decision_id)
    approved = frozenset(world.memory.approvals.valid_among(decisions, inputs.now))
    return replace(inputs, details=details, kept=kept, gaps=tuple(gaps), approved=approved)


def _details_of(
    world: RunContext, refs: Sequence[ResourceRef], until: datetime | None
) -> tuple[Mapping[ResourceRef, InstanceDetail], tuple[Gap, ...]]:
    found: dict[ResourceRef, InstanceDetail] = {}
    for at in range(0, len(refs), _TOGETHER):
        if until is not None and world.clock.now() >= until:
            return found, (_no_time(refs[0].shard, len(refs) - at, len(refs)),)
        try:
            found.update(world.readings[refs[0].cloud].inventory.details(refs[at : at + _TOGETHER]))
        except ProviderError as err:
            return found, (gap_of(err, refs[0].shard, DETAILS),)
    return found, ()


@dataclass(frozen=True, slots=True)
class _Question:
    """A warning that is due, and which protections would bar what it announces."""

    action: Action
    case: Case
    rule: IdleRule
    verbs: tuple[Verb, ...]

    @property
    def wanted(self) -> tuple[str, ...]:
        return needed((TERMINATION, STOP), self.verbs, self.rule.termination_protection_bars)


_Answers = list[tuple[_Question, tuple[str, ...] | Reason]]


def fit_to_tell(world: RunContext, plan: Plan, deadline: datetime | None) -> Plan:
    """The plan without the warnings of what the cloud protects, or may protect: nobody is told of what cannot come.

    The case that was opened first comes first, so that what no time was left for comes before what is new.
    """
    asked = sorted(_questions(plan), key=lambda each: each.case.opened_at)
    if not asked:
        return plan
    by_shard: dict[Shard, list[_Question]] = {}
    for each in asked:
        by_shard.setdefault(each.case.subject.shard, []).append(each)
    until = _until(world.clock.now(), deadline, _WARNING_SHARE)
    tasks: list[Callable[[], tuple[_Answers, list[Gap]]]] = [
        partial(_answers, world, shard, each, until) for shard, each in by_shard.items()
    ]
    told: dict[ResourceRef, tuple[str, ...]] = {}
    barred: dict[str, Reason] = {}
    gaps: list[Gap] = []
    for _, (answers, unread) in sorted(world.workers.each(tasks), key=lambda read: read[0]):
        gaps.extend(unread)
        for each, answer in answers:
            reason = answer if isinstance(answer, Reason) else _bar(each, answer)
            if not isinstance(answer, Reason):
                told[each.case.subject] = answer
            if reason is not None:
                barred[each.case.case_id] = reason
    for gap in gaps:
        _LOG.warning("could not be read", extra={"shard": str(gap.shard), "what": gap.what, "detail": gap.detail})
    return _without(world, replace(plan, gaps=(*plan.gaps, *gaps)), barred, told)


def _questions(plan: Plan) -> Iterator[_Question]:
    unread, index = frozenset(plan.unread_protections), PlanIndex.of(plan)
    for action in plan.due:
        if action.verb is Verb.WARN and action.subject in unread:
            case = index.case_of(action)
            rule = rule_from_terms(case.terms)
            rungs = rule.rungs(stoppable=case.subject not in index.unstoppable)
            ahead = tuple(rung.verb for rung in rungs[case.rung :])
            # of a case behind its ladder only the notice is left, which what bars everything keeps back
            yield _Question(action, case, rule, ahead or (action.verb,))


def _answers(
    world: RunContext, shard: Shard, asked: Sequence[_Question], until: datetime | None
) -> tuple[_Answers, list[Gap]]:
    inventory = world.readings[shard.cloud].inventory
    answers: _Answers = []
    gaps: list[Gap] = []
    for place, each in enumerate(asked):
        left = asked[place:]
        if until is not None and world.clock.now() >= until:
            gaps.append(_no_time(shard, len(left), len(asked)))
            answers.extend((other, Reason(ReasonCode.DETAIL_UNREAD, {"cause": gaps[-1].detail})) for other in left)
            break
        try:
            answers.append((each, inventory.protections(each.case.subject, each.wanted)))
        except NotFoundError:
            answers.append((each, Reason(ReasonCode.VANISHED)))
        except ProviderError as err:
            gaps.append(gap_of(err, shard, DETAILS))
            unread = Reason(ReasonCode.DETAIL_UNREAD, {"cause": str(err)})
            if isinstance(err, (AccessDeniedError, ThrottledError)):  # so would the next be answered
                answers.extend((other, unread) for other in left)
                break
            answers.append((each, unread))
    return answers, list(dict.fromkeys(gaps))


def _bar(asked: _Question, protections: tuple[str, ...]) -> Reason | None:
    by = barring(protections, leads_to(asked.verbs), asked.rule.termination_protection_bars)
    return Reason(ReasonCode.PROTECTED_BY_CLOUD, {"protection": ", ".join(sorted(by))}) if by else None


def _without(
    world: RunContext, plan: Plan, barred: Mapping[str, Reason], told: Mapping[ResourceRef, tuple[str, ...]]
) -> Plan:
    """The barred warnings held, as a rail of the plan would have held them, and every case saying why."""
    steps = [
        Transition(step.after, held(step.after, barred[step.after.case_id]))
        for step in plan.transitions
        if step.after.case_id in barred
    ]
    written = moved(world.memory, world.workers, steps, plan.run_id, world.clock.now())
    known = dict(plan.protected_by)
    for ref, found in told.items():
        both = tuple(sorted({*known.get(ref, ()), *found}))
        if both:
            known[ref] = both
    return replace(
        plan,
        due=tuple(action for action in plan.due if action.case_id not in barred),
        held=(*plan.held, *(Held(a, barred[a.case_id]) for a in plan.due if a.case_id in barred)),
        transitions=tuple(
            replace(step, after=written.get(step.after.case_id, step.after)) for step in plan.transitions
        ),
        protected_by=tuple(known.items()),
        unread_protections=tuple(ref for ref in plan.unread_protections if ref not in told),
    )


def _until(now: datetime, deadline: datetime | None, share: int) -> datetime | None:
    return None if deadline is None else now + (deadline - now) / share


def _no_time(shard: Shard, left: int, wanted: int) -> Gap:
    return Gap(shard, DETAILS, GapKind.DEADLINE, _NOT_LOOKED_AT.format(left=left, wanted=wanted))


LAUNCHES = "launches"
"""What a gap is called that a trail leaves: it bars nothing."""

MOST_A_SHARD = 60
"""Machines asked about in one run of one shard, the most expensive first: at one a second, that is a minute."""
MOST_TIME = timedelta(seconds=60)
KEPT_FREE = timedelta(seconds=90)
"""What is left of a run's time for what it is there for."""
_LAUNCHES_TOGETHER = 10  # asked about before the time is looked at again

_NOT_ASKED = "not looked up in this run: {left} of {wanted} machines; later runs go on"


@dataclass(frozen=True, slots=True)
class Launches:
    """Who launched what, as far as it is known, and what could not be read of it."""

    launches: Mapping[ResourceRef, Launch] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class _Asked:
    """What came of one shard: the trail's word on each machine (None: it has none), and what it could not tell."""

    answers: tuple[tuple[Instance, Launch | None], ...]
    gaps: tuple[Gap, ...]


def launched(
    world: RunContext, inputs: PlanInputs, *, deadline: datetime | None = None, remember: bool = True
) -> Launches:
    """Who launched the machines that the plan is about, where their owner may turn on it.

    Those are what breaks a rule and what has a case, unless `owners.yaml` settles whose they are. What the trail said
    before is not asked again. `remember` False writes nothing.
    """
    wanted = tuple(_wanted(inputs)) if world.trails else ()
    if not wanted:
        return Launches()
    known = world.memory.launches.of((fact.instance for fact in wanted), inputs.now)
    launches = {ref: launch for ref, launch in known.items() if launch is not None}
    open_questions: dict[Shard, list[InstanceFact]] = {}
    for fact in sorted(wanted, key=_most_expensive_first):
        ref = fact.instance.ref
        if ref not in known and ref.cloud in world.trails:
            open_questions.setdefault(ref.shard, []).append(fact)
    until = world.clock.now() + MOST_TIME
    if deadline is not None:
        until = min(until, deadline - KEPT_FREE)
    tasks = [
        partial(_ask, world, shard, [fact.instance for fact in facts], until)
        for shard, facts in sorted(open_questions.items())
    ]
    gaps: list[Gap] = []
    for _, asked in world.workers.each(tasks):
        gaps += asked.gaps
        for instance, launch in asked.answers:
            if launch is not None:
                launches[instance.ref] = launch
            if remember:
                world.memory.launches.remember(instance, launch, inputs.now)
    return Launches(launches, tuple(sorted(gaps, key=lambda gap: (gap.shard, gap.detail))))


def known_launches(memory: Memory, instances: Iterable[Instance], now: datetime) -> Mapping[ResourceRef, Launch]:
    """What the ledger remembers of these; no trail is asked."""
    known = memory.launches.of(instances, now)
    return {ref: launch for ref, launch in known.items() if launch is not None}


def _wanted(inputs: PlanInputs) -> Iterator[InstanceFact]:
    meant = {finding.subject for finding in judged(inputs) if finding.verdict is Verdict.VIOLATION}
    meant |= {case.subject for case in inputs.cases}
    for shard in inputs.facts:
        for fact in shard.instances:
            passed = inputs.disowned.get(str(fact.instance.ref), frozenset())
            if fact.instance.ref in meant and launch_matters(fact.instance, inputs.policy, passed):
                yield fact


def _ask(world: RunContext, shard: Shard, instances: Sequence[Instance], until: datetime) -> _Asked:
    """Some at a time, while time lasts and the trail answers."""
    trail = world.trails[shard.cloud]
    answers: list[tuple[Instance, Launch | None]] = []
    done = 0
    while done < min(len(instances), MOST_A_SHARD) and world.clock.now() < until:
        batch = instances[done : min(done + _LAUNCHES_TOGETHER, MOST_A_SHARD)]
        told, gaps = _told(trail, shard, batch)
        answers += told
        done += len(batch)
        if gaps:
            return _Asked(tuple(answers), gaps)
    if done == len(instances):
        return _Asked(tuple(answers), ())
    kind = GapKind.TRUNCATED if done == MOST_A_SHARD else GapKind.DEADLINE
    detail = _NOT_ASKED.format(left=len(instances) - done, wanted=len(instances))
    return _Asked(tuple(answers), (Gap(shard, LAUNCHES, kind, detail),))


def _told(
    trail: CloudAuditLog, shard: Shard, batch: Sequence[Instance]
) -> tuple[list[tuple[Instance, Launch | None]], tuple[Gap, ...]]:
    """With a gap, absence says nothing: then only what was found counts."""
    try:
        report = trail.launches(batch)
    except ProviderError as err:
        return [], (gap_of(err, shard, LAUNCHES),)
    found = [(instance, report.launches.get(instance.ref)) for instance in batch]
    return [each for each in found if each[1] is not None or not report.gaps], report.gaps


def _most_expensive_first(fact: InstanceFact) -> tuple[bool, str, object, ResourceRef]:
    rate = fact.rate
    currency = rate.money.currency if rate else ""
    return (rate is None, currency, -rate.money.amount if rate else 0, fact.instance.ref)


DEPLOYMENTS = "deployments"
"""What a gap is called where it could not be seen who else is at work."""


@dataclass(frozen=True, slots=True)
class BarredAccounts:
    """By account why nothing is done there, and where nobody could look."""

    accounts: Mapping[str, Reason] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()


def barred_accounts(world: RunContext, inputs: PlanInputs) -> BarredAccounts:
    """The accounts in which another deployment works and this one does not lead.

    Looked at is where something is at stake: a machine that breaks a rule, or has a case.
    """
    own, policy = world.deployment, world.policy
    if own is None or not any(rule.mode is Mode.ENFORCE for rule in policy.idle_gpu):
        return BarredAccounts()
    shards = sorted({ref.shard for ref in _at_stake(inputs) if ref.cloud in world.trails})
    since = inputs.now - SEEN_WITHIN
    tasks = [partial(seen_in, world.trails[shard.cloud], shard, since) for shard in shards]
    seen: dict[str, dict[Deployment, datetime]] = {}
    gaps: list[Gap] = []
    for place, (found, gap) in world.workers.each(tasks):
        account = seen.setdefault(account_key(shards[place]), {})
        for each, at in others_of(own, found).items():
            account[each] = max(at, account.get(each, at))
        gaps += [gap] if gap is not None else []
    unread = {account_key(gap.shard) for gap in gaps}
    bars = {
        account: barred_by(own, others, policy.leading_deployment, unread=account in unread)
        for account, others in seen.items()
    }
    reasons = {account: reason for account, reason in bars.items() if reason is not None}
    return BarredAccounts(reasons, tuple(sorted(gaps, key=lambda gap: gap.shard)))


def seen_in(trail: CloudAuditLog, shard: Shard, since: datetime) -> tuple[Mapping[Deployment, datetime], Gap | None]:
    """Which deployments left a mark in one shard; a gap where nobody could look."""
    try:
        return trail.deployments(shard, since), None
    except ProviderError as err:
        return {}, gap_of(err, shard, DEPLOYMENTS)


def _at_stake(inputs: PlanInputs) -> set[ResourceRef]:
    found = {each.subject for each in judged(inputs) if each.verdict is Verdict.VIOLATION}
    return {ref for ref in (*found, *(case.subject for case in inputs.cases)) if isinstance(ref, ResourceRef)}
