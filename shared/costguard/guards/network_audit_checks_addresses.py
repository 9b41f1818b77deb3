"""What is paid for and used by nobody: public addresses bound to nothing, NAT gateways that nothing goes through."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from costguard.domain.findings import Finding, Verdict
from costguard.domain.network import AddressState, Hop, NatGateway, NetworkInventory, PublicAddress
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.guards.network_audit_ground import AS_ASKED, Facts, Ground, finding, severity, untold
from costguard.guards.network_audit_rules import AuditRule, Check
from costguard.guards.reachability_filters import Unknown

_HOUR = timedelta(hours=1)
_UNSETTLED = frozenset({AddressState.CHANGING, AddressState.UNKNOWN})


def judge_addresses(ground: Ground, inventory: NetworkInventory) -> Iterator[Finding]:
    """The kept addresses and the NAT gateways of a shard."""
    for address in inventory.addresses:
        rule = ground.rule_for(address.ref, address.tags, Check.UNATTACHED_ADDRESS)
        if rule is not None:
            verdict, reason = _unattached(ground, address, rule)
            name = address.name or address.ip
            rate = address.rate
            yield finding(rule, Check.UNATTACHED_ADDRESS, address.ref, verdict, reason, name=name, rate=rate)
    led_to = _led_to(inventory)
    for gateway in inventory.nat_gateways:
        rule = ground.rule_for(gateway.ref, gateway.tags, Check.IDLE_NAT_GATEWAY)
        if rule is not None:
            verdict, reason = _idle(ground, gateway, rule, users=led_to.get(gateway.ref.native_id, 0))
            check, rate = Check.IDLE_NAT_GATEWAY, gateway.rate
            yield finding(rule, check, gateway.ref, verdict, reason, name=gateway.name, rate=rate)


def _unattached(ground: Ground, address: PublicAddress, rule: AuditRule) -> tuple[Verdict, Reason]:
    """No cloud tells when an address was taken off something: until it was seen long enough, that is not measured."""
    if address.state in _UNSETTLED:
        return Verdict.UNMEASURED, untold(Unknown("addresses", f"{address.ip} is {address.state.value}"))
    if address.state is AddressState.IN_USE or address.bound_to is not None:
        return Verdict.COMPLIANT, AS_ASKED
    kept = _kept(ground, address)
    if kept is not None:
        return Verdict.EXEMPT, kept
    facts: Facts = {"address": address.ip, "wanted_hours": _hours(rule.unattached_for)}
    if address.allocated_at is not None and ground.now - address.allocated_at < rule.unattached_for:
        return Verdict.COMPLIANT, Reason(ReasonCode.NET_AS_ASKED, facts)
    since = _latest(ground.first_seen.get(address.ref, ground.now), address.allocated_at)
    facts["seen_hours"] = _hours(ground.now - since)
    if ground.now - since < rule.unattached_for:
        return Verdict.UNMEASURED, Reason(ReasonCode.NET_UNATTACHED_YET, facts)
    facts["reaches"], facts["severity"] = 0, severity(Check.UNATTACHED_ADDRESS, reaches=False)
    return Verdict.VIOLATION, Reason(ReasonCode.NET_UNATTACHED, facts)


def _kept(ground: Ground, address: PublicAddress) -> Reason | None:
    """Why an address is shown and left alone."""
    name = address.name or address.ip
    if address.is_prepaid:
        return Reason(ReasonCode.PREPAID, {"name": name, "address": address.ip})
    if address.is_service_managed:
        return Reason(ReasonCode.CLOUD_SERVICE, {"name": name, "address": address.ip})
    if address.protected_by:
        return Reason(ReasonCode.PROTECTED_BY_CLOUD, {"protection": ", ".join(address.protected_by)})
    if ground.keeps(address.ref, address.ip, address.name):
        return Reason(ReasonCode.NET_KEPT, {"name": name, "address": address.ip})
    return None


def _latest(seen: datetime, allocated_at: datetime | None) -> datetime:
    """An id may be given out anew: what was seen before it was allocated was another."""
    return seen if allocated_at is None else max(seen, allocated_at)


def _hours(length: timedelta) -> int:
    return max(0, length // _HOUR)


def _led_to(inventory: NetworkInventory) -> dict[str, int]:
    """How many cards have a route to each gateway, by the gateway's id."""
    by_table: dict[ResourceRef, set[str]] = {
        table.ref: {route.target for route in table.routes if route.hop is Hop.NAT and route.active}
        for table in inventory.route_tables
    }
    led: dict[ResourceRef, set[str]] = {}
    for subnet in inventory.subnets:
        if subnet.route_table is not None:
            led[subnet.ref] = by_table.get(subnet.route_table, set())
    users: dict[str, int] = {}
    for card in inventory.interfaces:
        for target in led.get(card.subnet, ()) if card.subnet is not None else ():
            users[target] = users.get(target, 0) + 1
    return users


def _idle(ground: Ground, gateway: NatGateway, rule: AuditRule, *, users: int) -> tuple[Verdict, Reason]:
    if users or gateway.forwards:
        return Verdict.COMPLIANT, AS_ASKED
    gap = ground.lacks(gateway.ref.shard, "routes", "subnets", "interfaces", "nat_gateways")
    if gap is not None:
        return Verdict.UNMEASURED, untold(gap)
    if ground.keeps(gateway.ref, gateway.name, *gateway.public_ips):
        return Verdict.EXEMPT, Reason(ReasonCode.NET_KEPT, {"name": gateway.name or gateway.ref.native_id})
    if gateway.created_at is not None and ground.now - gateway.created_at < rule.unattached_for:
        return Verdict.COMPLIANT, AS_ASKED
    facts: Facts = {"gateway": gateway.ref.native_id, "addresses": len(gateway.public_ips), "reaches": 0}
    facts["severity"] = severity(Check.IDLE_NAT_GATEWAY, reaches=False)
    return Verdict.VIOLATION, Reason(ReasonCode.NET_IDLE_NAT, facts)
