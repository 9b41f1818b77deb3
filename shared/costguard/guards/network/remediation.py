"""What mends a finding about a network, what it changes, and what takes it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import assert_never

from costguard.domain.findings import Finding, Verdict
from costguard.domain.network import (
    EVERY_PORT,
    AddressState,
    Direction,
    NetworkInventory,
    NetworkRule,
    Permission,
    PublicAddress,
    SecurityGroup,
)
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.domain.resources import Instance
from costguard.guards.network.audit_context import most, outsiders
from costguard.guards.network.reachability import ranges as r
from costguard.guards.network.reachability.exposure import Path
from costguard.guards.network.rules import AuditRule, NetworkCheck, rule_text

_LOGS_CARDS_ONLY = "tencent"  # CreateFlowLog takes no VPC and no subnet any more


def remediation_of(finding: Finding, inventory: NetworkInventory, rule: AuditRule) -> Remediation | None:
    """What the rule allows about a violation; None where it allows nothing. `inventory` is the subject's shard's."""
    subject = finding.subject
    if finding.verdict is not Verdict.VIOLATION or not isinstance(subject, ResourceRef):
        return None
    check = NetworkCheck(finding.check)
    match check:
        case NetworkCheck.UNATTACHED_ADDRESS:
            mend = _release(finding, subject, inventory, rule)
        case NetworkCheck.PUBLIC_IP:
            mend = _detach(finding, subject, inventory, rule)
        case NetworkCheck.OPEN_ADMIN_PORT | NetworkCheck.WIDE_RULE:
            mend = _closed(finding, subject, inventory, rule)
        case NetworkCheck.FLOW_LOGS_OFF:
            mend = _logged(subject, inventory, rule)
        case NetworkCheck.IMDS_V1:
            mend = Remediation(RemediationKind.REQUIRE_IMDSV2, subject)
        case (
            NetworkCheck.IDLE_NAT_GATEWAY
            | NetworkCheck.DEFAULT_VPC
            | NetworkCheck.PRIVATE_SUBNET_EXPOSED
            | NetworkCheck.WIDE_PEERING
            | NetworkCheck.REGION
            | NetworkCheck.UNUSED_GROUP
            | NetworkCheck.IDLE_ADDRESS  # somebody may start the machine again, and a bound address is never released
        ):
            mend = None
        case _:
            assert_never(check)
    narrowed_away = (
        mend is not None and mend.kind is RemediationKind.REVOKE_RULE and RemediationKind.NARROW_RULE in rule.mend
    )
    return mend if mend is not None and (mend.kind in rule.mend or narrowed_away) else None


def _release(
    finding: Finding, subject: ResourceRef, inventory: NetworkInventory, rule: AuditRule
) -> Remediation | None:
    """Giving up is final: only what Costguard itself has long seen without use, and what nothing protects."""
    address = next((each for each in inventory.addresses if each.ref == subject), None)
    if address is None or address.state is not AddressState.UNATTACHED or address.bound_to is not None:
        return None
    if address.is_prepaid or address.is_service_managed or address.protected_by:
        return None
    seen = finding.reason.facts.get("seen_hours")
    if not isinstance(seen, int) or seen * 3600 < rule.unattached_for.total_seconds() or _kept(address, rule):
        return None
    return Remediation(RemediationKind.RELEASE_ADDRESS, subject, {"ip": address.ip})


def _detach(finding: Finding, subject: ResourceRef, inventory: NetworkInventory, rule: AuditRule) -> Remediation | None:
    """Only an address that is kept can be taken off and put back; one that comes with the machine cannot."""
    cards = [card for card in inventory.interfaces if card.instance == subject]
    holders = {subject, *(card.ref for card in cards)}
    bound = [
        address
        for address in inventory.addresses
        if address.bound_to in holders and address.state is AddressState.IN_USE and not address.is_service_managed
    ]
    for address in sorted(bound, key=lambda each: (each.ip != finding.reason.facts.get("address"), each.ip)):
        pairs = {public: private for card in cards for private, public in card.public_ips}
        if address.ip in pairs and not _kept(address, rule):
            said = {"ip": address.ip, "bound_to": str(address.bound_to), "private_ip": pairs[address.ip]}
            return Remediation(RemediationKind.DETACH_ADDRESS, address.ref, said)
    return None


def _kept(address: PublicAddress, rule: AuditRule) -> bool:
    return rule.keeps(address.ref, address.ip, address.name)


def _closed(finding: Finding, subject: ResourceRef, inventory: NetworkInventory, rule: AuditRule) -> Remediation | None:
    """The one rule that opens: narrowed where that is allowed and there is something to narrow it to, else revoked."""
    group = next((each for each in inventory.groups if each.ref == subject), None)
    wanted = finding.reason.facts.get("rule")
    if group is None or group.is_service_managed:
        return None
    given = next((each for each in group.rules if each.rule_id == wanted and each.direction is Direction.INGRESS), None)
    if given is None:
        return None
    said = _named(given, group.version)
    stay, instead = _narrowed(given, rule)
    if RemediationKind.NARROW_RULE in rule.mend and instead and not given.peer_groups and not given.unresolved:
        anew = [peer for peer in (*stay, *instead) if not _let_in_beside(given, peer, group)]
        if anew:
            return Remediation(RemediationKind.NARROW_RULE, subject, {**said, "peers": ",".join(anew)})
        return Remediation(
            RemediationKind.REVOKE_RULE, subject, said
        )  # whom it would be narrowed to other rules let in already
    if stay or given.peer_groups or given.unresolved or RemediationKind.REVOKE_RULE not in rule.mend:
        return None  # the rule lets in others as well, who are meant
    return Remediation(RemediationKind.REVOKE_RULE, subject, said)


def not_returnable(mend: Remediation, inventory: NetworkInventory) -> Reason | None:
    """Why a mend of a rule must not be made: nothing could put the rule back as it is."""
    if mend.kind not in {RemediationKind.REVOKE_RULE, RemediationKind.NARROW_RULE}:
        return None
    group = next((each for each in inventory.groups if each.ref == mend.subject), None)
    wanted = (mend.parameters.get("rule_id"), mend.parameters.get("direction"))
    rules = () if group is None else group.rules
    lost = next((each.cannot_return for each in rules if (each.rule_id, each.direction.value) == wanted), "")
    return Reason(ReasonCode.NET_CANNOT_RETURN, {"kind": lost}) if lost else None


def _let_in_beside(given: NetworkRule, peer: str, group: SecurityGroup) -> bool:
    """Whether another rule lets in the same by itself, and nothing that denies is read between the two.

    Tencent Cloud takes no second rule of the same words, wherever in the list the first one stands.
    """
    denials = [each.priority for each in group.rules if _denies(each, given.direction)]
    return any(
        each is not given
        and (each.direction, each.permission, each.protocol, each.ports)
        == (given.direction, Permission.ALLOW, given.protocol, given.ports)
        and peer in each.peers
        and not any(given.priority <= denied <= each.priority for denied in denials)
        for each in group.rules
    )


def _denies(rule: NetworkRule, direction: Direction) -> bool:
    return rule.direction is direction and rule.permission is Permission.DENY


def _named(given: NetworkRule, version: str) -> dict[str, str]:
    """Which rule: by its id, right only at this version where ids are places, and in words, which stay right."""
    ports = ",".join(str(low) if low == high else f"{low}-{high}" for low, high in given.ports)
    peers = ", ".join((*given.peers, *given.peer_groups, *given.unresolved))
    what = " ".join(
        part for part in (given.protocol, ports if given.ports != EVERY_PORT else "", "from", peers) if part
    )
    return {"rule_id": given.rule_id, "direction": given.direction.value, "version": version, "what": what}


def _narrowed(given: NetworkRule, rule: AuditRule) -> tuple[list[str], list[str]]:
    """The peers that may stay, and what takes the place of those that are the world: nothing that was not let in."""
    wide = [peer for peer in given.peers if _is_wide(peer, rule)]
    stay = [peer for peer in given.peers if peer not in wide]
    instead = [
        network for network in rule.narrow_to if any(_within(network, peer) for peer in wide) and network not in stay
    ]
    return stay, [network for network in instead if not _is_wide(network, rule)]


def _is_wide(peer: str, rule: AuditRule) -> bool:
    return any(outsiders(family, (peer,), rule.trusted) > most(rule, family) for family in (r.V4, r.V6))


def _within(network: str, other: str) -> bool:
    inner, outer = r.parsed(network), r.parsed(other)
    if inner is None or outer is None or inner[0] != outer[0]:
        return False
    return outer[1] <= inner[1] and inner[2] <= outer[2]


def _logged(subject: ResourceRef, inventory: NetworkInventory, rule: AuditRule) -> Remediation | None:
    if not rule.flow_log_destination:
        return None
    said = {"destination": rule.flow_log_destination, "role": rule.flow_log_role}
    if subject.provider != _LOGS_CARDS_ONLY:
        return Remediation(RemediationKind.ENABLE_FLOW_LOGS, subject, said)
    logged = {log.covers for log in inventory.flow_logs if log.active}
    cards = [card for card in inventory.interfaces if card.vpc == subject and card.subnet not in logged]
    bare = sorted((card.instance is None, card.ref) for card in cards if card.ref not in logged)
    return Remediation(RemediationKind.ENABLE_FLOW_LOGS, bare[0][1], said) if bare else None


def least_change(path: Path, narrow_to: Sequence[str] = ()) -> Remediation:
    """What would close a path with the least change, whether or not any rule allows it.

    Its one rule, narrowed where there is something to narrow it to; the ways through other rules stay as they are.
    """
    said = _named(path.rule, path.group_version)
    instead = [network for network in narrow_to if any(_within(network, peer) for peer in path.rule.peers)]
    if instead and not path.rule.peer_groups and not path.rule.unresolved:
        return Remediation(RemediationKind.NARROW_RULE, path.group, {**said, "peers": ",".join(instead)})
    return Remediation(RemediationKind.REVOKE_RULE, path.group, said)


def before_of(mend: Remediation, inventory: NetworkInventory, instances: Sequence[Instance]) -> dict[str, str]:
    """What a mend would change as it is now; empty where it changes nothing that is there, or its subject is gone."""
    kind = mend.kind
    match kind:
        case RemediationKind.RELEASE_ADDRESS | RemediationKind.DETACH_ADDRESS | RemediationKind.ATTACH_ADDRESS:
            address = next((each for each in inventory.addresses if each.ref == mend.subject), None)
            return {} if address is None else _address(address)
        case RemediationKind.REVOKE_RULE | RemediationKind.NARROW_RULE:
            group = next((each for each in inventory.groups if each.ref == mend.subject), None)
            return {} if group is None else _rule(group, mend)
        case RemediationKind.REQUIRE_IMDSV2 | RemediationKind.ALLOW_IMDSV1:
            told = next((each.imds_v1 for each in instances if each.ref == mend.subject), None)
            return {} if told is None else {"imds_v1": "true" if told else "false"}
        case (
            RemediationKind.ENABLE_FLOW_LOGS
            | RemediationKind.REMOVE_FLOW_LOGS
            | RemediationKind.RESTORE_RULE
            | RemediationKind.SET_ROTATION
            | RemediationKind.ROTATE_KEY
            | RemediationKind.CREATE_SUCCESSOR
            | RemediationKind.MOVE_ALIAS
            | RemediationKind.RESTORE_ALIAS
        ):
            return {}
        case _:
            assert_never(kind)


def _address(address: PublicAddress) -> dict[str, str]:
    bound_to = "" if address.bound_to is None else str(address.bound_to)
    return {"ip": address.ip, "state": address.state.value, "bound_to": bound_to}


def _rule(group: SecurityGroup, mend: Remediation) -> dict[str, str]:
    wanted = (mend.parameters.get("rule_id"), mend.parameters.get("direction"))
    found = next((each for each in group.rules if (each.rule_id, each.direction.value) == wanted), None)
    return {} if found is None else {"rule": rule_text(found), "version": group.version}


def inverse(mend: Remediation, before: Mapping[str, str], receipt_native_id: str) -> Remediation | None:
    """What takes a mend back; None where nothing does. `receipt_native_id` names what the mend made."""
    kind, said = mend.kind, mend.parameters
    match kind:
        case RemediationKind.DETACH_ADDRESS:
            wanted = {word: said[word] for word in ("ip", "bound_to", "private_ip")}
            return Remediation(RemediationKind.ATTACH_ADDRESS, mend.subject, wanted)
        case RemediationKind.REVOKE_RULE:
            return (
                Remediation(RemediationKind.RESTORE_RULE, mend.subject, {"rule": before["rule"]})
                if before.get("rule")
                else None
            )
        case RemediationKind.NARROW_RULE:
            if not before.get("rule") or not receipt_native_id:
                return None  # without the ids of what stands in its place, the narrow rules would stay beside it
            again = {"rule": before["rule"], "instead_of": receipt_native_id, "peers": said.get("peers", "")}
            return Remediation(RemediationKind.RESTORE_RULE, mend.subject, again)
        case RemediationKind.ENABLE_FLOW_LOGS:
            gone = {"flow_log": receipt_native_id}
            return Remediation(RemediationKind.REMOVE_FLOW_LOGS, mend.subject, gone) if receipt_native_id else None
        case RemediationKind.REQUIRE_IMDSV2:
            was = before.get("imds_v1") == "true"
            return Remediation(RemediationKind.ALLOW_IMDSV1, mend.subject) if was else None
        case (
            RemediationKind.RELEASE_ADDRESS
            | RemediationKind.SET_ROTATION
            | RemediationKind.ROTATE_KEY
            | RemediationKind.CREATE_SUCCESSOR
            | RemediationKind.MOVE_ALIAS
            | RemediationKind.RESTORE_ALIAS
            | RemediationKind.ATTACH_ADDRESS
            | RemediationKind.RESTORE_RULE
            | RemediationKind.REMOVE_FLOW_LOGS
            | RemediationKind.ALLOW_IMDSV1
        ):
            return None
        case _:
            assert_never(kind)
