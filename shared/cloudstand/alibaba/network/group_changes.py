"""The two changes of security groups that the emulator has: rules of the way in are added, and taken away by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

from cloudstand.alibaba.core.errors import FORBIDDEN, NOT_FOUND, ApiError, missing
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.network.groups import group_named
from cloudstand.world.cloud import World
from cloudstand.world.fleet import made_up_rule_id
from cloudstand.world.network.parts import EVERY_PORT, Direction, NetworkRule, Permission, SecurityGroup

_BY = "api"
_WITH_PORTS = ("tcp", "udp")
_PROTOCOLS = (*_WITH_PORTS, "icmp", "icmpv6", "gre", "all")
_HIGHEST_PORT, _LEAST_PRIORITY = 65535, 100


def authorize_security_group(call: ApiCall, world: World) -> Mapping[str, Any]:
    """AuthorizeSecurityGroup, by `Permissions.N`; what is there already is made once. The ids are not answered.

    Raises:
        ApiError: no such group, one of a service, or a rule that cannot be.
    """

    def done() -> Mapping[str, Any]:
        group = _changeable(call, world)
        rules = list(group.rules)
        for number, told in enumerate(call.asked.groups("Permissions")):
            rule = _rule(told, made_up_rule_id(group.ref.native_id, str(len(world.networks.history)), str(number)))
            if not any(_same(rule, each) for each in rules):
                rules.append(rule)
        if len(rules) > len(group.rules):
            world.networks.set_rules(group.ref, rules, world.now, _BY, "authorized")
        return {}

    return call.once(done)


def revoke_security_group(call: ApiCall, world: World) -> Mapping[str, Any]:
    """RevokeSecurityGroup, by `SecurityGroupRuleId.N`.

    Raises:
        ApiError: no such group, one of a service, or no such rule of the way in.
    """

    def done() -> Mapping[str, Any]:
        group, wanted = _changeable(call, world), call.asked.many("SecurityGroupRuleId")
        into = {rule.rule_id for rule in group.rules if rule.direction is Direction.INGRESS}
        if not wanted:
            raise missing("SecurityGroupRuleId")
        if not into.issuperset(wanted):
            message = "The specified SecurityGroupRuleId is not exists."
            raise ApiError("InvalidSecurityGroupRuleId.NotFound", message, NOT_FOUND)
        for rule_id in wanted:
            world.networks.revoke(group.ref, rule_id, world.now, _BY, Direction.INGRESS)
        return {}

    return call.once(done)


def _changeable(call: ApiCall, world: World) -> SecurityGroup:
    group = group_named(call, world)
    if group.is_service_managed:
        message = "The security group is managed by a cloud product."
        raise ApiError("InvalidOperation.ResourceManagedByCloudProduct", message, FORBIDDEN)
    return group


def _rule(told: Mapping[str, Any], rule_id: str) -> NetworkRule:
    protocol = str(told.get("IpProtocol", "")).lower()
    if protocol not in _PROTOCOLS:
        message = "The parameter IpProtocol must be specified with case insensitive TCP, UDP, ICMP, GRE or All."
        raise ApiError("InvalidIpProtocol.ValueNotSupported", message)
    peers, groups = _source(told, protocol)
    priority = str(told.get("Priority", "1"))
    if not priority.isdigit() or not 1 <= int(priority) <= _LEAST_PRIORITY:
        raise ApiError("InvalidPriority.ValueNotSupported", "The specified parameter Priority is invalid.")
    policy = str(told.get("Policy", "accept")).lower()
    if policy not in ("accept", "drop"):
        raise ApiError("InvalidPolicy.Malformed", "The specified parameter Policy is not valid.")
    return NetworkRule(
        rule_id,
        Direction.INGRESS,
        Permission.ALLOW if policy == "accept" else Permission.DENY,
        protocol,
        _ports(str(told.get("PortRange", "")), protocol),
        peers,
        groups,
        priority=int(priority),
        description=str(told.get("Description", "")),
    )


def _source(told: Mapping[str, Any], protocol: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    four, six = str(told.get("SourceCidrIp", "")), str(told.get("Ipv6SourceCidrIp", ""))
    if four and six:
        message = "The Parameters SourceCidrIp and Ipv6SourceCidrIp in Permissions cannot be set at the same time."
        raise ApiError("InvalidParam.SourceIp", message)
    if (six and protocol == "icmp") or (four and protocol == "icmpv6"):
        raise ApiError("InvalidParam.Ipv4ProtocolConflictWithIpv6Address", "The protocol is of the other IP version.")
    if four or six:
        try:
            network = ip_network(four or six, strict=False)
        except ValueError as err:
            raise ApiError("InvalidParam.SourceCidrIp", "The specified parameter SourceCidrIp is not valid.") from err
        return (str(network),), ()
    if told.get("SourceGroupId"):
        return (), (str(told["SourceGroupId"]),)
    message = "One of the parameters SourceCidrIp, Ipv6SourceCidrIp, SourceGroupId or SourcePrefixListId must be there."
    raise ApiError("MissingParameter.Source", message)


def _ports(told: str, protocol: str) -> tuple[tuple[int, int], ...]:
    first, slash, last = told.partition("/")
    if protocol not in _WITH_PORTS:
        if told != "-1/-1":
            raise _no_ports()
        return EVERY_PORT if protocol == "all" else ()
    if not (slash and first.isdigit() and last.isdigit() and 1 <= int(first) <= int(last) <= _HIGHEST_PORT):
        raise _no_ports()
    return EVERY_PORT if (int(first), int(last)) == (1, _HIGHEST_PORT) else ((int(first), int(last)),)


def _no_ports() -> ApiError:
    message = "The specified parameter PortRange is not valid. It should be two integers less than 65535 in ?/? format."
    return ApiError("InvalidParam.PortRange", message)


def _same(rule: NetworkRule, other: NetworkRule) -> bool:
    """Priority is part of a rule here, its words are not."""
    return replace(rule, rule_id="", description="") == replace(other, rule_id="", description="")
