"""The lists that make up a shard's networks, and one inventory from all their answers: no request is made here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from costguard.domain.errors import ProviderError
from costguard.domain.network import (
    AccessList,
    Hop,
    NetworkInterface,
    NetworkInventory,
    NetworkRule,
    Route,
    RouteTable,
    RuleOrder,
    SecurityGroup,
    Subnet,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, Keeper
from costguard.providers.aws.compute.instances import keeper_of
from costguard.providers.aws.core import errors
from costguard.providers.aws.network.answers import (
    HELD,
    Place,
    cidrs_of,
    is_amazons,
    nat_interfaces,
    to_address,
    to_flow_log,
    to_interface,
    to_nat_gateway,
    to_peering,
    to_vpc,
)
from costguard.providers.aws.network.prices import NetworkRates
from costguard.providers.aws.network.rules import (
    PrefixLists,
    entry_rules,
    group_rule,
    lists_named,
    network,
    permission_rules,
    rules_told,
)
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named, part, parts, tags_of, text

_VPN_TARGETS = ("TransitGatewayId", "CoreNetworkArn", "LocalGatewayId")
"""Of Route's members those that join networks: transit gateways, Cloud WAN and, to a site of one's own, an Outpost's
local gateway. EC2 API, Route; a virtual private gateway (`vgw-`) stands in GatewayId."""

_OTHER_TARGETS = ("CarrierGatewayId", "OdbNetworkArn", "NetworkInterfaceId")
_GATEWAYS = {"igw": Hop.INTERNET, "vgw": Hop.VPN}


def to_subnet(
    place: Place, said: Fields, tables: Mapping[str, ResourceRef | None], lists: Mapping[str, ResourceRef | None]
) -> Subnet:
    """One element of DescribeSubnets, with the table and list in force there: see `in_force`.

    Raises as `kit/core/fields.py`.
    """
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
    """One element of DescribeRouteTables, and the subnets that name it. Raises as `kit/core/fields.py`."""
    held = [each for each in parts(said, "Associations") if text(part(each, "AssociationState"), "State") in HELD]
    table = RouteTable(
        ref=place.owned("route_table", named(said, "RouteTableId"), text(said, "OwnerId")),
        vpc=place.named("vpc", named(said, "VpcId")),
        routes=tuple(route for each in parts(said, "Routes") for route in _routes(each, lists)),
        is_main=any(flag(each, "Main") for each in held),
    )
    return table, [text(each, "SubnetId") for each in held if text(each, "SubnetId")]


def lists_of_table(said: Fields) -> Iterator[str]:
    """The ids of the prefix lists by which a route table tells where to. Raises as `kit/core/fields.py`."""
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
    """One element of DescribeNetworkAcls, and the subnets that it is around. Raises as `kit/core/fields.py`."""
    access_list = AccessList(
        ref=place.owned("access_list", named(said, "NetworkAclId"), text(said, "OwnerId")),
        vpc=place.named("vpc", named(said, "VpcId")),
        rules=tuple(sorted(entry_rules(said), key=lambda rule: (rule.direction.value, rule.priority))),
        is_default=flag(said, "IsDefault"),
        tags=tags_of(said),
    )
    return access_list, [named(each, "SubnetId") for each in parts(said, "Associations")]


def in_force(found: Sequence[tuple[RouteTable | AccessList, Sequence[str]]], *, whole: bool) -> dict[str, ResourceRef]:
    """What counts by subnet, and by VPC for subnets that name none.

    Unless the `whole` list was read a subnet that none of it names may be named by the rest: nothing by VPC then.
    """
    own = {subnet: each.ref for each, subnets in found for subnet in subnets}
    if not whole:
        return own
    main = {each.vpc.native_id: each.ref for each, _ in found if _is_main(each)}
    return {**main, **own}


def _is_main(each: RouteTable | AccessList) -> bool:
    return each.is_main if isinstance(each, RouteTable) else each.is_default


def behind_blocks(tables: Sequence[RouteTable], subnets: Sequence[tuple[Subnet, str]]) -> Sequence[RouteTable]:
    """The tables as VPC Block Public Access leaves them; `subnets` with the mode that AWS says is in force there.

    A table whose subnets are all blocked leads to no internet gateway, or only out by it. Where one of them is open
    the table is taken as it stands: what is shown as reachable may then be blocked, never the other way round.
    """
    modes: dict[ResourceRef, set[str]] = {}
    for subnet, mode in subnets:
        if subnet.route_table is not None:
            modes.setdefault(subnet.route_table, set()).add(mode)
    return [replace(table, routes=_blocked(table.routes, modes.get(table.ref, set()))) for table in tables]


def _blocked(routes: tuple[Route, ...], modes: set[str]) -> tuple[Route, ...]:
    if not modes or modes - {"block-bidirectional", "block-ingress"}:
        return routes
    if "block-ingress" in modes:
        return tuple(replace(each, hop=Hop.EGRESS_ONLY) if each.hop is Hop.INTERNET else each for each in routes)
    return tuple(replace(each, active=False) if each.hop is Hop.INTERNET else each for each in routes)


_KEPT_BY_SERVICES = frozenset({Keeper.KUBERNETES, Keeper.CLOUD_SERVICE, Keeper.CONTROLLER})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listing:
    """One list: what a gap calls it, where the answer holds it, its ids, and its largest page (0: no pages)."""

    part: str
    operation: str
    result_key: str
    id_key: str
    page: int = 1000
    or_key: str = ""

    @property
    def api(self) -> str:
        """As permissions.py names it."""
        return f"ec2:{self.operation}"


_VPCS = Listing("vpcs", "DescribeVpcs", "Vpcs", "VpcId")
_SUBNETS = Listing("subnets", "DescribeSubnets", "Subnets", "SubnetId")
_TABLES = Listing("routes", "DescribeRouteTables", "RouteTables", "RouteTableId", page=100)
_GROUPS = Listing("groups", "DescribeSecurityGroups", "SecurityGroups", "GroupId")
_RULES = Listing("groups", "DescribeSecurityGroupRules", "SecurityGroupRules", "SecurityGroupRuleId")
_ACCESS_LISTS = Listing("access_lists", "DescribeNetworkAcls", "NetworkAcls", "NetworkAclId")
_INTERFACES = Listing("interfaces", "DescribeNetworkInterfaces", "NetworkInterfaces", "NetworkInterfaceId")
_ADDRESSES = Listing("addresses", "DescribeAddresses", "Addresses", "AllocationId", page=0, or_key="PublicIp")
_NATS = Listing("nat_gateways", "DescribeNatGateways", "NatGateways", "NatGatewayId")
_FLOW_LOGS = Listing("flow_logs", "DescribeFlowLogs", "FlowLogs", "FlowLogId")
_PEERINGS = Listing("peerings", "DescribeVpcPeeringConnections", "VpcPeeringConnections", "VpcPeeringConnectionId")
LISTINGS = (
    _RULES,  # the longest first
    _GROUPS,
    _INTERFACES,
    _TABLES,
    _SUBNETS,
    _VPCS,
    _ACCESS_LISTS,
    _ADDRESSES,
    _NATS,
    _FLOW_LOGS,
    _PEERINGS,
)
"""Every list of a shard, in the order in which they are asked for."""


@dataclass(slots=True)
class Answers:
    """What was answered about one shard: items by id, errors of lists that were not read to their end.

    `lists` are the networks of prefix lists, `unread` the errors of those that have none. `rates` are what the price
    list says; without it the dated table does.
    """

    shard: Shard
    items: dict[Listing, dict[str, Fields]] = field(default_factory=lambda: {listing: {} for listing in LISTINGS})
    failed: dict[Listing, ProviderError] = field(default_factory=dict)
    lists: PrefixLists = field(default_factory=dict)
    rates: NetworkRates | None = None
    unread: dict[str, ProviderError] = field(default_factory=dict)

    def made(self, listing: Listing, make: Callable[[Fields], T]) -> list[T]:
        """Each item in neutral words; one that is not as documented leaves the whole part unread, and nothing of it."""
        try:
            with as_documented(listing.api):
                return [make(item) for item in self.items[listing].values()]
        except ProviderError as err:
            self.failed[listing] = err
            return []

    def priced(self) -> tuple[bool, bool]:
        """Whether it has addresses that Amazon bills, and NAT gateways."""
        return any(self.made(_ADDRESSES, is_amazons)), bool(self.items[_NATS])

    def lists_named(self) -> set[str]:
        """The ids of the prefix lists that rules and routes go by."""
        rules = self.made(_RULES, lambda said: [text(said, "PrefixListId")])
        groups = self.made(_GROUPS, lambda said: list(lists_named(said)))
        tables = self.made(_TABLES, lambda said: list(lists_of_table(said)))
        return {native_id for named_by in (*rules, *groups, *tables) for native_id in named_by if native_id}


def inventory_of(answers: Answers) -> NetworkInventory:
    """All of it in neutral words; a part whose answer is not as documented is empty, and a gap."""
    place = Place(answers.shard)
    vpcs = answers.made(_VPCS, lambda said: to_vpc(place, said))
    tables = answers.made(_TABLES, lambda said: to_route_table(place, said, answers.lists))
    around = answers.made(_ACCESS_LISTS, lambda said: to_access_list(place, said))
    routed = in_force(tables, whole=_TABLES not in answers.failed)
    filtered = in_force(around, whole=_ACCESS_LISTS not in answers.failed)
    subnets = answers.made(
        _SUBNETS, lambda said: (to_subnet(place, said, routed, filtered), block_mode(said), has_private_v6(said))
    )
    private = {subnet.ref.native_id for subnet, _, is_private in subnets if is_private}
    interfaces = answers.made(_INTERFACES, lambda said: to_interface(place, said, private))
    nat_by_interface = dict(each for found in answers.made(_NATS, nat_interfaces) for each in found)
    rates = answers.rates
    return NetworkInventory(
        shard=answers.shard,
        vpcs=tuple(vpcs),
        subnets=tuple(subnet for subnet, _, _ in subnets),
        route_tables=tuple(
            behind_blocks([table for table, _ in tables], [(subnet, mode) for subnet, mode, _ in subnets])
        ),
        groups=tuple(_groups(answers, place, interfaces)),
        access_lists=tuple(access_list for access_list, _ in around),
        interfaces=tuple(interfaces),
        addresses=tuple(
            answers.made(_ADDRESSES, lambda said: to_address(place, said, nat_by_interface, answers.rates))
        ),
        nat_gateways=_there(answers.made(_NATS, lambda said: to_nat_gateway(place, said, rates))),
        flow_logs=_there(answers.made(_FLOW_LOGS, lambda said: to_flow_log(place, said))),
        peerings=_there(answers.made(_PEERINGS, lambda said: to_peering(place, said))),
        gaps=tuple(_gaps(answers)),
    )


def _there(parts: Sequence[T | None]) -> tuple[T, ...]:
    return tuple(part for part in parts if part is not None)


def _groups(answers: Answers, place: Place, interfaces: Sequence[NetworkInterface]) -> Iterator[SecurityGroup]:
    by_group: defaultdict[str, list[NetworkRule]] = defaultdict(list)
    rules = answers.made(_RULES, lambda said: (named(said, "GroupId"), group_rule(said, answers.lists)))
    for native_id, rule in rules:
        by_group[native_id].append(rule)
    groups = answers.made(_GROUPS, lambda said: _group(place, said, by_group[named(said, "GroupId")], answers.lists))
    naming: defaultdict[str, set[str]] = defaultdict(set)
    for group in groups:
        for rule in group.rules:
            for peer in rule.peer_groups:
                naming[peer].add(group.ref.native_id)
    used = {native_id for interface in interfaces for native_id in interface.groups}
    all_read = _INTERFACES not in answers.failed
    for group in groups:
        native_id = group.ref.native_id
        yield replace(
            group,
            in_use=True if native_id in used else False if all_read else None,
            referenced_by=tuple(sorted(naming[native_id])),
        )


def _group(place: Place, said: Fields, rules: Sequence[NetworkRule], lists: PrefixLists) -> SecurityGroup:
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


def _gaps(answers: Answers) -> Iterator[Gap]:
    for listing, failed in answers.failed.items():
        yield errors.gap(answers.shard, listing.part, failed)
    for native_id, failed in answers.unread.items():
        gap = errors.gap(answers.shard, "prefix_lists", failed)
        yield replace(gap, detail=f"{native_id}: {gap.detail}")
