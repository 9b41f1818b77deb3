"""Interfaces and security groups of Alibaba Cloud, with what of both several lists have to agree on.

What leads where is told in three places: an interface tells elastic addresses of its own, the list of elastic addresses
tells what each is bound to, and plain addresses, given by the system, are told of their instance only. Groups are
listed a hundred a page, their rules a request a group: so only groups are asked about that hold rules or are around
something.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address
from typing import Any

from costguard.domain.errors import TruncatedReadError
from costguard.domain.network import NetworkInterface, PublicAddress, RuleOrder, SecurityGroup
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.providers.alibaba.compute.instances import API as INSTANCES
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.products import items_in, structures_in, tags_of
from costguard.providers.alibaba.core.session import AlibabaSession, next_token, numbered_pages, prove_permitted
from costguard.providers.alibaba.network.answers import texts_in
from costguard.providers.alibaba.network.rules import Ports, RuleLists, lists_named, to_range, to_rule
from costguard.providers.kit.core.calls import NAMED, Gaps, by_token, named_gaps
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.kit.core.fields import Fields, amount, as_documented, flag, named, part, text
from costguard.providers.kit.network.reading import (
    asked_of_each,
    named_by_rules,
    network,
    ref_of,
    ref_to,
    with_references,
)

INTERFACES = "interfaces"
_LIST_CARDS, _SIX = "ecs:DescribeNetworkInterfaces", "vpc:DescribeIpv6Addresses"
_CARDS, _INSTANCES = "NetworkInterfaceSets.NetworkInterfaceSet", "Instances.Instance"
_CARDS_PAGE, _INSTANCES_PAGE, _SIX_PAGE, NAMED_TOGETHER = 500, 100, 50, 100
_PRIMARY = {"Primary": True, "Secondary": False}


@dataclass(slots=True)
class _Card:
    """An interface while it is put together."""

    found: NetworkInterface
    six: tuple[str, ...]
    has_prefixes: bool
    pairs: dict[str, str] = field(default_factory=dict)  # public → private


@dataclass(slots=True)
class _Machines:
    """What instances tell of interfaces: those they have, and their own public address by instance."""

    cards: dict[str, str] = field(default_factory=dict)
    public_ips: dict[str, tuple[str, ...]] = field(default_factory=dict)


def read_interfaces(
    session: AlibabaSession, gaps: Gaps, addresses: Iterable[PublicAddress], bound_privately: Mapping[str, str]
) -> tuple[NetworkInterface, ...]:
    """Every interface. `bound_privately` is the private address that an elastic one is bound to, where it is told.

    An interface that an instance tells of and the list does not is asked about once more; if it stays away, something
    is kept from us, and that is a gap. So is the list being empty, unless there are no instances, provably.

    Raises:
        ProviderError: not listed.
    """
    shard = gaps.shard
    cards = _cards(session, shard)
    with gaps.part(INTERFACES):
        machines = _Machines()
        if not cards or any(_may_lack_an_address(card) for card in cards.values()):
            machines = _told_by_instances(session, shard)
            if not cards and not machines.cards:
                prove_permitted(session, shard, "ecs", "DescribeInstances")
        missing = [native_id for native_id in machines.cards if native_id not in cards]
        for start in range(0, len(missing), NAMED_TOGETHER):
            cards |= _cards(session, shard, missing[start : start + NAMED_TOGETHER])
        left = [native_id for native_id in missing if native_id not in cards]
        if left:
            gaps.add(INTERFACES, _kept_from_us(left))
        _pair_plain(cards, machines)
    _pair_elastic(cards, addresses, bound_privately)
    _open_six(session, gaps, cards)
    return tuple(_whole(card) for card in cards.values())


def _cards(session: AlibabaSession, shard: Shard, ids: Sequence[str] = ()) -> dict[str, _Card]:
    cards: dict[str, _Card] = {}
    only = {"NetworkInterfaceId": list(ids)} if ids else {}
    for page in session.pages(shard, "ecs", "DescribeNetworkInterfaces", _CARDS, MaxResults=_CARDS_PAGE, **only):
        with as_documented(_LIST_CARDS):
            cards.update({named(told, "NetworkInterfaceId"): _to_card(shard, told) for told in page})
    return cards


def _to_card(shard: Shard, told: Fields) -> _Card:
    private, pairs = [text(told, "PrivateIpAddress")], {}
    sets = structures_in(told, "PrivateIpSets.PrivateIpSet", _LIST_CARDS)
    for each in [told, *sets]:
        address, public = text(each, "PrivateIpAddress"), _associated(each)
        private.append(address)
        if address and public:
            pairs[public] = address
    instance = text(told, "InstanceId") or text(part(told, "Attachment"), "InstanceId")
    vpc, subnet = text(told, "VpcId"), text(told, "VSwitchId")
    found = NetworkInterface(
        ref_of(shard, "interface", named(told, "NetworkInterfaceId")),
        ref_to(shard, "vpc", vpc),
        ref_to(shard, "subnet", subnet),
        ref_to(shard, "instance", instance),
        tuple(dict.fromkeys(each for each in private if each)),
        groups=tuple(texts_in(told, "SecurityGroupIds.SecurityGroupId", _LIST_CARDS)),
        primary=_PRIMARY.get(text(told, "Type")),
        unattached=not instance and text(told, "Status") == "Available",
        tags=tags_of(told, _LIST_CARDS),
    )
    six = tuple(_six(each) for each in structures_in(told, "Ipv6Sets.Ipv6Set", _LIST_CARDS))
    return _Card(found, six, bool(structures_in(told, "Ipv6PrefixSets.Ipv6PrefixSet", _LIST_CARDS)), pairs)


def _associated(told: Fields) -> str:
    return text(part(told, "AssociatedPublicIp"), "PublicIpAddress")


def _may_lack_an_address(card: _Card) -> bool:
    return card.found.instance is not None and card.found.primary is not False and not card.pairs


def _told_by_instances(session: AlibabaSession, shard: Shard) -> _Machines:
    machines = _Machines()
    for page in session.pages(shard, "ecs", "DescribeInstances", _INSTANCES, MaxResults=_INSTANCES_PAGE):
        with as_documented(INSTANCES):
            for told in page:
                native_id = named(told, "InstanceId")
                plain = texts_in(told, "PublicIpAddress.IpAddress", INSTANCES)
                elastic = text(part(told, "EipAddress"), "IpAddress")
                machines.public_ips[native_id] = tuple(each for each in (elastic, *plain) if each)
                for card in structures_in(told, "NetworkInterfaces.NetworkInterface", INSTANCES):
                    machines.cards[named(card, "NetworkInterfaceId")] = native_id
    return machines


def _pair_plain(cards: Mapping[str, _Card], machines: _Machines) -> None:
    paired = _paired(cards)
    for card in cards.values():
        instance = card.found.instance
        if instance is None or card.found.primary is False or not card.found.private_ips:
            continue
        for public in machines.public_ips.get(instance.native_id, ()):
            if public not in paired:
                card.pairs[public] = card.found.private_ips[0]


def _pair_elastic(
    cards: Mapping[str, _Card], addresses: Iterable[PublicAddress], bound_privately: Mapping[str, str]
) -> None:
    """An instance's elastic address leads to its primary interface, where no private address is told."""
    primaries = {
        card.found.instance: card
        for card in cards.values()
        if card.found.instance is not None and card.found.primary is not False
    }
    paired = _paired(cards)
    for address in addresses:
        bound = address.bound_to
        if bound is None or address.ip in paired:
            continue
        card = cards.get(bound.native_id) if bound.kind == "interface" else primaries.get(bound)
        if card is not None and card.found.private_ips:
            private = bound_privately.get(address.ref.native_id) or card.found.private_ips[0]
            card.pairs[address.ip] = private


def _paired(cards: Mapping[str, _Card]) -> set[str]:
    return {public for card in cards.values() for public in card.pairs}


def _open_six(session: AlibabaSession, gaps: Gaps, cards: Mapping[str, _Card]) -> None:
    """IPv6 addresses reach the internet only where they were given bandwidth for it; unread, any of them may."""
    shard = gaps.shard
    with_prefixes = [native_id for native_id, card in cards.items() if card.has_prefixes]
    if with_prefixes:
        names = without_secrets(", ".join(with_prefixes[:NAMED]))
        gaps.append(
            Gap(shard, INTERFACES, GapKind.UNREADABLE, f"IPv6 prefixes of interfaces are not followed: {names}")
        )
    if not any(card.six for card in cards.values()):
        return
    public = {address for card in cards.values() for address in card.six}
    with gaps.part(INTERFACES):
        told: set[str] = set()
        for page in numbered_pages(
            session, shard, _SIX, "Ipv6Addresses.Ipv6Address", "Ipv6AddressId", _SIX_PAGE, NetworkType="Public"
        ):
            with as_documented(_SIX):
                told |= {_six(each) for each in page.values()}
        public = told
    for card in cards.values():
        card.found = replace(card.found, ipv6_public=tuple(each for each in card.six if each in public))


def _six(told: Fields) -> str:
    """An IPv6 address in the one form that both products' answers have in common."""
    return str(IPv6Address(named(told, "Ipv6Address")))


def _whole(card: _Card) -> NetworkInterface:
    return replace(card.found, public_ips=tuple((private, public) for public, private in card.pairs.items()))


def _kept_from_us(ids: Sequence[str]) -> TruncatedReadError:
    names = without_secrets(", ".join(ids[:NAMED])) + (", …" if len(ids) > NAMED else "")
    message = f"{_LIST_CARDS}: instances have {len(ids)} interfaces that are not listed: {names}"
    return TruncatedReadError(message, operation=_LIST_CARDS, code="MissingItem")


GROUPS = "groups"
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
    found = list(named_gaps(GROUPS, failures, f"{len(listed)} groups", errors.gap))
    lists = read_lists(session, shard, (told for each in rules.answers.values() for told in each.permissions))
    kept = {native_id: told for native_id, told in listed.items() if native_id not in rules.failures}
    groups: list[SecurityGroup] = []
    with as_documented(RULES_API):
        for native_id, told in kept.items():
            groups.append(_to_group(shard, told, rules.answers.get(native_id), lists, used))
    gaps += found  # where nothing above failed: then the part is one gap
    named_by = named_by_rules(groups)
    idle = [group.ref.native_id for group in groups if not group.in_use and group.ref.native_id not in named_by]
    with gaps.part(GROUPS):
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
