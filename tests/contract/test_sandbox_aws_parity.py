"""One world, two ways to it: over the AWS wire with the real adapters, and through the world's own ports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from math import isnan

import pytest
from tests.world_ports.inventory import WorldInventory, WorldPrices, WorldSignals

from cloudstand.clouds import STARTS_AT
from cloudstand.demo.fleet import aws_fleet
from costguard.cli.sandbox.running import Sandbox
from costguard.domain.actions import Action, Verb
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance, SnapshotState
from costguard.domain.signals import SignalHistory, SignalName
from costguard.providers.aws.billing.prices import AwsPrices
from costguard.providers.aws.compute.executor import AwsExecutor
from costguard.providers.aws.compute.metrics import AwsSignals
from costguard.providers.aws.compute.source import AwsInventory
from costguard.providers.aws.core.session import AwsSession

SIGNALS = (SignalName.GPU, SignalName.CPU, SignalName.NETWORK, SignalName.POWER)


class BothWays:
    """The demo's fleet, its wire and its world."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        keys = (sandbox.credentials.access_key_id, sandbox.credentials.secret_access_key)
        self.session = AwsSession(endpoint_url=sandbox.endpoint_url, keys=keys)
        self.acting = self.session.acting()
        self.wire = AwsInventory(self.session)
        self.world = WorldInventory(sandbox.world, sandbox.clock)
        (self.target,) = sandbox.targets

    def instances(self) -> list[Instance]:
        shards = self.wire.discover(self.target).shards
        return [instance for shard in shards for instance in self.wire.read(shard).instances]

    def close(self) -> None:
        self.session.close()
        self.acting.close()


@pytest.fixture
def both() -> Iterator[BothWays]:
    with Sandbox.start(aws_fleet(STARTS_AT)) as sandbox:
        ways = BothWays(sandbox)
        yield ways
        ways.close()


def without_what_the_world_leaves_out(instance: Instance) -> Instance:
    """Epochs are opaque strings and addresses accidental; the demo's spec has no first launch of its own."""
    return replace(instance, run_epoch="", public_ip="", created_at=None, operating_system="", tenancy="")


def action(verb: Verb, instance: ResourceRef, resource: ResourceRef, epoch: str = "") -> Action:
    return Action("a-1", "d-1", verb, instance, resource, epoch, "c-1", 0, "rule", "digest")


def test_both_find_the_same_shards(both: BothWays) -> None:
    assert both.wire.discover(both.target) == both.world.discover(both.target)


def test_both_read_the_same_machines(both: BothWays) -> None:
    for shard in both.wire.discover(both.target).shards:
        read, known = both.wire.read(shard), both.world.read(shard)
        assert read.gaps == ()
        by_ref = {instance.ref: without_what_the_world_leaves_out(instance) for instance in read.instances}
        assert by_ref == {instance.ref: without_what_the_world_leaves_out(instance) for instance in known.instances}


def test_both_read_the_same_details(both: BothWays) -> None:
    for shard in both.wire.discover(both.target).shards:
        refs = [instance.ref for instance in both.wire.read(shard).instances]
        read, known = both.wire.details(refs), both.world.details(refs)
        assert read.keys() == known.keys()
        for ref in refs:
            assert read[ref].volumes == known[ref].volumes
            assert read[ref].kept_addresses == known[ref].kept_addresses
            assert read[ref].protected_by == known[ref].protected_by == ()
            unread = read[ref].unread_protections
            assert unread == known[ref].unread_protections
            assert set(both.wire.protections(ref, unread)) == set(both.world.protections(ref, unread))


def test_both_measure_the_same(both: BothWays) -> None:
    wire, world = AwsSignals(both.session, frozenset(SIGNALS)), WorldSignals(both.sandbox.world, both.sandbox.clock)
    until = both.sandbox.clock.now()
    since = until - timedelta(days=3)
    for shard in both.wire.discover(both.target).shards:
        instances = both.wire.read(shard).instances
        read, known = wire.read(instances, since, until), world.read(instances, since, until)
        assert read.gaps == ()
        for instance in instances:
            if instance.launched_at is not None and until - instance.launched_at < timedelta(days=1):
                continue  # too few hours for the adapter to know the cadence: it overstates the traffic on purpose
            assert told(read.readings[instance.ref].histories) == told(known.readings[instance.ref].histories)


def told(histories: tuple[SignalHistory, ...]) -> dict[tuple[str, str], list[tuple[float | None, int]]]:
    """Hour by hour; network to three digits, as its two ways are stored apart."""
    return {
        (history.name.value, history.device): [
            (None if isnan(maximum) else float(f"{maximum:.3g}"), count)
            for maximum, count in zip(history.maxima, history.samples, strict=True)
        ]
        for history in histories
    }


def test_both_quote_the_same(both: BothWays) -> None:
    instances = both.instances()
    read = AwsPrices(both.session, (), now=both.sandbox.clock.now()).rates(instances)
    known = WorldPrices(both.sandbox.world).rates(instances)
    assert {ref: rate.money.rounded(4) for ref, rate in read.items()} == {
        ref: rate.money.rounded(4) for ref, rate in known.items()
    }


def test_what_the_wire_does_the_world_shows(both: BothWays) -> None:
    executor = AwsExecutor(both.acting)
    walker = next(instance for instance in both.instances() if instance.name == "thesis-notebook")

    def seen() -> Instance:
        (read,) = both.wire.details([walker.ref]).values()
        (known,) = both.world.details([walker.ref]).values()
        assert without_what_the_world_leaves_out(read.instance) == without_what_the_world_leaves_out(known.instance)
        assert read.copied_together == known.copied_together
        copies = {(copy.ref, copy.volume, copy.state, copy.started_at) for copy in read.snapshots}
        assert copies == {(copy.ref, copy.volume, copy.state, copy.started_at) for copy in known.snapshots}
        return read.instance

    (detail,) = both.wire.details([walker.ref]).values()
    volumes = tuple(volume.ref for volume in detail.volumes)
    assert (detail.copied_together, len(volumes)) == (True, 2)
    together = replace(action(Verb.SNAPSHOT, walker.ref, walker.ref, walker.run_epoch), copies=volumes)
    receipt = executor.execute(replace(together, decision_id="d-0"))
    made = [both.sandbox.world.snapshots[native_id] for native_id in receipt.native_id.split(",")]
    assert [copy.volume for copy in made] == [volume.native_id for volume in volumes]
    assert (len({copy.set_id for copy in made}), made[0].tags["costguard:decision-id"]) == (1, "d-0")
    seen()
    executor.execute(action(Verb.STOP, walker.ref, walker.ref, walker.run_epoch))
    assert seen().state.value == "stopping"
    both.sandbox.advance(timedelta(minutes=2))
    assert (seen().state.value, seen().run_epoch) == ("stopped", walker.run_epoch)
    (detail,) = both.wire.details([walker.ref]).values()
    for volume in detail.volumes:
        executor.execute(action(Verb.SNAPSHOT, walker.ref, volume.ref, walker.run_epoch))
    seen()
    both.sandbox.advance(timedelta(hours=2))
    seen()
    (detail,) = both.wire.details([walker.ref]).values()
    assert [copy.state for copy in detail.snapshots] == [SnapshotState.COMPLETED] * 4
    assert [copy.decision_id for copy in detail.snapshots] == ["d-0", "d-1"] * 2
    executor.execute(action(Verb.START, walker.ref, walker.ref, walker.run_epoch))
    both.sandbox.advance(timedelta(minutes=1))
    assert seen().run_epoch != walker.run_epoch
    executor.execute(action(Verb.TERMINATE, walker.ref, walker.ref, seen().run_epoch))
    both.sandbox.advance(timedelta(hours=2))
    assert both.wire.details([walker.ref]) == both.world.details([walker.ref]) == {}
