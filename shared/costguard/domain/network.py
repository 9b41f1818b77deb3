"""Networks in neutral words: what stands between the internet and an instance, as one shard of an account tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from costguard.domain.money import HourlyRate
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap

EVERY_PORT = ((0, 65535),)


class Direction(str, Enum):
    """Which way a rule speaks of, as its group or access list sees it."""

    INGRESS = "ingress"
    EGRESS = "egress"


class Permission(str, Enum):
    """What a rule does with what it matches."""

    ALLOW = "allow"
    DENY = "deny"


class RuleOrder(str, Enum):
    """How the rules of one list are read.

    `UNION`: whatever any rule allows is allowed, nothing is denied (AWS groups). `PRIORITY`: the lowest priority number
    that matches decides, and of equals a denial (Alibaba Cloud groups). `FIRST_MATCH`: from the top, the first that
    matches decides (Tencent Cloud groups, access lists everywhere).
    """

    UNION = "union"
    PRIORITY = "priority"
    FIRST_MATCH = "first_match"


@dataclass(frozen=True, slots=True)
class NetworkRule:
    """One rule of a group or access list, for one direction.

    `rule_id` is the vendor's id of it, or its number where it has none (Tencent Cloud: the place in its list, right
    only together with the list's `version`). `protocol` is `tcp`, `udp`, `icmp`, `icmpv6`, `all` or the vendor's own
    word; `ports` are ranges, both ends included, empty where the protocol has none or every one is meant: then it is
    `EVERY_PORT` for tcp, udp and all. Of the peers any one matches: `peers` are networks in canonical CIDR form,
    `peer_groups` ids of groups, `unresolved` names of lists whose networks could not be read: they may be anything.
    `priority`: the lower number is read first; the position for `FIRST_MATCH`, 0 for `UNION`. `peer_list`: the id of
    the list that all `peers` are of, where the rule names that and no networks. `cannot_return`: a word for what of it
    an image of it here lacks, so that nothing could put it back as it is; such a rule is never changed.
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
    """A stateful list of rules around interfaces.

    `in_use` is whether anything is in it, None where the cloud does not tell; `referenced_by` ids of groups whose
    rules name it. `is_service_managed`: a service of the cloud keeps it, and refuses changes. `version` as told, for
    clouds that refuse a change to a list that has moved. `peers_may_talk`: members reach one another without a rule.
    """

    ref: ResourceRef
    vpc: ResourceRef | None
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
    """A stateless list of rules around subnets; answers need a rule of their own. What no rule matches is denied."""

    ref: ResourceRef
    vpc: ResourceRef
    rules: tuple[NetworkRule, ...]
    is_default: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


class Hop(str, Enum):
    """What a route leads to.

    `VPN`: a network outside of the cloud or beside this one, by VPN, direct line or transit router. `OTHER`: what is
    known to be none of these, or not known at all.
    """

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
    """Where packets to `destination` (CIDR) go. `active` False: the target is gone, and nothing passes."""

    destination: str
    hop: Hop
    target: str = ""
    active: bool = True


@dataclass(frozen=True, slots=True)
class RouteTable:
    """Routes of a subnet; the longest prefix decides."""

    ref: ResourceRef
    vpc: ResourceRef
    routes: tuple[Route, ...]
    is_main: bool = False


@dataclass(frozen=True, slots=True)
class Subnet:
    """A part of a VPC. `route_table` and `access_list` are those in force, the VPC's own where none is named."""

    ref: ResourceRef
    vpc: ResourceRef
    cidrs: tuple[str, ...]
    route_table: ResourceRef | None
    access_list: ResourceRef | None = None
    name: str = ""
    is_default: bool = False
    gives_public_addresses: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Vpc:
    """A private network. `needs_gateway`: a public address works only with a route to an internet gateway."""

    ref: ResourceRef
    cidrs: tuple[str, ...]
    name: str = ""
    is_default: bool = False
    needs_gateway: bool = True
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NetworkInterface:
    """A network card. `public_ips` pairs a private address with the public one that leads to it (v4).

    `ipv6_public` are its IPv6 addresses that the internet may reach as far as addresses go. `primary` None: not told.
    `unattached`: the cloud says that nothing has it; one without `instance` may still be a gateway's or a service's.
    """

    ref: ResourceRef
    vpc: ResourceRef | None
    subnet: ResourceRef | None
    instance: ResourceRef | None
    private_ips: tuple[str, ...]
    public_ips: tuple[tuple[str, str], ...] = ()
    ipv6_public: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    primary: bool | None = None
    unattached: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


class AddressState(str, Enum):
    """`IN_USE`: bound to something. `UNKNOWN` is never acted on."""

    IN_USE = "in_use"
    UNATTACHED = "unattached"
    CHANGING = "changing"
    UNKNOWN = "unknown"


class Unpriced(str, Enum):
    """Why there is no price of something; only of the first is it known that nothing is billed.

    `FREE_WHILE_BOUND`: as long as it stays bound. `NOT_READ`: the price question failed. `UNLISTED`: no price list that
    is read here tells it. `SHARED`: it is billed together with others (a bandwidth package). `TERM`: paid for a term.
    """

    FREE_WHILE_BOUND = "free_while_bound"
    NOT_READ = "price_not_read"
    UNLISTED = "price_unlisted"
    SHARED = "billed_with_others"
    TERM = "paid_for_a_term"


@dataclass(frozen=True, slots=True)
class PublicAddress:
    """A public address that the account keeps until it releases it.

    `bound_to` is an instance, interface, NAT gateway or balancer. `allocated_at` None: not told. `rate` is what it
    costs as it is now without its traffic, None unknown, and `unpriced` why. `is_prepaid`: paid for a term, cannot be
    released. `protected_by` as the cloud says.
    """

    ref: ResourceRef
    ip: str
    state: AddressState
    bound_to: ResourceRef | None = None
    name: str = ""
    allocated_at: datetime | None = None
    rate: HourlyRate | None = None
    unpriced: Unpriced | None = None
    is_prepaid: bool = False
    is_service_managed: bool = False
    protected_by: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Forward:
    """A port of a public address led to a private one (DNAT). Empty `ports`: every one, unchanged."""

    protocol: str
    public_ip: str
    public_ports: tuple[tuple[int, int], ...]
    private_ip: str
    private_ports: tuple[tuple[int, int], ...]
    rule_id: str = ""


@dataclass(frozen=True, slots=True)
class NatGateway:
    """A way out for private addresses, and by its `forwards` a way in.

    `rate` is what it costs to have it, without what goes through it and without its addresses; `unpriced` as there.
    """

    ref: ResourceRef
    vpc: ResourceRef
    public_ips: tuple[str, ...]
    name: str = ""
    created_at: datetime | None = None
    is_private: bool = False
    forwards: tuple[Forward, ...] = ()
    rate: HourlyRate | None = None
    unpriced: Unpriced | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FlowLog:
    """A record of traffic. `covers`: a VPC, a subnet or an interface; `traffic`: `all`, `accepted` or `rejected`."""

    ref: ResourceRef
    covers: ResourceRef
    active: bool
    traffic: str = "all"


@dataclass(frozen=True, slots=True)
class Peering:
    """Two networks joined. `other_*` is the far end, which may be another account's; its CIDRs where told."""

    ref: ResourceRef
    vpc: ResourceRef
    other_account: str
    other_region: str
    other_vpc: str
    other_cidrs: tuple[str, ...] = ()
    active: bool = True
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NetworkInventory:
    """The networks of one shard as read.

    A gap's `what` names the part that is missing: `vpcs`, `subnets`, `routes`, `groups`, `access_lists`, `interfaces`,
    `addresses`, `nat_gateways`, `flow_logs`, `peerings`; a part with a gap may lack things, and proves nothing absent.
    """

    shard: Shard
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
    gaps: tuple[Gap, ...] = ()

    def lacks(self, *parts: str) -> Gap | None:
        """The first gap in any of these parts, if there is one."""
        return next((gap for gap in self.gaps if gap.what in parts), None)
