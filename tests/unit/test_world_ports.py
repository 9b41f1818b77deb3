"""The ports over a world say what the world says."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from tests.world_ports.inventory import WorldExecutor, WorldInventory, WorldPrices, WorldSignals
from tests.world_ports.translate import to_product

from cloudstand.clock import MovedClock
from cloudstand.demo.fleet import aws_fleet
from cloudstand.fleets import EAST, PRODUCT, RESEARCH, WEST, aws_machine
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import Disk
from cloudstand.world.kinds import Billing
from costguard.domain.actions import Action, Verb
from costguard.domain.errors import NotFoundError, RefusedError
from costguard.domain.money import Money
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import InstanceState, SnapshotState
from costguard.domain.signals import SignalName
from costguard.ports import ActionExecutor, InventorySource, PriceSource, SignalSource, Target

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)
DAY = timedelta(days=1)


class Stage:
    """One world, its clock and its ports."""

    def __init__(self, *fleet: Any) -> None:
        self.clock = MovedClock(NOW)
        self.world = World(fleet, NOW)
        self.inventory: InventorySource = WorldInventory(self.world, self.clock)
        self.signals: SignalSource = WorldSignals(self.world, self.clock)
        self.prices: PriceSource = WorldPrices(self.world)
        self.executor: ActionExecutor = WorldExecutor(self.world, self.clock)
        self.ref = self.world.fleet[0].ref

    def seen(self) -> Any:
        return self.inventory.read(to_product(self.ref.shard)).instances[0]


def action(verb: Verb, resource: ResourceRef) -> Action:
    return Action(
        action_id="a-1",
        decision_id="d-1",
        verb=verb,
        subject=resource,
        resource=resource,
        run_epoch="",
        case_id="c-1",
        rung=0,
        rule="r",
        rule_digest="",
    )


def machine(name: str = "box", kind: str = "g5.xlarge", **more: Any) -> Any:
    return aws_machine(name, kind, more.pop("workload", does.idle()), NOW - 9 * DAY, **more)


def test_an_organisation_is_all_its_shards_and_an_account_its_own() -> None:
    stage = Stage(*aws_fleet(NOW))
    everywhere = stage.inventory.discover(Target("aws", organisation=True)).shards
    assert [str(shard) for shard in everywhere] == [
        f"aws:{RESEARCH}:{WEST}",
        f"aws:{RESEARCH}:{EAST}",
        f"aws:{PRODUCT}:{WEST}",
        f"aws:{PRODUCT}:{EAST}",
    ]
    assert stage.inventory.discover(Target("aws", account=PRODUCT, regions=(EAST,))).shards == (
        Shard("aws", PRODUCT, EAST),
    )
    assert stage.inventory.discover(Target("aws", account=PRODUCT, regions=())).shards == ()
    assert stage.inventory.discover(Target("tencent")).shards == ()


def test_a_stop_is_accepted_first_and_seen_later() -> None:
    stage = Stage(machine())
    before = stage.seen()
    stage.executor.execute(action(Verb.STOP, to_product(stage.ref)))
    assert stage.seen().state is InstanceState.STOPPING
    stage.clock.advance(timedelta(minutes=2))
    after = stage.seen()
    assert (after.state, after.stopped_at) == (InstanceState.STOPPED, NOW)
    assert after.run_epoch == before.run_epoch


def test_a_start_changes_the_run_epoch() -> None:
    stage = Stage(machine())
    before = stage.seen().run_epoch
    stage.executor.execute(action(Verb.STOP, to_product(stage.ref)))
    stage.clock.advance(timedelta(minutes=2))
    stage.executor.execute(action(Verb.START, to_product(stage.ref)))
    assert stage.seen().run_epoch != before
    assert stage.seen().stopped_at is None


def test_a_snapshot_is_of_one_volume_and_remembers_its_decision() -> None:
    stage = Stage(machine(disks=(Disk(100), Disk(50, device="/dev/sdf", deleted_with_instance=False))))
    detail = stage.inventory.details([to_product(stage.ref)])[to_product(stage.ref)]
    assert [(volume.size_gib, volume.deleted_with_instance) for volume in detail.volumes] == [
        (100.0, True),
        (50.0, False),
    ]
    receipt = stage.executor.execute(action(Verb.SNAPSHOT, detail.volumes[1].ref))
    stage.clock.advance(timedelta(hours=1))
    (snapshot,) = stage.inventory.details([to_product(stage.ref)])[to_product(stage.ref)].snapshots
    assert (snapshot.ref.native_id, snapshot.volume, snapshot.decision_id, snapshot.state, snapshot.started_at) == (
        receipt.native_id,
        detail.volumes[1].ref,
        "d-1",
        SnapshotState.COMPLETED,
        NOW,
    )


def test_a_set_is_of_every_volume_and_its_receipt_names_one_copy_each() -> None:
    stage = Stage(machine(disks=(Disk(100), Disk(50, device="/dev/sdf"))))
    detail = stage.inventory.details([to_product(stage.ref)])[to_product(stage.ref)]
    volumes = tuple(volume.ref for volume in detail.volumes)
    receipt = stage.executor.execute(replace(action(Verb.SNAPSHOT, to_product(stage.ref)), copies=volumes[::-1]))
    made = stage.inventory.details([to_product(stage.ref)])[to_product(stage.ref)].snapshots
    assert detail.copied_together
    assert {copy.started_at for copy in made} == {NOW}
    by_volume = {copy.volume: copy.ref.native_id for copy in made}
    assert receipt.native_id.split(",") == [by_volume[volume] for volume in volumes[::-1]]


def test_refusals_become_our_errors() -> None:
    spot = Stage(machine(billing=Billing.SPOT, one_time_spot=True))
    with pytest.raises(RefusedError) as refused:
        spot.executor.execute(action(Verb.STOP, to_product(spot.ref)))
    assert refused.value.code == "cannot_stop"
    with pytest.raises(NotFoundError):
        spot.executor.execute(action(Verb.TERMINATE, to_product(spot.ref.sibling("instance", "i-0"))))
    with pytest.raises(RefusedError):
        spot.executor.execute(action(Verb.WARN, to_product(spot.ref)))


def test_what_is_gone_is_absent_from_details() -> None:
    stage = Stage(machine())
    seen = stage.seen()
    stage.executor.execute(action(Verb.TERMINATE, to_product(stage.ref)))
    stage.clock.advance(DAY)
    assert stage.inventory.details([seen.ref]) == {}
    assert stage.inventory.read(to_product(stage.ref.shard)).instances == ()


def test_histories_cover_the_window_hour_by_hour() -> None:
    stage = Stage(machine(workload=does.busy_until(NOW - 6 * timedelta(hours=1))))
    report = stage.signals.read([stage.seen()], NOW - DAY, NOW)
    histories = report.readings[to_product(stage.ref)].histories
    assert {(history.name, history.device) for history in histories} == {
        (SignalName.GPU, "0"),
        (SignalName.POWER, "0"),
        (SignalName.CPU, ""),
        (SignalName.NETWORK, ""),
    }
    gpu = next(history for history in histories if history.name is SignalName.GPU)
    lately, all_day = gpu.over(NOW - 6 * timedelta(hours=1), NOW), gpu.over(NOW - DAY, NOW)
    assert lately.maximum == 0.0
    assert all_day.maximum is not None
    assert all_day.maximum > 70
    assert (lately.coverage, lately.expected) == (1.0, 360)
    assert lately.newest_at == NOW - timedelta(minutes=1)


def test_a_series_without_samples_is_absent() -> None:
    stage = Stage(machine(workload=does.agent_dies(NOW - 3 * DAY)))
    reading = stage.signals.read([stage.seen()], NOW - DAY, NOW).readings[to_product(stage.ref)]
    assert {history.name for history in reading.histories} == {SignalName.CPU, SignalName.NETWORK}


def test_prices_are_quoted_and_unknown_ones_absent() -> None:
    stage = Stage(machine(), machine("spot", billing=Billing.SPOT, one_time_spot=True))
    seen = stage.inventory.read(to_product(stage.ref.shard)).instances
    amounts = {rate.money for rate in stage.prices.rates(seen).values()}
    assert amounts == {Money(Decimal("1.006000"), "USD"), Money(Decimal("0.4024000"), "USD")}
    detail = stage.inventory.details([seen[0].ref])[seen[0].ref]
    ((line, kept),) = stage.prices.kept_hourly(detail)
    assert line == "volume"
    assert kept is not None
    assert kept.rounded(4) == Money(Decimal("0.0110"), "USD")
