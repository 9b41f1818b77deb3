"""Changes of one security group's rules: any of them gives the list a new version, and every rule below a new place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

from cloudstand.tencent.compute.changes import BY
from cloudstand.tencent.core.asking import Answer, Asked
from cloudstand.tencent.core.errors import ApiError, bad_value, missing, not_modelled
from cloudstand.tencent.network.groups import SIDES, group_of, rules_of
from cloudstand.world.network.parts import EVERY_PORT, Direction, NetworkRule, Permission, SecurityGroup

_MOST = 100  # rules of a direction
_PORTED = frozenset({"tcp", "udp"})
_EXCLUSIVE = ("CidrBlock", "Ipv6CidrBlock", "SecurityGroupId", "AddressTemplate")


def create_security_group_policies(asked: Asked) -> Answer:
    """CreateSecurityGroupPolicies: at one place, 0 for the top and none for the end."""
    group, direction, policies = _asked_of(asked)
    rules = rules_of(group, direction)
    places = {policy.get("PolicyIndex") for policy in policies}
    if len(places) > 1:
        raise bad_value("PolicyIndex", "those of one request must be the same")
    place = places.pop()
    if place is not None and place > len(rules):
        raise bad_value("PolicyIndex", f"there are {len(rules)} rules")
    made = [_rule(direction, policy) for policy in policies]
    _refuse_twins(rules, made)
    if len(rules) + len(made) > _MOST:
        raise ApiError("LimitExceeded.SecurityGroupPolicySet", f"more than {_MOST} rules.", "安全组规则数量超过上限。")
    at = len(rules) if place is None else place
    return _put(asked, group, direction, [*rules[:at], *made, *rules[at:]], f"created {len(made)} rules")


def replace_security_group_policy(asked: Asked) -> Answer:
    """ReplaceSecurityGroupPolicy: one rule, in its place."""
    group, direction, policies = _asked_of(asked)
    if len(policies) != 1:
        raise bad_value("SecurityGroupPolicySet", "one rule can be replaced")
    rules = rules_of(group, direction)
    place = _place(policies[0], rules)
    made = _rule(direction, policies[0])
    _refuse_twins([rule for number, rule in enumerate(rules) if number != place], [made])
    return _put(asked, group, direction, [*rules[:place], made, *rules[place + 1 :]], f"replaced {place}")


def delete_security_group_policies(asked: Asked) -> Answer:
    """DeleteSecurityGroupPolicies: by their places, or by what they say, not by both."""
    group, direction, policies = _asked_of(asked)
    rules = rules_of(group, direction)
    by_place = [policy for policy in policies if "PolicyIndex" in policy]
    if by_place and len(by_place) != len(policies):
        raise ApiError("InvalidParameter.Coexist", "places and rules exclude each other.", "参数不支持同时指定。")
    if by_place:
        gone = {_place(policy, rules) for policy in policies}
    else:
        wanted = [_rule(direction, policy) for policy in policies]
        gone = {number for number, rule in enumerate(rules) if any(_twins(rule, each) for each in wanted)}
        if len(gone) < len(wanted):
            raise ApiError("ResourceNotFound", "there is no such rule.", "资源不存在。")
    left = [rule for number, rule in enumerate(rules) if number not in gone]
    return _put(asked, group, direction, left, f"deleted {sorted(gone)}")


def _asked_of(asked: Asked) -> tuple[SecurityGroup, Direction, Sequence[Mapping[str, Any]]]:
    """The group, the direction and the rules of a request that is about the present version.

    Raises:
        ApiError: it is not, or names two directions or none.
    """
    group = group_of(asked)
    said = asked.parameters["SecurityGroupPolicySet"]
    sides = [key for key in SIDES if said.get(key)]
    if len(sides) > 1:
        raise ApiError("InvalidParameter.Coexist", "one direction at a time.", "一次请求中只能操作单个方向的规则。")
    if not sides:
        raise missing("SecurityGroupPolicySet.Ingress")
    if "Version" in said and said["Version"] != group.version:
        raise ApiError(
            "UnsupportedOperation.VersionMismatch",
            f"the version {said['Version']} is not the latest.",
            "指定安全组规则版本号和当前最新版本不一致。",
        )
    return group, SIDES[sides[0]], said[sides[0]]


def _put(asked: Asked, group: SecurityGroup, direction: Direction, rules: Sequence[NetworkRule], what: str) -> Answer:
    others = {each: rules_of(group, each) for each in Direction}
    others[direction] = list(rules)
    asked.world.networks.set_rules(
        group.ref, [*others[Direction.INGRESS], *others[Direction.EGRESS]], asked.now, BY, what
    )
    return {}


def _place(policy: Mapping[str, Any], rules: Sequence[NetworkRule]) -> int:
    if "PolicyIndex" not in policy:
        raise missing("PolicyIndex")
    place: int = policy["PolicyIndex"]
    if place >= len(rules):
        raise bad_value("PolicyIndex", f"there are {len(rules)} rules")
    return place


def _rule(direction: Direction, policy: Mapping[str, Any]) -> NetworkRule:
    """One rule as it was written; what is not said of the peer is refused, and so is a port where there can be none."""
    if policy.get("ServiceTemplate"):
        raise not_modelled("ServiceTemplate")
    said = [key for key in _EXCLUSIVE if policy.get(key)]
    if len(said) != 1:
        raise ApiError("InvalidParameter.Coexist", f"one of {', '.join(_EXCLUSIVE)}.", "参数不支持同时指定。")
    if "Protocol" not in policy or "Action" not in policy:
        raise missing("Protocol" if "Protocol" not in policy else "Action")
    protocol = policy["Protocol"].lower()
    template = policy.get("AddressTemplate") or {}
    named = template.get("AddressId") or template.get("AddressGroupId")
    cidr = policy.get("CidrBlock") or policy.get("Ipv6CidrBlock")
    return NetworkRule(
        rule_id="",
        direction=direction,
        permission=Permission.ALLOW if policy["Action"].upper() == "ACCEPT" else Permission.DENY,
        protocol=protocol,
        ports=_ports(protocol, policy.get("Port", "")),
        peers=(_network(cidr, policy),) if cidr else (),
        peer_groups=(policy["SecurityGroupId"],) if policy.get("SecurityGroupId") else (),
        unresolved=(named,) if named else (),
        description=policy.get("PolicyDescription", ""),
    )


def _network(cidr: str, policy: Mapping[str, Any]) -> str:
    try:
        network = ip_network(cidr, strict=False)
    except ValueError as err:
        raise bad_value("CidrBlock", "it is no network", "InvalidParameterValue.Malformed") from err
    six = network.version == 6  # noqa: PLR2004 - IP's own number
    if six != bool(policy.get("Ipv6CidrBlock")):
        raise bad_value("CidrBlock", "it is of the other family", "InvalidParameterValue.Malformed")
    return str(network)


def _ports(protocol: str, said: str) -> tuple[tuple[int, int], ...]:
    word = said.lower()
    if protocol not in _PORTED:
        if word not in {"", "all"}:
            raise bad_value("Port", f"{protocol} has none")
        return EVERY_PORT if protocol == "all" else ()
    if word in {"", "all"}:
        return EVERY_PORT
    try:
        spans = [[int(number) for number in part.split("-")] for part in word.split(",")]
    except ValueError as err:
        raise bad_value("Port", "it is no port", "InvalidParameterValue.Malformed") from err
    return tuple((span[0], span[-1]) for span in spans)


def _twins(rule: NetworkRule, other: NetworkRule) -> bool:
    bare = [replace(each, rule_id="", priority=0, description="") for each in (rule, other)]
    return bare[0] == bare[1]


def _refuse_twins(rules: Sequence[NetworkRule], made: Sequence[NetworkRule]) -> None:
    for number, each in enumerate(made):
        if any(_twins(each, other) for other in (*rules, *made[:number])):
            raise ApiError("UnsupportedOperation.DuplicatePolicy", "there is such a rule.", "安全组规则重复。")
