"""VPC's lists of what is plugged into networks: interfaces, NAT gateways and peering connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudstand.tencent.core.asking import Answer, Asked, By
from cloudstand.tencent.core.times import local
from cloudstand.tencent.network.vpcs import COMMON, MADE_AT, described, inventory, native, tag_set
from cloudstand.world.network.parts import NatGateway, NetworkInterface, Peering

_CARDS: By = {
    **COMMON,
    "subnet-id": lambda entry: [entry["SubnetId"]],
    "network-interface-id": lambda entry: [entry["NetworkInterfaceId"]],
    "attachment.instance-id": lambda entry: [(entry["Attachment"] or {}).get("InstanceId", "")],
    "groups.security-group-id": lambda entry: entry["GroupSet"],
    "address-ip": lambda entry: [each["PrivateIpAddress"] for each in entry["PrivateIpAddressSet"]],
    "public-address-ip": lambda entry: [each["PublicIpAddress"] for each in entry["PrivateIpAddressSet"]],
    "is-primary": lambda entry: [str(entry["Primary"]).lower()],
}


def describe_network_interfaces(asked: Asked) -> Answer:
    """DescribeNetworkInterfaces."""
    kept = {address.ip: address.ref.native_id for address in inventory(asked).addresses}
    entries = (_interface(asked, each, kept) for each in inventory(asked).interfaces)
    return described(
        asked,
        "NetworkInterfaceSet",
        entries,
        ids="NetworkInterfaceIds",
        id_key="NetworkInterfaceId",
        by=_CARDS,
    )


def describe_nat_gateways(asked: Asked) -> Answer:
    """DescribeNatGateways, with forwards unless they are left out to be short."""
    compact = asked.memory.networks.compact
    entries = (_gateway(asked, each, compact=compact) for each in inventory(asked).nat_gateways)
    answer = described(asked, "NatGatewaySet", entries, ids="NatGatewayIds", id_key="NatGatewayId")
    return {**answer, "VerboseLevel": "COMPACT" if compact else "DETAIL"}


def describe_nat_gateway_forwards(asked: Asked) -> Answer:
    """DescribeNatGatewayDestinationIpPortTranslationNatRules: the forwards of all gateways in one list."""
    entries = [
        {**forward, "NatGatewayId": each.ref.native_id, "VpcId": each.vpc.native_id, "CreatedTime": MADE_AT}
        for each in inventory(asked).nat_gateways
        for forward in _forwards(each)
    ]
    key = "NatGatewayDestinationIpPortTranslationNatRuleSet"
    return described(asked, key, entries, ids="NatGatewayIds", id_key="NatGatewayId")


def describe_vpc_peering_connections(asked: Asked) -> Answer:
    """DescribeVpcPeeringConnections."""
    entries = (_peering(asked, each) for each in inventory(asked).peerings)
    return described(
        asked,
        "PeerConnectionSet",
        entries,
        ids="PeeringConnectionIds",
        id_key="PeeringConnectionId",
        by={"vpc-id": lambda entry: [entry["SourceVpcId"]], "state": lambda entry: [entry["State"]]},
    )


def _interface(asked: Asked, card: NetworkInterface, kept: Mapping[str, str]) -> dict[str, Any]:
    hidden = asked.memory.networks.hides_plain
    public = {private: ip for private, ip in card.public_ips if ip in kept or not hidden}
    attached = card.instance is not None
    entry: dict[str, Any] = {
        "NetworkInterfaceId": card.ref.native_id,
        "NetworkInterfaceName": "",
        "NetworkInterfaceDescription": "",
        "SubnetId": native(card.subnet),
        "VpcId": native(card.vpc),
        "GroupSet": list(card.groups),
        "MacAddress": "20:90:6F:00:00:01",
        "State": "AVAILABLE",
        "NetworkInterfaceState": "AVAILABLE" if card.unattached else "INUSE",
        "PrivateIpAddressSet": [
            {
                "PrivateIpAddress": ip,
                "Primary": place == 0,
                "PublicIpAddress": public.get(ip, ""),
                "AddressId": kept.get(public.get(ip, ""), ""),
                "Description": "",
                "IsWanIpBlocked": False,
                "State": "AVAILABLE",
                "QosLevel": "DEFAULT",
            }
            for place, ip in enumerate(card.private_ips)
        ],
        "Attachment": {
            "InstanceId": native(card.instance),
            "DeviceIndex": 0 if card.primary else 1,
            "InstanceAccountId": asked.account,
            "AttachTime": MADE_AT,
        }
        if attached
        else None,
        "Zone": f"{asked.region}-3",
        "CreatedTime": MADE_AT,
        "Ipv6AddressSet": [_ipv6(ip) for ip in card.ipv6_public],
        "TagSet": tag_set(card.tags),
        "EniType": 1 if card.primary else 0,
        "Business": "cvm",
        "CdcId": "",
        "AttachType": 0,
    }
    return entry if card.primary is None else {**entry, "Primary": card.primary}


def _ipv6(ip: str) -> dict[str, Any]:
    return {
        "Address": ip,
        "Primary": True,
        "AddressId": "",
        "Description": "",
        "IsWanIpBlocked": False,
        "State": "AVAILABLE",
        "PublicIpAddress": "",
        "AddressType": "GUA",
    }


def _gateway(asked: Asked, gateway: NatGateway, *, compact: bool) -> dict[str, Any]:
    kept = {address.ip: address.ref.native_id for address in inventory(asked).addresses}
    return {
        "NatGatewayId": gateway.ref.native_id,
        "NatGatewayName": gateway.name,
        "CreatedTime": MADE_AT if gateway.created_at is None else local(gateway.created_at),
        "State": "AVAILABLE",
        "InternetMaxBandwidthOut": 100,
        "MaxConcurrentConnection": 1_000_000,
        "PublicIpAddressSet": [
            {"AddressId": kept.get(ip, ""), "PublicIpAddress": ip, "IsBlocked": False, "BlockType": "NORMAL"}
            for ip in gateway.public_ips
        ],
        "NetworkState": "AVAILABLE",
        "DestinationIpPortTranslationNatRuleSet": [] if compact else _forwards(gateway),
        "VpcId": gateway.vpc.native_id,
        "Zone": f"{asked.region}-3",
        "DirectConnectGatewayIds": [],
        "SubnetId": "",
        "TagSet": tag_set(gateway.tags),
        "SecurityGroupSet": [],
        "SourceIpTranslationNatRuleSet": [],
        "IsExclusive": False,
        "RestrictState": "NORMAL",
        "NatProductVersion": 1,
        "DeletionProtectionEnabled": False,
    }


def _forwards(gateway: NatGateway) -> list[dict[str, Any]]:
    return [
        {
            "IpProtocol": forward.protocol.upper(),
            "PublicIpAddress": forward.public_ip,
            "PublicPort": public,
            "PrivateIpAddress": forward.private_ip,
            "PrivatePort": private,
            "Description": "",
        }
        for forward in gateway.forwards
        for (public, _), (private, _) in zip(forward.public_ports, forward.private_ports, strict=True)
    ]


def _peering(asked: Asked, peering: Peering) -> dict[str, Any]:
    short = asked.memory.networks.short_regions
    return {
        "SourceVpcId": peering.vpc.native_id,
        "PeerVpcId": peering.other_vpc,
        "PeeringConnectionId": peering.ref.native_id,
        "PeeringConnectionName": "",
        "State": "ACTIVE" if peering.active else "PENDING",
        "IsNgw": True,
        "Bandwidth": 0,
        "SourceRegion": short.get(asked.region, asked.region),
        "DestinationRegion": short.get(peering.other_region, peering.other_region),
        "CreateTime": MADE_AT,
        "AppId": 1_250_000_000,
        "PeerAppId": 1_250_000_001,
        "ChargeType": "POSTPAID_BY_DAY_MAX",
        "SourceUin": int(asked.account),
        "DestinationUin": int(peering.other_account),
        "TagSet": tag_set(peering.tags),
        "QosLevel": "AU",
        "Type": "VPC_PEER",
        "DestinationVpcId": peering.other_vpc,
    }
