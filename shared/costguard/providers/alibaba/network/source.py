"""The networks of Alibaba Cloud: VPC tells most of them, ECS security groups and interfaces.

Permissions: those of `Feature.NETWORK` in permissions.py. A list that is not permitted may come back empty, without an
error: an empty one counts only after a dry run of the same question, where there is such, and a list of interfaces
must agree with what instances tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from costguard.domain.network import (
    AccessList,
    FlowLog,
    Forward,
    NatGateway,
    NetworkInventory,
    Peering,
    PublicAddress,
    Route,
    RouteTable,
    Subnet,
    Unpriced,
    Vpc,
)
from costguard.domain.refs import Shard
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.session import AlibabaSession, numbered_pages, prove_permitted
from costguard.providers.alibaba.network.answers import (
    gated_vpcs,
    has_entries,
    is_private,
    to_access_list,
    to_address,
    to_flow_log,
    to_forward,
    to_gateway,
    to_peering,
    to_route_table,
    to_routes,
    to_subnet,
    to_vpc,
)
from costguard.providers.alibaba.network.groups import GROUPS, INTERFACES, read_groups, read_interfaces
from costguard.providers.alibaba.network.prices import Fee, NetworkPrices, fees_of_address, fees_of_gateway
from costguard.providers.kit.core.fields import Fields, as_documented, named, part, text
from costguard.providers.kit.network.reading import Parts, side_by_side

_PAGE, _ADDRESSES_PAGE, _ROUTES_PAGE, _TOKEN_PAGE = 50, 100, 100, 100

_VPCS, _SUBNETS, _TABLES = "vpc:DescribeVpcs", "vpc:DescribeVSwitches", "vpc:DescribeRouteTableList"
_ROUTES, _LISTS, _ENTRIES = "vpc:DescribeRouteEntryList", "vpc:DescribeNetworkAcls", "vpc:DescribeNetworkAclAttributes"
_ADDRESSES, _GATEWAYS = "vpc:DescribeEipAddresses", "vpc:DescribeNatGateways"
_FORWARDS, _LOGS = "vpc:DescribeForwardTableEntries", "vpc:DescribeFlowLogs"
_FOUR, _PEERINGS = "vpc:ListIpv4Gateways", "vpcpeer:ListVpcPeerConnections"

_HAS_DRY_RUN = frozenset({_VPCS, _SUBNETS, _ADDRESSES, _GATEWAYS})

T = TypeVar("T")
Priced = TypeVar("Priced", PublicAddress, NatGateway)


class AlibabaNetwork:
    """`NetworkSource` for one site of Alibaba Cloud."""

    def __init__(self, session: AlibabaSession, *, now: Callable[[], datetime]) -> None:
        self._session = session
        self._prices = NetworkPrices(session, now=now)

    def read(self, shard: Shard) -> NetworkInventory:
        """Everything of the region; each part that could not be read, or not in full, is a gap of its name.

        Load balancers, VPNs, transit routers and router interfaces are not followed: a route to one leads elsewhere.

        Raises:
            ProviderError: not even a part could be read.

        API: VPC, 50 a page (elastic addresses and IPv4 gateways 100): DescribeVpcs, DescribeVSwitches,
        DescribeRouteTableList, DescribeNetworkAcls, DescribeEipAddresses, DescribeNatGateways, DescribeFlowLogs,
        ListIpv4Gateways; DescribeRouteEntryList once a route table, DescribeForwardTableEntries once a NAT gateway
        to the internet, DescribeNetworkAclAttributes once an ACL that was listed without entries,
        DescribeIpv6Addresses (public ones) where an interface has any. VpcPeer ListVpcPeerConnections, 100 a page.
        ECS: DescribeSecurityGroups, 100 a page; DescribeSecurityGroupAttribute once a group that holds rules or is
        in use; DescribePrefixListAttributes and DescribePortRangeListEntries once a list that a rule names;
        DescribeSecurityGroupReferences for groups that seem unused, ten at once; DescribeNetworkInterfaces, 500 a
        page; DescribeInstances, 100 a page, where an instance's interface told no public address. For prices see
        `prices.py`.
        """
        return _Read(self._session, shard, self._prices).whole()


class _Read:
    """One reading of a shard, part by part."""

    def __init__(self, session: AlibabaSession, shard: Shard, prices: NetworkPrices) -> None:
        self._session = session
        self._shard = shard
        self._prices = prices
        self._parts = Parts(shard, errors.gap)
        self._bound_privately: dict[str, str] = {}

    def whole(self) -> NetworkInventory:
        read, gaps = self._parts.read, self._parts.gaps
        read("vpcs", self._vpcs)
        read("subnets", self._subnets)
        read("routes", self._route_tables)
        read("access_lists", self._access_lists)
        addresses = read("addresses", self._addresses)
        read("nat_gateways", self._gateways)
        read("flow_logs", self._flow_logs)
        read("peerings", self._peerings)
        cards = read(
            INTERFACES,
            lambda: read_interfaces(self._session, gaps, addresses, self._bound_privately),
        )
        unread = any(gap.what == INTERFACES for gap in gaps)
        used = None if unread else {group for card in cards for group in card.groups}
        read(GROUPS, lambda: read_groups(self._session, gaps, used))
        return self._parts.inventory()

    def _listed(
        self, api: str, result_key: str, named_by: str, size: int = _PAGE, **parameters: str
    ) -> dict[str, Fields]:
        """A whole list, by id.

        Raises:
            ProviderError: not whole, or empty where asking is not permitted.
        """
        found: dict[str, Fields] = {}
        for page in numbered_pages(self._session, self._shard, api, result_key, named_by, size, **parameters):
            found |= page
        if not found and api in _HAS_DRY_RUN:
            prove_permitted(self._session, self._shard, *api.split(":"))
        return found

    def _vpcs(self) -> tuple[Vpc, ...]:
        listed = self._listed(_VPCS, "Vpcs.Vpc", "VpcId")
        gated: frozenset[str] = frozenset()
        with self._parts.gaps.part("vpcs"):  # unread, an address counts as enough
            gated = self._gated() if listed else gated
        with as_documented(_VPCS):
            return tuple(to_vpc(self._shard, told, gated) for told in listed.values())

    def _gated(self) -> frozenset[str]:
        pages = self._session.pages(self._shard, "vpc", "ListIpv4Gateways", "Ipv4GatewayModels", MaxResults=_TOKEN_PAGE)
        with as_documented(_FOUR):
            return gated_vpcs(told for page in pages for told in page)

    def _subnets(self) -> tuple[Subnet, ...]:
        listed = self._listed(_SUBNETS, "VSwitches.VSwitch", "VSwitchId")
        with as_documented(_SUBNETS):
            return tuple(to_subnet(self._shard, told) for told in listed.values())

    def _route_tables(self) -> tuple[RouteTable, ...]:
        listed = self._listed(_TABLES, "RouterTableList.RouterTableListType", "RouteTableId")
        routes = dict(zip(listed, side_by_side(list(listed), self._routes), strict=True))
        with as_documented(_TABLES):
            return tuple(to_route_table(self._shard, told, routes[table]) for table, told in listed.items())

    def _routes(self, table: str) -> list[Route]:
        pages = self._session.pages(
            self._shard,
            "vpc",
            "DescribeRouteEntryList",
            "RouteEntrys.RouteEntry",
            RouteTableId=table,
            MaxResult=_ROUTES_PAGE,  # the vendor's own name for it
        )
        with as_documented(_ROUTES):
            return [route for page in pages for told in page for route in to_routes(told)]

    def _access_lists(self) -> tuple[AccessList, ...]:
        listed = self._listed(_LISTS, "NetworkAcls.NetworkAcl", "NetworkAclId")
        with as_documented(_LISTS):
            bare = [native_id for native_id, told in listed.items() if not has_entries(told)]
        listed |= zip(bare, side_by_side(bare, self._access_list), strict=True)
        with as_documented(_LISTS):
            return tuple(to_access_list(self._shard, told) for told in listed.values())

    def _access_list(self, native_id: str) -> Fields:
        answer = self._session.call(self._shard, "vpc", "DescribeNetworkAclAttributes", NetworkAclId=native_id)
        with as_documented(_ENTRIES):
            told = part(answer, "NetworkAclAttribute")
            if named(told, "NetworkAclId") != native_id:
                raise ValueError("it describes another network ACL")
        return told

    def _addresses(self) -> tuple[PublicAddress, ...]:
        listed = self._listed(_ADDRESSES, "EipAddresses.EipAddress", "AllocationId", _ADDRESSES_PAGE)
        with as_documented(_ADDRESSES):
            self._bound_privately = {
                native_id: text(told, "PrivateIpAddress")
                for native_id, told in listed.items()
                if text(told, "PrivateIpAddress")
            }
            found = [(to_address(self._shard, told), fees_of_address(self._shard, told)) for told in listed.values()]
        return tuple(self._priced(address, fees) for address, fees in found)

    def _priced(self, what: Priced, fees: tuple[Fee, ...] | Unpriced) -> Priced:
        rate, unpriced = self._prices.of(self._shard, fees)
        return replace(what, rate=rate, unpriced=unpriced)

    def _gateways(self) -> tuple[NatGateway, ...]:
        listed = self._listed(_GATEWAYS, "NatGateways.NatGateway", "NatGatewayId")
        with as_documented(_GATEWAYS):
            public = [native_id for native_id, told in listed.items() if not is_private(told)]
        forwards = dict(zip(public, side_by_side(public, self._forwards), strict=True))
        with as_documented(_GATEWAYS):
            found = [
                (to_gateway(self._shard, told, forwards.get(native_id, ())), fees_of_gateway(self._shard, told))
                for native_id, told in listed.items()
            ]
        return tuple(self._priced(gateway, fees) for gateway, fees in found)

    def _forwards(self, gateway: str) -> list[Forward]:
        listed = self._listed(
            _FORWARDS, "ForwardTableEntries.ForwardTableEntry", "ForwardEntryId", NatGatewayId=gateway
        )
        with as_documented(_FORWARDS):
            return [to_forward(told) for told in listed.values()]

    def _flow_logs(self) -> tuple[FlowLog, ...]:
        listed = self._listed(_LOGS, "FlowLogs.FlowLog", "FlowLogId")
        with as_documented(_LOGS):
            return tuple(to_flow_log(self._shard, told) for told in listed.values())

    def _peerings(self) -> tuple[Peering, ...]:
        pages = self._session.pages(
            self._shard, "vpcpeer", "ListVpcPeerConnections", "VpcPeerConnects", MaxResults=_TOKEN_PAGE
        )
        with as_documented(_PEERINGS):
            found = {each.ref: each for page in pages for told in page for each in [to_peering(self._shard, told)]}
            return tuple(found.values())
