"""Security groups: what they let in from the world, and whether anything is in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from costguard.domain.findings import Finding, Verdict
from costguard.domain.network import Direction, NetworkInventory, NetworkRule, Permission, SecurityGroup
from costguard.domain.reasons import Reason, ReasonCode
from costguard.guards.network.audit_context import (
    AuditContext,
    Facts,
    compliant,
    finding,
    in_words,
    is_wide,
    most,
    outsiders,
    ports_in_words,
    severity,
    strangers,
    untold,
    watched,
)
from costguard.guards.network.reachability import ranges as r
from costguard.guards.network.reachability.exposure import Path
from costguard.guards.network.reachability.filters import (
    WITH_PORTS,
    Grant,
    ListedRule,
    Unknown,
    admitted,
    in_order,
    protocol_of,
    protocols_of,
)
from costguard.guards.network.remediation import least_change
from costguard.guards.network.rules import AuditRule, NetworkCheck

_HARMLESS = frozenset({"icmp", "icmpv6"})  # to be pinged by the world is no way in
_FAMILIES = (r.V4, r.V6)


@dataclass(frozen=True, slots=True)
class _Opening:
    """What one rule of a group opens to the world. `rule` None, or a `doubt`: it only may."""

    rule: NetworkRule | None
    family: int
    protocol: str
    ports: tuple[r.Range, ...]
    doubt: Unknown | None


@dataclass(frozen=True, slots=True)
class _Grave:
    """One rule that opens something, with who is reached through it."""

    rule: NetworkRule
    protocols: tuple[str, ...]
    ports: tuple[r.Range, ...]
    paths: tuple[Path, ...]

    @property
    def reaches(self) -> int:
        """How many instances."""
        return len({path.instance for path in self.paths})


def judge_groups(ground: AuditContext, inventory: NetworkInventory) -> Iterator[Finding]:
    """What each group of a shard opens, and which are in nobody's use."""
    used = {group for card in inventory.interfaces for group in card.groups}
    for group in inventory.groups:
        told: frozenset[str] = frozenset()
        admin = ground.rule_for(group.ref, group.tags, NetworkCheck.OPEN_ADMIN_PORT)
        if admin is not None:
            found = list(_openings(ground, group, admin, [(port, port) for port in watched(admin)], WITH_PORTS))
            told = frozenset(each.rule.rule_id for each in found if each.rule is not None)
            yield _judged(ground, group, admin, NetworkCheck.OPEN_ADMIN_PORT, found)
        wide = ground.rule_for(group.ref, group.tags, NetworkCheck.WIDE_RULE)
        if wide is not None:
            ports = r.minus([r.PORTS], [(port, port) for port in wide.allowed_ports])
            found = list(_openings(ground, group, wide, ports, None))
            others = [each for each in found if each.rule is None or each.rule.rule_id not in told]
            yield _judged(ground, group, wide, NetworkCheck.WIDE_RULE, others)
        idle = ground.rule_for(group.ref, group.tags, NetworkCheck.UNUSED_GROUP)
        if idle is not None and not group.is_default and not group.is_service_managed:
            yield _used(ground, group, idle, is_seen=group.ref.native_id in used)


def _openings(
    ground: AuditContext,
    group: SecurityGroup,
    rule: AuditRule,
    wanted: Sequence[r.Range],
    protocols: frozenset[str] | None,
) -> Iterator[_Opening]:
    """What a group by itself opens to the world of these ports, of these protocols or of all that are a way in."""
    order, held = in_order([ground.atlas.group_rules(group.ref.shard, group.ref.native_id)])
    suspects = [each for each in held if _may_be_wide(each, rule)]
    for family in _FAMILIES if suspects else ():
        for protocol in protocols_of(suspects, family):
            if protocol in _HARMLESS or (protocols is not None and protocol not in protocols):
                continue
            for grant in admitted(held, order, Direction.INGRESS, family, protocol):
                ports = tuple(_open_ports(grant, family, wanted if protocol in WITH_PORTS else (r.PORTS,), rule))
                if ports:
                    shown = ports if protocol in WITH_PORTS else ()
                    yield _Opening(grant.rule, family, protocol, shown, grant.doubt)


def _may_be_wide(held: ListedRule, rule: AuditRule) -> bool:
    """Whether it is worth looking at more closely: most rules let a few networks in, or go out."""
    given = held.rule
    if given is None:
        return True
    if given.direction is not Direction.INGRESS or given.permission is not Permission.ALLOW:
        return False
    return bool(given.unresolved) or _worldly(given.peers, rule.trusted, rule.widest_v4, rule.widest_v6)


@lru_cache(maxsize=1 << 14)
def _worldly(peers: tuple[str, ...], trusted: tuple[str, ...], widest_v4: int, widest_v6: int) -> bool:
    """Whether these may be more than a rule allows. Most rules name one small network, and are done with its size."""
    found = [r.parsed(peer) for peer in peers]
    if None in found:
        return True
    widest = {r.V4: 32 - widest_v4, r.V6: 128 - widest_v6}
    sizes = {family: sum(each[2] - each[1] + 1 for each in found if each and each[0] == family) for family in _FAMILIES}
    return any(sizes[family] > 1 << widest[family] and outsiders(family, peers, trusted) for family in _FAMILIES)


def _open_ports(grant: Grant, family: int, wanted: Sequence[r.Range], rule: AuditRule) -> Iterator[r.Range]:
    """The ports on which more get in than the rule allows."""
    boxes = r.boxes_common(grant.boxes, r.boxes((r.WHOLE[family],), wanted))
    edges = sorted({box[2] for box in boxes} | {box[3] + 1 for box in boxes})
    found: list[r.Range] = []
    for first, beyond in pairwise(edges):
        peers = tuple((box[0], box[1]) for box in boxes if box[2] <= first and beyond - 1 <= box[3])
        if peers and strangers(family, peers, rule.trusted) > most(rule, family):
            found.append((first, beyond - 1))
    yield from r.merged(found)


def _judged(
    ground: AuditContext, group: SecurityGroup, rule: AuditRule, check: NetworkCheck, openings: Sequence[_Opening]
) -> Finding:
    name = group.name or group.ref.native_id
    graves = sorted(_graves(ground, group, rule, openings), key=lambda each: (-each.reaches, each.rule.rule_id))
    loose = [each for each in graves if not _is_kept(ground, group, each.rule)]
    if loose and not group.is_service_managed:
        facts = _facts(group, rule, check, loose)
        code = ReasonCode.NET_OPEN_PORT if check is NetworkCheck.OPEN_ADMIN_PORT else ReasonCode.NET_WIDE_RULE
        return finding(rule, check, group.ref, Verdict.VIOLATION, Reason(code, facts), name=name)
    doubt = next((each for each in openings if each.doubt is not None), None)
    if doubt is not None and doubt.doubt is not None:
        reason = untold(doubt.doubt)
        return finding(rule, check, group.ref, Verdict.UNMEASURED, reason, name=name)
    if graves:
        code = ReasonCode.CLOUD_SERVICE if group.is_service_managed else ReasonCode.NET_KEPT
        reason = Reason(code, {"rule": graves[0].rule.rule_id, "reaches": graves[0].reaches, "name": name})
        return finding(rule, check, group.ref, Verdict.EXEMPT, reason, name=name)
    return compliant(rule, check, group.ref, name)


def _is_kept(ground: AuditContext, group: SecurityGroup, rule: NetworkRule) -> bool:
    at = f"{group.ref.native_id}/{rule.rule_id}"
    return ground.keeps(group.ref, rule.rule_id, at, f"{group.ref}/{rule.rule_id}", group.name)


def _graves(
    ground: AuditContext, group: SecurityGroup, rule: AuditRule, openings: Sequence[_Opening]
) -> Iterator[_Grave]:
    by_rule: dict[str, list[_Opening]] = {}
    for each in openings:
        if each.rule is not None and each.doubt is None:
            by_rule.setdefault(each.rule.rule_id, []).append(each)
    for together in by_rule.values():
        opens = together[0].rule
        if opens is None:
            continue
        paths = ground.by_rule.get((group.ref, opens.rule_id), ())
        through = tuple(path for path in paths if is_wide(path, rule) and any(_meets(path, each) for each in together))
        ports = r.merged(ports for each in together for ports in each.ports)
        protocols = tuple(dict.fromkeys(each.protocol for each in together))
        yield _Grave(opens, protocols, tuple(ports), through)


def _meets(path: Path, opening: _Opening) -> bool:
    if (path.family, path.protocol) != (opening.family, opening.protocol):
        return False
    return not opening.ports or bool(r.common(path.ports, opening.ports))


def _facts(group: SecurityGroup, rule: AuditRule, check: NetworkCheck, loose: Sequence[_Grave]) -> Facts:
    worst = loose[0]
    path = worst.paths[0] if worst.paths else None
    port = _port(rule, check, worst, path)
    facts: Facts = {
        "group": group.ref.native_id,
        "rule": worst.rule.rule_id,
        "rules": len(loose),
        "direction": worst.rule.direction.value,
        "protocol": protocol_of(worst.rule) if len(worst.protocols) > 1 else worst.protocols[0],
        "ports": ports_in_words(worst.ports),
        "peers": ",".join(_wide_peers(worst.rule, rule)),
        "reaches": worst.reaches,
        "severity": severity(check, reaches=worst.reaches > 0),
    }
    if port is not None:
        facts["port"] = port
    if path is not None:
        facts["instance"] = path.instance.native_id
        facts["address"] = path.address
        facts["path"] = in_words(path, port)
        facts["least"] = least_change(path, rule.narrow_to).kind.value
    return facts


def _port(rule: AuditRule, check: NetworkCheck, worst: _Grave, path: Path | None) -> int | None:
    """The port to name: of those watched the first that is open, and that leads to somebody where any does."""
    open_there = r.common(worst.ports, path.ports) if path is not None else worst.ports
    if check is NetworkCheck.OPEN_ADMIN_PORT:
        named = (port for port in watched(rule) if any(first <= port <= last for first, last in open_there))
        return next(named, None)
    return open_there[0][0] if open_there else None


def _wide_peers(given: NetworkRule, rule: AuditRule) -> list[str]:
    """The peers of a rule that make it wide, a few of them."""
    wide = [
        peer
        for peer in given.peers
        if any(outsiders(family, (peer,), rule.trusted) > most(rule, family) for family in _FAMILIES)
    ]
    return (wide or list(given.peers))[:5]


def _used(ground: AuditContext, group: SecurityGroup, rule: AuditRule, *, is_seen: bool) -> Finding:
    """Whether anything is in a group, or names it. That nothing is has to be told in whole."""
    check, name = NetworkCheck.UNUSED_GROUP, group.name or group.ref.native_id
    if is_seen or group.in_use or group.referenced_by:
        return compliant(rule, check, group.ref, name)
    gap = ground.lacks(group.ref.shard, "interfaces", "groups")
    if gap is None and group.in_use is None:
        gap = Unknown("groups", f"whether {group.ref.native_id} is in use is not told")
    if gap is not None:
        return finding(rule, check, group.ref, Verdict.UNMEASURED, untold(gap), name=name)
    if ground.keeps(group.ref, group.name):
        return finding(rule, check, group.ref, Verdict.EXEMPT, Reason(ReasonCode.NET_KEPT, {"name": name}), name=name)
    facts: Facts = {"group": group.ref.native_id, "rules": len(group.rules), "reaches": 0}
    facts["severity"] = severity(check, reaches=False)
    reason = Reason(ReasonCode.NET_UNUSED_GROUP, facts)
    return finding(rule, check, group.ref, Verdict.VIOLATION, reason, name=name)
