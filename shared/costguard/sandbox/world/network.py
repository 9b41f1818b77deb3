"""The networks of a world: one inventory a shard, as it really is, and every change that was made to it.

What each vendor calls things and refuses lives in its wire; here a change happens or the thing is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from costguard.domain.network import (
    AddressState,
    FlowLog,
    NetworkInterface,
    NetworkInventory,
    NetworkRule,
    PublicAddress,
    SecurityGroup,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.sandbox.world.records import Refusal, WorldRefusalError

_Part = TypeVar("_Part", SecurityGroup, PublicAddress, NetworkInterface, FlowLog)


class Networks:
    """All networks of a world. `history`: when, by whom, what, to what."""

    def __init__(self, shards: Iterable[NetworkInventory] = ()) -> None:
        self._shards: dict[Shard, NetworkInventory] = {each.shard: each for each in shards}
        self.history: list[tuple[datetime, str, str, ResourceRef]] = []
        self.imds_v1: dict[ResourceRef, bool] = {}

    def place(self, inventory: NetworkInventory) -> None:
        """The networks of one shard, in place of what was there."""
        self._shards[inventory.shard] = inventory

    def of(self, shard: Shard) -> NetworkInventory:
        """The networks of a shard as they are; an empty inventory where there are none."""
        return self._shards.get(shard) or NetworkInventory(shard)

    def group(self, ref: ResourceRef) -> SecurityGroup:
        """One security group.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        return _one(self.of(ref.shard).groups, ref)

    def address(self, ref: ResourceRef) -> PublicAddress:
        """One kept address.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        return _one(self.of(ref.shard).addresses, ref)

    def set_rules(self, ref: ResourceRef, rules: Iterable[NetworkRule], now: datetime, by: str, what: str) -> None:
        """These rules in place of the group's own; its version goes up.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        group = self.group(ref)
        version = str(int(group.version) + 1) if group.version.isdecimal() else group.version
        after = replace(group, rules=tuple(rules), version=version)
        shard = self.of(ref.shard)
        self.place(replace(shard, groups=_swapped(shard.groups, after)))
        self.history.append((now, by, what, ref))

    def revoke(self, ref: ResourceRef, rule_id: str, now: datetime, by: str) -> NetworkRule:
        """Take one rule away; returns what it was.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        rules = self.group(ref).rules
        gone = next((rule for rule in rules if rule.rule_id == rule_id), None)
        if gone is None:
            raise WorldRefusalError(Refusal.NOT_FOUND, rule_id)
        self.set_rules(ref, [rule for rule in rules if rule is not gone], now, by, f"revoked {rule_id}")
        return gone

    def release(self, ref: ResourceRef, now: datetime, by: str) -> None:
        """Give an address up for good.

        Raises:
            WorldRefusalError: NOT_FOUND, PREPAID, or WRONG_STATE where it is bound to something.
        """
        address = self.address(ref)
        if address.is_prepaid:
            raise WorldRefusalError(Refusal.PREPAID, ref.native_id)
        if address.state is not AddressState.UNATTACHED:
            raise WorldRefusalError(Refusal.WRONG_STATE, ref.native_id)
        shard = self.of(ref.shard)
        self.place(replace(shard, addresses=tuple(each for each in shard.addresses if each.ref != ref)))
        self.history.append((now, by, "released", ref))

    def detach(self, ref: ResourceRef, now: datetime, by: str) -> None:
        """Take an address off what it is bound to.

        Raises:
            WorldRefusalError: NOT_FOUND, or WRONG_STATE where it is bound to nothing.
        """
        address = self.address(ref)
        if address.bound_to is None:
            raise WorldRefusalError(Refusal.WRONG_STATE, ref.native_id)
        self._interfaces(ref.shard, lambda card: replace(card, public_ips=_without(card, address.ip)))
        self._address(replace(address, state=AddressState.UNATTACHED, bound_to=None))
        self.history.append((now, by, "detached", ref))

    def attach(self, ref: ResourceRef, interface: ResourceRef, private_ip: str, now: datetime, by: str) -> None:
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
        self.history.append((now, by, "attached", ref))

    def log_flows(self, log: FlowLog, now: datetime, by: str) -> None:
        """One more flow log."""
        shard = self.of(log.ref.shard)
        self.place(replace(shard, flow_logs=(*shard.flow_logs, log)))
        self.history.append((now, by, "flow log begun", log.covers))

    def end_flow_log(self, ref: ResourceRef, now: datetime, by: str) -> None:
        """One flow log less.

        Raises:
            WorldRefusalError: NOT_FOUND.
        """
        shard = self.of(ref.shard)
        _one(shard.flow_logs, ref)
        self.place(replace(shard, flow_logs=tuple(each for each in shard.flow_logs if each.ref != ref)))
        self.history.append((now, by, "flow log ended", ref))

    def set_imds(self, instance: ResourceRef, *, v1: bool, now: datetime, by: str) -> None:
        """Whether the instance's metadata answers without a session token."""
        self.imds_v1[instance] = v1
        self.history.append((now, by, f"imds v1 {'allowed' if v1 else 'refused'}", instance))

    def _address(self, after: PublicAddress) -> None:
        shard = self.of(after.ref.shard)
        self.place(replace(shard, addresses=_swapped(shard.addresses, after)))

    def _interfaces(self, shard: Shard, change: Callable[[NetworkInterface], NetworkInterface]) -> None:
        now = self.of(shard)
        self.place(replace(now, interfaces=tuple(change(card) for card in now.interfaces)))


def _one(parts: Iterable[_Part], ref: ResourceRef) -> _Part:
    found = next((part for part in parts if part.ref == ref), None)
    if found is None:
        raise WorldRefusalError(Refusal.NOT_FOUND, ref.native_id)
    return found


def _swapped(parts: Iterable[_Part], after: _Part) -> tuple[_Part, ...]:
    return tuple(after if part.ref == after.ref else part for part in parts)


def _without(card: NetworkInterface, ip: str) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in card.public_ips if pair[1] != ip)
