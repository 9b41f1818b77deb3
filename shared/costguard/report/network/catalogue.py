"""Every check of networks: its lasting id, how grave it is, what other catalogues call it, and what to do about it.

The one table that SARIF, JSON and docs/networks.md are made from. Ids are never reused or renumbered.

Sources: control numbers as CIS prints them (AWS Foundations v6.0.0, numbered alike in v7.0.0; Alibaba Cloud
Foundations v2.0.0); check ids from Prowler's own metadata (of August 2026). Prowler has no provider, and its frameworks
no benchmark, for Tencent Cloud. A check is named only where it asks the same; a lookalike is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from costguard.guards.network.rules import NetworkCheck
from costguard.report.words.sentences import Language, about_check

_EN, _ZH = Language.EN, Language.ZH


class Severity(str, Enum):
    """How grave a violation is; the gravest first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """0 for the gravest."""
        return list(Severity).index(self)


BENCHMARKS: Mapping[str, str] = MappingProxyType(
    {
        "aws": "CIS Amazon Web Services Foundations Benchmark v6.0.0",
        "alibaba": "CIS Alibaba Cloud Foundations Benchmark v2.0.0",
    }
)
"""By provider, what the control numbers are of; there is none for Tencent Cloud."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One check. `cis` are control numbers of `BENCHMARKS`, `prowler` check ids, both by provider.

    What is wrong, what it leads to and what to do stands in group `checks` of the message catalogues.
    """

    check: NetworkCheck
    check_id: str
    severity: Severity
    cis: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prowler: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def title(self, language: Language) -> str:
        """What is wrong."""
        return about_check(f"{self.check.value}_title", language)

    def why(self, language: Language) -> str:
        """What it leads to."""
        return about_check(f"{self.check.value}_why", language)

    def remedy(self, language: Language) -> str:
        """What to do."""
        return about_check(f"{self.check.value}_remedy", language)


CATALOGUE: tuple[CatalogueEntry, ...] = (
    CatalogueEntry(
        NetworkCheck.PUBLIC_IP,
        "CG-NET-001",
        Severity.HIGH,
        prowler={"aws": ("ec2_instance_public_ip",)},
    ),
    CatalogueEntry(
        NetworkCheck.OPEN_ADMIN_PORT,
        "CG-NET-002",
        Severity.CRITICAL,
        cis={"aws": ("6.2", "6.3", "6.4"), "alibaba": ("3.2", "4.3", "4.4")},
        prowler={
            "aws": (
                "ec2_instance_port_rdp_exposed_to_internet",
                "ec2_instance_port_redis_exposed_to_internet",
                "ec2_instance_port_ssh_exposed_to_internet",
                "ec2_networkacl_allow_ingress_tcp_port_22",
                "ec2_networkacl_allow_ingress_tcp_port_3389",
                "ec2_securitygroup_allow_ingress_from_internet_to_high_risk_tcp_ports",
                "ec2_securitygroup_allow_ingress_from_internet_to_tcp_port_22",
                "ec2_securitygroup_allow_ingress_from_internet_to_tcp_port_3389",
                "ec2_securitygroup_allow_ingress_from_internet_to_tcp_port_redis_6379",
            ),
            "alibaba": ("ecs_securitygroup_restrict_rdp_internet", "ecs_securitygroup_restrict_ssh_internet"),
        },
    ),
    CatalogueEntry(
        NetworkCheck.WIDE_RULE,
        "CG-NET-003",
        Severity.HIGH,
        cis={"alibaba": ("3.5",)},
        prowler={
            "aws": (
                "ec2_securitygroup_allow_ingress_from_internet_to_all_ports",
                "ec2_securitygroup_allow_ingress_from_internet_to_any_port",
                "ec2_securitygroup_allow_wide_open_public_ipv4",
            )
        },
    ),
    CatalogueEntry(
        NetworkCheck.UNATTACHED_ADDRESS,
        "CG-NET-004",
        Severity.LOW,
        prowler={"aws": ("ec2_elastic_ip_unassigned",)},
    ),
    CatalogueEntry(
        NetworkCheck.IDLE_NAT_GATEWAY,
        "CG-NET-005",
        Severity.LOW,
    ),
    CatalogueEntry(
        NetworkCheck.DEFAULT_VPC,
        "CG-NET-006",
        Severity.MEDIUM,
    ),
    CatalogueEntry(
        NetworkCheck.FLOW_LOGS_OFF,
        "CG-NET-007",
        Severity.MEDIUM,
        cis={"aws": ("4.7",), "alibaba": ("2.5", "3.3")},
        prowler={"aws": ("vpc_flow_logs_enabled",), "alibaba": ("vpc_flow_logs_enabled",)},
    ),
    CatalogueEntry(
        NetworkCheck.PRIVATE_SUBNET_EXPOSED,
        "CG-NET-008",
        Severity.HIGH,
    ),
    CatalogueEntry(
        NetworkCheck.IMDS_V1,
        "CG-NET-009",
        Severity.HIGH,
        cis={"aws": ("6.7",)},
        prowler={"aws": ("ec2_instance_imdsv2_enabled",)},
    ),
    CatalogueEntry(
        NetworkCheck.WIDE_PEERING,
        "CG-NET-010",
        Severity.MEDIUM,
        cis={"aws": ("6.6",), "alibaba": ("3.4",)},
        prowler={"aws": ("vpc_peering_routing_tables_with_least_privilege",)},
    ),
    CatalogueEntry(
        NetworkCheck.REGION,
        "CG-NET-011",
        Severity.HIGH,
    ),
    CatalogueEntry(
        NetworkCheck.UNUSED_GROUP,
        "CG-NET-012",
        Severity.LOW,
        prowler={"aws": ("ec2_securitygroup_not_used",)},
    ),
    CatalogueEntry(
        NetworkCheck.IDLE_ADDRESS,
        "CG-NET-013",
        Severity.LOW,
    ),
)
_BY_CHECK = {entry.check: entry for entry in CATALOGUE}


def entry_of(check: NetworkCheck) -> CatalogueEntry:
    """The catalogue's entry of a check."""
    return _BY_CHECK[check]


def known_entry(word: str) -> CatalogueEntry | None:
    """The entry of the check that a finding names; None where it is none of them."""
    return _BY_CHECK[NetworkCheck(word)] if word in {check.value for check in NetworkCheck} else None


def catalogue_page() -> Iterator[str]:
    """The catalogue as the lines of Markdown that docs/networks.md holds between its marks."""
    yield "| id | `forbid` | severity | what is wrong | CIS | Prowler |"
    yield "|---|---|---|---|---|---|"
    for each in CATALOGUE:
        cis, prowler = _by_cloud(each.cis), _by_cloud(each.prowler, code=True)
        cells = (each.check_id, f"`{each.check.value}`", each.severity.value, each.title(_EN), cis, prowler)
        yield f"| {' | '.join(cells)} |"
    for each in CATALOGUE:
        yield ""
        yield f"### {each.check_id} {each.check.value}"
        yield ""
        yield f"{each.why(_EN)} **What to do:** {each.remedy(_EN)}"
        yield ""
        yield f"{each.title(_ZH)}：{each.why(_ZH)}**处理：**{each.remedy(_ZH)}"


def _by_cloud(named: Mapping[str, tuple[str, ...]], *, code: bool = False) -> str:
    """`aws 6.2, 6.3; alibaba 4.3`, or a dash."""
    quoted = {cloud: [f"`{word}`" if code else word for word in words] for cloud, words in named.items()}
    return "; ".join(f"{cloud} {', '.join(words)}" for cloud, words in quoted.items()) or "–"
