"""Who gets into a machine by a port: a slow walk over single addresses, by rules of the world read one after another.

It shares nothing with the program. A network is cut at every edge of every rule, so that one address stands for all of
its piece; the family is IPv4, and access lists let everything through, as they do in every story about settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network

from costguard.domain.network import (
    Direction,
    Hop,
    NetworkInterface,
    NetworkInventory,
    NetworkRule,
    Permission,
    RuleOrder,
    SecurityGroup,
)

ADMIN_PORT = 22  # every machine of these stories runs Linux: RDP is no way into one


def gets_in(network: NetworkInventory, card: NetworkInterface, port: int) -> bool:
    """Whether any network, or a machine that is itself entered, gets in."""
    return _entered(network, card, port, [])


def entered_machines(network: NetworkInventory) -> frozenset[str]:
    """The machines that somebody gets into by the admin port."""
    return frozenset(
        card.instance.native_id
        for card in network.interfaces
        if card.instance is not None and gets_in(network, card, ADMIN_PORT)
    )


def lost_machines(before: NetworkInventory, after: NetworkInventory) -> list[str]:
    """The machines that somebody got into before and nobody does after."""
    return sorted(entered_machines(before) - entered_machines(after))


def the_world_gets_in(network: NetworkInventory, card: NetworkInterface, port: int) -> bool:
    """Whether an address of nobody's on the internet does."""
    at = int(IPv4Address("8.8.8.8"))
    return _lets_in(network, card, port, at, None) and _arrives(network, card, at)


def _entered(network: NetworkInventory, card: NetworkInterface, port: int, asked: list[NetworkInterface]) -> bool:
    for at in _pieces(network):
        if _lets_in(network, card, port, at, None) and _arrives(network, card, at):
            return True
    for other in network.interfaces:
        if other.instance is None or other.instance == card.instance or other in asked:
            continue
        for address in other.private_ips:
            if _lets_in(network, card, port, int(IPv4Address(address)), other) and _entered(
                network, other, port, [*asked, card]
            ):
                return True
    return False


def _pieces(network: NetworkInventory) -> Iterator[int]:
    """One address of every piece that rules and networks cut the internet into."""
    edges = {int(IPv4Address("8.8.8.8"))}
    told = [peer for group in network.groups for rule in group.rules for peer in rule.peers]
    told += [cidr for vpc in network.vpcs for cidr in vpc.cidrs]
    for text in told:
        if ":" in text:
            continue
        piece = IPv4Network(text)
        low, high = int(piece.network_address), int(piece.broadcast_address)
        edges.update((low, high, max(low - 1, 0), min(high + 1, 2**32 - 1)))
    yield from sorted(edges)


def _arrives(network: NetworkInventory, card: NetworkInterface, at: int) -> bool:
    """Inside its own network anybody does; from the internet where it has a public address and a route out."""
    vpc = next((each for each in network.vpcs if each.ref == card.vpc), None)
    if vpc is not None and any(IPv4Address(at) in IPv4Network(cidr) for cidr in vpc.cidrs):
        return True
    if not card.public_ips or not _is_public(at):
        return False
    if vpc is None or not vpc.needs_gateway:
        return True
    subnet = next((each for each in network.subnets if each.ref == card.subnet), None)
    table = next((each for each in network.route_tables if subnet is not None and each.ref == subnet.route_table), None)
    return table is not None and any(
        route.active and route.hop is Hop.INTERNET and route.destination == "0.0.0.0/0" for route in table.routes
    )


def _is_public(at: int) -> bool:
    private = ("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12")
    others = ("192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3")
    return not any(IPv4Address(at) in IPv4Network(cidr) for cidr in (*private, *others))


def _lets_in(
    network: NetworkInventory, card: NetworkInterface, port: int, at: int, other: NetworkInterface | None
) -> bool:
    """Whether the groups around a card let an address in; `other`: the card it is of."""
    groups = [group for name in card.groups for group in network.groups if group.ref.native_id == name]
    if not groups:
        return False
    order = groups[0].order
    held = [(group, rule) for group in groups for rule in group.rules if rule.direction is Direction.INGRESS]
    if order is RuleOrder.PRIORITY:  # the lower number first, a denial before a permission of the same number
        held.sort(key=lambda pair: (pair[1].priority, pair[1].permission is Permission.ALLOW))
    matching = [rule for _, rule in held if _matches(rule, port, at, other)]
    if order is RuleOrder.UNION:
        return any(rule.permission is Permission.ALLOW for rule in matching)
    if matching:
        return matching[0].permission is Permission.ALLOW
    return other is not None and any(group.peers_may_talk and _in(other, group) for group in groups)


def _matches(rule: NetworkRule, port: int, at: int, other: NetworkInterface | None) -> bool:
    if rule.protocol not in {"all", "tcp"} or not any(low <= port <= high for low, high in rule.ports):
        return False
    if other is not None and any(group in other.groups for group in rule.peer_groups):
        return True
    return any(":" not in peer and IPv4Address(at) in IPv4Network(peer) for peer in rule.peers)


def _in(card: NetworkInterface, group: SecurityGroup) -> bool:
    return group.ref.native_id in card.groups
