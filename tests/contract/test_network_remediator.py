"""What every `NetworkRemediator` promises, run on each provider: see `network_rigs.py` for what a provider brings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.contract.network_fleet import (
    DEFAULT,
    IDLE_NAT,
    NOTEBOOK,
    OPEN,
    SPARE,
    TRAINER,
    TRAINING,
    WORLD_V4,
)
from tests.contract.network_rigs import NetworkRig, in_order, plain
from tests.contract.network_worlds import NETWORKS, WIRED
from tests.world_ports.translate import to_product, to_world
from tests.world_ports.views import instance_of

from cloudstand.world.network.networks import in_their_places
from cloudstand.world.records import Operation
from costguard.domain.actions import Receipt
from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    NotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
)
from costguard.domain.network import (
    AddressState,
    FlowLog,
    NetworkInventory,
    NetworkRule,
    SecurityGroup,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.remediations import FINAL, Remediation, RemediationKind
from costguard.domain.resources import Instance, InstanceState
from costguard.guards.network.remediation import before_of, inverse
from costguard.guards.network.rules import rule_text

FORBIDDEN = re.compile(r"delete|terminate|runinst|stop|start|reboot|destroy|create|attach(?!$)", re.IGNORECASE)
OFFICE, VPN = "198.51.100.0/24", "192.0.2.0/24"
K = RemediationKind
Before = Mapping[str, str]


@pytest.fixture(scope="module", params=sorted(NETWORKS))
def provider(request: pytest.FixtureRequest) -> Iterator[NetworkRig]:
    with NETWORKS[request.param]() as made:
        yield made


@pytest.fixture(scope="module")
def seen(provider: NetworkRig) -> Start:
    provider.reset()
    return Start(provider, provider.read(), provider.instances())


@pytest.fixture
def start(seen: Start) -> Start:
    seen.rig.reset()
    return seen


@pytest.fixture
def rig(start: Start) -> NetworkRig:
    return start.rig


@dataclass(frozen=True)
class World:
    """All of a world that a mend could touch."""

    networks: NetworkInventory
    imds_v1: Mapping[ResourceRef, bool]
    machines: Mapping[str, tuple[InstanceState, str | None, tuple[tuple[str, str], ...], frozenset[str]]]
    kept: Mapping[str, tuple[str, ...]]
    disks: tuple[str, ...]


def whole(rig: NetworkRig) -> World:
    world = rig.world
    return World(
        bare(rig.truth()),
        dict(to_product(world.networks.imds_v1)),
        {
            native_id: to_product(
                (each.state, each.public_ip, tuple(sorted(each.tags.items())), frozenset(each.protections))
            )
            for native_id, each in world.machines.items()
        },
        {native_id: tuple(each.native_id for each in world.addresses_of(native_id)) for native_id in world.machines},
        tuple(sorted(world.volumes)),
    )


def bare(found: NetworkInventory) -> NetworkInventory:
    """Without what a cloud makes up: ids of rules and of flow logs, and versions."""
    return replace(
        plain(found),
        groups=tuple(replace(each, rules=nameless(each), version="") for each in plain(found).groups),
        flow_logs=tuple(sorted((replace(each, ref=each.covers) for each in found.flow_logs), key=_by_ref)),
    )


def _by_ref(log: FlowLog) -> str:
    return str(log.ref)


def nameless(group: SecurityGroup) -> tuple[NetworkRule, ...]:
    rules = (replace(rule, rule_id="") for rule in group.rules)
    return tuple(sorted(rules, key=lambda rule: (rule.direction.value, rule.priority, rule_text(rule))))


@dataclass(frozen=True)
class Start:
    """A rig with its networks as they began, and as the provider's own adapters saw them then."""

    rig: NetworkRig
    seen: NetworkInventory
    instances: Sequence[Instance]

    def rule(self, port: int = 8888) -> NetworkRule:
        """What opens this port to the world."""
        rules = self._group.rules
        (rule,) = (each for each in rules if each.peers == (WORLD_V4,) and each.ports == ((port, port),))
        return rule

    @property
    def _group(self) -> SecurityGroup:
        ref = self.rig.ref("security_group", OPEN)
        return next(each for each in self.seen.groups if each.ref == ref)

    def about_rule(self, kind: RemediationKind, **more: str) -> Remediation:
        rule, group = self.rule(), self._group
        said = {"rule_id": rule.rule_id, "direction": rule.direction.value, "version": group.version, **more}
        return Remediation(kind, group.ref, said)

    def about_address(self, kind: RemediationKind, name: str = NOTEBOOK) -> Remediation:
        (address,) = (each for each in self.seen.addresses if each.ref == self.rig.ref("address", name))
        if kind is K.RELEASE_ADDRESS:
            return Remediation(kind, address.ref, {"ip": address.ip})
        said = {"ip": address.ip, "bound_to": str(address.bound_to), "private_ip": "10.20.1.10"}
        return Remediation(kind, address.ref, said)

    def before(self, mend: Remediation) -> Before:
        return before_of(mend, self.seen, self.instances)


def about_flows(rig: NetworkRig) -> Remediation:
    return Remediation(K.ENABLE_FLOW_LOGS, unlogged(rig), dict(rig.flow_logs))


def unlogged(rig: NetworkRig) -> ResourceRef:
    """What has no flow log, of the kind that the vendor writes flow logs of."""
    (log,) = rig.truth().flow_logs
    return rig.ref("interface", TRAINER) if log.covers.kind == "interface" else rig.ref("vpc", DEFAULT)


def in_group(world: World, rig: NetworkRig, change: Callable[[list[NetworkRule]], list[NetworkRule]]) -> World:
    """The world with other rules in the group called `OPEN`."""
    ref = rig.ref("security_group", OPEN)
    (group,) = (each for each in rig.truth().groups if each.ref == ref)
    rules = change(list(in_order(group.rules)))
    after = replace(group, rules=to_product(in_their_places(to_world(rules))) if group.version else tuple(rules))
    groups = tuple(after if each.ref == ref else each for each in rig.truth().groups)
    return replace(world, networks=bare(replace(rig.truth(), groups=groups)))


def is_jupyter(rule: NetworkRule) -> bool:
    """8888, open to the world."""
    return (rule.peers, rule.ports) == ((WORLD_V4,), ((8888, 8888),))


def no_jupyter(rules: list[NetworkRule]) -> list[NetworkRule]:
    return [rule for rule in rules if not is_jupyter(rule)]


def narrowed(rules: list[NetworkRule]) -> list[NetworkRule]:
    after = []
    for rule in rules:
        after += [replace(rule, peers=(peer,)) for peer in (OFFICE, VPN)] if is_jupyter(rule) else [rule]
    return after


def without_spare(world: World, rig: NetworkRig) -> World:
    left = tuple(each for each in world.networks.addresses if each.ref != rig.ref("address", SPARE))
    return replace(world, networks=replace(world.networks, addresses=left))


def without_public_ip(world: World, rig: NetworkRig) -> World:
    notebook, ref = rig.fleet.machines[NOTEBOOK].native_id, rig.ref("address", NOTEBOOK)
    addresses = tuple(
        replace(each, state=AddressState.UNATTACHED, bound_to=None) if each.ref == ref else each
        for each in world.networks.addresses
    )
    cards = tuple(
        replace(card, public_ips=()) if card.ref == rig.ref("interface", NOTEBOOK) else card
        for card in world.networks.interfaces
    )
    state, _, tags, protections = world.machines[notebook]
    none = None if rig.shard.provider == "tencent" else ""
    return replace(
        world,
        networks=replace(world.networks, addresses=addresses, interfaces=cards),
        machines={**world.machines, notebook: (state, none, tags, protections)},
        kept={**world.kept, notebook: ()},
    )


def with_flow_log(world: World, rig: NetworkRig) -> World:
    more = FlowLog(unlogged(rig), unlogged(rig), active=True)
    logs = tuple(sorted((*world.networks.flow_logs, more), key=_by_ref))
    return replace(world, networks=replace(world.networks, flow_logs=logs))


def with_tokens_only(world: World, rig: NetworkRig) -> World:
    return replace(world, imds_v1={**world.imds_v1, rig.ref("instance", NOTEBOOK): False})


MENDS: Mapping[RemediationKind, tuple[Callable[[Start], Remediation], Callable[[World, NetworkRig], World]]] = {
    K.RELEASE_ADDRESS: (lambda start: start.about_address(K.RELEASE_ADDRESS, SPARE), without_spare),
    K.DETACH_ADDRESS: (lambda start: start.about_address(K.DETACH_ADDRESS), without_public_ip),
    K.REVOKE_RULE: (
        lambda start: start.about_rule(K.REVOKE_RULE),
        lambda world, rig: in_group(world, rig, no_jupyter),
    ),
    K.NARROW_RULE: (
        lambda start: start.about_rule(K.NARROW_RULE, peers=f"{OFFICE},{VPN}"),
        lambda world, rig: in_group(world, rig, narrowed),
    ),
    K.ENABLE_FLOW_LOGS: (lambda start: about_flows(start.rig), with_flow_log),
    K.REQUIRE_IMDSV2: (
        lambda start: Remediation(K.REQUIRE_IMDSV2, start.rig.ref("instance", NOTEBOOK)),
        with_tokens_only,
    ),
}
"""What mends, and what the world is to look like afterwards. The others only take these back."""


def back(mend: Remediation, before: Before, receipt: Receipt) -> Remediation:
    """What takes a mend back, as an undo makes it of what was kept."""
    found = inverse(mend, before, receipt.native_id)
    assert found is not None
    return found


def undo(rig: NetworkRig, again: Remediation) -> None:
    """With what there is just before, as in any change."""
    world = rig.world
    machine = world.machines.get(again.subject.native_id)
    there = [] if machine is None else [instance_of(world, machine)]
    rig.remediator().change(again, before_of(again, rig.told(rig.truth()), there))


def each_kind(start: Start) -> Iterator[tuple[RemediationKind, Remediation, Before]]:
    """Every kind the vendor has, each in networks as they began."""
    for kind in MENDS:
        if kind in start.rig.mends:
            start.rig.reset()
            mend = MENDS[kind][0](start)
            yield kind, mend, start.before(mend)


def test_every_mend_does_exactly_what_it_says_and_nothing_else(start: Start) -> None:
    rig = start.rig
    for kind, mend, before in each_kind(start):
        expected = MENDS[kind][1](whole(rig), rig)
        there = {each.ref.native_id for each in rig.truth().flow_logs}
        receipt = rig.remediator().change(mend, before)
        assert receipt.request_id, kind
        assert whole(rig) == expected, kind
        found = rig.read()
        assert plain(found) == plain(rig.told(rig.truth())), f"{kind}: and it is read back"
        made = [each for each in receipt.native_id.split(",") if each]
        if kind is K.ENABLE_FLOW_LOGS:
            assert set(made) == {each.ref.native_id for each in found.flow_logs} - there
        elif kind is K.NARROW_RULE:
            (group,) = (each for each in found.groups if each.ref == mend.subject)
            named = {rule.peers for rule in group.rules if rule.rule_id in made and rule.direction.value == "ingress"}
            assert named == {(OFFICE,), (VPN,)}
        else:
            assert made == [], kind


def test_undo_brings_back_exactly_what_was_and_twice_is_refused_or_harmless(start: Start) -> None:
    """Of the mend as of what takes it back."""
    rig = start.rig
    for kind, mend, before in each_kind(start):
        as_it_was = whole(rig)
        receipt = rig.remediator().change(mend, before)
        mended = whole(rig)
        assert refused(rig, mend, before) or kind is K.REQUIRE_IMDSV2, f"{kind}: no state that may be said twice"
        assert whole(rig) == mended, kind
        if kind in FINAL:
            continue
        again = back(mend, before, receipt)
        undo(rig, again)
        assert whole(rig) == as_it_was, kind
        assert refused(rig, again) or kind is K.REQUIRE_IMDSV2, f"{kind}: nor of its undoing"
        assert whole(rig) == as_it_was, kind


def rewritten(rig: NetworkRig) -> None:
    """Somebody has made another rule of it, which goes by the same name."""
    rules = [
        replace(rule, peers=("198.18.0.0/15",)) if is_jupyter(rule) else rule for rule in rig.truth_of_group(OPEN).rules
    ]
    rig.world.networks.set_rules(
        to_world(rig.ref("security_group", OPEN)), to_world(rules), rig.clock.now(), "owner", "rewrote a rule"
    )


def moved_up(rig: NetworkRig) -> None:
    """Somebody has taken the first rule away: where a rule is its place, each now goes by another's name."""
    ref = rig.ref("security_group", OPEN)
    first = rig.truth_of_group(OPEN).rules[0]
    rig.world.networks.revoke(to_world(ref), first.rule_id, rig.clock.now(), "owner", to_world(first.direction))


def taken_away(rig: NetworkRig) -> None:
    (rule,) = filter(is_jupyter, rig.truth_of_group(OPEN).rules)
    ref = rig.ref("security_group", OPEN)
    rig.world.networks.revoke(to_world(ref), rule.rule_id, rig.clock.now(), "owner", to_world(rule.direction))


def bound(rig: NetworkRig) -> None:
    rig.world.networks.attach(
        to_world(rig.ref("address", SPARE)),
        to_world(rig.ref("interface", TRAINER)),
        "10.20.2.10",
        rig.clock.now(),
        "owner",
    )


def bound_elsewhere(rig: NetworkRig) -> None:
    networks, now = rig.world.networks, rig.clock.now()
    networks.detach(to_world(rig.ref("address", NOTEBOOK)), now, "owner")
    networks.attach(
        to_world(rig.ref("address", NOTEBOOK)), to_world(rig.ref("interface", TRAINER)), "10.20.2.10", now, "owner"
    )


def logged(rig: NetworkRig) -> None:
    covers = unlogged(rig)
    log = FlowLog(covers.sibling("flow_log", "fl-somebodys"), covers, active=True)
    rig.world.networks.log_flows(to_world(log), rig.clock.now(), "owner")


MOVED: Mapping[str, tuple[RemediationKind, Callable[[NetworkRig], None]]] = {
    "a rule revoked is another by now": (K.REVOKE_RULE, rewritten),
    "a rule narrowed is another by now": (K.NARROW_RULE, rewritten),
    "a rule revoked is gone": (K.REVOKE_RULE, taken_away),
    "a rule narrowed is gone": (K.NARROW_RULE, taken_away),
    "an address released is in use": (K.RELEASE_ADDRESS, bound),
    "an address detached is bound elsewhere": (K.DETACH_ADDRESS, bound_elsewhere),
    "flows are logged already": (K.ENABLE_FLOW_LOGS, logged),
}


@pytest.mark.parametrize("what", sorted(MOVED))
def test_what_moved_meanwhile_is_refused(start: Start, what: str) -> None:
    (kind, move), rig = MOVED[what], start.rig
    mend = MENDS[kind][0](start)
    move(rig)
    there, history = whole(rig), list(rig.world.networks.history)
    assert refused(rig, mend, start.before(mend))
    assert whole(rig) == there
    assert rig.world.networks.history == history


@pytest.mark.parametrize("told", [True, False], ids=["with its image", "without its image"])
def test_no_other_rule_is_hit_when_rules_move_up(start: Start, told: bool) -> None:  # noqa: FBT001 - a case
    """Where ids are places, the version speaks against it; elsewhere the rule still goes by its own name."""
    mend, rig = MENDS[K.REVOKE_RULE][0](start), start.rig
    moved_up(rig)
    unmoved, done = whole(rig), in_group(whole(rig), rig, no_jupyter)
    if refused(rig, mend, start.before(mend) if told else {}):
        assert whole(rig) == unmoved
    else:
        assert whole(rig) == done
        assert not rig.truth_of_group(OPEN).version, "where there are versions, this one was stale"


def test_no_other_rule_is_taken_away_when_rules_move_up_before_an_undo(start: Start) -> None:
    mend, rig = MENDS[K.NARROW_RULE][0](start), start.rig
    before, first = start.before(mend), whole(rig)
    again = back(mend, before, rig.remediator().change(mend, before))
    moved_up(rig)
    unmoved, undone = whole(rig), in_group(first, rig, widened)
    if refused(rig, again):
        assert whole(rig) == unmoved
    else:
        assert whole(rig) == undone


def widened(rules: list[NetworkRule]) -> list[NetworkRule]:
    """One rule for the world again where two stand for offices."""
    again = [replace(rule, peers=(WORLD_V4,)) if rule.peers == (OFFICE,) else rule for rule in rules]
    return [rule for rule in again if rule.peers != (VPN,)]


def test_what_was_made_of_a_narrowed_rule_since_is_left_alone(start: Start) -> None:
    """Its owner has moved it to another port: that is no longer what stands in the old rule's place."""
    mend, rig = MENDS[K.NARROW_RULE][0](start), start.rig
    before = start.before(mend)
    again = back(mend, before, rig.remediator().change(mend, before))
    there = rig.truth_of_group(OPEN).rules
    rules = [replace(rule, ports=((9999, 9999),)) if rule.peers == (OFFICE,) else rule for rule in there]
    rig.world.networks.set_rules(
        to_world(rig.ref("security_group", OPEN)), to_world(rules), rig.clock.now(), "owner", "rewrote a rule"
    )
    unmoved = whole(rig)
    assert refused(rig, again)
    assert whole(rig) == unmoved


def test_a_rule_that_its_owner_made_anew_is_not_restored_beside_it(start: Start) -> None:
    mend, rig = MENDS[K.REVOKE_RULE][0](start), start.rig
    before = start.before(mend)
    again = back(mend, before, rig.remediator().change(mend, before))
    rules = rig.truth_of_group(OPEN).rules
    anew = replace(rules[0], rule_id="sgr-0wners", ports=((8888, 8888),), description="")
    rig.world.networks.set_rules(
        to_world(rig.ref("security_group", OPEN)),
        [to_world(rules[0]), to_world(anew), *to_world(rules[1:])],
        rig.clock.now(),
        "owner",
        "made anew",
    )
    there = whole(rig)
    assert refused(rig, again)
    assert whole(rig) == there


def unfit(start: Start) -> Mapping[str, Remediation]:
    """What no cloud does, or what nobody may ask of this port."""
    rig = start.rig
    released, revoked = MENDS[K.RELEASE_ADDRESS][0](start), MENDS[K.REVOKE_RULE][0](start)
    detached = start.about_address(K.DETACH_ADDRESS)
    gateway = {"ip": "203.0.113.50", "bound_to": str(rig.ref("nat_gateway", IDLE_NAT)), "private_ip": "10.20.1.201"}
    elsewhere = {**detached.parameters, "bound_to": str(rig.ref("instance", TRAINER))}
    return {
        "an address in use": start.about_address(K.RELEASE_ADDRESS, NOTEBOOK),
        "an address of a gateway": start.about_address(K.RELEASE_ADDRESS, IDLE_NAT),
        "an address by another IP": replace(released, parameters={"ip": "203.0.113.99"}),
        "detaching from a gateway": Remediation(K.DETACH_ADDRESS, rig.ref("address", IDLE_NAT), gateway),
        "detaching from another machine": replace(detached, parameters=elsewhere),
        "attaching what is attached": replace(detached, kind=K.ATTACH_ADDRESS),
        "revoking no rule": replace(revoked, parameters={**revoked.parameters, "rule_id": "77"}),
        "narrowing to nothing": start.about_rule(K.NARROW_RULE, peers=""),
        "a flow log that is not there": Remediation(K.REMOVE_FLOW_LOGS, unlogged(rig), {"flow_log": "fl-0000"}),
        "logging what has a flow log": replace(about_flows(rig), subject=rig.truth().flow_logs[0].covers),
        "an address that is not there": Remediation(
            K.RELEASE_ADDRESS, released.subject.sibling("address", "eip-0000"), {"ip": "203.0.113.99"}
        ),
        "a group that is not there": replace(revoked, subject=revoked.subject.sibling("security_group", "sg-0000")),
        "a key's period": Remediation(K.SET_ROTATION, rig.ref("vpc", TRAINING), {"days": "90"}),
        "a key's rotation": Remediation(K.ROTATE_KEY, rig.ref("vpc", TRAINING)),
    }


def test_what_does_not_fit_is_refused_and_changes_nothing(start: Start) -> None:
    rig = start.rig
    there, history = whole(rig), list(rig.world.networks.history)
    for what, mend in unfit(start).items():
        if mend.kind in rig.mends or mend.kind in {K.SET_ROTATION, K.ROTATE_KEY}:
            assert refused(rig, mend), what
    assert whole(rig) == there
    assert rig.world.networks.history == history


def test_an_address_that_a_term_was_paid_for_or_that_a_service_keeps_is_not_given_up(start: Start) -> None:
    """And none is taken off by the way. AWS sells no terms, and the others tell of no such service."""
    mend, rig = MENDS[K.RELEASE_ADDRESS][0](start), start.rig
    there = rig.truth()
    kept: dict[str, Any] = {"is_service_managed": True} if rig.shard.provider == "aws" else {"is_prepaid": True}
    addresses = [replace(each, **kept) if each.ref == mend.subject else each for each in there.addresses]
    rig.world.networks.place(to_world(replace(there, addresses=tuple(addresses))))
    (found,) = (each for each in rig.read().addresses if each.ref == mend.subject)
    assert {word: getattr(found, word) for word in kept} == kept, "and that can be seen"
    unmoved = whole(rig)
    assert refused(rig, mend, start.before(mend))
    assert whole(rig) == unmoved


def refused(rig: NetworkRig, mend: Remediation, before: Before | None = None) -> bool:
    try:
        rig.remediator().change(mend, before or {})
    except (RefusedError, NotFoundError):
        return True
    return False


@pytest.mark.parametrize(
    ("goes_wrong", "error"),
    [
        (lambda rig: rig.deny(Operation.FIX_NETWORK), AccessDeniedError),
        (lambda rig: rig.throttle_changes(1), ThrottledError),
    ],
    ids=["denied", "throttled"],
)
def test_what_was_rejected_changed_nothing_and_is_not_repeated(
    start: Start, goes_wrong: Callable[[NetworkRig], None], error: type[ProviderError]
) -> None:
    for kind, mend, before in each_kind(start):
        there, asked = whole(start.rig), len(start.rig.changes())
        goes_wrong(start.rig)
        with pytest.raises(error):
            start.rig.remediator().change(mend, before)
        assert len(start.rig.changes()) == asked + 1, kind
        assert whole(start.rig) == there, kind


def test_after_a_lost_answer_the_outcome_is_unknown_and_nothing_is_repeated(start: Start) -> None:
    rig = start.rig
    for kind, mend, before in each_kind(start):
        expected, asked = MENDS[kind][1](whole(rig), rig), len(rig.changes())
        there = whole(rig)
        rig.lose_answers()
        with pytest.raises(OutcomeUnknownError):
            rig.remediator().change(mend, before)
        assert len(rig.changes()) == asked + 1, f"{kind}: nothing follows what may not have happened"
        if kind is K.NARROW_RULE:  # two calls on some clouds: then only the first went out, and nothing is closed yet
            assert whole(rig) == expected or any(map(is_jupyter, rig.truth_of_group(OPEN).rules))
        else:
            assert whole(rig) == expected, kind
        assert whole(rig) != there, kind


def test_a_subject_of_another_cloud_or_of_no_region_is_not_sent(start: Start) -> None:
    rig = start.rig
    other = "tencent" if rig.cloud == "aws" else "aws"
    for kind, mend, before in each_kind(start):
        there, asked = whole(rig), len(rig.changes())
        for wrong in (
            replace(mend.subject, cloud=other),
            replace(mend.subject, region=""),
            replace(mend.subject, native_id=""),
            replace(mend.subject, kind="volume"),
        ):
            assert refused(rig, replace(mend, subject=wrong), before), f"{kind} of {wrong}"
        assert whole(rig) == there, kind
        if rig.has_pages:
            assert len(rig.changes()) == asked, kind


over_a_wire = pytest.mark.parametrize("provider", sorted(WIRED), indirect=True, scope="module")
"""Only where there are sessions: the world has none."""


@over_a_wire
@pytest.mark.parametrize("kind", ["reading", "acting"])
def test_only_a_session_made_for_it_mends(rig: NetworkRig, kind: str) -> None:
    with pytest.raises(InvalidInputError):
        rig.remediator_over(rig.session(kind))


@over_a_wire
def test_a_session_that_only_looks_changes_nothing(start: Start) -> None:
    rig = start.rig
    looking = rig.remediator_over(rig.session("looking"))
    for kind, mend, before in each_kind(start):
        with pytest.raises(AccessDeniedError, match="read-only"):
            looking.change(mend, before)
        assert rig.changes() == [], kind


@over_a_wire
def test_what_comes_from_a_session_for_mending_can_do_nothing_else(rig: NetworkRig) -> None:
    stops = {"aws": ("ec2", "StopInstances"), "alibaba": ("ecs", "StopInstances"), "tencent": ("cvm", "StopInstances")}
    session = rig.session("mending").acting()
    try:
        with pytest.raises(AccessDeniedError, match="not among the operations costguard may call"):
            session.call(Shard(rig.cloud, ""), *stops[rig.shard.provider])
    finally:
        session.close()


@over_a_wire
def test_nothing_within_reach_deletes_a_network_and_only_the_mending_operations_ever_leave(start: Start) -> None:
    rig = start.rig
    assert [name for name in rig.reach() if FORBIDDEN.search(name) and name not in rig.changing] == []
    assert rig.changing <= set(rig.reach())
    left: set[str] = set()
    for kind, mend, before in each_kind(start):
        receipt = rig.remediator().change(mend, before)
        if kind not in FINAL:
            undo(rig, back(mend, before, receipt))
        left |= set(rig.changes())
    assert left == rig.changing
