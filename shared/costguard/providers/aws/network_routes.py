"""What EC2 says of subnets, route tables and access lists, in neutral words: no request is made here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from costguard.domain.network import AccessList, Hop, Route, RouteTable, Subnet
from costguard.domain.refs import ResourceRef
from costguard.providers.aws.network_answers import HELD, Place, cidrs_of
from costguard.providers.aws.network_rules import PrefixLists, entry_rules, network
from costguard.providers.documented import Fields, flag, named, part, parts, tags_of, text

_VPN_TARGETS = ("TransitGatewayId", "CoreNetworkArn", "LocalGatewayId")
"""Of Route's members those that join networks: transit gateways, Cloud WAN and, to a site of one's own, an Outpost's
local gateway. EC2 API, Route; a virtual private gateway (`vgw-`) stands in GatewayId."""

_OTHER_TARGETS = ("CarrierGatewayId", "OdbNetworkArn", "NetworkInterfaceId")
_GATEWAYS = {"igw": Hop.INTERNET, "vgw": Hop.VPN}


def to_subnet(
    place: Place, said: Fields, tables: Mapping[str, ResourceRef | None], lists: Mapping[str, ResourceRef | None]
) -> Subnet:
    """One element of DescribeSubnets, with the table and list in force there: see `in_force`.

    Raises as `documented.py`.
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
    """One element of DescribeRouteTables, and the subnets that name it. Raises as `documented.py`."""
    held = [each for each in parts(said, "Associations") if text(part(each, "AssociationState"), "State") in HELD]
    table = RouteTable(
        ref=place.owned("route_table", named(said, "RouteTableId"), text(said, "OwnerId")),
        vpc=place.named("vpc", named(said, "VpcId")),
        routes=tuple(route for each in parts(said, "Routes") for route in _routes(each, lists)),
        is_main=any(flag(each, "Main") for each in held),
    )
    return table, [text(each, "SubnetId") for each in held if text(each, "SubnetId")]


def lists_of_table(said: Fields) -> Iterator[str]:
    """The ids of the prefix lists by which a route table tells where to. Raises as `documented.py`."""
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
    """One element of DescribeNetworkAcls, and the subnets that it is around. Raises as `documented.py`."""
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
