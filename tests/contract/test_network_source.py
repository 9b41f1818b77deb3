"""What every `NetworkSource` promises, run on each provider: see `network_rigs.py` for what a provider brings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
from tests.contract.network_fleet import LEGACY, NARROW, NOTEBOOK, OPEN, SPARE, TRAINER
from tests.contract.network_rigs import NetworkRig, plain
from tests.contract.network_worlds import NETWORKS
from tests.world_ports.translate import to_product, to_world

from cloudstand.world.network.networks import PARTS
from cloudstand.world.records import Operation
from costguard.domain.errors import AccessDeniedError, ThrottledError
from costguard.domain.network import NetworkInventory
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import GapKind


@pytest.fixture(scope="module", params=sorted(NETWORKS))
def provider(request: pytest.FixtureRequest) -> Iterator[NetworkRig]:
    with NETWORKS[request.param]() as made:
        yield made


@pytest.fixture
def rig(provider: NetworkRig) -> NetworkRig:
    provider.reset()
    return provider


@dataclass(frozen=True)
class First:
    """One whole read, which those tests share that only look at it."""

    rig: NetworkRig
    wanted: NetworkInventory
    found: NetworkInventory
    imds_v1: dict[ResourceRef, bool | None]
    requests: Sequence[str]
    changes: Sequence[str]


@pytest.fixture(scope="module")
def first(provider: NetworkRig) -> First:
    provider.reset()
    found = provider.read()
    asked, changed = list(provider.requests()), list(provider.changes())
    assert provider.world.networks.history == []
    told = {each.ref: each.imds_v1 for each in provider.instances()}
    return First(provider, wanted(provider), plain(found), told, asked, changed)


def wanted(rig: NetworkRig) -> NetworkInventory:
    """What there is, as this cloud tells it."""
    return plain(rig.told(rig.truth()))


@pytest.mark.parametrize("part", sorted(PARTS))
def test_every_part_is_told_as_it_is(first: First, part: str) -> None:
    found, there = (getattr(each, PARTS[part]) for each in (first.found, first.wanted))
    assert {each.ref: each for each in found} == {each.ref: each for each in there}
    assert len(found) == len(there), "each once"


def test_a_whole_read_has_no_gaps_and_is_of_the_shard_asked_for(first: First) -> None:
    assert (first.found.shard, first.found.gaps) == (first.rig.shard, ())


def test_a_rate_is_unknown_or_something_but_never_nothing(rig: NetworkRig) -> None:
    found = rig.read()
    rates = [*(each.rate for each in found.addresses), *(each.rate for each in found.nat_gateways)]
    assert [rate for rate in rates if rate is not None and (rate.money.amount <= 0 or not rate.source)] == []


def test_machines_tell_whether_their_metadata_answers_without_a_token(first: First) -> None:
    fleet = first.rig.fleet
    assert first.imds_v1 == {
        ref: fleet.imds_v1.get(ref) for ref in (to_product(spec.ref) for spec in fleet.machines.values())
    }


def test_what_changed_meanwhile_is_told_anew(rig: NetworkRig) -> None:
    before = plain(rig.read())
    networks, now, shard = rig.world.networks, rig.clock.now(), rig.shard
    groups = networks.of(to_world(shard)).groups
    gone = next(group for group in groups if to_product(group.ref) == rig.ref("security_group", OPEN)).rules[0]
    networks.revoke(to_world(rig.ref("security_group", OPEN)), gone.rule_id, now, "owner", gone.direction)
    networks.detach(to_world(rig.ref("address", NOTEBOOK)), now, "owner")
    networks.attach(
        to_world(rig.ref("address", SPARE)), to_world(rig.ref("interface", TRAINER)), "10.20.2.10", now, "owner"
    )
    networks.end_flow_log(to_world(rig.ref("flow_log", "flows")), now, "owner")
    after = plain(rig.read())
    assert after == wanted(rig)
    moved = {part for part in PARTS if getattr(after, PARTS[part]) != getattr(before, PARTS[part])}
    assert moved == {"groups", "addresses", "interfaces", "flow_logs"}


def test_a_group_that_nothing_is_in_any_more_is_unused(rig: NetworkRig) -> None:
    networks, shard = rig.world.networks, rig.shard
    there = networks.of(to_world(shard))
    narrow = rig.ref("security_group", NARROW).native_id
    cards = tuple(replace(card, groups=tuple(g for g in card.groups if g != narrow)) for card in there.interfaces)
    groups = tuple(replace(g, in_use=False) if g.ref.native_id == narrow else g for g in there.groups)
    networks.place(replace(there, interfaces=cards, groups=groups))
    assert plain(rig.read()).groups == wanted(rig).groups


def test_what_goes_with_a_machine_is_gone_with_it(rig: NetworkRig) -> None:
    rig.world.networks.instance_gone(rig.fleet.machines[NOTEBOOK].ref)
    after = plain(rig.read())
    assert after == wanted(rig)
    assert rig.ref("interface", NOTEBOOK) not in {card.ref for card in after.interfaces}
    assert [each.bound_to for each in after.addresses if each.ref == rig.ref("address", NOTEBOOK)] == [None]
    assert rig.ref("interface", LEGACY) in {card.ref for card in after.interfaces}


def test_pages_lose_nothing(rig: NetworkRig) -> None:
    whole, asked = plain(rig.read()), len(rig.requests())
    rig.small_pages()
    assert plain(rig.read()) == whole
    if rig.has_pages:
        assert len(rig.requests()) > 2 * asked, "there were pages"


def test_a_part_that_is_denied_is_a_gap_of_that_part_and_the_others_are_whole(rig: NetworkRig) -> None:
    whole = rig.told(rig.truth())
    for part, lacking in rig.lacks.items():
        rig.as_new()
        rig.deny_part(part)
        found = rig.read()
        assert {gap.what for gap in found.gaps} == lacking, part
        assert {gap.kind for gap in found.gaps} == {GapKind.DENIED}, part
        assert all(gap.fix and gap.shard == rig.shard for gap in found.gaps), part
        assert replace(plain(found), gaps=()) == plain(rig.told_without(part, whole)), part


def test_a_role_that_may_read_nothing_is_told_so_and_never_that_there_is_nothing(rig: NetworkRig) -> None:
    rig.deny(Operation.NETWORK)
    with pytest.raises(AccessDeniedError):
        rig.read()


def test_throttling_is_waited_for(rig: NetworkRig) -> None:
    rig.throttle(2)
    assert plain(rig.read()) == wanted(rig)


def test_throttling_without_end_is_no_short_list(rig: NetworkRig) -> None:
    rig.throttle(100_000)
    try:
        found = rig.read()
    except ThrottledError:
        return
    assert {gap.kind for gap in found.gaps} == {GapKind.THROTTLED}
    lacking = {gap.what for gap in found.gaps}
    assert {part for part in PARTS if not getattr(found, PARTS[part])} <= lacking


def test_a_region_with_nothing_in_it_is_empty_and_complete(rig: NetworkRig) -> None:
    found = rig.source().read(rig.empty)
    assert found == NetworkInventory(rig.empty)


def test_reading_costs_what_it_has_to_and_changes_nothing(first: First) -> None:
    assert 0 < len(first.requests) <= first.rig.most_requests
    assert first.changes == []
