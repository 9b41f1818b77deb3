"""The lists that make up a shard's networks, and one inventory from all their answers: no request is made here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from costguard.domain.errors import ProviderError
from costguard.domain.network import (
    NetworkInterface,
    NetworkInventory,
    NetworkRule,
    RuleOrder,
    SecurityGroup,
)
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, Keeper
from costguard.providers.aws import errors
from costguard.providers.aws.managed import keeper_of
from costguard.providers.aws.network_answers import (
    Place,
    is_amazons,
    nat_interfaces,
    to_address,
    to_flow_log,
    to_interface,
    to_nat_gateway,
    to_peering,
    to_vpc,
)
from costguard.providers.aws.network_prices import NetworkRates
from costguard.providers.aws.network_routes import (
    behind_blocks,
    block_mode,
    has_private_v6,
    in_force,
    lists_of_table,
    to_access_list,
    to_route_table,
    to_subnet,
)
from costguard.providers.aws.network_rules import PrefixLists, group_rule, lists_named, permission_rules, rules_told
from costguard.providers.documented import Fields, as_documented, named, tags_of, text

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
