"""The shape of what `costguard savings --json` answers, for type checkers and for the schema file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from costguard.domain import savings as domain
from costguard.domain.actions import Verb
from costguard.estimates import upkeep
from costguard.report.plan.shapes import KeptCost
from costguard.report.policy.shapes import DecidedBy
from costguard.report.schemas.values import Count, Day, Decimal, EffectivePrice, Money, Rate, Texts, Time, one_of

_Sums = Annotated[list[Money], Field(description="One sum a currency.")]


class SavingsTotal(TypedDict):
    """What a currency comes to."""

    predicted: Money
    realised: Money
    still_billed: Money
    actions: Count
    cause: Annotated[str, one_of(domain.SavingCause)]
    """Sums of several causes are never added up."""
    realised_effective: Money | None
    """After discounts, of the actions whose discount was known; null where that is none."""
    effective_actions: Count
    """How many those are."""


class SavingsLine(SavingsTotal):
    """What one name comes to in a currency."""

    name: str


class Converted(TypedDict):
    """One more total, in one currency."""

    currency: str
    predicted: Money | None
    realised: Money | None
    still_billed: Money | None
    rates: list[Rate]
    without: Texts
    """Currencies without a rate; the sums are then null."""


class SavingsDay(TypedDict):
    """What a day of UTC came to."""

    day: Day
    realised: Money


class Covered(TypedDict):
    """How much of the price commitments leave."""

    uncovered_share: Decimal
    source: str
    until: Time


class SavingAction(TypedDict):
    """One action with everything its figures rest on."""

    action_id: str
    """What `costguard undo` and `--explain` take."""
    case_id: str
    """What `costguard why` takes."""
    guard: str
    """Empty where an older Costguard wrote it."""
    rule: str
    verb: Annotated[str, one_of(Verb.STOP, Verb.TERMINATE, Verb.MEND)]
    id: str
    cloud: str
    sub_account_id: str
    region_id: str
    name: str
    instance_type: str
    owner: str
    since: Time
    """When it was seen complete."""
    counted_until: Time
    """How far it counts, whatever the time of the report."""
    goes_on: bool
    standing: Annotated[str, one_of(domain.SavingStanding)]
    standing_since: Time | None
    words: str
    """The standing as a sentence, by --lang."""
    replaced_by: str | None
    replaced_how: Annotated[str, one_of("group", "launcher", "name", "tags")] | None
    shared_with: str | None
    cause: Annotated[str, one_of(domain.SavingCause)]
    """Whose doing it is: Costguard's, a person's after its notice, or nobody can show whose."""
    worth: Annotated[str, one_of(domain.Worth)]
    hourly_cost: Money | None
    price_source: str | None
    price_as_of: str | None
    hourly_list_cost: Money | None
    """Null where it is unknown, or the policy gives a price in its place."""
    effective_price: EffectivePrice | None
    """Null where nobody knew what it cost after discounts."""
    commitments: Covered | None
    """Null where no bill tells; then none is allowed for."""
    stops_billing_hourly: Money | None
    """After commitments, before what is kept."""
    kept: list[KeptCost]
    predicted: _Sums
    realised: Annotated[list[Money], Field(description="Net of `kept` and of `billed_anyway`. One sum a currency.")]
    realised_effective: _Sums
    """The same after discounts; empty where nobody knew them."""
    still_billed: _Sums
    billed_anyway: Money | None
    billed_until: Time | None


class MachineDay(TypedDict):
    """What one day of an action came to."""

    day: Day
    since: Time
    until: Time
    predicted: _Sums
    realised: _Sums
    still_billed: _Sums


class Savings(TypedDict):
    """What was saved, as far as it was seen."""

    schema: Literal[1]
    since: Time
    until: Time
    at: Time
    """When it was asked; everything is as it was seen by then."""
    policies: list[DecidedBy]
    """The policies that the last runs decided by, most often one"""
    totals: list[SavingsTotal]
    """What Costguard caused, one for each currency; never added up."""
    others: list[SavingsTotal]
    """What a person did after its notice, and what nobody can be shown to have done: in no other figure."""
    converted: Converted | None
    """With --currency: one more total, by the rates it names."""
    by_month: list[SavingsLine]
    by_owner: list[SavingsLine]
    by_guard: list[SavingsLine]
    by_cloud: list[SavingsLine]
    daily: list[SavingsDay]
    """Every day of UTC, for each currency."""
    actions: list[SavingAction]


class Explained(TypedDict):
    """With --explain: one action and its days."""

    schema: Literal[1]
    action: SavingAction
    days: list[MachineDay]


class CostAssumed(TypedDict):
    """What nobody knows before it runs, and what was taken for it: options of the command."""

    machines: Count
    cards: Count
    budgets: Count
    run_seconds: Count


class CostLine(TypedDict):
    """One thing that Costguard itself takes, for a month of 730 hours, at list price."""

    item: Annotated[str, one_of(upkeep.Item)]
    words: str
    quantity: Decimal
    unit: str
    unit_price: Money | None
    monthly_cost: Money | None
    """Null where nobody knows, which never means zero."""
    unknown: Annotated[str, one_of(upkeep.Unknown)] | None
    source: str | None
    """The page of the vendor that has the price."""
    as_of: str | None
    """The date of that page's edition, or `undated`."""


class DeployCost(TypedDict):
    """What Costguard itself costs a month in one cloud, before it is deployed."""

    schema: Literal[1]
    cloud: Annotated[str, one_of("aws", "alibaba", "tencent")]
    region_id: str
    known: _Sums
    complete: bool
    """Whether every line has an amount."""
    assumed: CostAssumed
    lines: list[CostLine]
    words: Texts
