"""Security groups of Alibaba Cloud: listed a hundred a page, their rules a request a group.

Nothing lists the rules of several groups, so only groups are asked about that hold rules or are around something.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from costguard.domain.network import RuleOrder, SecurityGroup
from costguard.domain.refs import Shard
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.products import items_in, structures_in, tags_of
from costguard.providers.alibaba.core.session import AlibabaSession, next_token, prove_permitted
from costguard.providers.alibaba.network.rules import Ports, RuleLists, lists_named, to_range, to_rule
from costguard.providers.kit.core.calls import Gaps, by_token, named_gaps
from costguard.providers.kit.core.fields import Fields, amount, as_documented, flag, named, text
from costguard.providers.kit.network.reading import (
    asked_of_each,
    named_by_rules,
    network,
    ref_of,
    ref_to,
    with_references,
)

PART = "groups"
RULES_API = "ecs:DescribeSecurityGroupAttribute"
_LIST = "ecs:DescribeSecurityGroups"
_REFERENCES = "ecs:DescribeSecurityGroupReferences"
_PREFIXES, _PORTS = "ecs:DescribePrefixListAttributes", "ecs:DescribePortRangeListEntries"
_PAGE, _RULES_PAGE, _REFERRED_TOGETHER = 100, 1000, 10
_ADVANCED = "enterprise"


@dataclass(frozen=True, slots=True)
class GroupRules:
    """What is told of one group's rules. `peers_may_talk` where its members reach one another without one."""

    permissions: tuple[Fields, ...]
    peers_may_talk: bool


def read_groups(session: AlibabaSession, gaps: Gaps, used: Collection[str] | None) -> tuple[SecurityGroup, ...]:
    """Every security group; `used` are those around an interface, None where interfaces could not all be read.

    A group whose rules could not be read is left out, and is a gap that names it: without rules it would look closed.

    Raises:
        ProviderError: not listed.
    """
    shard = gaps.shard
    listed = list_groups(session, shard)
    wanted = [
        native_id for native_id, told in listed.items() if _holds_rules(told) or used is None or native_id in used
    ]
    rules = asked_of_each(wanted, lambda native_id: read_rules(session, shard, native_id))
    failures = ((shard, native_id, err) for native_id, err in rules.failures.items())
    found = list(named_gaps(PART, failures, f"{len(listed)} groups", errors.gap))
    lists = read_lists(session, shard, (told for each in rules.answers.values() for told in each.permissions))
    kept = {native_id: told for native_id, told in listed.items() if native_id not in rules.failures}
    groups: list[SecurityGroup] = []
    with as_documented(RULES_API):
        for native_id, told in kept.items():
            groups.append(_to_group(shard, told, rules.answers.get(native_id), lists, used))
    gaps += found  # where nothing above failed: then the part is one gap
    named_by = named_by_rules(groups)
    idle = [group.ref.native_id for group in groups if not group.in_use and group.ref.native_id not in named_by]
    with gaps.part(PART):
        _ask_references(session, shard, idle, named_by)
    return tuple(with_references(groups, {name: sorted(by) for name, by in named_by.items()}))


def list_groups(session: AlibabaSession, shard: Shard) -> dict[str, Fields]:
    """Every group by its id, without its rules.

    Raises:
        ProviderError: not listed, or an empty list that may be the answer to somebody who may not ask.
    """
    found: dict[str, Fields] = {}
    for page in session.pages(shard, "ecs", "DescribeSecurityGroups", "SecurityGroups.SecurityGroup", MaxResults=_PAGE):
        with as_documented(_LIST):
            found.update({named(told, "SecurityGroupId"): told for told in page})
    if not found:
        prove_permitted(session, shard, "ecs", "DescribeSecurityGroups")
    return found


def read_rules(session: AlibabaSession, shard: Shard, native_id: str) -> GroupRules:
    """The rules of one group, both ways.

    Raises:
        ProviderError: they could not be read.
    """
    policies: list[str] = []

    def ask(page: dict[str, str]) -> dict[str, Any]:
        answer = session.call(
            shard,
            "ecs",
            "DescribeSecurityGroupAttribute",
            SecurityGroupId=native_id,
            MaxResults=_RULES_PAGE,
            **page,
        )
        with as_documented(RULES_API):
            if named(answer, "SecurityGroupId") != native_id:
                raise ValueError("it describes another group")
            policies.append(text(answer, "InnerAccessPolicy"))
        return answer

    pages = by_token(RULES_API, ask, lambda answer: items_in(answer, "Permissions.Permission", RULES_API), next_token)
    permissions = [told for page in pages for told in page]
    with as_documented(RULES_API):
        if not all(isinstance(told, Mapping) for told in permissions):
            raise TypeError("Permissions is no list of structures")
    return GroupRules(tuple(permissions), policies[0].lower() == "accept")


def read_lists(session: AlibabaSession, shard: Shard, permissions: Iterable[Fields]) -> RuleLists:
    """The lists that these rules name; one that cannot be read stays unresolved, and may hold anything.

    Raises:
        ProviderError: the rules are not as documented.
    """
    with as_documented(RULES_API):
        prefix_lists, port_lists = lists_named(permissions)

    def networks_in(native_id: str) -> tuple[str, ...]:
        answer = session.call(shard, "ecs", "DescribePrefixListAttributes", PrefixListId=native_id)
        with as_documented(_PREFIXES):
            return tuple(network(named(each, "Cidr")) for each in structures_in(answer, "Entries.Entry", _PREFIXES))

    def ports_in(native_id: str) -> Ports:
        answer = session.call(shard, "ecs", "DescribePortRangeListEntries", PortRangeListId=native_id)
        with as_documented(_PORTS):
            return tuple(to_range(named(each, "PortRange")) for each in structures_in(answer, "Entries", _PORTS))

    return RuleLists(
        networks=asked_of_each(sorted(prefix_lists), networks_in).answers,
        ports=asked_of_each(sorted(port_lists), ports_in).answers,
    )


def _holds_rules(told: Fields) -> bool:
    """Unless it is told that there are none; rules that name groups may be counted apart."""
    with as_documented(_LIST):
        return amount(told, "RuleCount") != 0 or amount(told, "GroupToGroupRuleCount") not in (None, 0)


def _to_group(
    shard: Shard, told: Fields, rules: GroupRules | None, lists: RuleLists, used: Collection[str] | None
) -> SecurityGroup:
    native_id, vpc = named(told, "SecurityGroupId"), text(told, "VpcId")
    return SecurityGroup(
        ref_of(shard, "security_group", native_id),
        ref_to(shard, "vpc", vpc),
        RuleOrder.PRIORITY,
        tuple(to_rule(each, lists) for each in rules.permissions) if rules else (),
        name=text(told, "SecurityGroupName"),
        in_use=None if used is None else native_id in used,
        is_service_managed=flag(told, "ServiceManaged"),
        # not asked where nothing is in it: basic groups begin so, advanced ones never do
        peers_may_talk=rules.peers_may_talk if rules else text(told, "SecurityGroupType") != _ADVANCED,
        tags=tags_of(told, _LIST),
    )


def _ask_references(
    session: AlibabaSession, shard: Shard, idle: Sequence[str], named_by: dict[str, dict[str, None]]
) -> None:
    """Whether groups of other accounts name one that nothing here is in or names."""
    for start in range(0, len(idle), _REFERRED_TOGETHER):
        batch = list(idle[start : start + _REFERRED_TOGETHER])
        answer = session.call(shard, "ecs", "DescribeSecurityGroupReferences", SecurityGroupId=batch)
        with as_documented(_REFERENCES):
            for told in structures_in(answer, "SecurityGroupReferences.SecurityGroupReference", _REFERENCES):
                listed = "ReferencingSecurityGroups.ReferencingSecurityGroup"
                names = (named(each, "SecurityGroupId") for each in structures_in(told, listed, _REFERENCES))
                named_by.setdefault(named(told, "SecurityGroupId"), {}).update(dict.fromkeys(names))
