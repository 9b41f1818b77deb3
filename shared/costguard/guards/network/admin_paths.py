"""Who is known to get into which machine through one port: the ways that count when another is to be closed.

A network that a rule lets in is no way while nothing is known to be there. It counts where it is of those that the
policy trusts, where a live peering or VPN route leads to it, and inside the machine's own network only as far as it
holds the card of another machine that is itself entered or trusted. The machine's own addresses never count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from costguard.domain.network import Direction, Hop, NetworkInterface, NetworkInventory, NetworkRule, Permission, Route
from costguard.domain.refs import ResourceRef
from costguard.guards.network.audit_context import most, strangers
from costguard.guards.network.reachability import ranges as r
from costguard.guards.network.reachability.filters import ALL, ListedRule, Unknown, admitted, lets_out
from costguard.guards.network.reachability.network_index import NetworkIndex
from costguard.guards.network.reachability.path_finder import CardPlace, PathFinder
from costguard.guards.network.rules import AuditRule

_FAMILIES = (r.V4, r.V6)
_WITHIN = frozenset({Hop.LOCAL, Hop.PEERING, Hop.VPN, Hop.INSTANCE, Hop.OTHER})
_JOINED = frozenset({Hop.PEERING, Hop.VPN})
_ANYBODY = ("0.0.0.0/0", "::/0")


@dataclass(frozen=True, slots=True)
class _Standing:
    """What decides who gets to a card; the same for all cards that stand alike."""

    groups: tuple[str, ...]
    vpc: ResourceRef | None
    subnet: ResourceRef | None
    public: tuple[bool, bool]
    port: int


@dataclass(slots=True)
class _Callers:
    """The networks that get to a card, of one family.

    `inside` its own network; `joined` by a peering or VPN that lives; `public` by its public address; `routed` by a
    route to anything else.
    """

    inside: list[r.Range] = field(default_factory=list)
    joined: list[r.Range] = field(default_factory=list)
    public: list[r.Range] = field(default_factory=list)
    routed: list[r.Range] = field(default_factory=list)

    def whole(self) -> list[r.Range]:
        """All of them."""
        return r.merged([*self.inside, *self.joined, *self.public, *self.routed])


class Ways:
    """Who gets into these cards, and into those of others in their shard by whom they are entered."""

    def __init__(self, inventory: NetworkInventory, cards: Iterable[NetworkInterface], rule: AuditRule) -> None:
        self._inventory, self._rule = inventory, rule
        self._cards = list(cards)
        self._trusted = {each: r.ranges_of((*rule.trusted, *rule.narrow_to), each) for each in _FAMILIES}
        self._atlas = NetworkIndex([_around(inventory, self._cards)], ())
        self._passages = PathFinder(self._atlas)
        self._callers: dict[tuple[_Standing, frozenset[str], bool], Mapping[int, _Callers]] = {}
        self._everywhere: Ways | None = None

    def unknown(self, card: NetworkInterface) -> Unknown | None:
        """What of the surroundings of a card was not read."""
        return self._passages.place_of(card).unknown

    def let_in(self, card: NetworkInterface, port: int, *, certain: bool) -> Mapping[int, list[r.Range]]:
        """The networks that get to a card, by family, whoever is there: certainly, or as far as can be told."""
        callers = self._callers_of(card, port, certain=certain)
        return {family: found.whole() for family, found in callers.items()}

    def enters(self, card: NetworkInterface, port: int) -> bool:
        """Whether somebody who is known of certainly gets into a card, straight or by way of other machines."""
        if self._is_called(card, port):
            return True
        if not self._named(card) and not any(
            found.inside or found.public for found in self._callers_of(card, port).values()
        ):
            return False
        if self._everywhere is None:
            self._everywhere = Ways(self._inventory, self._inventory.interfaces, self._rule)
        return self._everywhere._by_cards(card, port)  # noqa: SLF001 - of the same class

    def is_entered(self, card: NetworkInterface, port: int) -> bool:
        """The same where the whole world, if it gets in, is somebody too."""
        return self._is_open(card, port) or self.enters(card, port)

    def _is_called(self, card: NetworkInterface, port: int) -> bool:
        """Whether a network gets to a card that is trusted, or joined by a peering or VPN that lives."""
        own = self._addresses(card)
        for family, found in self._callers_of(card, port).items():
            from_outside = [*found.joined, *r.common([*found.public, *found.routed], self._trusted[family])]
            if r.minus(from_outside, own[family]):
                return True
        return False

    def _is_open(self, card: NetworkInterface, port: int) -> bool:
        """Whether the world gets to a card: then somebody does."""
        return any(
            strangers(family, tuple(found.public), self._rule.trusted) > most(self._rule, family)
            for family, found in self._callers_of(card, port).items()
        )

    def _by_cards(self, card: NetworkInterface, port: int) -> bool:
        """Whether the card of another machine gets in that is trusted, or that somebody enters by the same port."""
        seen = {card.ref, *(each.ref for each in self._cards_of(card))}
        asked: set[_Standing] = set()
        waiting = [card]
        while waiting:
            at = waiting.pop()
            standing = self._standing(at, port)
            if standing in asked:
                continue  # whoever gets to a card that stands alike has been found
            asked.add(standing)
            for other in self._visitors(at, port):
                if other.ref in seen:
                    continue
                seen.add(other.ref)
                if self._is_trusted(other):
                    return True
                machine = [other, *(each for each in self._cards_of(other) if each.ref not in seen)]
                if any(self._is_called(each, port) or self._is_open(each, port) for each in machine):
                    return True
                seen.update(each.ref for each in machine)
                waiting += machine
        return False

    def _is_trusted(self, card: NetworkInterface) -> bool:
        return any(r.common(_private(card, family), self._trusted[family]) for family in _FAMILIES)

    def _visitors(self, card: NetworkInterface, port: int) -> Iterator[NetworkInterface]:
        """The cards that get to this one, and that something has."""
        names = self._named(card)
        strange = self._callers_of(card, port)
        for other in self._cards:
            if other.unattached:
                continue
            as_members = names.intersection(other.groups)
            found = self._callers_of(card, port, as_members) if as_members else strange
            near = other.vpc == card.vpc
            for family in _FAMILIES:
                privately = found[family].inside if near else found[family].joined
                publicly = r.ranges_of((public for _, public in other.public_ips), family)
                if r.common(privately, _private(other, family)) or r.common(strange[family].public, publicly):
                    yield other
                    break

    def _addresses(self, card: NetworkInterface) -> Mapping[int, list[r.Range]]:
        """Every address of the machine that a card is of."""
        told: list[str] = []
        for each in (card, *self._cards_of(card)):
            told += (*each.private_ips, *each.ipv6_public, *self._atlas.public_v4(each))
        return {family: r.ranges_of(told, family) for family in _FAMILIES}

    def _cards_of(self, card: NetworkInterface) -> Sequence[NetworkInterface]:
        return () if card.instance is None else self._atlas.cards.get(card.instance, ())

    def _named(self, card: NetworkInterface) -> frozenset[str]:
        """The groups whose members a card lets in or shuts out as such."""
        named = {holder.native_id for holder in _groups_of(card) if self._talks(holder)}
        for each in self._passages.ordered(card)[1]:
            if each.rule is not None:
                named.update(each.rule.peer_groups)
        return frozenset(named)

    def _talks(self, holder: ResourceRef) -> bool:
        group = self._atlas.groups.get(holder)
        return group is not None and group.peers_may_talk

    def _standing(self, card: NetworkInterface, port: int) -> _Standing:
        public = (self._atlas.has_public(card, r.V4), self._atlas.has_public(card, r.V6))
        return _Standing(card.groups, card.vpc, card.subnet, public, port)

    def _callers_of(
        self, card: NetworkInterface, port: int, as_members: frozenset[str] = frozenset(), *, certain: bool = True
    ) -> Mapping[int, _Callers]:
        """Who gets to a card: strangers, or members of these groups."""
        key = (self._standing(card, port), as_members, certain)
        if key not in self._callers:
            held = self._held(card, as_members)
            self._callers[key] = {each: self._found(card, each, port, held, certain=certain) for each in _FAMILIES}
        return self._callers[key]

    def _held(self, card: NetworkInterface, as_members: frozenset[str]) -> list[ListedRule]:
        """The rules around a card as members of these groups meet them: one that names their group is for them."""
        held = self._passages.ordered(card)[1]
        if not as_members:
            return held
        met = [_met(each, as_members) for each in held]
        talking = (each for each in _groups_of(card) if each.native_id in as_members and self._talks(each))
        return [*met, *(ListedRule(holder, _among()) for holder in talking)]

    def _found(
        self, card: NetworkInterface, family: int, port: int, held: Sequence[ListedRule], *, certain: bool
    ) -> _Callers:
        order = self._passages.ordered(card)[0]
        place = self._passages.place_of(card)
        _, entries, answers = self._passages.around(place, family, "tcp")
        found: list[r.Range] = []
        for grant in admitted(held, order, Direction.INGRESS, family, "tcp"):
            for entry in entries:
                boxes = r.boxes_common(grant.boxes, entry.boxes)
                peers = r.peers_of(box for box in boxes if box[2] <= port <= box[3])
                for answer in answers if peers else ():
                    if not certain or not (grant.doubt or entry.doubt or answer.doubt):
                        found += r.common(peers, answer.peers)
        return self._arriving(card, place, family, r.merged(found), certain=certain)

    def _arriving(
        self, card: NetworkInterface, place: CardPlace, family: int, peers: Sequence[r.Range], *, certain: bool
    ) -> _Callers:
        """Which of these peers have a way to the card and back, and by what."""
        if not peers or place.unknown is not None:
            return _Callers(routed=[] if certain else list(peers))
        if card.vpc is None:
            return _Callers(list(peers), routed=list(peers))
        own = r.ranges_of(self._atlas.cidrs_of(card.vpc), family)
        found = _Callers(r.common(peers, own))
        outside = r.minus(peers, own)
        for way in place.ways[family]:
            meeting = r.common(outside, way.peers)
            if not meeting or (certain and way.doubt is not None):
                continue
            if way.route is not None and way.route.active and way.route.hop in _WITHIN:
                joined = self._joined(card, way.route, family, meeting)
                found.joined += joined
                found.routed += r.minus(meeting, joined)
            if self._atlas.has_public(card, family) and lets_out(way.route, needs_gateway=place.needs_gateway):
                found.public += r.common(meeting, r.INTERNET[family])
        return found

    def _joined(self, card: NetworkInterface, route: Route, family: int, peers: Sequence[r.Range]) -> Sequence[r.Range]:
        """What of these peers is in a network that a route joins.

        Of a default route only what is private: it tells of no network, and mostly leads out by a firewall.
        """
        if route.hop not in _JOINED or card.vpc is None:
            return ()
        if r.parsed(route.destination) in {r.parsed(each) for each in _ANYBODY}:
            peers = r.minus(peers, r.INTERNET[family])
        if route.hop is Hop.VPN:
            return peers
        far = self._atlas.far_end(card.ref.shard, route.target)
        if isinstance(far, Unknown):  # joined by what is no peering there, unless peerings could not be read
            return () if self._atlas.lacks(card.ref.shard, "peerings") else peers
        _, peering = far
        if not peering.active:
            return ()
        cidrs = peering.other_cidrs if peering.vpc == card.vpc else self._atlas.cidrs_of(peering.vpc)
        return r.common(peers, r.ranges_of(cidrs, family)) if cidrs else peers


def _met(held: ListedRule, as_members: frozenset[str]) -> ListedRule:
    if held.rule is None or not as_members.intersection(held.rule.peer_groups):
        return held
    return ListedRule(held.holder, replace(held.rule, peers=_ANYBODY, peer_groups=(), unresolved=()))


def _private(card: NetworkInterface, family: int) -> list[r.Range]:
    return r.ranges_of((*card.private_ips, *card.ipv6_public), family)


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


def _among() -> NetworkRule:
    """The rule that nobody wrote: members of one group reach one another, unless a rule says otherwise."""
    return NetworkRule("", Direction.INGRESS, Permission.ALLOW, ALL, peers=_ANYBODY, priority=1 << 16)
