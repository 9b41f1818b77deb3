"""The last way in for people is never closed: what would be left to each machine behind a mend, before it is made.

Which ways count is told by `network_ways`. What cannot be told never counts as what is left, nor does a network where
nothing is known to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from costguard.domain.network import NetworkInterface, NetworkInventory, NetworkRule, SecurityGroup
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.domain.resources import Instance
from costguard.guards.network.admin_paths import Ways
from costguard.guards.network.reachability import ranges as r
from costguard.guards.network.reachability.filters import Unknown
from costguard.guards.network.rules import ADMIN_PORTS, AuditRule

_OF_GROUPS = frozenset({RemediationKind.REVOKE_RULE, RemediationKind.NARROW_RULE})
_OF_ADDRESSES = frozenset({RemediationKind.RELEASE_ADDRESS, RemediationKind.DETACH_ADDRESS})
_SHOWN = 3  # networks that a reason names
_NOT_FOR = {"linux": frozenset({3389})}  # RDP is no way into a machine that is known to run Linux


def last_admin_path(
    mend: Remediation, inventories: Sequence[NetworkInventory], instances: Sequence[Instance], rule: AuditRule
) -> Reason | None:
    """Why a mend must not be made; None: nothing speaks against it.

    `LAST_ADMIN_PATH`: it would close the last way in through a port of `ADMIN_PORTS`, to any machine behind it, with or
    without accelerators. `ADMIN_PATH_UNPROVEN`: what would be left lets in networks, and of none is it known that
    anybody comes from there. `NET_KEPT`: the policy names what it would change. `NET_UNTOLD`: what would be left was
    not read.
    """
    inventory = next((each for each in inventories if each.shard == mend.subject.shard), None)
    if mend.kind not in _OF_GROUPS | _OF_ADDRESSES:
        return None
    if inventory is None:
        return _untold(Unknown("groups", f"{mend.subject.shard} was not read"))
    kept = _kept(mend, inventory, rule)
    if kept is not None:
        return kept
    after = _after(mend, inventory)
    if isinstance(after, Unknown):
        return _untold(after)
    gap = inventory.lacks("interfaces")
    cards = list(_behind(mend, inventory))
    if gap is not None or not cards:
        return None if gap is None else _untold(Unknown(gap.what, gap.detail))
    cards += _called_from(mend, inventory, cards, rule)
    machines = {card.instance.native_id for card in cards if card.instance is not None}
    left: dict[ResourceRef, list[NetworkInterface]] = {}
    for card in after.interfaces:
        if card.instance is not None and card.instance.native_id in machines:
            left.setdefault(card.instance, []).append(card)
    systems = {each.ref: each.operating_system.lower() for each in instances if each.ref.native_id in machines}
    ways = Ways(inventory, cards, rule), Ways(after, chain(*left.values()), rule)
    return _compared(*ways, cards, left, systems, mend)


def _kept(mend: Remediation, inventory: NetworkInventory, rule: AuditRule) -> Reason | None:
    subject = mend.subject
    rule_id, ip = mend.parameters.get("rule_id", ""), mend.parameters.get("ip", "")
    names = [rule_id, f"{subject.native_id}/{rule_id}", f"{subject}/{rule_id}"] if rule_id else [ip]
    names += [group.name for group in inventory.groups if _is(group.ref, subject)]
    names += [address.name for address in inventory.addresses if _is(address.ref, subject)]
    if not rule.keeps(subject, *(name for name in names if name)):
        return None
    return Reason(ReasonCode.NET_KEPT, {"name": rule_id or ip or subject.native_id})


def _after(mend: Remediation, inventory: NetworkInventory) -> NetworkInventory | Unknown:
    """The shard as it would be after the mend."""
    if mend.kind in _OF_ADDRESSES:
        ip = mend.parameters.get("ip", "")
        return replace(
            inventory,
            interfaces=tuple(
                replace(card, public_ips=tuple(pair for pair in card.public_ips if pair[1] != ip))
                for card in inventory.interfaces
            ),
            addresses=tuple(each for each in inventory.addresses if each.ref != mend.subject and each.ip != ip),
        )
    groups = inventory.groups
    place = next((place for place, each in enumerate(groups) if _is(each.ref, mend.subject)), None)
    if place is None:
        return Unknown("groups", f"{mend.subject.native_id} is not among what was read")
    mended = replace(groups[place], rules=tuple(_mended(groups[place], mend)))
    return replace(inventory, groups=(*groups[:place], mended, *groups[place + 1 :]))


def _is(ref: ResourceRef, other: ResourceRef) -> bool:
    """Whether they are the same; ids differ soonest, and there are thousands to look through."""
    return ref.native_id == other.native_id and ref == other


def _mended(group: SecurityGroup, mend: Remediation) -> Iterator[NetworkRule]:
    for each in group.rules:
        if not _is_meant(each, mend):
            yield each
        elif mend.kind is RemediationKind.NARROW_RULE:
            peers = tuple(peer for peer in mend.parameters.get("peers", "").split(",") if peer)
            yield replace(each, peers=peers, peer_groups=(), unresolved=())


def _is_meant(rule: NetworkRule, mend: Remediation) -> bool:
    wanted = (mend.parameters.get("rule_id"), mend.parameters.get("direction"))
    return (rule.rule_id, rule.direction.value) == wanted


def _behind(mend: Remediation, inventory: NetworkInventory) -> Iterator[NetworkInterface]:
    """The cards that the mend may close something to."""
    ip = mend.parameters.get("ip", "")
    bound = {each.bound_to for each in inventory.addresses if each.ref == mend.subject and each.bound_to}
    for card in inventory.interfaces:
        if mend.kind in _OF_GROUPS:
            if mend.subject.native_id in card.groups:
                yield card
        elif any(public == ip for _, public in card.public_ips) or bound & {card.ref, card.instance}:
            yield card


def _called_from(
    mend: Remediation, inventory: NetworkInventory, behind: Sequence[NetworkInterface], rule: AuditRule
) -> list[NetworkInterface]:
    """The cards of other machines that let an address in: who comes from there may do so by it alone."""
    if mend.kind is not RemediationKind.DETACH_ADDRESS:
        return []
    known = {card.ref for card in behind}
    others = [card for card in inventory.interfaces if card.ref not in known and card.instance is not None]
    ways, ip = Ways(inventory, others, rule), mend.parameters.get("ip", "")

    def lets_in(card: NetworkInterface, port: int) -> bool:
        found = ways.let_in(card, port, certain=False)
        return any(r.common(ranges, r.ranges_of([ip], family)) for family, ranges in found.items())

    return [card for card in others if any(lets_in(card, port) for port in ADMIN_PORTS)]


def _compared(
    before: Ways,
    after: Ways,
    cards: Sequence[NetworkInterface],
    left: Mapping[ResourceRef, Sequence[NetworkInterface]],
    systems: Mapping[ResourceRef, str],
    mend: Remediation,
) -> Reason | None:
    """What is to be said of machines that would be shut: some network is, and nobody known of would get in."""
    after_of = {card.ref: card for each in left.values() for card in each}
    closed = [
        (card.instance, port)
        for card in cards
        for port in _ports_of(card, systems)
        if card.instance is not None
        and (
            not any(after.enters(each, port) for each in left[card.instance])
            if _shut_out(before, after, card, after_of[card.ref], port)
            else mend.kind is RemediationKind.DETACH_ADDRESS
            and before.is_entered(card, port)
            and not any(after.is_entered(each, port) for each in left[card.instance])
        )
    ]
    if not closed:
        return None
    for instance, port in closed:
        for card in left[instance]:
            unknown = after.unknown(card)
            if unknown is not None and any(after.let_in(card, port, certain=False).values()):
                return _untold(unknown)
    instance, port = closed[0]
    still = _still_let_in(after, left[instance], port)
    facts: dict[str, FactValue] = {
        "instance": instance.native_id,
        "instances": len({each for each, _ in closed}),
        "port": port,
        "name": mend.parameters.get("rule_id") or mend.parameters.get("ip", ""),
    }
    if still:
        return Reason(ReasonCode.ADMIN_PATH_UNPROVEN, {**facts, "left": still})
    return Reason(ReasonCode.LAST_ADMIN_PATH, facts)


def _shut_out(before: Ways, after: Ways, was: NetworkInterface, card: NetworkInterface, port: int) -> bool:
    """Whether any network that may get to a card would certainly no longer: else nothing is closed there."""
    still = after.let_in(card, port, certain=True)
    return any(r.minus(found, still[family]) for family, found in before.let_in(was, port, certain=False).items())


def _still_let_in(after: Ways, cards: Sequence[NetworkInterface], port: int) -> str:
    """The networks that would still get in, whoever is there; the first few of them."""
    found = {
        network: None
        for card in cards
        for family, ranges in after.let_in(card, port, certain=True).items()
        if ranges
        for network in r.written(family, ranges, exactly=True)
    }
    shown = list(found)[:_SHOWN]
    return ", ".join([*shown, *(["…"] if len(found) > _SHOWN else [])])


def _ports_of(card: NetworkInterface, systems: Mapping[ResourceRef, str]) -> list[int]:
    system = "" if card.instance is None else systems.get(card.instance, "")
    return [port for port in ADMIN_PORTS if port not in _NOT_FOR.get(system, frozenset())]


def _untold(unknown: Unknown) -> Reason:
    return Reason(ReasonCode.NET_UNTOLD, {"part": unknown.part, "detail": unknown.detail})
