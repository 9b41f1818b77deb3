"""The shape of what `costguard report --json` answers, for type checkers and for the schema file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from costguard.report.plan.shapes import Case, ShadowStanding, Verb
from costguard.report.policy.shapes import DecidedBy
from costguard.report.schemas import values
from costguard.report.schemas.values import Count, Decimal, Money, Texts, Time


class Summary(TypedDict):
    """What it comes to. Amounts are by currency."""

    saved: list[Money]
    wasted_a_day: list[Money]
    untouchable_a_day: list[Money]
    reclaim: values.Reclaim
    idle: Count
    untouchable: Count
    running: Count
    unmeasured: Count
    unmeasured_percent: str
    unseen_places: Texts
    held: dict[str, Count]
    """Reason code: how often it held something back in the last runs"""
    refused: Count


class Look(TypedDict):
    """What one run of a guard saw."""

    guard: str
    run_id: str
    at: Time
    seen: Count
    due: Count
    rehearsed: Count
    left_out: Count


class Sight(values.Resource, values.Reason):
    """What the last run of a guard found of one thing."""

    name: str
    instance_type: str
    owner: str
    check: str
    rule: str
    verdict: values.Verdict
    idle: bool
    idle_since: Time | None
    hourly_cost: Money | None
    hourly_effective_cost: Money | None
    """After discounts; null where nobody knows them"""
    price_source: str | None
    busiest_percent: float | None
    """Highest GPU utilisation in the window that was judged"""
    coverage: Annotated[float, Field(ge=0, le=1)] | None
    days: dict[str, float | None]
    """Each day's highest GPU utilisation, null where nothing was measured"""


class BudgetForecast(TypedDict):
    """What the period will have cost."""

    best: Money | None
    expected: Money | None
    worst: Money | None


class BudgetSight(TypedDict):
    """Where one budget stood."""

    name: str
    at: Time
    period: str
    amount: Money
    spent: Money
    billed: Money | None
    share_percent: Decimal
    burn_per_hour: Money | None
    forecast: BudgetForecast | None
    unread_clouds: Texts
    doubts: list[values.Reason]
    days: dict[str, Decimal]


class Refusal(values.Resource):
    """Something that was to be done and was refused by a cloud."""

    at: Time
    verb: Verb
    owner: str
    detail: str


class Report(TypedDict):
    """What the last runs saw, did, held and could not read."""

    schema: Literal[1]
    at: Time
    since: Time
    owner: str | None
    live: bool
    """Looked at now, and not told from the ledger"""
    policies: list[DecidedBy]
    """The policies that the last runs decided by, most often one"""
    summary: Summary
    looks: list[Look]
    machines: list[Sight]
    keys: list[Sight]
    networks: list[Sight]
    budgets: list[BudgetSight]
    cases: list[Case]
    refusals: list[Refusal]
    gaps: list[values.Gap]
    shadows: list[ShadowStanding]
    """Rules in the shadow that the last runs followed, and where they would differ."""
