"""A world's networks in the shapes of EC2's answers; keys are the members of its structures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from cloudstand.world.network.parts import (
    AccessList,
    Direction,
    FlowLog,
    Hop,
    NatGateway,
    NetworkInterface,
    NetworkInventory,
    NetworkRule,
    Peering,
    PublicAddress,
    Route,
    RouteTable,
    SecurityGroup,
    Subnet,
    Vpc,
)

Shape = dict[str, Any]

_NUMBERS = {"all": "-1", "icmp": "1", "tcp": "6", "udp": "17", "icmpv6": "58"}
_PORTED = ("tcp", "udp", "all")
_LAST_ENTRIES = ((32767, "CidrBlock", "0.0.0.0/0"), (32768, "Ipv6CidrBlock", "::/0"))
_TRAFFIC = {"all": "ALL", "accepted": "ACCEPT", "rejected": "REJECT"}
_TARGETS = {
    Hop.EGRESS_ONLY: "EgressOnlyInternetGatewayId",
    Hop.NAT: "NatGatewayId",
    Hop.PEERING: "VpcPeeringConnectionId",
    Hop.INSTANCE: "InstanceId",
}
_TARGETS_BY_ID = {"tgw": "TransitGatewayId", "eni": "NetworkInterfaceId", "cagw": "CarrierGatewayId"}


def made_up(kind: str, *words: str) -> str:
    """An id of something that a world does not number; always the same for the same words."""
    return f"{kind}-{blake2b('/'.join(words).encode(), digest_size=9).hexdigest()[:17]}"


def vpc(one: Vpc) -> Shape:
    """An element of DescribeVpcs."""
    return {
        "VpcId": one.ref.native_id,
        "OwnerId": one.ref.account,
        "State": "available",
        "IsDefault": one.is_default,
        "InstanceTenancy": "default",
        "Tags": _tags(one.tags, one.name),
        "CidrBlockAssociationSet": [
            {"CidrBlock": cidr, "CidrBlockState": {"State": "associated"}} for cidr in _v4(one.cidrs)
        ],
        **_blocks(one.cidrs),
    }


def subnet(one: Subnet) -> Shape:
    """An element of DescribeSubnets."""
    return {
        "SubnetId": one.ref.native_id,
        "OwnerId": one.ref.account,
        "VpcId": one.vpc.native_id,
        "State": "available",
        "AvailabilityZone": f"{one.ref.region}a",
        "AvailableIpAddressCount": 200,
        "DefaultForAz": one.is_default,
        "MapPublicIpOnLaunch": one.gives_public_addresses,
        "AssignIpv6AddressOnCreation": False,
        "Tags": _tags(one.tags, one.name),
        **_blocks(one.cidrs),
    }


def _blocks(cidrs: Sequence[str]) -> Shape:
    six = [
        {"Ipv6CidrBlock": cidr, "Ipv6CidrBlockState": {"State": "associated"}, "Ipv6AddressAttribute": "public"}
        for cidr in cidrs
        if ":" in cidr
    ]
    return {**_first(cidrs), "Ipv6CidrBlockAssociationSet": six}


def _first(cidrs: Sequence[str]) -> Shape:
    """A network may have no IPv4 at all."""
    four = _v4(cidrs)
    return {"CidrBlock": four[0]} if four else {}


def _v4(cidrs: Sequence[str]) -> list[str]:
    return [cidr for cidr in cidrs if ":" not in cidr]


def route_table(one: RouteTable, there: NetworkInventory) -> Shape:
    """An element of DescribeRouteTables. Subnets that go by the main table name none, as in EC2."""
    held = {"State": "associated"}
    named = [] if one.is_main else [each for each in there.subnets if each.route_table == one.ref]
    table = {"RouteTableId": one.ref.native_id, "AssociationState": held}
    main = [{"Main": True, "RouteTableAssociationId": made_up("rtbassoc", one.ref.native_id), **table}]
    return {
        "RouteTableId": one.ref.native_id,
        "OwnerId": one.ref.account,
        "VpcId": one.vpc.native_id,
        "Associations": [
            *(main if one.is_main else []),
            *(
                {
                    "Main": False,
                    "SubnetId": each.ref.native_id,
                    "RouteTableAssociationId": made_up("rtbassoc", each.ref.native_id),
                    **table,
                }
                for each in named
            ),
        ],
        "Routes": [_route(each) for each in one.routes],
        "PropagatingVgws": [],
        "Tags": [],
    }


def _route(one: Route) -> Shape:
    where = "DestinationIpv6CidrBlock" if ":" in one.destination else "DestinationCidrBlock"
    key, target = _TARGETS.get(one.hop, "GatewayId"), one.target
    if one.hop is Hop.LOCAL:
        target = "local"
    if one.hop in {Hop.VPN, Hop.OTHER}:
        key = _TARGETS_BY_ID.get(target.partition("-")[0], "GatewayId")
    origin = "CreateRouteTable" if one.hop is Hop.LOCAL else "CreateRoute"
    return {where: one.destination, key: target, "State": "active" if one.active else "blackhole", "Origin": origin}


def group(one: SecurityGroup) -> Shape:
    """An element of DescribeSecurityGroups, with its rules as EC2 tells of them there: without ids."""
    permissions: dict[Direction, list[Shape]] = {Direction.INGRESS: [], Direction.EGRESS: []}
    for rule in one.rules:
        permissions[rule.direction].append(_permission(one, rule))
    return {
        "GroupId": one.ref.native_id,
        "GroupName": "default" if one.is_default else one.name or one.ref.native_id,
        "Description": one.name or one.ref.native_id,
        "OwnerId": one.ref.account,
        "VpcId": "" if one.vpc is None else one.vpc.native_id,
        "IpPermissions": permissions[Direction.INGRESS],
        "IpPermissionsEgress": permissions[Direction.EGRESS],
        "Tags": _tags(one.tags),
    }


def _permission(one: SecurityGroup, rule: NetworkRule) -> Shape:
    told = {"Description": rule.description} if rule.description else {}
    ((kind, peer),) = _peers(rule)
    lists: Shape = {"IpRanges": [], "Ipv6Ranges": [], "UserIdGroupPairs": [], "PrefixListIds": []}
    if kind == "ReferencedGroupInfo":
        lists["UserIdGroupPairs"] = [{"GroupId": peer, "UserId": one.ref.account, **told}]
    elif kind == "PrefixListId":
        lists["PrefixListIds"] = [{"PrefixListId": peer, **told}]
    else:
        ranges, key = ("Ipv6Ranges", "CidrIpv6") if kind == "CidrIpv6" else ("IpRanges", "CidrIp")
        lists[ranges] = [{key: peer, **told}]
    ports = {} if rule.protocol == "all" else _ports(rule)
    return {"IpProtocol": _NUMBERS["all"] if rule.protocol == "all" else rule.protocol, **ports, **lists}


def group_rule(one: SecurityGroup, rule: NetworkRule) -> Shape:
    """An element of DescribeSecurityGroupRules."""
    ((kind, peer),) = _peers(rule)
    referenced = {"GroupId": peer, "UserId": one.ref.account}
    return {
        "SecurityGroupRuleId": rule.rule_id,
        "GroupId": one.ref.native_id,
        "GroupOwnerId": one.ref.account,
        "IsEgress": rule.direction is Direction.EGRESS,
        "IpProtocol": _NUMBERS["all"] if rule.protocol == "all" else rule.protocol,
        **_ports(rule),
        kind: referenced if kind == "ReferencedGroupInfo" else peer,
        "Tags": [],
        **({"Description": rule.description} if rule.description else {}),
    }


def _peers(rule: NetworkRule) -> Iterator[tuple[str, str]]:
    """A rule of AWS has exactly one; of what is in a prefix list, the list."""
    if rule.peer_list:
        yield "PrefixListId", rule.peer_list
        return
    yield from (("CidrIpv6" if ":" in peer else "CidrIpv4", peer) for peer in rule.peers)
    yield from (("ReferencedGroupInfo", peer) for peer in rule.peer_groups)
    yield from (("PrefixListId", peer) for peer in rule.unresolved)


def _ports(rule: NetworkRule) -> Shape:
    if rule.protocol == "all" or not rule.ports:
        return {"FromPort": -1, "ToPort": -1}
    ((first, last),) = rule.ports
    return {"FromPort": first, "ToPort": last}


def access_list(one: AccessList, there: NetworkInventory) -> Shape:
    """An element of DescribeNetworkAcls, with the last entries that EC2 adds to each."""
    last = [
        {"RuleNumber": number, "Egress": out, "RuleAction": "deny", "Protocol": _NUMBERS["all"], key: cidr}
        for out in (False, True)
        for number, key, cidr in _LAST_ENTRIES
    ]
    around = [each for each in there.subnets if each.access_list == one.ref]
    return {
        "NetworkAclId": one.ref.native_id,
        "OwnerId": one.ref.account,
        "VpcId": one.vpc.native_id,
        "IsDefault": one.is_default,
        "Entries": [*map(_entry, one.rules), *last],
        "Associations": [
            {
                "NetworkAclAssociationId": made_up("aclassoc", each.ref.native_id),
                "NetworkAclId": one.ref.native_id,
                "SubnetId": each.ref.native_id,
            }
            for each in around
        ],
        "Tags": _tags(one.tags),
    }


def _entry(rule: NetworkRule) -> Shape:
    (peer,) = rule.peers
    shown: Shape = {
        "RuleNumber": rule.priority,
        "Egress": rule.direction is Direction.EGRESS,
        "RuleAction": rule.permission.value,
        "Protocol": _NUMBERS.get(rule.protocol, rule.protocol),
        "Ipv6CidrBlock" if ":" in peer else "CidrBlock": peer,
    }
    if rule.protocol in _PORTED[:2]:
        ((first, last),) = rule.ports
        shown["PortRange"] = {"From": first, "To": last}
    return shown


def interface(one: NetworkInterface, there: NetworkInventory) -> Shape:
    """An element of DescribeNetworkInterfaces."""
    public = dict(one.public_ips)
    kept = {each.ip: each for each in there.addresses}
    addresses = [
        {"PrivateIpAddress": ip, "Primary": place == 0, **_association(one, public.get(ip), kept)}
        for place, ip in enumerate(one.private_ips)
    ]
    names = {each.ref.native_id: each.name for each in there.groups}
    of_nat = any(set(public.values()) & set(gateway.public_ips) for gateway in there.nat_gateways)
    return {
        "NetworkInterfaceId": one.ref.native_id,
        "OwnerId": one.ref.account,
        "VpcId": None if one.vpc is None else one.vpc.native_id,
        "SubnetId": None if one.subnet is None else one.subnet.native_id,
        "AvailabilityZone": f"{one.ref.region}a",
        "InterfaceType": "nat_gateway" if of_nat else "interface",
        "RequesterManaged": of_nat,
        "Status": "available" if one.unattached else "in-use",
        "SourceDestCheck": not of_nat,
        "PrivateIpAddress": one.private_ips[0] if one.private_ips else None,
        "PrivateIpAddresses": addresses,
        "Ipv6Addresses": [{"Ipv6Address": ip} for ip in one.ipv6_public],
        "Groups": [{"GroupId": each, "GroupName": names.get(each, each)} for each in one.groups],
        **_attachment(one, of_nat=of_nat),
        **_association(one, public.get(one.private_ips[0]) if one.private_ips else None, kept),
        "TagSet": _tags(one.tags),
    }


def _association(one: NetworkInterface, public_ip: str | None, kept: Mapping[str, PublicAddress]) -> Shape:
    if not public_ip:
        return {}
    address = kept.get(public_ip)
    if address is None:
        return {"Association": {"PublicIp": public_ip, "IpOwnerId": "amazon"}}
    told = {"AllocationId": address.ref.native_id, "AssociationId": association_id(address)}
    return {"Association": {"PublicIp": public_ip, "IpOwnerId": one.ref.account, **told}}


def _attachment(one: NetworkInterface, *, of_nat: bool) -> Shape:
    told = {"AttachmentId": made_up("eni-attach", one.ref.native_id), "Status": "attached"}
    if of_nat:
        return {"Attachment": {"InstanceOwnerId": "amazon-aws", "DeviceIndex": 1, **told}}
    if one.instance is None:
        return {}
    index = {} if one.primary is None else {"DeviceIndex": 0 if one.primary else 1, "NetworkCardIndex": 0}
    owner = one.instance.account
    return {"Attachment": {"InstanceId": one.instance.native_id, "InstanceOwnerId": owner, **index, **told}}


def association_id(one: PublicAddress) -> str:
    """The id of what binds an address now."""
    return made_up("eipassoc", one.ref.native_id, str(one.bound_to))


def address(one: PublicAddress, there: NetworkInventory) -> Shape:
    """An element of DescribeAddresses."""
    shown: Shape = {
        "AllocationId": one.ref.native_id,
        "PublicIp": one.ip,
        "Domain": "vpc",
        "PublicIpv4Pool": "amazon",
        "NetworkBorderGroup": one.ref.region,
        "Tags": _tags(one.tags, one.name),
    }
    if one.is_service_managed:
        shown["ServiceManaged"] = "rnat"
    if one.bound_to is None:
        return shown
    pairs = ((card, private) for card in there.interfaces for private, public in card.public_ips if public == one.ip)
    card, private = next(pairs, (None, ""))
    shown["AssociationId"] = association_id(one)
    if one.bound_to.kind == "instance":
        shown["InstanceId"] = one.bound_to.native_id
    if card is not None:
        owner = card.ref.account
        shown |= {
            "NetworkInterfaceId": card.ref.native_id,
            "NetworkInterfaceOwnerId": owner,
            "PrivateIpAddress": private,
        }
    elif one.bound_to.kind == "interface":
        shown["NetworkInterfaceId"] = one.bound_to.native_id
    return shown


def nat_gateway(one: NatGateway, there: NetworkInventory) -> Shape:
    """An element of DescribeNatGateways."""
    kept = {each.ip: each.ref.native_id for each in there.addresses}
    cards = {public: (card, private) for card in there.interfaces for private, public in card.public_ips}
    addresses = []
    for ip in one.public_ips:
        shown = {"PublicIp": ip, "Status": "succeeded", "IsPrimary": ip == one.public_ips[0]}
        if ip in kept:
            shown["AllocationId"] = kept[ip]
        if ip in cards:
            card, private = cards[ip]
            shown |= {"NetworkInterfaceId": card.ref.native_id, "PrivateIp": private}
        addresses.append(shown)
    return {
        "NatGatewayId": one.ref.native_id,
        "VpcId": one.vpc.native_id,
        "State": "available",
        "CreateTime": one.created_at,
        "ConnectivityType": "private" if one.is_private else "public",
        "NatGatewayAddresses": addresses,
        "Tags": _tags(one.tags, one.name),
    }


def flow_log(one: FlowLog) -> Shape:
    """An element of DescribeFlowLogs; one that is not active is there, and its records do not arrive."""
    return {
        "FlowLogId": one.ref.native_id,
        "ResourceId": one.covers.native_id,
        "FlowLogStatus": "ACTIVE",
        "DeliverLogsStatus": "SUCCESS" if one.active else "FAILED",
        "TrafficType": _TRAFFIC[one.traffic],
        "Tags": [],
    }


def peering(one: Peering, there: NetworkInventory) -> Shape:
    """An element of DescribeVpcPeeringConnections; it was asked for from here."""
    own = next((each.cidrs for each in there.vpcs if each.ref == one.vpc), ())
    return {
        "VpcPeeringConnectionId": one.ref.native_id,
        "RequesterVpcInfo": _end(one.vpc.account, one.vpc.region, one.vpc.native_id, own),
        "AccepterVpcInfo": _end(one.other_account, one.other_region, one.other_vpc, one.other_cidrs),
        "Status": {"Code": "active" if one.active else "pending-acceptance", "Message": ""},
        "Tags": _tags(one.tags),
    }


def _end(account: str, region: str, vpc_id: str, cidrs: Sequence[str]) -> Shape:
    return {
        "OwnerId": account,
        "Region": region,
        "VpcId": vpc_id,
        **_first(cidrs),
        "CidrBlockSet": [{"CidrBlock": cidr} for cidr in _v4(cidrs)],
        "Ipv6CidrBlockSet": [{"Ipv6CidrBlock": cidr} for cidr in cidrs if ":" in cidr],
    }


def _tags(tags: Mapping[str, str], name: str = "") -> list[Shape]:
    return [{"Key": key, "Value": value} for key, value in {**({"Name": name} if name else {}), **tags}.items()]
