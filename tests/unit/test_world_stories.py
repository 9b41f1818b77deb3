"""What owners and surroundings do to a world while time passes, all of it in its history."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from math import isnan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.world_ports.hours import histories
from tests.world_ports.inventory import WorldInventory, WorldSignals
from tests.world_ports.translate import to_product

from cloudstand.clock import MovedClock
from cloudstand.fleets import GUANGZHOU, alibaba_machine, aws_machine, tencent_machine
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import Disk, MachineSpec
from cloudstand.world.kinds import InstanceState, SnapshotState
from cloudstand.world.records import Machine, WorldRefusalError
from cloudstand.world.sensors import sensors_of
from cloudstand.world.workload import HOUR_SECONDS, SignalName
from costguard.ports import Target

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def spec(name: str = "box", kind: str = "g5g.xlarge", **more: Any) -> MachineSpec:
    return aws_machine(name, kind, more.pop("workload", does.idle()), NOW - 9 * DAY, **more)


def one_machine(kind: str = "g5g.xlarge", **more: Any) -> tuple[World, Machine]:
    world = World([spec(kind=kind, **more)], NOW)
    return world, next(iter(world.machines.values()))


def told(world: World) -> list[tuple[str, str]]:
    return [(event.by, event.what) for event in world.history]


@pytest.mark.parametrize("end", ["stop", "terminate"])
@pytest.mark.parametrize("size", [250.0, None], ids=["known", "unknown"])
def test_a_local_disk_is_lost_when_its_machine_goes_down(end: str, size: float | None) -> None:
    world, machine = one_machine(local_disk_gib=size)
    getattr(world, end)(machine.native_id, "costguard")
    world.tick(NOW + 2 * MINUTE)
    down = {"stop": "stopped", "terminate": "terminated"}[end]
    assert told(world) == [("costguard", end), ("cloud", down), ("cloud", "local_disk_lost")]


def test_a_local_disk_is_lost_once_a_run() -> None:
    world, machine = one_machine("g5.xlarge")
    for _ in range(2):
        world.stop(machine.native_id, "owner")
        world.tick(world.now + 2 * MINUTE)
        world.start(machine.native_id, "owner")
        world.tick(world.now + 2 * MINUTE)
    world.stop(machine.native_id, "owner")
    world.tick(world.now + 2 * MINUTE)
    world.terminate(machine.native_id, "owner")
    world.tick(world.now + 2 * MINUTE)
    assert [what for _, what in told(world)].count("local_disk_lost") == 3


def test_what_was_stopped_from_the_beginning_has_no_local_data_left_to_lose() -> None:
    world, machine = one_machine("g5.xlarge", state=InstanceState.STOPPED, stopped_since=NOW - DAY)
    world.terminate(machine.native_id, "owner")
    world.tick(NOW + 2 * MINUTE)
    assert told(world) == [("owner", "terminate"), ("cloud", "terminated")]


def test_a_machine_without_local_disks_loses_none() -> None:
    world, machine = one_machine()
    world.stop(machine.native_id, "owner")
    world.tick(NOW + 2 * MINUTE)
    assert told(world) == [("owner", "stop"), ("cloud", "stopped")]


def test_an_owner_attaches_a_disk_and_takes_it_off_again() -> None:
    world, machine = one_machine()
    (root,) = world.volumes_of(machine.native_id)
    added = world.attach(machine.native_id, Disk(50, "/dev/sdf", deleted_with_instance=False), "owner")
    assert [volume.native_id for volume in world.volumes_of(machine.native_id)] == [root.native_id, added]
    copy = world.create_snapshot(added, "owner")
    world.detach(added, "owner")
    assert world.volumes_of(machine.native_id) == [root]
    assert world.volumes[added].deleted_at is None, "it stays, and bills"
    world.tick(NOW + HOUR)
    assert copy.state is SnapshotState.COMPLETED
    with pytest.raises(WorldRefusalError, match="wrong_state"):
        world.detach(added, "owner")
    assert told(world)[:3] == [("owner", "attach"), ("owner", "create_snapshot"), ("owner", "detach")]


def test_the_first_disk_comes_off_a_stopped_machine_only() -> None:
    world, machine = one_machine()
    (root,) = world.volumes_of(machine.native_id)
    with pytest.raises(WorldRefusalError, match="wrong_state"):
        world.detach(root.native_id, "owner")
    world.stop(machine.native_id, "owner")
    world.tick(NOW + 2 * MINUTE)
    world.detach(root.native_id, "owner")
    assert world.volumes_of(machine.native_id) == []


def test_nothing_is_attached_to_a_machine_that_ends() -> None:
    world, machine = one_machine()
    world.terminate(machine.native_id, "owner")
    with pytest.raises(WorldRefusalError, match="wrong_state"):
        world.attach(machine.native_id, Disk(50), "owner")


def test_two_disks_on_one_device_are_two_disks() -> None:
    world, machine = one_machine()
    first, second = (world.attach(machine.native_id, Disk(50, "/dev/sdf"), "owner") for _ in range(2))
    assert first != second


def test_a_deleted_copy_is_gone_and_its_id_is_not_used_again() -> None:
    world, machine = one_machine()
    (root,) = world.volumes_of(machine.native_id)
    first = world.create_snapshot(root.native_id, "owner")
    world.delete_snapshot(first.native_id, "owner")
    second = world.create_snapshot(root.native_id, "owner")
    world.tick(NOW + HOUR)
    assert list(world.snapshots_of(root.native_id)) == [second]
    assert list(world.snapshots) == [second.native_id] != [first.native_id]
    assert (first.state, second.state) == (SnapshotState.PENDING, SnapshotState.COMPLETED)
    with pytest.raises(WorldRefusalError, match="not_found"):
        world.delete_snapshot(first.native_id, "owner")


def test_an_autoscaler_replaces_a_machine() -> None:
    world, machine = one_machine()
    inventory = WorldInventory(world, MovedClock(NOW + HOUR))
    world.tick(NOW + HOUR)
    world.terminate(machine.native_id, "owner")
    new = world.launch(tencent_machine("next", does.busy(), NOW - 9 * DAY), "autoscaler")
    assert world.machines[new].launched_at == world.now
    assert world.machines[new].state is InstanceState.PENDING
    (shard,) = inventory.discover(Target("tencent")).shards
    assert (shard.region, len(inventory.read(shard).instances)) == (GUANGZHOU, 1)
    world.tick(NOW + 2 * HOUR)
    assert world.machines[new].state is InstanceState.RUNNING
    assert told(world)[1:3] == [("autoscaler", "launch"), ("cloud", "running")]
    with pytest.raises(ValueError, match="there is a machine"):
        world.launch(world.fleet[0], "autoscaler")


def test_a_copy_may_take_a_day() -> None:
    world, machine = one_machine(disks=(Disk(1, snapshot_takes=DAY),))
    copy = world.create_snapshot(world.volumes_of(machine.native_id)[0].native_id, "owner")
    states = []
    for moment in (NOW + DAY - MINUTE, NOW + DAY):
        world.tick(moment)
        states.append(copy.state)
    assert states == [SnapshotState.PENDING, SnapshotState.COMPLETED]


def test_copies_begin_and_cease_to_fail_while_time_passes() -> None:
    world, machine = one_machine()
    volume = world.volumes_of(machine.native_id)[0].native_id
    copies = [world.create_snapshot(volume, "owner")]
    for on in (True, False):
        world.snapshots_fail(volume, on)
        copies.append(world.create_snapshot(volume, "owner"))
    world.tick(NOW + HOUR)
    assert [copy.state.value for copy in copies] == ["completed", "failed", "completed"]
    assert [what for _, what in told(world) if what.startswith("snapshots_")] == ["snapshots_fail", "snapshots_work"]


def counts(world: World, until: datetime, hours: int = 6) -> dict[str, list[int]]:
    signals = WorldSignals(world, MovedClock(until))
    inventory = WorldInventory(world, MovedClock(until))
    (instance,) = inventory.read(to_product(world.fleet[0].shard)).instances
    report = signals.read([instance], until - hours * HOUR, until)
    return {history.name.value: list(history.samples) for history in report.readings[instance.ref].histories}


def test_silence_takes_the_device_samples_of_its_span_and_no_others() -> None:
    world, machine = one_machine()
    world.silence(machine.native_id, NOW - 4 * HOUR, NOW - 2 * HOUR - 30 * MINUTE)
    assert counts(world, NOW) == {
        "gpu": [60, 60, 0, 30, 60, 60],
        "power": [60, 60, 0, 30, 60, 60],
        "cpu": [12] * 6,
        "network": [12] * 6,
    }
    assert told(world) == [("cloud", "silence")]


def test_silence_may_take_all_signals_and_last() -> None:
    world, machine = one_machine()
    world.silence(machine.native_id, NOW - 2 * HOUR, all_signals=True)
    assert counts(world, NOW + HOUR)["cpu"] == [12, 12, 12, 0, 0, 0]


def test_a_series_silent_over_the_whole_window_is_absent() -> None:
    world, machine = one_machine()
    world.silence(machine.native_id, NOW - DAY, NOW + DAY)
    assert set(counts(world, NOW)) == {"cpu", "network"}


def test_silence_hides_a_spike_and_what_was_read_before_is_forgotten() -> None:
    at = NOW - 3 * HOUR + 17 * MINUTE
    world, machine = one_machine(workload=does.one_spike(at))

    def peak() -> float:
        (gpu,) = [one for one in histories(machine, NOW - DAY, NOW) if one.name is to_product(SignalName.GPU)]
        return max(value for value in gpu.maxima if not isnan(value))

    assert peak() == does.BUSY.gpu_percent
    world.silence(machine.native_id, at - MINUTE, at + 2 * MINUTE)
    assert peak() == 0.0


def test_work_put_in_from_outside_counts_for_what_was_read_before() -> None:
    world, machine = one_machine()

    def cpu() -> float:
        (read,) = [one for one in histories(machine, NOW - DAY, world.now) if one.name is to_product(SignalName.CPU)]
        return max(read.maxima)

    assert cpu() < 5
    machine.workload = does.busy()
    assert cpu() > 40


MOMENTS = st.integers(0, 30 * 60).map(lambda minutes: NOW + minutes * MINUTE)
LOADS = st.sampled_from([does.IDLE, does.BUSY, does.GPU_ONLY])


@given(
    acts=st.lists(st.tuples(MOMENTS, st.sampled_from(["stop", "start", "work", "silence", "read"]), LOADS), max_size=8),
    spikes=st.lists(MOMENTS, max_size=2),
    dies=st.none() | MOMENTS,
    since=MOMENTS,
    lasting=st.integers(1, 40 * 60).map(lambda minutes: minutes * MINUTE),
)
def test_histories_say_the_same_as_single_samples_whatever_happened_and_was_read_before(
    acts: list[tuple[datetime, str, does.Load]],
    spikes: list[datetime],
    dies: datetime | None,
    since: datetime,
    lasting: timedelta,
) -> None:
    does_this = does.Workload(does.IDLE, spikes=tuple(spikes), agent_dies_at=dies)
    world = World([aws_machine("box", "g5g.16xlarge", does_this, NOW - 90 * MINUTE)], NOW)
    (machine,) = world.machines.values()
    for at, act, load in sorted(acts, key=lambda one: one[:2]):
        world.tick(at)
        if act == "read":
            histories(machine, at - DAY, at)
        elif act == "work":
            world.work(machine.native_id, load)
        elif act == "silence":
            world.silence(machine.native_id, at - 100 * MINUTE, at + 31 * MINUTE, all_signals=load is does.BUSY)
        elif machine.state in (InstanceState.RUNNING, InstanceState.STOPPED):
            getattr(world, act)(machine.native_id, "owner")
    until = since + lasting
    world.tick(max(world.now, until))
    read = {(one.name, one.device): one for one in histories(machine, since, until)}
    for sensor in sensors_of(machine):
        history = read.get(to_product((sensor.signal, sensor.device)))
        first = int(since.timestamp())
        present = any(True for _ in sensor.samples(first, int(until.timestamp()), until))
        assert sensor.has_samples(since, until) == present == (history is not None)
        if history is None:
            continue
        begin = first - first % HOUR_SECONDS
        assert history.start.timestamp() == begin
        for index, (peak, count) in enumerate(zip(history.maxima, history.samples, strict=True)):
            hour = begin + index * HOUR_SECONDS
            single = list(sensor.samples(hour, hour + HOUR_SECONDS, until))
            assert count == len(single)
            assert (isnan(peak) and not single) or peak == max(single)


@pytest.mark.parametrize("make", [alibaba_machine, tencent_machine])
def test_machines_of_other_clouds_are_measured_and_priced_like_any(make: Any) -> None:
    world = World([make("box", does.busy(), NOW - 9 * DAY, tags={"team": "research"})], NOW)
    assert set(counts(world, NOW)) == {"gpu", "power", "cpu", "network"}
    (one,) = world.fleet
    assert one.hourly is not None
    assert (one.hourly.currency, dict(one.tags)) == ("CNY", {"team": "research"})


def test_a_slice_of_a_card_has_one_metric() -> None:
    world = World([tencent_machine("box", does.idle(), NOW - DAY, "GN7.LARGE20")], NOW)
    (machine,) = world.machines.values()
    assert [sensor.device for sensor in sensors_of(machine) if sensor.signal is SignalName.GPU] == ["0"]
