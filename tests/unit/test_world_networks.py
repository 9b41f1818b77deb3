"""A world's networks and its machines say the same, whatever happens to either."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from tests.contract.network_fleet import LEGACY, NOTEBOOK, OPEN, ORDERED, SPARE, TRAINER, NetworkFleet, network_fleet
from tests.world_ports.translate import to_product, to_world
from tests.world_ports.views import instance_of

from cloudstand.world.cloud import World
from cloudstand.world.network.parts import Direction, NetworkInventory, PublicAddress
from cloudstand.world.records import Machine, Refusal, WorldRefusalError
from costguard.domain.network import AddressState

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


class Stage:
    def __init__(self, cloud: str) -> None:
        self.fleet: NetworkFleet = network_fleet(cloud, NOW)
        self.world: World = self.fleet.world(NOW)

    @property
    def there(self) -> NetworkInventory:
        return self.world.networks.of(to_world(self.fleet.shard))

    def machine(self, name: str) -> Machine:
        return self.world.machines[self.fleet.machines[name].native_id]

    def public_ips(self, name: str) -> list[str]:
        ref = self.fleet.ref("interface", name)
        return [ip for card in self.there.interfaces if to_product(card.ref) == ref for _, ip in card.public_ips]

    def address(self, name: str) -> PublicAddress:
        return self.world.networks.address(to_world(self.fleet.ref("address", name)))

    def later(self) -> None:
        self.world.tick(self.world.now + HOUR)


@pytest.fixture(params=["aws", "alibaba", "tencent"])
def stage(request: pytest.FixtureRequest) -> Stage:
    return Stage(request.param)


def test_what_an_address_leads_to_is_the_same_on_both_sides(stage: Stage) -> None:
    world, networks = stage.world, stage.world.networks
    address = stage.fleet.ref("address", NOTEBOOK)
    assert [each.native_id for each in world.addresses_of(stage.machine(NOTEBOOK).native_id)] == [address.native_id]
    networks.detach(to_world(address), NOW, "owner")
    assert not stage.machine(NOTEBOOK).public_ip
    assert world.addresses_of(stage.machine(NOTEBOOK).native_id) == []
    networks.attach(to_world(address), to_world(stage.fleet.ref("interface", TRAINER)), "10.20.2.10", NOW, "owner")
    trainer = stage.machine(TRAINER)
    assert (trainer.public_ip, instance_of(world, trainer).public_ip_is_kept) == ("203.0.113.10", True)
    assert stage.public_ips(TRAINER) == ["203.0.113.10"]


def test_an_address_released_is_gone_on_both_sides(stage: Stage) -> None:
    networks, spare = stage.world.networks, stage.fleet.ref("address", SPARE)
    networks.attach(to_world(spare), to_world(stage.fleet.ref("interface", TRAINER)), "10.20.2.10", NOW, "owner")
    with pytest.raises(WorldRefusalError) as refused:
        networks.release(to_world(spare), NOW, "owner")
    assert refused.value.refusal is Refusal.WRONG_STATE
    networks.detach(to_world(spare), NOW, "owner")
    networks.release(to_world(spare), NOW, "owner")
    assert spare.native_id not in stage.world.addresses
    assert to_world(spare) not in {each.ref for each in stage.there.addresses}


def test_a_stop_takes_the_plain_address_and_leaves_the_kept_one(stage: Stage) -> None:
    for name in (LEGACY, NOTEBOOK):
        stage.world.stop(stage.machine(name).native_id, "owner")
    stage.later()
    assert (stage.public_ips(LEGACY), stage.public_ips(NOTEBOOK)) == ([], ["203.0.113.10"])
    stage.world.start(stage.machine(LEGACY).native_id, "owner")
    assert stage.public_ips(LEGACY) == [stage.machine(LEGACY).public_ip]
    assert stage.public_ips(LEGACY) != ["203.0.113.20"], "another one than before"


def test_a_machine_that_ends_leaves_its_kept_address_unattached(stage: Stage) -> None:
    stage.world.terminate(stage.machine(NOTEBOOK).native_id, "owner")
    stage.later()
    assert to_product((stage.address(NOTEBOOK).state, stage.address(NOTEBOOK).bound_to)) == (
        AddressState.UNATTACHED,
        None,
    )
    assert stage.machine(NOTEBOOK).ref not in {card.instance for card in stage.there.interfaces}


def test_a_plain_address_taken_with_a_kept_one_detached_stays_gone_after_a_stop(stage: Stage) -> None:
    """The stop of a machine whose kept address was taken off releases what plain one it has got since."""
    stage.world.networks.detach(to_world(stage.fleet.ref("address", NOTEBOOK)), NOW, "owner")
    stage.machine(NOTEBOOK).public_ip = "203.0.113.77"
    stage.world.stop(stage.machine(NOTEBOOK).native_id, "owner")
    stage.later()
    assert not stage.machine(NOTEBOOK).public_ip


def test_where_a_rule_is_its_place_each_direction_counts_for_itself() -> None:
    stage = Stage("tencent")
    ref, networks = stage.fleet.ref("security_group", ORDERED), stage.world.networks
    assert {rule.direction for rule in networks.group(to_world(ref)).rules if rule.rule_id == "0"} == set(Direction)
    networks.revoke(to_world(ref), "0", NOW, "owner", Direction.EGRESS)
    assert [rule.rule_id for rule in networks.group(to_world(ref)).rules] == ["0", "1", "2", "3"]
    networks.revoke(to_world(ref), "1", NOW, "owner", Direction.INGRESS)
    left = networks.group(to_world(ref))
    assert [(rule.rule_id, rule.priority) for rule in left.rules] == [("0", 0), ("1", 1), ("2", 2)]
    assert left.version == "9"


def test_elsewhere_rules_keep_their_names() -> None:
    stage = Stage("aws")
    ref, networks = stage.fleet.ref("security_group", OPEN), stage.world.networks
    first, *others = networks.group(to_world(ref)).rules
    networks.revoke(to_world(ref), first.rule_id, NOW, "owner")
    assert networks.group(to_world(ref)).rules == tuple(others)
    with pytest.raises(WorldRefusalError):
        networks.revoke(to_world(ref), first.rule_id, NOW, "owner")
