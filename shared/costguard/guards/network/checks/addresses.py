"""What is paid for in vain: addresses bound to nothing or to what is stopped, gateways that nothing goes through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from costguard.domain.findings import Finding, Verdict
from costguard.domain.network import (
    AddressState,
    Hop,
    NatGateway,
    NetworkInterface,
    NetworkInventory,
    PublicAddress,
    Unpriced,
)
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance, InstanceState
from costguard.guards.network.audit_context import AS_ASKED, AuditContext, Facts, finding, severity, untold
from costguard.guards.network.reachability.filters import Unknown
from costguard.guards.network.reachability.network_index import NOT_TOLD
from costguard.guards.network.rules import AuditRule, NetworkCheck

_HOUR = timedelta(hours=1)
_UNSETTLED = frozenset({AddressState.CHANGING, AddressState.UNKNOWN})
_CARRIERS = frozenset({"instance", "interface"})
"""Kinds of what an address may be bound to that are a machine, or part of one."""


def judge_addresses(ground: AuditContext, inventory: NetworkInventory) -> Iterator[Finding]:
    """The kept addresses and the NAT gateways of a shard."""
    cards = {card.ref: card for card in inventory.interfaces} if ground.asks(NetworkCheck.IDLE_ADDRESS) else {}
    for address in inventory.addresses:
        name, rate = address.name or address.ip, address.rate
        rule = ground.rule_for(address.ref, address.tags, NetworkCheck.UNATTACHED_ADDRESS)
        if rule is not None:
            verdict, reason = _unattached(ground, address, rule)
            yield finding(rule, NetworkCheck.UNATTACHED_ADDRESS, address.ref, verdict, reason, name=name, rate=rate)
        rule = ground.rule_for(address.ref, address.tags, NetworkCheck.IDLE_ADDRESS)
        judged = None if rule is None else _bound_in_vain(ground, address, rule, cards)
        if rule is not None and judged is not None:
            yield finding(rule, NetworkCheck.IDLE_ADDRESS, address.ref, *judged, name=name, rate=rate)
    led_to = _led_to(inventory)
    for gateway in inventory.nat_gateways:
        rule = ground.rule_for(gateway.ref, gateway.tags, NetworkCheck.IDLE_NAT_GATEWAY)
        if rule is not None:
            verdict, reason = _idle(ground, gateway, rule, users=led_to.get(gateway.ref.native_id, 0))
            check, rate = NetworkCheck.IDLE_NAT_GATEWAY, gateway.rate
            yield finding(rule, check, gateway.ref, verdict, reason, name=gateway.name, rate=rate)


def _unattached(ground: AuditContext, address: PublicAddress, rule: AuditRule) -> tuple[Verdict, Reason]:
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
        return Verdict.UNMEASURED, Reason(ReasonCode.NET_UNATTACHED_YET, {**facts, **_without_price(address.unpriced)})
    facts |= _in_vain(NetworkCheck.UNATTACHED_ADDRESS, address.unpriced)
    return Verdict.VIOLATION, Reason(ReasonCode.NET_UNATTACHED, facts)


def _bound_in_vain(
    ground: AuditContext, address: PublicAddress, rule: AuditRule, cards: Mapping[ResourceRef, NetworkInterface]
) -> tuple[Verdict, Reason] | None:
    """Whether it is bound to a machine that is stopped, or to a card that nothing has.

    None of what is not known well enough to be judged: a machine without accelerators is not read at all.
    """
    if address.state in _UNSETTLED:
        return Verdict.UNMEASURED, untold(Unknown("addresses", f"{address.ip} is {address.state.value}"))
    bound = address.bound_to
    if bound is None or bound.kind not in _CARRIERS:
        return Verdict.COMPLIANT, AS_ASKED
    machine = bound
    if bound.kind == "interface":
        card = cards.get(bound)
        if card is None:
            gap = ground.lacks(address.ref.shard, "interfaces")
            return Verdict.UNMEASURED, untold(gap or Unknown("interfaces", f"{bound.native_id} {NOT_TOLD}"))
        if card.instance is None:
            return _of_card(ground, address, card)
        machine = card.instance
    found = ground.atlas.instances.get(machine)
    if found is not None:
        return _of_machine(ground, address, rule, found)
    gap = ground.lacks(address.ref.shard, "inventory")
    return None if gap is None else (Verdict.UNMEASURED, untold(gap))


def _of_card(ground: AuditContext, address: PublicAddress, card: NetworkInterface) -> tuple[Verdict, Reason]:
    """One without a machine is a gateway's, a balancer's or a service's, unless the cloud says that nothing has it."""
    if not card.unattached:
        return Verdict.COMPLIANT, AS_ASKED
    facts: Facts = {"address": address.ip, "interface": card.ref.native_id}
    return _vain(ground, address, ReasonCode.NET_IDLE_CARD, facts)


def _of_machine(
    ground: AuditContext, address: PublicAddress, rule: AuditRule, machine: Instance
) -> tuple[Verdict, Reason]:
    native_id = machine.ref.native_id
    if machine.state is InstanceState.UNKNOWN:
        return Verdict.UNMEASURED, untold(Unknown("inventory", f"the state of {native_id} {NOT_TOLD}"))
    if machine.state is not InstanceState.STOPPED:
        return Verdict.COMPLIANT, AS_ASKED
    facts: Facts = {"address": address.ip, "instance": native_id}
    if machine.name:
        facts["machine"] = machine.name
    if machine.stopped_at is not None:
        stopped = ground.now - machine.stopped_at
        facts |= {"stopped_hours": _hours(stopped), "wanted_hours": _hours(rule.unattached_for)}
        if stopped < rule.unattached_for:
            return Verdict.COMPLIANT, Reason(ReasonCode.NET_AS_ASKED, {**facts, "hours": _hours(stopped)})
    return _vain(ground, address, ReasonCode.NET_IDLE_ADDRESS, facts)


def _vain(ground: AuditContext, address: PublicAddress, code: ReasonCode, facts: Facts) -> tuple[Verdict, Reason]:
    kept = _kept(ground, address)
    if kept is not None:
        return Verdict.EXEMPT, kept
    return Verdict.VIOLATION, Reason(code, {**facts, **_in_vain(NetworkCheck.IDLE_ADDRESS, address.unpriced)})


def _in_vain(check: NetworkCheck, unpriced: Unpriced | None) -> Facts:
    """How grave it is, and of what has no price why."""
    return {"reaches": 0, "severity": severity(check, reaches=False), **_without_price(unpriced)}


def _without_price(unpriced: Unpriced | None) -> Facts:
    return {} if unpriced is None else {"unpriced": unpriced.value}


def _kept(ground: AuditContext, address: PublicAddress) -> Reason | None:
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


def _idle(ground: AuditContext, gateway: NatGateway, rule: AuditRule, *, users: int) -> tuple[Verdict, Reason]:
    if users or gateway.forwards:
        return Verdict.COMPLIANT, AS_ASKED
    gap = ground.lacks(gateway.ref.shard, "routes", "subnets", "interfaces", "nat_gateways")
    if gap is not None:
        return Verdict.UNMEASURED, untold(gap)
    if ground.keeps(gateway.ref, gateway.name, *gateway.public_ips):
        return Verdict.EXEMPT, Reason(ReasonCode.NET_KEPT, {"name": gateway.name or gateway.ref.native_id})
    if gateway.created_at is not None and ground.now - gateway.created_at < rule.unattached_for:
        return Verdict.COMPLIANT, AS_ASKED
    facts: Facts = {"gateway": gateway.ref.native_id, "addresses": len(gateway.public_ips)}
    facts |= _in_vain(NetworkCheck.IDLE_NAT_GATEWAY, gateway.unpriced)
    return Verdict.VIOLATION, Reason(ReasonCode.NET_IDLE_NAT, facts)
