"""The networks of a world: one inventory a shard, as it really is, and every change that was made to it.

What each vendor calls things and refuses lives in its wire; here a change happens or the thing is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from cloudstand.world.network.parts import (
    AddressState,
    Direction,
    FlowLog,
    NetworkInterface,
    NetworkInventory,
    NetworkRule,
    PublicAddress,
    RuleOrder,
    SecurityGroup,
)
from cloudstand.world.places import Place, Ref
from cloudstand.world.records import Refusal, WorldRefusalError

_Part = TypeVar("_Part", SecurityGroup, PublicAddress, NetworkInterface, FlowLog)


PARTS = {
    "vpcs": "vpcs",
    "subnets": "subnets",
    "routes": "route_tables",
    "groups": "groups",
    "access_lists": "access_lists",
    "interfaces": "interfaces",
    "addresses": "addresses",
    "nat_gateways": "nat_gateways",
    "flow_logs": "flow_logs",
    "peerings": "peerings",
}
"""What a gap calls a part of an inventory → the field that holds it."""


class Networks:
    """All networks of a world. `history`: when, by whom, what, to what.

    `lists`: the networks in lists that rules name, by id.
    `imds_v1` by instance: whether its metadata answers without a session token; absent where the cloud says nothing.
    `tell_estate` learns which machine an address leads to from now on, so that machines and networks say the same.
    """

    def __init__(self, shards: Iterable[NetworkInventory] = ()) -> None:
        self._shards: dict[Place, NetworkInventory] = {each.shard: each for each in shards}
        self.history: list[tuple[datetime, str, str, Ref]] = []
        self.imds_v1: dict[Ref, bool] = {}
        self.lists: dict[str, tuple[str, ...]] = {}
        self._denied: set[tuple[str, str, str]] = set()
        self.tell_estate: Callable[[PublicAddress, Ref | None], None] | None = None

    def place(self, inventory: NetworkInventory) -> None:
        """The networks of one shard, in place of what was there."""
        self._shards[inventory.shard] = inventory

    def of(self, shard: Place) -> NetworkInventory:
        """The networks of a shard as they are; an empty inventory where there are none."""
        return self._shards.get(shard) or NetworkInventory(shard)

    def addresses(self) -> tuple[PublicAddress, ...]:
        """Every kept address of every shard."""
        return tuple(address for shard in self._shards.values() for address in shard.addresses)

    def deny(self, cloud: str, account: str, part: str) -> None:
        """From now on the program's own role may not read this one part (a name of `PARTS`) in that account."""
        self._denied.add((cloud, account, part))

    def allow(self, cloud: str, account: str, part: str) -> None:
        """Lift a denial of one part."""
        self._denied.discard((cloud, account, part))

    def may(self, cloud: str, account: str, part: str) -> bool:
        """Whether the program's own role may read this part; `Operation.NETWORK` denies them all."""
        return (cloud, account, part) not in self._denied

    def group(self, ref: Ref) -> SecurityGroup:
        """One security group.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        return _one(self.of(ref.shard).groups, ref)

    def address(self, ref: Ref) -> PublicAddress:
        """One kept address.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        return _one(self.of(ref.shard).addresses, ref)

    def set_rules(self, ref: Ref, rules: Iterable[NetworkRule], now: datetime, by: str, what: str) -> None:
        """These rules in place of the group's own; its version goes up, and where a rule is its place all get new ones.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        group = self.group(ref)
        version = str(int(group.version) + 1) if group.version.isdecimal() else group.version
        kept = in_their_places(rules) if group.order is RuleOrder.FIRST_MATCH else tuple(rules)
        after = replace(group, rules=kept, version=version)
        shard = self.of(ref.shard)
        self.place(replace(shard, groups=_swapped(shard.groups, after)))
        self.history.append((now, by, what, ref))

    def rule(self, ref: Ref, rule_id: str, direction: Direction | None = None) -> NetworkRule:
        """One rule of a group. Where ids are places each direction has its own, so that `direction` must be said.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        for rule in self.group(ref).rules:
            if rule.rule_id == rule_id and direction in (None, rule.direction):
                return rule
        raise WorldRefusalError(Refusal.NOT_FOUND, rule_id)

    def revoke(self, ref: Ref, rule_id: str, now: datetime, by: str, direction: Direction | None = None) -> NetworkRule:
        """Take one rule away; returns what it was. `direction` as for `rule`.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        rules, gone = self.group(ref).rules, self.rule(ref, rule_id, direction)
        self.set_rules(ref, [rule for rule in rules if rule is not gone], now, by, f"revoked {rule_id}")
        return gone

    def release(self, ref: Ref, now: datetime, by: str) -> None:
        """Give an address up for good.

        Raises:
            WorldRefusalError: NOT_FOUND, PREPAID, or WRONG_STATE where it is bound to something or a service keeps it.
        """
        address = self.address(ref)
        if address.is_prepaid:
            raise WorldRefusalError(Refusal.PREPAID, ref.native_id)
        if address.state is not AddressState.UNATTACHED or address.is_service_managed:
            raise WorldRefusalError(Refusal.WRONG_STATE, ref.native_id)
        shard = self.of(ref.shard)
        self.place(replace(shard, addresses=tuple(each for each in shard.addresses if each.ref != ref)))
        self._tell(address, None)
        self.history.append((now, by, "released", ref))

    def detach(self, ref: Ref, now: datetime, by: str) -> None:
        """Take an address off what it is bound to.

        Raises:
            WorldRefusalError: NOT_FOUND, or WRONG_STATE where it is bound to nothing.
        """
        address = self.address(ref)
        if address.bound_to is None:
            raise WorldRefusalError(Refusal.WRONG_STATE, ref.native_id)
        self._interfaces(ref.shard, lambda card: replace(card, public_ips=_without(card, address.ip)))
        self._address(replace(address, state=AddressState.UNATTACHED, bound_to=None))
        self._tell(address, None)
        self.history.append((now, by, "detached", ref))

    def attach(self, ref: Ref, interface: Ref, private_ip: str, now: datetime, by: str) -> None:
        """Bind an address to a private one of an interface.

        Raises:
            WorldRefusalError: NOT_FOUND, or WRONG_STATE where it is bound already.
        """
        address = self.address(ref)
        if address.bound_to is not None:
            raise WorldRefusalError(Refusal.WRONG_STATE, ref.native_id)
        card = _one(self.of(ref.shard).interfaces, interface)
        pairs = (*card.public_ips, (private_ip, address.ip))
        self._interfaces(ref.shard, lambda each: replace(each, public_ips=pairs) if each.ref == interface else each)
        self._address(replace(address, state=AddressState.IN_USE, bound_to=card.instance or interface))
        self._tell(address, card.instance)
        self.history.append((now, by, "attached", ref))

    def log_flows(self, log: FlowLog, now: datetime, by: str) -> None:
        """One more flow log."""
        shard = self.of(log.ref.shard)
        self.place(replace(shard, flow_logs=(*shard.flow_logs, log)))
        self.history.append((now, by, "flow log begun", log.covers))

    def end_flow_log(self, ref: Ref, now: datetime, by: str) -> None:
        """One flow log less.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        shard = self.of(ref.shard)
        _one(shard.flow_logs, ref)
        self.place(replace(shard, flow_logs=tuple(each for each in shard.flow_logs if each.ref != ref)))
        self.history.append((now, by, "flow log ended", ref))

    def set_imds(self, instance: Ref, *, v1: bool, now: datetime, by: str) -> None:
        """Whether the instance's metadata answers without a session token."""
        self.imds_v1[instance] = v1
        self.history.append((now, by, f"imds v1 {'allowed' if v1 else 'refused'}", instance))

    def public_ip_changed(self, instance: Ref, ip: str) -> None:
        """The machine's plain public address is this one from now on; empty for none. Kept ones stay."""
        kept = {address.ip for address in self.of(instance.shard).addresses}

        def changed(card: NetworkInterface) -> NetworkInterface:
            if card.instance != instance or card.primary is False or not card.private_ips:
                return card
            pairs = tuple(pair for pair in card.public_ips if pair[1] in kept)
            return replace(card, public_ips=((card.private_ips[0], ip), *pairs) if ip else pairs)

        self._interfaces(instance.shard, changed)

    def instance_gone(self, instance: Ref) -> None:
        """A machine ended: its interfaces go with it, its kept addresses stay, bound to nothing."""
        shard = self.of(instance.shard)
        cards = tuple(card for card in shard.interfaces if card.instance != instance)
        if cards == shard.interfaces:
            return
        left = {card.ref for card in cards}
        bare = [card.ref for card in shard.interfaces if card.ref not in left]
        addresses = tuple(
            replace(each, state=AddressState.UNATTACHED, bound_to=None) if each.bound_to in (instance, *bare) else each
            for each in shard.addresses
        )
        self.place(replace(shard, interfaces=cards, addresses=addresses))

    def _tell(self, address: PublicAddress, machine: Ref | None) -> None:
        if self.tell_estate is not None:
            self.tell_estate(address, machine)

    def _address(self, after: PublicAddress) -> None:
        shard = self.of(after.ref.shard)
        self.place(replace(shard, addresses=_swapped(shard.addresses, after)))

    def _interfaces(self, shard: Place, change: Callable[[NetworkInterface], NetworkInterface]) -> None:
        now = self.of(shard)
        self.place(replace(now, interfaces=tuple(change(card) for card in now.interfaces)))


def in_their_places(rules: Iterable[NetworkRule]) -> tuple[NetworkRule, ...]:
    """First match: a rule's id and priority are its place among those of its direction, from 0."""
    counts: dict[Direction, int] = {}
    placed = []
    for rule in rules:
        place = counts.get(rule.direction, 0)
        counts[rule.direction] = place + 1
        placed.append(replace(rule, rule_id=str(place), priority=place))
    return tuple(placed)


def _one(parts: Iterable[_Part], ref: Ref) -> _Part:
    found = next((part for part in parts if part.ref == ref), None)
    if found is None:
        raise WorldRefusalError(Refusal.NOT_FOUND, ref.native_id)
    return found


def _swapped(parts: Iterable[_Part], after: _Part) -> tuple[_Part, ...]:
    return tuple(after if part.ref == after.ref else part for part in parts)


def _without(card: NetworkInterface, ip: str) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in card.public_ips if pair[1] != ip)
