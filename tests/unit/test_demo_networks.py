"""The demo's networks tell, on each cloud, of what is open, what only looks so, and what is paid for in vain."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from tests.world_ports.inventory import WorldInventory
from tests.world_ports.translate import to_product, to_world

from cloudstand.clock import MovedClock
from cloudstand.demo.fleet import demo_fleet
from cloudstand.demo.networks import OFFICE, demo_networks
from cloudstand.fleets import GUANGZHOU, HANGZHOU
from cloudstand.world.cloud import World
from cloudstand.world.network.parts import AddressState
from costguard.domain.findings import Verdict
from costguard.guards.network.judge import judge
from costguard.guards.network.reachability.exposure import reach
from costguard.guards.network.rules import AuditRule, NetworkCheck
from costguard.guards.rules.common import Mode

AT = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def world() -> World:
    made = World(demo_fleet(AT), AT)
    made.networks = demo_networks(AT)
    return made


def test_every_machine_has_one_card_in_its_own_shard(world: World) -> None:
    cards = [card.instance for shard in world.shards for card in world.networks.of(shard).interfaces]
    assert sorted(map(str, cards)) == sorted(str(machine.ref) for machine in world.machines.values())


def test_who_the_internet_reaches_and_how(world: World) -> None:
    inventories = [world.networks.of(shard) for shard in sorted(world.shards)]
    source = WorldInventory(world, MovedClock(AT))
    found = reach(
        to_product(inventories), [each for shard in world.shards for each in source.read(to_product(shard)).instances]
    )
    names = {machine.ref: machine.spec.name for machine in world.machines.values()}
    open_to_all = {
        (names[to_world(path.instance)], path.ports[0][0])
        for path in found.paths
        if path.peers != (OFFICE,) and path.ports
    }
    assert open_to_all == {
        ("thesis-notebook", 8888),
        ("shared-login-node", 22),
        ("ad-ranking-dev", 8888),
        ("click-model-p100", 22),
        ("npc-notebook", 8888),
        ("cloud-desktop", 22),
    }
    assert {names[to_world(path.instance)] for path in found.paths if path.forward is not None} == {"click-model-p100"}
    assert found.doubts == ()


def test_the_audit_finds_the_open_ports_and_is_not_taken_in_by_what_is_barred(world: World) -> None:
    shards = sorted(world.shards)
    instances = [
        each for shard in shards for each in WorldInventory(world, MovedClock(AT)).read(to_product(shard)).instances
    ]
    rule = AuditRule(
        "all", Mode.OBSERVE, frozenset(NetworkCheck), trusted=(OFFICE, "10.0.0.0/8"), private_subnets=("*-inside",)
    )
    findings = judge([to_product(world.networks.of(shard)) for shard in shards], instances, [rule], AT, {})
    bad = [each for each in findings if each.verdict is Verdict.VIOLATION]
    graves = {(each.check, each.name) for each in bad if each.reason.facts["severity"] == "critical"}
    assert graves == {
        (NetworkCheck.OPEN_ADMIN_PORT.value, group) for group in ("notebooks", "login", "dev", "debugging", "desktops")
    }
    idle = {NetworkCheck.IDLE_NAT_GATEWAY: "migration-leftover", NetworkCheck.UNUSED_GROUP: "conference-desk"}
    assert {(each.check, each.name) for each in bad} >= {(check.value, name) for check, name in idle.items()}
    assert {each.name for each in bad if each.check == NetworkCheck.UNUSED_GROUP.value} == {"conference-desk"}
    assert "barred-ssh" not in {each.name for each in bad}
    assert not [each for each in bad if each.check == NetworkCheck.PRIVATE_SUBNET_EXPOSED.value]
    looks_open = next(each for each in bad if each.name == "ssh-anywhere")
    assert (looks_open.check, looks_open.reason.facts["reaches"]) == (NetworkCheck.OPEN_ADMIN_PORT.value, 0)


def test_each_cloud_has_an_unattached_address_with_its_price_and_a_default_network_in_use(world: World) -> None:
    for provider, currency in (("aws", "USD"), ("alibaba", "CNY"), ("tencent", "CNY")):
        there = [world.networks.of(shard) for shard in world.shards if shard.provider == provider]
        spare = [each for net in there for each in net.addresses if each.state is AddressState.UNATTACHED]
        assert [each.rate.money.currency for each in spare if each.rate is not None] == [currency]
        defaults = {vpc.ref for net in there for vpc in net.vpcs if vpc.is_default}
        assert {card.vpc for net in there for card in net.interfaces if card.vpc in defaults}


def test_flows_are_logged_in_some_networks_and_not_in_others(world: World) -> None:
    logged = {log.covers for shard in world.shards for log in world.networks.of(shard).flow_logs}
    every = {vpc.ref: vpc.name for shard in world.shards for vpc in world.networks.of(shard).vpcs}
    assert {name for ref, name in every.items() if ref in logged} == {"robotics", "product", "media"}
    assert {ref.region for ref in every.keys() - logged} >= {HANGZHOU, GUANGZHOU}


def test_machines_and_networks_agree_on_addresses(world: World) -> None:
    for shard in world.shards:
        for card in world.networks.of(shard).interfaces:
            assert card.instance is not None
            public = world.machines[card.instance.native_id].public_ip or ""
            assert [ip for _, ip in card.public_ips] == ([public] if public else [])
