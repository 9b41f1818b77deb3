"""Once faults stop: claims are resolved, and what may be mended is mended; and no key was ever harmed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.simulation.oracle import truth
from tests.simulation.oracle.judge import Violation
from tests.simulation.oracle.way_in import the_world_gets_in
from tests.simulation.settings import KEYS, NETWORKS, NetRuleSpec, SettingsVersion
from tests.world_ports.translate import to_product, to_world

from cloudstand.world.keys import KeyState
from costguard.cases import CaseStatus, Phase
from costguard.domain.network import AddressState, NetworkInventory, NetworkRule
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef

if TYPE_CHECKING:
    from tests.simulation.settings_play import SettingsSimulation

_ROOMY = 3  # what may wait for a cap is no matter of liveness
_FOR_PEOPLE = frozenset(
    {
        ReasonCode.OUTCOME_UNKNOWN,
        ReasonCode.LAST_ADMIN_PATH,
        ReasonCode.ADMIN_PATH_UNPROVEN,
        ReasonCode.NET_KEPT,
        ReasonCode.NOT_TAKEN_EFFECT,
        ReasonCode.PERMISSION_MISSING,
        ReasonCode.REFUSED_BY_CLOUD,
    }
)


def only_rotated(simulation: SettingsSimulation) -> Iterator[Violation]:
    """Rule 17: of all that was ever done to keys, ours is to set a period or to rotate, and nothing else."""
    for at, by, what, ref in simulation.world.keys.history:
        if by == "costguard" and what != "rotated on demand" and not what.startswith("period "):
            yield Violation(17, at, ref.native_id, f"costguard {what}")


def unsettled(simulation: SettingsSimulation) -> Iterator[Violation]:
    """Claims that three quiet runs neither resolved nor gave to people."""
    for guard, reports in simulation.reports.items():
        plan = reports[-1].plan if reports else None
        if plan is None:
            yield Violation(0, simulation.hub.now, guard, "the last quiet run made no plan")
            continue
        for step in plan.transitions:
            case = step.after
            if case.phase is Phase.WAITING or case.status in {CaseStatus.HELD, CaseStatus.CLOSED}:
                continue
            if case.claimed_at is not None and simulation.hub.now - case.claimed_at < timedelta(hours=2):
                continue  # claimed by the very run that reports it
            what = f"{case.status.value} {case.phase.value} since {case.claimed_at}: nobody will ever resolve it"
            yield Violation(0, simulation.hub.now, case.subject.native_id, what)


def unmended(simulation: SettingsSimulation) -> Iterator[Violation]:
    """What may be mended, and was neither mended nor given to people, though there was time for both."""
    left = set(simulation.operator.snoozes.active(simulation.hub.now))
    for reports in simulation.reports.values():
        plan = reports[-1].plan if reports else None
        for step in plan.transitions if plan is not None else ():
            case = step.after
            told = case.status is CaseStatus.HELD and case.reason.code in _FOR_PEOPLE
            unread = case.reason.code is ReasonCode.NOTICE_UNDELIVERED and simulation.chronicle.shown
            if told or unread or case.status is CaseStatus.SNOOZED:
                left.add(str(case.subject))
    version = simulation.versions[simulation.version]
    if simulation.story.shard.account in version.protected_accounts or not simulation.story.durable:
        return
    left.update(one.resource for one in version.exceptions)
    if KEYS in simulation.reports:
        yield from _keys(simulation, version, left)
    if NETWORKS in simulation.reports and simulation.story.network is not None:
        network = simulation.world.networks.of(to_world(simulation.story.shard))
        yield from _rules(simulation, version, to_product(network), left)
        yield from _addresses(simulation, version, to_product(network), left)


def _keys(simulation: SettingsSimulation, version: SettingsVersion, left: set[str]) -> Iterator[Violation]:
    for key in simulation.world.keys.of(to_world(simulation.story.shard)):
        rule = version.key_rule(key.tags)
        if rule is None or rule.mode != "enforce" or not rule.automatic or rule.actions < _ROOMY:
            continue
        if str(key.ref) in left or key.state is not KeyState.ENABLED or truth.tag_protects(key.tags):
            continue
        if key.period_days is None or key.period_days > rule.days(key.ref.provider):
            what = f"period {key.period_days}, due long ago, neither set nor held"
            yield Violation(0, simulation.hub.now, key.ref.native_id, what)


def _rules(
    simulation: SettingsSimulation, version: SettingsVersion, network: NetworkInventory, left: set[str]
) -> Iterator[Violation]:
    rule = version.net_rule("open_admin_port")
    if not _acts(rule, "revoke_rule", "narrow_rule") or rule is None:
        return
    for card in network.interfaces:
        for port in rule.ports:
            if port == 22 or not the_world_gets_in(network, card, port):
                continue
            groups = [each for each in network.groups if each.ref.native_id in card.groups]
            spared = [each for each in groups if _left(each.ref, each.tags, left)]
            kept = version.kept & {name for each in groups for name in (each.ref.native_id, *_ids(each.rules))}
            if not spared and not kept and any(_opens(each.rules, port) for each in groups):
                what = f"open to the world at {port} for long, neither closed nor held"
                yield Violation(0, simulation.hub.now, card.ref.native_id, what)


def _ids(rules: tuple[NetworkRule, ...]) -> list[str]:
    return [one.rule_id for one in rules]


def _opens(rules: tuple[NetworkRule, ...], port: int) -> bool:
    return any(one.peers == ("0.0.0.0/0",) and (port, port) in one.ports for one in rules)


def _addresses(
    simulation: SettingsSimulation, version: SettingsVersion, network: NetworkInventory, left: set[str]
) -> Iterator[Violation]:
    rule = version.net_rule("unattached_public_address")
    if not _acts(rule, "release_address"):
        return
    for each in network.addresses:
        kept = version.kept & {each.ip, each.ref.native_id, str(each.ref), each.name}
        if each.state is AddressState.UNATTACHED and not kept and not _left(each.ref, each.tags, left):
            what = f"{each.ip} is without use for long, neither released nor held"
            yield Violation(0, simulation.hub.now, each.ref.native_id, what)


def _left(ref: ResourceRef, tags: Mapping[str, str], left: set[str]) -> bool:
    return str(ref) in left or truth.tag_protects(tags)


def _acts(rule: NetRuleSpec | None, *mends: str) -> bool:
    return rule is not None and rule.mode == "enforce" and rule.actions >= _ROOMY and bool(set(mends) & set(rule.mend))
