"""What lists of rules let in: of every allowing rule the part that it decides, and what cannot be told of it.

Vendors on several groups of one interface: AWS adds them up. Alibaba Cloud puts the rules of all of them into one list
by priority, of equals denials first. Tencent Cloud goes through the groups in their order, each from its top. What no
rule matches is denied in all three, and in access lists.

What is uncertain is reckoned twice: a way is certain where it is open whatever the unknown turns out to be, and
doubtful where it is open only if that turns out so. A way that is neither is closed, whatever else was not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from costguard.domain.network import Direction, NetworkRule, Permission, RuleOrder
from costguard.domain.refs import ResourceRef
from costguard.guards.network.reachability import ranges as r

ALL = "all"
WITH_PORTS = frozenset({"tcp", "udp"})
_NUMBERS = {"6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6", "-1": ALL, "any": ALL}  # IANA; vendors use both


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why something cannot be told: the part of the inventory, and what is the matter with it."""

    part: str
    detail: str


@dataclass(frozen=True, slots=True)
class ListedRule:
    """A rule and the list that holds it. `unknown`: the list may hold others, or any at all, at this place."""

    holder: ResourceRef
    rule: NetworkRule | None
    unknown: Unknown | None = None


Rules = tuple[RuleOrder | None, tuple[ListedRule, ...]]
"""The rules of one group; no order where the group itself is not known."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What one allowing rule lets in. `rule` None: whatever stands in a list that was not read."""

    holder: ResourceRef
    rule: NetworkRule | None
    boxes: tuple[r.Box, ...]
    doubt: Unknown | None = None


def protocol_of(rule: NetworkRule) -> str:
    """The protocol by its name, in small letters."""
    word = rule.protocol.lower()
    return _NUMBERS.get(word, word)


def protocols_of(held: Iterable[ListedRule], family: int) -> tuple[str, ...]:
    """The protocols worth asking for: the usual ones, and any other that a rule allows by name."""
    usual = ("tcp", "udp", "icmp" if family == r.V4 else "icmpv6")
    named = {protocol_of(each.rule) for each in held if each.rule and each.rule.permission is Permission.ALLOW}
    return (*usual, *sorted(named - {*usual, ALL, "icmp", "icmpv6"}))


def in_order(groups: Sequence[Rules]) -> tuple[RuleOrder, list[ListedRule]]:
    """The rules of all groups of an interface as one list, in the order in which they are read."""
    order = next((order for order, _ in groups if order is not None), RuleOrder.UNION)
    if order is RuleOrder.PRIORITY:
        together = [each for _, held in groups for each in held]
        return order, sorted(together, key=_by_priority)
    return order, [each for _, held in groups for each in sorted(held, key=_by_place)]


def _by_priority(held: ListedRule) -> tuple[int, int]:
    # what is not known may have any priority, the highest included
    return (-1, 0) if held.rule is None else (held.rule.priority, held.rule.permission is Permission.ALLOW)


def _by_place(held: ListedRule) -> int:
    return -1 if held.rule is None else held.rule.priority


def admitted(
    held: Iterable[ListedRule], order: RuleOrder, direction: Direction, family: int, protocol: str
) -> tuple[Grant, ...]:
    """What a list lets through in one direction, by the rule that decides; `held` is in its order of reading."""
    grants: list[Grant] = []
    decided: list[r.Box] = []
    maybe: list[r.Box] = []
    why: Unknown | None = None
    for each in held:
        if each.rule is not None and each.rule.direction is not direction:
            continue
        sure, unsure, unknown = _matched(each, family, protocol)
        denies = each.rule is not None and each.rule.permission is Permission.DENY
        if order is RuleOrder.UNION:
            if not denies:
                _grant(grants, each, sure, None)
                _grant(grants, each, unsure, unknown)
            continue
        if not denies:
            left = r.boxes_minus(sure, decided)
            certain = r.boxes_minus(left, maybe)
            _grant(grants, each, certain, None)
            _grant(grants, each, r.boxes_minus(left, certain) if maybe else [], why)
            _grant(grants, each, r.boxes_minus(unsure, decided), unknown)
        if unsure and (denies or each.rule is None):
            maybe, why = [*maybe, *unsure], why or unknown
        decided.extend(sure)
    return tuple(grants)


def _grant(grants: list[Grant], held: ListedRule, given: Sequence[r.Box], doubt: Unknown | None) -> None:
    if given:
        grants.append(Grant(held.holder, held.rule, tuple(given), doubt))


def _matched(held: ListedRule, family: int, protocol: str) -> tuple[list[r.Box], list[r.Box], Unknown | None]:
    """What a rule matches for sure, what it may match, and why that is not sure."""
    everything = [(*r.WHOLE[family], *r.PORTS)]
    rule = held.rule
    if rule is None:
        return [], everything, held.unknown
    if protocol_of(rule) not in {ALL, protocol}:
        return [], [], None
    sure, strange = _peers(rule, family)
    if protocol not in WITH_PORTS:
        ports: Sequence[r.Range] = (r.PORTS,)
    elif rule.ports:
        ports = rule.ports
    else:
        unknown = _untold(held, rule, "which ports is not told")
        return [], r.boxes(sure or ([r.WHOLE[family]] if strange else []), (r.PORTS,)), unknown
    if not strange:
        return r.boxes(sure, ports), [], None
    unknown = _untold(held, rule, f"{strange[0]} could not be resolved")
    return r.boxes(sure, ports), r.boxes([r.WHOLE[family]], ports), unknown


def _untold(held: ListedRule, rule: NetworkRule, what: str) -> Unknown:
    part = "access_lists" if held.holder.kind == "access_list" else "groups"
    return Unknown(part, f"{held.holder.native_id} {rule.rule_id}: {what}")


def _peers(rule: NetworkRule, family: int) -> tuple[list[r.Range], list[str]]:
    """The peers of this family, and names of those that could not be read."""
    found: list[r.Range] = []
    strange = list(rule.unresolved)
    for peer in rule.peers:
        network = r.parsed(peer)
        if network is None:
            strange.append(peer)
        elif network[0] == family:
            found.append(network[1:])
    return (r.merged(found) if len(found) > 1 else found), strange
