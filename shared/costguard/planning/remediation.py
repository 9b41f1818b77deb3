"""From judged settings and their cases to a plan: what is due, what a rail holds, what is only rehearsed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from costguard.cases import Case, CaseStatus, CaseStep, decision_id
from costguard.cases.advance import GraceEnd, plain_time
from costguard.cases.remediation import RemediationSeen, advance_remediation, remediation_rungs
from costguard.domain.actions import Action, Saving, Verb
from costguard.domain.findings import Finding, Verdict
from costguard.domain.money import Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.domain.resources import Gap
from costguard.guards.rules.common import Mode, RemediationRule, at_most
from costguard.planning.plan import CapUse, ClaimView, Held, NoticeView, Plan, Rehearsed, RuleLimit, Transition
from costguard.planning.rails import account_key, mode_rail, observed

NOTICES_A_RUN = 20
"""The most new warnings of one rule in one run; the gravest come first, the others in the next runs."""

_NOTHING = Money(Decimal(0), "USD")  # no mend stops a machine, so none counts against a money cap


@dataclass(frozen=True, slots=True)
class Judged:
    """One finding, the rule it is by, what that allows about it, and what would keep that from being done.

    `bar` is a rail of the guard's own or of the house (a protecting tag, a listed account, the last way in). The higher
    its `gravity`, the sooner its turn comes.
    """

    finding: Finding
    rule: RemediationRule | None
    mend: Remediation | None = None
    bar: Reason | None = None
    gravity: int = 0


@dataclass(frozen=True, slots=True)
class RemediationInputs:
    """Everything a plan of mends depends on, as values; the same inputs always give the same plan.

    `shards` are those that answered, by whether absence proves absence there. The rest is as in `PlanInputs`.
    """

    guard: str
    run_id: str
    now: datetime
    policy_digest: str
    judged: tuple[Judged, ...]
    shards: Mapping[Shard, bool]
    rules: tuple[RemediationRule, ...]
    cases: tuple[Case, ...] = ()
    snoozes: Mapping[str, datetime] = field(default_factory=dict)
    kept_at: Mapping[str, datetime] = field(default_factory=dict)
    notices: Mapping[str, NoticeView] = field(default_factory=dict)
    claims: Mapping[str, ClaimView] = field(default_factory=dict)
    caps: Mapping[str, CapUse] = field(default_factory=dict)
    closed_accounts: frozenset[str] = frozenset()
    gaps: tuple[Gap, ...] = ()
    stop_all: Reason | None = None
    grace_end: GraceEnd = plain_time
    seen: int = 0
    observing: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Wanted:
    step: CaseStep
    case: Case
    judged: Judged | None


def build_remediation_plan(inputs: RemediationInputs) -> Plan:
    """The whole decision of one run. The engine commits `transitions`, then acts on `due` and nothing else."""
    before = {case.case_id: case for case in inputs.cases}
    limits = {rule.name: remediation_limit(rule) for rule in inputs.rules}
    used = {name: inputs.caps.get(name, CapUse()).actions for name in limits}
    told: dict[str, int] = {}
    due: list[Action] = []
    held: list[Held] = []
    rehearsed: list[Rehearsed] = []
    transitions: list[Transition] = []
    for item in sorted(_advanced(inputs), key=_gravest_first):
        case, verb = item.case, item.step.wants
        if verb is None:
            transitions.append(Transition(before.get(case.case_id), case))
            held.extend(_waiting_on_a_rail(item))
            continue
        action, gentle = _action(item, verb), observed(inputs.observing, case, mode_rail(verb, case.mode))
        reason = (inputs.stop_all if gentle is None else None) or _rail(item, verb, limits, used, told)
        if reason is not None:
            held.append(Held(action, reason))
            waits = replace(case, status=CaseStatus.HELD, reason=reason)
            if before.get(case.case_id) is not None or reason.code is not ReasonCode.CAP_ACTIONS:
                transitions.append(Transition(before.get(case.case_id), waits))
            continue
        transitions.append(Transition(before.get(case.case_id), case))
        if gentle is not None:
            rehearsed.append(Rehearsed(action, gentle))
            continue
        due.append(action)
        counted = told if verb is Verb.WARN else used
        counted[case.rule] = counted.get(case.rule, 0) + 1
    return Plan(
        guard=inputs.guard,
        run_id=inputs.run_id,
        planned_at=inputs.now,
        policy_digest=inputs.policy_digest,
        findings=tuple(each.finding for each in inputs.judged),
        transitions=tuple(transitions),
        due=tuple(due),
        held=tuple(held),
        rehearsed=tuple(rehearsed),
        gaps=inputs.gaps,
        limits=tuple(limits.values()),
        instances_seen=inputs.seen,
    )


def remediation_limit(rule: RemediationRule) -> RuleLimit:
    """The caps of a rule in numbers."""
    return RuleLimit(rule.name, rule.actions_per_day, (_NOTHING,))


def _advanced(inputs: RemediationInputs) -> Iterator[_Wanted]:
    judged = {(each.finding.check, each.finding.subject): each for each in inputs.judged}
    known = {(case.check, case.subject): case for case in inputs.cases}
    subjects = [*known, *((check, ref) for check, ref in judged if (check, ref) not in known)]
    for check, subject in subjects:
        if not isinstance(subject, ResourceRef):
            continue
        case, found = known.get((check, subject)), judged.get((check, subject))
        step = advance_remediation(case, _seen(inputs, subject, case, found), inputs.grace_end)
        if step.case is not None:
            yield _Wanted(step, step.case, found)


def _seen(inputs: RemediationInputs, subject: ResourceRef, case: Case | None, judged: Judged | None) -> RemediationSeen:
    rule = judged.rule if judged is not None else None
    if rule is not None and account_key(subject) in inputs.observing:
        rule = at_most(rule, Mode.OBSERVE)
    snooze = inputs.snoozes.get(str(subject))
    notice = inputs.notices.get(case.decision_id) if case is not None else None
    claim = inputs.claims.get(case.decision_id) if case is not None else None
    return RemediationSeen(
        now=inputs.now,
        rule=rule,
        finding=judged.finding if judged is not None else None,
        mend=judged.mend if judged is not None else None,
        shard_read=subject.shard in inputs.shards,
        shard_complete=inputs.shards.get(subject.shard, False),
        account_closed=subject.account in inputs.closed_accounts,
        snoozed_until=snooze if snooze is not None and snooze > inputs.now else None,
        kept_at=inputs.kept_at.get(str(subject)),
        notice_delivered_at=notice.delivered_at if notice else None,
        announced=notice.announced if notice else (),
        notice_dead=notice.dead if notice else False,
        notice_late=notice.late if notice else False,
        intent_written=claim is not None or notice is not None,
        last_outcome=claim.last_outcome if claim else None,
        barred=judged is not None and judged.bar is not None,
    )


def _rail(
    item: _Wanted, verb: Verb, limits: Mapping[str, RuleLimit], used: Mapping[str, int], told: Mapping[str, int]
) -> Reason | None:
    if item.judged is None or item.case.rule not in limits:
        return Reason(ReasonCode.RULE_GONE, {"rule": item.case.rule})
    if verb is Verb.WARN:
        full = told.get(item.case.rule, 0) >= NOTICES_A_RUN
        return Reason(ReasonCode.CAP_ACTIONS, {"allowed": NOTICES_A_RUN, "used": NOTICES_A_RUN}) if full else None
    if item.judged.bar is not None:
        return item.judged.bar
    allowed, so_far = limits[item.case.rule].max_actions, used[item.case.rule]
    if so_far + 1 > allowed:
        return Reason(ReasonCode.CAP_ACTIONS, {"allowed": allowed, "used": so_far})
    return None


def _waiting_on_a_rail(item: _Wanted) -> Iterator[Held]:
    """A case held where it stands shows what it would do next."""
    if item.case.status is not CaseStatus.HELD or item.judged is None or item.judged.rule is None:
        return
    rungs = remediation_rungs(item.judged.rule, item.judged.mend)
    if item.case.rung < len(rungs):
        yield Held(_action(item, rungs[item.case.rung].verb), item.case.reason)


def _action(item: _Wanted, verb: Verb) -> Action:
    """What is wanted now; a warning promises no mend that something stands in the way of."""
    case, judged = item.case, item.judged
    decision = case.decision_id or decision_id(case)
    return Action(
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
        saving=_saving(judged),
        mend=None if judged is None or (verb is Verb.WARN and judged.bar is not None) else judged.mend,
    )


def _saving(judged: Judged | None) -> Saving | None:
    """What an address no longer kept stops billing; no other mend saves anything by itself."""
    if judged is None or judged.mend is None or judged.mend.kind is not RemediationKind.RELEASE_ADDRESS:
        return None
    rate = judged.finding.rate
    return Saving(stops_billing=rate.money if rate is not None else None, price=rate)


def _gravest_first(item: _Wanted) -> tuple[bool, int, str, ResourceRef]:
    violation = item.judged is not None and item.judged.finding.verdict is Verdict.VIOLATION
    return (not violation, -(item.judged.gravity if item.judged is not None else 0), item.case.check, item.case.subject)
