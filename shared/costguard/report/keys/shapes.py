"""The shape of what `costguard keys --json` answers, for type checkers and for the schema file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from costguard.domain import keys as domain
from costguard.domain.remediations import RemediationKind
from costguard.report.schemas import values
from costguard.report.schemas.values import Count, Hash, Mode, Money, Parameters, Texts, Time, one_of

_Means = Annotated[str, one_of(domain.RotationMeans)]
_AnyOf = Annotated[Texts | None, Field(description="Of which one must match; null: any.")]


class KeySelector(TypedDict):
    """Every restriction that is given must hold; values are patterns, aliases without `alias/`."""

    clouds: _AnyOf
    accounts: _AnyOf
    regions: _AnyOf
    aliases: _AnyOf
    tags: Parameters | None


class KeyRule(TypedDict):
    """A rule for keys, as the policy says it."""

    name: str
    mode: Mode
    digest: Hash
    applies_to: KeySelector
    except_for: list[KeySelector]
    rotate_every_seconds: Annotated[int, Field(ge=604800)]
    means: Annotated[list[_Means], Field(min_length=1)]
    customer_keys: bool


class Rotation(TypedDict):
    """How it is rotated."""

    automatic: bool | None
    """null: the cloud does not say, which is not off."""
    period_days: int | None
    last_at: Time | None
    """UTC; null: never, or not told."""
    next_at: Time | None
    """UTC; null: never, or not told."""
    on_demand_used: int | None


class RotationCost(TypedDict):
    """What a rotation costs."""

    kind: Annotated[str, one_of(domain.CostKind)]
    """What a rotation adds to the bill."""
    monthly: Money | None
    """What a key costs a month by the price list; null where that is not known."""
    words: str
    source: str
    as_of: str
    """The date of the source, empty where it has none."""


class VendorAllows(TypedDict):
    """The row of the vendor's matrix (docs/keys.md)."""

    means: list[_Means]
    shortest_days: int | None
    longest_days: int | None
    cost: RotationCost
    note: str
    source: str


class KeyMend(TypedDict):
    """What would mend it."""

    kind: Annotated[
        str,
        one_of(
            RemediationKind.SET_ROTATION,
            RemediationKind.ROTATE_KEY,
            RemediationKind.CREATE_SUCCESSOR,
            RemediationKind.MOVE_ALIAS,
        ),
    ]
    parameters: Parameters
    words: str


class KeyFinding(values.Reason):
    """What is to be said of a key."""

    check: Annotated[str, one_of("rotation", "references", "default_key", "vendor_limit")]
    verdict: values.Verdict
    rule: str
    """Empty where no rule speaks of it."""
    rehearsed: KeyMend | None
    """What would mend it; null where nothing does without people."""


class Key(values.Resource):
    """An encryption key; replicas of a multi-region key share the vendor's id."""

    name: str
    """Its first alias, empty without any."""
    aliases: Texts
    owner: str
    spec: str
    """The vendor's word."""
    usage: Annotated[str, one_of(domain.KeyUsage)]
    origin: Annotated[str, one_of(domain.KeyOrigin)]
    state: Annotated[str, one_of(domain.KeyState)]
    manager: Annotated[str, one_of(domain.KeyManager)]
    is_default: bool
    """A service takes it where nobody names one."""
    multi_region: Annotated[str, one_of(domain.MultiRegion)]
    primary: str | None
    """The id of the key that a replica follows."""
    created_at: Time | None
    """UTC; null: never, or not told."""
    deletes_at: Time | None
    """UTC; null: never, or not told."""
    used_by: Texts
    """Resources that name it, a lower bound: an empty list proves nothing."""
    rotation: Rotation
    vendor_allows: VendorAllows
    findings: Annotated[list[KeyFinding], Field(min_length=1)]


class Keys(TypedDict):
    """Every encryption key that was seen, how it is rotated, and what is to be said of it. Nothing is done to any."""

    schema: Literal[1]
    at: Time
    """UTC."""
    rules: list[KeyRule]
    keys_seen: Count
    keys: list[Key]
    gaps: list[values.Gap]
