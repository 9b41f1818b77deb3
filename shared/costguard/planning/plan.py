"""What planning is given, the plan it makes, and that plan by case and check. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from costguard.cases import Announced, Case, CaseStatus, Phase, due_at
from costguard.cases.advance import GraceEnd
from costguard.domain.actions import Action, Outcome, Saving, Verb
from costguard.domain.answers import AnswerRef
from costguard.domain.findings import Finding, ShardFacts, Verdict
from costguard.domain.money import Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Shard, Subject
from costguard.domain.resources import Gap, InstanceDetail, Launch
from costguard.domain.savings import Sighting
from costguard.guards.rules.common import Mode, Rung
from costguard.planning.rollout import NO_ROLLOUT, Rollout
from costguard.policy.model.policy import Policy
from costguard.policy.model.terms import rule_from_terms

KeptLines = tuple[tuple[str, Money | None], ...]
"""What goes on billing after a stop: line and price an hour, None where unknown."""


@dataclass(frozen=True, slots=True)
class NoticeView:
    """What became of a decision's notice, and what it `announced`.

    `late`: it is not sent any more, because the dates it names are past.
    """

    delivered_at: datetime | None
    dead: bool = False
    late: bool = False
    announced: tuple[Announced, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimView:
    """What became of a decision's intents, the least settled first: None means no outcome was written.

    `request_id` is the cloud's own id of the call, where it answered.
    """

    last_outcome: Outcome | None
    request_id: str


@dataclass(frozen=True, slots=True)
class CapUse:
    """What a rule has done in the last 24 hours under one of its caps, and to which subjects."""

    actions: int = 0
    hourly_cost: tuple[Money, ...] = ()
    subjects: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """Everything a plan depends on, as values; the same inputs always give the same plan.

    `stop_all` is the reason nothing may be done in this run (kill switch, ledger not durable, policy
    too old), None when there is none. `details` holds the instances read closely, `notices` and
    `claims` are by decision id, `kept` is what stays billed after a stop. `doubts` are by name of a rule why
    its violations may not be believed; `others` are the active cases of other guards by subject, so that two
    of them ask for one stop. `hastened` are the decisions whose notice was answered with "stop now".
    `observing` are the accounts in which every rule only observes, each until when (`new_accounts`).
    `launches` are who launched what, as far as that was asked; `disowned` by resource id the names of those who said
    that it is not theirs. `barred` are the accounts where nothing is done but notices, each why (`deployments`).
    `kept_at` is when people last asked to leave each resource alone, whether that still holds or not.
    `rollout` is how far each team and account has come (`rollout`).
    `verdicts` are what was judged of `facts` already, by these rules; None: nobody has yet.
    """

    guard: str
    run_id: str
    now: datetime
    policy: Policy
    facts: tuple[ShardFacts, ...]
    cases: tuple[Case, ...] = ()
    details: Mapping[ResourceRef, InstanceDetail] = field(default_factory=dict)
    kept: Mapping[ResourceRef, KeptLines] = field(default_factory=dict)
    snoozes: Mapping[str, datetime] = field(default_factory=dict)
    kept_at: Mapping[str, datetime] = field(default_factory=dict)
    notices: Mapping[str, NoticeView] = field(default_factory=dict)
    claims: Mapping[str, ClaimView] = field(default_factory=dict)
    approved: frozenset[str] = frozenset()
    caps: Mapping[str, CapUse] = field(default_factory=dict)
    closed_accounts: frozenset[str] = frozenset()
    gaps: tuple[Gap, ...] = ()
    stop_all: Reason | None = None
    doubts: Mapping[str, Reason] = field(default_factory=dict)
    others: Mapping[ResourceRef, tuple[Case, ...]] = field(default_factory=dict)
    launches: Mapping[ResourceRef, Launch] = field(default_factory=dict)
    disowned: Mapping[str, frozenset[str]] = field(default_factory=dict)
    hastened: frozenset[AnswerRef] = frozenset()
    observing: Mapping[str, datetime] = field(default_factory=dict)
    barred: Mapping[str, Reason] = field(default_factory=dict)
    rollout: Rollout = NO_ROLLOUT
    verdicts: tuple[Finding, ...] | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """An action that would be due but for a rail, and which."""

    action: Action
    reason: Reason


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What a gentler mode kept from happening."""

    action: Action
    reason: Reason


@dataclass(frozen=True, slots=True)
class Transition:
    """How a case moves in this run; `before` None opens it. Committed only if the record is still at its version."""

    before: Case | None
    after: Case


class Differs(str, Enum):
    """How a rule in the shadow differs from what is in force. Sooner and later are of the stop, by over an hour."""

    ONLY_SHADOW = "only_shadow"
    ONLY_IN_FORCE = "only_in_force"
    SOONER = "sooner"
    LATER = "later"
    OTHER_MEND = "other_mend"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one side says. `stops_at` is when it stops the machine if nobody says anything, None where it never does."""

    rule: str
    verdict: Verdict
    reason: Reason
    stops_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ShadowDifference:
    """One thing that a rule in the shadow and what is in force see differently."""

    subject: ResourceRef
    check: str
    name: str
    owner: str
    differs: Differs
    in_force: Judgement
    shadow: Judgement
    hourly: Money | None = None


@dataclass(frozen=True, slots=True)
class Shadow:
    """One rule in the shadow beside what is in force. `transitions` is the life of the cases that it would have.

    `compared` counts what both judged, `would_stop` the machines that it would have stopped by now.
    """

    rule: str
    rule_digest: str
    compared: int
    differences: tuple[ShadowDifference, ...] = ()
    would_stop: int = 0
    transitions: tuple[Transition, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleLimit:
    """What act may reserve for a rule in any rolling 24 hours; `seen` is how many a share of them was taken of."""

    rule: str
    max_actions: int
    max_hourly: tuple[Money, ...]
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """All a run has decided. Only `due` reaches the executor.

    `sightings` are the machines it saw and `looked` the shards where absence proves absence: what savings rest on.
    `protected_by` are the protections at the cloud of machines that have a case: what their notices may not announce.
    `unstoppable` are those of them that cannot stop, and so have a ladder of their own. `unread_protections` are those
    that a step is due for, or would be, and whose protections are only looked at just before it: nothing here says that
    they have none. `next_in_line` are steps that a cap alone holds, in their order: act takes them where one of `due`
    gives back what it reserved.
    """

    guard: str
    run_id: str
    planned_at: datetime
    policy_digest: str
    findings: tuple[Finding, ...]
    transitions: tuple[Transition, ...]
    due: tuple[Action, ...]
    held: tuple[Held, ...]
    rehearsed: tuple[Rehearsed, ...]
    gaps: tuple[Gap, ...]
    limits: tuple[RuleLimit, ...] = ()
    kept: Mapping[ResourceRef, KeptLines] = field(default_factory=dict)
    protected_by: tuple[tuple[ResourceRef, tuple[str, ...]], ...] = ()
    instances_seen: int = 0
    billed_while_stopped: tuple[ResourceRef, ...] = ()
    sightings: tuple[Sighting, ...] = ()
    looked: tuple[Shard, ...] = ()
    shadows: tuple[Shadow, ...] = ()
    unstoppable: tuple[ResourceRef, ...] = ()
    unread_protections: tuple[ResourceRef, ...] = ()
    next_in_line: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanIndex:
    """`plan`, and parts of it by key; of several with one key the first. `savings` is of due actions by their case.

    Findings are those of subjects that have a case: of every other subject nobody is told, and nothing is settled.
    """

    plan: Plan
    cases: Mapping[str, Case]
    findings: Mapping[Subject, Finding]
    of_checks: Mapping[tuple[str, Subject], Finding]
    savings: Mapping[str, Saving | None]
    protections: Mapping[ResourceRef, tuple[str, ...]]
    unstoppable: frozenset[ResourceRef] = frozenset()

    @classmethod
    def of(cls, plan: Plan) -> PlanIndex:
        """The index of a plan."""
        cases = {step.after.case_id: step.after for step in reversed(plan.transitions)}
        meant = {case.subject for case in cases.values()}
        findings = [finding for finding in reversed(plan.findings) if finding.subject in meant]
        return cls(
            plan=plan,
            cases=cases,
            findings={finding.subject: finding for finding in findings},
            of_checks={(finding.check, finding.subject): finding for finding in findings},
            savings={action.case_id: action.saving for action in reversed(plan.due)},
            protections=dict(plan.protected_by),
            unstoppable=frozenset(plan.unstoppable),
        )

    def case_of(self, action: Action) -> Case:
        """The case that `action` belongs to, as the plan leaves it."""
        return self.cases[action.case_id]


def merged(
    case: Case, wants: Verb, rungs: Sequence[Rung], others: Sequence[Case], now: datetime, grace_end: GraceEnd
) -> Reason | None:
    """Why another guard's case on the same run of the machine stands in for this step; None where none does.

    A case that only watches stands in for nothing, nor does one that is held, but for days off: it may be for ever. A
    notice is left out where the owner was told already of a stop that comes no later; a stop, where the other's is
    under way.
    """
    for other in others:
        if other.mode is not Mode.ENFORCE or other.run_epoch != case.run_epoch:
            continue
        under_way = other.phase is not Phase.WAITING and other.climbed_at(Verb.WARN) is not None
        going_on = other.status is CaseStatus.OPEN or other.reason.code is ReasonCode.FIRST_STOP_WAITS
        if under_way or (going_on and wants is Verb.WARN and _no_later(other, rungs, now, grace_end)):
            return Reason(ReasonCode.MERGED, {"guard": other.guard, "rule": other.rule})
    return None


def _no_later(other: Case, rungs: Sequence[Rung], now: datetime, grace_end: GraceEnd) -> bool:
    mine = next((rung for rung in rungs if rung.verb is Verb.STOP), None)
    theirs = rule_from_terms(other.terms).rungs()
    pending = next((rung for rung in theirs[other.rung :] if rung.verb is Verb.STOP), None)
    if mine is None or pending is None or other.climbed_at(Verb.WARN) is None:
        return False
    return due_at(other, pending, grace_end) <= grace_end(grace_end(now, mine.after), timedelta(0), first_stop=True)
