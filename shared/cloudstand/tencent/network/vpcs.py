"""VPC's lists of networks, routes and access lists: what the world says, in the vendor's shapes. Times are UTC+8."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from typing import Any

from cloudstand.tencent.core.asking import Answer, Asked, By, either, filtered, page
from cloudstand.tencent.core.errors import ApiError
from cloudstand.world.network.parts import (
    EVERY_PORT,
    AccessList,
    Direction,
    Hop,
    NetworkInventory,
    NetworkRule,
    Permission,
    Route,
    RouteTable,
    Subnet,
    Vpc,
)
from cloudstand.world.places import Ref

MADE_AT = "2025-01-06 10:00:00"
"""When everything was made whose age no world knows."""

_GATEWAYS = {
    Hop.INTERNET: "EIP",
    Hop.NAT: "NAT",
    Hop.PEERING: "PEERCONNECTION",
    Hop.INSTANCE: "NORMAL_CVM",
    Hop.VPN: "VPN",
    Hop.EGRESS_ONLY: "VPN",
}
COMMON: By = {
    "tag-key": lambda entry: [tag["Key"] for tag in entry["TagSet"]],
    "tag:": lambda entry: [f"{tag['Key']}={tag['Value']}" for tag in entry["TagSet"]],
    "vpc-id": lambda entry: [entry["VpcId"]],
}


def inventory(asked: Asked) -> NetworkInventory:
    """The networks of the region of the account that is asked about."""
    return asked.world.networks.of(asked.shard)


def described(
    asked: Asked, key: str, entries: Iterable[dict[str, Any]], *, ids: str, id_key: str, by: By = COMMON
) -> Answer:
    """A page of what ids or filters choose; ids that nobody knows are no error."""
    either(asked, ids, "InvalidParameter.Coexist")
    wanted = asked.get(ids)
    chosen = [entry for entry in entries if not wanted or entry[id_key] in set(wanted)]
    own: By = {**by, id_key: lambda entry: [entry[id_key]]}
    found = filtered(asked.get("Filters", ()), chosen, own, code="InvalidParameter.FilterInvalidKey")
    return {"TotalCount": len(found), key: list(page(asked, found))}


def describe_vpcs(asked: Asked) -> Answer:
    """DescribeVpcs."""
    entries = map(_vpc, inventory(asked).vpcs)
    return described(asked, "VpcSet", entries, ids="VpcIds", id_key="VpcId")


def describe_subnets(asked: Asked) -> Answer:
    """DescribeSubnets."""
    entries = (_subnet(each, asked.region) for each in inventory(asked).subnets)
    return described(asked, "SubnetSet", entries, ids="SubnetIds", id_key="SubnetId")


def describe_route_tables(asked: Asked) -> Answer:
    """DescribeRouteTables: the ways within the VPC are there without being listed."""
    entries = (_route_table(asked, each) for each in inventory(asked).route_tables)
    return described(asked, "RouteTableSet", entries, ids="RouteTableIds", id_key="RouteTableId")


def describe_network_acls(asked: Asked) -> Answer:
    """DescribeNetworkAcls: the entries of a list of five parts are told elsewhere."""
    entries = (_access_list(asked, each) for each in inventory(asked).access_lists)
    return described(asked, "NetworkAclSet", entries, ids="NetworkAclIds", id_key="NetworkAclId")


def describe_network_acl_quintuple_entries(asked: Asked) -> Answer:
    """DescribeNetworkAclQuintupleEntries."""
    wanted = asked.parameters["NetworkAclId"]
    found = next((each for each in inventory(asked).access_lists if each.ref.native_id == wanted), None)
    if found is None:
        raise ApiError("ResourceNotFound", f"there is no network ACL {wanted}.", f"资源`{wanted}`不存在。")
    if wanted not in asked.memory.networks.quintuple:
        raise ApiError("UnsupportedOperation", f"{wanted} has entries of three parts.", "不支持该操作。")
    entries = [_quintuple(rule, asked.memory.networks.near.get(rule.rule_id, {})) for rule in found.rules]
    return {"TotalCount": len(entries), "NetworkAclQuintupleSet": list(page(asked, entries))}


def tag_set(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """TagSet."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def written_ports(rule: NetworkRule, every: str = "ALL") -> str:
    """The ports of a rule as answers have them; a protocol without any is told with all of them."""
    if not rule.ports or rule.ports == EVERY_PORT:
        return every
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in rule.ports)


def native(ref: Ref | None) -> str:
    """The vendor's id; empty where there is nothing."""
    return "" if ref is None else ref.native_id


def _four(cidrs: Iterable[str]) -> list[str]:
    return [cidr for cidr in cidrs if ip_network(cidr).version == 4]  # noqa: PLR2004 - IP's own number


def _six(cidrs: Iterable[str]) -> list[str]:
    return [cidr for cidr in cidrs if ip_network(cidr).version == 6]  # noqa: PLR2004


def _first(cidrs: list[str]) -> str:
    return cidrs[0] if cidrs else ""


def _vpc(vpc: Vpc) -> dict[str, Any]:
    four, six = _four(vpc.cidrs), _six(vpc.cidrs)
    native_id = vpc.ref.native_id
    return {
        "VpcName": vpc.name,
        "VpcId": native_id,
        "CidrBlock": _first(four),
        "IsDefault": vpc.is_default,
        "EnableMulticast": False,
        "CreatedTime": MADE_AT,
        "DnsServerSet": ["183.60.82.98", "183.60.83.19"],
        "DomainName": "",
        "DhcpOptionsId": "",
        "EnableDhcp": True,
        "Ipv6CidrBlock": _first(six),
        "TagSet": tag_set(vpc.tags),
        "AssistantCidrSet": [
            {"VpcId": native_id, "CidrBlock": cidr, "AssistantType": 0, "SubnetSet": []} for cidr in four[1:]
        ],
        "EnableRouteVpcPublish": False,
        "Ipv6CidrBlockSet": [{"IPv6CidrBlock": cidr, "ISPType": "BGP", "AddressType": "GUA"} for cidr in six],
    }


def _subnet(subnet: Subnet, region: str) -> dict[str, Any]:
    return {
        "VpcId": subnet.vpc.native_id,
        "SubnetId": subnet.ref.native_id,
        "SubnetName": subnet.name,
        "CidrBlock": _first(_four(subnet.cidrs)),
        "IsDefault": subnet.is_default,
        "EnableBroadcast": False,
        "Zone": f"{region}-3",
        "RouteTableId": native(subnet.route_table),
        "CreatedTime": MADE_AT,
        "AvailableIpAddressCount": 200,
        "Ipv6CidrBlock": _first(_six(subnet.cidrs)),
        "NetworkAclId": native(subnet.access_list),
        "IsRemoteVpcSnat": False,
        "TotalIpAddressCount": 253,
        "TagSet": tag_set(subnet.tags),
        "CdcId": "",
        "IsCdcSubnet": 0,
    }


def _route_table(asked: Asked, table: RouteTable) -> dict[str, Any]:
    native_id = table.ref.native_id
    listed = [(place, route) for place, route in enumerate(table.routes) if route.hop is not Hop.LOCAL]
    within = [route.destination for route in table.routes if route.hop is Hop.LOCAL]
    return {
        "VpcId": table.vpc.native_id,
        "RouteTableId": native_id,
        "RouteTableName": "",
        "AssociationSet": [
            {"SubnetId": subnet.ref.native_id, "RouteTableId": native_id}
            for subnet in inventory(asked).subnets
            if subnet.route_table == table.ref
        ],
        "RouteSet": [_route(native_id, place, route) for place, route in listed],
        "Main": table.is_main,
        "CreatedTime": MADE_AT,
        "TagSet": [],
        "LocalCidrForCcn": [{"Cidr": cidr, "PublishedToVbc": False} for cidr in _four(within)],
    }


def _route(table: str, place: int, route: Route) -> dict[str, Any]:
    six = ip_network(route.destination).version == 6  # noqa: PLR2004
    return {
        "RouteTableId": table,
        "RouteId": 0 if six else 10_000 + place,
        "RouteItemId": f"rti{'6' if six else ''}-{place:08d}",
        "DestinationCidrBlock": "" if six else route.destination,
        "DestinationIpv6CidrBlock": route.destination if six else "",
        "GatewayType": _GATEWAYS[route.hop],
        "GatewayId": "0" if route.hop is Hop.INTERNET else route.target,
        "RouteDescription": "",
        "CreatedTime": MADE_AT,
        "RouteType": "USER",
        "Enabled": route.active,
        "PublishedToVbc": False,
    }


def _access_list(asked: Asked, access_list: AccessList) -> dict[str, Any]:
    native_id = access_list.ref.native_id
    five = native_id in asked.memory.networks.quintuple
    return {
        "VpcId": access_list.vpc.native_id,
        "NetworkAclId": native_id,
        "NetworkAclName": "",
        "NetworkAclType": "QUINTUPLE" if five else "TRIPLE",
        "CreatedTime": MADE_AT,
        "SubnetSet": [
            _subnet(subnet, asked.region)
            for subnet in inventory(asked).subnets
            if subnet.access_list == access_list.ref
        ],
        "IngressEntries": [] if five else _entries(access_list, Direction.INGRESS),
        "EgressEntries": [] if five else _entries(access_list, Direction.EGRESS),
        "TagSet": tag_set(access_list.tags),
    }


def _entries(access_list: AccessList, direction: Direction) -> list[dict[str, Any]]:
    return [_entry(rule) for rule in access_list.rules if rule.direction is direction]


def _entry(rule: NetworkRule) -> dict[str, Any]:
    peer = rule.peers[0]
    six = ":" in peer
    return {
        "Protocol": rule.protocol,
        "Port": written_ports(rule, "all"),
        "Ipv6CidrBlock" if six else "CidrBlock": peer,
        "Action": "Accept" if rule.permission is Permission.ALLOW else "Drop",
        "Description": rule.description,
        "ModifyTime": "",
        "NetworkAclIpv6EntryId" if six else "NetworkAclIpv4EntryId": rule.rule_id,
        "Priority": rule.priority + 1,
    }


def _quintuple(rule: NetworkRule, near: Mapping[str, str]) -> dict[str, Any]:
    incoming = rule.direction is Direction.INGRESS
    far, home = ("Source", "Destination") if incoming else ("Destination", "Source")
    cidr = "IPv6Cidr" if ":" in rule.peers[0] else "Cidr"
    return {
        "Protocol": rule.protocol.upper(),
        "Description": rule.description,
        "SourcePort": "ALL",
        "DestinationPort": written_ports(rule),
        f"{far}{cidr}": rule.peers[0],
        f"{home}{cidr}": "::/0" if cidr == "IPv6Cidr" else "0.0.0.0/0",
        "Action": "ACCEPT" if rule.permission is Permission.ALLOW else "DROP",
        "NetworkAclQuintupleEntryId": rule.rule_id,
        "Priority": rule.priority + 1,
        "CreateTime": MADE_AT,
        "NetworkAclDirection": "INGRESS" if incoming else "EGRESS",
        **near,
    }
