"""NAT gateways with their DNAT entries, and IPv6 addresses that were opened to the internet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudstand.alibaba.core.errors import ApiError
from cloudstand.alibaba.core.shapes import some, tags, wrapped
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.core.times import second
from cloudstand.alibaba.network.pages import id_of, networks_of, numbered
from cloudstand.world.cloud import World
from cloudstand.world.network.parts import Forward, NatGateway, PublicAddress

_MADE = "2025-01-15T08:00:00Z"


def describe_nat_gateways(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribeNatGateways, in numbered pages; tags are `TagKey` and `TagValue` here."""
    found = networks_of(call, world)
    addresses = {address.ip: address for address in found.addresses}
    chosen = [one for one in found.nat_gateways if call.asked.text("VpcId") in ("", one.vpc.native_id)]
    told = [_gateway(call, one, addresses) for one in chosen]
    return numbered(call, "NatGateways", "NatGateway", told)


def _gateway(call: ApiCall, one: NatGateway, addresses: Mapping[str, PublicAddress]) -> dict[str, Any]:
    native_id = one.ref.native_id
    forwarded = {forward.public_ip for forward in one.forwards}
    ips = [
        {
            "IpAddress": ip,
            "AllocationId": addresses[ip].ref.native_id if ip in addresses else "",
            "PrivateIpAddress": "",
            "SnatEntryEnabled": False,
            "UsingStatus": "UsedByForwardTable" if ip in forwarded else "Idle",
        }
        for ip in one.public_ips
    ]
    return {
        "NatGatewayId": native_id,
        "Name": one.name,
        "Description": "",
        "RegionId": call.region,
        "VpcId": one.vpc.native_id,
        "Status": "Available",
        "BusinessStatus": "Normal",
        "NetworkType": "intranet" if one.is_private else "internet",
        "NatType": "Enhanced",
        "Spec": "",
        "InstanceChargeType": "PostPaid",
        "InternetChargeType": "PayByLcu",
        "AutoPay": False,
        "DeletionProtection": False,
        "CreationTime": second(one.created_at) if one.created_at else _MADE,
        "ExpiredTime": "",
        "ResourceGroupId": "",
        **some("IpLists", "IpList", ips, native_id),
        "ForwardTableIds": wrapped("ForwardTableId", [f"ftb-{native_id[4:]}"]),
        "SnatTableIds": wrapped("SnatTableId", [f"stb-{native_id[4:]}"]),
        "FullNatTableIds": wrapped("FullNatTableId", []),
        **tags(one.tags, native_id),
    }


def describe_forward_table_entries(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribeForwardTableEntries, of one gateway, by it or by its table; in numbered pages.

    Raises:
        ApiError: neither is named.
    """
    gateway, table = call.asked.text("NatGatewayId"), call.asked.text("ForwardTableId")
    if not gateway and not table:
        message = "You must specify ForwardTableId or NatGatewayId."
        raise ApiError("MissingParameter", message)
    told = [
        _forward(one, forward)
        for one in networks_of(call, world).nat_gateways
        if gateway in ("", one.ref.native_id) and table in ("", f"ftb-{one.ref.native_id[4:]}")
        for forward in one.forwards
    ]
    return numbered(call, "ForwardTableEntries", "ForwardTableEntry", told)


def _forward(one: NatGateway, forward: Forward) -> dict[str, Any]:
    return {
        "ForwardEntryId": forward.rule_id,
        "ForwardEntryName": "",
        "ForwardTableId": f"ftb-{one.ref.native_id[4:]}",
        "NatGatewayId": one.ref.native_id,
        "ExternalIp": forward.public_ip,
        "ExternalPort": _ports(forward.public_ports),
        "InternalIp": forward.private_ip,
        "InternalPort": _ports(forward.private_ports),
        "IpProtocol": "Any" if forward.protocol == "all" else forward.protocol.upper(),
        "Status": "Available",
    }


def _ports(ports: tuple[tuple[int, int], ...]) -> str:
    if not ports:
        return "Any"
    first, last = ports[0]
    return str(first) if first == last else f"{first}/{last}"


def describe_ipv6_addresses(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribeIpv6Addresses, in numbered pages: those with bandwidth to the internet, which is all the world knows."""
    told = [
        {
            "Ipv6AddressId": f"ipv6-{card.ref.native_id[4:]}{number}",
            "Ipv6Address": address,
            "Ipv6AddressName": "",
            "AddressType": "IPv6Address",
            "AssociatedInstanceId": id_of(card.instance or card.ref),
            "AssociatedInstanceType": "EcsInstance" if card.instance else "NetworkInterface",
            "NetworkType": "Public",
            "Status": "Available",
            "VpcId": id_of(card.vpc),
            "VSwitchId": id_of(card.subnet),
            "Ipv6InternetBandwidth": {"Bandwidth": 5, "InternetChargeType": "PayByTraffic", "BusinessStatus": "Normal"},
            "RealBandwidth": 5,
            "ServiceManaged": 0,
            "AllocationTime": _MADE,
        }
        for card in networks_of(call, world).interfaces
        for number, address in enumerate(card.ipv6_public)
        if call.asked.text("NetworkType") in ("", "Public")
    ]
    return numbered(call, "Ipv6Addresses", "Ipv6Address", told)
