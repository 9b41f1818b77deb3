"""From what VPC answers to the parts of a `NetworkInventory`: no request is made.

A field that is not of its documented type raises as `kit/core/fields.py` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from costguard.domain.network import (
    AccessList,
    AddressState,
    FlowLog,
    Forward,
    Hop,
    NatGateway,
    NetworkInterface,
    NetworkRule,
    Peering,
    PublicAddress,
    Route,
    RouteTable,
    Subnet,
    Vpc,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.kit.core.fields import Fields, flag, named, part, parts, text, whole
from costguard.providers.kit.network.reading import network, networks, ref_of, ref_to
from costguard.providers.tencent.core.products import moment, tags_of, told

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


def to_vpc(shard: Shard, item: Fields) -> Vpc:
    """One element of VpcSet. A public address works by itself: there is no gateway that it needs."""
    known = told(item, "AssistantCidrSet", "Ipv6CidrBlockSet", "CidrBlock", "Ipv6CidrBlock")
    cidrs = [
        text(known, "CidrBlock"),
        *(text(each, "CidrBlock") for each in parts(known, "AssistantCidrSet")),
        text(known, "Ipv6CidrBlock"),
        *(text(each, "IPv6CidrBlock") for each in parts(known, "Ipv6CidrBlockSet")),
    ]
    return Vpc(
        ref_of(shard, "vpc", named(known, "VpcId")),
        networks(cidrs),
        name=text(known, "VpcName"),
        is_default=flag(known, "IsDefault"),
        needs_gateway=False,
        tags=tags_of(known, "TagSet"),
    )


def to_subnet(shard: Shard, item: Fields) -> Subnet:
    """One element of SubnetSet; no subnet gives out public addresses by itself."""
    known = told(item, "CidrBlock", "Ipv6CidrBlock", "NetworkAclId", "RouteTableId")
    table, access_list = text(known, "RouteTableId"), text(known, "NetworkAclId")
    cidrs = (text(known, "CidrBlock"), text(known, "Ipv6CidrBlock"))
    return Subnet(
        ref_of(shard, "subnet", named(known, "SubnetId")),
        ref_of(shard, "vpc", named(known, "VpcId")),
        networks(cidrs),
        ref_to(shard, "route_table", table),
        ref_to(shard, "access_list", access_list),
        name=text(known, "SubnetName"),
        is_default=flag(known, "IsDefault"),
        tags=tags_of(known, "TagSet"),
    )


def to_route_table(shard: Shard, item: Fields, local: Mapping[ResourceRef, Sequence[str]]) -> RouteTable:
    """One element of RouteTableSet. `local` are the networks of each VPC: nothing lists the routes within it."""
    if "RouteSet" not in item:
        raise ValueError("RouteSet is missing")
    vpc = ref_of(shard, "vpc", named(item, "VpcId"))
    within = (Route(cidr, Hop.LOCAL) for cidr in local.get(vpc, ()))
    return RouteTable(
        ref_of(shard, "route_table", named(item, "RouteTableId")),
        vpc,
        (*within, *(_route(each) for each in parts(item, "RouteSet"))),
        is_main=flag(item, "Main"),
    )


def to_interface(shard: Shard, item: Fields) -> NetworkInterface:
    """One element of NetworkInterfaceSet. An IPv6 address of type GUA is public as far as addresses go."""
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
        ref_to(shard, "vpc", vpc),
        ref_to(shard, "subnet", subnet),
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
    """One element of NetworkAclSet with its `rules`. Its two last entries, which deny all, are not listed."""
    return AccessList(
        ref_of(shard, "access_list", named(item, "NetworkAclId")),
        ref_of(shard, "vpc", named(item, "VpcId")),
        tuple(rules),
        tags=tags_of(item, "TagSet"),
    )


def to_nat_gateway(shard: Shard, item: Fields, forwards: Sequence[Forward]) -> NatGateway:
    """One element of NatGatewaySet with its `forwards`, without what it costs."""
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
    """One rule by which a port of a gateway leads in; it has no id."""
    public, private = whole(rule, "PublicPort"), whole(rule, "PrivatePort")
    return Forward(
        named(rule, "IpProtocol").lower(),
        named(rule, "PublicIpAddress"),
        ((public, public),),
        named(rule, "PrivateIpAddress"),
        ((private, private),),
    )


def to_flow_log(shard: Shard, item: Fields) -> FlowLog | None:
    """One element of FlowLog; None of a dedicated line's or a cloud connect network's, which cover no VPC."""
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


PLAIN = "WanIP"
"""AddressType of a public address that belongs to its machine, and is lost with a stop: nobody keeps it."""

PREPAID = "BANDWIDTH_PREPAID_BY_MONTH"

_STATES = {
    # what counts is the status: an unbound address may still tell the machine that it was bound to
    "BIND": AddressState.IN_USE,
    "BIND_ENI": AddressState.IN_USE,
    "UNBIND": AddressState.UNATTACHED,
    "CREATING": AddressState.CHANGING,
    "BINDING": AddressState.CHANGING,
    "UNBINDING": AddressState.CHANGING,
    "OFFLINING": AddressState.CHANGING,
}
_KINDS = {"CVM": "instance", "NAT": "nat_gateway", "ENI": "interface", "CLB": "load_balancer", "HAVIP": "havip"}
_PREFIXES = {"ins-": "instance", "nat-": "nat_gateway", "eni-": "interface", "lb-": "load_balancer"}
_NULLABLE = (
    *("AddressName", "AddressIp", "InstanceId", "InstanceType", "NetworkInterfaceId", "PrivateAddressIp"),
    *("InternetChargeType", "DeadlineDate", "AntiDDoSPackageId", "CascadeRelease"),
)


@dataclass(frozen=True, slots=True)
class Binding:
    """Which private address a public one leads to. `interface` None: told by its instance only."""

    ip: str
    interface: ResourceRef | None
    instance: ResourceRef | None
    private_ip: str


def known_address(item: Fields) -> Fields:
    """An element of AddressSet, without what is null where a page says that it may be."""
    return told(item, *_NULLABLE)


def to_address(shard: Shard, item: Fields) -> PublicAddress:
    """One address that is kept, without what it costs.

    An address of a DDoS package goes with that. One in arrears is shut off, and no change of it succeeds.
    """
    known = known_address(item)
    state = state_of(known)
    return PublicAddress(
        ref_of(shard, "address", named(known, "AddressId")),
        text(known, "AddressIp"),
        state,
        None if state is AddressState.UNATTACHED else bound_to(shard, known),
        name=text(known, "AddressName"),
        allocated_at=moment(known, "CreatedTime"),
        is_prepaid=text(known, "InternetChargeType") == PREPAID,
        is_service_managed=bool(text(known, "AntiDDoSPackageId")),
        tags=tags_of(known, "TagSet"),
    )


def state_of(known: Fields) -> AddressState:
    """Where the address is in its life; a new word is UNKNOWN, which nothing is done to."""
    return _STATES.get(named(known, "AddressStatus"), AddressState.UNKNOWN)


def bound_to(shard: Shard, known: Fields) -> ResourceRef | None:
    """What the address leads to as far as the answer tells; an interface that no machine has stands for itself."""
    instance, interface = text(known, "InstanceId"), text(known, "NetworkInterfaceId")
    if not instance or text(known, "AddressStatus") == "BIND_ENI":
        return ref_to(shard, "interface", interface)
    kind = next((each for start, each in _PREFIXES.items() if instance.startswith(start)), None)
    if kind is None:
        kind = _KINDS.get(text(known, "InstanceType"), "resource")
    return ref_of(shard, kind, instance)


def binding(shard: Shard, item: Fields) -> Binding | None:
    """What one address, plain or kept, leads to among interfaces; None where it leads to none."""
    known = known_address(item)
    ip, interface = text(known, "AddressIp"), text(known, "NetworkInterfaceId")
    target = bound_to(shard, known)
    if not ip or target is None or state_of(known) is AddressState.UNATTACHED:
        return None
    if target.kind not in {"instance", "interface"}:
        return None
    return Binding(
        ip,
        ref_to(shard, "interface", interface),
        target if target.kind == "instance" else None,
        text(known, "PrivateAddressIp"),
    )


def is_plain(item: Fields) -> bool:
    """Whether it belongs to its machine."""
    return text(item, "AddressType") == PLAIN


def is_released_with_unbinding(known: Fields) -> bool:
    """Whether taking it off what it is bound to gives it up for good."""
    return flag(known, "CascadeRelease")


def with_public(interfaces: Sequence[NetworkInterface], bindings: Iterable[Binding]) -> Iterator[NetworkInterface]:
    """The interfaces, each with every public address that either list says leads to it."""
    by_card: dict[ResourceRef, list[tuple[str, str]]] = {}
    by_machine: dict[ResourceRef, NetworkInterface] = {}
    for card in interfaces:
        if card.instance is not None and (card.primary or card.instance not in by_machine):
            by_machine[card.instance] = card
    for each in bindings:
        card_ref = each.interface
        if card_ref is None and each.instance is not None and each.instance in by_machine:
            card_ref = by_machine[each.instance].ref
        if card_ref is not None:
            by_card.setdefault(card_ref, []).append((each.private_ip, each.ip))
    for card in interfaces:
        known = {public for _, public in card.public_ips}
        first = card.private_ips[0] if card.private_ips else ""
        more = [(private or first, public) for private, public in by_card.get(card.ref, ()) if public not in known]
        yield replace(card, public_ips=(*card.public_ips, *more)) if more else card
