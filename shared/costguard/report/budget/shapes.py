"""The shape of what `costguard budgets --json` answers, for type checkers and for the schema file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import NotRequired, TypedDict

from costguard.domain.money import ChargeCategory
from costguard.estimates.commitments import CommitmentEvidence
from costguard.guards.budget import rules as guard
from costguard.guards.budget.alerts import AlertKind
from costguard.report.schemas import values
from costguard.report.schemas.values import Count, Day, Decimal, Mode, Money, Parameters, Rate, Texts, Time, one_of


class Covers(TypedDict):
    """Whose costs count."""

    clouds: Texts | None
    accounts: Texts | None
    regions: Texts | None
    tags: Parameters


class BudgetPeriod(TypedDict):
    """How long the amount is for."""

    kind: Annotated[str, one_of(guard.PeriodKind)]
    zone: str
    first: str | None
    last: str | None


class StepInForce(TypedDict):
    """A step that the budget has reached."""

    at_percent: Decimal
    step: Annotated[str, one_of(guard.StepKind)]


class BudgetStep(StepInForce):
    """What is done at a share of the budget."""

    after_seconds: Count
    idle_for_seconds: NotRequired[Count]
    classes: NotRequired[Texts]
    freezes: NotRequired[Texts]


class BudgetRule(TypedDict):
    """The budget as the policy says it; as in `costguard policy check --json`."""

    name: str
    mode: Mode
    digest: str
    covers: Covers
    amount: Money
    period: BudgetPeriod
    alert_percent: list[Decimal]
    forecast_alert_percent: list[Decimal]
    surge_alert: bool
    steps: list[BudgetStep]
    tell: Texts


class Period(TypedDict):
    """The period that is looked at."""

    key: str
    start: Time
    """UTC."""
    end: Time
    """UTC."""
    zone: str


class Parts(TypedDict):
    """What the spend is made of."""

    billed: Money
    accrued: Money
    estimated: Money
    ahead: Money
    may_lack: Annotated[
        Money | None,
        Field(description="By how much the unbilled parts may be too little, four of five times at most."),
    ]


class Spent(Parts):
    """What is spent of the budget."""

    total: Money
    share_percent: Decimal
    lower_bound: bool
    estimated_share_percent: Decimal
    bill_age_hours: Decimal | None


class CategoryCost(TypedDict):
    """What was billed of one kind."""

    category: Annotated[str, one_of(ChargeCategory)]
    counts: bool
    cost: Money


class RunRate(TypedDict):
    """What goes on costing."""

    per_hour: Money
    days: Count


class Reconciled(TypedDict):
    """Metering against the bill."""

    days: Count
    metered: Money
    billed: Money
    error_percent: Decimal
    factor: Decimal
    bounded: bool


class Unexplained(TypedDict):
    """Billed for accelerators that no inventory lists."""

    sub_account_id: str
    service_name: str
    resource_ids: Texts
    cost: Money


class CloudSpend(Parts):
    """What a cloud's bill and machines add."""

    cloud: str
    source: str
    """Where the bill was read from."""
    read_at: Time
    """UTC."""
    complete_until: Time | None
    """Every charge before it is in the bill; null: the bill says nothing yet."""
    bill_age_hours: Decimal | None
    reckoned_since: Time
    """From when on the bill no longer speaks alone."""
    burn_per_hour: Money
    categories: list[CategoryCost]
    """What was billed in the period by kind, in the bill's currency; `counts` false: left out, as the policy says."""
    run_rate: RunRate | None
    """Of everything that is not a metered machine."""
    reconciled: Reconciled | None
    """Metering against the bill."""
    unexplained: list[Unexplained]
    """Billed for accelerators that no inventory lists."""
    without_rate: list[Money]
    """In currencies that no rate was given for; in no figure."""


class MachineSpend(TypedDict):
    """What a machine adds to `accrued`."""

    id: str
    name: str
    instance_type: str
    hours: Decimal
    hourly: Money
    cost: Money


class Commitment(TypedDict):
    """What is known to fall due."""

    known_from: Annotated[str, one_of(CommitmentEvidence)]
    """A machine's prepaid term that ends, or a fee that the bill had before."""
    id: str | None
    """The machine; null for a fee."""
    name: str
    cloud: str
    sub_account_id: str
    due: Time
    """UTC; of several, the first."""
    times: Annotated[int, Field(ge=1)]
    """In how many parts, a day apart."""
    cost: Money | None
    """All parts, on the budget's cost basis and in its currency; null: spread over the term, or in no figure."""
    billed_cost_before: Money | None
    """What `cost` goes by, in its own currency; null where no price is known."""
    certain: bool
    """False: it may fall due, and is in `high` alone."""
    spread: bool
    """The cost comes with the days of the term, as it does already."""
    list_price: bool
    charged_before: list[Day]


class Forecast(TypedDict):
    """The whole period, with 80 % confidence between low and high where tested is above 0."""

    low: Money
    expected: Money
    high: Money
    at_this_burn: Money
    method: str
    backtest_error_percent: Decimal | None
    tested: Count
    """How many forecasts were tried on the budget's own past; they overlap. 0: the bounds have no measured
    confidence."""
    held: Count
    """How many of these lay within the bounds as they were known at their time."""
    commitments: list[Commitment]
    """What is known to fall due in the period and is not billed yet, soonest first."""


class Surge(TypedDict):
    """Far more than usual."""

    now: Money
    usual: Money
    factor: Decimal | None
    compared: str


class DaySpend(TypedDict):
    """What a day cost."""

    day: Day
    spent: Money


class Told(TypedDict):
    """A threshold that people were told of."""

    kind: Annotated[str, one_of(AlertKind)]
    at_percent: Decimal
    title: str
    channel: str
    delivered_at: Time | None


class Budget(TypedDict):
    """Where one budget stands."""

    rule: BudgetRule
    period: Period | None
    """null: a dated budget outside its dates."""
    spent: Spent | None
    clouds: list[CloudSpend]
    """What each cloud's bill and machines add."""
    unread_clouds: Texts
    """Clouds of the scope whose bill was never read: the figures are a lower bound."""
    machines: list[MachineSpend]
    """What `accrued` adds up, dearest first."""
    exchange_rates: list[Rate]
    """The dated rates that were used."""
    burn_per_hour: Money | None
    full_at: Time | None
    """When all of it is spent as it burns now; null: never, or it is."""
    forecast: Forecast | None
    surge: Surge | None
    history: list[DaySpend]
    """Days that every bill holds in full, oldest first."""
    sure: bool
    """Whether the figures may be acted on."""
    doubts: list[values.Reason]
    """Why they may not, the weightiest first."""
    told: list[Told]
    """Thresholds that people were told of in this period; delivered_at null: on its way."""
    steps_in_force: list[StepInForce]
    machines_under_way: Texts
    """Machines with an open case for this budget."""


class Budgets(TypedDict):
    """Where budgets stand, every figure an exact decimal with its currency, its source and its freshness.

    `costguard budgets explain --json` gives one of them.
    """

    schema: Literal[1]
    at: Time
    """UTC."""
    budgets: list[Budget]
    gaps: list[values.Gap]
