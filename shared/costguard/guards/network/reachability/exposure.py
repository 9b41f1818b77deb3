"""Which instances the internet can reach, on which ports, and by what: address, rule, access list, route, gateway.

A path is told only where every part of it was read and lets it through; where it may be open and a part was not read
it is a doubt, with the part; and only what is closed whatever the unread parts say is left out. An instance that is
reached only through another network that is joined to its own is not reached from the internet. Load balancers,
machines that forward for others, and gateways that are neither an internet nor a NAT gateway are not followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from costguard.domain.network import Forward, Hop, NatGateway, NetworkInterface, NetworkInventory, NetworkRule, Route
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance, InstanceState
from costguard.guards.network.reachability import ranges as r
from costguard.guards.network.reachability.filters import ALL, WITH_PORTS, Unknown, lets_out
from costguard.guards.network.reachability.network_index import NetworkIndex
from costguard.guards.network.reachability.path_finder import NetworkPath, PathFinder

_GONE = frozenset({InstanceState.TERMINATING, InstanceState.TERMINATED})
_FORWARDS_NOTHING = "aws"  # its NAT gateways lead out only: one that was not read hides no way in


__all__ = ["Path", "PossibleWay", "Reachability", "Survey", "reach"]


def reach(inventories: Sequence[NetworkInventory], instances: Sequence[Instance]) -> Reachability:
    """Every way from the internet into these instances, over all shards at once: by own addresses and by forwards.

    Instances that are gone are left out; stopped ones are told, as they can be reached again once they start.
    """
    return Survey(inventories, instances).whole()


class Survey:
    """One look at all shards; `atlas` and `passages` are what it looks through."""

    def __init__(self, inventories: Sequence[NetworkInventory], instances: Sequence[Instance]) -> None:
        self._instances = [each for each in instances if each.state not in _GONE]
        self.atlas = NetworkIndex(inventories, self._instances)
        self.passages = PathFinder(self.atlas)
        self._paths: list[Path] = []
        self._doubts: dict[PossibleWay, None] = {}
        self._open_ends: dict[ResourceRef, bool] = {}

    def whole(self) -> Reachability:
        """Every path and every doubt."""
        for instance in self._instances:
            self._by_addresses(instance)
        for gateway in self.atlas.gateways():
            for forward in gateway.forwards:
                self._by_forward(gateway, forward)
        return Reachability(tuple(self._paths), tuple(self._doubts))

    def _by_addresses(self, instance: Instance) -> None:
        atlas, shard = self.atlas, instance.ref.shard
        cards = atlas.cards.get(instance.ref, [])
        gap = atlas.lacks(shard, "interfaces")
        if gap is None and not cards:
            gap = Unknown("interfaces", f"none of {instance.ref.native_id} is told")
        if gap is not None:
            self._doubt(instance.ref, gap)
        seen = set()
        for card, family, address in atlas.addresses_of(instance):
            seen.add((card.ref, family))
            for passage in self.passages.through(card, family, "address", lets_out):
                self._told(instance.ref, card, family, address, passage)
        hidden = atlas.lacks(shard, "addresses")
        for card in cards:
            if hidden is not None and (card.ref, r.V4) not in seen:
                self._may_pass(instance.ref, hidden, self.passages.through(card, r.V4, "address", lets_out))
            if self._may_be_led_to(card):
                unseen = self.passages.through(card, r.V4, "unseen", partial(self._unseen, card))
                self._may_pass(instance.ref, None, unseen)

    def _may_be_led_to(self, card: NetworkInterface) -> bool:
        """Whether there may be forwards to a card that were not read: in its own network, or in one joined to it."""
        if card.vpc is None:
            return False
        if card.vpc not in self._open_ends:
            shard, atlas = card.ref.shard, self.atlas
            near = shard.provider != _FORWARDS_NOTHING and atlas.lacks(shard, "nat_gateways") is not None
            far = any(atlas.lacks(vpc.shard, "nat_gateways") for vpc, _ in atlas.joined(card.vpc))
            self._open_ends[card.vpc] = near or far or atlas.lacks(shard, "peerings") is not None
        return self._open_ends[card.vpc]

    def _unseen(self, card: NetworkInterface, route: Route | None, *, needs_gateway: bool) -> bool | Unknown:
        """Whether answers may go back by a forward that was not read."""
        del needs_gateway
        if route is None or not route.active:
            return False
        shard = card.ref.shard
        if route.hop is Hop.NAT and shard.provider != _FORWARDS_NOTHING:
            return self.atlas.lacks(shard, "nat_gateways") or False
        if route.hop is Hop.PEERING:
            far = self.atlas.far_end(shard, route.target)
            if isinstance(far, Unknown):
                return far
            vpc, peering = far
            return self.atlas.lacks(vpc.shard, "nat_gateways") or False if peering.active else False
        return False

    def _by_forward(self, gateway: NatGateway, forward: Forward) -> None:
        """One forward, to whoever has the private address in the gateway's network or in one that is joined to it."""
        card = self.atlas.card_at(gateway.vpc, forward.private_ip)
        if card is not None:
            self._forwarded(gateway, forward, card)
            return
        found = r.parsed(forward.private_ip)
        if found is None:
            self._doubt(gateway.ref, Unknown("nat_gateways", f"{forward.private_ip} is no address"), forward)
            return
        if _holds(self.atlas.cidrs_of(gateway.vpc), found):
            gap = self.atlas.lacks(gateway.ref.shard, "interfaces")
            if gap is not None:
                self._doubt(gateway.ref, gap, forward)
            return
        self._joined(gateway, forward, found)

    def _joined(self, gateway: NatGateway, forward: Forward, found: tuple[int, int, int]) -> None:
        reached: set[ResourceRef] = set()
        for vpc, peering in self.atlas.joined(gateway.vpc):
            if vpc in reached:
                continue  # both ends tell of the same peering
            reached.add(vpc)
            card = self.atlas.card_at(vpc, forward.private_ip)
            gap = self.atlas.lacks(vpc.shard, "interfaces")
            if card is not None:
                self._forwarded(gateway, forward, card)
            elif gap is not None:
                cidrs = self.atlas.cidrs_of(vpc) or (peering.other_cidrs if peering.vpc == gateway.vpc else ())
                if not cidrs or _holds(cidrs, found):
                    self._doubt(gateway.ref, gap, forward)
        gap = self.atlas.lacks(gateway.ref.shard, "peerings")
        if gap is not None and not any(self.atlas.card_at(vpc, forward.private_ip) for vpc in reached):
            self._doubt(gateway.ref, gap, forward)

    def _forwarded(self, gateway: NatGateway, forward: Forward, card: NetworkInterface) -> None:
        if card.instance not in self.atlas.instances:
            return
        family = r.V6 if ":" in forward.private_ip else r.V4
        leaves = partial(self._back_to, gateway, card)
        for passage in self.passages.through(card, family, gateway.ref, leaves):
            if forward.protocol.lower() in {ALL, "any", passage.protocol}:
                self._told(card.instance, card, family, forward.public_ip, passage, forward)

    def _back_to(
        self, gateway: NatGateway, card: NetworkInterface, route: Route | None, *, needs_gateway: bool
    ) -> bool | Unknown:
        """Whether answers go back to the gateway that forwards: nothing else knows whom they are for."""
        del needs_gateway
        if route is None or not route.active:
            return False
        if route.hop is Hop.NAT:
            return card.vpc == gateway.vpc and route.target in {"", gateway.ref.native_id}
        if route.hop is Hop.PEERING:
            far = self.atlas.far_end(card.ref.shard, route.target)
            return far if isinstance(far, Unknown) else far[1].active and far[0] == gateway.vpc
        if route.hop in {Hop.VPN, Hop.OTHER, Hop.INSTANCE}:
            return Unknown("routes", f"answers go to {route.target or route.hop.value}, which is not followed")
        return False

    def _told(
        self,
        instance: ResourceRef,
        card: NetworkInterface,
        family: int,
        address: str,
        passage: NetworkPath,
        forward: Forward | None = None,
    ) -> None:
        for peers, ports in _rectangles(passage.boxes, family, forward):
            if passage.doubt is not None or passage.rule is None:
                unknown = passage.doubt or Unknown("groups", "not told")
                shown = ports if passage.protocol in WITH_PORTS else ()
                doubt = PossibleWay(instance, address, family, passage.protocol, shown, unknown.part, unknown.detail)
                self._doubts.setdefault(doubt)
                continue
            with_ports = passage.protocol in WITH_PORTS
            group = self.atlas.groups.get(passage.group)
            route = passage.route
            if forward is None and route is not None and route.hop is not Hop.INTERNET:
                route = None  # the address sufficed, and its answers do not go by this route
            self._paths.append(
                Path(
                    instance=instance,
                    family=family,
                    protocol=passage.protocol,
                    ports=ports if with_ports else (),
                    public_ports=_asked_for(ports, forward) if with_ports else (),
                    peers=peers,
                    address=address,
                    interface=card.ref,
                    group=passage.group,
                    rule=passage.rule,
                    group_version="" if group is None else group.version,
                    access_list=passage.access_list,
                    entry=passage.entry,
                    answer=passage.answer,
                    route=route,
                    gateway="" if route is None else route.target,
                    forward=forward,
                )
            )

    def _may_pass(self, instance: ResourceRef, unknown: Unknown | None, passages: Sequence[NetworkPath]) -> None:
        """Ways that are open but for what was not read."""
        for passage in passages:
            why = unknown or passage.doubt
            if why is not None:
                for _, ports in _rectangles(passage.boxes, r.V4, None):
                    shown = ports if passage.protocol in WITH_PORTS else ()
                    doubt = PossibleWay(instance, "", r.V4, passage.protocol, shown, why.part, why.detail)
                    self._doubts.setdefault(doubt)

    def _doubt(self, subject: ResourceRef, unknown: Unknown, forward: Forward | None = None) -> None:
        if forward is None:
            doubt = PossibleWay(subject, "", r.V4, ALL, (), unknown.part, unknown.detail)
        else:
            ports = forward.private_ports
            doubt = PossibleWay(
                subject, forward.public_ip, r.V4, forward.protocol.lower(), ports, unknown.part, unknown.detail
            )
        self._doubts.setdefault(doubt)


@lru_cache(maxsize=1 << 15)
def _written(family: int, peers: tuple[r.Range, ...]) -> tuple[str, ...]:
    return r.written(family, peers)


def _rectangles(
    boxes: Sequence[r.Box], family: int, forward: Forward | None
) -> Iterator[tuple[tuple[str, ...], tuple[r.Range, ...]]]:
    """Boxes as networks and the ports that all of these reach; of a forward only what it leads to."""
    if forward is not None and forward.private_ports:
        boxes = r.boxes_common(boxes, r.boxes((r.WHOLE[family],), forward.private_ports))
    by_ports: dict[r.Range, list[r.Range]] = {}
    for low, high, first, last in boxes:
        by_ports.setdefault((first, last), []).append((low, high))
    by_peers: dict[tuple[r.Range, ...], list[r.Range]] = {}
    for ports, peers in by_ports.items():
        by_peers.setdefault(tuple(r.merged(peers)), []).append(ports)
    for together, ranges in by_peers.items():
        yield _written(family, together), tuple(r.merged(ranges))


def _asked_for(ports: tuple[r.Range, ...], forward: Forward | None) -> tuple[r.Range, ...]:
    """The ports at the public address that lead to these of the instance."""
    if forward is None or not forward.private_ports or not forward.public_ports:
        return ports
    found: list[r.Range] = []
    for outside, inside in zip(forward.public_ports, forward.private_ports, strict=False):
        same_length = outside[1] - outside[0] == inside[1] - inside[0]
        for first, last in r.common(ports, [inside]):
            shift = outside[0] - inside[0]
            found.append((first + shift, last + shift) if same_length else outside)
    return tuple(r.merged(found))


def _holds(cidrs: Sequence[str], found: tuple[int, int, int]) -> bool:
    family, first, last = found
    return not r.minus([(first, last)], r.ranges_of(cidrs, family))


@dataclass(frozen=True, slots=True)
class Path:
    """One way from the internet into an instance.

    `family` is 4 or 6. `ports` are the instance's own, empty where the protocol has none; `public_ports` those that are
    asked for at the address, which differ where a `forward` changes them. `peers` are the networks that get in.
    `rule` stands in `group`; `entry` and `answer` (the way out of what is answered) in `access_list`, None without one.
    `route` is the route of the answers and `gateway` where it leads, None and empty where an address suffices.
    """

    instance: ResourceRef
    family: int
    protocol: str
    ports: tuple[tuple[int, int], ...]
    public_ports: tuple[tuple[int, int], ...]
    peers: tuple[str, ...]
    address: str
    interface: ResourceRef
    group: ResourceRef
    rule: NetworkRule
    group_version: str = ""
    access_list: ResourceRef | None = None
    entry: NetworkRule | None = None
    answer: NetworkRule | None = None
    route: Route | None = None
    gateway: str = ""
    forward: Forward | None = None


@dataclass(frozen=True, slots=True)
class PossibleWay:
    """A way that may be there: what it depends on was not read. `part` as in a gap's `what`; no `ports`: any.

    `subject` is the instance, or the gateway whose forward leads to what was not read.
    """

    subject: ResourceRef
    address: str
    family: int
    protocol: str
    ports: tuple[tuple[int, int], ...]
    part: str
    detail: str


@dataclass(frozen=True, slots=True)
class Reachability:
    """Every way in, and every way that cannot be told."""

    paths: tuple[Path, ...]
    doubts: tuple[PossibleWay, ...]
