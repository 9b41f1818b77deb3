"""The shapes that many JSON answers share, for type checkers and for the schema files; no command imports them.

A field's docstring, or else its `description`, is what the schema says of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Annotated

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from costguard.domain.findings import Verdict as VerdictKind
from costguard.domain.money import NetSource
from costguard.domain.reasons import FactValue
from costguard.domain.resources import GapKind


def one_of(*allowed: type[Enum] | Enum | str) -> WithJsonSchema:
    """One of these texts, or of the values of these enumerations."""
    found: list[str] = []
    for each in allowed:
        members = list(each) if isinstance(each, type) else [each]
        found += [str(member.value) if isinstance(member, Enum) else str(member) for member in members]
    return WithJsonSchema({"type": "string", "enum": found})


Count = Annotated[int, Field(ge=0)]
Decimal = Annotated[str, Field(pattern=r"^-?[0-9]+(\.[0-9]+)?$")]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Time = Annotated[
    str,
    Field(
        pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$", json_schema_extra={"format": "date-time"}
    ),
]
Day = Annotated[str, Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$", json_schema_extra={"format": "date"})]
Mode = Annotated[str, one_of("observe", "warn", "enforce")]
Verdict = Annotated[str, one_of(VerdictKind)]
Texts = Sequence[str]
Parameters = dict[str, str]


class Money(TypedDict):
    """An exact decimal amount as text, with its ISO 4217 currency; null where unknown, which never means zero."""

    amount: Decimal
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")]


class EffectivePrice(TypedDict):
    """What an hour costs after discounts, and how that is known. Limits in money count list prices."""

    hourly_effective_cost: Money
    source: Annotated[str, one_of(NetSource)]
    """`bill` is measured; `discount` and `price` are what the policy declares."""
    as_of: str
    """Up to when the bill was measured, or since when the policy says so; empty: always."""
    discount: Decimal | None
    """The share off the list price, 0 to 1; null where the policy gives a price in its place."""
    declared_discount: Decimal | None
    """What the policy declares, where the bill says otherwise."""


class Portion(TypedDict):
    """Idle machines of one kind, and what they cost a day at list price; currencies are never summed."""

    machines: Count
    a_day: list[Money]
    unpriced: Count
    """Those of them whose price is unknown, and in no amount."""


class Reclaim(TypedDict):
    """What may be done about the cost of what idles now, as the policy's rules have it, whatever their mode."""

    reclaimable: Portion
    waits_for_approval: Portion
    """Somebody has to agree first: a stop would empty a local disk, or the type may not start again."""
    untouchable: Portion
    """Protected, managed, prepaid, kept, or no step of its rule stops it."""


class Rate(TypedDict):
    """A dated exchange rate."""

    base: str
    quote: str
    rate: Decimal
    since: Day


class Reason(TypedDict):
    """Why."""

    reason: Annotated[str, Field(description="A stable code.")]
    facts: dict[str, FactValue | bool]
    words: Annotated[str, Field(description="The reason as a sentence in the language asked for.")]


class Resource(TypedDict):
    """Whom it is about."""

    id: Annotated[str, Field(description="cloud:account:region:kind:native id")]
    provider: str
    cloud: str
    sub_account_id: str
    region_id: str
    resource_id: Annotated[str, Field(description="The vendor's own id.")]
    resource_kind: str


class Subject(TypedDict):
    """What it is about: a resource, or a scope that has no parts."""

    id: Annotated[str, Field(description="cloud:account:region:kind:native id")]
    provider: str | None
    cloud: str | None
    sub_account_id: str | None
    region_id: str | None
    resource_id: Annotated[str | None, Field(description="The vendor's own id.")]
    resource_kind: str


class Gap(TypedDict):
    """What could not be read."""

    cloud: str
    sub_account_id: str
    region_id: str
    what: str
    kind: Annotated[str, one_of(GapKind)]
    detail: str
    fix: str
    words: str
