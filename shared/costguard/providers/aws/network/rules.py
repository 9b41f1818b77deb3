"""From AWS's rules of security groups and entries of access lists to neutral rules: no request is made.

A field that is not of its documented type raises as `kit/core/fields.py` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from costguard.domain.network import EVERY_PORT, Direction, NetworkRule, Permission
from costguard.providers.kit.core.fields import Fields, flag, named, part, parts, text, whole
from costguard.providers.kit.network.reading import network

PrefixLists = Mapping[str, "tuple[str, ...] | None"]
"""The networks of each managed prefix list by its id; None where they could not be read."""

NO_NUMBER = -1
_LAST_ENTRY = 32767  # from here on AWS's own, which deny the rest of IPv4 and (32768) IPv6; nobody can remove them
_LAST_PORT = 65535
_PORTED = frozenset({"tcp", "udp", "all"})
_PROTOCOLS = {"-1": "all", "1": "icmp", "6": "tcp", "17": "udp", "58": "icmpv6"}


def group_rule(said: Fields, lists: PrefixLists) -> NetworkRule:
    """One element of DescribeSecurityGroupRules.

    Types and codes of ICMP are not kept: such a rule counts as every kind of it.
    """
    rule = _rule(
        named(said, "SecurityGroupRuleId"),
        Direction.EGRESS if _told(said, "IsEgress") else Direction.INGRESS,
        said,
        lists,
        cidr=text(said, "CidrIpv4") or text(said, "CidrIpv6"),
        group=text(part(said, "ReferencedGroupInfo"), "GroupId"),
        prefix_list=text(said, "PrefixListId"),
        description=text(said, "Description"),
    )
    return replace(rule, cannot_return=_lost_by_an_image(said))


def permission_rules(group: Fields, lists: PrefixLists) -> Iterator[NetworkRule]:
    """The rules that DescribeSecurityGroups tells of, which have no ids there: they are numbered."""
    number = 0
    for direction, key in ((Direction.INGRESS, "IpPermissions"), (Direction.EGRESS, "IpPermissionsEgress")):
        for permission in parts(group, key):
            for peer in _peers(permission):
                number += 1
                rule = _rule(
                    str(number),
                    direction,
                    permission,
                    lists,
                    cidr=text(peer, "CidrIp") or text(peer, "CidrIpv6"),
                    group=text(peer, "GroupId"),
                    prefix_list=text(peer, "PrefixListId"),
                    description=text(peer, "Description"),
                )
                yield replace(rule, cannot_return="no_id")


def rules_told(group: Fields) -> int:
    """How many rules DescribeSecurityGroups tells of."""
    return sum(
        1 for key in ("IpPermissions", "IpPermissionsEgress") for each in parts(group, key) for _ in _peers(each)
    )


def lists_named(group: Fields) -> Iterator[str]:
    """The ids of the prefix lists in the rules that DescribeSecurityGroups tells of."""
    for key in ("IpPermissions", "IpPermissionsEgress"):
        for permission in parts(group, key):
            yield from (named(each, "PrefixListId") for each in parts(permission, "PrefixListIds"))


def entry_rules(access_list: Fields) -> Iterator[NetworkRule]:
    """The entries of one access list, without the last, which are nobody's: what no entry matches is denied."""
    for entry in parts(access_list, "Entries"):
        number = whole(entry, "RuleNumber")
        if number >= _LAST_ENTRY:
            continue
        protocol = _protocol(entry, "Protocol")
        ports = part(entry, "PortRange")
        yield NetworkRule(
            rule_id=str(number),
            direction=Direction.EGRESS if _told(entry, "Egress") else Direction.INGRESS,
            permission=Permission(named(entry, "RuleAction")),
            protocol=protocol,
            ports=_ports(protocol, ports, "From", "To"),
            peers=(network(text(entry, "CidrBlock") or named(entry, "Ipv6CidrBlock")),),
            priority=number,
        )


def port(fields: Fields, key: str) -> int:
    """A port, or -1 for every one and where there is none.

    Raises:
        ValueError: it is neither.
    """
    found = fields.get(key, NO_NUMBER)
    if isinstance(found, bool) or not isinstance(found, int) or not NO_NUMBER <= found <= _LAST_PORT:
        message = f"{key} is no port"
        raise ValueError(message)
    return found


def _rule(
    rule_id: str,
    direction: Direction,
    said: Fields,
    lists: PrefixLists,
    *,
    cidr: str,
    group: str,
    prefix_list: str,
    description: str,
) -> NetworkRule:
    protocol = _protocol(said, "IpProtocol")
    networks = lists.get(prefix_list) if prefix_list else None
    if not (cidr or group or prefix_list):
        raise ValueError("a rule for nobody")
    return NetworkRule(
        rule_id=rule_id,
        direction=direction,
        permission=Permission.ALLOW,
        protocol=protocol,
        ports=_ports(protocol, said, "FromPort", "ToPort"),
        peers=(network(cidr),) if cidr else networks or (),
        peer_groups=(group,) if group else (),
        unresolved=(prefix_list,) if prefix_list and networks is None else (),
        description=description,
        peer_list=prefix_list,
    )


def _lost_by_an_image(said: Fields) -> str:
    """What of a rule no image keeps; empty for nothing. Its tags and id are lost too, and mean nothing to AWS."""
    group = part(said, "ReferencedGroupInfo")
    if text(group, "VpcPeeringConnectionId") or text(group, "UserId") not in ("", text(said, "GroupOwnerId")):
        return "group_elsewhere"
    if text(said, "IpProtocol") in ("icmp", "icmpv6") and port(said, "FromPort") != NO_NUMBER:
        return "icmp_kind"
    return ""


def _peers(permission: Fields) -> Iterator[Fields]:
    for key in ("IpRanges", "Ipv6Ranges", "UserIdGroupPairs", "PrefixListIds"):
        yield from parts(permission, key)


def _protocol(fields: Fields, key: str) -> str:
    said = named(fields, key)
    return _PROTOCOLS.get(said, said)


def _ports(protocol: str, fields: Fields, first: str, last: str) -> tuple[tuple[int, int], ...]:
    if protocol not in _PORTED:
        return ()
    lowest, highest = port(fields, first), port(fields, last)
    if protocol == "all" or NO_NUMBER in (lowest, highest):
        return EVERY_PORT
    if lowest > highest:
        message = f"{first} is above {last}"
        raise ValueError(message)
    return ((lowest, highest),)


def _told(fields: Fields, key: str) -> bool:
    """A truth value that must be there: without it a rule would open the wrong way."""
    if key not in fields:
        message = f"{key} is missing"
        raise ValueError(message)
    return flag(fields, key)
