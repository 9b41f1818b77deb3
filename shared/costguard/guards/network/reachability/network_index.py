"""All shards as one: every part by its id, and what of it was not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from costguard.domain.network import (
    AccessList,
    NatGateway,
    NetworkInterface,
    NetworkInventory,
    NetworkRule,
    Peering,
    Route,
    RouteTable,
    SecurityGroup,
    Subnet,
    Vpc,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Instance
from costguard.guards.network.reachability import ranges as r
from costguard.guards.network.reachability.filters import ListedRule, Rules, Unknown

NOT_TOLD = "is not among what was read"


class NetworkIndex:
    """The networks of all shards that were read, by id."""

    def __init__(self, inventories: Sequence[NetworkInventory], instances: Sequence[Instance]) -> None:
        self.inventories = {each.shard: each for each in inventories}
        self.instances = {each.ref: each for each in instances}
        self.groups: dict[ResourceRef, SecurityGroup] = {}
        self._subnets: dict[ResourceRef, Subnet] = {}
        self._vpcs: dict[ResourceRef, Vpc] = {}
        self._tables: dict[ResourceRef, RouteTable] = {}
        self._lists: dict[ResourceRef, AccessList] = {}
        self._peerings: dict[tuple[Shard, str], Peering] = {}
        self.cards: dict[ResourceRef, list[NetworkInterface]] = {}
        self._members: dict[str, list[NetworkInterface]] | None = None
        self._by_ip: dict[tuple[ResourceRef, str], NetworkInterface] = {}
        self._bound: dict[ResourceRef, list[str]] = {}
        for each in inventories:
            self._take(each)
        self._held: dict[ResourceRef, Rules] = {}

    def _take(self, inventory: NetworkInventory) -> None:
        self.groups.update((part.ref, part) for part in inventory.groups)
        self._subnets.update((part.ref, part) for part in inventory.subnets)
        self._vpcs.update((part.ref, part) for part in inventory.vpcs)
        self._tables.update((part.ref, part) for part in inventory.route_tables)
        self._lists.update((part.ref, part) for part in inventory.access_lists)
        self._peerings.update(((inventory.shard, part.ref.native_id), part) for part in inventory.peerings)
        for address in inventory.addresses:
            if address.bound_to is not None:
                self._bound.setdefault(address.bound_to, []).append(address.ip)
        for card in inventory.interfaces:
            held = self.cards.setdefault(card.instance, []) if card.instance is not None else []
            if card.instance is not None and card.ref not in {other.ref for other in held}:
                held.append(card)  # a shared subnet's card is told to its owner and to whom it is shared with
            if card.vpc is not None:
                self._by_ip.update(((card.vpc, ip), card) for ip in card.private_ips)

    def lacks(self, shard: Shard, *parts: str) -> Unknown | None:
        """Why these parts of a shard cannot be told, if they cannot: a gap, or a shard that was not read."""
        inventory = self.inventories.get(shard)
        if inventory is None:
            return Unknown(parts[0], f"{shard} was not read")
        gap = inventory.lacks(*parts)
        return None if gap is None else Unknown(gap.what, f"{gap.kind.value}: {gap.detail}")

    def group_rules(self, shard: Shard, group_id: str) -> Rules:
        """The rules of a group, with what is not known of them; no order where the group itself is not known.

        Where groups were read in part, one whose rules add up still lets in what it says; of any other order an unread
        rule may stand before those that were read.
        """
        ref = ResourceRef(shard.cloud, shard.account, shard.region, "security_group", group_id)
        found = self._held.get(ref)
        if found is not None:
            return found
        group, gap = self.groups.get(ref), self.lacks(shard, "groups")
        held: tuple[ListedRule, ...] = () if group is None else tuple(ListedRule(ref, rule) for rule in group.rules)
        if group is None:
            gap = gap or Unknown("groups", f"{group_id} {NOT_TOLD}")
        if gap is not None:
            held = (ListedRule(ref, None, gap), *held)
        self._held[ref] = (None if group is None else group.order), held
        return self._held[ref]

    def listed(self, subnet: Subnet) -> tuple[ResourceRef, tuple[ListedRule, ...]] | None:
        """The access list in force around a subnet and its entries, in order; None where there is none."""
        gap = self.lacks(subnet.ref.shard, "access_lists")
        ref = subnet.access_list
        if ref is None and gap is None:
            return None
        found = None if ref is None else self._lists.get(ref)
        held = () if found is None else tuple(ListedRule(found.ref, rule) for rule in sorted(found.rules, key=_place))
        if found is None and gap is None:
            gap = Unknown("access_lists", f"{ref.native_id if ref else ''} {NOT_TOLD}")
        holder = ref or subnet.ref.sibling("access_list", "")
        return holder, held if gap is None else (ListedRule(holder, None, gap), *held)

    def vpc(self, card: NetworkInterface) -> Vpc | Unknown | None:
        """The network of a card; None: it is in none (a classic network)."""
        if card.vpc is None:
            return None
        gap = self.lacks(card.ref.shard, "vpcs")
        return gap or self._vpcs.get(card.vpc) or Unknown("vpcs", f"{card.vpc.native_id} {NOT_TOLD}")

    def subnet(self, card: NetworkInterface) -> Subnet | Unknown:
        """The subnet of a card that is in a network."""
        gap = self.lacks(card.ref.shard, "subnets")
        if gap is not None:
            return gap
        if card.subnet is None:
            return Unknown("subnets", f"that of {card.ref.native_id} {NOT_TOLD}")
        return self._subnets.get(card.subnet) or Unknown("subnets", f"{card.subnet.native_id} {NOT_TOLD}")

    def routes(self, subnet: Subnet, vpc: Vpc) -> tuple[Route, ...] | Unknown:
        """The routes in force in a subnet."""
        gap = self.lacks(subnet.ref.shard, "routes")
        if gap is not None:
            return gap
        if subnet.route_table is None:
            return Unknown("routes", f"those of {subnet.ref.native_id} are not told") if vpc.needs_gateway else ()
        table = self._tables.get(subnet.route_table)
        return Unknown("routes", f"{subnet.route_table.native_id} {NOT_TOLD}") if table is None else table.routes

    def far_end(self, shard: Shard, peering_id: str) -> tuple[ResourceRef, Peering] | Unknown:
        """The network at the other end of a peering as this shard calls it."""
        peering = self._peerings.get((shard, peering_id))
        if peering is None:
            return self.lacks(shard, "peerings") or Unknown("peerings", f"{peering_id} {NOT_TOLD}")
        return _far(peering), peering

    def joined(self, vpc: ResourceRef) -> Iterator[tuple[ResourceRef, Peering]]:
        """Every network that is joined to one, as either of the two ends tells."""
        for peering in self._peerings.values():
            if not peering.active:
                continue
            if peering.vpc == vpc:
                yield _far(peering), peering
            elif _far(peering) == vpc:
                yield peering.vpc, peering

    def card_at(self, vpc: ResourceRef, ip: str) -> NetworkInterface | None:
        """Who has a private address in a network."""
        return self._by_ip.get((vpc, ip))

    def cidrs_of(self, vpc: ResourceRef) -> tuple[str, ...]:
        """The networks of a VPC, as far as it was read."""
        found = self._vpcs.get(vpc)
        return () if found is None else found.cidrs

    def gateways(self) -> Iterator[NatGateway]:
        """Every gateway that translates for the internet."""
        for inventory in self.inventories.values():
            yield from (gateway for gateway in inventory.nat_gateways if not gateway.is_private)

    def members(self, group_id: str) -> Sequence[NetworkInterface]:
        """The cards of machines in a group."""
        if self._members is None:
            self._members = {}
            for cards in self.cards.values():
                for card in cards:
                    for group in card.groups:
                        self._members.setdefault(group, []).append(card)
        return self._members.get(group_id, ())

    def has_public(self, card: NetworkInterface, family: int) -> bool:
        """Whether a public address leads to a card, as the card or the address tells."""
        return bool(card.ipv6_public) if family == r.V6 else bool(self.public_v4(card))

    def public_v4(self, card: NetworkInterface) -> list[str]:
        """The public IPv4 addresses that lead to a card, as the card or the addresses tell."""
        holders = (card.ref,) if card.instance is None else (card.ref, card.instance)
        return [
            *(public for _, public in card.public_ips),
            *(ip for holder in holders for ip in self._bound.get(holder, ()) if ":" not in ip),
        ]

    def addresses_of(self, instance: Instance) -> list[tuple[NetworkInterface, int, str]]:
        """Every public address that leads to an instance: the card, its family, and the address.

        Cards tell theirs; an address that only its own listing or the instance's tells counts for the first card.
        """
        cards = self.cards.get(instance.ref, [])
        found = [(card, r.V4, public) for card in cards for _, public in card.public_ips]
        found += [(card, r.V6, public) for card in cards for public in card.ipv6_public]
        known = {public for _, _, public in found}
        more = [(ip, ref) for ref in (instance.ref, *(card.ref for card in cards)) for ip in self._bound.get(ref, ())]
        if instance.public_ip:
            more.append((instance.public_ip, instance.ref))
        for ip, ref in more:
            if ip not in known and cards:
                known.add(ip)
                card = next((card for card in cards if card.ref == ref), _first(cards))
                found.append((card, r.V6 if ":" in ip else r.V4, ip))
        return found


def _far(peering: Peering) -> ResourceRef:
    return ResourceRef(peering.ref.cloud, peering.other_account, peering.other_region, "vpc", peering.other_vpc)


def _first(cards: Sequence[NetworkInterface]) -> NetworkInterface:
    return next((card for card in cards if card.primary), cards[0])


def _place(rule: NetworkRule) -> int:
    return rule.priority
