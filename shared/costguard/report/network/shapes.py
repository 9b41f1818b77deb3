"""The shape of what `costguard networks --json` answers, for type checkers and for the schema file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from costguard.domain.remediations import RemediationKind
from costguard.guards.network import rules as guard
from costguard.report.network import catalogue
from costguard.report.schemas import values
from costguard.report.schemas.values import Count, Hash, Mode, Money, Parameters, Texts, Time, one_of

_CheckId = Annotated[str, Field(pattern="^CG-NET-[0-9]{3}$")]
_Check = Annotated[str, one_of(guard.NetworkCheck)]
_Severity = Annotated[str, one_of(catalogue.Severity)]
_Mend = Annotated[
    str,
    one_of(
        RemediationKind.RELEASE_ADDRESS,
        RemediationKind.DETACH_ADDRESS,
        RemediationKind.REVOKE_RULE,
        RemediationKind.NARROW_RULE,
        RemediationKind.ENABLE_FLOW_LOGS,
        RemediationKind.REQUIRE_IMDSV2,
    ),
]


class NetworkSelector(TypedDict):
    """Every restriction that is given must hold, of a list one; null: any."""

    clouds: Texts | None
    accounts: Texts | None
    regions: Texts | None
    tags: Parameters | None
    resources: Texts | None


class AuditRule(TypedDict):
    """A rule for networks, as the policy says it."""

    name: str
    mode: Mode
    digest: Hash
    forbid: Annotated[list[_CheckId], Field(min_length=1)]
    applies_to: NetworkSelector
    except_for: list[NetworkSelector]
    ports: list[int]
    allowed_ports: list[int]
    trusted: Texts
    widest_v4: Annotated[int, Field(ge=1, le=32)]
    widest_v6: Annotated[int, Field(ge=1, le=128)]
    allowed_regions: Texts | None
    """null: any."""
    private_subnets: Texts
    peering_cidrs: Texts | None
    """null: any."""
    keep: Texts
    unattached_for_seconds: int
    mend: list[_Mend]
    narrow_to: Texts
    flow_log_destination: str
    wait_seconds: int
    actions_per_day: Count


class NetworkCheck(TypedDict):
    """A check of the catalogue."""

    check_id: _CheckId
    check: _Check
    severity: _Severity
    title: str
    why: str
    remedy: str
    cis: dict[str, Texts]
    """By provider."""
    prowler: dict[str, Texts]
    """By provider."""


class NetworksSeen(TypedDict):
    """How much was looked at; instances are those with accelerators."""

    networks: Count
    instances: Count
    groups: Count
    rules: Count
    addresses: Count
    gateways: Count


class PaidForNothing(TypedDict):
    """What unattached addresses and idle NAT gateways cost: one sum for each currency."""

    hourly: list[Money]
    unpriced: Count


class NetworkMend(TypedDict):
    """What the rule allows to be done; a rehearsal."""

    kind: _Mend
    parameters: Parameters
    words: str
    bar: values.Reason | None
    """What keeps it from being done."""


class NetworkFinding(values.Subject, values.Reason):
    """A verdict on something of a network."""

    name: str
    owner: str
    check_id: _CheckId
    check: _Check
    severity: _Severity | None
    verdict: values.Verdict
    rule: str
    """Empty where no rule speaks of it."""
    path: str | None
    """The whole way in, in one line; null where it is about none."""
    least_change: str | None
    """What would close it with the least change, whether or not the policy allows it."""
    hourly: Money | None
    """Of what is paid for and not used; null: another finding, or the price is unknown."""
    cis: Texts
    """Control numbers of the benchmark for this provider."""
    prowler: Texts
    """Prowler's checks for this provider."""
    allowed: NetworkMend | None


class Networks(TypedDict):
    """What was found of networks, the gravest first, with the checks that were asked for. Nothing is changed."""

    schema: Literal[1]
    at: Time
    """UTC."""
    rules: list[AuditRule]
    checks: list[NetworkCheck]
    """Every check that a rule asks for."""
    seen: NetworksSeen
    paid_for_nothing: PaidForNothing
    findings: list[NetworkFinding]
    gaps: list[values.Gap]
