"""Who gets into a machine by a port: a slow walk over single addresses, by rules of the world read one after another.

It shares nothing with the program. A network is cut at every edge of every rule, and at every address that something
has, so that one address stands for all of its piece; the family is IPv4, and access lists let everything through, as
they do in every story about settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from costguard.domain.refs import ResourceRef

ADMIN_PORT = 22  # every machine of these stories runs Linux: RDP is no way into one


def entered_machines(network: NetworkInventory, trusted: Sequence[str] = ()) -> frozenset[str]:
    """The machines that somebody gets into by the admin port, the whole world being somebody too."""
    machines = {card.instance for card in network.interfaces if card.instance is not None}
    return frozenset(each.native_id for each in machines if _is_entered(network, each, trusted, []))


def lost_machines(before: NetworkInventory, after: NetworkInventory, trusted: Sequence[str]) -> list[str]:
    """The machines that some network gets to no longer and nobody known of does, or whom nobody enters any more."""
    pieces = sorted({*_pieces(before), *_pieces(after)})
    lost = []
    for machine in sorted({card.instance for card in before.interfaces if card.instance is not None}):
        shut_out = any(
            _gets_there(before, card, at) and not any(_gets_there(after, now, at) for now in _cards(after, card.ref))
            for card in _of(before, machine)
            for at in pieces
        )
        beside = _is_entered(before, machine, trusted, []) and not _is_entered(after, machine, trusted, [])
        if beside or (shut_out and not _somebody_enters(after, machine, trusted, [])):
            lost.append(machine.native_id)
    return lost


def the_world_gets_in(network: NetworkInventory, card: NetworkInterface, port: int) -> bool:
    """Whether an address of nobody's on the internet does."""
    at = int(IPv4Address("8.8.8.8"))
    return _lets_in(network, card, port, at, None) and _arrives(network, card, at)


def _gets_there(network: NetworkInventory, card: NetworkInterface, at: int) -> bool:
    return _lets_in(network, card, ADMIN_PORT, at, None) and _arrives(network, card, at)


def _somebody_enters(
    network: NetworkInventory, machine: ResourceRef, trusted: Sequence[str], asked: list[ResourceRef]
) -> bool:
    """Whether somebody known of does: of a trusted network, over a peering or VPN, or by another machine.

    An address where nothing is counts for nothing, and neither do the machine's own.
    """
    own = {int(IPv4Address(address)) for card in _of(network, machine) for address in _addresses(card)}
    for card in _of(network, machine):
        for at in _pieces(network):
            if at in own or not _gets_there(network, card, at) or _is_inside(network, card, at):
                continue
            if _is_in(at, trusted) or _joined(network, card, at):
                return True
        for other in network.interfaces:
            if other.unattached or other.instance == machine or other.instance in asked:
                continue
            if _calls(network, other, card) and (
                any(_is_in(int(IPv4Address(address)), trusted) for address in other.private_ips)
                or (other.instance is not None and _is_entered(network, other.instance, trusted, [*asked, machine]))
            ):
                return True
    return False


def _is_entered(
    network: NetworkInventory, machine: ResourceRef, trusted: Sequence[str], asked: list[ResourceRef]
) -> bool:
    """Whether somebody gets into another machine: there the whole world is somebody too."""
    open_to_all = any(the_world_gets_in(network, card, ADMIN_PORT) for card in _of(network, machine))
    return open_to_all or _somebody_enters(network, machine, trusted, asked)


def _calls(network: NetworkInventory, other: NetworkInterface, card: NetworkInterface) -> bool:
    """Whether one card gets to another: inside their network, or by its public address."""
    for address in other.private_ips:
        if other.vpc == card.vpc and _lets_in(network, card, ADMIN_PORT, int(IPv4Address(address)), other):
            return True
    return any(_gets_there(network, card, int(IPv4Address(public))) for _, public in other.public_ips)


def _of(network: NetworkInventory, machine: ResourceRef) -> list[NetworkInterface]:
    return [card for card in network.interfaces if card.instance == machine]


def _cards(network: NetworkInventory, ref: ResourceRef) -> list[NetworkInterface]:
    return [card for card in network.interfaces if card.ref == ref]


def _addresses(card: NetworkInterface) -> list[str]:
    return [*card.private_ips, *(public for _, public in card.public_ips)]


def _is_in(at: int, networks: Sequence[str]) -> bool:
    return any(IPv4Address(at) in IPv4Network(each) for each in networks)


def _is_inside(network: NetworkInventory, card: NetworkInterface, at: int) -> bool:
    vpc = next((each for each in network.vpcs if each.ref == card.vpc), None)
    return vpc is not None and _is_in(at, vpc.cidrs)


def _joined(network: NetworkInventory, card: NetworkInterface, at: int) -> bool:
    """Whether the route to an address, other than the one to everywhere, leads over a peering or VPN."""
    subnet = next((each for each in network.subnets if each.ref == card.subnet), None)
    table = next((each for each in network.route_tables if subnet is not None and each.ref == subnet.route_table), None)
    fitting = [route for route in (table.routes if table is not None else ()) if _is_in(at, [route.destination])]
    best = max(fitting, key=lambda route: IPv4Network(route.destination).prefixlen, default=None)
    if best is None or not best.active or best.hop not in {Hop.PEERING, Hop.VPN}:
        return False
    return best.destination != "0.0.0.0/0" or not _is_public(at)


def _pieces(network: NetworkInventory) -> Iterator[int]:
    """One address of every piece that rules, networks and routes cut the internet into."""
    edges = {int(IPv4Address("8.8.8.8"))}
    told = [peer for group in network.groups for rule in group.rules for peer in rule.peers]
    told += [cidr for vpc in network.vpcs for cidr in vpc.cidrs]
    told += [route.destination for table in network.route_tables for route in table.routes]
    told += [address for card in network.interfaces for address in _addresses(card)]
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
    if _is_inside(network, card, at) or _joined(network, card, at):
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
