"""From what VPC answers to the parts of a `NetworkInventory`: pure, apart from any request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from costguard.domain.network import (
    AccessList,
    FlowLog,
    Forward,
    Hop,
    NatGateway,
    NetworkInterface,
    NetworkRule,
    Peering,
    Route,
    RouteTable,
    Subnet,
    Vpc,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.kit.core.fields import Fields, flag, named, part, parts, text, whole
from costguard.providers.tencent.core.fields import moment, tags_of, told
from costguard.providers.tencent.network.rules import network

QUINTUPLE = "QUINTUPLE"
"""NetworkAclType of a list whose entries say both ends, and are told by an operation of their own."""

_HOPS = {
    "EIP": Hop.INTERNET,  # through the machine's own public address
    "NAT": Hop.NAT,
    "PEERCONNECTION": Hop.PEERING,
    "CVM": Hop.INSTANCE,
    "NORMAL_CVM": Hop.INSTANCE,
    "HAVIP": Hop.INSTANCE,
    "VPN": Hop.VPN,
    "SSLVPN": Hop.VPN,
    "DIRECTCONNECT": Hop.VPN,
    "CCN": Hop.VPN,
    "LOCAL_GATEWAY": Hop.VPN,
}
"""GatewayType of Route, VPC API 2017-03-12, Data Types; any other is `OTHER`."""

_COVERED = {"VPC": "vpc", "SUBNET": "subnet", "NETWORKINTERFACE": "interface", "NAT": "nat_gateway"}
_TRAFFIC = {"ALL": "all", "ACCEPT": "accepted", "REJECT": "rejected"}
_REGIONS = {
    # peering is told in the short names of regions in its page's example
    "bj": "ap-beijing",
    "cd": "ap-chengdu",
    "cq": "ap-chongqing",
    "gz": "ap-guangzhou",
    "hk": "ap-hongkong",
    "jp": "ap-tokyo",
    "kr": "ap-seoul",
    "nj": "ap-nanjing",
    "sg": "ap-singapore",
    "sh": "ap-shanghai",
    "th": "ap-bangkok",
    "de": "eu-frankfurt",
    "use": "na-ashburn",
    "usw": "na-siliconvalley",
}


def ref_of(shard: Shard, kind: str, native_id: str) -> ResourceRef:
    """A resource of the shard."""
    return ResourceRef(shard.cloud, shard.account, shard.region, kind, native_id)


def to_vpc(shard: Shard, item: Fields) -> Vpc:
    """One element of VpcSet. A public address works by itself: there is no gateway that it needs.

    Raises:
        TypeError, ValueError: a field is not of its documented type: see `kit/core/fields.py`.
    """
    known = told(item, "AssistantCidrSet", "Ipv6CidrBlockSet", "CidrBlock", "Ipv6CidrBlock")
    cidrs = [
        text(known, "CidrBlock"),
        *(text(each, "CidrBlock") for each in parts(known, "AssistantCidrSet")),
        text(known, "Ipv6CidrBlock"),
        *(text(each, "IPv6CidrBlock") for each in parts(known, "Ipv6CidrBlockSet")),
    ]
    return Vpc(
        ref_of(shard, "vpc", named(known, "VpcId")),
        tuple(dict.fromkeys(network(cidr) for cidr in cidrs if cidr)),
        name=text(known, "VpcName"),
        is_default=flag(known, "IsDefault"),
        needs_gateway=False,
        tags=tags_of(known, "TagSet"),
    )


def to_subnet(shard: Shard, item: Fields) -> Subnet:
    """One element of SubnetSet; no subnet gives out public addresses by itself.

    Raises:
        TypeError, ValueError: a field is not of its documented type.
    """
    known = told(item, "CidrBlock", "Ipv6CidrBlock", "NetworkAclId", "RouteTableId")
    table, access_list = text(known, "RouteTableId"), text(known, "NetworkAclId")
    cidrs = (text(known, "CidrBlock"), text(known, "Ipv6CidrBlock"))
    return Subnet(
        ref_of(shard, "subnet", named(known, "SubnetId")),
        ref_of(shard, "vpc", named(known, "VpcId")),
        tuple(network(cidr) for cidr in cidrs if cidr),
        ref_of(shard, "route_table", table) if table else None,
        ref_of(shard, "access_list", access_list) if access_list else None,
        name=text(known, "SubnetName"),
        is_default=flag(known, "IsDefault"),
        tags=tags_of(known, "TagSet"),
    )


def to_route_table(shard: Shard, item: Fields, local: Mapping[ResourceRef, Sequence[str]]) -> RouteTable:
    """One element of RouteTableSet. `local` are the networks of each VPC: nothing lists the routes within it.

    Raises:
        TypeError, ValueError: a field is not of its documented type.
    """
    if "RouteSet" not in item:
        message = "RouteSet is missing"
        raise ValueError(message)
    vpc = ref_of(shard, "vpc", named(item, "VpcId"))
    within = (Route(cidr, Hop.LOCAL) for cidr in local.get(vpc, ()))
    return RouteTable(
        ref_of(shard, "route_table", named(item, "RouteTableId")),
        vpc,
        (*within, *(_route(each) for each in parts(item, "RouteSet"))),
        is_main=flag(item, "Main"),
    )


def to_interface(shard: Shard, item: Fields) -> NetworkInterface:
    """One element of NetworkInterfaceSet. An IPv6 address of type GUA is public as far as addresses go.

    Raises:
        TypeError, ValueError: a field is not of its documented type, or the addresses or groups are missing.
    """
    known = told(item, "Attachment", "VpcId", "SubnetId")
    for needed in ("PrivateIpAddressSet", "GroupSet"):
        if needed not in known:
            message = f"{needed} is missing"
            raise ValueError(message)
    vpc, subnet = text(known, "VpcId"), text(known, "SubnetId")
    instance = text(told(part(known, "Attachment"), "InstanceId"), "InstanceId")
    private = [told(each, "PublicIpAddress") for each in parts(known, "PrivateIpAddressSet")]
    return NetworkInterface(
        ref_of(shard, "interface", named(known, "NetworkInterfaceId")),
        ref_of(shard, "vpc", vpc) if vpc else None,
        ref_of(shard, "subnet", subnet) if subnet else None,
        ref_of(shard, "instance", instance) if instance.startswith("ins-") else None,
        tuple(named(each, "PrivateIpAddress") for each in private),
        public_ips=tuple(
            (named(each, "PrivateIpAddress"), text(each, "PublicIpAddress"))
            for each in private
            if text(each, "PublicIpAddress")
        ),
        ipv6_public=tuple(_public_six(known)),
        groups=tuple(texts(known, "GroupSet")),
        primary=flag(known, "Primary") if "Primary" in known else None,
        unattached=not instance and text(known, "NetworkInterfaceState") == "AVAILABLE",
        tags=tags_of(known, "TagSet"),
    )


def to_access_list(shard: Shard, item: Fields, rules: Iterator[NetworkRule]) -> AccessList:
    """One element of NetworkAclSet with its `rules`. Its two last entries, which deny all, are not listed.

    Raises:
        TypeError, ValueError: a field is not of its documented type.
    """
    return AccessList(
        ref_of(shard, "access_list", named(item, "NetworkAclId")),
        ref_of(shard, "vpc", named(item, "VpcId")),
        tuple(rules),
        tags=tags_of(item, "TagSet"),
    )


def to_nat_gateway(shard: Shard, item: Fields, forwards: Sequence[Forward]) -> NatGateway:
    """One element of NatGatewaySet with its `forwards`, without what it costs.

    Raises:
        TypeError, ValueError: a field is not of its documented type.
    """
    return NatGateway(
        ref_of(shard, "nat_gateway", named(item, "NatGatewayId")),
        ref_of(shard, "vpc", named(item, "VpcId")),
        tuple(named(each, "PublicIpAddress") for each in parts(item, "PublicIpAddressSet")),
        name=text(item, "NatGatewayName"),
        created_at=moment(item, "CreatedTime"),
        forwards=tuple(forwards),
        tags=tags_of(item, "TagSet"),
    )


def to_forward(rule: Fields) -> Forward:
    """One rule by which a port of a gateway leads in; it has no id.

    Raises:
        TypeError, ValueError: a field is not of its documented type.
    """
    public, private = whole(rule, "PublicPort"), whole(rule, "PrivatePort")
    return Forward(
        named(rule, "IpProtocol").lower(),
        named(rule, "PublicIpAddress"),
        ((public, public),),
        named(rule, "PrivateIpAddress"),
        ((private, private),),
    )


def to_flow_log(shard: Shard, item: Fields) -> FlowLog | None:
    """One element of FlowLog; None of a dedicated line's or a cloud connect network's, which cover no VPC.

    Raises:
        TypeError, ValueError: a field is not of its documented type.
    """
    kind = _COVERED.get(named(item, "ResourceType"))
    if kind is None:
        return None
    traffic = named(item, "TrafficType")
    return FlowLog(
        ref_of(shard, "flow_log", named(item, "FlowLogId")),
        ref_of(shard, kind, named(item, "ResourceId")),
        active=flag(item, "Enable") and text(told(item, "CloudLogState"), "CloudLogState") != "DELETED",
        traffic=_TRAFFIC.get(traffic, traffic.lower()),
    )


def to_peering(shard: Shard, item: Fields, own: frozenset[str]) -> Peering:
    """One element of PeerConnectionSet, from the end that is ours; `own` are the ids of the shard's VPCs.

    The networks of the far end are not told.

    Raises:
        TypeError, ValueError: a field is not of its documented type.
    """
    known = told(item, "PeerVpcId", "DestinationVpcId")
    source = named(known, "SourceVpcId")
    destination = text(known, "PeerVpcId") or named(known, "DestinationVpcId")
    reverse = source not in own and destination in own
    other = "Source" if reverse else "Destination"
    region = named(known, f"{other}Region")
    return Peering(
        ref_of(shard, "peering", named(known, "PeeringConnectionId")),
        ref_of(shard, "vpc", destination if reverse else source),
        str(whole(known, f"{other}Uin")),
        _REGIONS.get(region, region),
        source if reverse else destination,
        active=named(known, "State") == "ACTIVE",
        tags=tags_of(known, "TagSet"),
    )


def texts(fields: Fields, key: str) -> list[str]:
    """A list of texts; empty where absent.

    Raises:
        TypeError: it is none.
    """
    found: Any = fields.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        message = f"{key} is no list of texts"
        raise TypeError(message)
    return found


def _route(item: Fields) -> Route:
    known = told(item, "DestinationIpv6CidrBlock", "GatewayId")
    hop = _HOPS.get(named(known, "GatewayType"), Hop.OTHER)
    return Route(
        network(text(known, "DestinationCidrBlock") or named(known, "DestinationIpv6CidrBlock")),
        hop,
        "" if hop is Hop.INTERNET else text(known, "GatewayId"),
        active=flag(known, "Enabled") if "Enabled" in known else True,
    )


def _public_six(interface: Fields) -> Iterator[str]:
    """ULA is private, and public only through the address it is bound to; of what has no type, assume the worst."""
    for each in parts(told(interface, "Ipv6AddressSet"), "Ipv6AddressSet"):
        known = told(each, "AddressType", "PublicIpAddress")
        if text(known, "AddressType") == "ULA":
            if text(known, "PublicIpAddress"):
                yield text(known, "PublicIpAddress")
        else:
            yield named(known, "Address")
