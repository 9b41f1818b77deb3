"""Rules of security groups and network ACLs, from the vendor's words to ours and, of groups, back: pure.

A rule of a group has one source: a network, a group or a prefix list; and one range of ports, or a port list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from typing import Any

from costguard.domain.network import EVERY_PORT, Direction, NetworkRule, Permission
from costguard.providers.kit.core.fields import Fields, named, text
from costguard.providers.kit.network.reading import network

Ports = tuple[tuple[int, int], ...]

_PERMISSIONS = {"accept": Permission.ALLOW, "drop": Permission.DENY}
_DIRECTIONS = {"ingress": Direction.INGRESS, "egress": Direction.EGRESS}
_WITH_PORTS = frozenset({"tcp", "udp"})
_LOWEST_PORT, _HIGHEST_PORT = 1, 65535  # the vendor's own bounds: `1/65535` is every port
_ANY_PORT = "-1/-1"
_UNBOUND = frozenset({"", _ANY_PORT, f"{_LOWEST_PORT}/{_HIGHEST_PORT}"})
_EVERYWHERE = frozenset({"", "0.0.0.0/0", "::/0"})
_LEAST_PRIORITY, _HIGHEST_PRIORITY = 100, 1


@dataclass(frozen=True, slots=True)
class RuleLists:
    """What the lists hold that rules name, by their ids; one that could not be read is not in it."""

    networks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ports: Mapping[str, Ports] = field(default_factory=dict)


def direction_of(told: Fields) -> Direction:
    """Which way a rule of a group speaks of.

    Raises:
        ValueError: another word.
    """
    found: Direction = _word(_DIRECTIONS, told, "Direction")
    return found


def lists_named(permissions: Iterable[Fields]) -> tuple[set[str], set[str]]:
    """The prefix lists and the port lists that these rules name."""
    networks, ports = set(), set()
    for told in permissions:
        prefix_list = text(told, f"{_side(direction_of(told))}PrefixListId")
        if prefix_list and not _networks(told):
            networks.add(prefix_list)
        if not text(told, "PortRange") and text(told, "PortRangeListId"):
            ports.add(text(told, "PortRangeListId"))
    return networks, ports


def to_rule(told: Fields, lists: RuleLists) -> NetworkRule:
    """One rule of a group.

    A rule may also ask for source ports, or for addresses within the group. What it allows is then taken for all that
    it could be, and what it denies for nothing certain: whichever way it is, no way in goes unseen.
    """
    direction = direction_of(told)
    permission = _word(_PERMISSIONS, told, "Policy")
    protocol = named(told, "IpProtocol").lower()
    peers, unresolved = _peers(told, direction, lists)
    groups = _peer_groups(told, direction) if not peers and not unresolved else ()
    if not (peers or unresolved or groups or text(told, f"{_side(direction)}PrefixListId")):
        raise ValueError("a rule without a source")
    ports, port_list = _ports(told, protocol, lists)
    rule = NetworkRule(
        rule_id=text(told, "SecurityGroupRuleId"),
        direction=direction,
        permission=permission,
        protocol=protocol,
        ports=ports,
        peers=peers,
        peer_groups=groups,
        unresolved=unresolved,
        priority=_priority(told),
        description=text(told, "Description"),
        cannot_return=_lost_by_an_image(told),
    )
    partly = [*_conditions(told, direction), *([port_list] if port_list else [])]
    if permission is Permission.DENY and partly:
        return replace(rule, peers=(), peer_groups=(), unresolved=(*rule.peers, *rule.unresolved, *partly))
    return rule


def _lost_by_an_image(told: Fields) -> str:
    """What of a rule no image keeps, so that it could not be put back as it is; empty for nothing."""
    direction = direction_of(told)
    if not text(told, "SecurityGroupRuleId"):
        return "no_id"
    if _conditions(told, direction):
        return "more_conditions"
    if text(told, "PortRangeListId") and not text(told, "PortRange"):
        return "port_list"
    if not _networks(told):
        if text(told, f"{_side(direction)}PrefixListId"):
            return "prefix_list"
        if text(told, f"{_side(direction)}GroupOwnerAccount"):
            return "group_elsewhere"
    return ""


def to_permission(rule: NetworkRule) -> dict[str, Any]:
    """A rule of the way in as AuthorizeSecurityGroup takes it.

    Raises:
        ValueError: it has no such form.
    """
    if rule.direction is not Direction.INGRESS or rule.unresolved or len(rule.peers) + len(rule.peer_groups) != 1:
        raise ValueError("a rule needs one network or group that it lets in")
    if not _HIGHEST_PRIORITY <= rule.priority <= _LEAST_PRIORITY:
        message = f"priority {rule.priority} is not from {_HIGHEST_PRIORITY} to {_LEAST_PRIORITY}"
        raise ValueError(message)
    made: dict[str, Any] = {
        "Policy": "accept" if rule.permission is Permission.ALLOW else "drop",
        "IpProtocol": "ICMPv6" if rule.protocol == "icmpv6" else rule.protocol.upper(),
        "PortRange": _port_range(rule),
        "Priority": str(rule.priority),
        "NicType": "intranet",
    }
    if rule.peer_groups:
        made["SourceGroupId"] = rule.peer_groups[0]
    else:
        made["Ipv6SourceCidrIp" if ":" in rule.peers[0] else "SourceCidrIp"] = str(ip_network(rule.peers[0]))
    if rule.description:
        made["Description"] = rule.description
    return made


def to_entry(told: Fields, direction: Direction, place: int) -> NetworkRule:
    """One entry of a network ACL; its place in the list is its priority."""
    protocol = named(told, "Protocol").lower()
    peer = named(told, "SourceCidrIp" if direction is Direction.INGRESS else "DestinationCidrIp")
    return NetworkRule(
        rule_id=text(told, "NetworkAclEntryId"),
        direction=direction,
        permission=_word(_PERMISSIONS, told, "Policy"),
        protocol=protocol,
        ports=_of_range(text(told, "Port"), protocol),
        peers=(network(peer),),
        priority=place,
        description=text(told, "Description"),
    )


def to_range(told: str) -> tuple[int, int]:
    """`80/443`, or `22`, as a range with both ends.

    Raises:
        ValueError: it is none.
    """
    first, slash, last = told.partition("/")
    found = int(first), int(last if slash else first)
    if not (0 <= found[0] <= found[1] <= _HIGHEST_PORT):
        message = f"{told!r} is no range of ports"
        raise ValueError(message)
    return found


def _side(direction: Direction) -> str:
    return "Source" if direction is Direction.INGRESS else "Dest"


def _networks(told: Fields) -> tuple[str, ...]:
    """Where a group stands beside a network, the network counts."""
    side = _side(direction_of(told))
    found = (text(told, f"{side}CidrIp"), text(told, f"Ipv6{side}CidrIp"))
    return tuple(network(each) for each in found if each)


def _peers(told: Fields, direction: Direction, lists: RuleLists) -> tuple[tuple[str, ...], tuple[str, ...]]:
    networks = _networks(told)
    prefix_list = text(told, f"{_side(direction)}PrefixListId")
    if networks or not prefix_list:
        return networks, ()
    listed = lists.networks.get(prefix_list)
    return ((), (prefix_list,)) if listed is None else (listed, ())


def _peer_groups(told: Fields, direction: Direction) -> tuple[str, ...]:
    group = text(told, f"{_side(direction)}GroupId")
    return (group,) if group else ()


def _conditions(told: Fields, direction: Direction) -> list[str]:
    """What else a rule asks for: ports of the sender, and addresses of our own side."""
    own = "Dest" if direction is Direction.INGRESS else "Source"
    found = [text(told, f"{own}CidrIp"), text(told, f"Ipv6{own}CidrIp")]
    conditions = [f"only for {each}" for each in found if each not in _EVERYWHERE]
    if text(told, "SourcePortRange") not in _UNBOUND:
        conditions.append(f"only from ports {text(told, 'SourcePortRange')}")
    return conditions


def _ports(told: Fields, protocol: str, lists: RuleLists) -> tuple[Ports, str]:
    """The ports, and the id of a port list that could not be read: then it may be any of them."""
    port_list = text(told, "PortRangeListId")
    if text(told, "PortRange") or not port_list:
        return _of_range(text(told, "PortRange"), protocol), ""
    listed = lists.ports.get(port_list)
    return (EVERY_PORT, port_list) if listed is None else (listed, "")


def _of_range(told: str, protocol: str) -> Ports:
    if protocol == "all":
        return EVERY_PORT
    if protocol not in _WITH_PORTS:
        return ()
    return EVERY_PORT if told in _UNBOUND else (to_range(told),)


def _port_range(rule: NetworkRule) -> str:
    if rule.protocol not in _WITH_PORTS:
        return _ANY_PORT
    if rule.ports == EVERY_PORT:
        return f"{_LOWEST_PORT}/{_HIGHEST_PORT}"
    if len(rule.ports) != 1:
        raise ValueError("a rule needs one range of ports")
    first, last = rule.ports[0]
    return f"{first}/{last}"


def _priority(told: Fields) -> int:
    """Told as a text, and as a number by some."""
    found = told.get("Priority", _HIGHEST_PRIORITY)
    if isinstance(found, bool) or not isinstance(found, (int, str)):
        message = f"Priority is of type {type(found).__name__}"
        raise TypeError(message)
    return int(found)


def _word(words: Mapping[str, Any], told: Fields, key: str) -> Any:
    found = words.get(named(told, key).lower())
    if found is None:
        message = f"{key} is {told[key]!r}"
        raise ValueError(message)
    return found
