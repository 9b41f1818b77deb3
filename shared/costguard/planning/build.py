"""Judge, advance every case, put the rails before every wanted action."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime

from costguard.cases import (
    Case,
    CaseStatus,
    CaseStep,
    Phase,
    SubjectSnapshot,
    advance,
    copied_at_once,
    decision_id,
    ladder,
    uncopied,
)
from costguard.cases.advance import GraceEnd, plain_time
from costguard.domain.actions import Action, Saving, Verb
from costguard.domain.findings import Finding, InstanceFact, ShardFacts, Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Shard, Subject
from costguard.domain.resources import Instance, Launch
from costguard.guards.idle.judge import gentlest_rule, judge
from costguard.guards.rules.common import Mode, at_most, protections_of
from costguard.guards.rules.idle import IdleRule
from costguard.planning.last_look import asked_for
from costguard.planning.plan import CapUse, Held, Plan, PlanInputs, Rehearsed, RuleLimit, Transition, merged
from costguard.planning.rails import (
    HELD_BY_A_CAP,
    account_key,
    cap_of,
    cap_rail,
    mode_rail,
    observed,
    overlaid,
    rolled_out,
    rule_limit,
    standing_of,
    unread_protections,
    with_one_more,
    world_rail,
)
from costguard.planning.savings import copying_risk, saving_of, sightings_in
from costguard.policy.model.ownership import owner_of
from costguard.policy.model.policy import Policy
from costguard.policy.model.protection import kept_until


@dataclass(frozen=True, slots=True)
class WantedStep:
    """Where one case stands now, and what was seen of its machine."""

    step: CaseStep
    case: Case
    seen: SubjectSnapshot
    fact: InstanceFact | None


def judge_all(
    policy: Policy,
    facts: tuple[ShardFacts, ...],
    now: datetime,
    doubts: Mapping[str, Reason] | None = None,
    launches: Mapping[ResourceRef, Launch] | None = None,
    disowned: Mapping[str, frozenset[str]] | None = None,
    snoozes: Mapping[str, datetime] | None = None,
) -> tuple[Finding, ...]:
    """Every instance judged by its gentlest rule, exemptions laid over, owners named, and what may be done about it.

    `doubts` are by name of a rule why its violations may not be believed; `launches`, `disowned` and `snoozes` as
    in `PlanInputs`.
    """
    inputs = PlanInputs(
        guard="",
        run_id="",
        now=now,
        policy=policy,
        facts=facts,
        doubts=doubts or {},
        launches=launches or {},
        disowned=disowned or {},
        snoozes=snoozes or {},
    )
    return judged(inputs)


def verdicts_on(policy: Policy, facts: tuple[ShardFacts, ...], now: datetime) -> tuple[Finding, ...]:
    """What the guard alone says of every instance, in the order of the facts: once for what was scanned once."""
    return tuple(finding for shard in facts for finding in judge(shard.instances, policy.idle_gpu, now))


def judged(inputs: PlanInputs) -> tuple[Finding, ...]:
    """The findings of what a plan is given: its verdicts, under all that is known by now of owners and exemptions."""
    verdicts = inputs.verdicts
    if verdicts is None:
        verdicts = verdicts_on(inputs.policy, inputs.facts, inputs.now)
    instances = (fact.instance for shard in inputs.facts for fact in shard.instances)
    return tuple(_laid_over(finding, instance, inputs) for instance, finding in zip(instances, verdicts, strict=True))


def _laid_over(finding: Finding, instance: Instance, inputs: PlanInputs) -> Finding:
    policy, now, name = inputs.policy, inputs.now, str(instance.ref)
    launch, passed = inputs.launches.get(instance.ref), inputs.disowned.get(name, frozenset())
    owner, source = owner_of(instance, policy, launch=launch, disowned=passed)
    owned = replace(finding, owner=owner, owner_source=source.value)
    known = _doubted(overlaid(owned, instance, policy, now), inputs.doubts)
    kept = name in inputs.snoozes and inputs.snoozes[name] > now
    return replace(known, standing=standing_of(known, instance, policy.rule(known.rule), kept=kept))


def _doubted(finding: Finding, doubts: Mapping[str, Reason]) -> Finding:
    doubt = doubts.get(finding.rule)
    if doubt is None or finding.verdict is not Verdict.VIOLATION:
        return finding
    return replace(finding, verdict=Verdict.UNMEASURED, reason=doubt)


def subjects_to_examine(inputs: PlanInputs) -> tuple[Instance, ...]:
    """The instances whose volumes, snapshots and protections the plan depends on, before they were read."""
    wanted = advanced(inputs, judged(inputs))
    return tuple(
        item.seen.instance
        for item in wanted
        if item.seen.instance is not None and (item.step.wants is not None or item.case.phase is not Phase.WAITING)
    )


def build_plan(inputs: PlanInputs) -> Plan:
    """The whole decision of one run. The engine commits `transitions`, then acts on `due` and nothing else."""
    findings = judged(inputs)
    wanted = advanced(inputs, findings)
    limits = _limits(inputs)
    use = dict(inputs.caps)
    before = {case.case_id: case for case in inputs.cases}
    due: list[Action] = []
    held: list[Held] = []
    rehearsed: list[Rehearsed] = []
    transitions: list[Transition] = []
    line: list[Action] = []
    barred = frozenset(case.case_id for case in inputs.cases if case.reason.code is ReasonCode.PROTECTED_BY_CLOUD)
    for item in sorted(wanted, key=lambda item: _stops_first(item, barred)):
        case = item.case
        if item.step.wants is None:
            transitions.append(Transition(before.get(case.case_id), case))
            held.extend(_waiting_on_a_rail(item, inputs))
            continue
        actions = _actions(item, item.step.wants, inputs)
        gentle = mode_rail(item.step.wants, case.mode)
        gentle = observed(inputs.observing, case, rolled_out(inputs.rollout, case, item.step.wants, gentle))
        stop_all = (inputs.stop_all or _barred(case, item.step.wants, inputs)) if gentle is None else None
        reason = stop_all or _rail(item, item.step.wants, inputs, limits, use)
        if reason is not None:
            held.extend(Held(action, reason) for action in actions)
            line.extend(actions if gentle is None and reason.code in HELD_BY_A_CAP else ())
            transitions.append(
                Transition(before.get(case.case_id), replace(case, status=CaseStatus.HELD, reason=reason))
            )
            continue
        transitions.append(Transition(before.get(case.case_id), case))
        if gentle is not None:
            rehearsed.extend(Rehearsed(action, gentle) for action in actions)
            continue
        due.extend(actions)
        rate = item.fact.rate if item.fact else None
        cap = cap_of(case.rule, item.step.wants)
        use[cap] = with_one_more(use.get(cap, CapUse()), item.step.wants, rate)
    return Plan(
        guard=inputs.guard,
        run_id=inputs.run_id,
        planned_at=inputs.now,
        policy_digest=inputs.policy.digest,
        findings=findings,
        transitions=tuple(transitions),
        due=tuple(due),
        held=tuple(held),
        rehearsed=tuple(rehearsed),
        gaps=(*inputs.gaps, *(gap for shard in inputs.facts for gap in shard.gaps)),
        limits=tuple(limits.values()),
        kept=inputs.kept,
        protected_by=tuple(_protections(wanted)),
        instances_seen=sum(shard.instances_seen for shard in inputs.facts),
        billed_while_stopped=tuple(
            fact.instance.ref
            for shard in inputs.facts
            for fact in shard.instances
            if fact.instance.billed_while_stopped
        ),
        sightings=sightings_in(inputs.facts, findings, inputs.launches),
        looked=tuple(shard.shard for shard in inputs.facts if shard.complete),
        unstoppable=tuple(
            item.case.subject for item in wanted if item.seen.instance is not None and item.seen.instance.cannot_stop
        ),
        unread_protections=tuple(item.case.subject for item in wanted if _is_unread(item)),
        next_in_line=tuple(line),
    )


def _is_unread(item: WantedStep) -> bool:
    verb, rule, detail = item.step.wants, item.seen.rule, item.seen.detail
    if verb is None or rule is None:
        return False
    return detail is None or bool(unread_protections(verb, item.case, rule, detail))


def _protections(wanted: Iterable[WantedStep]) -> Iterator[tuple[ResourceRef, tuple[str, ...]]]:
    for item in wanted:
        told = protections_of(item.seen.instance, item.seen.detail)
        if told:
            yield item.case.subject, told


def advanced(inputs: PlanInputs, findings: tuple[Finding, ...]) -> list[WantedStep]:
    """Every case after what was seen, those that open included, with what each wants done."""
    facts = {fact.instance.ref: fact for shard in inputs.facts for fact in shard.instances}
    by_subject: dict[Subject, Finding] = {finding.subject: finding for finding in findings}
    shards = {shard.shard: shard for shard in inputs.facts}
    known = {case.subject: case for case in inputs.cases}
    subjects = [*known, *(ref for ref in facts if ref not in known)]
    return list(_steps(inputs, subjects, facts, by_subject, shards, known))


def _steps(
    inputs: PlanInputs,
    subjects: list[ResourceRef],
    facts: Mapping[ResourceRef, InstanceFact],
    findings: Mapping[Subject, Finding],
    shards: Mapping[Shard, ShardFacts],
    known: Mapping[ResourceRef, Case],
) -> Iterator[WantedStep]:
    for ref in subjects:
        case, fact, shard = known.get(ref), facts.get(ref), shards.get(ref.shard)
        instance = fact.instance if fact else None
        rule = (
            gentlest_rule(instance, inputs.policy.idle_gpu)
            if instance
            else inputs.policy.rule(case.rule if case else "")
        )
        notice = inputs.notices.get(case.decision_id) if case else None
        claim = inputs.claims.get(case.decision_id) if case else None
        if rule is not None and account_key(ref) in inputs.observing:
            rule = at_most(rule, Mode.OBSERVE)
        if rule is not None:
            rule = at_most(rule, inputs.rollout.of(_owner_now(ref, findings, case), ref.account)[0])
        seen = SubjectSnapshot(
            now=inputs.now,
            rule=rule,
            finding=findings.get(ref),
            instance=instance,
            shard_read=shard is not None,
            shard_complete=shard is not None and shard.complete,
            account_closed=ref.account in inputs.closed_accounts,
            detail=inputs.details.get(ref),
            snoozed_until=_kept_until(inputs, ref, instance),
            kept_at=inputs.kept_at.get(str(ref)),
            notice_delivered_at=notice.delivered_at if notice else None,
            announced=notice.announced if notice else (),
            notice_dead=notice.dead if notice else False,
            notice_late=notice.late if notice else False,
            intent_written=claim is not None or notice is not None,
            last_outcome=claim.last_outcome if claim else None,
            last_request=claim.request_id if claim else "",
            hastened=case is not None and asked_for(case, inputs.hastened),
        )
        step = advance(case, seen, _grace(inputs))
        if step.case is not None:
            yield WantedStep(step, step.case, seen, fact)


def _owner_now(ref: ResourceRef, findings: Mapping[Subject, Finding], case: Case | None) -> str:
    found = findings.get(ref)
    return found.owner if found is not None else case.owner if case is not None else ""


def _kept_until(inputs: PlanInputs, ref: ResourceRef, instance: Instance | None) -> datetime | None:
    """When the last Keep ends, be it in this ledger or, by whomever, in the machine's tags."""
    said = inputs.snoozes.get(str(ref))
    answered = said if said is not None and said > inputs.now else None
    tagged = kept_until(instance.tags, inputs.now) if instance is not None else None
    return max((until for until in (answered, tagged) if until is not None), default=None)


def _grace(inputs: PlanInputs) -> GraceEnd:
    return inputs.policy.calendar.after if inputs.policy.calendar is not None else plain_time


def _limits(inputs: PlanInputs) -> dict[str, RuleLimit]:
    """By name of a rule. A share is of the fleet as the 24 hours began: what was terminated in them still counts."""
    fleet = {rule.name: set(_ended(rule, inputs)) for rule in inputs.policy.idle_gpu}
    for shard in inputs.facts:
        for fact in shard.instances:
            rule = gentlest_rule(fact.instance, inputs.policy.idle_gpu)
            if rule is not None:
                fleet[rule.name].add(str(fact.instance.ref))
    return {rule.name: rule_limit(rule, len(fleet[rule.name])) for rule in inputs.policy.idle_gpu}


def _ended(rule: IdleRule, inputs: PlanInputs) -> frozenset[str]:
    return inputs.caps.get(cap_of(rule.name, Verb.TERMINATE), CapUse()).subjects


def _barred(case: Case, verb: Verb, inputs: PlanInputs) -> Reason | None:
    """Why nothing is done in its account; people are told all the same."""
    return None if verb is Verb.WARN else inputs.barred.get(account_key(case.subject))


def _rail(
    item: WantedStep, verb: Verb, inputs: PlanInputs, limits: Mapping[str, RuleLimit], use: Mapping[str, CapUse]
) -> Reason | None:
    rule, instance = item.seen.rule, item.seen.instance
    if rule is None or instance is None:
        return Reason(ReasonCode.RULE_GONE, {"rule": item.case.rule})
    approved = item.case.decision_id in inputs.approved
    held = world_rail(verb, item.case, rule, instance, item.seen.detail, approved=approved)
    if held is not None:
        return held
    others = inputs.others.get(item.case.subject, ())
    stands_in = merged(item.case, verb, ladder(rule, instance), others, inputs.now, _grace(inputs))
    if stands_in is not None:
        return stands_in
    rate = item.fact.rate if item.fact else None
    limit = rule_limit(rule, limits[rule.name].seen, verb)
    return cap_rail(verb, limit, use.get(cap_of(rule.name, verb), CapUse()), rate)


def _waiting_on_a_rail(item: WantedStep, inputs: PlanInputs) -> Iterator[Held]:
    """A case held where it stands shows what it would do next."""
    rule = item.seen.rule
    if item.case.status is not CaseStatus.HELD or rule is None:
        return
    rungs = ladder(rule, item.seen.instance)
    verb = rungs[item.case.rung].verb if item.case.rung < len(rungs) else Verb.STOP
    for action in _actions(item, verb, inputs):
        yield Held(action, item.case.reason)


def _actions(item: WantedStep, verb: Verb, inputs: PlanInputs) -> tuple[Action, ...]:
    """One action a resource: a snapshot rung has one for each attached volume, or one for all where they are a set."""
    case = item.case
    decision = case.decision_id or decision_id(case)
    whole = Action(
        action_id=decision,
        decision_id=decision,
        verb=verb,
        subject=case.subject,
        resource=case.subject,
        run_epoch=case.run_epoch,
        case_id=case.case_id,
        rung=case.rung,
        rule=case.rule,
        rule_digest=case.rule_digest,
        saving=_saving(item, verb, inputs),
    )
    if verb is not Verb.SNAPSHOT or item.seen.detail is None or not item.seen.detail.volumes:
        return (whole,)
    missing = uncopied(case, item.seen.detail)
    together = copied_at_once(case, item.seen.detail)
    if together:
        return (replace(whole, copies=together),) if missing else ()
    return tuple(
        replace(whole, action_id=f"{decision}-{volume.ref.native_id}", resource=volume.ref) for volume in missing
    )


def _saving(item: WantedStep, verb: Verb, inputs: PlanInputs) -> Saving | None:
    rule, instance = item.seen.rule, item.seen.instance
    kept = inputs.kept.get(item.case.subject)
    saving = saving_of(verb, item.fact, kept) if rule is None else saving_of(verb, item.fact, kept, rule.limits)
    if saving is None or rule is None or instance is None:
        return saving
    ahead = [rung.verb for rung in ladder(rule, instance)[item.case.rung :]]
    return replace(saving, risks=(*saving.risks, *copying_risk(ahead, instance, item.seen.detail)))


def _stops_first(item: WantedStep, barred: AbstractSet[str]) -> tuple[bool, bool, bool, str, object, ResourceRef]:
    """Whatever ends a bill now comes before terminations, and the most expensive first.

    What the cloud was seen to protect when it was last looked at (`barred`) comes behind: else it would take the caps'
    room from others run after run.
    """
    rate = item.fact.rate if item.fact else None
    currency = rate.money.currency if rate else ""
    last = item.step.wants is Verb.TERMINATE
    cost = -rate.money.amount if rate else 0
    return (last, item.case.case_id in barred, rate is None, currency, cost, item.case.subject)
