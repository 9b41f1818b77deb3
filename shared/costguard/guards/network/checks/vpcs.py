"""Networks: default ones in use, flow logs, private subnets that lead to the internet, and what is joined to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from costguard.domain.findings import Finding, Verdict
from costguard.domain.network import Hop, NetworkInterface, NetworkInventory, Peering, Route, Subnet, Vpc
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.guards.network.audit_context import AS_ASKED, AuditContext, Facts, finding, severity, untold
from costguard.guards.network.reachability import ranges as r
from costguard.guards.network.reachability.filters import Unknown
from costguard.guards.network.rules import AuditRule, NetworkCheck

_Judged = tuple[Verdict, Reason]
_LOGS_CARDS_ONLY = "tencent"


def judge_vpcs(ground: AuditContext, inventory: NetworkInventory) -> Iterator[Finding]:
    """The networks and subnets of a shard."""
    cards: dict[ResourceRef | None, list[NetworkInterface]] = {}
    for card in inventory.interfaces:
        cards.setdefault(card.vpc, []).append(card)
    vpcs = {vpc.ref: vpc for vpc in inventory.vpcs}
    for vpc in inventory.vpcs:
        held = cards.get(vpc.ref, [])
        rule = ground.rule_for(vpc.ref, vpc.tags, NetworkCheck.DEFAULT_VPC) if vpc.is_default else None
        if rule is not None:
            yield _of_vpc(ground, vpc, rule, NetworkCheck.DEFAULT_VPC, _default(ground, vpc, held))
        rule = ground.rule_for(vpc.ref, vpc.tags, NetworkCheck.FLOW_LOGS_OFF)
        if rule is not None:
            yield _of_vpc(ground, vpc, rule, NetworkCheck.FLOW_LOGS_OFF, _logged(ground, inventory, vpc, held))
    for subnet in inventory.subnets:
        rule = ground.rule_for(subnet.ref, subnet.tags, NetworkCheck.PRIVATE_SUBNET_EXPOSED)
        if rule is None or not _is_private(subnet, rule):
            continue
        within = [card for card in cards.get(subnet.vpc, ()) if card.subnet == subnet.ref]
        verdict, reason = _private(ground, subnet, vpcs.get(subnet.vpc), within)
        if verdict is Verdict.VIOLATION and ground.keeps(subnet.ref, subnet.name):
            verdict, reason = Verdict.EXEMPT, Reason(ReasonCode.NET_KEPT, {"name": subnet.name})
        yield finding(rule, NetworkCheck.PRIVATE_SUBNET_EXPOSED, subnet.ref, verdict, reason, name=subnet.name)


def _of_vpc(ground: AuditContext, vpc: Vpc, rule: AuditRule, check: NetworkCheck, judged: _Judged) -> Finding:
    verdict, reason = judged
    if verdict is Verdict.VIOLATION and ground.keeps(vpc.ref, vpc.name):
        verdict, reason = Verdict.EXEMPT, Reason(ReasonCode.NET_KEPT, {"name": vpc.name or vpc.ref.native_id})
    return finding(rule, check, vpc.ref, verdict, reason, name=vpc.name)


def _ours(ground: AuditContext, cards: Sequence[NetworkInterface]) -> list[ResourceRef]:
    """The accelerator instances behind these cards."""
    return sorted({card.instance for card in cards if card.instance in ground.atlas.instances})


def _default(ground: AuditContext, vpc: Vpc, cards: Sequence[NetworkInterface]) -> _Judged:
    machines = {card.instance for card in cards if card.instance is not None}
    if not machines:
        gap = ground.lacks(vpc.ref.shard, "interfaces")
        return (Verdict.COMPLIANT, AS_ASKED) if gap is None else (Verdict.UNMEASURED, untold(gap))
    ours = _ours(ground, cards)
    reached = ground.reached(ours)
    facts: Facts = {"instances": len(machines), "accelerators": len(ours), "reaches": reached}
    facts["severity"] = severity(NetworkCheck.DEFAULT_VPC, reaches=bool(ours))
    return Verdict.VIOLATION, Reason(ReasonCode.NET_DEFAULT_VPC, facts)


def _logged(ground: AuditContext, inventory: NetworkInventory, vpc: Vpc, cards: Sequence[NetworkInterface]) -> _Judged:
    """Whether every card's traffic is logged: by its network's log, its subnet's, or its own."""
    logged = {log.covers for log in inventory.flow_logs if log.active}
    if vpc.ref in logged:
        return Verdict.COMPLIANT, AS_ASKED
    gap = ground.lacks(vpc.ref.shard, "flow_logs", "interfaces", "subnets")
    if gap is not None:
        return Verdict.UNMEASURED, untold(gap)
    bare = [card for card in cards if card.ref not in logged and card.subnet not in logged]
    nothing_to_log = not cards and vpc.ref.provider == _LOGS_CARDS_ONLY
    if not bare and (cards or nothing_to_log):
        return Verdict.COMPLIANT, AS_ASKED
    ours = _ours(ground, bare)
    facts: Facts = {"interfaces": len(bare), "accelerators": len(ours), "reaches": ground.reached(ours)}
    facts["severity"] = severity(NetworkCheck.FLOW_LOGS_OFF, reaches=bool(ours))
    return Verdict.VIOLATION, Reason(ReasonCode.NET_FLOW_LOGS_OFF, facts)


def _is_private(subnet: Subnet, rule: AuditRule) -> bool:
    """Whether its name, or its id, says that it is meant to be private."""
    names = {subnet.name, subnet.ref.native_id}
    return any(fnmatchcase(name, pattern) for name in names if name for pattern in rule.private_subnets)


def _private(ground: AuditContext, subnet: Subnet, vpc: Vpc | None, cards: Sequence[NetworkInterface]) -> _Judged:
    if vpc is None:
        gap = ground.lacks(subnet.ref.shard, "vpcs") or Unknown("vpcs", f"{subnet.vpc.native_id} was not read")
        return Verdict.UNMEASURED, untold(gap)
    routes = ground.atlas.routes(subnet, vpc)
    facts: Facts = {}
    if not isinstance(routes, Unknown):
        out = next((route for route in routes if _is_way_out(route)), None)
        if out is not None:
            facts = {"route": out.destination, "gateway": out.target}
    public = [address for card in cards for address in _public(card)]
    if not facts and not vpc.needs_gateway and public:
        facts = {"address": public[0], "addresses": len(public)}
    if facts:
        ours = _ours(ground, cards)
        facts["accelerators"], facts["reaches"] = len(ours), ground.reached(ours)
        facts["severity"] = severity(NetworkCheck.PRIVATE_SUBNET_EXPOSED, reaches=ground.reached(ours) > 0)
        return Verdict.VIOLATION, Reason(ReasonCode.NET_SUBNET_EXPOSED, facts)
    if isinstance(routes, Unknown):
        return Verdict.UNMEASURED, untold(routes)
    unread = None if vpc.needs_gateway else ground.lacks(subnet.ref.shard, "interfaces", "addresses")
    return (Verdict.COMPLIANT, AS_ASKED) if unread is None else (Verdict.UNMEASURED, untold(unread))


def _is_way_out(route: Route) -> bool:
    return route.active and route.hop is Hop.INTERNET


def _public(card: NetworkInterface) -> list[str]:
    return [*(public for _, public in card.public_ips), *card.ipv6_public]


def judge_peerings(ground: AuditContext) -> Iterator[Finding]:
    """Every peering once, though both of its ends may tell of it, with the routes of all ends that were read."""
    ends: dict[tuple[str, str], list[Peering]] = {}
    for inventory in ground.inventories:
        for peering in inventory.peerings:
            ends.setdefault((peering.ref.cloud, peering.ref.native_id), []).append(peering)
    for together in ends.values():
        first = min(together, key=lambda each: each.ref)
        rule = ground.rule_for(first.ref, first.tags, NetworkCheck.WIDE_PEERING)
        if rule is not None and rule.peering_cidrs is not None:
            verdict, reason = _joined(ground, together, rule.peering_cidrs)
            if verdict is Verdict.VIOLATION and ground.keeps(first.ref):
                verdict, reason = Verdict.EXEMPT, Reason(ReasonCode.NET_KEPT, {"name": first.ref.native_id})
            yield finding(rule, NetworkCheck.WIDE_PEERING, first.ref, verdict, reason)


def _joined(ground: AuditContext, ends: Sequence[Peering], allowed: Sequence[str]) -> _Judged:
    active = [end for end in ends if end.active]
    wide = sorted({route for end in active for route in _too_wide(ground, end, allowed)})
    if wide:
        facts: Facts = {"routes": len(wide), "route": wide[0], "reaches": 0}
        facts["peer"] = f"{ends[0].other_account}:{ends[0].other_region}:{ends[0].other_vpc}"
        facts["severity"] = severity(NetworkCheck.WIDE_PEERING, reaches=False)
        return Verdict.VIOLATION, Reason(ReasonCode.NET_WIDE_PEERING, facts)
    gap = next((gap for end in active if (gap := ground.lacks(end.ref.shard, "routes")) is not None), None)
    return (Verdict.COMPLIANT, AS_ASKED) if gap is None else (Verdict.UNMEASURED, untold(gap))


def _too_wide(ground: AuditContext, end: Peering, allowed: Sequence[str]) -> Iterator[str]:
    """Destinations routed to a peer that policy does not name."""
    inventory = ground.atlas.inventories[end.ref.shard]
    for table in inventory.route_tables:
        for route in table.routes if table.vpc == end.vpc else ():
            if route.hop is not Hop.PEERING or route.target != end.ref.native_id or not route.active:
                continue
            found = r.parsed(route.destination)
            if found is None or r.minus([found[1:]], r.ranges_of(allowed, found[0])):
                yield route.destination
