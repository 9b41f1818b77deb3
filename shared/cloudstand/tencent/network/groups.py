"""VPC's security groups: lists, rules from the top with the list's version, and parameter templates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from cloudstand.tencent.core.asking import Answer, Asked, page
from cloudstand.tencent.core.errors import ApiError
from cloudstand.tencent.network.vpcs import COMMON, MADE_AT, described, inventory, tag_set, written_ports
from cloudstand.world.network.parts import Direction, NetworkRule, Permission, SecurityGroup

SIDES = {"Ingress": Direction.INGRESS, "Egress": Direction.EGRESS}
_NO_PORTS_OR_ALL = ("ALL", "ALL")


def describe_security_groups(asked: Asked) -> Answer:
    """DescribeSecurityGroups."""
    entries = map(_group, inventory(asked).groups)
    by = {key: compare for key, compare in COMMON.items() if key != "vpc-id"}
    by["security-group-name"] = lambda entry: [entry["SecurityGroupName"]]
    by["project-id"] = lambda entry: [entry["ProjectId"]]
    return described(asked, "SecurityGroupSet", entries, ids="SecurityGroupIds", id_key="SecurityGroupId", by=by)


def describe_security_group_association_statistics(asked: Asked) -> Answer:
    """DescribeSecurityGroupAssociationStatistics: how many things are in each group, and how many groups name it."""
    wanted = set(asked.parameters["SecurityGroupIds"])
    here = inventory(asked)
    cards = Counter(native_id for card in here.interfaces for native_id in card.groups)
    machines = Counter(
        native_id
        for native_id, _ in {(each, card.instance) for card in here.interfaces if card.instance for each in card.groups}
    )
    naming = Counter(
        peer for group in here.groups for peer in {each for rule in group.rules for each in rule.peer_groups}
    )
    found = [
        _statistics(group, cards[native_id], machines[native_id], naming[native_id])
        for group in here.groups
        if (native_id := group.ref.native_id) in wanted
    ]
    return {"SecurityGroupAssociationStatisticsSet": found}


def describe_security_group_policies(asked: Asked) -> Answer:
    """DescribeSecurityGroupPolicies."""
    group = group_of(asked)
    sides = {key: shown_rules(group, direction) for key, direction in SIDES.items()}
    counts = {
        f"{key}{family}TotalCount": sum((":" in (rule.get("Ipv6CidrBlock") or "")) == six for rule in rules)
        for key, rules in sides.items()
        for family, six in (("IPv4", False), ("IPv6", True))
    }
    return {"SecurityGroupPolicySet": {"Version": group.version, **sides, "PolicyStatistics": counts}}


def describe_address_templates(asked: Asked) -> Answer:
    """DescribeAddressTemplates: those that rules of several networks are shown by, and those that a test set up."""
    known = dict(asked.memory.networks.address_templates)
    for group in inventory(asked).groups:
        known.update({template_of(rule): rule.peers for rule in group.rules if len(rule.peers) > 1})
    return _templates(asked, "Address", "AddressSet", known)


def describe_address_template_groups(asked: Asked) -> Answer:
    """DescribeAddressTemplateGroups."""
    return _templates(asked, "Address", "AddressTemplateIdSet", asked.memory.networks.address_groups, "Group")


def describe_service_templates(asked: Asked) -> Answer:
    """DescribeServiceTemplates."""
    return _templates(asked, "Service", "ServiceSet", asked.memory.networks.service_templates)


def describe_service_template_groups(asked: Asked) -> Answer:
    """DescribeServiceTemplateGroups."""
    return _templates(asked, "Service", "ServiceTemplateIdSet", asked.memory.networks.service_groups, "Group")


def group_of(asked: Asked) -> SecurityGroup:
    """The group that is named.

    Raises:
        ApiError: ResourceNotFound.
    """
    wanted = asked.parameters["SecurityGroupId"]
    found = next((each for each in inventory(asked).groups if each.ref.native_id == wanted), None)
    if found is None:
        raise ApiError("ResourceNotFound", f"there is no security group {wanted}.", f"资源`{wanted}`不存在。")
    return found


def rules_of(group: SecurityGroup, direction: Direction) -> list[NetworkRule]:
    """The rules of one direction from the top."""
    return [rule for rule in group.rules if rule.direction is direction]


def shown_rules(group: SecurityGroup, direction: Direction) -> list[dict[str, Any]]:
    """The rules of one direction as answers have them."""
    return [_policy(place, rule) for place, rule in enumerate(rules_of(group, direction))]


def template_of(rule: NetworkRule) -> str:
    """The id of the template that a rule of several networks is shown by."""
    return f"ipm-{blake2b(','.join(rule.peers).encode(), digest_size=4).hexdigest()}"


def _group(group: SecurityGroup) -> dict[str, Any]:
    return {
        "SecurityGroupId": group.ref.native_id,
        "SecurityGroupName": group.name,
        "SecurityGroupDesc": "",
        "ProjectId": "0",
        "IsDefault": group.is_default,
        "CreatedTime": MADE_AT,
        "TagSet": tag_set(group.tags),
        "UpdateTime": MADE_AT,
    }


def _statistics(group: SecurityGroup, cards: int, machines: int, naming: int) -> dict[str, Any]:
    """What uses a group without an interface here is a balancer."""
    others = 1 if group.in_use and not cards else 0
    return {
        "SecurityGroupId": group.ref.native_id,
        "CVM": machines,
        "CDB": 0,
        "ENI": cards,
        "SG": naming,
        "CLB": others,
        "InstanceStatistics": [{"InstanceType": "CVM", "InstanceCount": machines}] if machines else [],
        "TotalCount": cards + others,
    }


def _policy(place: int, rule: NetworkRule) -> dict[str, Any]:
    """A rule; one with templates has none of the fields that they stand for, as in the page's example."""
    policy: dict[str, Any] = {"PolicyIndex": place}
    addresses, services = _address_template(rule), _service_template(rule)
    if services["ServiceId"] or services["ServiceGroupId"]:
        policy["ServiceTemplate"] = services
    else:
        every = rule.protocol == "all"
        policy["Protocol"], policy["Port"] = _NO_PORTS_OR_ALL if every else (rule.protocol, written_ports(rule))
    if addresses["AddressId"] or addresses["AddressGroupId"]:
        policy["AddressTemplate"] = addresses
    else:
        peer = rule.peers[0] if rule.peers else ""
        policy["CidrBlock"] = "" if ":" in peer else peer
        policy["Ipv6CidrBlock"] = peer if ":" in peer else ""
        policy["SecurityGroupId"] = rule.peer_groups[0] if rule.peer_groups else ""
        policy["AddressTemplate"] = addresses
    return {
        **policy,
        "Action": "ACCEPT" if rule.permission is Permission.ALLOW else "DROP",
        "PolicyDescription": rule.description,
        "ModifyTime": MADE_AT,
        "Priority": place,
    }


def _address_template(rule: NetworkRule) -> dict[str, str]:
    named = rule.unresolved[0] if rule.unresolved else template_of(rule) if len(rule.peers) > 1 else ""
    is_group = named.startswith("ipmg-")
    return {"AddressId": "" if is_group else named, "AddressGroupId": named if is_group else ""}


def _service_template(rule: NetworkRule) -> dict[str, str]:
    named = rule.protocol if rule.protocol.startswith(("ppm-", "ppmg-")) else ""
    is_group = named.startswith("ppmg-")
    return {"ServiceId": "" if is_group else named, "ServiceGroupId": named if is_group else ""}


def _templates(asked: Asked, what: str, lines_key: str, known: Mapping[str, Iterable[str]], group: str = "") -> Answer:
    key = f"{what}Template{group}"
    entries = [
        {
            f"{key}Id": native_id,
            f"{key}Name": native_id,
            lines_key: list(lines),
            "CreatedTime": MADE_AT,
            "UpdatedTime": MADE_AT,
            "TagSet": [],
        }
        for native_id, lines in known.items()
    ]
    return {"TotalCount": len(entries), f"{key}Set": list(page(asked, entries))}
