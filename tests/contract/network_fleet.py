"""One shard of each cloud with everything a network audit looks at, for the contract suites and whoever builds a wire.

Every part is written in neutral words and only as its vendor can have it: no NAT gateway of AWS forwards a port, no
group of AWS denies. Addresses are of the blocks kept for examples, which `ipaddress` does not call global.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from tests.world_ports.translate import to_product, to_world

from cloudstand.fleets import (
    ALIBABA_ACCOUNT,
    EAST,
    GUANGZHOU,
    HANGZHOU,
    PRODUCT,
    RESEARCH,
    TENCENT_ACCOUNT,
    alibaba_machine,
    aws_machine,
    tencent_machine,
)
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec, made_up_id
from cloudstand.world.network.names import network_ref
from cloudstand.world.network.networks import Networks, in_their_places
from costguard.domain.network import (
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
    Peering,
    Permission,
    PublicAddress,
    Route,
    RouteTable,
    RuleOrder,
    SecurityGroup,
    Subnet,
    Vpc,
)
from costguard.domain.refs import ResourceRef, Shard, provider_of

WORLD_V4, WORLD_V6 = "0.0.0.0/0", "::/0"
NOTEBOOK, TRAINER, LEGACY, SERVED = "notebook", "trainer", "legacy", "served"
"""Machines: with a kept address and open ports; private behind an open group; in the default VPC with a plain public
address; private, and led to by a NAT gateway's forward where the cloud has such."""
DEFAULT, TRAINING = "default", "training"
"""VPCs."""
PUBLIC, PRIVATE = "public", "private"
"""Subnets of `TRAINING`; the one of the default VPC is called `DEFAULT`."""
OPEN, WIDE, NARROW, ORDERED, MEMBERS, UNUSED = "open", "wide", "narrow", "ordered", "members", "unused"
"""Security groups, beside the one called `DEFAULT`."""
SPARE, NAT, IDLE_NAT = "spare", "nat", "idle-nat"
"""An unattached address; gateways, each with an address of its name."""

_ACCOUNTS = {
    "aws": (RESEARCH, EAST),
    "alibaba": (ALIBABA_ACCOUNT, HANGZHOU),
    "tencent": (TENCENT_ACCOUNT, GUANGZHOU),
}
_OTHER_ACCOUNT = {"aws": PRODUCT, "alibaba": "1234567890654321", "tencent": "100087654321"}
_DAY = timedelta(days=1)
_IN, _OUT = Direction.INGRESS, Direction.EGRESS
_ALLOW, _DENY = Permission.ALLOW, Permission.DENY
_CIDR, _DEFAULT_CIDR, _FAR_CIDR = "10.20.0.0/16", "172.31.0.0/16", "10.90.0.0/16"
_V6_VPC, _V6_PUBLIC, _V6_NOTEBOOK = "2001:db8:20::/56", "2001:db8:20::/64", "2001:db8:20::10"


@dataclass(frozen=True)
class NetworkFleet:
    """A shard as it begins: its machines, its networks, and whether metadata answers without a token (where told)."""

    machines: Mapping[str, MachineSpec]
    networks: NetworkInventory
    imds_v1: Mapping[ResourceRef, bool] = field(default_factory=dict)

    @property
    def shard(self) -> Shard:
        """The region of the account."""
        return self.networks.shard

    def ref(self, kind: str, name: str) -> ResourceRef:
        """What the part of this kind and name is called; a machine by its name, of kind `instance`."""
        if kind == "instance":
            return to_product(self.machines[name].ref)
        if kind == "address":
            return next(each.ref for each in self.networks.addresses if each.name == name)
        return to_product(network_ref(to_world(self.shard), kind, name))

    def world(self, at: datetime) -> World:
        """A world that begins so."""
        made = World(self.machines.values(), at)
        self.place(made)
        return made

    def place(self, world: World) -> None:
        """The networks and settings anew, in a world that has the machines; whatever was changed is as it began."""
        networks = Networks([to_world(self.networks)])
        networks.imds_v1.update(to_world(self.imds_v1))
        world.networks = networks


def network_fleet(cloud: str, at: datetime) -> NetworkFleet:
    """The shard of this cloud as it is at `at`."""
    account, region = _ACCOUNTS[provider_of(cloud)]
    made = _Fleet(Shard(cloud, account, region), at)
    return NetworkFleet(made.machines, made.networks(), made.imds())


class _Fleet:
    """What is made while it is written down."""

    def __init__(self, shard: Shard, at: datetime) -> None:
        self.shard, self.at, self.provider = shard, at, shard.provider
        self.is_aws = self.provider == "aws"
        self.machines = {
            NOTEBOOK: self._machine(NOTEBOOK, kept_address=True, public_ip="203.0.113.10"),
            TRAINER: self._machine(TRAINER),
            LEGACY: self._machine(LEGACY, public_ip="203.0.113.20"),
            SERVED: self._machine(SERVED),
        }

    def imds(self) -> dict[ResourceRef, bool]:
        """AWS and Alibaba Cloud tell it of every machine."""
        if self.provider == "tencent":
            return {}
        return {to_product(spec.ref): name == NOTEBOOK for name, spec in self.machines.items()}

    def networks(self) -> NetworkInventory:
        return NetworkInventory(
            self.shard,
            vpcs=self._vpcs(),
            subnets=self._subnets(),
            route_tables=self._route_tables(),
            groups=self._groups(),
            access_lists=self._access_lists(),
            interfaces=self._interfaces(),
            addresses=self._addresses(),
            nat_gateways=self._gateways(),
            flow_logs=(FlowLog(self._ref("flow_log", "flows"), self._logged(), active=True),),
            peerings=(self._peering(),),
        )

    def _machine(self, name: str, **more: Any) -> MachineSpec:
        begun = self.at - 40 * _DAY
        account, region = self.shard.account, self.shard.region
        if self.is_aws:
            more = {"account": account, "region": region, "zone": f"{region}a", **more}
            return aws_machine(name, "g5.xlarge", does.busy(), begun, **more)
        made = alibaba_machine if self.provider == "alibaba" else tencent_machine
        return made(name, does.busy(), begun, account=account, region=region, cloud=self.shard.cloud, **more)

    def _ref(self, kind: str, name: str) -> ResourceRef:
        return to_product(network_ref(to_world(self.shard), kind, name))

    def _tags(self, name: str, **tags: str) -> dict[str, str]:
        """On AWS a name is a tag."""
        return {"Name": name, **tags} if self.is_aws else tags

    def _vpcs(self) -> tuple[Vpc, ...]:
        def made(name: str, *cidrs: str, **tags: str) -> Vpc:
            return Vpc(
                self._ref("vpc", name),
                cidrs,
                name=name,
                is_default=name == DEFAULT,
                needs_gateway=self.is_aws,
                tags=self._tags(name, **tags),
            )

        return (made(DEFAULT, _DEFAULT_CIDR), made(TRAINING, _CIDR, _V6_VPC, team="research"))

    def _subnets(self) -> tuple[Subnet, ...]:
        def made(name: str, vpc: str, table: str, *cidrs: str, **more: Any) -> Subnet:
            return Subnet(
                self._ref("subnet", name),
                self._ref("vpc", vpc),
                cidrs,
                self._ref("route_table", table),
                name=name,
                tags=self._tags(name, **more.pop("tags", {})),
                **more,
            )

        aws_list = self._ref("access_list", TRAINING) if self.is_aws else None
        default_list = self._ref("access_list", DEFAULT) if self.is_aws else None
        return (
            made(
                DEFAULT,
                DEFAULT,
                DEFAULT,
                "172.31.0.0/20",
                is_default=True,
                access_list=default_list,
                gives_public_addresses=self.is_aws,
            ),
            made(PUBLIC, TRAINING, PUBLIC, "10.20.1.0/24", _V6_PUBLIC, access_list=aws_list, tags={"tier": "front"}),
            made(PRIVATE, TRAINING, TRAINING, "10.20.2.0/24", access_list=self._ref("access_list", "fence")),
        )

    def _route_tables(self) -> tuple[RouteTable, ...]:
        local = Route(_CIDR, Hop.LOCAL), Route(_V6_VPC, Hop.LOCAL)
        internet = self._ref("internet", TRAINING).native_id
        gone = (Route("10.99.0.0/16", Hop.PEERING, self._ref("peering", "gone").native_id, active=False),)
        front = [*local]
        if self.is_aws:
            front += [Route(WORLD_V4, Hop.INTERNET, internet), Route(WORLD_V6, Hop.INTERNET, internet), *gone]
        elif self.provider == "alibaba":
            front += [Route(WORLD_V6, Hop.INTERNET, internet)]
        behind = (
            *local,
            Route(WORLD_V4, Hop.NAT, self._ref("nat_gateway", NAT).native_id),
            Route(_FAR_CIDR, Hop.PEERING, self._ref("peering", "partners").native_id),
        )
        default = [Route(_DEFAULT_CIDR, Hop.LOCAL)]
        if self.is_aws:
            default.append(Route(WORLD_V4, Hop.INTERNET, self._ref("internet", DEFAULT).native_id))
        training = self._ref("vpc", TRAINING)
        return (
            RouteTable(self._ref("route_table", DEFAULT), self._ref("vpc", DEFAULT), tuple(default), is_main=True),
            RouteTable(self._ref("route_table", TRAINING), training, behind, is_main=True),
            RouteTable(self._ref("route_table", PUBLIC), training, tuple(front)),
        )

    def _groups(self) -> tuple[SecurityGroup, ...]:
        everything: dict[str, Any] = {"protocol": "all", "ports": EVERY_PORT[0]}
        home = self._ref("security_group", DEFAULT).native_id
        let_in = self._ref("security_group", OPEN).native_id
        return (
            self._group(
                DEFAULT,
                [self._rule("members", peer_groups=(home,), **everything), self._rule("all", WORLD_V4, **everything)],
                vpc=DEFAULT,
                is_default=self.provider != "alibaba",
                referenced_by=(home,),
            ),
            self._group(
                OPEN,
                [
                    self._rule("ssh", WORLD_V4, 22, description="from anywhere"),
                    self._rule("jupyter", WORLD_V4, 8888),
                    self._rule("jupyter-v6", WORLD_V6, 8888),
                ],
                referenced_by=(self._ref("security_group", MEMBERS).native_id,),
                tags={"owner": "vision"},
            ),
            self._group(WIDE, [self._rule("wide", "198.0.0.0/8", (1000, 9000))]),
            self._group(
                NARROW,
                [self._rule("office", "198.51.100.0/24", 22), self._rule("vpn", "2001:db8:77::/48", 500, "udp")],
            ),
            self._group(ORDERED, self._ordered()),
            self._group(MEMBERS, [self._rule("metrics", None, 9400, peer_groups=(let_in,))]),
            self._group(UNUSED, [self._rule("desktop", WORLD_V4, 3389)], in_use=False),
        )

    def _ordered(self) -> list[NetworkRule]:
        """22 is open and 8888 is not, by this cloud's own order; on AWS both ports are somebody's."""
        ssh, jupyter = self._rule("ordered-ssh", WORLD_V4, 22), self._rule("ordered-jupyter", WORLD_V4, 8888)
        barred_ssh = replace(self._rule("barred-ssh", WORLD_V4, 22), permission=_DENY)
        barred = replace(self._rule("barred-jupyter", WORLD_V4, 8888), permission=_DENY)
        if self.is_aws:
            return [self._rule("ordered-ssh", "192.0.2.0/24", 22), self._rule("ordered-jupyter", "192.0.2.0/24", 8888)]
        if self.provider == "alibaba":  # of equals the denial
            return [
                replace(ssh, priority=10),
                replace(barred_ssh, priority=11),
                replace(jupyter, priority=50),
                replace(barred, priority=50),
            ]
        return [ssh, barred, barred_ssh, jupyter]

    def _rule(
        self, name: str, peer: str | None = None, ports: int | tuple[int, int] = 0, protocol: str = "tcp", **more: Any
    ) -> NetworkRule:
        span = ports if isinstance(ports, tuple) else (ports, ports)
        return NetworkRule(
            **{
                "rule_id": self._ref("rule", name).native_id,
                "direction": _IN,
                "permission": _ALLOW,
                "protocol": protocol,
                "ports": (span,),
                "peers": () if peer is None else (peer,),
                "priority": 1 if self.provider == "alibaba" else 0,
                **more,
            }
        )

    def _group(
        self,
        name: str,
        rules: list[NetworkRule],
        *,
        vpc: str = TRAINING,
        in_use: bool = True,
        tags: dict[str, str] | None = None,
        **more: Any,
    ) -> SecurityGroup:
        order = {"aws": RuleOrder.UNION, "alibaba": RuleOrder.PRIORITY, "tencent": RuleOrder.FIRST_MATCH}[self.provider]
        out = self._rule(f"{name}-out", WORLD_V4, protocol="all", ports=(0, 65535), direction=_OUT)
        whole = rules if self.provider == "alibaba" else [*rules, out]  # whose groups let everything out unasked
        tencent = self.provider == "tencent"
        return SecurityGroup(
            self._ref("security_group", name),
            None if tencent else self._ref("vpc", vpc),  # a group of Tencent Cloud is of a region
            order,
            to_product(in_their_places(to_world(whole))) if tencent else tuple(whole),
            name=name,
            in_use=in_use,
            version="7" if tencent else "",
            peers_may_talk=self.provider == "alibaba",
            tags=self._tags(name, **(tags or {})),
            **more,
        )

    def _access_lists(self) -> tuple[AccessList, ...]:
        training = self._ref("vpc", TRAINING)
        fence = (
            self._entry(90, _IN, _DENY, WORLD_V4, 22),
            self._entry(100, _IN, _ALLOW, WORLD_V4),
            self._entry(100, _OUT, _ALLOW, WORLD_V4),
        )
        own = AccessList(self._ref("access_list", "fence"), training, self._placed(fence), tags=self._tags("fence"))
        if not self.is_aws:
            return (own,)
        both = (self._entry(100, _IN, _ALLOW, WORLD_V4), self._entry(100, _OUT, _ALLOW, WORLD_V4))
        six = (self._entry(101, _IN, _ALLOW, WORLD_V6), self._entry(101, _OUT, _ALLOW, WORLD_V6))
        return (
            AccessList(self._ref("access_list", DEFAULT), self._ref("vpc", DEFAULT), both, is_default=True),
            AccessList(self._ref("access_list", TRAINING), training, (*both, *six), is_default=True),
            own,
        )

    def _entry(
        self, number: int, direction: Direction, permission: Permission, peer: str, port: int = 0
    ) -> NetworkRule:
        """AWS numbers entries, and the number is all the id there is; its last, `*`, is in no list of ours."""
        return NetworkRule(
            str(number),
            direction,
            permission,
            "tcp" if port else "all",
            ((port, port),) if port else EVERY_PORT,
            (peer,),
            priority=number,
        )

    def _placed(self, rules: tuple[NetworkRule, ...]) -> tuple[NetworkRule, ...]:
        if self.is_aws:
            return rules
        placed: tuple[NetworkRule, ...] = to_product(in_their_places(to_world(rules)))
        return tuple(
            replace(rule, rule_id=self._ref("entry", f"{rule.direction.value}-{rule.rule_id}").native_id)
            for rule in placed
        )

    def _interfaces(self) -> tuple[NetworkInterface, ...]:
        def made(name: str, subnet: str, private_ip: str, *groups: str, **more: Any) -> NetworkInterface:
            public_ip = self.machines[name].public_ip
            return NetworkInterface(
                self._ref("interface", name),
                self._ref("vpc", DEFAULT if subnet == DEFAULT else TRAINING),
                self._ref("subnet", subnet),
                to_product(self.machines[name].ref),
                (private_ip,),
                public_ips=((private_ip, public_ip),) if public_ip else (),
                groups=tuple(self._ref("security_group", group).native_id for group in groups),
                primary=True,
                **more,
            )

        cards = (
            made(NOTEBOOK, PUBLIC, "10.20.1.10", OPEN, ipv6_public=(_V6_NOTEBOOK,)),
            made(TRAINER, PRIVATE, "10.20.2.10", OPEN, NARROW),
            made(LEGACY, DEFAULT, "172.31.0.10", DEFAULT),
            made(SERVED, PRIVATE, "10.20.2.20", WIDE, ORDERED, MEMBERS),
        )
        return (*cards, *(self._gateway_card(name) for name in (NAT, IDLE_NAT))) if self.is_aws else cards

    def _gateway_card(self, name: str) -> NetworkInterface:
        """AWS shows the cards of its gateways among all others."""
        private_ip = "10.20.1.200" if name == NAT else "10.20.1.201"
        return NetworkInterface(
            self._ref("interface", name),
            self._ref("vpc", TRAINING),
            self._ref("subnet", PUBLIC),
            None,
            (private_ip,),
            public_ips=((private_ip, _NAT_IPS[name]),),
            primary=None,
        )

    def _addresses(self) -> tuple[PublicAddress, ...]:
        told = None if self.is_aws else self.at - 30 * _DAY  # DescribeAddresses tells no time

        def made(name: str, ip: str, bound_to: ResourceRef | None, **tags: str) -> PublicAddress:
            return PublicAddress(
                self._ref("address", name),
                ip,
                AddressState.UNATTACHED if bound_to is None else AddressState.IN_USE,
                bound_to,
                name=name,
                allocated_at=told,
                tags=self._tags(name, **tags),
            )

        notebook = self.machines[NOTEBOOK].ref
        kept = notebook.sibling("address", made_up_id(self.shard.cloud, "address", notebook.native_id))
        return (
            replace(made(NOTEBOOK, "203.0.113.10", to_product(notebook)), ref=to_product(kept)),
            made(SPARE, "203.0.113.30", None, owner="speech"),
            *(made(name, ip, self._ref("nat_gateway", name)) for name, ip in _NAT_IPS.items()),
        )

    def _gateways(self) -> tuple[NatGateway, ...]:
        forward = Forward("tcp", _NAT_IPS[NAT], ((8022, 8022),), "10.20.2.20", ((22, 22),), "")
        if self.provider == "alibaba":
            forward = replace(forward, rule_id=self._ref("forward", NAT).native_id)
        return tuple(
            NatGateway(
                self._ref("nat_gateway", name),
                self._ref("vpc", TRAINING),
                (ip,),
                name=name,
                created_at=self.at - 50 * _DAY,
                forwards=(forward,) if name == NAT and not self.is_aws else (),
                tags=self._tags(name),
            )
            for name, ip in _NAT_IPS.items()
        )

    def _logged(self) -> ResourceRef:
        """New flow logs of Tencent Cloud are of interfaces, not VPCs."""
        return self._ref("interface", NOTEBOOK) if self.provider == "tencent" else self._ref("vpc", TRAINING)

    def _peering(self) -> Peering:
        return Peering(
            self._ref("peering", "partners"),
            self._ref("vpc", TRAINING),
            _OTHER_ACCOUNT[self.provider],
            self.shard.region,
            network_ref(to_world(self.shard), "vpc", "partners").native_id,
            () if self.provider == "tencent" else (_FAR_CIDR,),
            tags=self._tags("partners"),
        )


_NAT_IPS = {NAT: "203.0.113.40", IDLE_NAT: "203.0.113.50"}
