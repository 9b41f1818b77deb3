"""The shapes of what `costguard policy … --json` answers, for type checkers and for the schema files."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from costguard.cases.case import CaseStatus
from costguard.domain.actions import Verb
from costguard.domain.reasons import FactValue
from costguard.domain.resources import Billing, InstanceState
from costguard.policy.diff.differences import Direction
from costguard.policy.model.ownership import OwnerSource
from costguard.policy.trial.documents import TrialOutcome
from costguard.report.policy.plan import Turn
from costguard.report.schemas import values
from costguard.report.schemas.values import Count, Mode, Money, Texts, Time, Verdict, one_of

_CaseStatus = Annotated[str, one_of(CaseStatus)]
_Turn = Annotated[str, one_of(Turn)]
_Step = Annotated[str, one_of(Verb.WARN, Verb.SNAPSHOT, Verb.STOP, Verb.TERMINATE)]


class PolicyDifference(TypedDict):
    """One thing that the new policy says otherwise."""

    section: str
    """A section of the policy, or `policy` for what stands at its top."""
    name: str
    """The rule, budget, account, owner or exception; empty for a section as a whole."""
    key: str
    """As the policy writes it. Empty: the whole entry is new (no `before`) or gone (no `after`). `falls_to`: machines
    of `name` may now come under the harsher rule `after`."""
    before: str
    after: str
    direction: Annotated[str, one_of(Direction)]


class PolicyDiff(TypedDict):
    """What a change of the policy means."""

    schema: Literal[1]
    old_digest: str
    new_digest: str
    same: bool
    loosens: bool
    differences: list[PolicyDifference]


class Missed(TypedDict):
    """What a test expected, and what was found instead."""

    key: str
    expected: str
    found: str


class Came(TypedDict):
    """What came of the machine."""

    rule: str | None
    verdict: Verdict
    reason: str
    owner: str | None
    owner_source: str
    next: _Step | None
    outcome: Annotated[str, one_of(TrialOutcome)]
    held_by: str | None
    next_at: Annotated[str | None, Field(json_schema_extra={"format": "date-time"})]
    """With the offset of the test's times."""
    words: str


class TestedPolicy(TypedDict):
    """One test of a policy."""

    path: str
    line: Annotated[int, Field(ge=1)]
    name: str
    passed: bool
    problem: Annotated[str, one_of("no_case", "no_rung")] | None
    """Why what the test says has happened before could not have."""
    missed: list[Missed]
    came: Came


class PolicyTest(TypedDict):
    """What came of the tests of a policy."""

    schema: Literal[1]
    passed: Count
    failed: Count
    tests: list[TestedPolicy]


class DecidedBy(TypedDict):
    """A policy, and the guards whose last run decided by it."""

    policy: str
    """Digest of what the policy means"""
    policy_bundle: str | None
    """Hash of its files, where it was published"""
    number: int | None
    """Which publication it was"""
    policy_waiting: str | None
    """Hash of one published after it that could not decide yet"""
    guards: Texts


class PlanSum(TypedDict):
    """What one kind of change comes to."""

    turn: _Turn
    count: Annotated[int, Field(ge=1)]
    hourly_cost: list[Money]
    unpriced: Count


class PlanStanding(TypedDict):
    """Where the subject stands after one of the two plans."""

    rule: str
    verdict: Verdict | None
    case: _CaseStatus | None
    doing: Annotated[str, one_of("due", "held", "rehearsed")] | None
    verb: str | None
    reason: str | None
    facts: dict[str, FactValue | bool]
    words: str


class PlanChange(TypedDict):
    """A subject that is treated otherwise."""

    subject: values.Subject
    name: str
    owner: str
    turn: _Turn
    hourly_cost: Money | None
    """What the subject costs while it runs; null where unknown."""
    before: PlanStanding
    after: PlanStanding


class PolicyPlan(TypedDict):
    """What a new policy would do now that the present one does not."""

    schema: Literal[1]
    guard: str
    at: Time
    old_digest: str
    new_digest: str
    instances_seen: Count
    sums: list[PlanSum]
    changes: list[PlanChange]
    gaps: list[values.Gap]


class Asked(TypedDict):
    """One thing that a rule asks of the machine."""

    key: str
    wanted: str
    found: str
    holds: bool


class RuleMatch(TypedDict):
    """One rule, and whether it applies."""

    name: str
    mode: Mode
    ladder: str
    applies: bool
    applied: bool
    """It decides: the least destructive of those that apply."""
    asked: list[Asked]
    excepted: list[list[Asked]]


class NamedOwner(TypedDict):
    """Who is told, and what named them."""

    name: str
    source: Annotated[str, one_of(OwnerSource.OWNERS, OwnerSource.TAG, OwnerSource.LAUNCHED, OwnerSource.ACCOUNT)]


class Exemption(TypedDict):
    """An exception of the policy that is about the machine."""

    where: str
    owner: str
    reason: str
    approver: str
    expires: Time
    in_force: bool


class ExplainedCase(values.Reason):
    """The machine's case."""

    case_id: str
    status: _CaseStatus


class PolicyExplain(values.Reason):
    """Why a policy treats one machine as it does."""

    schema: Literal[1]
    at: Time
    subject: values.Resource
    name: str
    instance_type: str
    billing: Annotated[str, one_of(Billing)]
    state: Annotated[str, one_of(InstanceState)]
    rules: list[RuleMatch]
    """Every rule, the least destructive first."""
    verdict: Verdict
    rule: str | None
    owners: list[NamedOwner]
    """Who is told, then who would be if those before said that it is not theirs."""
    channel: str | None
    exceptions: list[Exemption]
    rollout: values.Reason | None
    """Why it is treated more gently than its rule says, where the policy is rolled out by team and account."""
    snoozed_until: Time | None
    case: ExplainedCase | None
    gaps: list[values.Gap]
