"""Through the rules, the access list and the routes around a card: the same for every card in the same place."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from costguard.domain.network import Direction, NetworkInterface, NetworkRule, Route, RuleOrder
from costguard.domain.refs import ResourceRef, Shard
from costguard.guards.network.reachability import ranges as r
from costguard.guards.network.reachability.filters import (
    WITH_PORTS,
    Grant,
    ListedRule,
    Unknown,
    Way,
    admitted,
    in_order,
    lets_out,
    protocols_of,
    ways,
)
from costguard.guards.network.reachability.network_index import NetworkIndex


class ReplyRoute(Protocol):
    """Whether answers that take a route (None: no route matches) come back to who asked; or why that is not told."""

    def __call__(self, route: Route | None, *, needs_gateway: bool) -> bool | Unknown:
        """The verdict on one route."""


@dataclass(frozen=True, slots=True)
class NetworkPath:
    """One way through. `boxes` are who gets in and on which ports of the instance. `rule` None only with a `doubt`."""

    protocol: str
    boxes: tuple[r.Box, ...]
    group: ResourceRef
    rule: NetworkRule | None
    access_list: ResourceRef | None
    entry: NetworkRule | None
    answer: NetworkRule | None
    route: Route | None
    doubt: Unknown | None


@dataclass(frozen=True, slots=True)
class CardPlace:
    """What is around a card besides its groups; `ways` by family.

    `unknown`: where answers go cannot be told, and they may go anywhere.
    """

    listed: tuple[ResourceRef, tuple[ListedRule, ...]] | None
    ways: Mapping[int, Sequence[Way]]
    needs_gateway: bool
    unknown: Unknown | None = None


class PathFinder:
    """The ways through, each place reckoned once."""

    def __init__(self, atlas: NetworkIndex) -> None:
        self._atlas = atlas
        self._places: dict[tuple[Shard, ResourceRef | None, ResourceRef | None], CardPlace] = {}
        self._through: dict[Hashable, tuple[NetworkPath, ...]] = {}
        self._rules: dict[tuple[Shard, tuple[str, ...]], tuple[RuleOrder, list[ListedRule]]] = {}
        self._grants: dict[tuple[Shard, tuple[str, ...], int], list[tuple[str, tuple[Grant, ...]]]] = {}
        self._lists: dict[tuple[ResourceRef, int, str], tuple[tuple[Grant, ...], list[ReplyPeers]]] = {}

    def place_of(self, card: NetworkInterface) -> CardPlace:
        """What is around a card."""
        key = (card.ref.shard, card.vpc, card.subnet)
        if key not in self._places:
            self._places[key] = self._place(card)
        return self._places[key]

    def _place(self, card: NetworkInterface) -> CardPlace:
        vpc = self._atlas.vpc(card)
        if vpc is None:
            return CardPlace(None, _ways(()), needs_gateway=False)
        subnet = self._atlas.subnet(card)
        if isinstance(subnet, Unknown):
            return CardPlace(None, {}, needs_gateway=True, unknown=subnet)
        listed = self._atlas.listed(subnet)
        if isinstance(vpc, Unknown):
            return CardPlace(listed, {}, needs_gateway=True, unknown=vpc)
        routes = self._atlas.routes(subnet, vpc)
        if isinstance(routes, Unknown):
            return CardPlace(listed, {}, vpc.needs_gateway, routes)
        return CardPlace(listed, _ways(routes), vpc.needs_gateway)

    def through(self, card: NetworkInterface, family: int, name: Hashable, leaves: ReplyRoute) -> Sequence[NetworkPath]:
        """Every way from the internet to a card whose answers leave as they must; `name` is that of the exit."""
        key = (card.ref.shard, card.vpc, card.subnet, card.groups, family, name)
        if key not in self._through:
            self._through[key] = tuple(self._found(card, family, leaves))
        return self._through[key]

    def leads_out(self, card: NetworkInterface, family: int) -> bool | Unknown:
        """Whether a public address of a card is one that the internet reaches, whatever its groups and lists say."""
        doubt: Unknown | None = None
        for way in _out(self.place_of(card), family, lets_out):
            if way.doubt is None and r.common(way.peers, r.INTERNET[family]):
                return True
            doubt = doubt or way.doubt
        return doubt or False

    def _found(self, card: NetworkInterface, family: int, leaves: ReplyRoute) -> Iterator[NetworkPath]:
        place = self.place_of(card)
        out = list(_out(place, family, leaves))
        for protocol, grants in self._granted(card, family) if out else ():
            here = list(self._combined(place, grants, out, family, protocol))
            certain = [box for passage in here if passage.doubt is None for box in passage.boxes]
            for passage in here:
                if passage.doubt is None:
                    yield passage
                elif boxes := r.boxes_minus(passage.boxes, certain):
                    yield replace(passage, boxes=tuple(boxes))

    def _granted(self, card: NetworkInterface, family: int) -> list[tuple[str, tuple[Grant, ...]]]:
        key = (card.ref.shard, card.groups, family)
        if key not in self._grants:
            order, held = self.ordered(card)
            self._grants[key] = [
                (protocol, grants)
                for protocol in protocols_of(held, family)
                if (grants := admitted(held, order, Direction.INGRESS, family, protocol))
            ]
        return self._grants[key]

    def ordered(self, card: NetworkInterface) -> tuple[RuleOrder, list[ListedRule]]:
        """The rules around a card in their order. A card without a group is not told: it has one, or it lets all in."""
        shard = card.ref.shard
        if not card.groups:
            return RuleOrder.UNION, [ListedRule(card.ref, None, Unknown("groups", f"{card.ref.native_id} names none"))]
        key = (shard, card.groups)
        if key not in self._rules:
            self._rules[key] = in_order([self._atlas.group_rules(shard, each) for each in card.groups])
        return self._rules[key]

    def _combined(
        self, place: CardPlace, grants: Sequence[Grant], out: Sequence[Way], family: int, protocol: str
    ) -> Iterator[NetworkPath]:
        holder, entries, answers = self.around(place, family, protocol)
        for grant in grants:
            for entry in entries:
                let_in = r.boxes_common(grant.boxes, entry.boxes)
                for answer in answers if let_in else ():
                    for way in out:
                        peers = r.common(answer.peers, way.peers)
                        boxes = r.boxes_common(let_in, r.boxes(peers, (r.PORTS,)))
                        boxes = [box for box in boxes if r.common([box[:2]], r.INTERNET[family])]
                        if boxes:
                            doubt = grant.doubt or entry.doubt or answer.doubt or way.doubt
                            yield NetworkPath(
                                protocol,
                                tuple(boxes),
                                grant.holder,
                                grant.rule,
                                holder,
                                entry.rule,
                                answer.rule,
                                way.route,
                                doubt,
                            )

    def around(
        self, place: CardPlace, family: int, protocol: str
    ) -> tuple[ResourceRef | None, Sequence[Grant | Open], Sequence[ReplyPeers]]:
        """What the access list lets in, and whom it lets answer."""
        whole = r.WHOLE[family]
        if place.listed is None:
            return None, (Open(((*whole, *r.PORTS),)),), (ReplyPeers((whole,), None, None),)
        holder, held = place.listed
        key = (holder, family, protocol)
        if key not in self._lists:
            entries = admitted(held, RuleOrder.FIRST_MATCH, Direction.INGRESS, family, protocol)
            answers = admitted(held, RuleOrder.FIRST_MATCH, Direction.EGRESS, family, protocol)
            self._lists[key] = entries, list(_answers(answers, protocol))
        return holder, *self._lists[key]


@dataclass(frozen=True, slots=True)
class Open:
    """No list at all: everything passes."""

    boxes: tuple[r.Box, ...]
    rule: NetworkRule | None = None
    doubt: Unknown | None = None


@dataclass(frozen=True, slots=True)
class ReplyPeers:
    """The peers that one entry lets answers out to."""

    peers: tuple[r.Range, ...]
    rule: NetworkRule | None
    doubt: Unknown | None


def _answers(grants: Iterable[Grant], protocol: str) -> Iterator[ReplyPeers]:
    """Whom a stateless list lets answer, each peer by one entry: on at least some of the ports that askers use."""
    taken: list[r.Range] = []
    for grant in sorted(grants, key=lambda each: each.doubt is not None):
        ports = r.EPHEMERAL if protocol in WITH_PORTS else r.PORTS
        open_to = r.peers_of(box for box in grant.boxes if box[2] <= ports[1] and ports[0] <= box[3])
        peers = r.minus(open_to, taken)
        if peers:
            taken = r.merged([*taken, *peers])
            yield ReplyPeers(tuple(peers), grant.rule, grant.doubt)


def _ways(routes: Sequence[Route]) -> Mapping[int, Sequence[Way]]:
    return {family: ways(routes, family) for family in (r.V4, r.V6)}


def _out(place: CardPlace, family: int, leaves: ReplyRoute) -> Iterator[Way]:
    """The routes by which answers leave, each with its doubt."""
    if place.unknown is not None:
        yield Way((r.WHOLE[family],), None, place.unknown)
        return
    for way in place.ways[family]:
        verdict = leaves(way.route, needs_gateway=place.needs_gateway)
        if isinstance(verdict, Unknown):
            yield Way(way.peers, way.route, verdict)
        elif verdict:
            yield way
