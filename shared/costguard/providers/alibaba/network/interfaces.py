"""Network interfaces of Alibaba Cloud, with every public address that leads to one.

What leads where is told in three places: an interface tells elastic addresses of its own, the list of elastic addresses
tells what each is bound to, and plain addresses, given by the system, are told of their instance only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address

from costguard.domain.errors import TruncatedReadError
from costguard.domain.network import NetworkInterface, PublicAddress
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap, GapKind
from costguard.providers.alibaba.compute.instances import API as INSTANCES
from costguard.providers.alibaba.core.products import structures_in, tags_of
from costguard.providers.alibaba.core.session import AlibabaSession, numbered_pages, prove_permitted
from costguard.providers.alibaba.network.answers import texts_in
from costguard.providers.kit.core.calls import NAMED, Gaps
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.kit.core.fields import Fields, as_documented, named, part, text
from costguard.providers.kit.network.reading import ref_of, ref_to

PART = "interfaces"
_LIST, _SIX = "ecs:DescribeNetworkInterfaces", "vpc:DescribeIpv6Addresses"
_CARDS, _INSTANCES = "NetworkInterfaceSets.NetworkInterfaceSet", "Instances.Instance"
_PAGE, _INSTANCES_PAGE, _SIX_PAGE, NAMED_TOGETHER = 500, 100, 50, 100
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
    cards = _listed(session, shard)
    with gaps.part(PART):
        machines = _Machines()
        if not cards or any(_may_lack_an_address(card) for card in cards.values()):
            machines = _told_by_instances(session, shard)
            if not cards and not machines.cards:
                prove_permitted(session, shard, "ecs", "DescribeInstances")
        missing = [native_id for native_id in machines.cards if native_id not in cards]
        for start in range(0, len(missing), NAMED_TOGETHER):
            cards |= _listed(session, shard, missing[start : start + NAMED_TOGETHER])
        left = [native_id for native_id in missing if native_id not in cards]
        if left:
            gaps.add(PART, _kept_from_us(left))
        _pair_plain(cards, machines)
    _pair_elastic(cards, addresses, bound_privately)
    _open_six(session, gaps, cards)
    return tuple(_whole(card) for card in cards.values())


def _listed(session: AlibabaSession, shard: Shard, ids: Sequence[str] = ()) -> dict[str, _Card]:
    cards: dict[str, _Card] = {}
    only = {"NetworkInterfaceId": list(ids)} if ids else {}
    for page in session.pages(shard, "ecs", "DescribeNetworkInterfaces", _CARDS, MaxResults=_PAGE, **only):
        with as_documented(_LIST):
            cards.update({named(told, "NetworkInterfaceId"): _to_card(shard, told) for told in page})
    return cards


def _to_card(shard: Shard, told: Fields) -> _Card:
    private, pairs = [text(told, "PrivateIpAddress")], {}
    sets = structures_in(told, "PrivateIpSets.PrivateIpSet", _LIST)
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
        groups=tuple(texts_in(told, "SecurityGroupIds.SecurityGroupId", _LIST)),
        primary=_PRIMARY.get(text(told, "Type")),
        unattached=not instance and text(told, "Status") == "Available",
        tags=tags_of(told, _LIST),
    )
    six = tuple(_six(each) for each in structures_in(told, "Ipv6Sets.Ipv6Set", _LIST))
    return _Card(found, six, bool(structures_in(told, "Ipv6PrefixSets.Ipv6PrefixSet", _LIST)), pairs)


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
        gaps.append(Gap(shard, PART, GapKind.UNREADABLE, f"IPv6 prefixes of interfaces are not followed: {names}"))
    if not any(card.six for card in cards.values()):
        return
    public = {address for card in cards.values() for address in card.six}
    with gaps.part(PART):
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
    message = f"{_LIST}: instances have {len(ids)} interfaces that are not listed: {names}"
    return TruncatedReadError(message, operation=_LIST, code="MissingItem")
