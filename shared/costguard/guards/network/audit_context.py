"""What all checks of networks share: what was read, by id; which rule speaks; how a finding is written down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache

from costguard.domain.findings import Finding, Verdict
from costguard.domain.money import HourlyRate
from costguard.domain.network import NetworkInventory, PublicAddress
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Instance
from costguard.guards import NETWORK_AUDIT
from costguard.guards.network.reachability import ranges as r
from costguard.guards.network.reachability.exposure import Path, PossibleWay, Survey
from costguard.guards.network.reachability.filters import Unknown
from costguard.guards.network.rules import AuditRule, NetworkCheck

GUARD = NETWORK_AUDIT
_BITS = {r.V4: 32, r.V6: 128}
_SEVERITY: Mapping[NetworkCheck, tuple[str, str]] = {
    NetworkCheck.PUBLIC_IP: ("high", "medium"),
    NetworkCheck.OPEN_ADMIN_PORT: ("critical", "medium"),
    NetworkCheck.WIDE_RULE: ("high", "low"),
    NetworkCheck.UNATTACHED_ADDRESS: ("low", "low"),
    NetworkCheck.IDLE_NAT_GATEWAY: ("low", "low"),
    NetworkCheck.DEFAULT_VPC: ("medium", "low"),
    NetworkCheck.FLOW_LOGS_OFF: ("medium", "low"),
    NetworkCheck.PRIVATE_SUBNET_EXPOSED: ("high", "medium"),
    NetworkCheck.IMDS_V1: ("high", "medium"),
    NetworkCheck.WIDE_PEERING: ("medium", "medium"),
    NetworkCheck.REGION: ("high", "high"),
    NetworkCheck.UNUSED_GROUP: ("low", "low"),
    NetworkCheck.IDLE_ADDRESS: ("low", "low"),
}


def severity(check: NetworkCheck, *, reaches: bool) -> str:
    """How grave a violation is: `critical`, `high`, `medium` or `low`; `reaches`: a GPU instance is concerned by it."""
    grave, otherwise = _SEVERITY[check]
    return grave if reaches else otherwise


def gentlest(
    ref: ResourceRef, tags: Mapping[str, str], check: NetworkCheck, rules: Sequence[AuditRule]
) -> AuditRule | None:
    """Of the rules that forbid `check` to a resource, the one that does the least about it."""
    speaking = [rule for rule in rules if check in rule.forbid and rule.covers(ref, tags)]
    if len(speaking) == 1:
        return speaking[0]
    return min(speaking, key=_harshness, default=None)


def _harshness(rule: AuditRule) -> tuple[object, ...]:
    return (rule.mode, len(rule.mend), -rule.wait, -rule.unattached_for, rule.name)


@lru_cache(maxsize=1 << 14)
def outsiders(family: int, peers: tuple[str, ...], trusted: tuple[str, ...]) -> int:
    """How many addresses of the internet these networks hold that are not trusted."""
    return strangers(family, tuple(r.ranges_of(peers, family)), trusted)


@lru_cache(maxsize=1 << 14)
def strangers(family: int, peers: tuple[r.Range, ...], trusted: tuple[str, ...]) -> int:
    """The same of ranges."""
    return r.size(r.merged(r.minus(r.common(peers, r.INTERNET[family]), r.ranges_of(trusted, family))))


def most(rule: AuditRule, family: int) -> int:
    """How many outsiders may get in before a rule is wide."""
    return 1 << (_BITS[family] - (rule.widest_v4 if family == r.V4 else rule.widest_v6))


def is_wide(path: Path, rule: AuditRule) -> bool:
    """Whether the world gets in by a path, and not only a few networks."""
    return outsiders(path.family, path.peers, rule.trusted) > most(rule, path.family)


def in_words(path: Path, port: int | None = None) -> str:
    """A path in short: address, gateway, access list, group and rule, card, instance."""
    at = next(iter(path.ports), None)
    port = port if port is not None else (None if at is None else at[0])
    asked = f":{path.public_ports[0][0]}" if path.forward is not None and path.public_ports else ""
    entry = "" if path.entry is None else f"/{path.entry.rule_id}"
    steps = [
        f"{path.address}{asked}",
        path.gateway,
        "" if path.access_list is None else f"{path.access_list.native_id}{entry}",
        f"{path.group.native_id}/{path.rule.rule_id}",
        path.interface.native_id,
        f"{path.instance.native_id}{'' if port is None else f':{port}'}",
    ]
    return " > ".join(step for step in steps if step)


class AuditContext:
    """What was read and what the policy says, as every check needs it."""

    def __init__(
        self,
        inventories: Sequence[NetworkInventory],
        instances: Sequence[Instance],
        rules: Sequence[AuditRule],
        now: datetime,
        first_seen: Mapping[ResourceRef, datetime],
    ) -> None:
        self.inventories, self.instances, self.rules = inventories, instances, rules
        self.now, self.first_seen = now, first_seen
        self.survey = Survey(inventories, instances)
        self.atlas = self.survey.atlas
        found = self.survey.whole()
        self.paths: dict[ResourceRef, list[Path]] = {}
        self.by_rule: dict[tuple[ResourceRef, str], list[Path]] = {}
        for path in found.paths:
            self.paths.setdefault(path.instance, []).append(path)
            self.by_rule.setdefault((path.group, path.rule.rule_id), []).append(path)
        self.doubts: dict[ResourceRef, list[PossibleWay]] = {}
        for doubt in found.doubts:
            self.doubts.setdefault(doubt.subject, []).append(doubt)
        self.addresses: dict[tuple[Shard, str], PublicAddress] = {
            (each.shard, address.ip): address for each in inventories for address in each.addresses
        }
        self._asked = frozenset(check for rule in rules for check in rule.forbid)

    def asks(self, *checks: NetworkCheck) -> bool:
        """Whether any rule forbids any of these at all."""
        return not self._asked.isdisjoint(checks)

    def rule_for(self, ref: ResourceRef, tags: Mapping[str, str], check: NetworkCheck) -> AuditRule | None:
        """The rule that speaks of a resource."""
        return gentlest(ref, tags, check, self.rules) if check in self._asked else None

    def rule_anywhere(self, ref: ResourceRef, check: NetworkCheck) -> AuditRule | None:
        """The gentlest rule that may speak of something there whose tags and id are not known."""
        loose = {
            rule.name: replace(rule, applies_to=replace(rule.applies_to, tags=None, resources=None), except_for=())
            for rule in self.rules
        }
        found = gentlest(ref, {}, check, list(loose.values()))
        return next((rule for rule in self.rules if found is not None and rule.name == found.name), None)

    def keeps(self, ref: ResourceRef, *names: str) -> bool:
        """Whether any rule names it as never to be touched."""
        return any(rule.keeps(ref, *names) for rule in self.rules)

    def lacks(self, shard: Shard, *parts: str) -> Unknown | None:
        """Why these parts of a shard cannot be told, if they cannot."""
        return self.atlas.lacks(shard, *parts)

    def reached(self, instances: Sequence[ResourceRef]) -> int:
        """How many of these the internet can reach."""
        return sum(1 for each in instances if each in self.paths)


def untold(unknown: Unknown | PossibleWay) -> Reason:
    """What is missing, as the reason of an unmeasured finding."""
    return Reason(ReasonCode.NET_UNTOLD, {"part": unknown.part, "detail": unknown.detail})


def finding(
    rule: AuditRule,
    check: NetworkCheck,
    subject: ResourceRef,
    verdict: Verdict,
    reason: Reason,
    *,
    name: str = "",
    instance_type: str = "",
    rate: HourlyRate | None = None,
) -> Finding:
    """One verdict."""
    return Finding(
        guard=GUARD,
        check=check.value,
        rule=rule.name,
        rule_digest=rule.digest,
        subject=subject,
        verdict=verdict,
        reason=reason,
        name=name,
        instance_type=instance_type,
        rate=rate,
    )


AS_ASKED = Reason(ReasonCode.NET_AS_ASKED)
Facts = dict[str, FactValue]


def compliant(rule: AuditRule, check: NetworkCheck, subject: ResourceRef, name: str = "") -> Finding:
    """Nothing to be said against it."""
    return finding(rule, check, subject, Verdict.COMPLIANT, AS_ASKED, name=name)


def ports_in_words(ranges: Sequence[r.Range]) -> str:
    """Ports as people write them: `22,8000-8100`."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def watched(rule: AuditRule) -> Iterator[int]:
    """The ports that a rule watches, in its order, without those that may be open to anybody."""
    return (port for port in rule.ports if port not in rule.allowed_ports)
