"""Close reads: what hangs on machines in batches while planning, and one by one what a warning may not be sent without.

Protections that cost a request each are read for steps that are really due, at the last moment: before a call by the
last look, before a warning here. What no time was left for is a gap, is not told, and comes first in the next run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from costguard.cases import Case, held
from costguard.domain.actions import Action, Verb
from costguard.domain.errors import AccessDeniedError, NotFoundError, ProviderError, ThrottledError
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind, InstanceDetail
from costguard.engine.run.case_transitions import moved
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import gap_of
from costguard.guards.rules.cloud_protection import STOP, TERMINATION, barring, leads_to, needed
from costguard.guards.rules.idle import IdleRule
from costguard.planning import Held, Plan, PlanIndex, PlanInputs, Transition, subjects_to_examine
from costguard.policy.model.terms import rule_from_terms

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
