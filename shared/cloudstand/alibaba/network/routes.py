"""Route tables and their entries; network ACLs, which are listed with theirs."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

from cloudstand.alibaba.core.errors import NOT_FOUND, ApiError, not_modelled
from cloudstand.alibaba.core.shapes import some, tags, wrapped
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.network.pages import by_token, networks_of, numbered
from cloudstand.world.cloud import World
from cloudstand.world.network.parts import AccessList, Direction, Hop, NetworkInventory, NetworkRule, Permission, Route

_MADE = "2025-01-15T08:00:00Z"
_TYPES = {Hop.LOCAL: "local", Hop.NAT: "NatGateway", Hop.PEERING: "VpcPeer", Hop.VPN: "Attachment"}


def describe_route_table_list(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribeRouteTableList, in numbered pages; without entries. Border routers there are none."""
    found = networks_of(call, world)
    shown = found.route_tables if call.asked.text("RouterType", "VRouter") == "VRouter" else ()
    tables = [
        {
            "RouteTableId": table.ref.native_id,
            "RouteTableName": "",
            "RouteTableType": "System" if table.is_main else "Custom",
            "RouterId": f"vrt-{table.vpc.native_id[4:]}",
            "RouterType": "VRouter",
            "VpcId": table.vpc.native_id,
            "Status": "Available",
            "AssociateType": "VSwitch",
            "RoutePropagationEnable": True,
            "VSwitchIds": wrapped(
                "VSwitchId", [each.ref.native_id for each in found.subnets if each.route_table == table.ref]
            ),
            **some("GatewayIds", "GatewayIds", [], table.ref.native_id),
            "OwnerId": int(call.account),
            "Description": "",
            "CreationTime": _MADE,
            "ResourceGroupId": "",
            **tags({}, table.ref.native_id, "Key", "Value"),
        }
        for table in shown
        if call.asked.text("VpcId") in ("", table.vpc.native_id)
        and call.asked.text("RouteTableId") in ("", table.ref.native_id)
    ]
    return numbered(call, "RouterTableList", "RouterTableListType", tables)


def describe_route_entry_list(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribeRouteEntryList, of one table, by token.

    Raises:
        ApiError: no such table.
    """
    wanted = call.asked.text("RouteTableId")
    for table in networks_of(call, world).route_tables:
        if table.ref.native_id == wanted:
            entries = [_entry(wanted, number, route) for number, route in enumerate(table.routes)]
            page, token = by_token(call, entries, most=100, usual=10, named="MaxResult")
            return {"RouteEntrys": wrapped("RouteEntry", page), "NextToken": token, "TotalCount": len(entries)}
    raise ApiError("InvalidRouteTableId.NotFound", "Specified route table does not exist.", NOT_FOUND)


def _entry(table: str, number: int, route: Route) -> dict[str, Any]:
    local = route.hop is Hop.LOCAL
    return {
        "RouteEntryId": f"rte-{table[4:]}{number:04}",
        "RouteEntryName": "",
        "RouteTableId": table,
        "DestinationCidrBlock": route.destination,
        "IpVersion": f"ipv{ip_network(route.destination).version}",
        "Type": "System" if local else "Custom",
        "Origin": "SystemCreate" if local else "CustomCreate",
        "Status": "Available" if route.active else "Pending",
        "ServiceType": "",
        "Description": "",
        "GmtModified": _MADE,
        "NextHops": wrapped("NextHop", [{"NextHopType": _hop_type(route), "NextHopId": route.target, "Weight": 0}]),
    }


def _hop_type(route: Route) -> str:
    if route.hop is Hop.INTERNET:
        return "IPv6Gateway" if ip_network(route.destination).version == 6 else "Ipv4Gateway"  # noqa: PLR2004
    if route.hop is Hop.INSTANCE:
        return "NetworkInterface" if route.target.startswith("eni-") else "Instance"
    if route.hop not in _TYPES:
        raise not_modelled("a route that is", route.hop.value)
    return _TYPES[route.hop]


def describe_network_acls(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribeNetworkAcls, in numbered pages, whose counts are texts."""
    found = networks_of(call, world)
    hidden = call.site.networks.tells_no_entries
    told = []
    for one in found.access_lists:
        if call.asked.text("VpcId") in ("", one.vpc.native_id):
            entries = {} if one.ref.native_id in hidden else _entries(one)
            told.append({**_acl(call, found, one), **entries})
    return numbered(call, "NetworkAcls", "NetworkAcl", told, in_words=True)


def describe_network_acl_attributes(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribeNetworkAclAttributes, of one.

    Raises:
        ApiError: there is none of this id.
    """
    found = networks_of(call, world)
    for one in found.access_lists:
        if one.ref.native_id == call.asked.text("NetworkAclId"):
            return {"NetworkAclAttribute": {**_acl(call, found, one), **_entries(one)}}
    raise ApiError("InvalidNetworkAcl.NotFound", "The specified network ACL does not exist.", NOT_FOUND)


def _acl(call: ApiCall, found: NetworkInventory, one: AccessList) -> dict[str, Any]:
    around = [each.ref.native_id for each in found.subnets if each.access_list == one.ref]
    resources = [{"ResourceId": each, "ResourceType": "VSwitch", "Status": "BINDED"} for each in around]
    return {
        "NetworkAclId": one.ref.native_id,
        "NetworkAclName": "",
        "Description": "",
        "VpcId": one.vpc.native_id,
        "RegionId": call.region,
        "Status": "Available",
        "OwnerId": int(call.account),
        "CreationTime": _MADE,
        **some("Resources", "Resource", resources, one.ref.native_id),
        **tags(one.tags, one.ref.native_id, "Key", "Value"),
    }


def _entries(one: AccessList) -> dict[str, Any]:
    into = [rule for rule in one.rules if rule.direction is Direction.INGRESS]
    out = [rule for rule in one.rules if rule.direction is Direction.EGRESS]
    return {
        **some("IngressAclEntries", "IngressAclEntry", [_rule(rule, "SourceCidrIp") for rule in into], "in"),
        **some("EgressAclEntries", "EgressAclEntry", [_rule(rule, "DestinationCidrIp") for rule in out], "out"),
    }


def _rule(rule: NetworkRule, peer: str) -> dict[str, Any]:
    first, last = rule.ports[0] if rule.ports and rule.protocol in ("tcp", "udp") else (-1, -1)
    return {
        "NetworkAclEntryId": rule.rule_id,
        "NetworkAclEntryName": "",
        "Description": rule.description,
        "EntryType": "custom",
        "IpVersion": f"IPV{ip_network(rule.peers[0]).version}",
        "Policy": "accept" if rule.permission is Permission.ALLOW else "drop",
        "Protocol": rule.protocol,
        "Port": f"{first or 1}/{last}",
        peer: rule.peers[0],
    }
