"""The shape of what `costguard scan --json` answers; for type checkers and for the schema files."""

from __future__ import annotations

from typing import Annotated, Literal

from typing_extensions import TypedDict

from costguard.domain.resources import Billing, InstanceState
from costguard.policy.model.ownership import OwnerSource
from costguard.report.plan.shapes import Evidence
from costguard.report.schemas import values
from costguard.report.schemas.values import Count, Decimal, Money, Texts, Time, one_of


class OwnerWaste(TypedDict):
    """The machines of one owner, or of all; amounts are at list price, one for each currency."""

    owner: str
    instances: Count
    running_hours: Decimal
    idle_hours: Count
    idle_cost: list[Money]
    unpriced: Count
    """Machines whose price is unknown: their cost is not in `idle_cost`."""
    partly_idle_cost: list[Money]
    untouchable: Count
    idle_cost_effective: list[Money]
    """After discounts, of the idle machines whose discount is known."""
    without_effective: Count
    """Idle machines whose discount is not known: they are not in `idle_cost_effective`."""


class InstanceWaste(TypedDict):
    """One machine: what it is, how it was used, and what the policy says of it."""

    id: str
    name: str
    instance_type: str
    state: Annotated[str, one_of(InstanceState)]
    billing: Annotated[str, one_of(Billing)]
    owner: str
    owner_source: Annotated[str, one_of(OwnerSource, "")]
    running_hours: Decimal
    idle_hours: Count
    idle_cost: Money | None
    partly_idle_cost: Money | None
    hourly_cost: Money | None
    price_source: str | None
    price_as_of: str | None
    hourly_list_cost: Money | None
    """Null where it is unknown, or the policy gives a price in its place."""
    effective_price: values.EffectivePrice | None
    """Null where nobody knows what it costs after discounts."""
    idle_cost_effective: Money | None
    verdict: values.Verdict | None
    """Null where no rule covers the machine."""
    reason: str | None
    never_touched: str | None
    """Why nothing is ever done to it, in words; null where something may be."""
    words: str
    evidence: Evidence | None


class Unmeasured(TypedDict):
    """Machines of which nothing is concluded, for one reason, and how to mend that."""

    reason: str
    instances: Texts
    share: Decimal
    words: str
    fix: str


class Operation(TypedDict):
    """One API operation that the scan called; `permission` is what allowed it."""

    operation: str
    permission: str
    calls: Count
    changes_something: bool


class CallProof(TypedDict):
    """Every call that was made, counted where requests leave the process."""

    calls: Count
    changing_calls: Count
    operations: list[Operation]
    words: str


class Waste(TypedDict):
    """What idles, whose it is, what it costs, what was not measured, and the proof that nothing was changed."""

    schema: Literal[1]
    since: Time
    until: Time
    policy_digest: str
    instances_seen: Count
    total: OwnerWaste
    owners: list[OwnerWaste]
    instances: list[InstanceWaste]
    unmeasured_share: Decimal
    unmeasured: list[Unmeasured]
    gaps: list[values.Gap]
    reclaim: values.Reclaim
    proof: CallProof
