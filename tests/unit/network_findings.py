"""Findings about networks, made by hand, for tests of what is said of them."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

from costguard.domain.findings import Finding, Verdict
from costguard.domain.money import HourlyRate, Money
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.domain.resources import Gap, GapKind
from costguard.guards.network.rules import NetworkCheck
from costguard.report.network.order import LookedAt, NetworkLine, NetworkReport

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
EAST = Shard("aws", "111122223333", "us-east-1")
HANGZHOU = Shard("alibaba", "1234567890123456", "cn-hangzhou")
OPEN_FACTS: dict[str, FactValue] = {
    "group": "sg-1",
    "rule": "sgr-1",
    "rules": 2,
    "direction": "ingress",
    "protocol": "tcp",
    "ports": "22,8888",
    "peers": "0.0.0.0/0",
    "reaches": 1,
    "severity": "critical",
    "port": 22,
    "instance": "i-1",
    "address": "203.0.113.7",
    "path": "203.0.113.7 > igw-1 > acl-1/100 > sg-1/sgr-1 > eni-1 > i-1:22",
    "least": "revoke_rule",
}


def ref(kind: str, native_id: str, shard: Shard = EAST) -> ResourceRef:
    return ResourceRef(shard.cloud, shard.account, shard.region, kind, native_id)


def found(
    check: NetworkCheck,
    subject: ResourceRef,
    verdict: Verdict = Verdict.VIOLATION,
    code: ReasonCode = ReasonCode.NET_AS_ASKED,
    facts: dict[str, FactValue] | None = None,
    **others: Any,
) -> Finding:
    reason = Reason(code, facts or {})
    rule = {"rule": "gpu-hosts", "rule_digest": "0" * 64}
    return Finding(
        guard="network_audit", check=check.value, subject=subject, verdict=verdict, reason=reason, **{**rule, **others}
    )


def an_hour(amount: str, currency: str = "USD") -> HourlyRate:
    return HourlyRate(Money(Decimal(amount), currency), "table", "2026-03-01")


OPEN = found(
    NetworkCheck.OPEN_ADMIN_PORT,
    ref("security_group", "sg-1"),
    code=ReasonCode.NET_OPEN_PORT,
    facts=OPEN_FACTS,
    name="notebooks",
    owner="nlp",
)
ADDRESS = found(
    NetworkCheck.UNATTACHED_ADDRESS,
    ref("address", "eipalloc-1"),
    code=ReasonCode.NET_UNATTACHED,
    facts={"address": "203.0.113.9", "hours": 200, "wanted_hours": 168, "reaches": 0, "severity": "low"},
    rate=an_hour("0.005"),
)
UNPRICED = found(
    NetworkCheck.UNATTACHED_ADDRESS,
    ref("address", "eip-2", HANGZHOU),
    code=ReasonCode.NET_UNATTACHED,
    facts={"address": "203.0.113.10", "hours": 300, "wanted_hours": 168, "reaches": 0, "severity": "low"},
)
GATEWAY = found(
    NetworkCheck.IDLE_NAT_GATEWAY,
    ref("nat_gateway", "ngw-1", HANGZHOU),
    code=ReasonCode.NET_IDLE_NAT,
    facts={"gateway": "ngw-1", "addresses": 1, "reaches": 0, "severity": "low"},
    rate=an_hour("0.24", "CNY"),
)
UNTOLD = found(
    NetworkCheck.PUBLIC_IP,
    ref("instance", "i-2"),
    Verdict.UNMEASURED,
    ReasonCode.NET_UNTOLD,
    {"part": "interfaces", "detail": "denied"},
    name="trainer",
)
AS_ASKED = found(NetworkCheck.IMDS_V1, ref("instance", "i-1"), Verdict.COMPLIANT)
AGREED = found(
    NetworkCheck.FLOW_LOGS_OFF,
    ref("vpc", "vpc-1"),
    Verdict.EXEMPT,
    ReasonCode.EXCEPTION,
    {"reason": "moving\u202e away", "approver": "security", "until": "2026-06-01T00:00+00:00"},
)
KEPT = found(
    NetworkCheck.WIDE_RULE, ref("security_group", "sg-2"), Verdict.EXEMPT, ReasonCode.NET_KEPT, {"name": "api"}
)
REVOKED = Remediation(
    RemediationKind.REVOKE_RULE,
    ref("security_group", "sg-1"),
    {"rule_id": "sgr-1", "direction": "ingress", "version": ""},
)
RELEASED = Remediation(RemediationKind.RELEASE_ADDRESS, ref("address", "eipalloc-1"), {"ip": "203.0.113.9"})
GAP = Gap(EAST, "interfaces", GapKind.DENIED, "UnauthorizedOperation", "allow ec2:DescribeNetworkInterfaces")


def report() -> NetworkReport:
    """Some of everything, in no order."""
    last_way = Reason(ReasonCode.LAST_ADMIN_PATH, {"instance": "i-1"})
    lines = (
        NetworkLine(KEPT),
        NetworkLine(UNPRICED),
        NetworkLine(AS_ASKED),
        NetworkLine(ADDRESS, RELEASED),
        NetworkLine(UNTOLD),
        NetworkLine(GATEWAY),
        NetworkLine(OPEN, REVOKED, last_way),
        NetworkLine(AGREED),
    )
    return NetworkReport(lines, LookedAt(2, 3, 7, 4, 1, 5), (GAP,))
