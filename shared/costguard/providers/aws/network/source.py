"""The networks of AWS: VPCs with everything that stands between the internet and an interface.

Permissions: those of `Feature.NETWORK` in permissions.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeVar

from costguard.domain.errors import DeniedByOrganisationError, ProviderError
from costguard.domain.network import (
    AccessList,
    Hop,
    NetworkInterface,
    NetworkInventory,
    NetworkRule,
    Route,
    RouteTable,
    SecurityGroup,
    Subnet,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap
from costguard.providers.aws.core import errors
from costguard.providers.aws.core.session import AwsSession, closed
from costguard.providers.aws.network.answers import (
    Place,
    block_mode,
    has_private_v6,
    is_amazons,
    lists_of_table,
    nat_interfaces,
    to_access_list,
    to_address,
    to_flow_log,
    to_group,
    to_interface,
    to_nat_gateway,
    to_peering,
    to_route_table,
    to_subnet,
    to_vpc,
)
from costguard.providers.aws.network.prices import AwsNetworkPrices, NetworkRates
from costguard.providers.aws.network.rules import (
    PrefixLists,
    group_rule,
    lists_named,
)
from costguard.providers.kit.core.fields import Fields, as_documented, named, parts, text
from costguard.providers.kit.network.reading import named_by_rules, network, with_references

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
    groups = answers.made(_GROUPS, lambda said: to_group(place, said, by_group[named(said, "GroupId")], answers.lists))
    naming = {native_id: sorted(by) for native_id, by in named_by_rules(groups).items()}
    used = {native_id for interface in interfaces for native_id in interface.groups}
    all_read = _INTERFACES not in answers.failed
    for group in with_references(groups, naming):
        yield replace(group, in_use=True if group.ref.native_id in used else False if all_read else None)


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


def _gaps(answers: Answers) -> Iterator[Gap]:
    for listing, failed in answers.failed.items():
        yield errors.gap(answers.shard, listing.part, failed)
    for native_id, failed in answers.unread.items():
        gap = errors.gap(answers.shard, "prefix_lists", failed)
        yield replace(gap, detail=f"{native_id}: {gap.detail}")


_IN_FLIGHT = 6  # of a client's 16 connections; scans of several regions share the process
_LIST_PAGE = 100


class AwsNetwork:
    """`NetworkSource` for one partition of AWS."""

    def __init__(self, session: AwsSession) -> None:
        self._session = session
        self._prices = AwsNetworkPrices(session)

    def read(self, shard: Shard) -> NetworkInventory:
        """Everything of the shard, all pages; a part that could not be read is a gap.

        A managed prefix list that could not be read is a gap of `prefix_lists`: its rules are `unresolved`, and routes
        by it have its id for a destination.

        API: EC2 DescribeSecurityGroupRules (ids of rules are told nowhere else), DescribeSecurityGroups,
        DescribeNetworkInterfaces, DescribeVpcs, DescribeSubnets, DescribeNetworkAcls, DescribeNatGateways,
        DescribeFlowLogs and DescribeVpcPeeringConnections, 1,000 a page; DescribeRouteTables, 100; DescribeAddresses,
        all at once; GetManagedPrefixListEntries for each list that a rule or route names, 100 networks a page.
        Price list GetProducts, at most two questions a region.

        Raises:
            ClosedRegionError: the organisation denies all of it.
            ProviderError: not even a part could be read.
        """
        answers = Answers(shard)
        with ThreadPoolExecutor(_IN_FLIGHT, thread_name_prefix="network") as pool:
            ended = pool.map(lambda listing: self._list(answers, listing), LISTINGS)
            for listing, failed in zip(LISTINGS, ended, strict=True):
                if failed is not None:
                    answers.failed[listing] = failed
            if len(answers.failed) == len(LISTINGS) and not any(answers.items.values()):
                first = answers.failed[LISTINGS[0]]
                if all(isinstance(failed, DeniedByOrganisationError) for failed in answers.failed.values()):
                    raise closed(shard, first) from first
                raise first
            ids = sorted(answers.lists_named())
            answers.lists = dict(zip(ids, pool.map(lambda one: self._prefix_list(answers, one), ids), strict=True))
        addresses, gateways = answers.priced()
        answers.rates = self._prices.rates(shard, addresses=addresses, gateways=gateways)
        return inventory_of(answers)

    def _list(self, answers: Answers, listing: Listing) -> ProviderError | None:
        """Take in what there is; the error it ended in, if it did."""
        paged = {"MaxResults": listing.page} if listing.page else {}
        found = answers.items[listing]
        try:
            for page in self._session.pages(answers.shard, "ec2", listing.operation, listing.result_key, **paged):
                with as_documented(listing.api):
                    for item in parts({"page": page}, "page"):
                        # a page that shifts while it is read repeats some
                        found.setdefault(text(item, listing.id_key) or named(item, listing.or_key), item)
        except ProviderError as err:
            return err
        return None

    def _prefix_list(self, answers: Answers, native_id: str) -> tuple[str, ...] | None:
        """The networks of one list; None where they could not be read."""
        api, found = "ec2:GetManagedPrefixListEntries", []
        asked = {"PrefixListId": native_id, "MaxResults": _LIST_PAGE}
        try:
            for page in self._session.pages(answers.shard, "ec2", "GetManagedPrefixListEntries", "Entries", **asked):
                with as_documented(api):
                    found += [network(named(entry, "Cidr")) for entry in parts({"page": page}, "page")]
        except ProviderError as err:
            answers.unread[native_id] = err
            return None
        return tuple(found)
