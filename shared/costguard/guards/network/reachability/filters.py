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

from costguard.domain.network import Direction, Hop, NetworkRule, Permission, Route, RuleOrder
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


_TRANSLATED = frozenset({Hop.INTERNET, Hop.NAT})


@dataclass(frozen=True, slots=True)
class Way:
    """The peers for which one route is in force; `route` None: no route matches. `doubt`: it may be in force."""

    peers: tuple[r.Range, ...]
    route: Route | None
    doubt: Unknown | None = None


def ways(routes: Sequence[Route], family: int) -> tuple[Way, ...]:
    """Every route by the longest prefix, for the peers that no longer one takes; last what no route matches.

    A destination that is no network (a list of networks by name) counts only where it leads to the internet, and then
    as a doubt: elsewhere it can only take peers away.
    """
    told = [(to, route) for route in routes if (to := r.parsed(route.destination)) and to[0] == family]
    told.sort(key=lambda each: each[0][2] - each[0][1])  # stable: of equals the first that is listed
    found: list[Way] = []
    taken: list[r.Range] = []
    for (_, first, last), route in told:
        left = r.minus([(first, last)], taken)
        if left:
            found.append(Way(tuple(left), route))
            taken = r.merged([*taken, (first, last)])
    rest = tuple(r.minus([r.WHOLE[family]], taken))
    if rest:
        found.append(Way(rest, None))
    for route in routes:
        if r.parsed(route.destination) is None and route.hop is Hop.INTERNET and route.active:
            unknown = Unknown("routes", f"{route.destination} could not be resolved")
            found.append(Way((r.WHOLE[family],), route, unknown))
    return tuple(found)


def lets_out(route: Route | None, *, needs_gateway: bool) -> bool:
    """Whether answers of an address reach the internet by this route.

    Where an address suffices it goes before any default route, but not before a longer prefix or a dead end.
    """
    if needs_gateway:
        return route is not None and route.active and route.hop is Hop.INTERNET
    if route is None:
        return True
    if not route.active or route.hop is Hop.EGRESS_ONLY:
        return False
    return route.hop in _TRANSLATED or _is_default(route)


def _is_default(route: Route) -> bool:
    found = r.parsed(route.destination)
    return found is not None and (found[1], found[2]) == r.WHOLE[found[0]]
