"""Instances: public addresses, ways in that cannot be told, the metadata service, and the region they are in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from costguard.domain.findings import Finding, Verdict
from costguard.domain.money import HourlyRate
from costguard.domain.network import NetworkInterface
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance, InstanceState
from costguard.guards.network.audit_context import (
    AS_ASKED,
    AuditContext,
    Facts,
    finding,
    in_words,
    is_wide,
    ports_in_words,
    severity,
    untold,
    watched,
)
from costguard.guards.network.reachability import ranges as r
from costguard.guards.network.reachability.exposure import Path, PossibleWay
from costguard.guards.network.reachability.filters import WITH_PORTS, Unknown
from costguard.guards.network.remediation import least_change
from costguard.guards.network.rules import AuditRule, NetworkCheck

_GONE = frozenset({InstanceState.TERMINATING, InstanceState.TERMINATED})


def judge_instances(ground: AuditContext) -> Iterator[Finding]:
    """What is to be said of each instance. An open port is said of the group that opens it, and only a doubt here."""
    judges = (
        (NetworkCheck.OPEN_ADMIN_PORT, _ways_in),
        (NetworkCheck.PUBLIC_IP, _public),
        (NetworkCheck.IMDS_V1, _metadata),
        (NetworkCheck.REGION, _region),
    )
    for instance in ground.instances:
        if instance.state in _GONE:
            continue
        for check, judged in judges:
            rule = ground.rule_for(instance.ref, instance.tags, check)
            if rule is None:
                continue
            found = judged(ground, instance, rule)
            if found is not None:
                verdict, reason, rate = found
                yield finding(
                    rule,
                    check,
                    instance.ref,
                    verdict,
                    reason,
                    name=instance.name,
                    instance_type=instance.instance_type,
                    rate=rate,
                )


_Judged = tuple[Verdict, Reason, HourlyRate | None]


def _ways_in(ground: AuditContext, instance: Instance, rule: AuditRule) -> _Judged | None:
    """None where a group's finding tells that the world gets in."""
    doubt = _doubt_about(ground.doubts.get(instance.ref, ()), rule)
    if doubt is not None:
        return Verdict.UNMEASURED, untold(doubt), None
    if any(is_wide(path, rule) and _leads_to_watched(path, rule) for path in ground.paths.get(instance.ref, ())):
        return None
    return Verdict.COMPLIANT, AS_ASKED, None


def _doubt_about(doubts: Sequence[PossibleWay], rule: AuditRule) -> PossibleWay | None:
    """The first doubt that could be about a port that is watched."""
    ports = [(port, port) for port in watched(rule)]
    return next(
        (
            doubt
            for doubt in doubts
            if (doubt.protocol in WITH_PORTS and r.common(doubt.ports, ports)) or (doubt.protocol == "all")
        ),
        None,
    )


def _leads_to_watched(path: Path, rule: AuditRule) -> bool:
    return bool(r.common(path.ports, [(port, port) for port in watched(rule)]))


def _public(ground: AuditContext, instance: Instance, rule: AuditRule) -> _Judged:
    led, doubt = _addresses(ground, instance)
    free = [address for _, address in led if not _is_kept(ground, instance.ref, address)]
    if free:
        return _exposed(ground, instance, rule, free)
    gap = ground.lacks(instance.ref.shard, "interfaces", "addresses")
    if gap is None and not ground.atlas.cards.get(instance.ref):
        gap = Unknown("interfaces", f"none of {instance.ref.native_id} is told")
    if gap is not None or doubt is not None:
        return Verdict.UNMEASURED, untold(gap or doubt or Unknown("routes", "")), None
    if led:
        return Verdict.EXEMPT, Reason(ReasonCode.NET_KEPT, {"address": led[0][1], "name": instance.name}), None
    return Verdict.COMPLIANT, AS_ASKED, None


def _addresses(ground: AuditContext, instance: Instance) -> tuple[list[tuple[NetworkInterface, str]], Unknown | None]:
    """The public addresses of an instance; one of IPv6 counts where answers leave by an internet gateway."""
    led: list[tuple[NetworkInterface, str]] = []
    doubt: Unknown | None = None
    for card, family, address in ground.atlas.addresses_of(instance):
        out = family == r.V4 or ground.survey.passages.leads_out(card, family)
        if isinstance(out, Unknown):
            doubt = doubt or out
        elif out:
            led.append((card, address))
    return led, doubt


def _is_kept(ground: AuditContext, instance: ResourceRef, ip: str) -> bool:
    kept = ground.addresses.get((instance.shard, ip))
    if kept is not None and ground.keeps(kept.ref, ip, kept.name):
        return True
    return ground.keeps(instance, ip)


def _exposed(ground: AuditContext, instance: Instance, rule: AuditRule, addresses: Sequence[str]) -> _Judged:
    paths = [path for path in ground.paths.get(instance.ref, ()) if path.forward is None and is_wide(path, rule)]
    path = next((each for each in paths if each.address in addresses), None)
    address = addresses[0] if path is None else path.address
    facts: Facts = {
        "address": address,
        "addresses": len(addresses),
        "reaches": 0 if path is None else 1,
        "severity": severity(NetworkCheck.PUBLIC_IP, reaches=path is not None),
    }
    if path is not None:
        ports = r.merged(ports for each in paths for ports in each.ports)
        facts["ports"] = ports_in_words(ports)
        facts["group"], facts["rule"] = path.group.native_id, path.rule.rule_id
        facts["path"] = in_words(path)
        facts["least"] = least_change(path, rule.narrow_to).kind.value
    kept = ground.addresses.get((instance.ref.shard, address))
    rate = None if kept is None else kept.rate
    return Verdict.VIOLATION, Reason(ReasonCode.NET_PUBLIC_IP, facts), rate


def _metadata(ground: AuditContext, instance: Instance, rule: AuditRule) -> _Judged:
    del rule
    if instance.imds_v1 is None:
        return Verdict.UNMEASURED, untold(Unknown("imds", "the cloud does not tell of its metadata service")), None
    if not instance.imds_v1:
        return Verdict.COMPLIANT, AS_ASKED, None
    if ground.keeps(instance.ref, instance.name):
        return Verdict.EXEMPT, Reason(ReasonCode.NET_KEPT, {"name": instance.name}), None
    reached = instance.ref in ground.paths
    facts: Facts = {"reaches": int(reached), "severity": severity(NetworkCheck.IMDS_V1, reaches=reached)}
    return Verdict.VIOLATION, Reason(ReasonCode.NET_IMDS_V1, facts), None


def _region(ground: AuditContext, instance: Instance, rule: AuditRule) -> _Judged | None:
    allowed = rule.allowed_regions
    if allowed is None:
        return None
    region = instance.ref.region
    if any(fnmatchcase(region, pattern) for pattern in allowed):
        return Verdict.COMPLIANT, AS_ASKED, None
    reached = instance.ref in ground.paths
    facts: Facts = {"region": region, "allowed": ",".join(allowed), "reaches": int(reached)}
    facts["severity"] = severity(NetworkCheck.REGION, reaches=reached)
    return Verdict.VIOLATION, Reason(ReasonCode.NET_REGION, facts), None
