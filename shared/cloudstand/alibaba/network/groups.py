"""Security groups: listed without their rules, and each with them; the lists that rules name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudstand.alibaba.core.errors import NOT_FOUND, ApiError
from cloudstand.alibaba.core.shapes import tags, wrapped
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.network.pages import by_token, id_of, networks_of
from cloudstand.world.cloud import World
from cloudstand.world.network.parts import EVERY_PORT, Direction, NetworkRule, Permission, SecurityGroup

_MADE, _RULE_MADE = "2025-01-15T08:00Z", "2025-01-15T08:00:00Z"
_WITH_PORTS = ("tcp", "udp")


def describe_security_groups(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribeSecurityGroups, by token; how many rules there are, and not which."""
    ids, asked = call.asked.ids("SecurityGroupIds"), call.asked
    chosen = [
        group
        for group in networks_of(call, world).groups
        if (ids is None or group.ref.native_id in ids)
        and asked.text("SecurityGroupId") in ("", group.ref.native_id)
        and asked.text("VpcId") in ("", id_of(group.vpc))
    ]
    page, token = by_token(call, chosen, most=100, usual=10)
    told = [_group(call, group) for group in page]
    return {
        "SecurityGroups": wrapped("SecurityGroup", told),
        "NextToken": token,
        "PageNumber": 1,
        "PageSize": 0,
        "TotalCount": 0,
        "RegionId": call.region,
    }


def _group(call: ApiCall, group: SecurityGroup) -> dict[str, Any]:
    return {
        "SecurityGroupId": group.ref.native_id,
        "SecurityGroupName": group.name,
        "SecurityGroupType": "enterprise" if group.ref.native_id in call.site.networks.advanced else "normal",
        "Description": "System created security group." if group.is_default else "",
        "VpcId": id_of(group.vpc),
        "RuleCount": len(group.rules),
        "GroupToGroupRuleCount": sum(bool(rule.peer_groups) for rule in group.rules),
        "ServiceManaged": group.is_service_managed,
        "CreationTime": _MADE,
        "ResourceGroupId": "",
        "EcsCount": 0,
        "AvailableInstanceAmount": 0,
        **tags(group.tags, group.ref.native_id),
    }


def describe_security_group_attribute(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribeSecurityGroupAttribute, of one group, its rules by token.

    Raises:
        ApiError: there is none of this id.
    """
    group = group_named(call, world)
    direction = call.asked.text("Direction", "all")
    rules = [rule for rule in group.rules if direction in ("all", "", rule.direction.value)]
    page, token = by_token(call, rules, most=1000, usual=500, least=10)
    return {
        "SecurityGroupId": group.ref.native_id,
        "SecurityGroupName": group.name,
        "Description": "",
        "RegionId": call.region,
        "VpcId": id_of(group.vpc),
        "InnerAccessPolicy": "Accept" if group.peers_may_talk else "Drop",
        "Permissions": wrapped("Permission", [_permission(rule) for rule in page]),
        "NextToken": token,
    }


def describe_security_group_references(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribeSecurityGroupReferences: which groups name these; those that nobody names are left out."""
    found = networks_of(call, world)
    told = []
    for native_id in call.asked.many("SecurityGroupId"):
        names = {name for group in found.groups if group.ref.native_id == native_id for name in group.referenced_by}
        for group in found.groups:
            if any(native_id in rule.peer_groups for rule in group.rules):
                names.add(group.ref.native_id)
        by = [{"AliUid": call.account, "SecurityGroupId": name} for name in sorted(names)]
        if by:
            told.append(
                {"SecurityGroupId": native_id, "ReferencingSecurityGroups": wrapped("ReferencingSecurityGroup", by)}
            )
    return {"SecurityGroupReferences": wrapped("SecurityGroupReference", told)}


def describe_prefix_list_attributes(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribePrefixListAttributes: the networks of a list that a rule with several networks stands for.

    Raises:
        ApiError: there is none of this id.
    """
    native_id = call.asked.text("PrefixListId")
    lists = {_prefix_list(rule): rule.peers for rule in _rules(call, world) if len(rule.peers) > 1}
    networks = {**lists, **call.site.networks.prefix_lists}.get(native_id)
    if networks is None:
        raise ApiError("InvalidPrefixListId.NotFound", "The specified prefix list was not found.", NOT_FOUND)
    return {
        "PrefixListId": native_id,
        "PrefixListName": "",
        "Description": "",
        "AddressFamily": "IPv6" if ":" in networks[0] else "IPv4",
        "MaxEntries": 20,
        "CreationTime": _RULE_MADE,
        "Entries": wrapped("Entry", [{"Cidr": network, "Description": ""} for network in networks]),
    }


def describe_port_range_list_entries(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribePortRangeListEntries, likewise; wrapped once only.

    Raises:
        ApiError: there is none of this id.
    """
    native_id = call.asked.text("PortRangeListId")
    lists = {_port_list(rule): rule.ports for rule in _rules(call, world) if len(rule.ports) > 1}
    ranges = {name: [f"{first}/{last}" for first, last in ports] for name, ports in lists.items()}
    listed = {**ranges, **call.site.networks.port_lists}.get(native_id)
    if listed is None:
        raise ApiError("InvalidPortRangeListId.NotFound", "The specified port range list was not found.", NOT_FOUND)
    return {"Entries": [{"PortRange": each, "Description": ""} for each in listed]}


def group_named(call: ApiCall, world: World) -> SecurityGroup:
    """The group of this region whose id is asked for.

    Raises:
        ApiError: there is none.
    """
    native_id = call.asked.text("SecurityGroupId")
    for group in networks_of(call, world).groups:
        if group.ref.native_id == native_id:
            return group
    raise ApiError("InvalidSecurityGroupId.NotFound", "The specified SecurityGroupId does not exist.", NOT_FOUND)


def _rules(call: ApiCall, world: World) -> list[NetworkRule]:
    return [rule for group in networks_of(call, world).groups for rule in group.rules]


def _permission(rule: NetworkRule) -> dict[str, Any]:
    """One rule, field by field; protocol and policy in the vendor's varying case."""
    side, other = ("Source", "Dest") if rule.direction is Direction.INGRESS else ("Dest", "Source")
    told = {
        "SecurityGroupRuleId": rule.rule_id,
        "Direction": rule.direction.value,
        "Policy": "Accept" if rule.permission is Permission.ALLOW else "Drop",
        "IpProtocol": "ICMPv6" if rule.protocol == "icmpv6" else rule.protocol.upper(),
        "Priority": str(rule.priority),
        "NicType": "intranet",
        "PortRange": _port_range(rule),
        "PortRangeListId": _port_list(rule) if len(rule.ports) > 1 else "",
        "PortRangeListName": "",
        "SourcePortRange": "",
        "Description": rule.description,
        "CreateTime": _RULE_MADE,
    }
    for each in (side, other):
        told |= {f"{each}CidrIp": "", f"Ipv6{each}CidrIp": "", f"{each}GroupId": "", f"{each}GroupName": ""}
        told |= {f"{each}GroupOwnerAccount": "", f"{each}PrefixListId": "", f"{each}PrefixListName": ""}
    if rule.unresolved:
        told[f"{side}PrefixListId"] = rule.unresolved[0]
    elif len(rule.peers) > 1:
        told[f"{side}PrefixListId"] = _prefix_list(rule)
    elif rule.peers:
        told[f"Ipv6{side}CidrIp" if ":" in rule.peers[0] else f"{side}CidrIp"] = rule.peers[0]
    else:
        told[f"{side}GroupId"] = rule.peer_groups[0]
    return told


def _port_range(rule: NetworkRule) -> str:
    if rule.protocol not in _WITH_PORTS:
        return "-1/-1"
    if rule.ports == EVERY_PORT:
        return "1/65535"
    if len(rule.ports) > 1:
        return ""
    first, last = rule.ports[0]
    return f"{first}/{last}"


def _prefix_list(rule: NetworkRule) -> str:
    return f"pl-{rule.rule_id[4:]}"


def _port_list(rule: NetworkRule) -> str:
    return f"prl-{rule.rule_id[4:]}"
