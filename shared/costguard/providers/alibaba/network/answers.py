"""From what VPC says of its parts to ours: pure, apart from any request.

Tags are `Key` and `Value` here, and `TagKey` and `TagValue` of NAT gateways, as in ECS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from costguard.domain.network import (
    AccessList,
    AddressState,
    Direction,
    FlowLog,
    Forward,
    Hop,
    NatGateway,
    NetworkRule,
    Peering,
    PublicAddress,
    Route,
    RouteTable,
    Subnet,
    Vpc,
)
from costguard.domain.refs import Shard
from costguard.providers.alibaba.core.products import items_in, structures_in, tags_of, time_of
from costguard.providers.alibaba.network.rules import to_entry, to_range
from costguard.providers.kit.core.fields import Fields, flag, named, part, text, whole
from costguard.providers.kit.network.reading import network, networks, ref_of, ref_to

_HOPS = {
    "local": Hop.LOCAL,
    "Ipv4Gateway": Hop.INTERNET,
    "IPv6Gateway": Hop.INTERNET,
    "NatGateway": Hop.NAT,
    "VpcPeer": Hop.PEERING,
    "Instance": Hop.INSTANCE,
    "NetworkInterface": Hop.INSTANCE,
    "VpnGateway": Hop.VPN,
    "Attachment": Hop.VPN,
    "Ecr": Hop.VPN,
    "RouterInterface": Hop.VPN,
}
"""NextHopType of CreateRouteEntry: VPN gateways, transit routers, Express Connect gateways, and router interfaces to a
line of one's own. Whatever else a route leads to (virtual addresses, the vendor's own services) is `OTHER`."""

_ADDRESS_STATES = {
    "InUse": AddressState.IN_USE,
    "Available": AddressState.UNATTACHED,
    "Associating": AddressState.CHANGING,
    "Unassociating": AddressState.CHANGING,
    "Releasing": AddressState.CHANGING,
}
BOUND_KINDS: Mapping[str, str] = {
    "EcsInstance": "instance",
    "NetworkInterface": "interface",
    "Nat": "nat_gateway",
    "SlbInstance": "balancer",
    "HaVip": "virtual_ip",
    "IpAddress": "private_ip",
}
"""What an elastic address is bound to, in the vendor's words and in ours."""

LOGGED_KINDS: Mapping[str, str] = {"VPC": "vpc", "VSwitch": "subnet", "NetworkInterface": "interface"}
"""What a flow log covers."""

_TRAFFIC = {"All": "all", "Allow": "accepted", "Drop": "rejected"}
_JOINED = frozenset({"Activated", "Updating"})
_ANY_PORT = "any"


def texts_in(fields: Fields, result_key: str, operation: str) -> list[str]:
    """As `items_in`, where each item must be a text.

    Raises:
        TypeError: one is not.
    """
    found = items_in(fields, result_key, operation)
    if not all(isinstance(each, str) for each in found):
        message = f"{result_key} is no list of texts"
        raise TypeError(message)
    return found


def named_tags(fields: Fields, operation: str) -> dict[str, str]:
    """`Tags` as VPC writes them.

    Raises:
        TypeError, ValueError: not of the documented form.
    """
    return tags_of(fields, operation, "Key", "Value")


def to_vpc(shard: Shard, told: Fields, gated: Iterable[str]) -> Vpc:
    """One VPC; `gated` are those with an active IPv4 gateway, where an address alone leads nowhere."""
    api = "vpc:DescribeVpcs"
    native_id = named(told, "VpcId")
    further = texts_in(told, "SecondaryCidrBlocks.SecondaryCidrBlock", api)
    blocks = structures_in(told, "Ipv6CidrBlocks.Ipv6CidrBlock", api)
    six = [text(told, "Ipv6CidrBlock"), *(text(block, "Ipv6CidrBlock") for block in blocks)]
    return Vpc(
        ref_of(shard, "vpc", native_id),
        networks([named(told, "CidrBlock"), *further, *six]),
        name=text(told, "VpcName"),
        is_default=flag(told, "IsDefault"),
        needs_gateway=native_id in gated,
        tags=named_tags(told, api),
    )


def to_subnet(shard: Shard, told: Fields) -> Subnet:
    """One vSwitch; nothing in it is given a public address for being there."""
    table = text(part(told, "RouteTable"), "RouteTableId")
    access_list = text(told, "NetworkAclId")
    return Subnet(
        ref_of(shard, "subnet", named(told, "VSwitchId")),
        ref_of(shard, "vpc", named(told, "VpcId")),
        networks([named(told, "CidrBlock"), text(told, "Ipv6CidrBlock")]),
        ref_to(shard, "route_table", table),
        ref_to(shard, "access_list", access_list),
        name=text(told, "VSwitchName"),
        is_default=flag(told, "IsDefault"),
        tags=named_tags(told, "vpc:DescribeVSwitches"),
    )


def to_route_table(shard: Shard, told: Fields, routes: Iterable[Route]) -> RouteTable:
    """One route table with its routes, which are listed apart."""
    return RouteTable(
        ref_of(shard, "route_table", named(told, "RouteTableId")),
        ref_of(shard, "vpc", named(told, "VpcId")),
        tuple(routes),
        is_main=named(told, "RouteTableType") == "System",
    )


def to_routes(told: Fields) -> list[Route]:
    """One entry: a route for each next hop."""
    destination = network(named(told, "DestinationCidrBlock"))
    active = text(told, "Status") != "Pending"
    hops = structures_in(told, "NextHops.NextHop", "vpc:DescribeRouteEntryList")
    if not hops:  # of what is within the VPC, and of the vendor's own services
        return [Route(destination, Hop.LOCAL if text(told, "Type") == "System" else Hop.OTHER, active=active)]
    return [_to_route(destination, hop, active=active) for hop in hops]


def _to_route(destination: str, told: Fields, *, active: bool) -> Route:
    kind = text(told, "NextHopType") or "local"
    joins_vpcs = kind == "RouterInterface" and text(part(told, "NextHopRelatedInfo"), "InstanceType") == "VPC"
    hop = Hop.PEERING if joins_vpcs else _HOPS.get(kind, Hop.OTHER)
    enabled = "Enabled" not in told or whole(told, "Enabled") != 0
    return Route(destination, hop, text(told, "NextHopId"), active=active and enabled)


def to_access_list(shard: Shard, told: Fields) -> AccessList:
    """One network ACL with its entries, which are read from the top; none is a VPC's default."""
    return AccessList(
        ref_of(shard, "access_list", named(told, "NetworkAclId")),
        ref_of(shard, "vpc", named(told, "VpcId")),
        _entries(told),
        tags=named_tags(told, "vpc:DescribeNetworkAcls"),
    )


def has_entries(told: Fields) -> bool:
    """Whether a network ACL was listed with any entries."""
    return bool(_entries(told))


def _entries(told: Fields) -> tuple[NetworkRule, ...]:
    api = "vpc:DescribeNetworkAcls"
    into = structures_in(told, "IngressAclEntries.IngressAclEntry", api)
    out = structures_in(told, "EgressAclEntries.EgressAclEntry", api)
    return (
        *(to_entry(entry, Direction.INGRESS, place) for place, entry in enumerate(into)),
        *(to_entry(entry, Direction.EGRESS, place) for place, entry in enumerate(out)),
    )


def to_address(shard: Shard, told: Fields) -> PublicAddress:
    """One elastic address, without what it costs."""
    api = "vpc:DescribeEipAddresses"
    locks = structures_in(told, "OperationLocks.LockReason", api)
    held = {f"locked_{named(lock, 'LockReason').lower()}" for lock in locks}
    if flag(told, "DeletionProtection"):
        held.add("deletion_protection")
    if text(told, "SegmentInstanceId"):
        held.add("segment")  # released with its whole segment only
    kind, bound = BOUND_KINDS.get(text(told, "InstanceType"), "other"), text(told, "InstanceId")
    return PublicAddress(
        ref_of(shard, "address", named(told, "AllocationId")),
        named(told, "IpAddress"),
        _ADDRESS_STATES.get(named(told, "Status"), AddressState.UNKNOWN),
        ref_to(shard, kind, bound),
        name=text(told, "Name"),
        allocated_at=time_of(told, "AllocationTime"),
        is_prepaid=text(told, "ChargeType") == "PrePaid",
        is_service_managed="ServiceManaged" in told and whole(told, "ServiceManaged") != 0,
        protected_by=tuple(sorted(held)),
        tags=named_tags(told, api),
    )


def to_gateway(shard: Shard, told: Fields, forwards: Iterable[Forward]) -> NatGateway:
    """One NAT gateway with its DNAT entries, which are listed apart, without what it costs."""
    api = "vpc:DescribeNatGateways"
    return NatGateway(
        ref_of(shard, "nat_gateway", named(told, "NatGatewayId")),
        ref_of(shard, "vpc", named(told, "VpcId")),
        tuple(named(each, "IpAddress") for each in structures_in(told, "IpLists.IpList", api)),
        name=text(told, "Name"),
        created_at=time_of(told, "CreationTime"),
        is_private=is_private(told),
        forwards=tuple(forwards),
        tags=tags_of(told, api),
    )


def is_private(told: Fields) -> bool:
    """Whether a NAT gateway leads to other private networks only."""
    return text(told, "NetworkType") == "intranet"


def to_forward(told: Fields) -> Forward:
    """One DNAT entry."""
    protocol = named(told, "IpProtocol").lower()
    return Forward(
        "all" if protocol == _ANY_PORT else protocol,
        named(told, "ExternalIp"),
        _ports(text(told, "ExternalPort")),
        named(told, "InternalIp"),
        _ports(text(told, "InternalPort")),
        rule_id=text(told, "ForwardEntryId"),
    )


def _ports(told: str) -> tuple[tuple[int, int], ...]:
    return () if told.lower() in ("", _ANY_PORT) else (to_range(told),)


def to_flow_log(shard: Shard, told: Fields) -> FlowLog:
    """One flow log; one whose records are not delivered, or that is locked, logs nothing."""
    works = text(told, "FlowLogDeliverStatus") != "FAILED" and text(told, "BusinessStatus") != "FinancialLocked"
    return FlowLog(
        ref_of(shard, "flow_log", named(told, "FlowLogId")),
        ref_of(shard, LOGGED_KINDS[named(told, "ResourceType")], named(told, "ResourceId")),
        active=named(told, "Status") == "Active" and works,
        traffic=_TRAFFIC[named(told, "TrafficType")],
    )


def to_peering(shard: Shard, told: Fields) -> Peering:
    """One peering connection, from whichever end lies in this shard; where both do, from the one that asked."""
    ends = (
        (_number(told, "OwnerId"), named(told, "RegionId"), part(told, "Vpc")),
        (_number(told, "AcceptingOwnerUid"), named(told, "AcceptingRegionId"), part(told, "AcceptingVpc")),
    )
    ours, far = ends if ends[0][:2] == (shard.account, shard.region) else ends[::-1]
    return Peering(
        ref_of(shard, "peering", named(told, "InstanceId")),
        ref_of(shard, "vpc", named(ours[2], "VpcId")),
        far[0],
        far[1],
        named(far[2], "VpcId"),
        networks([*_plain_list(far[2], "Ipv4Cidrs"), *_plain_list(far[2], "Ipv6Cidrs")]),
        active=named(told, "Status") in _JOINED,
        tags=_plain_tags(told),
    )


def _plain_list(fields: Fields, key: str) -> list[str]:
    """A list that is wrapped once only; null where there is nothing."""
    found = fields.get(key) or []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        message = f"{key} is no list of texts"
        raise TypeError(message)
    return found


def _plain_tags(told: Fields) -> dict[str, str]:
    found = told.get("Tags") or []
    if not isinstance(found, list):
        raise TypeError("Tags is no list")
    return {named(tag, "Key"): text(tag, "Value") for tag in found}


def _number(fields: Fields, key: str) -> str:
    """The number of an account, told as a number or as a text."""
    found = fields.get(key)
    if isinstance(found, bool) or not isinstance(found, (int, str)) or not str(found).isdigit():
        message = f"{key} is no account number"
        raise TypeError(message)
    return str(found)


def gated_vpcs(gateways: Iterable[Fields]) -> frozenset[str]:
    """The VPCs with an active IPv4 gateway."""
    return frozenset(named(each, "VpcId") for each in gateways if flag(each, "Enabled"))
