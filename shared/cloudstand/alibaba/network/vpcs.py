"""VPCs, their vSwitches and gateways, and what joins them to others."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

from cloudstand.alibaba.core.shapes import some, tags, wrapped
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.network.pages import by_token, id_of, networks_of, numbered
from cloudstand.world.cloud import World
from cloudstand.world.network.parts import Peering, Subnet, Vpc

_MADE = "2025-01-15T08:00:00Z"


def describe_vpcs(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribeVpcs, in numbered pages."""
    found = networks_of(call, world)
    wanted = [each for each in call.asked.text("VpcId").split(",") if each]
    chosen = [vpc for vpc in found.vpcs if not wanted or vpc.ref.native_id in wanted]
    subnets = {vpc.ref: [each.ref.native_id for each in found.subnets if each.vpc == vpc.ref] for vpc in chosen}
    tables = {vpc.ref: [each.ref.native_id for each in found.route_tables if each.vpc == vpc.ref] for vpc in chosen}
    gateways = {vpc.ref: [each.ref.native_id for each in found.nat_gateways if each.vpc == vpc.ref] for vpc in chosen}
    told = [
        {
            **_vpc(call, vpc),
            "VSwitchIds": wrapped("VSwitchId", subnets[vpc.ref]),
            "RouterTableIds": wrapped("RouterTableIds", tables[vpc.ref]),
            "NatGatewayIds": wrapped("NatGatewayIds", gateways[vpc.ref]),
        }
        for vpc in chosen
    ]
    return numbered(call, "Vpcs", "Vpc", told)


def _vpc(call: ApiCall, vpc: Vpc) -> dict[str, Any]:
    four = [cidr for cidr in vpc.cidrs if ip_network(cidr).version == 4]  # noqa: PLR2004
    six = [cidr for cidr in vpc.cidrs if cidr not in four]
    native_id = vpc.ref.native_id
    return {
        "VpcId": native_id,
        "VpcName": vpc.name,
        "Description": "",
        "RegionId": call.region,
        "Status": "Available",
        "CidrBlock": four[0],
        **some("SecondaryCidrBlocks", "SecondaryCidrBlock", four[1:], native_id),
        "Ipv6CidrBlock": six[0] if six else "",
        **some(
            "Ipv6CidrBlocks",
            "Ipv6CidrBlock",
            [{"Ipv6CidrBlock": cidr, "Ipv6Isp": "BGP"} for cidr in six],
            native_id[::2],
        ),
        "EnabledIpv6": bool(six),
        **some("UserCidrs", "UserCidr", [], native_id),
        "IsDefault": vpc.is_default,
        "OwnerId": int(call.account),
        "VRouterId": f"vrt-{native_id[4:]}",
        "CenStatus": "",
        "CreationTime": _MADE,
        "ResourceGroupId": "",
        "DhcpOptionsSetId": "",
        "DhcpOptionsSetStatus": "",
        **tags(vpc.tags, native_id, "Key", "Value"),
    }


def describe_vswitches(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribeVSwitches, in numbered pages."""
    found = networks_of(call, world)
    main = {table.ref for table in found.route_tables if table.is_main}
    vpc, vswitch = call.asked.text("VpcId"), call.asked.text("VSwitchId")
    chosen = [each for each in found.subnets if vpc in ("", each.vpc.native_id) and vswitch in ("", each.ref.native_id)]
    told = [_vswitch(call, each, is_main=each.route_table in main) for each in chosen]
    return numbered(call, "VSwitches", "VSwitch", told)


def _vswitch(call: ApiCall, subnet: Subnet, *, is_main: bool) -> dict[str, Any]:
    four = [cidr for cidr in subnet.cidrs if ip_network(cidr).version == 4]  # noqa: PLR2004
    six = [cidr for cidr in subnet.cidrs if cidr not in four]
    native_id = subnet.ref.native_id
    return {
        "VSwitchId": native_id,
        "VpcId": subnet.vpc.native_id,
        "VSwitchName": subnet.name,
        "Description": "",
        "Status": "Available",
        "CidrBlock": four[0],
        "Ipv6CidrBlock": six[0] if six else "",
        "ZoneId": f"{call.region}-i",
        "AvailableIpAddressCount": 250,
        "IsDefault": subnet.is_default,
        "NetworkAclId": id_of(subnet.access_list),
        "RouteTable": {
            "RouteTableId": id_of(subnet.route_table),
            "RouteTableType": "System" if is_main else "Custom",
        },
        "OwnerId": int(call.account),
        "ShareType": "",
        "CreationTime": _MADE,
        "ResourceGroupId": "",
        **tags(subnet.tags, native_id, "Key", "Value"),
    }


def list_ipv4_gateways(call: ApiCall, world: World) -> Mapping[str, Any]:
    """ListIpv4Gateways, by token: one for each VPC that has one, activated."""
    gateways = [
        {
            "Ipv4GatewayId": f"ipv4gw-{vpc.ref.native_id[4:]}",
            "Ipv4GatewayName": "",
            "Ipv4GatewayDescription": "",
            "Ipv4GatewayRouteTableId": "",
            "VpcId": vpc.ref.native_id,
            "Status": "Created",
            "Enabled": True,
            "GmtCreate": _MADE,
            "ResourceGroupId": "",
        }
        for vpc in networks_of(call, world).vpcs
        if vpc.needs_gateway
    ]
    page, token = by_token(call, gateways, most=100, usual=10)
    return {"Ipv4GatewayModels": page, "NextToken": token, "TotalCount": str(len(gateways))}


def list_vpc_peer_connections(call: ApiCall, world: World) -> Mapping[str, Any]:
    """ListVpcPeerConnections, by token; lists are wrapped once only here."""
    found = networks_of(call, world)
    cidrs = {vpc.ref: vpc.cidrs for vpc in found.vpcs}
    told = [_peering(call, each, cidrs.get(each.vpc, ())) for each in found.peerings]
    page, token = by_token(call, told, most=100, usual=20)
    return {"VpcPeerConnects": page, "NextToken": token, "MaxResults": len(page), "TotalCount": len(told)}


def _peering(call: ApiCall, peering: Peering, cidrs: tuple[str, ...]) -> dict[str, Any]:
    return {
        "InstanceId": peering.ref.native_id,
        "Name": "",
        "Description": "",
        "Status": "Activated" if peering.active else "Expired",
        "BizStatus": "Normal",
        "OwnerId": int(call.account),
        "RegionId": call.region,
        "Vpc": _end(peering.vpc.native_id, cidrs),
        "AcceptingOwnerUid": int(peering.other_account),
        "AcceptingRegionId": peering.other_region,
        "AcceptingVpc": _end(peering.other_vpc, peering.other_cidrs),
        "Bandwidth": -1,
        "GmtCreate": _MADE,
        "GmtModified": _MADE,
        "ResourceGroupId": "",
        "Tags": [{"Key": key, "Value": value} for key, value in peering.tags.items()],
    }


def _end(vpc: str, cidrs: tuple[str, ...]) -> dict[str, Any]:
    four = [cidr for cidr in cidrs if ip_network(cidr).version == 4]  # noqa: PLR2004
    return {"VpcId": vpc, "Ipv4Cidrs": four, "Ipv6Cidrs": [cidr for cidr in cidrs if cidr not in four]}
