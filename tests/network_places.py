"""Short ways to lay out a network: a VPC, a subnet, a group, an instance with its card; the rest is ordinary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from tests import builders

from costguard.domain.network import (
    AccessList,
    AddressState,
    Direction,
    Hop,
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
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind, Instance
from costguard.guards.network.rules import AuditRule, NetworkCheck
from costguard.guards.rules.common import Mode

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
AWS = Shard("aws", "111122223333", "us-east-1")
ALIBABA = Shard("alibaba", "1234567890123456", "cn-hangzhou")
TENCENT = Shard("tencent", "100012345678", "ap-guangzhou")
WORLD = "0.0.0.0/0"
PUBLIC = "203.0.113.7"
LOCAL = Route("10.0.0.0/16", Hop.LOCAL)
OUT = Route(WORLD, Hop.INTERNET, "igw-1")


def ref(kind: str, native_id: str, shard: Shard = AWS) -> ResourceRef:
    return ResourceRef(shard.cloud, shard.account, shard.region, kind, native_id)


def allow(rule_id: str = "sgr-1", *ports: int, **changes: Any) -> NetworkRule:
    """A rule that lets the world in to these ports by TCP; with none, to every port."""
    ranges = tuple((port, port) for port in ports) or ((0, 65535),)
    ordinary = NetworkRule(rule_id, Direction.INGRESS, Permission.ALLOW, "tcp", ports=ranges, peers=(WORLD,))
    return replace(ordinary, **changes)


def deny(rule_id: str, *ports: int, **changes: Any) -> NetworkRule:
    return allow(rule_id, *ports, permission=Permission.DENY, **changes)


def out(rule_id: str, **changes: Any) -> NetworkRule:
    """An entry that lets every answer out."""
    return allow(rule_id, direction=Direction.EGRESS, protocol="all", **changes)


def group(*rules: NetworkRule, native_id: str = "sg-1", shard: Shard = AWS, **changes: Any) -> SecurityGroup:
    orders = {"aws": RuleOrder.UNION, "alibaba": RuleOrder.PRIORITY, "tencent": RuleOrder.FIRST_MATCH}
    ordinary = SecurityGroup(
        ref("security_group", native_id, shard), ref("vpc", "vpc-1", shard), orders[shard.provider], rules
    )
    return replace(ordinary, **changes)


def card(native_id: str = "eni-1", instance: str = "i-1", shard: Shard = AWS, **changes: Any) -> NetworkInterface:
    """The card of an instance, with a public address."""
    ordinary = NetworkInterface(
        ref("interface", native_id, shard),
        ref("vpc", "vpc-1", shard),
        ref("subnet", "subnet-1", shard),
        ref("instance", instance, shard),
        private_ips=("10.0.0.7",),
        public_ips=(("10.0.0.7", PUBLIC),),
        groups=("sg-1",),
    )
    return replace(ordinary, **changes)


def instance(native_id: str = "i-1", shard: Shard = AWS, **changes: Any) -> Instance:
    return builders.instance(native_id, ref=ref("instance", native_id, shard), **changes)


def address(native_id: str = "eip-1", shard: Shard = AWS, **changes: Any) -> PublicAddress:
    """A kept address without use."""
    ordinary = PublicAddress(ref("address", native_id, shard), "203.0.113.9", AddressState.UNATTACHED)
    return replace(ordinary, **changes)


def entries(*rules: NetworkRule, native_id: str = "acl-1", shard: Shard = AWS) -> AccessList:
    return AccessList(ref("access_list", native_id, shard), ref("vpc", "vpc-1", shard), rules)


def place(
    *groups: SecurityGroup,
    cards: Sequence[NetworkInterface] | None = None,
    routes: Sequence[Route] = (LOCAL, OUT),
    listed: AccessList | None = None,
    shard: Shard = AWS,
    needs_gateway: bool | None = None,
    subnet: dict[str, Any] | None = None,
    vpc: dict[str, Any] | None = None,
    **parts: Any,
) -> NetworkInventory:
    """One shard: a VPC with a subnet, its routes, these groups and, unless told otherwise, one card."""
    needs = shard.provider == "aws" if needs_gateway is None else needs_gateway
    table = RouteTable(ref("route_table", "rtb-1", shard), ref("vpc", "vpc-1", shard), tuple(routes))
    ordinary = Subnet(
        ref("subnet", "subnet-1", shard),
        ref("vpc", "vpc-1", shard),
        ("10.0.0.0/24",),
        table.ref,
        None if listed is None else listed.ref,
    )
    return NetworkInventory(
        shard,
        vpcs=(replace(Vpc(ref("vpc", "vpc-1", shard), ("10.0.0.0/16",), needs_gateway=needs), **(vpc or {})),),
        subnets=(replace(ordinary, **(subnet or {})),),
        route_tables=(table,),
        groups=groups,
        access_lists=() if listed is None else (listed,),
        interfaces=(card(shard=shard),) if cards is None else tuple(cards),
        **parts,
    )


def gap(what: str, shard: Shard = AWS) -> Gap:
    return Gap(shard, what, GapKind.DENIED, "not authorised")


def audit(*checks: NetworkCheck, **changes: Any) -> AuditRule:
    """A rule that forbids these, or everything."""
    return replace(AuditRule("gpu-hosts", Mode.OBSERVE, frozenset(checks or NetworkCheck), digest="d"), **changes)
