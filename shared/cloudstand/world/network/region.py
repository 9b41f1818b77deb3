"""A short way to write down the networks of one region, as its vendor would have them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from cloudstand.world.fleet import MachineSpec, made_up_id
from cloudstand.world.money import HourlyRate, Money
from cloudstand.world.network.names import network_ref
from cloudstand.world.network.networks import in_their_places
from cloudstand.world.network.parts import (
    EVERY_PORT,
    AccessList,
    AddressState,
    Direction,
    FlowLog,
    Forward,
    Hop,
    NatGateway,
    NetworkInterface,
    NetworkInventory,
    NetworkRule,
    Permission,
    PublicAddress,
    Route,
    RouteTable,
    RuleOrder,
    SecurityGroup,
    Subnet,
    Vpc,
)
from cloudstand.world.places import Place, Ref

WORLD = "0.0.0.0/0"
_ORDERS = {"aws": RuleOrder.UNION, "alibaba": RuleOrder.PRIORITY, "tencent": RuleOrder.FIRST_MATCH}
_RATES = {  # an hour: a kept address (of AWS bound or not, elsewhere while it is bound to nothing), a NAT gateway
    "aws": ("USD", Decimal("0.005"), Decimal("0.045")),
    "alibaba": ("CNY", Decimal("0.02"), Decimal("0.195")),
    "tencent": ("CNY", Decimal("0.2"), Decimal("0.5")),
}
_ALLOCATED = timedelta(days=120)


class Region:
    """The networks of one region while they are laid out."""

    def __init__(self, shard: Place, at: datetime) -> None:
        self.shard = shard
        self._at = at
        self._is_aws = shard.provider == "aws"
        self._vpcs: list[Vpc] = []
        self._subnets: list[Subnet] = []
        self._tables: dict[Ref, RouteTable] = {}
        self._lists: list[AccessList] = []
        self._groups: dict[str, SecurityGroup] = {}
        self._cards: list[NetworkInterface] = []
        self._addresses: list[PublicAddress] = []
        self._gateways: list[NatGateway] = []
        self._logs: list[FlowLog] = []
        self.imds_v1: dict[Ref, bool] = {}

    def networks(self) -> NetworkInventory:
        """All of it; a group is in use where an interface is in it."""
        used = {group for card in self._cards for group in card.groups}
        return NetworkInventory(
            self.shard,
            vpcs=tuple(self._vpcs),
            subnets=tuple(self._subnets),
            route_tables=tuple(self._tables.values()),
            groups=tuple(replace(each, in_use=each.ref.native_id in used) for each in self._groups.values()),
            access_lists=tuple(self._lists),
            interfaces=tuple(self._cards),
            addresses=tuple(self._addresses),
            nat_gateways=tuple(self._gateways),
            flow_logs=tuple(self._logs),
        )

    def vpc(self, name: str, cidr: str, *, is_default: bool = False, logs_flows: bool = False) -> None:
        """A network of this name, with the access list that lets everything through where each subnet has one."""
        ref = self._ref("vpc", name)
        self._vpcs.append(Vpc(ref, (cidr,), name, is_default, needs_gateway=self._is_aws, tags=self._tags(name)))
        main = RouteTable(self._ref("route_table", name), ref, (Route(cidr, Hop.LOCAL),), is_main=True)
        self._tables[main.ref] = main
        if self._is_aws:
            rules = tuple(
                NetworkRule("100", direction, Permission.ALLOW, "all", EVERY_PORT, (WORLD,), priority=100)
                for direction in Direction
            )
            self._lists.append(AccessList(self._ref("access_list", name), ref, rules, is_default=True))
        if logs_flows:
            self._logs.append(FlowLog(self._ref("flow_log", name), ref, active=True))

    def subnet(self, name: str, vpc: str, cidr: str, *, public: bool = False, nat: str = "") -> None:
        """A part of a network, with routes of its own to the internet or through a NAT gateway where it has such."""
        home = next(each for each in self._vpcs if each.name == vpc)
        routes = [Route(home.cidrs[0], Hop.LOCAL)]
        if public and self._is_aws:
            routes.append(Route(WORLD, Hop.INTERNET, self._ref("internet", vpc).native_id))
        if nat:
            routes.append(Route(WORLD, Hop.NAT, self._ref("nat_gateway", nat).native_id))
        table = RouteTable(self._ref("route_table", name), home.ref, tuple(routes))
        self._tables[table.ref] = table
        self._subnets.append(
            Subnet(
                self._ref("subnet", name),
                home.ref,
                (cidr,),
                table.ref,
                self._ref("access_list", vpc) if self._is_aws else None,
                name,
                is_default=home.is_default,
                gives_public_addresses=home.is_default and self._is_aws,
                tags=self._tags(name),
            )
        )

    def group(self, name: str, vpc: str, *rules: NetworkRule, is_default: bool = False) -> None:
        """A group with these ways in, in their order; out of it everything may go."""
        tencent = self.shard.provider == "tencent"
        if self.shard.provider != "alibaba":  # whose groups let everything out unasked
            rules = (*rules, rule("everything", Direction.EGRESS))
        named = tuple(
            replace(
                each,
                rule_id=self._ref("rule", f"{name}/{each.rule_id}").native_id,
                priority=max(each.priority, 1) if self.shard.provider == "alibaba" else 0,  # 1 is its own default
            )
            for each in rules
        )
        self._groups[name] = SecurityGroup(
            self._ref("security_group", name),
            None if tencent else self._ref("vpc", vpc),
            _ORDERS[self.shard.provider],
            in_their_places(named) if tencent else named,
            name,
            is_default and self.shard.provider != "alibaba",  # which has no such thing
            version="3" if tencent else "",
            peers_may_talk=self.shard.provider == "alibaba",
            tags=self._tags(name),
        )

    def machine(
        self, spec: MachineSpec, subnet: str, *groups: str, address: str = "", imds_v1: bool | None = None
    ) -> str:
        """A machine's network card; returns its private address. `address`: a kept public one, bound to it."""
        home = next(each for each in self._subnets if each.name == subnet)
        number = 10 + sum(card.subnet == home.ref for card in self._cards)
        private_ip = f"{home.cidrs[0].rpartition('.')[0]}.{number}"
        self._cards.append(
            NetworkInterface(
                self._ref("interface", spec.name),
                home.vpc,
                home.ref,
                spec.ref,
                (private_ip,),
                ((private_ip, address),) if address else (),
                groups=tuple(self._groups[group].ref.native_id for group in groups),
                primary=True,
            )
        )
        if address:
            kept = spec.ref.sibling("address", made_up_id(spec.cloud, "address", spec.native_id))
            self._keep(kept, spec.name, address, spec.ref)
        if imds_v1 is not None:
            self.imds_v1[spec.ref] = imds_v1
        return private_ip

    def others(self, specs: Iterable[MachineSpec], subnet: str, *groups: str, imds_v1: bool | None = None) -> None:
        """Whichever of these machines has no place yet, without public addresses."""
        placed = {card.instance for card in self._cards}
        for spec in specs:
            if spec.ref not in placed:
                self.machine(spec, subnet, *groups, imds_v1=imds_v1)

    def spare_address(self, name: str, ip: str) -> None:
        """A kept address that is bound to nothing, and paid for."""
        self._keep(self._ref("address", name), name, ip, None)

    def gateway(self, name: str, vpc: str, ip: str, *forwards: Forward) -> None:
        """A NAT gateway with one address."""
        currency, _, hourly = _RATES[self.shard.provider]
        ref = self._ref("nat_gateway", name)
        self._gateways.append(
            NatGateway(
                ref,
                self._ref("vpc", vpc),
                (ip,),
                name,
                self._at - _ALLOCATED,
                forwards=forwards,
                rate=self._rate(Money(hourly, currency)),
                tags=self._tags(name),
            )
        )
        self._keep(self._ref("address", name), name, ip, ref)

    def _keep(self, ref: Ref, name: str, ip: str, bound_to: Ref | None) -> None:
        currency, hourly, _ = _RATES[self.shard.provider]
        paid = bound_to is None or self._is_aws
        self._addresses.append(
            PublicAddress(
                ref,
                ip,
                AddressState.UNATTACHED if bound_to is None else AddressState.IN_USE,
                bound_to,
                name,
                None if self._is_aws else self._at - _ALLOCATED,
                self._rate(Money(hourly, currency)) if paid else None,
                tags=self._tags(name),
            )
        )

    def _rate(self, hourly: Money) -> HourlyRate:
        return HourlyRate(hourly, "world", self._at.date().isoformat())

    def _ref(self, kind: str, name: str) -> Ref:
        return network_ref(self.shard, kind, name)

    def _tags(self, name: str) -> dict[str, str]:
        return {"Name": name} if self._is_aws else {}


def rule(
    name: str,
    direction: Direction = Direction.INGRESS,
    *,
    port: int | None = None,
    peer: str = WORLD,
    priority: int = 0,
) -> NetworkRule:
    """What lets `peer` in (or out) on one port of TCP, or on every one of every protocol."""
    ports = EVERY_PORT if port is None else ((port, port),)
    protocol = "all" if port is None else "tcp"
    return NetworkRule(name, direction, Permission.ALLOW, protocol, ports, (peer,), priority=priority, description=name)


def barred(opened: NetworkRule) -> NetworkRule:
    """The same as a denial."""
    return replace(opened, permission=Permission.DENY)
