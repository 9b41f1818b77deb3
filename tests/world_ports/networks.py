"""`NetworkSource` and `NetworkRemediator` over a world, without any wire: what scenario tests and simulations use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from tests.world_ports.translate import to_product, to_world
from tests.world_ports.views import instance_of
from typing_extensions import assert_never

from cloudstand.clock import Clock
from cloudstand.world.cloud import World
from cloudstand.world.fleet import made_up_request_id, made_up_rule_id
from cloudstand.world.network.networks import PARTS
from cloudstand.world.network.parts import (
    AddressState,
    Direction,
    FlowLog,
    NetworkInterface,
    NetworkRule,
    PublicAddress,
    RuleOrder,
    SecurityGroup,
)
from cloudstand.world.places import Place, Ref
from cloudstand.world.records import Operation, Refusal, WorldRefusalError
from costguard.domain.actions import Receipt
from costguard.domain.errors import AccessDeniedError, NotFoundError, ProviderError, RefusedError
from costguard.domain.network import NetworkInventory
from costguard.domain.refs import Shard
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.domain.resources import Gap, GapKind
from costguard.guards.network.remediation import before_of
from costguard.guards.network.rules import read_rule

_Network = IPv4Network | IPv6Network

_BY = "costguard"
_SETTLED = (AddressState.IN_USE, AddressState.UNATTACHED)


class WorldNetworks:
    """The networks of a world."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock

    def read(self, shard: Shard) -> NetworkInventory:
        """Everything of the shard as it is now; a part that the role may not read is a gap.

        Raises:
            AccessDeniedError: the role may not read any part.
        """
        self._world.tick(self._clock.now())
        cloud, account, networks = shard.cloud, shard.account, self._world.networks
        barred = [part for part in PARTS if not networks.may(cloud, account, part)]
        if len(barred) == len(PARTS) or not self._world.may(cloud, account, Operation.NETWORK):
            message = f"{Refusal.DENIED.value}: {account}"
            raise AccessDeniedError(message, operation="world:network", code=Refusal.DENIED.value)
        found: NetworkInventory = to_product(networks.of(to_world(shard)))
        gaps = [Gap(shard, part, GapKind.DENIED, "denied", fix=f"allow world:network:{part}") for part in barred]
        left: dict[str, Any] = {PARTS[part]: () for part in barred}
        return replace(found, gaps=tuple(gaps), **left)


class WorldNetworkRemediator:
    """Makes one change to the networks of a world, if it is allowed and what is there is what was decided on."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock

    def change(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Do it in the world; done at once.

        Raises:
            AccessDeniedError: the role lacks the permission.
            NotFoundError: what it is about is gone.
            RefusedError: a cloud would refuse it, or what is there is not what `before` says; nothing changed.
        """
        self._world.tick(self._clock.now())
        try:
            self._world.require(mend.subject.cloud, mend.subject.account, Operation.FIX_NETWORK)
            _agree(self._image(mend), before)
            made = self._do(mend)
        except WorldRefusalError as err:
            raise _ERRORS.get(err.refusal, RefusedError)(
                str(err), operation=f"world:{mend.kind.value}", code=err.refusal.value
            ) from err
        done = len(self._world.networks.history)
        return Receipt(made_up_request_id("mend", str(mend.subject), str(done)), made)

    def _image(self, mend: Remediation) -> Mapping[str, str]:
        machine = self._world.machines.get(mend.subject.native_id)
        instances = [] if machine is None else [instance_of(self._world, machine)]
        return before_of(mend, to_product(self._world.networks.of(to_world(mend.subject.shard))), instances)

    def _do(self, mend: Remediation) -> str:  # noqa: C901 - one case a kind
        """Make the change; what was made, if anything."""
        networks, subject, now = self._world.networks, to_world(mend.subject), self._world.now
        said = mend.parameters
        match mend.kind:
            case RemediationKind.RELEASE_ADDRESS:
                self._release(subject, said)
            case RemediationKind.DETACH_ADDRESS:
                self._detach(subject, said)
            case RemediationKind.ATTACH_ADDRESS:
                self._attach(subject, said)
            case RemediationKind.REVOKE_RULE:
                group, rule = self._rule(subject, said)
                networks.revoke(group.ref, rule.rule_id, now, _BY, rule.direction)
            case RemediationKind.NARROW_RULE:
                return self._narrow(subject, said)
            case RemediationKind.RESTORE_RULE:
                return self._restore(subject, said)
            case RemediationKind.ENABLE_FLOW_LOGS:
                return self._log_flows(subject, said)
            case RemediationKind.REMOVE_FLOW_LOGS:
                log = subject.sibling("flow_log", said.get("flow_log", ""))
                networks.end_flow_log(log, now, _BY)
            case RemediationKind.REQUIRE_IMDSV2 | RemediationKind.ALLOW_IMDSV1:
                self._imds(subject, v1=mend.kind is RemediationKind.ALLOW_IMDSV1)
            case (
                RemediationKind.SET_ROTATION
                | RemediationKind.ROTATE_KEY
                | RemediationKind.CREATE_SUCCESSOR
                | RemediationKind.MOVE_ALIAS
                | RemediationKind.RESTORE_ALIAS
            ):
                raise _refused("that is about a key, not a network")
            case _:
                assert_never(mend.kind)
        return ""

    def _changeable(self, subject: Ref, ip: str) -> PublicAddress:
        address = self._world.networks.address(subject)
        _refuse_if(address.ip != ip, f"the address is {address.ip}, not {ip}")
        _refuse_if(address.is_service_managed, "a service of the cloud keeps it")
        _refuse_if(address.state not in _SETTLED, f"the address is {address.state.value}")
        return address

    def _release(self, subject: Ref, said: Mapping[str, str]) -> None:
        protections = self._changeable(subject, said.get("ip", "")).protected_by
        _refuse_if(bool(protections), f"protected by {', '.join(protections)}")
        self._world.networks.release(subject, self._world.now, _BY)

    def _detach(self, subject: Ref, said: Mapping[str, str]) -> None:
        bound_to = self._changeable(subject, said.get("ip", "")).bound_to
        kind = "nothing" if bound_to is None else bound_to.kind
        _refuse_if(str(bound_to) != said.get("bound_to", ""), f"it is bound to {bound_to}")
        _refuse_if(kind not in {"instance", "interface"}, f"what is bound to {kind} is taken off there")
        self._world.networks.detach(subject, self._world.now, _BY)

    def _attach(self, subject: Ref, said: Mapping[str, str]) -> None:
        self._changeable(subject, said.get("ip", ""))
        bound_to, private_ip = said.get("bound_to", ""), said.get("private_ip", "")
        card = next((card for card in self._cards(subject.shard, bound_to) if private_ip in card.private_ips), None)
        if card is None:
            message = f"{bound_to} has no address {private_ip}"
            raise _refused(message)
        taken = any(private == private_ip for private, _ in card.public_ips)
        _refuse_if(taken, f"{private_ip} has a public address already")
        self._world.networks.attach(subject, card.ref, private_ip, self._world.now, _BY)

    def _cards(self, shard: Place, bound_to: str) -> list[NetworkInterface]:
        every = self._world.networks.of(shard).interfaces
        return [card for card in every if bound_to in {str(card.ref), str(card.instance)}]

    def _rule(self, subject: Ref, said: Mapping[str, str]) -> tuple[SecurityGroup, NetworkRule]:
        group = self._group(subject)
        version = said.get("version", "")
        _refuse_if(group.version != version, f"the rules are at version {group.version}, not {version}")
        direction = Direction(said["direction"])
        return group, self._world.networks.rule(subject, said["rule_id"], direction)

    def _group(self, subject: Ref) -> SecurityGroup:
        group = self._world.networks.group(subject)
        _refuse_if(group.is_service_managed, "a service of the cloud keeps this group")
        return group

    def _narrow(self, subject: Ref, said: Mapping[str, str]) -> str:
        group, rule = self._rule(subject, said)
        peers = [peer for peer in said.get("peers", "").split(",") if peer]
        _refuse_if(not peers, "no networks to narrow it to")
        narrowed = [replace(rule, rule_id=self._new_id(rule, peer), peers=(peer,)) for peer in peers]
        _refuse_if(
            any(_same(each, there) for each in narrowed for there in group.rules), "such a rule is there already"
        )
        place = group.rules.index(rule)
        after = [*group.rules[:place], *narrowed, *group.rules[place + 1 :]]
        return self._put(group, after, place, len(narrowed), f"narrowed {rule.rule_id}")

    def _restore(self, subject: Ref, said: Mapping[str, str]) -> str:
        group, rule = self._group(subject), to_world(read_rule(said["rule"]))
        instead = [each for each in said.get("instead_of", "").split(",") if each]
        gone = [self._world.networks.rule(subject, each, rule.direction) for each in instead]
        _refuse_if(not all(_narrows(each, rule) for each in gone), "in its place stands another rule by now")
        _refuse_if(any(_same(each, rule) for each in group.rules), "such a rule is there already")
        left = [each for each in group.rules if each not in gone]
        again = replace(rule, rule_id=self._new_id(rule, "again"))
        place = _place_of(rule, left) if group.order is RuleOrder.FIRST_MATCH else len(left)
        return self._put(group, [*left[:place], again, *left[place:]], place, 1, f"restored {rule.rule_id}")

    def _put(self, group: SecurityGroup, rules: list[NetworkRule], place: int, new: int, what: str) -> str:
        """These rules from now on; the ids of so many new ones at this place."""
        self._world.networks.set_rules(group.ref, rules, self._world.now, _BY, what)
        made = self._world.networks.group(group.ref).rules[place : place + new]
        return ",".join(rule.rule_id for rule in made)

    def _new_id(self, rule: NetworkRule, peer: str) -> str:
        return made_up_rule_id(rule.rule_id, peer, str(len(self._world.networks.history)))

    def _log_flows(self, subject: Ref, said: Mapping[str, str]) -> str:
        networks = self._world.networks
        shard = networks.of(subject.shard)
        unfit = subject.provider == "tencent" and subject.kind in {"vpc", "subnet"}
        _refuse_if(unfit, "CreateFlowLog takes no VPC and no subnet")
        loggable = {part.ref for parts in (shard.vpcs, shard.subnets, shard.interfaces) for part in parts}
        if subject not in loggable:
            raise WorldRefusalError(Refusal.NOT_FOUND, subject.native_id)
        _refuse_if(not said.get("destination"), "nowhere to write to")
        _refuse_if(any(log.covers == subject and log.active for log in shard.flow_logs), "there is a flow log already")
        native_id = "fl-" + made_up_request_id("flow", str(subject), str(len(networks.history))).replace("-", "")[:17]
        networks.log_flows(FlowLog(subject.sibling("flow_log", native_id), subject, active=True), self._world.now, _BY)
        return native_id

    def _imds(self, subject: Ref, *, v1: bool) -> None:
        machine = self._world.machines.get(subject.native_id)
        if machine is None or machine.ref != subject or not self._world.is_listed(machine):
            raise WorldRefusalError(Refusal.NOT_FOUND, subject.native_id)
        _refuse_if(machine.ref not in self._world.networks.imds_v1, "there is no such setting")
        self._world.networks.set_imds(machine.ref, v1=v1, now=self._world.now, by=_BY)


def _same(rule: NetworkRule, other: NetworkRule) -> bool:
    """Whether two rules match and say the same, whatever they are called and wherever they stand."""
    return _bare(rule) == _bare(other)


def _bare(rule: NetworkRule) -> NetworkRule:
    return replace(rule, rule_id="", priority=0, description="")


def _narrows(rule: NetworkRule, other: NetworkRule) -> bool:
    """Whether a rule is the other one for fewer networks."""
    if not _same(replace(rule, peers=other.peers), other):
        return False
    wide = [ip_network(peer) for peer in other.peers]
    return rule.peers != other.peers and all(any(_within(ip_network(p), w) for w in wide) for p in rule.peers)


def _within(network: _Network, other: _Network) -> bool:
    return (
        network.version == other.version
        and int(other.network_address) <= int(network.network_address)
        and (int(network.broadcast_address) <= int(other.broadcast_address))
    )


_ERRORS: Mapping[Refusal, type[ProviderError]] = {
    Refusal.DENIED: AccessDeniedError,
    Refusal.NOT_FOUND: NotFoundError,
}


def _agree(now: Mapping[str, str], before: Mapping[str, str]) -> None:
    moved = sorted(word for word, was in before.items() if word in now and now[word] != was)
    _refuse_if(bool(moved), f"changed since it was decided on: {', '.join(moved)}")


def _refuse_if(wrong: bool, why: str) -> None:  # noqa: FBT001 - the question comes first, as in an assertion
    if wrong:
        raise _refused(why)


def _refused(why: str) -> RefusedError:
    return RefusedError(f"refused: {why}", operation="world:network", code=Refusal.WRONG_STATE.value)


def _place_of(rule: NetworkRule, rules: list[NetworkRule]) -> int:
    """Where among all rules one stands that is to have the place `rule.priority` among those of its direction."""
    before = [number for number, each in enumerate(rules) if each.direction is rule.direction]
    return before[rule.priority] if rule.priority < len(before) else len(rules)
