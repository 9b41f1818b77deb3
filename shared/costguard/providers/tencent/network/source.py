"""The networks of Tencent Cloud: VPCs, what stands between the internet and an instance, and what is kept for nothing.

Permissions: those of `Feature.NETWORK` in permissions.py, and VPC DescribeAddresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from costguard.domain.errors import NotFoundError, ProviderError
from costguard.domain.network import (
    AccessList,
    FlowLog,
    Forward,
    NatGateway,
    NetworkInterface,
    NetworkInventory,
    NetworkRule,
    PublicAddress,
    SecurityGroup,
)
from costguard.domain.refs import Shard
from costguard.providers.kit.core.calls import Reads
from costguard.providers.kit.core.fields import Fields, as_documented, named, parts, text
from costguard.providers.kit.network.reading import Parts
from costguard.providers.tencent.compute.source import ADDRESSES
from costguard.providers.tencent.core import errors
from costguard.providers.tencent.core.products import told
from costguard.providers.tencent.network.answers import (
    PLAIN,
    QUINTUPLE,
    Binding,
    binding,
    is_plain,
    to_access_list,
    to_address,
    to_flow_log,
    to_forward,
    to_interface,
    to_nat_gateway,
    to_peering,
    to_route_table,
    to_subnet,
    to_vpc,
    with_public,
)
from costguard.providers.tencent.network.groups import read_groups
from costguard.providers.tencent.network.prices import Cost, NetworkPrices, cost_of_address, cost_of_gateway
from costguard.providers.tencent.network.rules import entry_rules, quintuple_rules

_Made = TypeVar("_Made")
Priced = TypeVar("Priced", PublicAddress, NatGateway)

_PLAIN_ONLY = [{"Name": "address-type", "Values": [PLAIN]}]
_FORWARDS = "DestinationIpPortTranslationNatRuleSet"


class TencentNetwork:
    """`NetworkSource` for one site of Tencent Cloud."""

    def __init__(self, session: Reads, *, now: Callable[[], datetime]) -> None:
        self._session = session
        self._prices = NetworkPrices(session, now=now)

    def read(self, shard: Shard) -> NetworkInventory:
        """Everything of the shard. A part that could not be read is a gap, and the rest is there.

        Of groups and access lists those whose rules could not be read are left out, never shown as empty. What a
        template stands for, where that could not be read, is `unresolved` in the rules that name it, and a gap in
        `templates`. Whether metadata answers without a token is told nowhere.

        Raises:
            ProviderError: not even a part could be read.

        API: VPC DescribeVpcs, DescribeSubnets, DescribeRouteTables, DescribeSecurityGroups, DescribeNetworkAcls,
        DescribeNetworkInterfaces, DescribeAddresses (once for kept ones, once for plain ones), DescribeNatGateways,
        DescribeFlowLogs and DescribeVpcPeeringConnections, 100 a page; for groups see `groups.py`;
        for an access list of five parts DescribeNetworkAclQuintupleEntries, 100 a page; where there is a gateway
        without forwards, DescribeNatGatewayDestinationIpPortTranslationNatRules, for its list may leave them out. For
        prices see `prices.py`.
        """
        reading = _Reading(self._session, shard, self._prices)
        read = reading.parts.read
        vpcs = read("vpcs", lambda: reading.each("DescribeVpcs", "VpcSet", lambda item: to_vpc(shard, item)))
        local = {vpc.ref: vpc.cidrs for vpc in vpcs}
        own = frozenset(vpc.ref.native_id for vpc in vpcs)
        read("subnets", lambda: reading.each("DescribeSubnets", "SubnetSet", lambda item: to_subnet(shard, item)))
        read(
            "routes",
            lambda: reading.each("DescribeRouteTables", "RouteTableSet", lambda it: to_route_table(shard, it, local)),
        )
        read("groups", reading.groups)
        read("access_lists", reading.access_lists)
        interfaces = read("interfaces", reading.interfaces)
        read("addresses", reading.addresses)
        read("nat_gateways", reading.gateways)
        read("flow_logs", reading.flow_logs)
        read(
            "peerings",
            lambda: reading.each(
                "DescribeVpcPeeringConnections", "PeerConnectionSet", lambda item: to_peering(shard, item, own)
            ),
        )
        return reading.parts.inventory(interfaces=tuple(with_public(interfaces, reading.bindings)))


class _Reading:
    """One pass over a shard, part by part. `bindings`: what addresses lead to."""

    def __init__(self, session: Reads, shard: Shard, prices: NetworkPrices) -> None:
        self._session = session
        self._shard = shard
        self._prices = prices
        self.parts = Parts(shard, errors.gap)
        self.bindings: list[Binding] = []

    def each(self, action: str, key: str, make: Callable[[Fields], _Made]) -> list[_Made]:
        """What `make` makes of every element of a list, all pages."""
        made: list[_Made] = []
        for page in self._session.pages(self._shard, "vpc", action, key):
            with as_documented(f"vpc:{action}"):
                made += [make(item) for item in page]
        return made

    def groups(self) -> Sequence[SecurityGroup]:
        """Those whose rules could be read."""
        read = read_groups(self._session, self._shard)
        for what, failures in (("groups", read.failures), ("templates", read.untold)):
            for err in {(err.code, err.operation): err for err in failures}.values():
                self.parts.gaps.add(what, err)
        return read.found

    def access_lists(self) -> Sequence[AccessList]:
        """Those whose entries could be read."""
        listed = self.each("DescribeNetworkAcls", "NetworkAclSet", lambda item: item)
        made: list[AccessList] = []
        for item in listed:
            try:
                with as_documented("vpc:DescribeNetworkAcls"):
                    made.append(to_access_list(self._shard, item, self._entries(item)))
            except NotFoundError:
                continue  # deleted since it was listed
            except ProviderError as err:
                self.parts.gaps.add("access_lists", err)
        return made

    def interfaces(self) -> Sequence[NetworkInterface]:
        """Each with the public addresses that this list itself tells."""
        return self.each("DescribeNetworkInterfaces", "NetworkInterfaceSet", lambda it: to_interface(self._shard, it))

    def addresses(self) -> Sequence[PublicAddress]:
        """Those that are kept; of plain ones, which are another list, only what they lead to."""
        found: list[tuple[PublicAddress, Cost]] = []
        for page in self._session.pages(self._shard, "vpc", "DescribeAddresses", "AddressSet"):
            with as_documented(ADDRESSES):
                self._bind(page)
                kept = (item for item in page if not is_plain(item))
                found += [(to_address(self._shard, item), cost_of_address(self._shard, item)) for item in kept]
        with self.parts.gaps.part("addresses"):
            for page in self._session.pages(self._shard, "vpc", "DescribeAddresses", "AddressSet", Filters=_PLAIN_ONLY):
                with as_documented(ADDRESSES):
                    self._bind(page)
        return [self._priced(address, cost) for address, cost in found]

    def gateways(self) -> Sequence[NatGateway]:
        """Each with its forwards: a list may leave them out to be short, and looks then as if there were none."""
        listed = self.each("DescribeNatGateways", "NatGatewaySet", lambda item: told(item, _FORWARDS))
        with as_documented("vpc:DescribeNatGateways"):
            forwards = {
                named(item, "NatGatewayId"): [to_forward(each) for each in parts(item, _FORWARDS)] for item in listed
            }
        if not all(forwards.values()):
            self._learn(forwards)
        with as_documented("vpc:DescribeNatGateways"):
            found = [
                (
                    to_nat_gateway(self._shard, item, forwards[named(item, "NatGatewayId")]),
                    cost_of_gateway(self._shard, item),
                )
                for item in listed
            ]
        return [self._priced(gateway, cost) for gateway, cost in found]

    def _priced(self, what: Priced, cost: Cost) -> Priced:
        rate, unpriced = self._prices.of(cost)
        return replace(what, rate=rate, unpriced=unpriced)

    def flow_logs(self) -> Sequence[FlowLog]:
        """Those of VPCs, subnets, interfaces and NAT gateways."""
        found = self.each("DescribeFlowLogs", "FlowLog", lambda item: to_flow_log(self._shard, item))
        return [log for log in found if log is not None]

    def _entries(self, access_list: Fields) -> Iterator[NetworkRule]:
        if text(access_list, "NetworkAclType") != QUINTUPLE:
            return entry_rules(access_list)
        entries: list[Fields] = []
        for page in self._session.pages(
            self._shard,
            "vpc",
            "DescribeNetworkAclQuintupleEntries",
            "NetworkAclQuintupleSet",
            NetworkAclId=named(access_list, "NetworkAclId"),
        ):
            entries += page
        return quintuple_rules(entries)

    def _bind(self, page: Sequence[Fields]) -> None:
        self.bindings += [found for item in page if (found := binding(self._shard, item)) is not None]

    def _learn(self, forwards: Mapping[str, list[Forward]]) -> None:
        """The forwards of gateways that were listed without any."""
        action = "DescribeNatGatewayDestinationIpPortTranslationNatRules"
        empty = {native_id for native_id, found in forwards.items() if not found}
        with self.parts.gaps.part("nat_gateways"):
            for page in self._session.pages(
                self._shard, "vpc", action, "NatGatewayDestinationIpPortTranslationNatRuleSet"
            ):
                with as_documented(f"vpc:{action}"):
                    for rule in page:
                        if named(rule, "NatGatewayId") in empty:
                            forwards[named(rule, "NatGatewayId")].append(to_forward(rule))
