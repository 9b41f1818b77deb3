"""What a network is made of, as it really is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from cloudstand.world.money import HourlyRate
from cloudstand.world.places import Place, Ref

EVERY_PORT = ((0, 65535),)


class Direction(str, Enum):
    """Which way a rule speaks of."""

    INGRESS = "ingress"
    EGRESS = "egress"


class Permission(str, Enum):
    """What a rule does with what it matches."""

    ALLOW = "allow"
    DENY = "deny"


class RuleOrder(str, Enum):
    """How the rules of one list are read.

    `UNION`: whatever any rule allows is allowed (AWS groups). `PRIORITY`: the lowest number that matches decides, of
    equals a denial (Alibaba Cloud groups). `FIRST_MATCH`: the first from the top (Tencent Cloud groups, access lists).
    """

    UNION = "union"
    PRIORITY = "priority"
    FIRST_MATCH = "first_match"


@dataclass(frozen=True, slots=True)
class NetworkRule:
    """One rule of a group or access list, for one direction.

    `ports` are ranges, both ends included. `peers` are networks, `peer_groups` ids of groups, `peer_list` the id of
    the list that all `peers` are of, `unresolved` names of lists that nobody resolves. `cannot_return`: a word for what
    of it these fields lack.
    """

    rule_id: str
    direction: Direction
    permission: Permission
    protocol: str
    ports: tuple[tuple[int, int], ...] = EVERY_PORT
    peers: tuple[str, ...] = ()
    peer_groups: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    priority: int = 0
    description: str = ""
    peer_list: str = ""
    cannot_return: str = ""


@dataclass(frozen=True, slots=True)
class SecurityGroup:
    """A stateful list of rules around interfaces. `version` counts its changes where the cloud tells that."""

    ref: Ref
    vpc: Ref | None
    order: RuleOrder
    rules: tuple[NetworkRule, ...]
    name: str = ""
    is_default: bool = False
    in_use: bool | None = None
    referenced_by: tuple[str, ...] = ()
    is_service_managed: bool = False
    version: str = ""
    peers_may_talk: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AccessList:
    """A stateless list of rules around subnets."""

    ref: Ref
    vpc: Ref
    rules: tuple[NetworkRule, ...]
    is_default: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


class Hop(str, Enum):
    """What a route leads to."""

    LOCAL = "local"
    INTERNET = "internet"
    EGRESS_ONLY = "egress_only"
    NAT = "nat"
    PEERING = "peering"
    VPN = "vpn"
    INSTANCE = "instance"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Route:
    """Where packets to `destination` (CIDR) go. `active` False: the target is gone."""

    destination: str
    hop: Hop
    target: str = ""
    active: bool = True


@dataclass(frozen=True, slots=True)
class RouteTable:
    """Routes of a subnet."""

    ref: Ref
    vpc: Ref
    routes: tuple[Route, ...]
    is_main: bool = False


@dataclass(frozen=True, slots=True)
class Subnet:
    """A part of a VPC."""

    ref: Ref
    vpc: Ref
    cidrs: tuple[str, ...]
    route_table: Ref | None
    access_list: Ref | None = None
    name: str = ""
    is_default: bool = False
    gives_public_addresses: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Vpc:
    """A private network. `needs_gateway`: a public address works only with a route to an internet gateway."""

    ref: Ref
    cidrs: tuple[str, ...]
    name: str = ""
    is_default: bool = False
    needs_gateway: bool = True
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NetworkInterface:
    """A network card. `public_ips` pairs a private address with the public one that leads to it (v4)."""

    ref: Ref
    vpc: Ref | None
    subnet: Ref | None
    instance: Ref | None
    private_ips: tuple[str, ...]
    public_ips: tuple[tuple[str, str], ...] = ()
    ipv6_public: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    primary: bool | None = None
    unattached: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


class AddressState(str, Enum):
    """What a kept address is doing."""

    IN_USE = "in_use"
    UNATTACHED = "unattached"
    CHANGING = "changing"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PublicAddress:
    """A public address that the account keeps until it releases it; `rate` is what it costs as it is now."""

    ref: Ref
    ip: str
    state: AddressState
    bound_to: Ref | None = None
    name: str = ""
    allocated_at: datetime | None = None
    rate: HourlyRate | None = None
    is_prepaid: bool = False
    is_service_managed: bool = False
    protected_by: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Forward:
    """A port of a public address led to a private one (DNAT). Empty `ports`: every one."""

    protocol: str
    public_ip: str
    public_ports: tuple[tuple[int, int], ...]
    private_ip: str
    private_ports: tuple[tuple[int, int], ...]
    rule_id: str = ""


@dataclass(frozen=True, slots=True)
class NatGateway:
    """A way out for private addresses, and by its `forwards` a way in."""

    ref: Ref
    vpc: Ref
    public_ips: tuple[str, ...]
    name: str = ""
    created_at: datetime | None = None
    is_private: bool = False
    forwards: tuple[Forward, ...] = ()
    rate: HourlyRate | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FlowLog:
    """A record of traffic. `covers`: a VPC, a subnet or an interface; `traffic`: `all`, `accepted` or `rejected`."""

    ref: Ref
    covers: Ref
    active: bool
    traffic: str = "all"


@dataclass(frozen=True, slots=True)
class Peering:
    """Two networks joined. `other_*` is the far end, which may be another account's."""

    ref: Ref
    vpc: Ref
    other_account: str
    other_region: str
    other_vpc: str
    other_cidrs: tuple[str, ...] = ()
    active: bool = True
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NetworkInventory:
    """The networks of one region of an account."""

    shard: Place
    vpcs: tuple[Vpc, ...] = ()
    subnets: tuple[Subnet, ...] = ()
    route_tables: tuple[RouteTable, ...] = ()
    groups: tuple[SecurityGroup, ...] = ()
    access_lists: tuple[AccessList, ...] = ()
    interfaces: tuple[NetworkInterface, ...] = ()
    addresses: tuple[PublicAddress, ...] = ()
    nat_gateways: tuple[NatGateway, ...] = ()
    flow_logs: tuple[FlowLog, ...] = ()
    peerings: tuple[Peering, ...] = ()
