"""The graph against a slow, obvious reference: a few peers and ports, every rule looked at one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from ipaddress import ip_address, ip_network
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.network_places import PUBLIC, audit, card, entries, group, instance, place

from costguard.domain.network import (
    AccessList,
    Direction,
    Hop,
    NetworkInventory,
    NetworkRule,
    Permission,
    Route,
    RuleOrder,
    SecurityGroup,
)
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.network.judge import last_admin_path
from costguard.guards.network.reachability.exposure import Path, PossibleWay, reach

NETWORKS = {
    4: ("0.0.0.0/0", "8.0.0.0/8", "8.8.0.0/16", "9.0.0.0/8", "10.0.0.0/8", "0.0.0.0/1"),
    6: ("::/0", "2001:db8::/32", "2600::/16", "fd00::/8"),
}
PEERS = {4: ("8.8.1.1", "8.1.1.1", "9.1.1.1", "50.1.1.1", "150.1.1.1"), 6: ("2001:db8::5", "2600::1", "2a00::1")}
"""At least one of every piece that the networks cut the internet into."""
RANGES = ((0, 65535), (22, 22), (20, 30), (80, 80), (1024, 65535), (1024, 40000), (40001, 65535), (8080, 8080))
PORTS = (5, 22, 25, 80, 1024, 8080, 40000, 50000)
"""One of every piece that the ranges make."""
PRIVATE = {4: ("10.0.0.9", "10.200.0.1", "100.64.0.1", "192.168.1.1"), 6: ("fd00::1", "4000::1")}
ASKERS = (1024, 8080, 30000, 40000, 40001, 65535)
ADDRESS_V6 = "2001:db8::7"
PROTOCOLS = ("tcp", "udp", "icmp", "all")
LIST = "pl-unread"


@dataclass(frozen=True)
class Point:
    """One asker, one port."""

    family: int
    peer: str
    protocol: str
    port: int


@st.composite
def rules(draw: st.DrawFn, place_in_list: int, *, only_allow: bool = False) -> NetworkRule:
    unresolved = draw(st.sampled_from(((),) * 5 + ((LIST,),)))
    peers = draw(st.lists(st.sampled_from(NETWORKS[4] + NETWORKS[6]), max_size=2, unique=True))
    return NetworkRule(
        rule_id=f"r{place_in_list}",
        direction=draw(st.sampled_from((Direction.INGRESS,) * 3 + (Direction.EGRESS,))),
        permission=Permission.ALLOW if only_allow else draw(st.sampled_from(tuple(Permission))),
        protocol=draw(st.sampled_from(PROTOCOLS)),
        ports=tuple(draw(st.lists(st.sampled_from(RANGES), min_size=1, max_size=2, unique=True))),
        peers=tuple(peers),
        unresolved=unresolved,
        priority=draw(st.integers(1, 4)),
    )


@st.composite
def groups(draw: st.DrawFn, order: RuleOrder, native_id: str) -> SecurityGroup:
    many = draw(st.integers(0, 4))
    made = [draw(rules(number, only_allow=order is RuleOrder.UNION)) for number in range(many)]
    if order is not RuleOrder.PRIORITY:
        made = [replace(rule, priority=number) for number, rule in enumerate(made)]
    return group(*made, native_id=native_id, order=order)


@st.composite
def lists(draw: st.DrawFn) -> AccessList | None:
    if draw(st.integers(0, 2)) == 0:
        return None
    made = [replace(draw(rules(number)), priority=number) for number in range(draw(st.integers(0, 5)))]
    extra = NetworkRule("out", Direction.EGRESS, Permission.ALLOW, "all", peers=("0.0.0.0/0", "::/0"), priority=90)
    return entries(*made, *((extra,) if draw(st.booleans()) else ()))


@st.composite
def routes(draw: st.DrawFn) -> tuple[Route, ...]:
    hops = (Hop.INTERNET, Hop.INTERNET, Hop.NAT, Hop.VPN, Hop.OTHER, Hop.EGRESS_ONLY)
    made = [Route("10.0.0.0/16", Hop.LOCAL)]
    further = draw(st.lists(st.sampled_from(NETWORKS[4] + NETWORKS[6]), max_size=3, unique=True))
    made += [Route(to, draw(st.sampled_from(hops)), "t", active=draw(st.integers(0, 4)) > 0) for to in further]
    default = [Route(network, Hop.INTERNET, "igw") for network in ("0.0.0.0/0", "::/0")]
    named = {route.destination for route in made}
    return (*made, *(route for route in default if draw(st.booleans()) and route.destination not in named))


@st.composite
def places(draw: st.DrawFn) -> NetworkInventory:
    order = draw(st.sampled_from(tuple(RuleOrder)))
    names = draw(st.permutations(("sg-1", "sg-2")))[: draw(st.integers(1, 2))]
    missing = draw(st.integers(0, 5)) == 0
    made = [draw(groups(order, name)) for name in names]
    return place(
        *(made[:-1] if missing else made),
        cards=[card(groups=tuple(names), ipv6_public=(ADDRESS_V6,))],
        routes=draw(routes()),
        listed=draw(lists()),
        needs_gateway=draw(st.booleans()),
    )


@cache
def inside(peer: str, network: str) -> bool:
    return ip_address(peer) in ip_network(network)


def matches(rule: NetworkRule, point: Point, port: int, guess: Mapping[str, bool]) -> bool:
    protocol = "icmpv6" if point.protocol == "icmp" and point.family == 6 else point.protocol
    if rule.protocol not in {protocol, "all"}:
        return False
    if point.protocol in {"tcp", "udp"} and not any(first <= port <= last for first, last in rule.ports):
        return False
    if any(inside(point.peer, peer) for peer in rule.peers):
        return True
    return bool(rule.unresolved) and guess[f"{id(rule)}"]


def decided(
    ordered: Sequence[NetworkRule], direction: Direction, point: Point, port: int, guess: Mapping[str, bool]
) -> bool:
    for rule in ordered:
        if rule.direction is direction and matches(rule, point, port, guess):
            return rule.permission is Permission.ALLOW
    return False


def group_lets_in(net: NetworkInventory, point: Point, guess: Mapping[str, bool]) -> bool:
    known = {each.ref.native_id: each for each in net.groups}
    names = net.interfaces[0].groups
    order = net.groups[0].order if net.groups else RuleOrder.UNION
    if order is RuleOrder.UNION:
        return any(
            guess[name]
            if name not in known
            else any(
                rule.direction is Direction.INGRESS and matches(rule, point, point.port, guess)
                for rule in known[name].rules
            )
            for name in names
        )
    if order is RuleOrder.FIRST_MATCH:
        for name in names:
            if name not in known:
                if guess[f"{name} decides"]:
                    return guess[name]
                continue
            for rule in known[name].rules:
                if rule.direction is Direction.INGRESS and matches(rule, point, point.port, guess):
                    return rule.permission is Permission.ALLOW
        return False
    together = [rule for name in names if name in known for rule in known[name].rules]
    together.sort(key=lambda rule: (rule.priority, rule.permission is Permission.ALLOW))
    for name in names:
        if name not in known and guess[f"{name} decides"]:
            return guess[name]
    return decided(together, Direction.INGRESS, point, point.port, guess)


def list_lets_through(net: NetworkInventory, point: Point, guess: Mapping[str, bool]) -> bool:
    if not net.access_lists:
        return True
    rules_in_order = net.access_lists[0].rules
    if not decided(rules_in_order, Direction.INGRESS, point, point.port, guess):
        return False
    return any(decided(rules_in_order, Direction.EGRESS, point, asker, guess) for asker in ASKERS)


def leaves(net: NetworkInventory, point: Point) -> bool:
    fitting = [route for route in net.route_tables[0].routes if inside(point.peer, route.destination)]
    route = max(fitting, key=lambda each: ip_network(each.destination).prefixlen, default=None)
    if net.vpcs[0].needs_gateway:
        return route is not None and route.active and route.hop is Hop.INTERNET
    if route is None:
        return True
    if not route.active or route.hop is Hop.EGRESS_ONLY:
        return False
    return route.hop in {Hop.INTERNET, Hop.NAT} or ip_network(route.destination).prefixlen == 0


def arrives(net: NetworkInventory, point: Point) -> bool:
    """Whether somebody of there, on the internet or not, has a way to the machine and back."""
    if inside(point.peer, net.vpcs[0].cidrs[0]):
        return True
    fitting = [route for route in net.route_tables[0].routes if inside(point.peer, route.destination)]
    route = max(fitting, key=lambda each: ip_network(each.destination).prefixlen, default=None)
    if route is not None and route.active and route.hop in {Hop.LOCAL, Hop.PEERING, Hop.VPN, Hop.INSTANCE, Hop.OTHER}:
        return True
    return point.peer not in PRIVATE[point.family] and leaves(net, point)


def let_in(net: NetworkInventory) -> dict[Point, tuple[bool, bool]]:
    """Who gets in by SSH for sure, and who may."""
    turns = tuple(guesses(net))
    points = [Point(family, peer, "tcp", 22) for family in (4, 6) for peer in PEERS[family] + PRIVATE[family]]
    return {point: truth(net, point, turns, arrives) for point in points}


def is_somebody(net: NetworkInventory, point: Point, trusted: Sequence[str]) -> bool:
    """Whether it is known that people come from there: trusted, or by VPN; in the network is no other machine."""
    if inside(point.peer, net.vpcs[0].cidrs[0]):
        return False
    if any(inside(point.peer, network) for network in trusted):
        return True
    fitting = [route for route in net.route_tables[0].routes if inside(point.peer, route.destination)]
    route = max(fitting, key=lambda each: ip_network(each.destination).prefixlen, default=None)
    if route is None or not route.active or route.hop is not Hop.VPN:
        return False
    return ip_network(route.destination).prefixlen > 0 or point.peer in PRIVATE[point.family]


def guesses(net: NetworkInventory) -> Iterator[Mapping[str, bool]]:
    """Every way in which what is not known may turn out, for one asker."""
    known = {each.ref.native_id for each in net.groups}
    lists_of_rules = [*(each.rules for each in net.groups), *(each.rules for each in net.access_lists)]
    held = [rule for rules_of_one in lists_of_rules for rule in rules_of_one]
    names = [f"{id(rule)}" for rule in held if rule.unresolved]
    for name in net.interfaces[0].groups:
        if name not in known:
            names += [name, f"{name} decides"]
    for turned_out in product((False, True), repeat=len(names)):
        yield dict(zip(names, turned_out, strict=True))


def truth(
    net: NetworkInventory,
    point: Point,
    turns: Sequence[Mapping[str, bool]],
    gets_there: Callable[[NetworkInventory, Point], bool] = leaves,
) -> tuple[bool, bool]:
    """Whether a point is open for sure, and whether it may be."""
    if not gets_there(net, point):
        return False, False
    found = {group_lets_in(net, point, guess) and list_lets_through(net, point, guess) for guess in turns}
    return found == {True}, True in found


def holds(found: Path | PossibleWay, point: Point) -> bool:
    protocol = "icmpv6" if point.protocol == "icmp" and point.family == 6 else point.protocol
    if (found.family, found.protocol) != (point.family, protocol):
        return False
    return not found.ports or any(first <= point.port <= last for first, last in found.ports)


@settings(max_examples=50, deadline=None)
@given(places())
def test_paths_and_doubts_are_what_looking_at_every_rule_finds(net: NetworkInventory) -> None:
    """Certain is open however the unknown turns out; doubtful is open only if it turns out so; the rest is closed."""
    found = reach([net], [instance()])
    turns = tuple(guesses(net))
    addresses = {4: PUBLIC, 6: ADDRESS_V6}
    assert {path.address for path in found.paths} | {doubt.address for doubt in found.doubts} <= {*addresses.values()}
    asked_for = [*product((4, 6), ("tcp", "udp"), PORTS), (4, "icmp", 0), (6, "icmp", 0)]
    for family, protocol, port in asked_for:
        expected = {peer: truth(net, Point(family, peer, protocol, port), turns) for peer in PEERS[family]}
        asked = Point(family, "", protocol, port)
        paths = [path for path in found.paths if holds(path, asked)]
        for peer, (certain, _) in expected.items():
            led = any(inside(peer, network) for path in paths for network in path.peers)
            assert led is certain, (peer, protocol, port)
        doubtful = any(may and not certain for certain, may in expected.values())
        assert any(holds(doubt, asked) for doubt in found.doubts) is doubtful, (family, protocol, port)


@settings(max_examples=60, deadline=None)
@given(places(), st.sampled_from(((), ("8.8.0.0/16",), ("9.0.0.0/8", "2600::/16"))))
def test_a_rule_goes_only_where_somebody_certainly_still_gets_in(net: NetworkInventory, trusted: tuple[str]) -> None:
    """And where it lets in nobody by itself there is nothing to be kept."""
    before = let_in(net)
    for held in net.groups:
        for rule in held.rules:
            if rule.direction is Direction.EGRESS or rule.permission is Permission.DENY:
                continue
            left = replace(held, rules=tuple(each for each in held.rules if each is not rule))
            after = let_in(replace(net, groups=tuple(left if each is held else each for each in net.groups)))
            shuts_out = any(may and not after[point][0] for point, (_, may) in before.items())
            still = any(certain and is_somebody(net, point, trusted) for point, (certain, _) in after.items())
            said = {"rule_id": rule.rule_id, "direction": rule.direction.value}
            mend = Remediation(RemediationKind.REVOKE_RULE, held.ref, said)
            refused = last_admin_path(mend, [net], [instance()], audit(trusted=trusted))
            assert (refused is None) is (still or not shuts_out), (rule, refused)
