"""From the rules of Tencent Cloud's groups and access lists to neutral rules, and back: no request is made.

A field that is not of its documented type raises as `kit/core/fields.py` says.

A rule of a group has no id, only its place in the list of its direction, which every change of the list moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address, summarize_address_range
from typing import Any

from costguard.domain.network import EVERY_PORT, Direction, NetworkRule, Permission
from costguard.providers.kit.core.fields import Fields, named, part, parts, text, whole
from costguard.providers.kit.network.reading import network
from costguard.providers.tencent.core.products import told

SIDES = {Direction.INGRESS: "Ingress", Direction.EGRESS: "Egress"}
"""What the lists of a group are called, in answers and requests."""

UNTOLD_PEER = "a peer that is not told"

_ALL = "all"
_PORTED = frozenset({"tcp", "udp", _ALL})
_LAST_PORT = 65535
_ACTIONS = {"accept": Permission.ALLOW, "drop": Permission.DENY}
_WORDS = {Permission.ALLOW: "ACCEPT", Permission.DENY: "DROP"}
_ANY = ("0.0.0.0/0", "::/0")
_PEERS = ("CidrBlock", "Ipv6CidrBlock", "SecurityGroupId", "AddressTemplate")

Ports = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Templates:
    """What parameter templates and groups of them stand for, by their ids; what is not here could not be read."""

    networks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    services: Mapping[str, tuple[tuple[str, Ports], ...]] = field(default_factory=dict)


def networks_of(said: str) -> Iterator[str]:
    """The networks of one line of a template: an address, a network, or `first-last`.

    Raises:
        ValueError: it is none of these.
    """
    first, dash, last = said.strip().partition("-")
    if not dash:
        yield network(first)
        return
    lowest, highest = ip_address(first.strip()), ip_address(last.strip())
    for each in summarize_address_range(lowest, highest):  # type: ignore[type-var,unused-ignore]
        yield str(each)


def service_of(said: str) -> tuple[str, Ports]:
    """One line of a service template: `tcp:80`, `udp:53,123`, `tcp:8000-9000`, `icmp:all`.

    Raises:
        ValueError: it is none of these.
    """
    protocol, _, ports = said.strip().lower().partition(":")
    if not protocol:
        raise ValueError("a service without a protocol")
    return protocol, ports_of(protocol, ports)


def ports_of(protocol: str, said: str) -> Ports:
    """`22`, `80,443`, `1000-2000`, `ALL` or nothing, for a protocol in lower case.

    Raises:
        ValueError: it is none of these.
    """
    if protocol not in _PORTED:
        return ()
    word = said.strip().lower()
    if protocol == _ALL or word in {"", _ALL}:
        return EVERY_PORT
    return tuple(_span(each) for each in word.split(","))


def policy_lists(policies: Fields) -> Iterator[tuple[Direction, Fields]]:
    """The rules of a SecurityGroupPolicySet from the top, those for what comes in first.

    Raises:
        TypeError, ValueError: a list is missing or not as documented, or two rules have one place.
    """
    for direction, key in SIDES.items():
        if key not in policies:
            message = f"{key} is missing"
            raise ValueError(message)
        listed = sorted(parts(policies, key), key=lambda item: whole(item, "PolicyIndex"))
        if [whole(item, "PolicyIndex") for item in listed] != list(range(len(listed))):
            message = f"{key} is not numbered from 0 on"
            raise ValueError(message)
        yield from ((direction, item) for item in listed)


def template_ids(policy: Fields) -> tuple[str, str]:
    """The ids of the address and of the service template that a rule names, empty where it names none."""
    addresses = told(part(told(policy, "AddressTemplate"), "AddressTemplate"), "AddressId", "AddressGroupId")
    services = told(part(told(policy, "ServiceTemplate"), "ServiceTemplate"), "ServiceId", "ServiceGroupId")
    return (
        text(addresses, "AddressId") or text(addresses, "AddressGroupId"),
        text(services, "ServiceId") or text(services, "ServiceGroupId"),
    )


def group_rules(policies: Fields, templates: Templates) -> Iterator[NetworkRule]:
    """Every rule of a SecurityGroupPolicySet; one with a service template is as many as that has protocols.

    A rule that names a template nobody could read may be about anybody, and if it is one of services, about anything.
    """
    for direction, policy in policy_lists(policies):
        yield from _policy_rules(direction, policy, templates)


def policy_of(rule: NetworkRule) -> dict[str, Any] | None:
    """A rule as requests have it, without its place; None where it is not one rule of this cloud.

    A port goes with TCP and UDP, and `all` with ALL; ICMP and GRE have none.
    """
    if len(rule.peers) + len(rule.peer_groups) != 1 or rule.unresolved:
        return None
    policy: dict[str, Any] = {"Protocol": rule.protocol.upper()}
    if rule.protocol in _PORTED:
        policy["Port"] = "all" if rule.ports == EVERY_PORT else ",".join(_written(span) for span in rule.ports)
    if rule.peer_groups:
        policy["SecurityGroupId"] = rule.peer_groups[0]
    else:
        policy["Ipv6CidrBlock" if ":" in rule.peers[0] else "CidrBlock"] = rule.peers[0]
    return {**policy, "Action": _WORDS[rule.permission], "PolicyDescription": rule.description}


def same(rule: NetworkRule, other: NetworkRule) -> bool:
    """Whether two rules match and say the same, wherever they stand and however they are described."""
    return _bare(rule) == _bare(other)


def entry_rules(access_list: Fields) -> Iterator[NetworkRule]:
    """The entries of an access list of three parts, by priority, which each family counts from 1 for itself."""
    for direction, key in ((Direction.INGRESS, "IngressEntries"), (Direction.EGRESS, "EgressEntries")):
        if key not in access_list:
            message = f"{key} is missing"
            raise ValueError(message)
        for entry in sorted(parts(access_list, key), key=_priority):
            protocol = named(entry, "Protocol").lower()
            six = text(entry, "NetworkAclIpv6EntryId")
            yield NetworkRule(
                rule_id=six or named(entry, "NetworkAclIpv4EntryId"),
                direction=direction,
                permission=_permission(entry),
                protocol=protocol,
                ports=ports_of(protocol, text(entry, "Port")),
                peers=(network(text(entry, "CidrBlock") or named(entry, "Ipv6CidrBlock")),),
                priority=_priority(entry),
                description=text(entry, "Description"),
            )


def quintuple_rules(entries: list[Fields]) -> Iterator[NetworkRule]:
    """The entries of an access list of five parts, which say both ends; only the far one is kept here.

    One that lets in only what comes from some ports or goes to some addresses counts as letting in all of it. One that
    denies only that is no denial of the rest: whom it denies is then told as unresolved.
    """
    by_word = {"INGRESS": Direction.INGRESS, "EGRESS": Direction.EGRESS}
    found = [(by_word[named(entry, "NetworkAclDirection")], entry) for entry in entries]
    for wanted in by_word.values():
        for direction, entry in sorted(found, key=lambda each: _priority(each[1])):
            if direction is wanted:
                yield _quintuple(direction, entry)


def _bare(rule: NetworkRule) -> NetworkRule:
    return replace(rule, rule_id="", priority=0, description="", cannot_return="")


def _quintuple(direction: Direction, entry: Fields) -> NetworkRule:
    near, far = ("Destination", "Source") if direction is Direction.INGRESS else ("Source", "Destination")
    protocol, permission = named(entry, "Protocol").lower(), _permission(entry)
    entry_id = named(entry, "NetworkAclQuintupleEntryId")
    peer = network(text(entry, f"{far}Cidr") or named(entry, f"{far}IPv6Cidr"))
    at_home = text(entry, f"{near}Cidr") or text(entry, f"{near}IPv6Cidr")
    whole_home = not at_home or network(at_home) in _ANY
    every_source = ports_of(protocol, text(entry, "SourcePort")) in {(), EVERY_PORT}
    exact = permission is Permission.ALLOW or (whole_home and every_source)
    return NetworkRule(
        rule_id=entry_id,
        direction=direction,
        permission=permission,
        protocol=protocol,
        ports=ports_of(protocol, text(entry, "DestinationPort")),
        peers=(peer,) if exact else (),
        unresolved=() if exact else (f"{entry_id}: only from some ports or to some addresses",),
        priority=_priority(entry),
        description=text(entry, "Description"),
    )


def _policy_rules(direction: Direction, policy: Fields, templates: Templates) -> Iterator[NetworkRule]:
    place = whole(policy, "PolicyIndex")
    known = told(policy, *_PEERS, "Protocol", "Port", "ServiceTemplate", "PolicyDescription")
    addresses, services = template_ids(known)
    peers, groups, unresolved = _peers(known, addresses, templates)
    if services and services not in templates.services:
        kinds: tuple[tuple[str, Ports], ...] = ((_ALL, EVERY_PORT),)
        peers, unresolved = (), (*unresolved, services)
    elif services:
        kinds = templates.services[services]
    else:
        protocol = named(known, "Protocol").lower()
        kinds = ((protocol, ports_of(protocol, text(known, "Port"))),)
    for protocol, ports in kinds:
        yield NetworkRule(
            rule_id=str(place),
            direction=direction,
            permission=_permission(policy),
            protocol=protocol,
            ports=ports,
            peers=peers,
            peer_groups=groups,
            unresolved=unresolved,
            priority=place,
            description=text(known, "PolicyDescription"),
            cannot_return="template" if addresses or services else "",
        )


def _peers(
    policy: Fields, addresses: str, templates: Templates
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Networks, groups, and what could not be read; a rule has one of them, whatever its page shows in an example."""
    cidrs = [text(policy, key) for key in ("CidrBlock", "Ipv6CidrBlock")]
    peers = tuple(network(cidr) for cidr in cidrs if cidr)
    group = text(policy, "SecurityGroupId")
    if addresses:
        named_networks = templates.networks.get(addresses)
        if named_networks is None:
            return peers, (group,) if group else (), (addresses,)
        peers = (*peers, *named_networks)
    elif not peers and not group:
        return (), (), (UNTOLD_PEER,)
    return peers, (group,) if group else (), ()


def _permission(entry: Fields) -> Permission:
    return _ACTIONS[named(entry, "Action").lower()]


def _priority(entry: Fields) -> int:
    """From 0, as every position here; its page counts from 1, and an example from 0."""
    return max(whole(entry, "Priority") - 1, 0)


def _span(said: str) -> tuple[int, int]:
    first, dash, last = said.strip().partition("-")
    lowest = _port(first)
    highest = _port(last) if dash else lowest
    if lowest > highest:
        raise ValueError("ports from high to low")
    return lowest, highest


def _port(said: str) -> int:
    digits = said.strip()
    if not (digits.isascii() and digits.isdigit()) or int(digits) > _LAST_PORT:
        raise ValueError("no port")
    return int(digits)


def _written(span: tuple[int, int]) -> str:
    first, last = span
    return str(first) if first == last else f"{first}-{last}"
