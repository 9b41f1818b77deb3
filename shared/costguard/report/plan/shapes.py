"""The shape of what `costguard plan --json` answers, and its parts that other answers share.

For type checkers and for the schema files.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from costguard.cases.case import CaseStatus, Phase
from costguard.domain import actions as domain
from costguard.domain.remediations import RemediationKind
from costguard.domain.signals import SignalName, Statistic
from costguard.planning.plan import Differs
from costguard.policy.model.ownership import OwnerSource
from costguard.report.plan.case_history import What
from costguard.report.schemas import values
from costguard.report.schemas.values import Count, Mode, Money, Parameters, Texts, Time, one_of

_Level = Annotated[float, Field(ge=0)]
Verb = Annotated[str, one_of(domain.Verb)]


class Mend(TypedDict):
    """The one change of a setting that the action makes; null for every other verb."""

    kind: Annotated[str, one_of(RemediationKind)]
    subject: str
    parameters: Parameters
    words: str


class Signal(TypedDict):
    """What was measured of one signal, or of one card."""

    name: Annotated[str, one_of(SignalName)]
    device: str
    """Index of the card; empty for the whole machine."""
    maximum: float | None
    unit: Annotated[str, one_of("%", "B/s", "W")]
    samples: Count
    expected: Count
    newest_at: Time | None
    statistic: Annotated[str, one_of(Statistic)]
    source: str
    outline: Annotated[list[_Level | None], Field(max_length=24)]
    sustained: _Level | None
    """The level reached in at least an eighth of the hours, or in each of the newest two."""
    judged: bool
    """Whether the rule names this signal; what it does not name is shown and decides nothing."""


class Evidence(TypedDict):
    """What a verdict rests on."""

    since: Time
    until: Time
    coverage: Annotated[float, Field(ge=0, le=1)] | None
    newest_at: Time | None
    signals: list[Signal]


class Usage(TypedDict):
    """How the machine spent the hours looked back on."""

    running_hours: _Level
    observed_hours: Count
    idle_hours: Count
    partly_idle_card_hours: Count


class KeptCost(TypedDict):
    """What is billed on after the step."""

    what: str
    hourly_cost: Money | None


class Saving(TypedDict):
    """What the step saves."""

    stops_billing: Money | None
    stops_billing_effective: Money | None
    """The same after discounts; null where nobody knows them."""
    kept: list[KeptCost]
    net: Money | None
    risks: Texts


class Finding(values.Subject, values.Reason):
    """A verdict on one subject and what it rests on."""

    verdict: values.Verdict
    evidence: Evidence | None
    guard: str
    check: str
    rule: str
    rule_digest: str
    run_epoch: str
    instance_type: str
    name: str
    """Name given by people; never identifies."""
    owner: str
    owner_source: Annotated[str, one_of(OwnerSource, "")]
    """What named the owner; empty where nothing is told of it."""
    hourly_cost: Money | None
    price_source: str | None
    price_as_of: str | None
    hourly_list_cost: Money | None
    """Null where it is unknown, or the policy gives a price in its place."""
    effective_price: values.EffectivePrice | None
    """Null where nobody knows what it costs after discounts."""
    usage: Usage | None


class Action(values.Resource):
    """A change to one resource."""

    verb: Verb
    subject: Annotated[str, Field(description="Full id of the instance whose case this is.")]
    action_id: str
    decision_id: str
    case_id: str
    rung: Count
    run_epoch: str
    rule: str
    rule_digest: str
    parameters: Parameters
    copies: Annotated[
        Texts, Field(description="Full ids of the volumes that one call copies as a set; empty for anything else.")
    ]
    mend: Mend | None
    saving: Saving | None


class Due(Action):
    """A change that will be made."""

    words: str


class Kept(Action, values.Reason):
    """A change that is not made, and why."""

    step: str
    """The step that is not taken, in words."""


class Judgement(values.Reason):
    """What one rule says of a subject."""

    rule: str
    verdict: values.Verdict
    stops_at: Time | None


class ShadowDifference(TypedDict):
    """Where a rule in the shadow differs from what is in force."""

    subject: values.Subject
    check: str
    name: str
    owner: str
    differs: Annotated[str, one_of(Differs)]
    in_force: Judgement
    shadow: Judgement
    hourly_cost: Money | None


class Shadow(TypedDict):
    """A rule in the shadow beside what is in force."""

    guard: str
    rule: str
    rule_digest: str
    compared: Count
    would_stop: Count
    differences: list[ShadowDifference]


class Ended(TypedDict):
    """What became of the machines that the rule in the shadow would have stopped."""

    stops: Count
    busy_within_24_hours: Count
    busy_later: Count
    stopped_all_the_same: Count
    otherwise: Count
    idle_hours: _Level


class ShadowStanding(Shadow):
    """A rule in the shadow, and what became of it since."""

    since: Time
    at: Time
    left_out: Count
    ended: Ended


class Shadows(TypedDict):
    """Every rule in the shadow."""

    schema: Literal[1]
    shadows: list[ShadowStanding]


class RolloutCondition(TypedDict):
    """What must hold for a step."""

    regret_below: Annotated[float, Field(ge=0, le=1)]
    in_shadow: str
    of_at_least: Count


class Regret(TypedDict):
    """How many would-be stops have ended, and after how many the machine was in use again within 24 hours."""

    stops: Count
    regretted: Count
    share: Annotated[float, Field(ge=0, le=1)]


class RolloutNext(TypedDict):
    """The next step of an entry."""

    mode: Mode
    since: str
    at: Time
    condition: RolloutCondition | None
    measured: Regret | None
    """None: nothing is asked for, or nothing was measured."""
    told_at: Time | None
    """When its announcement was delivered."""
    held: values.Reason | None
    """What holds it back beside its day."""


class RolloutEntry(TypedDict):
    """Where one entry of a rollout stands."""

    team: str
    """`*`: whatever no other entry covers; empty: every team."""
    account: str
    mode: Mode
    next: RolloutNext | None


class Rollout(TypedDict):
    """How far each team and account has come."""

    schema: Literal[1]
    policy_mode: Mode
    entries: list[RolloutEntry]


class Climbed(TypedDict):
    """A step that was done."""

    verb: Verb
    at: Time


class Case(values.Subject, values.Reason):
    """Where one case stands."""

    case_id: str
    guard: str
    check: str
    rule: str
    mode: Mode
    owner: str
    run_epoch: str
    status: Annotated[str, one_of(CaseStatus)]
    phase: Annotated[str, one_of(Phase)]
    rung: int
    climbed: list[Climbed]
    opened_at: Time
    since: Time
    snoozed_until: Time | None
    closed_at: Time | None
    decision_id: str | None


class Cases(TypedDict):
    """The open cases, or with `--all` every one, of one guard or of all."""

    schema: Literal[1]
    guard: str | None
    paused: bool
    """Whether a kill switch is set."""
    cases: list[Case]


class Look(values.Reason):
    """What a look just now found."""

    verdict: values.Verdict
    name: str
    owner: str
    owner_source: Annotated[str, one_of(OwnerSource, "")]
    evidence: Evidence | None


class Happened(TypedDict):
    """One thing that happened to a subject, oldest first; what does not apply is null."""

    at: Time
    what: Annotated[str, one_of(What)]
    verb: Verb | None
    where: str
    outcome: str | None
    action_id: str | None
    detail: str


class Upcoming(TypedDict):
    """A step that may come, and before when it does not."""

    verb: Verb
    not_before: Time | None


class Snoozed(TypedDict):
    """Left alone until then, by whom and why."""

    until: Time
    by: str
    reason: str


class Why(values.Subject):
    """What is known of one subject; `finding` is null where nobody looked just now."""

    schema: Literal[1]
    case: Case | None
    finding: Look | None
    happened: list[Happened]
    upcoming: list[Upcoming]
    snoozed: Snoozed | None
    earlier: list[Case]
    gaps: list[values.Gap]


class Plan(TypedDict):
    """What is found, will be done, is held or only rehearsed, and could not be read."""

    schema: Literal[1]
    guard: str
    run_id: str
    plan_hash: str
    """What `costguard apply` binds to."""
    planned_at: Time
    policy_digest: str
    instances_seen: Count
    findings: list[Finding]
    due: list[Due]
    held: list[Kept]
    rehearsed: list[Kept]
    gaps: list[values.Gap]
    reclaim: values.Reclaim
    unread_protections: Texts
    """Machines whose protections at the cloud are looked at just before their step: nothing here says that they have
    none."""
    shadows: list[Shadow]
    """Rules in the shadow, and where they would differ from what is in force."""
