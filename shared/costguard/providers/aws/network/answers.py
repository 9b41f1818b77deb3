"""What EC2 says of networks, in neutral words: no request is made.

Whatever another account owns (a shared subnet, its VPC and route table) keeps that account in its ref. A field that is
not of its documented type raises as `kit/core/fields.py` says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address, ip_network

from costguard.domain.money import HourlyRate
from costguard.domain.network import (
    AccessList,
    AddressState,
    FlowLog,
    Hop,
    NatGateway,
    NetworkInterface,
    NetworkRule,
    Peering,
    PublicAddress,
    Route,
    RouteTable,
    RuleOrder,
    SecurityGroup,
    Subnet,
    Unpriced,
    Vpc,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Keeper
from costguard.providers.aws.compute.instances import keeper_of
from costguard.providers.aws.network.prices import NetworkRates, Rate, table_rates
from costguard.providers.aws.network.rules import PrefixLists, entry_rules, permission_rules, rules_told
from costguard.providers.kit.core.fields import Fields, flag, moment, named, part, parts, tags_of, text
from costguard.providers.kit.network.reading import network, networks

HELD = frozenset({"associated", "associating", ""})
"""The states of an association that is in force."""

_GONE_PEERINGS = frozenset({"deleted", "deleting", "rejected", "failed", "expired"})
_NAT_STATES = frozenset({"pending", "available"})
_TRAFFIC = {"ALL": "all", "ACCEPT": "accepted", "REJECT": "rejected"}
_AMAZONS_POOL = "amazon"
_UNIQUE_LOCAL = ip_network("fc00::/7")
_COVERED = {"vpc": "vpc", "subnet": "subnet", "eni": "interface"}


@dataclass(slots=True)
class Place:
    """One shard, and whose is what in it."""

    shard: Shard
    known: dict[str, ResourceRef] = field(default_factory=dict)

    def owned(self, kind: str, native_id: str, owner: str = "") -> ResourceRef:
        """The ref of something that tells its owner, remembered for those that only name it."""
        ref = ResourceRef(self.shard.cloud, owner or self.shard.account, self.shard.region, kind, native_id)
        self.known[native_id] = ref
        return ref

    def named(self, kind: str, native_id: str) -> ResourceRef:
        """The ref of something that is only named; where nothing told whose it is, the account's own."""
        return self.known.get(native_id) or ResourceRef(
            self.shard.cloud, self.shard.account, self.shard.region, kind, native_id
        )


def to_vpc(place: Place, said: Fields) -> Vpc:
    """One element of DescribeVpcs."""
    tags = tags_of(said)
    return Vpc(
        ref=place.owned("vpc", named(said, "VpcId"), text(said, "OwnerId")),
        cidrs=cidrs_of(said),
        name=tags.get("Name", ""),
        is_default=flag(said, "IsDefault"),
        tags=tags,
    )


def cidrs_of(said: Fields) -> tuple[str, ...]:
    """The networks of a VPC or subnet that are in force."""
    found = [text(said, "CidrBlock")]
    for blocks, key, state in (
        ("CidrBlockAssociationSet", "CidrBlock", "CidrBlockState"),
        ("Ipv6CidrBlockAssociationSet", "Ipv6CidrBlock", "Ipv6CidrBlockState"),
    ):
        held = (each for each in parts(said, blocks) if text(part(each, state), "State") in HELD)
        found += [named(each, key) for each in held]
    return networks(found)


def to_interface(place: Place, said: Fields, private_v6: Collection[str]) -> NetworkInterface:
    """One element of DescribeNetworkInterfaces; `private_v6` are subnets whose IPv6 is (see `has_private_v6`)."""
    attachment, subnet, vpc = part(said, "Attachment"), text(said, "SubnetId"), text(said, "VpcId")
    instance, device = text(attachment, "InstanceId"), attachment.get("DeviceIndex")
    card = attachment.get("NetworkCardIndex", 0)
    pairs = [
        (named(each, "PrivateIpAddress"), text(part(each, "Association"), "PublicIp"))
        for each in parts(said, "PrivateIpAddresses")
    ]
    v6 = [*(named(each, "Ipv6Address") for each in parts(said, "Ipv6Addresses")), *_first_of_prefixes(said)]
    return NetworkInterface(
        ref=place.owned("interface", named(said, "NetworkInterfaceId"), text(said, "OwnerId")),
        vpc=place.named("vpc", vpc) if vpc else None,
        subnet=place.named("subnet", subnet) if subnet else None,
        instance=_instance(place, said, attachment) if instance else None,
        private_ips=tuple(private for private, _ in pairs),
        public_ips=tuple((private, public) for private, public in pairs if public),
        ipv6_public=tuple(each for each in v6 if ip_address(each) not in _UNIQUE_LOCAL and subnet not in private_v6),
        groups=tuple(named(each, "GroupId") for each in parts(said, "Groups")),
        primary=(device, card) == (0, 0) if instance and device is not None else None,
        unattached=text(said, "Status") == "available",
        tags=tags_of({"Tags": said["TagSet"]} if "TagSet" in said else {}),
    )


def _first_of_prefixes(said: Fields) -> Iterator[str]:
    """Whoever has a whole prefix gets what is sent to any address of it: the first stands for all."""
    for each in parts(said, "Ipv6Prefixes"):
        yield str(ip_network(named(each, "Ipv6Prefix")).network_address)


def _instance(place: Place, said: Fields, attachment: Fields) -> ResourceRef:
    """In a shared subnet the owner sees machines of others."""
    owner = text(attachment, "InstanceOwnerId")
    return place.owned("instance", named(attachment, "InstanceId"), owner if owner.isdigit() else text(said, "OwnerId"))


def to_address(
    place: Place, said: Fields, nat_by_interface: Mapping[str, str], rates: NetworkRates | None = None
) -> PublicAddress:
    """One element of DescribeAddresses. AWS does not tell since when the account has it."""
    tags, ip = tags_of(said), text(said, "PublicIp") or text(said, "CarrierIp") or text(said, "CustomerOwnedIp")
    native_id = text(said, "AllocationId") or named(said, "PublicIp")
    bound = any(text(said, key) for key in ("AssociationId", "InstanceId", "NetworkInterfaceId", "PrivateIpAddress"))
    rate = _address_rate(rates or table_rates(place.shard), said, bound=bound)
    return PublicAddress(
        ref=place.owned("address", native_id),
        ip=ip,
        state=AddressState.IN_USE if bound else AddressState.UNATTACHED,
        bound_to=_bound_to(place, said, nat_by_interface),
        name=tags.get("Name", ""),
        rate=_known(rate),
        unpriced=_unknown(rate),
        is_service_managed=bool(text(said, "ServiceManaged")),
        tags=tags,
    )


def _bound_to(place: Place, said: Fields, nat_by_interface: Mapping[str, str]) -> ResourceRef | None:
    instance, interface = text(said, "InstanceId"), text(said, "NetworkInterfaceId")
    if instance:
        return place.named("instance", instance)
    if interface in nat_by_interface:
        return place.named("nat_gateway", nat_by_interface[interface])
    return place.named("interface", interface) if interface else None


def is_amazons(said: Fields) -> bool:
    """Whether an address is one of Amazon's own."""
    return text(said, "PublicIpv4Pool") == _AMAZONS_POOL


def _address_rate(rates: NetworkRates, said: Fields, *, bound: bool) -> Rate:
    """What Amazon's own addresses cost; those that a customer brought cost nothing, of other pools it is not known."""
    if not is_amazons(said):
        return Unpriced.UNLISTED
    return rates.in_use if bound else rates.idle


def _known(rate: Rate) -> HourlyRate | None:
    return rate if isinstance(rate, HourlyRate) else None


def _unknown(rate: Rate) -> Unpriced | None:
    return rate if isinstance(rate, Unpriced) else None


def to_nat_gateway(place: Place, said: Fields, rates: NetworkRates | None = None) -> NatGateway | None:
    """One element of DescribeNatGateways; None where it failed or ended, which AWS lists for an hour."""
    if named(said, "State") not in _NAT_STATES:
        return None
    tags, rate = tags_of(said), (rates or table_rates(place.shard)).gateway
    public_ips = (text(each, "PublicIp") for each in parts(said, "NatGatewayAddresses"))
    return NatGateway(
        ref=place.owned("nat_gateway", named(said, "NatGatewayId")),
        vpc=place.named("vpc", named(said, "VpcId")),
        public_ips=tuple(ip for ip in public_ips if ip),
        name=tags.get("Name", ""),
        created_at=moment(said, "CreateTime"),
        is_private=text(said, "ConnectivityType") == "private",
        rate=_known(rate),
        unpriced=_unknown(rate),
        tags=tags,
    )


def nat_interfaces(said: Fields) -> list[tuple[str, str]]:
    """The interfaces of a NAT gateway, with its id."""
    interfaces = (text(each, "NetworkInterfaceId") for each in parts(said, "NatGatewayAddresses"))
    return [(interface, named(said, "NatGatewayId")) for interface in interfaces if interface]


def to_flow_log(place: Place, said: Fields) -> FlowLog | None:
    """One element of DescribeFlowLogs; None where it is around something else (a transit gateway).

    One whose records do not arrive is not active.
    """
    covered = named(said, "ResourceId")
    kind = _COVERED.get(covered.partition("-")[0])
    if kind is None:
        return None
    return FlowLog(
        ref=place.owned("flow_log", named(said, "FlowLogId")),
        covers=place.named(kind, covered),
        active=text(said, "FlowLogStatus") == "ACTIVE" and text(said, "DeliverLogsStatus") != "FAILED",
        traffic=_TRAFFIC[named(said, "TrafficType")],
    )


def to_peering(place: Place, said: Fields) -> Peering | None:
    """One element of DescribeVpcPeeringConnections; None where it is over."""
    status = named(part(said, "Status"), "Code")
    if status in _GONE_PEERINGS:
        return None
    near, far = part(said, "RequesterVpcInfo"), part(said, "AccepterVpcInfo")
    if not _is_here(place.shard, near):
        near, far = far, near
    cidrs = [
        *(text(far, "CidrBlock"),),
        *(named(each, "CidrBlock") for each in parts(far, "CidrBlockSet")),
        *(named(each, "Ipv6CidrBlock") for each in parts(far, "Ipv6CidrBlockSet")),
    ]
    return Peering(
        ref=place.owned("peering", named(said, "VpcPeeringConnectionId")),
        vpc=place.named("vpc", named(near, "VpcId")),
        other_account=text(far, "OwnerId"),
        other_region=text(far, "Region") or place.shard.region,
        other_vpc=named(far, "VpcId"),
        other_cidrs=networks(cidrs),
        active=status == "active",
        tags=tags_of(said),
    )


def _is_here(shard: Shard, end: Fields) -> bool:
    return text(end, "OwnerId") == shard.account and text(end, "Region") in (shard.region, "")


_KEPT_BY_SERVICES = frozenset({Keeper.KUBERNETES, Keeper.CLOUD_SERVICE, Keeper.CONTROLLER})

_VPN_TARGETS = ("TransitGatewayId", "CoreNetworkArn", "LocalGatewayId")
"""Of Route's members those that join networks: transit gateways, Cloud WAN and, to a site of one's own, an Outpost's
local gateway. EC2 API, Route; a virtual private gateway (`vgw-`) stands in GatewayId."""

_OTHER_TARGETS = ("CarrierGatewayId", "OdbNetworkArn", "NetworkInterfaceId")
_GATEWAYS = {"igw": Hop.INTERNET, "vgw": Hop.VPN}


def to_subnet(
    place: Place, said: Fields, tables: Mapping[str, ResourceRef | None], lists: Mapping[str, ResourceRef | None]
) -> Subnet:
    """One element of DescribeSubnets, with the table and list in force there: see `in_force`."""
    tags, native_id, vpc = tags_of(said), named(said, "SubnetId"), named(said, "VpcId")
    return Subnet(
        ref=place.owned("subnet", native_id, text(said, "OwnerId")),
        vpc=place.named("vpc", vpc),
        cidrs=cidrs_of(said),
        route_table=tables.get(native_id, tables.get(vpc)),
        access_list=lists.get(native_id, lists.get(vpc)),
        name=tags.get("Name", ""),
        is_default=flag(said, "DefaultForAz"),
        gives_public_addresses=flag(said, "MapPublicIpOnLaunch"),
        tags=tags,
    )


def has_private_v6(said: Fields) -> bool:
    """Whether a subnet's IPv6 networks are private ones: of IPAM, and never reached from the internet."""
    blocks = parts(said, "Ipv6CidrBlockAssociationSet")
    return bool(blocks) and all(text(each, "Ipv6AddressAttribute") == "private" for each in blocks)


def block_mode(said: Fields) -> str:
    """How Block Public Access stands for a VPC or subnet; empty where AWS does not tell."""
    return text(part(said, "BlockPublicAccessStates"), "InternetGatewayBlockMode")


def to_route_table(place: Place, said: Fields, lists: PrefixLists) -> tuple[RouteTable, Sequence[str]]:
    """One element of DescribeRouteTables, and the subnets that name it."""
    held = [each for each in parts(said, "Associations") if text(part(each, "AssociationState"), "State") in HELD]
    table = RouteTable(
        ref=place.owned("route_table", named(said, "RouteTableId"), text(said, "OwnerId")),
        vpc=place.named("vpc", named(said, "VpcId")),
        routes=tuple(route for each in parts(said, "Routes") for route in _routes(each, lists)),
        is_main=any(flag(each, "Main") for each in held),
    )
    return table, [text(each, "SubnetId") for each in held if text(each, "SubnetId")]


def lists_of_table(said: Fields) -> Iterator[str]:
    """The ids of the prefix lists by which a route table tells where to."""
    for route in parts(said, "Routes"):
        native_id = text(route, "DestinationPrefixListId")
        if native_id and not _leads_to_a_service(route):
            yield native_id


def _leads_to_a_service(route: Fields) -> bool:
    """Whether it goes to a gateway endpoint: to S3 or DynamoDB, from where nothing comes in."""
    return text(route, "GatewayId").startswith("vpce-")


def _routes(said: Fields, lists: PrefixLists) -> Iterator[Route]:
    prefix_list = text(said, "DestinationPrefixListId")
    if prefix_list and _leads_to_a_service(said):
        return
    found = lists.get(prefix_list)
    if not prefix_list:
        found = (network(text(said, "DestinationCidrBlock") or named(said, "DestinationIpv6CidrBlock")),)
    destinations = (prefix_list,) if found is None else found  # by its name: where to is not known
    hop, target = _hop(said)
    active = text(said, "State") in ("active", "")
    yield from (Route(destination, hop, target, active) for destination in destinations)


def _hop(said: Fields) -> tuple[Hop, str]:
    gateway = text(said, "GatewayId")
    if gateway == "local":
        return Hop.LOCAL, ""
    if gateway:
        return _GATEWAYS.get(gateway.partition("-")[0], Hop.OTHER), gateway
    for key, hop in (
        ("EgressOnlyInternetGatewayId", Hop.EGRESS_ONLY),
        ("NatGatewayId", Hop.NAT),
        ("VpcPeeringConnectionId", Hop.PEERING),
        ("InstanceId", Hop.INSTANCE),
        *((key, Hop.VPN) for key in _VPN_TARGETS),
        *((key, Hop.OTHER) for key in _OTHER_TARGETS),
    ):
        if text(said, key):
            return hop, text(said, key)
    return Hop.OTHER, ""


def to_access_list(place: Place, said: Fields) -> tuple[AccessList, Sequence[str]]:
    """One element of DescribeNetworkAcls, and the subnets that it is around."""
    access_list = AccessList(
        ref=place.owned("access_list", named(said, "NetworkAclId"), text(said, "OwnerId")),
        vpc=place.named("vpc", named(said, "VpcId")),
        rules=tuple(sorted(entry_rules(said), key=lambda rule: (rule.direction.value, rule.priority))),
        is_default=flag(said, "IsDefault"),
        tags=tags_of(said),
    )
    return access_list, [named(each, "SubnetId") for each in parts(said, "Associations")]


def to_group(place: Place, said: Fields, rules: Sequence[NetworkRule], lists: PrefixLists) -> SecurityGroup:
    """One element of DescribeSecurityGroups with its `rules`, which are listed apart."""
    tags, name, vpc = tags_of(said), text(said, "GroupName"), text(said, "VpcId")
    return SecurityGroup(
        ref=place.owned("security_group", named(said, "GroupId"), text(said, "OwnerId")),
        vpc=place.named("vpc", vpc) if vpc else None,
        order=RuleOrder.UNION,
        rules=(*rules, *_without_id(said, rules, lists)),
        name=name,
        is_default=name == "default",
        is_service_managed=is_kept_by_a_service(tags),
        tags=tags,
    )


def is_kept_by_a_service(tags: Mapping[str, str]) -> bool:
    """Whether a group belongs to a cluster or service, which would put back what is changed, or suffer from it."""
    keeper = keeper_of(tags, None)
    return keeper is not None and keeper.keeper in _KEPT_BY_SERVICES


def _without_id(said: Fields, rules: Sequence[NetworkRule], lists: PrefixLists) -> list[NetworkRule]:
    """Rules that the group tells of and the list of rules does not: it was denied, or they went in between.

    They can be judged by; without an id nothing can be done about them.
    """
    if len(rules) >= rules_told(said):
        return []
    known = {_meaning(rule) for rule in rules}
    return [rule for rule in permission_rules(said, lists) if _meaning(rule) not in known]


def _meaning(rule: NetworkRule) -> NetworkRule:
    return replace(rule, rule_id="", description="", cannot_return="")
