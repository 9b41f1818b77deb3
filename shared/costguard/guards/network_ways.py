"""Who gets into which machine through one port: from a network, or from another machine that is itself entered so.

A network counts, public or private, where groups and access lists let it in and routes lead there and back; a group
that lets in a group lets nobody in by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from costguard.domain.network import Direction, Hop, NetworkInterface, NetworkInventory, NetworkRule, Permission
from costguard.domain.refs import ResourceRef
from costguard.guards import reachability_ranges as r
from costguard.guards.reachability_atlas import Atlas
from costguard.guards.reachability_filters import ALL, Held, Unknown, admitted
from costguard.guards.reachability_passages import Passages, Place
from costguard.guards.reachability_routes import lets_out

_WITHIN = frozenset({Hop.LOCAL, Hop.PEERING, Hop.INSTANCE, Hop.OTHER})
_ENOUGH = 64  # addresses of a group's members that stand for all of them


@dataclass(frozen=True, slots=True)
class _Standing:
    """What decides whether a card is entered from networks; the same for all cards that stand alike."""

    groups: tuple[str, ...]
    vpc: ResourceRef | None
    subnet: ResourceRef | None
    public: tuple[bool, bool]
    port: int
    certain: bool


class Ways:
    """Who gets into these cards, and into those of others in their shard by whom they are entered."""

    def __init__(self, inventory: NetworkInventory, cards: Iterable[NetworkInterface]) -> None:
        self._inventory = inventory
        self.atlas = Atlas([_around(inventory, list(cards))], ())
        self._passages = Passages(self.atlas)
        self._straight: dict[_Standing, bool] = {}
        self._whole: Ways | None = None

    def unknown(self, card: NetworkInterface) -> Unknown | None:
        """What of the surroundings of a card was not read."""
        return self._passages.place_of(card).unknown

    def straight(self, card: NetworkInterface, port: int, *, certain: bool) -> bool:
        """Whether a network gets into a card: certainly, or as far as can be told."""
        public = (self.atlas.has_public(card, r.V4), self.atlas.has_public(card, r.V6))
        standing = _Standing(card.groups, card.vpc, card.subnet, public, port, certain)
        if standing not in self._straight:
            self._straight[standing] = self._let_in(card, port, self._passages.ordered(card)[1], certain=certain)
        return self._straight[standing]

    def enters(self, card: NetworkInterface, port: int) -> bool:
        """Whether somebody certainly gets into a card, straight or by way of other machines."""
        if self.straight(card, port, certain=True):
            return True
        if not self._names_members(card):
            return False
        if self._whole is None:
            self._whole = Ways(self._inventory, self._inventory.interfaces)
        return self._whole.by_members(card, port, {card.ref})

    def by_members(self, card: NetworkInterface, port: int, asked: set[ResourceRef]) -> bool:
        """Whether a card lets in a machine that is itself entered; `asked` are those that need not be asked again."""
        named = self._members(card)
        entered: dict[str, list[str]] = {}
        for group, members in named.items():
            for member in members:
                if len(entered.get(group, ())) < _ENOUGH and self.straight(member, port, certain=True):
                    entered.setdefault(group, []).extend(member.private_ips)
        if entered and self._let_in(card, port, self._with_members(card, entered), certain=True):
            return True
        for group, members in named.items():
            for member in members:
                if member.ref in asked:
                    continue
                asked.add(member.ref)
                if self._names_members(member) and self.by_members(member, port, asked):
                    entered.setdefault(group, []).extend(member.private_ips)
                    if self._let_in(card, port, self._with_members(card, entered), certain=True):
                        return True
        return False

    def _names_members(self, card: NetworkInterface) -> bool:
        return any(
            (each.rule is not None and each.rule.peer_groups) or self._talks(each.holder)
            for each in self._passages.ordered(card)[1]
        ) or any(self._talks(holder) for holder in _groups_of(card))

    def _talks(self, holder: ResourceRef) -> bool:
        group = self.atlas.groups.get(holder)
        return group is not None and group.peers_may_talk

    def _members(self, card: NetworkInterface) -> Mapping[str, list[NetworkInterface]]:
        """The cards that this one lets in because of a group that they are in, by that group."""
        names = {holder.native_id for holder in _groups_of(card) if self._talks(holder)}
        for each in self._passages.ordered(card)[1]:
            if each.rule is not None and each.rule.permission is Permission.ALLOW:
                names.update(each.rule.peer_groups)
        found: dict[str, list[NetworkInterface]] = {}
        for name in sorted(names):
            found[name] = list(self.atlas.members(name))
        return found

    def _with_members(self, card: NetworkInterface, entered: Mapping[str, Sequence[str]]) -> list[Held]:
        """The rules around a card, with the addresses of those who are entered in the place of their groups."""
        held = [self._named(each, entered) for each in self._passages.ordered(card)[1]]
        talking = (holder for holder in _groups_of(card) if self._talks(holder))
        among = ((holder, entered.get(holder.native_id)) for holder in talking)
        return [*held, *(Held(holder, _among(addresses)) for holder, addresses in among if addresses)]

    def _named(self, held: Held, entered: Mapping[str, Sequence[str]]) -> Held:
        rule = held.rule
        if rule is None or not rule.peer_groups:
            return held
        if rule.permission is Permission.ALLOW:
            peers = [ip for group in rule.peer_groups for ip in entered.get(group, ())]
        else:
            denied = [member for group in rule.peer_groups for member in self.atlas.members(group)]
            peers = [ip for member in denied for ip in member.private_ips]
        return Held(held.holder, replace(rule, peers=(*rule.peers, *peers)))

    def _let_in(self, card: NetworkInterface, port: int, held: Sequence[Held], *, certain: bool) -> bool:
        order = self._passages.ordered(card)[0]
        place = self._passages.place_of(card)
        for family in (r.V4, r.V6):
            _, entries, answers = self._passages.around(place, family, "tcp")
            for grant in admitted(held, order, Direction.INGRESS, family, "tcp"):
                for entry in entries:
                    boxes = r.boxes_common(grant.boxes, entry.boxes)
                    peers = r.peers_of(box for box in boxes if box[2] <= port <= box[3])
                    for answer in answers if peers else ():
                        if certain and (grant.doubt or entry.doubt or answer.doubt):
                            continue
                        if self._arrives(card, place, family, r.common(peers, answer.peers), certain=certain):
                            return True
        return False

    def _arrives(
        self, card: NetworkInterface, place: Place, family: int, peers: Sequence[r.Range], *, certain: bool
    ) -> bool:
        """Whether any of these peers has a way to the card and back: inside, over what joins networks, or publicly."""
        if not peers or place.unknown is not None:
            return bool(peers) and not certain
        if card.vpc is None:
            return True
        if r.common(peers, r.ranges_of(self.atlas.cidrs_of(card.vpc), family)):
            return True
        for way in place.ways[family]:
            meeting = r.common(peers, way.peers)
            if not meeting or (certain and way.doubt is not None):
                continue
            if way.route is not None and way.route.active and way.route.hop in _WITHIN:
                return True
            public = r.common(meeting, r.INTERNET[family]) and self.atlas.has_public(card, family)
            if public and lets_out(way.route, needs_gateway=place.needs_gateway):
                return True
        return False


def _groups_of(card: NetworkInterface) -> Iterator[ResourceRef]:
    return (card.ref.sibling("security_group", group) for group in card.groups)


def _around(inventory: NetworkInventory, cards: Sequence[NetworkInterface]) -> NetworkInventory:
    """What of a shard is around these cards: most mends are about a few cards among thousands."""
    named = {group for card in cards for group in card.groups}
    holders = {card.ref for card in cards} | {card.instance for card in cards if card.instance is not None}
    return replace(
        inventory,
        groups=tuple(group for group in inventory.groups if group.ref.native_id in named),
        interfaces=tuple(cards),
        addresses=tuple(address for address in inventory.addresses if address.bound_to in holders),
    )


def _among(addresses: Sequence[str]) -> NetworkRule:
    """The rule that nobody wrote: members of one group reach one another, unless a rule says otherwise."""
    return NetworkRule("", Direction.INGRESS, Permission.ALLOW, ALL, peers=tuple(addresses), priority=1 << 16)
